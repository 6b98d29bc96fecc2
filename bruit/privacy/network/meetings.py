"""Exact loss of randomized pair averaging, given the meetings that happened.

When a and b meet they exchange their current values, then both hold the mean. The meetings never depend on data and
the observer is assumed to know all of them, so the loss is that of the realized sequence (gossip:MUF-2, MUF-7).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from bruit.arrays import Array
from bruit.privacy.guarantee import Hypothesis
from bruit.privacy.network.rows import meeting_rows, stacked_loss
from bruit.privacy.network.theorem import STANDING, Facts, Theorem, one_release

KNOWN = Hypothesis("the observer knows who met whom and when; the meetings did not depend on the data", checked=False)


@dataclass(frozen=True)
class ExactMeetings(Theorem):
    """Pair averaging after one noisy release per peer, conditionally on the meetings."""

    title: ClassVar[str] = "the exact loss of pair averaging, given the meetings"
    spec: ClassVar[str] = "gossip:MUF-7"

    def check(self, facts: Facts) -> tuple[Hypothesis, ...]:
        return (one_release(facts), KNOWN, *STANDING)

    def losses(self, facts: Facts, observers: tuple[int, ...]) -> Array:
        rows = meeting_rows(facts.n, facts.meetings.a, facts.meetings.b, observers)
        return stacked_loss(rows.values, rows.modulo).loss
