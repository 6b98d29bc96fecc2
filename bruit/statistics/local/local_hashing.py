"""Optimized local hashing: hash the value into g cells, answer K-ary on the cells (beyond the
sources).

    g = round(e^epsilon) + 1,    cell(v) = ((a v + b) mod P) mod g,    P = 2^31 - 1,    a, b uniform below P and public

Cells of two values are independent over the choice of (a, b), so with c = sum of squared cell
probabilities a report supports the true value with chance p = truth and any other with q = other +
(truth - other) c. Wang, Blocki, Li, Jha 2017 (USENIX Security). Shown: a, b and the answer, to
everybody. The aggregator works n k steps.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np

from bruit.arrays import Bools, Ints, Words
from bruit.errors import ConfigError
from bruit.randomness import Dice
from bruit.statistics.local.coins import WORDS, check_epsilon, chunks, uniform_threshold
from bruit.statistics.local.protocol import FrequencyProtocol, check_domain, in_range
from bruit.statistics.local.reports import Reports

MERSENNE = 2**31 - 1
MOST_CELLS = 2**16


@final
@dataclass(frozen=True)
class LocalHashing(FrequencyProtocol):
    """A public hash of one's own and a K-ary answer on its cells; prime: the field of the hash."""

    k: int
    epsilon: float
    prime: int = MERSENNE
    kind: ClassVar[str] = "local-hashing"

    def __post_init__(self) -> None:
        check_domain(self.k)
        check_epsilon(self.epsilon)
        if not self.k <= self.prime <= MERSENNE or not _is_prime(self.prime):
            raise ConfigError(
                f"the hash needs a prime between the number of values and 2**31 - 1, found "
                f"{self.prime}"
            )

    @property
    def cells(self) -> int:
        """g: the number of cells with the least error."""
        return min(MOST_CELLS, self.prime, round(math.exp(min(self.epsilon, 20.0))) + 1)

    def describe(self) -> dict[str, Any]:
        return {"kind": self.kind, "k": self.k, "epsilon": self.epsilon, "prime": self.prime}

    def chances(self) -> tuple[float, float]:
        uniform = uniform_threshold(self.cells, self.epsilon)
        other = uniform / (WORDS * self.cells)
        kept = (WORDS - uniform) / WORDS
        fewer, larger = divmod(self.prime, self.cells)
        same = (larger * (fewer + 1) ** 2 + (self.cells - larger) * fewer**2) / self.prime**2
        return kept + other, other + kept * same

    def bits(self) -> float:
        return 2 * math.ceil(math.log2(self.prime)) + math.ceil(math.log2(self.cells))

    def valid(self, reports: Reports) -> Bools:
        a, b, cell = (reports.column(name) for name in ("a", "b", "cell"))
        return in_range(a, self.prime) & in_range(b, self.prime) & in_range(cell, self.cells)

    def supports(self, reports: Reports, rows: Bools) -> Ints:
        a, b, cell = (reports.column(name)[rows].astype(np.uint64) for name in ("a", "b", "cell"))
        counts = np.zeros(self.k, dtype=np.int64)
        for part in chunks(a.astype(np.int64)):
            for v in range(self.k):
                counts[v] += np.count_nonzero(
                    self._cell(a[part], b[part], np.uint64(v)) == cell[part]
                )
        return counts

    def _cell(self, a: Words, b: Words, value: Words | np.uint64) -> Words:
        return (a * value + b) % np.uint64(self.prime) % np.uint64(self.cells)

    def _randomize(self, values: Ints, dice: Dice, users: Ints, step: int) -> Reports:
        a, b, cell = (np.empty(len(values), dtype=np.uint32) for _ in range(3))
        threshold = np.uint64(uniform_threshold(self.cells, self.epsilon))
        for part in chunks(users):
            words = dice.words("local-dp hashing", users[part], step, 0, 4)
            a_part, b_part = (
                words[:, 2] % np.uint64(self.prime),
                words[:, 3] % np.uint64(self.prime),
            )
            own = self._cell(a_part, b_part, values[part].astype(np.uint64))
            a[part], b[part] = a_part, b_part
            cell[part] = np.where(words[:, 0] < threshold, words[:, 1] % np.uint64(self.cells), own)
        return Reports(self.describe(), {"a": a, "b": b, "cell": cell})


def _is_prime(number: int) -> bool:
    return number == MERSENNE or all(number % d for d in range(2, math.isqrt(number) + 1))
