"""What counts in a token tell, given its path: shuffling between two visits (gossip:RING-3,
walk:RW-2).

Observers see the counts when the token arrives and know their own reports. Between two of their
visits others added m elements, k of them reports of u by eps0-randomized response; the counts hide
their order, so a window costs u

    k = 0: nothing      k = 1: (eps, delta_w) with the numeric shuffle bound at m reports, or eps0      k > 1: k eps0

and windows compose. No factor for subsampling: the observer may know the whole path. A uniform
element counts as a report: it is the randomized response of a value drawn uniformly, and the bound
holds for all values of the others, hence in the mean over them. So the ceil(gamma n) elements that
the first holder puts in hide the first window, and those of the last holder a published token,
unless that holder observes. Each amplified window is given an equal part of the delta that may be
used up. Since L is not in the ledger, gamma is taken as if L = 2, which is the least.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from bruit.arrays import Array, Ints
from bruit.errors import PrivacyError
from bruit.privacy.events import BoundedEvent, Event
from bruit.privacy.formulas import randomized_response as rr
from bruit.privacy.formulas.shuffling import clones
from bruit.privacy.guarantee import Hypothesis
from bruit.privacy.theorem import STANDING, Facts, Theorem

COARSE = 1.05  # sizes of windows are rounded down to powers of it: fewer kinds of events


@dataclass(frozen=True)
class TokenCounts(Theorem):
    """Every hop adds one element; `blanket`: the first holder, and the last if `published`, adds
    ceil(gamma n) more."""

    blanket: bool
    published: bool
    title: ClassVar[str] = "counts in a token, shuffled between two visits"
    spec: ClassVar[str] = "gossip:RING-3, walk:RW-2"
    about: tuple[str, ...] = field(default=("token-histogram",), kw_only=True)

    def conditions(self, facts: Facts) -> tuple[Hypothesis, ...]:
        epsilon = _local_epsilon(facts)
        clock, path = facts.ledger.column("clock"), facts.meetings.b
        visits = len(clock) == 0 or clock.max() < len(path)
        if not visits or not np.array_equal(path[clock], facts.ledger.column("peer")):
            raise PrivacyError(
                "the ledger holds reports of peers that did not hold the token; use local DP"
            )
        if len(np.unique(clock)) != len(clock):
            raise PrivacyError("some hop added more than one report; use local DP")
        return (
            Hypothesis(
                f"every report is one {epsilon:g}-DP randomized response, added at its hop",
                checked=True,
            ),
            Hypothesis("a hop without report adds a uniform element", checked=False),
            Hypothesis(
                "the path does not depend on the data; the observer may know all of it",
                checked=False,
            ),
            Hypothesis(
                "the last token is " + ("published" if self.published else "not published"),
                checked=False,
            ),
            *STANDING,
        )

    def rounding(self, facts: Facts) -> float:
        """Counts are whole numbers, and their noise is randomized response."""
        return 0.0

    def losses(self, facts: Facts, observers: tuple[int, ...]) -> Array:
        raise PrivacyError(
            "losses of pairs are for Gaussian noise, and counts are hidden by shuffling;"
            " ask for the epsilon of one pair"
        )

    def events(
        self, facts: Facts, observers: tuple[int, ...], delta: float
    ) -> tuple[tuple[Event, ...], Ints]:
        epsilon, path = _local_epsilon(facts), facts.meetings.b
        real = np.zeros(len(path), bool)
        real[facts.ledger.column("clock")] = True
        windows = [
            (np.bincount(path[part][real[part]], minlength=facts.n), len(part) + more)
            for part, more in self._windows(path, observers, self._elements(facts, epsilon))
        ]
        each = delta / max(1, len(windows))
        found: dict[Event, Ints] = {}
        for reports, size in windows:
            for count in np.unique(reports[reports > 0]).tolist():
                event = (
                    _amplified(epsilon, size, each)
                    if count == 1 and each > 0
                    else BoundedEvent(count * epsilon)
                )
                paid = found.setdefault(event, np.zeros(facts.n, np.int64))
                paid += reports == count
        counts = (
            np.stack(list(found.values()), axis=1) if found else np.zeros((facts.n, 0), np.int64)
        )
        return tuple(found), counts

    def _elements(self, facts: Facts, epsilon: float) -> int:
        """At least how many uniform elements the first and the last holder put in."""
        return math.ceil(rr.gamma(2, epsilon) * facts.n * (1 - 1e-12)) if self.blanket else 0

    def _windows(
        self, path: Ints, observers: tuple[int, ...], elements: int
    ) -> Iterator[tuple[Ints, int]]:
        """Hops of others between two visits to the observers, and the uniform elements put in
        beside them."""
        seen = np.flatnonzero(np.isin(path, observers)).tolist()
        begin = 0
        for end in [*seen, *([len(path)] if self.published else [])]:
            more = elements * (int(begin == 0) + int(end == len(path)))
            if end > begin:
                yield np.arange(begin, end), more
            begin = end + 1

    def advice(self, facts: Facts, observers: tuple[int, ...]) -> tuple[str, ...]:
        return (
            "more noise (a larger gamma)",
            "a cool-down (rest), so that fewer windows hold two reports of a peer",
        )


def _local_epsilon(facts: Facts) -> float:
    """The epsilon of the one randomized response behind all reports."""
    kinds = facts.ledger.events
    if len(kinds) > 1 or not all(
        isinstance(event, BoundedEvent) and event.delta == 0 for event in kinds
    ):
        found = ", ".join(str(event) for event in kinds)
        raise PrivacyError(
            f"shuffled counts need one randomized response for all reports; the ledger holds "
            f"{found}"
        )
    return kinds[0].epsilon if kinds and isinstance(kinds[0], BoundedEvent) else 0.0


def _amplified(epsilon: float, reports: int, delta: float) -> BoundedEvent:
    """One report among so many."""
    fewer = max(1, math.floor(COARSE ** math.floor(math.log(reports, COARSE) + 1e-9)))
    shuffled = clones(epsilon, min(fewer, reports), delta)
    return BoundedEvent(shuffled, delta) if shuffled < epsilon else BoundedEvent(epsilon)
