"""Histograms of all prefixes of a number, exactly or from one bit per user (perso:LDP-7, LDP-8).

    H[l][i] = #{x : x >> (alpha - l) = i},    l = 0..alpha, domain {0..2^alpha - 1}
    a user is asked publicly for (level l, row j), both uniform, and sends y = (-1)^popcount(j & (x >> (alpha - l))),
    flipped with probability 1 / (e^epsilon + 1)
    H^[l][v] = alpha c * sum over the users of level l of y (-1)^popcount(j & v),    c = 1 / tanh(epsilon / 2)

Unbiased, Var(H^) = n alpha c^2 - H, at most V = C n alpha with C = c^2. The sum is one fast
Hadamard transform a level. The questions are public and never depend on data: level and row follow
from a public seed and the user's number. Shown: one bit, to everybody.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from bruit.arrays import Array, Ints, Words
from bruit.errors import ConfigError
from bruit.privacy.events import BoundedEvent, Event
from bruit.randomness import Dice, Replay
from bruit.statistics.local.coins import (
    WORDS,
    check_epsilon,
    chunks,
    flip_threshold,
    lanes_of,
    odd_parity,
)
from bruit.statistics.local.protocol import check_values
from bruit.statistics.local.walsh import walsh_hadamard

Signs = NDArray[np.int8]
DEEPEST = 30


def histograms(values: Any, levels: int) -> list[Ints]:
    """The exact histograms of levels 0..alpha.

    >>> [level.tolist() for level in histograms(np.array([0, 1, 2, 2, 3]), 2)]
    [[5], [2, 3], [1, 1, 2, 1]]
    """
    _check_levels(levels)
    leaves = np.bincount(check_values(values, 1 << levels), minlength=1 << levels)
    found = [leaves]
    for _ in range(levels):
        found.append(found[-1].reshape(-1, 2).sum(axis=1))
    return found[::-1]


@final
@dataclass(frozen=True)
class HadamardTree:
    """One bit per user about a whole tree of prefixes; seed: of the public questions, agreed on
    before the data."""

    levels: int
    epsilon: float
    seed: int = 0

    def __post_init__(self) -> None:
        _check_levels(self.levels)
        check_epsilon(self.epsilon)

    @property
    def scale(self) -> float:
        """c = (e^epsilon + 1) / (e^epsilon - 1), of the rounded coin: what a bit is worth."""
        return WORDS / (WORDS - 2 * flip_threshold(self.epsilon))

    def node_variance(self, n: int) -> float:
        """V = C n alpha, a bound on the variance of every node.

        >>> round(HadamardTree(10, 1.0).node_variance(2000), 6)
        93653.887537
        """
        return self.scale**2 * n * self.levels

    def event(self) -> Event:
        """What the bit costs."""
        return BoundedEvent(self.epsilon)

    def questions(self, users: Ints) -> tuple[Ints, Words]:
        """The level (1..alpha) and the row that each user is asked for: anybody can compute
        them."""
        public = Replay(self.seed)
        level, row = np.empty(len(users), dtype=np.int64), np.empty(len(users), dtype=np.uint64)
        for part in chunks(users):
            words = public.words("local-dp questions", users[part], 0, 0, 2)
            level[part] = (words[:, 0] % np.uint64(self.levels)).astype(np.int64) + 1
            row[part] = words[:, 1] & (
                (np.uint64(1) << level[part].astype(np.uint64)) - np.uint64(1)
            )
        return level, row

    def report(self, values: Any, dice: Dice, users: Ints | None = None, step: int = 0) -> Signs:
        """The client side: one sign, +1 or -1, for each value 0..2^alpha - 1  # (n,)."""
        cells = check_values(values, 1 << self.levels)
        lanes = lanes_of(users, len(cells))
        level, row = self.questions(lanes)
        threshold, sent = (
            np.uint64(flip_threshold(self.epsilon)),
            np.empty(len(cells), dtype=np.int8),
        )
        for part in chunks(lanes):
            prefix = (cells[part] >> (self.levels - level[part])).astype(np.uint64)
            flips = dice.words("local-dp tree", lanes[part], step, 0, 1)[:, 0] < threshold
            sent[part] = 1 - 2 * (odd_parity(row[part] & prefix).astype(np.int8) ^ flips)
        return sent

    def estimate(self, signs: Signs, users: Ints | None = None) -> list[Array]:
        """The aggregator side: unbiased histograms of levels 0..alpha; the root is exact."""
        lanes = lanes_of(users, len(signs))
        level, row = self.questions(lanes)
        return self.transform(np.asarray(signs, dtype=np.float64), level, row)

    def transform(self, signs: Array, level: Ints, row: Words) -> list[Array]:
        """Histograms from signs and the questions they answer: sums by (level, row), one transform
        a level."""
        # Levels lie end to end: level l begins at 2^l - 2, so that one count serves all of them.
        place = (1 << level) - 2 + row.astype(np.int64)
        sums = np.asarray(
            np.bincount(place, weights=signs, minlength=(2 << self.levels) - 2), dtype=np.float64
        )
        unit = self.levels * self.scale
        found = [np.array([float(len(signs))])]
        for l in range(1, self.levels + 1):
            found.append(unit * walsh_hadamard(sums[(1 << l) - 2 : (2 << l) - 2]))
        return found


def _check_levels(levels: int) -> None:
    if isinstance(levels, bool) or not isinstance(levels, int) or not 1 <= levels <= DEEPEST:
        raise ConfigError(
            f"a tree has between 1 and {DEEPEST} levels (2 to 2**{DEEPEST} bins), found {levels!r}"
        )
