"""The baseline of two-party statistics: every pair answers, each user n - 1 times (perso:LDP-12).

every pair reveals h + Lap(R / epsilon_0),    epsilon_0 = split_budget(epsilon, delta, n - 1)
noise of the mean 2 (R / epsilon_0)^2 * 2 / (n (n - 1)),    O(n^2) messages, delta > 0
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import final

import numpy as np

from bruit.arrays import Array
from bruit.errors import ConfigError
from bruit.mechanisms.laplace import Laplace
from bruit.privacy.events import BoundedEvent, Event
from bruit.privacy.formulas.heterogeneous import split_budget
from bruit.randomness import Dice
from bruit.statistics.local.estimates import Estimate, laplace_quantile
from bruit.tasks.pairs.kernels import Kernel, as_points
from bruit.tasks.pairs.u_statistics import u_statistic

_DRAWN = 2**20  # answers drawn at once


@final
@dataclass(frozen=True, eq=False)
class AllPairs:
    """All n (n - 1) / 2 pairs, in the trusted-pair simulation."""

    kernel: Kernel
    epsilon: float
    delta: float = 1e-6

    def __post_init__(self) -> None:
        if not (self.epsilon > 0 and 0 < self.delta < 1 and self.kernel.span > 0):
            raise ConfigError(
                "all pairs need epsilon > 0, 0 < delta < 1 and a bounded kernel, found"
                f" {self.epsilon} and {self.delta}"
            )

    def event(self) -> Event:
        """What all n - 1 pairs of one user cost together."""
        return BoundedEvent(self.epsilon, self.delta)

    def pair_epsilon(self, n: int) -> float:
        """epsilon_0 of one pair."""
        return split_budget(self.epsilon, self.delta, n - 1)

    def noise_variance(self, n: int) -> float:
        """What the noise adds to the squared error of the statistic of these users."""
        return 2 * (self.kernel.span / self.pair_epsilon(n)) ** 2 * 2 / (n * (n - 1))

    def estimate(
        self, points: Array, dice: Dice, confidence: float = 0.95, run: int = 0
    ) -> Estimate:
        """The mean of all noisy pairs: a sum of exact kernels and of n (n - 1) / 2 Laplaces, all of
        them drawn.

        A simulation: no pair is sent, and values are not rounded to the grid of the noise.
        """
        rows = as_points(points, self.kernel)
        n = len(rows)
        count = n * (n - 1) // 2
        noise, total = Laplace(clip=self.kernel.span / 2).calibrate(self.pair_epsilon(n)), 0.0
        for start in range(0, count, _DRAWN):
            total += float(
                noise.noise(dice, np.arange(start, min(start + _DRAWN, count)), run, 0, 1).sum()
            )
        value = u_statistic(rows, self.kernel) + total / count
        error = math.sqrt(self.noise_variance(n))
        half = noise.scale * laplace_quantile(count, confidence) / count
        return Estimate(
            value=value,
            error=error,
            low=value - half,
            high=value + half,
            confidence=confidence,
            reports=count,
        )
