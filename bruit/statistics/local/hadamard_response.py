"""Hadamard response: a random index on which the row of one's value is +1, most of the time (beyond
the sources).

    S_x = {y : H[x + 1, y] = +1}, half of the K' = 2^ceil(log2(k + 1)) indices
    y uniform in S_x with probability e^epsilon / (e^epsilon + 1), else uniform outside of it

Two rows agree on half of their places, so a report supports any other value with chance exactly
1/2. The aggregator needs one fast Hadamard transform of the counts: O(n + k log k). Acharya, Sun,
Zhang 2019, arXiv:1802.04705 (the version for high privacy). Shown: the index, to everybody.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np

from bruit.arrays import Bools, Ints
from bruit.randomness import Dice
from bruit.statistics.local.coins import WORDS, check_epsilon, chunks, flip_threshold, odd_parity
from bruit.statistics.local.protocol import FrequencyProtocol, check_domain, in_range
from bruit.statistics.local.reports import Reports
from bruit.statistics.local.walsh import walsh_hadamard


@final
@dataclass(frozen=True)
class HadamardResponse(FrequencyProtocol):
    """An index of a Hadamard matrix; its size hardly depends on k."""

    k: int
    epsilon: float
    kind: ClassVar[str] = "hadamard"

    def __post_init__(self) -> None:
        check_domain(self.k)
        check_epsilon(self.epsilon)

    @property
    def size(self) -> int:
        """K': the least power of two above k."""
        return 1 << self.k.bit_length()

    def describe(self) -> dict[str, Any]:
        return {"kind": self.kind, "k": self.k, "epsilon": self.epsilon}

    def chances(self) -> tuple[float, float]:
        return (WORDS - flip_threshold(self.epsilon)) / WORDS, 0.5

    def bits(self) -> float:
        return self.k.bit_length()

    def valid(self, reports: Reports) -> Bools:
        return in_range(reports.column("index"), self.size)

    def supports(self, reports: Reports, rows: Bools) -> Ints:
        counts = np.bincount(reports.column("index")[rows].astype(np.int64), minlength=self.size)
        balance = walsh_hadamard(
            counts.astype(np.float64)
        )  # reports with sign + minus reports with sign -
        return np.asarray(np.rint((balance[0] + balance[1 : self.k + 1]) / 2), dtype=np.int64)

    def _randomize(self, values: Ints, dice: Dice, users: Ints, step: int) -> Reports:
        sent = np.empty(len(values), dtype=np.min_scalar_type(self.size - 1))
        threshold, last = np.uint64(flip_threshold(self.epsilon)), np.uint64(self.size - 1)
        for part in chunks(users):
            words = dice.words("local-dp hadamard", users[part], step, 0, 2)
            row = values[part].astype(np.uint64) + np.uint64(1)
            index = words[:, 1] & last
            wrong = odd_parity(index & row) != (words[:, 0] < threshold)
            lowest = row & (~row + np.uint64(1))  # turning one bit of the row over changes the sign
            sent[part] = index ^ np.where(wrong, lowest, np.uint64(0))
        return Reports(self.describe(), {"index": sent})
