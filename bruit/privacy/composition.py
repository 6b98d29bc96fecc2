"""Composition: several guarantees about the same person, seen by the same observer, as one (gossip:DP-5, walk:F-1).

    Gaussian pairs              mu**2 adds: exact
    with public mixtures        energies add: the laws are convolved on a grid, rounded up
    with Renyi curves           divergences add at each order
    everything else             privacy loss distributions of dp_accounting, rounded up

Valid when each guarantee holds given everything the observer saw before (adaptive composition). Protocols that pass
hidden states on are not of that kind: see `bruit.privacy.phases`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bruit.arrays import Array
from bruit.errors import PrivacyError
from bruit.privacy.accountants.pld import compose_epsilon, tally
from bruit.privacy.events import BoundedEvent, Event, GaussianEvent
from bruit.privacy.profile import (
    ORDERS,
    EventsProfile,
    GaussianProfile,
    MixtureProfile,
    Profile,
    RenyiProfile,
    StatementProfile,
    check_delta,
)

CELLS, ATOMS, FINE = 2**14, 64, 1e-4


def compose(profiles: Sequence[Profile]) -> Profile:
    """All of them together, as sharp as their kinds allow.

    >>> round(compose([GaussianProfile(0.6), GaussianProfile(0.8)]).mu, 12)
    1.0
    """
    failure = sum(part.failure for part in profiles if isinstance(part, Failing))
    parts = [simple for part in profiles for simple in _flat(part)]
    whole = parts[0] if len(parts) == 1 else _composed(parts)
    return Failing(whole, failure) if failure else whole


def _flat(part: Profile) -> list[Profile]:
    """Without failures and nesting; what says nothing is left out, and plain Gaussian events are a Gaussian pair."""
    if isinstance(part, Failing):
        return _flat(part.inner)
    if isinstance(part, Together):
        return [simple for whole in part.parts() for simple in _flat(whole)]
    if isinstance(part, EventsProfile):
        known = tally(part.events)
        if known.exact:
            return [GaussianProfile(math.inf)]
        if not (known.rho or known.laplace or known.pure or known.failure):
            return _flat(GaussianProfile(math.sqrt(known.square)))
    return [] if isinstance(part, GaussianProfile) and part.mu == 0 else [part]


def _composed(parts: Sequence[Profile]) -> Profile:
    energy = sum(part.mu**2 for part in parts if isinstance(part, GaussianProfile))
    mixtures = [part for part in parts if isinstance(part, MixtureProfile)]
    others = [part for part in parts if not isinstance(part, GaussianProfile | MixtureProfile)]
    if not others or energy == math.inf:
        return _convolved(energy, mixtures) if mixtures and energy < math.inf else GaussianProfile(math.sqrt(energy))
    if any(isinstance(part, RenyiProfile) for part in others):
        return _added(parts)
    return Together(energy, tuple(mixtures), tuple(event for part in others for event in _events(part)))


def composed(profile: Profile, count: int) -> Profile:
    """The same profile, count times."""
    if count < 0:
        raise PrivacyError(f"mechanisms are composed a whole number of times >= 0, found {count}")
    if isinstance(profile, GaussianProfile):
        return GaussianProfile(math.sqrt(count) * profile.mu)
    if isinstance(profile, RenyiProfile):
        return RenyiProfile(lambda order: count * profile.curve(order), profile.orders)
    if isinstance(profile, EventsProfile | StatementProfile):
        return EventsProfile(tuple((event, times * count) for event, times in _events(profile)))
    return compose([profile] * count) if count else GaussianProfile(0.0)


def _events(profile: Profile) -> tuple[tuple[Event, int], ...]:
    if isinstance(profile, EventsProfile):
        return profile.events
    if isinstance(profile, StatementProfile):
        return ((BoundedEvent(profile.bound, profile.failure), 1),)
    raise PrivacyError(f"a {type(profile).__name__} cannot be composed with the others; compose it separately")


def _added(parts: Sequence[Profile]) -> Profile:
    """Renyi divergences add; parts known by an (epsilon, delta) statement give their delta up first."""
    statements = [part for part in parts if part.divergence(2.0) == math.inf and isinstance(part, StatementProfile)]
    rest = [part if part not in statements else StatementProfile(part.bound, 0.0) for part in parts]
    orders = sorted({order for part in parts if isinstance(part, RenyiProfile) for order in part.orders} or set(ORDERS))
    total = RenyiProfile(lambda order: sum(part.divergence(order) for part in rest), tuple(orders))
    failure = sum(part.failure for part in statements)
    return total if failure == 0 else Failing(total, failure)


def _convolved(energy: float, mixtures: Sequence[MixtureProfile]) -> MixtureProfile:
    """The law of the sum of energies, exact when few atoms make it up, else on a grid and rounded up."""
    energies, weights = np.array([energy]), np.ones(1)
    for part in mixtures:
        known = np.append(part.energies, 0.0)
        law = np.append(part.weights, max(0.0, 1.0 - part.weights.sum()))
        energies, weights = (energies[:, None] + known).ravel(), (weights[:, None] * law).ravel()
        if energies.size > CELLS:
            energies, weights = _rounded_up(energies, weights, CELLS // 4)
    return MixtureProfile(energies, np.minimum(weights, 1.0))


def _rounded_up(energies: Array, weights: Array, cells: int) -> tuple[Array, Array]:
    """At most that many atoms (geometric, largest kept exactly), none of them below the original."""
    top = float(energies.max())
    if top == 0:
        return np.zeros(1), np.full(1, weights.sum())
    grid = np.append(np.geomspace(top * 1e-9, top, cells - 1), top)
    place = np.where(energies > 0, np.searchsorted(grid, energies) + 1, 0).clip(max=cells)
    law: Array = np.bincount(place, weights, cells + 1).astype(np.float64)
    return np.append(0.0, grid), law


@dataclass(frozen=True, eq=False)
class Together(Profile):
    """Gaussian pairs, public mixtures and events of a ledger, composed by privacy loss distributions."""

    energy: float
    mixtures: tuple[MixtureProfile, ...]
    events: tuple[tuple[Event, int], ...]

    def parts(self) -> list[Profile]:
        """The profiles it is made of."""
        return [GaussianProfile(math.sqrt(self.energy)), *self.mixtures, EventsProfile(self.events)]

    def _listed(self) -> list[tuple[Event, int]]:
        return [*self.events, (GaussianEvent(1 / math.sqrt(self.energy)), 1)] if self.energy else list(self.events)

    def epsilon(self, delta: float) -> float:
        check_delta(delta)
        if not self.mixtures:
            return compose_epsilon(self._listed(), delta)
        total = tally(self._listed())
        left = delta - total.failure
        if total.exact or left <= 0:
            return math.inf
        if total.rho:
            return _added([*self.mixtures, EventsProfile(tuple(self._listed()))]).epsilon(delta)
        return float(self._distribution(total).get_epsilon_for_delta(left))

    def _distribution(self, total: Any) -> Any:
        from dp_accounting.pld import common
        from dp_accounting.pld import privacy_loss_distribution as pld

        whole = pld.identity(value_discretization_interval=FINE)
        for z, count in sorted(total.laplace.items()):
            whole = whole.compose(pld.from_laplace_mechanism(z, value_discretization_interval=FINE).self_compose(count))
        for epsilon, count in sorted(total.pure.items()):
            one = pld.from_privacy_parameters(common.DifferentialPrivacyParameters(epsilon, 0.0), FINE)
            whole = whole.compose(one.self_compose(count))
        law = _convolved(total.square, self.mixtures)
        energies, weights = _rounded_up(law.energies, law.weights, ATOMS)
        kept = weights > 0
        mixture, share = pld.identity(value_discretization_interval=FINE), 0.0
        for x, weight in zip(energies[kept].tolist(), weights[kept].tolist(), strict=True):
            pair = pld.identity(value_discretization_interval=FINE)
            if x > 0:
                pair = pld.from_gaussian_mechanism(1 / math.sqrt(x), value_discretization_interval=FINE)
            mixture, share = mixture.compute_mixture(pair, share / (share + weight)), share + weight
        return whole.compose(mixture)

    def delta(self, epsilon: float) -> float:
        low, high = -690.0, 0.0
        for _ in range(40):  # of log delta: the upper end always satisfies the inequality
            middle = (low + high) / 2
            low, high = (low, middle) if self.epsilon(math.exp(middle)) <= epsilon else (middle, high)
        return math.exp(high)

    def divergence(self, order: float) -> float:
        return sum(part.divergence(order) for part in self.parts())


@dataclass(frozen=True, eq=False)
class Failing(Profile):
    """A profile that holds except with some probability, which is taken from every delta."""

    inner: Profile
    failure: float

    def epsilon(self, delta: float) -> float:
        check_delta(delta)
        return self.inner.epsilon(delta - self.failure) if delta > self.failure else math.inf

    def delta(self, epsilon: float) -> float:
        return min(1.0, self.inner.delta(epsilon) + self.failure)

    def divergence(self, order: float) -> float:
        return math.inf

    def scaled(self, factor: float) -> Profile | None:
        inner = self.inner.scaled(factor)
        return None if inner is None else Failing(inner, self.failure)

