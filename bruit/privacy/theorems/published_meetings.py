"""The printed loss of randomized Muffliato, given the meetings. NOT A GUARANTEE: kept to reproduce
and to compare.

    m_uv = sum over the meetings of v, at which w tells x_w = sum_u B_wu (x_u + noise_u), of B_wu^2 / ||B_w||^2

B is the product of the pair averages so far. Like the printed formula for rounds it adds losses of
messages that carry the same noise, which is no bound of what they tell together. An example: path
0-1-2, meetings {0, 1}, {1, 2}, {0, 1}. For peer 2 in the view of 0 it says 2/3. The truth is 1,
since 0 knows by then what 1 and itself put in. (Cyffers, Even, Bellet, Massoulie, arXiv:2206.05091,
Theorem 6.4; gossip:MUF-7, MUF-1.) For a bound that holds see bruit.privacy.theorems.meetings.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from bruit.arrays import Array, Ints
from bruit.privacy.guarantee import Hypothesis, Status
from bruit.privacy.question import Peers
from bruit.privacy.theorem import STANDING, Facts, Theorem, one_release
from bruit.privacy.theorems.meetings import KNOWN


def source_6_4(n: int, a: Ints, b: Ints, seen_by: Peers) -> Array:
    """NOT A GUARANTEE. The printed sum over the meetings {a_t, b_t}, in order, for all peers
    # (n,).

    >>> source_6_4(3, np.array([0, 1, 0]), np.array([1, 2, 1]), 0)[1:].round(6).tolist()
    [1.166667, 0.666667]
    """
    from bruit.privacy.exact import meeting_rows
    from bruit.privacy.theorems.published import published_rows

    return published_rows(meeting_rows(n, a, b, np.atleast_1d(seen_by)).messages)


@dataclass(frozen=True)
class PublishedMeetings(Theorem):
    """Theorem 6.4 for the meetings that happened: NOT a bound."""

    title: ClassVar[str] = "the printed loss of randomized Muffliato, which is not a guarantee"
    spec: ClassVar[str] = "gossip:MUF-7 printed"
    status: ClassVar[Status] = "published"
    about: tuple[str, ...] = field(default=("pair-averaging",), kw_only=True)

    def conditions(self, facts: Facts) -> tuple[Hypothesis, ...]:
        return (one_release(facts), KNOWN, *STANDING)

    def losses(self, facts: Facts, observers: tuple[int, ...]) -> Array:
        return source_6_4(facts.n, facts.meetings.a, facts.meetings.b, observers)

    def notes(self, facts: Facts, observers: tuple[int, ...]) -> tuple[str, ...]:
        return ("not a guarantee: messages that share noise are added up as if each had its own",)
