"""The mean of bounded numbers under local DP, with Gaussian noise: (epsilon, delta), exactly
calibrated (perso:LDP-4).

    report = x + N(0, sigma^2),    sigma the least for sensitivity high - low,    variance of the mean sigma^2 / n

Shown: the report, to everybody.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, final

from bruit.arrays import Array, Ints
from bruit.mechanisms.gaussian import Gaussian
from bruit.privacy.events import Event
from bruit.privacy.profile import check_delta
from bruit.randomness import Dice
from bruit.statistics.local.coins import check_epsilon
from bruit.statistics.local.estimates import quantile
from bruit.statistics.local.protocol import MeanProtocol, check_ends


@final
@dataclass(frozen=True)
class GaussianMean(MeanProtocol):
    """A number of low..high plus Gaussian noise, on the lattice of the mechanism."""

    low: float
    high: float
    epsilon: float
    delta: float = 1e-6
    kind: ClassVar[str] = "gaussian"

    def __post_init__(self) -> None:
        check_ends(self.low, self.high)
        check_epsilon(self.epsilon)
        check_delta(self.delta)

    @cached_property
    def mechanism(self) -> Gaussian:
        """The noise: clip = half of the range, so that its sensitivity is the whole range."""
        return Gaussian(clip=(self.high - self.low) / 2).calibrate(self.epsilon, self.delta)

    def describe(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "low": self.low,
            "high": self.high,
            "epsilon": self.epsilon,
            "delta": self.delta,
        }

    def event(self) -> Event:
        return self.mechanism.event()

    def sigma(self) -> float:
        return self.mechanism.sigma

    def bits(self) -> float:
        return 64

    def half_width(self, reports: int, confidence: float) -> float:
        return self.sigma() * quantile(confidence) / math.sqrt(reports)

    def _randomize(self, centered: Array, dice: Dice, users: Ints, step: int) -> Array:
        return self.mechanism.release(centered[:, None], dice, users, step, 0)[:, 0]
