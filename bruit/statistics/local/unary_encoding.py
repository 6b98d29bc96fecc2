"""Optimized unary encoding: one bit per value; one's own is a fair coin, the others are rarely 1
(beyond the sources).

    P(bit x = 1) = 1/2,    P(bit v = 1) = 1 / (e^epsilon + 1) for v != x

Wang, Blocki, Li, Jha 2017 (USENIX Security): the same error as local hashing, at k bits a report.
Shown: the bits, to everybody.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np

from bruit.arrays import Bools, Ints
from bruit.errors import ConfigError
from bruit.randomness import Dice
from bruit.statistics.local.coins import WORDS, check_epsilon, flip_threshold
from bruit.statistics.local.protocol import FrequencyProtocol, check_domain
from bruit.statistics.local.reports import Reports

WIDEST = 2**16  # bits of one report
_DRAWN = 2**21  # coins drawn at once


@final
@dataclass(frozen=True)
class UnaryEncoding(FrequencyProtocol):
    """k coins a report."""

    k: int
    epsilon: float
    kind: ClassVar[str] = "unary"

    def __post_init__(self) -> None:
        check_domain(self.k)
        check_epsilon(self.epsilon)
        if self.k > WIDEST:
            raise ConfigError(
                f"unary encoding sends one bit per value; {self.k} are more than {WIDEST}:"
                " use hadamard or local-hashing"
            )

    def describe(self) -> dict[str, Any]:
        return {"kind": self.kind, "k": self.k, "epsilon": self.epsilon}

    def chances(self) -> tuple[float, float]:
        return 0.5, flip_threshold(self.epsilon) / WORDS

    def bits(self) -> float:
        return self.k

    def valid(self, reports: Reports) -> Bools:
        packed = reports.column("bits")
        if packed.ndim != 2 or packed.dtype != np.uint8 or packed.shape[1] != -(-self.k // 8):
            return np.zeros(len(packed), dtype=np.bool_)
        padding = -self.k % 8
        return np.asarray(packed[:, -1] & np.uint8((1 << padding) - 1) == 0)

    def supports(self, reports: Reports, rows: Bools) -> Ints:
        packed, counts = reports.column("bits")[rows], np.zeros(self.k, dtype=np.int64)
        for start in range(0, len(packed), self._rows()):
            bits = np.unpackbits(packed[start : start + self._rows()], axis=1, count=self.k)
            counts += bits.sum(axis=0, dtype=np.int64)
        return counts

    def _randomize(self, values: Ints, dice: Dice, users: Ints, step: int) -> Reports:
        sent = np.empty((len(values), -(-self.k // 8)), dtype=np.uint8)
        rare, fair = np.uint64(flip_threshold(self.epsilon)), np.uint64(WORDS // 2)
        for start in range(0, len(values), self._rows()):
            part = slice(start, start + self._rows())
            words = dice.words("local-dp unary", users[part], step, 0, self.k)
            coins = words < rare
            own = (np.arange(len(coins)), values[part])
            coins[own] = words[own] < fair
            sent[part] = np.packbits(coins, axis=1)
        return Reports(self.describe(), {"bits": sent})

    def _rows(self) -> int:
        return max(1, _DRAWN // self.k)
