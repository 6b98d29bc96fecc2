"""Warner's randomized response: a yes or no, true with probability p (perso:LDP-1).

    P(x -> x) = p = e^epsilon / (e^epsilon + 1),    share of yes = (mean(z) + p - 1) / (2 p - 1)

A report is one bit. Shown: the bit, to everybody.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np

from bruit.arrays import Bools, Ints
from bruit.privacy.formulas.randomized_response import warner
from bruit.randomness import Dice
from bruit.statistics.local.coins import WORDS, check_epsilon, chunks, flip_threshold
from bruit.statistics.local.protocol import FrequencyProtocol, in_range
from bruit.statistics.local.reports import Reports


@final
@dataclass(frozen=True)
class BinaryResponse(FrequencyProtocol):
    """A yes (1) or no (0); the shares are those of no and yes, in this order."""

    epsilon: float
    kind: ClassVar[str] = "randomized-response"

    def __post_init__(self) -> None:
        check_epsilon(self.epsilon)

    @property
    def k(self) -> int:  # type: ignore[override]
        return 2

    @staticmethod
    def of_truth(truth: float) -> BinaryResponse:
        """The protocol whose answers are true with probability p in (1/2, 1)."""
        return BinaryResponse(warner(truth))

    def describe(self) -> dict[str, Any]:
        return {"kind": self.kind, "epsilon": self.epsilon}

    def chances(self) -> tuple[float, float]:
        flips = flip_threshold(self.epsilon)
        return (WORDS - flips) / WORDS, flips / WORDS

    def bits(self) -> float:
        return 1

    def valid(self, reports: Reports) -> Bools:
        return in_range(reports.column("value"), 2)

    def supports(self, reports: Reports, rows: Bools) -> Ints:
        return np.bincount(reports.column("value")[rows].astype(np.int64), minlength=2)

    def _randomize(self, values: Ints, dice: Dice, users: Ints, step: int) -> Reports:
        sent = np.empty(len(values), dtype=np.uint8)
        threshold = np.uint64(flip_threshold(self.epsilon))
        for part in chunks(users):
            flips = dice.words("local-dp response", users[part], step, 0, 1)[:, 0] < threshold
            sent[part] = values[part] ^ flips
        return Reports(self.describe(), {"value": sent})
