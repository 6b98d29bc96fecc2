"""The profile of binomial noise: sums of fair coins added to whole numbers, as proven noise is
(perso:GOPA-10).

One number is accounted exactly. For `width` numbers, each moved by at most `shift` (a bound on
every coordinate, not on a norm), privacy loss distributions of dp_accounting are composed, rounded
up. The loss has no bound, since the noise has one: no Renyi divergence is finite, and the profile
composes with no other kind.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from bruit.privacy.profile import Profile, asks_pure, least_epsilon
from bruit.privacy.toolbox.binomial import binomial_delta, check_binomial, log_law
from bruit.privacy.toolbox.gaussian import epsilon_of

TINY = 1e-18  # the delta at which the Gaussian part of several numbers is taken off
LEAST, CELLS = (
    -60.0,
    1e5,
)  # of several numbers: log-probabilities beyond are rounded up to it; cells of a distribution


@dataclass(frozen=True)
class BinomialProfile(Profile):
    """`width` numbers moved by at most `shift` under sums of `trials` coins each, beside a Gaussian
    pair of shift mu.

    >>> 0 < BinomialProfile(400, 4).epsilon(1e-6) < BinomialProfile(200, 4).epsilon(1e-6)
    True
    """

    trials: int
    shift: int
    width: int = 1
    mu: float = 0.0

    def __post_init__(self) -> None:
        check_binomial(self.trials, self.shift)

    def delta(self, epsilon: float) -> float:
        if self.width == 1:
            return binomial_delta(epsilon, self.trials, self.shift, self.mu)
        if self.shift >= self.trials:
            return 1.0
        apart = epsilon_of(self.mu, TINY) if self.mu else 0.0
        if epsilon < apart:
            return 1.0
        bound = float(
            _distribution(self.trials, self.shift, self.width).get_delta_for_epsilon(
                epsilon - apart
            )
        )
        return min(1.0, bound + (TINY if self.mu else 0.0))

    def epsilon(self, delta: float) -> float:
        if asks_pure(delta):
            return self.pure()
        return least_epsilon(self.delta, delta)

    def pure(self) -> float:
        """Coins have a largest sum, which the moved number cannot have given: no epsilon is
        pure."""
        return math.inf if self.shift or self.mu else 0.0

    def divergence(self, order: float) -> float:
        return math.inf if self.shift else order * self.mu**2 / 2


@lru_cache(maxsize=8)
def _distribution(trials: int, shift: int, width: int) -> Any:
    """The privacy loss distribution of `width` independent numbers, rounded up."""
    from dp_accounting.pld import privacy_loss_distribution as pld

    outcomes, logs = log_law(trials)
    upper = dict(zip(outcomes.tolist(), logs.tolist(), strict=True))
    lower = {outcome + shift: log for outcome, log in upper.items()}
    heard = logs > LEAST  # beyond, the loss counts as infinite
    spread = 2 * float(
        np.abs(logs[shift:] - logs[:-shift])[heard[shift:] & heard[:-shift]].max(initial=0.0)
    )
    one = pld.from_two_probability_mass_functions(
        lower,
        upper,
        value_discretization_interval=max(1e-4, spread / CELLS),
        log_mass_truncation_bound=LEAST,
    )
    return one.self_compose(width)
