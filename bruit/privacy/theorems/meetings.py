"""Exact loss of randomized pair averaging, given the meetings that happened.

When a and b meet they exchange their current values, then both hold the mean. The meetings never
depend on data and the observer is assumed to know all of them, so the loss is that of the realized
sequence (gossip:MUF-2, MUF-7).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from bruit.arrays import Array, Ints
from bruit.privacy.guarantee import Hypothesis
from bruit.privacy.theorem import STANDING, Facts, Theorem, one_release

KNOWN = Hypothesis(
    "the observer knows who met whom and when; the meetings did not depend on the data",
    checked=False,
)
NUMBERS = 2**25  # row entries kept at once while all observers are computed together


@dataclass(frozen=True)
class ExactMeetings(Theorem):
    """Pair averaging after one noisy release per peer, conditionally on the meetings."""

    title: ClassVar[str] = "the exact loss of pair averaging, given the meetings"
    spec: ClassVar[str] = "gossip:MUF-7"
    about: tuple[str, ...] = field(default=("pair-averaging",), kw_only=True)

    def conditions(self, facts: Facts) -> tuple[Hypothesis, ...]:
        return (one_release(facts), KNOWN, *STANDING)

    def rounding(self, facts: Facts) -> float:
        """Infinite if there were more meetings than the range of the grid allows for."""
        count, exchange = len(facts.meetings.a), facts.public
        within = 1 + count * exchange.dither**2 <= exchange.noise**2 * (1 + 1e-9)
        return facts.mixed_rounding(2 * count) if within else math.inf

    def losses(self, facts: Facts, observers: tuple[int, ...]) -> Array:
        from bruit.privacy.exact import meeting_loss

        key = (type(self), observers)
        return facts.once(
            key, lambda: meeting_loss(facts.n, facts.meetings.a, facts.meetings.b, observers)
        ).loss.copy()

    def joint(self, facts: Facts, members: tuple[int, ...], observers: tuple[int, ...]) -> float:
        from bruit.privacy.exact import meeting_rows
        from bruit.privacy.theorems.group import joint_loss

        return joint_loss(
            meeting_rows(facts.n, facts.meetings.a, facts.meetings.b, observers), members
        )

    def sharp(self, facts: Facts) -> bool:
        return True

    def notes(self, facts: Facts, observers: tuple[int, ...]) -> tuple[str, ...]:
        return (
            f"of these {len(facts.meetings.a)} meetings; another draw of them has another loss",
        )

    def matrix(self, facts: Facts, progress: Callable[[int, int], None] | None = None) -> Array:
        """All observers from a few passes over the meetings: O(meetings n) a pass, as many as
        memory asks for."""
        from bruit.privacy.exact import PRIMES, stacked_loss

        n, visits = (
            facts.n,
            np.bincount(np.concatenate((facts.meetings.a, facts.meetings.b)), minlength=facts.n),
        )
        group = np.cumsum((visits + 1) * n) // NUMBERS
        m = np.empty((n, n))
        for number in np.unique(group):
            observers = np.flatnonzero(group == number)
            heard = {kind: _heard_rows(facts, observers, kind) for kind in (0, *PRIMES)}
            for v in observers.tolist():
                found = stacked_loss(heard[0][v], _residues(heard, v))
                m[:, v] = found.loss if found.status == "exact" else self.losses(facts, (v,))
                if progress is not None:
                    progress(v + 1, n)
        np.fill_diagonal(m, np.nan)
        return m


def _residues(heard: dict[int, dict[int, Array]], observer: int) -> Callable[[int], Ints]:
    return lambda prime: heard[prime][observer].astype(np.int64)


def _heard_rows(facts: Facts, observers: Ints, prime: int) -> dict[int, Array]:
    """Own row and the rows each observer hears, in floats (prime 0) or modulo a prime."""
    n, half = facts.n, (prime + 1) // 2
    state = np.eye(n) if prime == 0 else np.eye(n, dtype=np.int64)
    rows = {int(v): [state[v].copy()] for v in observers}
    for a, b in zip(facts.meetings.a.tolist(), facts.meetings.b.tolist(), strict=True):
        if a in rows:
            rows[a].append(state[b].copy())
        if b in rows:
            rows[b].append(state[a].copy())
        total = state[a] + state[b]
        state[a] = state[b] = total / 2 if prime == 0 else total * half % prime
    return {v: np.array(kept) for v, kept in rows.items()}
