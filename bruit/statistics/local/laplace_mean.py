"""The mean of bounded numbers under local DP, with Laplace noise: pure epsilon (perso:LDP-4).

    report = x + Lap((high - low) / epsilon),    variance of the mean 2 (high - low)^2 / (n epsilon^2)

n times the variance of a trusted server that adds noise once. Shown: the report, to everybody.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, final

from bruit.arrays import Array, Ints
from bruit.mechanisms.laplace import Laplace
from bruit.privacy.events import Event
from bruit.randomness import Dice
from bruit.statistics.local.coins import check_epsilon
from bruit.statistics.local.estimates import laplace_quantile
from bruit.statistics.local.protocol import MeanProtocol, check_ends


@final
@dataclass(frozen=True)
class LaplaceMean(MeanProtocol):
    """A number of low..high plus Laplace noise, on the lattice of the mechanism."""

    low: float
    high: float
    epsilon: float
    kind: ClassVar[str] = "laplace"

    def __post_init__(self) -> None:
        check_ends(self.low, self.high)
        check_epsilon(self.epsilon)

    @cached_property
    def mechanism(self) -> Laplace:
        """The noise: clip = half of the range, so that its sensitivity is the whole range."""
        return Laplace(clip=(self.high - self.low) / 2).calibrate(self.epsilon)

    def describe(self) -> dict[str, Any]:
        return {"kind": self.kind, "low": self.low, "high": self.high, "epsilon": self.epsilon}

    def event(self) -> Event:
        return self.mechanism.event()

    def sigma(self) -> float:
        return self.mechanism.sigma

    def bits(self) -> float:
        return 64

    def half_width(self, reports: int, confidence: float) -> float:
        return self.mechanism.scale * laplace_quantile(reports, confidence) / reports

    def _randomize(self, centered: Array, dice: Dice, users: Ints, step: int) -> Array:
        return self.mechanism.release(centered[:, None], dice, users, step, 0)[:, 0]
