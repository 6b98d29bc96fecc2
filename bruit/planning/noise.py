"""The least noise multiplier of a plan, for real numbers and for what is sent (fp:FP-0, FP-4).

For pairwise losses of an exact linear-Gaussian view the search is a formula: z >= sqrt(m[u, v]) /
mu(epsilon of the pair) for every pair. R of a plan is the R of the run that it plans: of all
releases and messages, by the formulas of the algorithms (bruit.algorithms.gossip.exchange,
walk_sgd), at the coarsest grid they might choose. That R falls as the noise grows. So the R of any
noise that is not above the answer covers the answer: with gamma and delta' of `allowance(R,
delta)`, the noise for (epsilon - 2 gamma, delta') in real numbers is one for (epsilon, delta) on the
grid.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from bruit.algorithms.door import OnGrid
from bruit.arrays import Array
from bruit.mechanisms import Gaussian
from bruit.planning.question import Question
from bruit.privacy.toolbox.gaussian import mu_of


@dataclass(frozen=True)
class Planned:
    """The grid of a run with this noise multiplier, for rows of `dim` numbers, in units of the
    sensitivity."""

    multiplier: float
    dim: int

    @property
    def _noise(self) -> Gaussian:
        return Gaussian(clip=0.5, sigma=self.multiplier)

    def grid(self, times: float = 1.0, data: float = 1.0, noise: float = 1.0) -> float:
        return self._noise.coarsest(times, data, noise)

    def reach(self, times: float = 1.0, data: float = 1.0, noise: float = 1.0) -> float:
        return self._noise.reach(times, data, noise)

    def drawn(self, on: OnGrid, share: float = 1.0) -> float:
        """R of one row of noise, of this share of the multiplier."""
        return on.rounding(self.dim, share * self.multiplier)

    def released(self, releases: int) -> float:
        """R of the own releases of one peer, all of them seen."""
        return releases * self.drawn(
            OnGrid(self.grid(1.0, float(releases), math.sqrt(releases) + 1.0))
        )


def least_noise(
    question: Question,
    multiplier: Callable[[Question], float],
    rounding: Callable[[Planned], float],
) -> tuple[float, float]:
    """The least noise multiplier for what is sent, and its R; `multiplier` answers the question for
    real numbers."""
    start = multiplier(question)
    if start == 0:  # nobody learns anything, without any noise
        return start, 0.0
    amount = rounding(Planned(start, question.dim))
    return multiplier(question.sent(amount)), amount


def least_multiplier(question: Question, m: Array) -> tuple[float, float]:
    """The least z that keeps the budget (worst pair, mean, or every pair's cap), and the loss that
    decided it."""
    if question.caps is not None:
        return _within_caps(question, m)
    loss = float(np.nanmax(m)) if question.protect == "worst" else mean_of(m)
    return math.sqrt(loss) / question.mu, loss


def mean_of(m: Array) -> float:
    """max over observers of the mean loss over peers: a summary, not a guarantee (gossip:MUF-3)."""
    return float(np.max(np.nansum(m, axis=0)) / len(m))


def _within_caps(question: Question, m: Array) -> tuple[float, float]:
    allowed = question.allowed
    values, place = np.unique(allowed, return_inverse=True)
    mu = np.array([mu_of(float(epsilon), question.delta) for epsilon in values])[
        place.reshape(allowed.shape)
    ]
    needed = np.sqrt(m) / mu
    worst = np.unravel_index(np.nanargmax(needed), needed.shape)
    return float(needed[worst]), float(m[worst])
