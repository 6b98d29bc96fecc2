"""Profile: what a guarantee says, as delta for every epsilon; the common currency of all theorems.

    delta(epsilon) = sup over neighboring data of the hockey-stick divergence at exp(epsilon)          (gossip:DP-1)

Five kinds: an exact Gaussian pair, a mixture of Gaussian pairs whose index is public, Renyi
divergences, one (epsilon, delta) statement, and releases known by their events. All are upper
bounds of the truth, the first two are equalities when the theorem behind them is. Wrapped around
them: a chance of failure, and what finite precision adds. `bruit.privacy.composition` combines
them.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from bruit.arrays import Array
from bruit.errors import PrivacyError
from bruit.privacy.events import Event
from bruit.privacy.toolbox.gaussian import delta_of, deltas, epsilon_of, rdp_to_epsilon
from bruit.privacy.toolbox.pld import compose_delta, compose_epsilon, renyi_of
from bruit.privacy.toolbox.rounding import rounded_delta, rounded_epsilon

ORDERS = tuple(1.0 + 10.0**x for x in np.linspace(-2.0, 4.0, 241).tolist())
"""Renyi orders tried when a curve does not name its own."""


USUAL_DELTA = 1e-6  # at which epsilons are told where nobody says


def check_delta(delta: float) -> None:
    """Refuse what is no probability strictly between 0 and 1."""
    if not 0 < delta < 1:
        raise PrivacyError(
            f"delta must lie strictly between 0 and 1, found {delta}; 1e-6 is the usual choice"
        )


def asks_pure(delta: float) -> bool:
    """Whether a question is about pure epsilon (delta = 0); refuse what is no probability below
    1."""
    if not 0 <= delta < 1:
        raise PrivacyError(
            f"delta must lie between 0 and 1, found {delta}; 1e-6 is the usual choice, and 0 asks"
            " for a pure epsilon"
        )
    return delta == 0


class Profile(ABC):
    """delta as a function of epsilon, and back."""

    @abstractmethod
    def delta(self, epsilon: float) -> float:
        """The least delta this profile proves at epsilon."""

    @abstractmethod
    def epsilon(self, delta: float) -> float:
        """The least epsilon this profile proves at delta, rounded up."""

    @abstractmethod
    def pure(self) -> float:
        """The epsilon at delta = 0: infinite unless the privacy loss is bounded."""

    @abstractmethod
    def divergence(self, order: float) -> float:
        """Renyi divergence of that order; infinite when nothing is known about it."""

    def scaled(self, factor: float) -> Profile | None:
        """The profile with all noise multiplied by the factor, if that is known."""
        return None


@dataclass(frozen=True)
class GaussianProfile(Profile):
    """Exactly N(0, 1) against N(mu, 1): mu-GDP (walk:F-1). mu = 0 says that nothing is learned.

    >>> round(GaussianProfile(0.2).epsilon(1e-6), 9), round(GaussianProfile(1.0).delta(1.0), 10)
    (0.834117549, 0.1269367375)
    """

    mu: float

    def __post_init__(self) -> None:
        if math.isnan(self.mu) or self.mu < 0:
            raise PrivacyError(f"mu = sensitivity / sigma must be a number >= 0, found {self.mu}")

    def delta(self, epsilon: float) -> float:
        return delta_of(epsilon, self.mu)

    def epsilon(self, delta: float) -> float:
        if asks_pure(delta):
            return self.pure()
        return epsilon_of(self.mu, delta)

    def pure(self) -> float:
        return math.inf if self.mu else 0.0

    def divergence(self, order: float) -> float:
        return order * self.mu**2 / 2

    def scaled(self, factor: float) -> Profile:
        return GaussianProfile(self.mu / factor)


@dataclass(frozen=True, eq=False)
class MixtureProfile(Profile):
    """Gaussian pairs of squared mu `energies`, the pair drawn by a public, data-independent law
    (walk:F-1, F-3).

        delta(epsilon) = sum_i weights_i delta_GDP(sqrt(energies_i); epsilon)

    An equality when the index is revealed, an upper bound when it is hidden. Weights that sum to
    less than one leave the rest to "nothing was seen".

    >>> half = MixtureProfile(np.array([1.0]), np.array([0.5]))  # seen with probability one half
    >>> round(half.delta(1.0) / GaussianProfile(1.0).delta(1.0), 12)
    0.5
    """

    energies: Array  # (k,)
    weights: Array  # (k,)

    def __post_init__(self) -> None:
        sound = (
            bool(np.all(self.energies >= 0) & np.all(self.weights >= 0))
            and self.weights.sum() <= 1 + 1e-9
        )
        if self.energies.shape != self.weights.shape or not sound:
            raise PrivacyError(
                "a mixture needs energies >= 0 with as many weights >= 0 of sum at most 1"
            )

    def delta(self, epsilon: float) -> float:
        return min(1.0, float(self.weights @ deltas(epsilon, np.sqrt(self.energies))))

    def epsilon(self, delta: float) -> float:
        if asks_pure(delta):
            return self.pure()
        return least_epsilon(self.delta, delta)

    def pure(self) -> float:
        return math.inf if bool(np.any((self.energies > 0) & (self.weights > 0))) else 0.0

    def divergence(self, order: float) -> float:
        seen = self.weights > 0
        exponents = order * (order - 1) / 2 * self.energies[seen]
        if not seen.any() or exponents.max() < 700:
            return math.log1p(float(self.weights[seen] @ np.expm1(exponents))) / (order - 1)
        if exponents.max() == math.inf:
            return math.inf
        largest = float(
            exponents.max()
        )  # 1 and the missing mass are nothing beside it, and are rounded up
        total = float(self.weights[seen] @ np.exp(exponents - largest)) + math.exp(-largest)
        return (largest + math.log(total)) / (order - 1)

    def scaled(self, factor: float) -> Profile:
        return MixtureProfile(self.energies / factor**2, self.weights)


@dataclass(frozen=True, eq=False)
class RenyiProfile(Profile):
    """A bound on the Renyi divergence of every order in `orders`; the best conversion is taken
    (gossip:DP-2).

    >>> round(RenyiProfile(lambda order: 0.5, (8.0,)).epsilon(1e-5), 8)
    1.71410917
    """

    curve: Callable[[float], float]
    orders: tuple[float, ...] = ORDERS

    def delta(self, epsilon: float) -> float:
        found = 1.0
        for order in self.orders:
            value = self.curve(order)
            exponent = (order - 1) * (value - epsilon + math.log1p(-1 / order)) - math.log(order)
            found = min(found, math.exp(exponent) if exponent < 0 else 1.0)
        return found

    def epsilon(self, delta: float) -> float:
        if asks_pure(delta):
            return self.pure()
        return min(rdp_to_epsilon(order, self.curve(order), delta) for order in self.orders)

    def pure(self) -> float:
        """A bound on divergences says nothing at delta = 0, and one of 0 may be a rounded one."""
        return math.inf

    def divergence(self, order: float) -> float:
        """Of any order: the divergence grows with the order, so the next known one is a bound."""
        above = [known for known in self.orders if known >= order]
        return min((self.curve(known) for known in above[:1]), default=math.inf)


@dataclass(frozen=True)
class StatementProfile(Profile):
    """One (epsilon, delta) statement about an unknown mechanism, read as its worst pair
    (gossip:DP-5).

    >>> round(StatementProfile(1.0, 1e-7).epsilon(1e-6), 4), StatementProfile(1.0, 1e-5).epsilon(1e-6)
    (1.0, inf)
    """

    bound: float
    failure: float

    def __post_init__(self) -> None:
        if math.isnan(self.bound) or self.bound < 0 or not 0 <= self.failure <= 1:
            found = f"{self.bound}, {self.failure}"
            raise PrivacyError(f"a statement needs epsilon >= 0 and 0 <= delta <= 1, found {found}")

    def delta(self, epsilon: float) -> float:
        if epsilon >= self.bound:
            return self.failure
        rest = (
            1.0
            if self.bound > 700
            else -math.expm1(epsilon - self.bound) / (1 + math.exp(-self.bound))
        )
        return min(1.0, self.failure + (1 - self.failure) * rest)

    def epsilon(self, delta: float) -> float:
        if asks_pure(delta):
            return self.pure()
        if delta < self.failure:
            return math.inf
        return min(self.bound, least_epsilon(self.delta, delta)) if self.bound < 700 else self.bound

    def pure(self) -> float:
        return math.inf if self.failure else self.bound

    def divergence(self, order: float) -> float:
        if self.failure > 0:
            return math.inf
        return min(self.bound, order * self.bound**2 / 2)


@dataclass(frozen=True)
class EventsProfile(Profile):
    """Releases known by their events, each with its count: what a ledger holds (gossip:DP-5)."""

    events: tuple[tuple[Event, int], ...]

    def delta(self, epsilon: float) -> float:
        return compose_delta(self.events, epsilon)

    def epsilon(self, delta: float) -> float:
        if asks_pure(delta):
            return self.pure()
        return compose_epsilon(self.events, delta)

    def pure(self) -> float:
        return compose_epsilon(self.events, 0.0)

    def divergence(self, order: float) -> float:
        return renyi_of(self.events, order)


@dataclass(frozen=True, eq=False)
class Failing(Profile):
    """A profile that holds except with some probability, which is taken from every delta."""

    inner: Profile
    failure: float

    def epsilon(self, delta: float) -> float:
        if asks_pure(delta):
            return self.pure()
        return self.inner.epsilon(delta - self.failure) if delta > self.failure else math.inf

    def delta(self, epsilon: float) -> float:
        return min(1.0, self.inner.delta(epsilon) + self.failure)

    def pure(self) -> float:
        return math.inf if self.failure else self.inner.pure()

    def divergence(self, order: float) -> float:
        return math.inf if self.failure else self.inner.divergence(order)

    def scaled(self, factor: float) -> Profile | None:
        inner = self.inner.scaled(factor)
        return None if inner is None else Failing(inner, self.failure)


@dataclass(frozen=True, eq=False)
class Rounded(Profile):
    """A profile proven for real numbers, as it holds for what is sent: `rounding` is R of fp:FP-0.

    >>> ideal = GaussianProfile(1.0)
    >>> 0 < Rounded(ideal, 1e-20).epsilon(1e-6) - ideal.epsilon(1e-6) < 1e-8
    True
    """

    inner: Profile
    rounding: float

    def __post_init__(self) -> None:
        if not 0 <= self.rounding < math.inf:
            raise PrivacyError(
                f"the rounding of what is sent is a number >= 0, found {self.rounding}"
            )

    def epsilon(self, delta: float) -> float:
        if asks_pure(delta):
            return self.pure()
        return rounded_epsilon(self.inner.epsilon, self.rounding, delta)

    def delta(self, epsilon: float) -> float:
        return rounded_delta(self.inner.delta, self.rounding, epsilon)

    def pure(self) -> float:
        """The two comparisons of fp:FP-0 use up a part of delta."""
        return math.inf if self.rounding else self.inner.pure()

    def divergence(self, order: float) -> float:
        """Not known: the two comparisons hold for events, and use up a part of delta."""
        return math.inf

    def scaled(self, factor: float) -> Profile | None:
        """The grid grows with the noise, so the rounding stays."""
        inner = self.inner.scaled(factor)
        return None if inner is None else Rounded(inner, self.rounding)


def least_epsilon(delta_at: Callable[[float], float], delta: float) -> float:
    """The least epsilon >= 0 whose delta is at most the given one; the end that was checked is
    returned."""
    if delta_at(0.0) <= delta:
        return 0.0
    low, high = 0.0, 1.0
    while delta_at(high) > delta:
        low, high = high, 2 * high
        if high > 1e9:
            return math.inf
    while high - low > 1e-12 * high:
        middle = (low + high) / 2
        if not low < middle < high:
            break
        low, high = (middle, high) if delta_at(middle) > delta else (low, middle)
    return high
