"""Composition: several guarantees about the same person, seen by the same observer, as one
(gossip:DP-5, walk:F-1).

    Gaussian pairs              mu**2 adds: exact
    with public mixtures        energies add: the laws are convolved on a grid, rounded up
    with Renyi curves           divergences add at each order
    with events                 privacy loss distributions of dp_accounting, rounded up
    everything else             epsilons and deltas add, the delta shared out equally
    finite precision            R adds, and is converted once, at the end (fp:FP-0)

Valid when each guarantee holds given everything the observer saw before (adaptive composition).
Protocols that pass hidden states on are not of that kind: see `bruit.privacy.account`.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bruit.arrays import Array
from bruit.errors import PrivacyError
from bruit.privacy.events import BoundedEvent, Event, GaussianEvent, SampledGaussianEvent
from bruit.privacy.profile import (
    ORDERS,
    EventsProfile,
    Failing,
    GaussianProfile,
    MixtureProfile,
    Profile,
    RenyiProfile,
    Rounded,
    StatementProfile,
    asks_pure,
)
from bruit.privacy.toolbox.pld import FARTHEST, compose_delta, compose_epsilon, tally

MOST, ATOMS = 2**12, 256
"""Atoms of a law of energies kept exactly, and in a privacy loss distribution; beyond, they are
rounded up."""


def compose(profiles: Sequence[Profile]) -> Profile:
    """All of them together, as sharp as their kinds allow.

    >>> round(compose([GaussianProfile(0.6), GaussianProfile(0.8)]).mu, 12)
    1.0
    """
    if len(profiles) == 1:
        return profiles[0]
    parts, failure, rounding = _flat(profiles)
    whole = parts[0] if len(parts) == 1 else _composed(parts)
    whole = Failing(whole, min(1.0, failure)) if failure else whole
    return Rounded(whole, rounding) if rounding else whole


def composed(profile: Profile, count: int) -> Profile:
    """The same profile, count times."""
    if count < 0:
        raise PrivacyError(f"mechanisms are composed a whole number of times >= 0, found {count}")
    if count == 0:
        return GaussianProfile(0.0)
    if isinstance(profile, RenyiProfile):
        return RenyiProfile(lambda order: count * profile.curve(order), profile.orders)
    if isinstance(profile, EventsProfile):
        return EventsProfile(tuple((event, times * count) for event, times in profile.events))
    return compose([profile] * count)


def _flat(profiles: Sequence[Profile]) -> tuple[list[Profile], float, float]:
    """Without nesting, and the failures and roundings of all of them; what says nothing is left
    out."""
    parts: list[Profile] = []
    failure, rounding = 0.0, 0.0
    for part in profiles:
        if isinstance(part, Failing | Rounded | Together):
            inner, more, amount = _flat(
                part.parts() if isinstance(part, Together) else [part.inner]
            )
            parts, failure, rounding = parts + inner, failure + more, rounding + amount
            failure += part.failure if isinstance(part, Failing) else 0.0
            rounding += part.rounding if isinstance(part, Rounded) else 0.0
        elif isinstance(part, EventsProfile | StatementProfile):
            known, more, amount = _pure(part)
            parts, failure, rounding = parts + known, failure + more, rounding + amount
        elif isinstance(part, MixtureProfile) and np.any(np.isinf(part.energies)):
            finite = np.isfinite(part.energies)
            parts.append(MixtureProfile(part.energies[finite], part.weights[finite]))
            failure += float(part.weights[~finite].sum())
        elif not (isinstance(part, GaussianProfile) and part.mu == 0):
            parts.append(part)
    return parts, failure, rounding


def _pure(part: EventsProfile | StatementProfile) -> tuple[list[Profile], float, float]:
    """Events and statements as a Gaussian pair, what is left of them without their deltas, these,
    and the rounding."""
    listed = (
        part.events
        if isinstance(part, EventsProfile)
        else ((BoundedEvent(part.bound, part.failure), 1),)
    )
    known = tally(listed)
    if known.exact:
        return [GaussianProfile(math.inf)], 0.0, 0.0
    found: list[Profile] = [GaussianProfile(math.sqrt(known.square))] if known.square else []
    others = [
        (_in_real_numbers(event), count * times)
        for whole, times in listed
        for event, count in whole.parts()
        if not isinstance(event, GaussianEvent | BoundedEvent)
    ]
    others += [(BoundedEvent(epsilon), count) for epsilon, count in sorted(known.pure.items())]
    if known.rho or not known.only_gaussian():
        found.append(EventsProfile(tuple(others)))
    return found, known.failure, known.rounding


def _in_real_numbers(event: Event) -> Event:
    """The same release without its rounding, which is converted once, at the end."""
    return replace(event, rounding=math.inf) if isinstance(event, SampledGaussianEvent) else event


def _composed(parts: Sequence[Profile]) -> Profile:
    energy = sum(part.mu**2 for part in parts if isinstance(part, GaussianProfile))
    mixtures = [part for part in parts if isinstance(part, MixtureProfile)]
    others = [part for part in parts if not isinstance(part, GaussianProfile | MixtureProfile)]
    if energy == math.inf or not (others or mixtures):
        return GaussianProfile(math.sqrt(energy))
    if not others:
        return _convolved(energy, mixtures)
    if any(isinstance(part, RenyiProfile) for part in others):
        return _added(parts)
    alone = [part for part in others if not isinstance(part, EventsProfile)]
    if alone:
        rest = [part for part in parts if part not in alone]
        return Separately((*alone, *([compose(rest)] if rest else [])))
    return Together(
        energy, tuple(mixtures), tuple(event for part in others for event in _events(part))
    )


def _events(profile: Profile) -> tuple[tuple[Event, int], ...]:
    if isinstance(profile, EventsProfile):
        return profile.events
    raise PrivacyError(f"a {type(profile).__name__} has no events to compose")


@dataclass(frozen=True)
class Separately(Profile):
    """Guarantees of kinds that have nothing in common: basic composition (gossip:DP-5)."""

    each: tuple[Profile, ...]

    def epsilon(self, delta: float) -> float:
        if asks_pure(delta):
            return self.pure()
        return math.fsum(part.epsilon(delta / len(self.each)) for part in self.each)

    def delta(self, epsilon: float) -> float:
        """The least delta at which epsilons add up to this, found by halving its logarithm and
        rounded up."""
        low, high = math.log(1e-300), 0.0
        while high - low > 1e-6:
            middle = (low + high) / 2
            low, high = (
                (low, middle) if self.epsilon(math.exp(middle)) <= epsilon else (middle, high)
            )
        return math.exp(high)

    def pure(self) -> float:
        return math.fsum(part.pure() for part in self.each)

    def divergence(self, order: float) -> float:
        return math.fsum(part.divergence(order) for part in self.each)


def _added(parts: Sequence[Profile]) -> Profile:
    """Renyi divergences add at each order of the known curves."""
    orders = sorted(
        {order for part in parts if isinstance(part, RenyiProfile) for order in part.orders}
        or set(ORDERS)
    )
    return RenyiProfile(lambda order: sum(part.divergence(order) for part in parts), tuple(orders))


def _convolved(energy: float, mixtures: Sequence[MixtureProfile]) -> Profile:
    """The law of the sum of energies: exact while few atoms make it up, else on a fine grid and
    rounded up."""
    from bruit.privacy.toolbox.energy_sums import energy_sum

    failure, energies, weights = 0.0, np.array([energy]), np.ones(1)
    known = {id(part): part for part in mixtures}
    for name, count in Counter(id(part) for part in mixtures).items():
        part = known[name]
        if (part.energies.size + 1) ** count > MOST:
            law = energy_sum(part.energies, part.weights, count)
            failure += law.failure
            energies, weights = _sums(energies, weights, law.energies, law.weights)
            continue
        for _ in range(count):
            energies, weights = _sums(energies, weights, part.energies, part.weights)
    found = MixtureProfile(energies, np.minimum(weights, 1.0) / max(1.0, weights.sum()))
    return Failing(found, failure) if failure else found


def _sums(first: Array, chances: Array, second: Array, law: Array) -> tuple[Array, Array]:
    """All sums of two independent energies, equal ones merged, at most MOST of them."""
    missing = max(0.0, 1.0 - float(law.sum()))
    if missing > 0:
        second, law = np.append(second, 0.0), np.append(law, missing)
    if first.size * second.size > MOST**2:
        first, chances = _rounded_up(first, chances, MOST)
        second, law = _rounded_up(second, law, MOST)
    energies, place = np.unique(first[:, None] + second, return_inverse=True)
    weights = np.bincount(place.ravel(), (chances[:, None] * law).ravel()).astype(np.float64)
    return (
        _rounded_up(energies, weights, 4 * MOST)
        if energies.size > 4 * MOST
        else (energies, weights)
    )


def _rounded_up(energies: Array, weights: Array, cells: int) -> tuple[Array, Array]:
    """At most that many atoms, none of them below the original: zero, and a geometric grid up to
    the largest."""
    if energies.size <= cells:
        return energies, weights
    positive = energies[energies > 0]
    if not positive.size:
        return np.zeros(1), np.full(1, weights.sum())
    grid = np.append(0.0, np.geomspace(positive.min(), positive.max(), cells - 1))
    grid[-1] = positive.max()
    law: Array = np.bincount(np.searchsorted(grid, energies), weights, cells).astype(np.float64)
    return grid, law


@dataclass(frozen=True, eq=False)
class Together(Profile):
    """Gaussian pairs, public mixtures and events of a ledger, composed by privacy loss
    distributions."""

    energy: float
    mixtures: tuple[MixtureProfile, ...]
    events: tuple[tuple[Event, int], ...]

    def parts(self) -> list[Profile]:
        """The profiles it is made of."""
        return [GaussianProfile(math.sqrt(self.energy)), *self.mixtures, EventsProfile(self.events)]

    def epsilon(self, delta: float) -> float:
        if asks_pure(delta):
            return self.pure()
        if not self.mixtures:
            return compose_epsilon(self._listed(), delta)
        slow = self._slow()
        if slow is not None:
            return slow.epsilon(delta)
        distribution, failure = self._distribution()
        failure += tally(self.events).slack()
        return (
            float(distribution.get_epsilon_for_delta(delta - failure))
            if delta > failure
            else math.inf
        )

    def delta(self, epsilon: float) -> float:
        if not self.mixtures:
            return compose_delta(self._listed(), epsilon)
        slow = self._slow()
        if slow is not None:
            return slow.delta(epsilon)
        distribution, failure = self._distribution()
        failure += tally(self.events).slack()
        return min(1.0, float(distribution.get_delta_for_epsilon(epsilon)) + failure)

    def pure(self) -> float:
        return math.fsum(part.pure() for part in self.parts())

    def divergence(self, order: float) -> float:
        return sum(part.divergence(order) for part in self.parts())

    def _listed(self) -> list[tuple[Event, int]]:
        return (
            [*self.events, (GaussianEvent(1 / math.sqrt(self.energy)), 1)]
            if self.energy
            else list(self.events)
        )

    def _slow(self) -> Profile | None:
        """Renyi divergences instead, where discrete noise has no distribution here or the losses
        reach too far."""
        top = self.energy + sum(float(part.energies.max(initial=0.0)) for part in self.mixtures)
        discrete = tally(self.events).rho > 0
        return (
            _added(self.parts()) if discrete or top / 2 + 40 * math.sqrt(top) > FARTHEST else None
        )

    def _distribution(self) -> tuple[Any, float]:
        """Of everything, and the chance that it does not hold."""
        from dp_accounting.pld import privacy_loss_distribution as pld

        whole = _convolved(self.energy, self.mixtures)
        failure = whole.failure if isinstance(whole, Failing) else 0.0
        inner = whole.inner if isinstance(whole, Failing) else whole
        if not isinstance(inner, MixtureProfile):
            raise PrivacyError("a sum of mixtures is a mixture; this is a bug of the composition")
        energies, weights = _rounded_up(inner.energies, inner.weights, ATOMS)
        top, rest = float(energies.max()), tally(self.events)
        reach = top / 2 + 40 * math.sqrt(top)
        cell = rest.cell(reach)
        mixture, share = pld.identity(value_discretization_interval=cell), 0.0
        for x, weight in zip(energies.tolist(), weights.tolist(), strict=True):
            if weight == 0:
                continue
            pair = pld.identity(value_discretization_interval=cell)
            if x > 0:
                pair = pld.from_gaussian_mechanism(
                    1 / math.sqrt(x), value_discretization_interval=cell
                )
            mixture, share = mixture.compute_mixture(pair, share / (share + weight)), share + weight
        if share < 1:
            mixture = mixture.compute_mixture(
                pld.identity(value_discretization_interval=cell), share
            )
        return rest.distribution(reach).compose(mixture), failure
