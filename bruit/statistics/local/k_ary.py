"""K-ary randomized response: the truth, or with probability beta any value at all (perso:LDP-2,
LDP-3).

    P(x -> x) = e^epsilon / (e^epsilon + K - 1),    P(x -> y) = 1 / (e^epsilon + K - 1)

A report is one value. Best when K < 3 e^epsilon + 2 or so; see `compare`. Shown: the report, to
everybody.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np

from bruit.arrays import Bools, Ints
from bruit.randomness import Dice
from bruit.statistics.local.coins import WORDS, check_epsilon, chunks, uniform_threshold
from bruit.statistics.local.protocol import FrequencyProtocol, check_domain, in_range
from bruit.statistics.local.reports import Reports


@final
@dataclass(frozen=True)
class KAry(FrequencyProtocol):
    """One of k values, true with the chance that epsilon allows."""

    k: int
    epsilon: float
    kind: ClassVar[str] = "k-ary"

    def __post_init__(self) -> None:
        check_domain(self.k)
        check_epsilon(self.epsilon)

    def describe(self) -> dict[str, Any]:
        return {"kind": self.kind, "k": self.k, "epsilon": self.epsilon}

    def chances(self) -> tuple[float, float]:
        uniform = uniform_threshold(self.k, self.epsilon)
        other = uniform / (WORDS * self.k)
        return (WORDS - uniform) / WORDS + other, other

    def bits(self) -> float:
        return math.ceil(math.log2(self.k))

    def valid(self, reports: Reports) -> Bools:
        return in_range(reports.column("value"), self.k)

    def supports(self, reports: Reports, rows: Bools) -> Ints:
        column = reports.column("value")
        chosen = column if rows.all() else column[rows]
        return np.bincount(chosen.astype(np.int64), minlength=self.k)

    def _randomize(self, values: Ints, dice: Dice, users: Ints, step: int) -> Reports:
        sent = np.empty(len(values), dtype=np.min_scalar_type(self.k - 1))
        threshold = np.uint64(uniform_threshold(self.k, self.epsilon))
        for part in chunks(users):
            words = dice.words("local-dp k-ary", users[part], step, 0, 2)
            anything = (words[:, 1] % np.uint64(self.k)).astype(np.int64)
            sent[part] = np.where(words[:, 0] < threshold, anything, values[part])
        return Reports(self.describe(), {"value": sent})
