"""Both levels of one run: each record, and everything that a peer holds (silo:SILO-6).

A run at record level hides one row. What is left of a peer as a whole is another statement, usually
very weak, and it is said beside the first one wherever that is shown. At user level the statement
is about all that a peer holds, so that it covers every record of it too.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from bruit.errors import PrivacyError
from bruit.how_many import how_many
from bruit.privacy.events import Adjacency
from bruit.privacy.guarantee import MOVED
from bruit.runs.result import Run

PROMISE = 10.0  # an epsilon above it is hardly a promise, and is said to be none


@dataclass(frozen=True)
class BothLevels:
    """`record` is what the worst pair says of one record; `whole` what everybody could have learned
    of a peer with `records` records, the most that anybody holds; nan where no theorem tells."""

    record: float
    whole: float
    records: int
    adjacency: Adjacency
    delta: float

    def sentence(self) -> str:
        """Side by side, in words, with all that belongs to an epsilon."""
        moved = MOVED[self.adjacency].removeprefix("one record ")
        return (
            f"each record ({moved}): epsilon {self.record:.4g}; a peer as a whole"
            f" ({self.moved()}): {self.whole_words()}; at delta = {self.delta:g}"
        )

    def moved(self) -> str:
        """What changes in a peer as a whole, in words."""
        moved = MOVED[self.adjacency].removeprefix("one record ")
        return f"up to {how_many(self.records, 'record')} {moved}"

    def whole_words(self) -> str:
        """A number that protects nobody is not shown without saying so."""
        if math.isnan(self.whole):
            return "not known"
        if math.isinf(self.whole):
            return "not protected (no finite epsilon)"
        found = f"epsilon {self.whole:.4g}"
        return found if self.whole <= PROMISE else f"not protected ({found})"

    def plain(self) -> dict[str, Any]:
        """The same for machines to read."""
        return {
            "record": self.record,
            "whole": None if math.isnan(self.whole) else self.whole,
            "records": self.records,
            "adjacency": self.adjacency,
            "delta": self.delta,
            "in_words": self.sentence(),
        }


def both_levels(run: Run, record: float, delta: float) -> BothLevels | None:
    """Of a run at record level whose worst pair has the epsilon `record`; None for other runs, and
    where the task does not say how many records peers hold."""
    sizes = run.task.get("records_per_peer")
    if run.privacy is None or run.privacy.level != "record" or not isinstance(sizes, list):
        return None
    records, asked = max(1, int(max(sizes))), run.accountant()
    first = np.unique(run.ledger.counts(), axis=0, return_index=True)[1]
    try:
        whole = max(asked.whole_peer(int(peer), records, delta) for peer in first)
    except PrivacyError:  # noise of a kind that nothing is known about
        whole = math.nan
    return BothLevels(record, whole, records, run.privacy.adjacency, delta)
