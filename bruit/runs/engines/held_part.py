"""What the peers of one block hold, as the whole task would answer for them, by the same numbers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bruit.arrays import Array, Ints
from bruit.errors import LocalProtocolError
from bruit.tasks.renumbered import Renumbered
from bruit.tasks.task import Sensitivities


@dataclass(frozen=True, eq=False)
class HeldPart(Renumbered):
    """`inner` has one peer for each of `ids`, which are in order; there are `among` in all. What
    observers ask is asked of the whole task, elsewhere."""

    ids: Ints
    among: int

    def _inner_ids(self, ids: Ints) -> Ints:
        rows = np.minimum(np.searchsorted(self.ids, ids), len(self.ids) - 1)
        if not np.array_equal(self.ids[rows], ids):
            raise LocalProtocolError("a block asked for records of peers that are not its own")
        return rows

    @property
    def peers(self) -> int:
        return self.among

    def record_counts(self) -> Ints:
        """Of peers of other blocks nothing is known here."""
        counts = np.zeros(self.among, np.int64)
        counts[self.ids] = self.inner.record_counts()
        return counts

    def sensitivities(self, answer: str, order: int) -> Sensitivities:
        """Of the answers of this block's own peers."""
        own, values = self.inner.sensitivities(answer, order), np.zeros(self.among)
        values[self.ids] = own.values
        return own._replace(values=tuple(values.tolist()))

    def evaluate(self, models: Array) -> dict[str, float]:
        raise LocalProtocolError("models are scored where all records are")

    def references(self) -> dict[str, float]:
        raise LocalProtocolError("references are computed where all records are")
