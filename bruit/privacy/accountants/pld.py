"""Epsilon of a list of events: exact where a closed form exists, a proven upper bound elsewhere.

    Gaussian only              mu**2 = sum of count / noise_multiplier**2, then gossip:DP-1: exact
    with Laplace               privacy loss distributions of dp_accounting, rounded pessimistically;
                               Laplace alone never exceeds basic composition (gossip:DP-5)
    with discrete Gaussian     Renyi divergences add: alpha * rho, alpha * mu**2 / 2, and that of Laplace; gossip:DP-2
    with (epsilon, delta)      a mechanism known by one statement is the pure one at epsilon, except with probability
                               delta: the deltas are taken from the total, the rest counts as epsilon-DP
    finite precision           the rounding R of Gaussian releases adds up and is converted at the end (fp:FP-0)

A Laplace release of a vector is charged as one number moved by the whole L1 sensitivity, which is the worst case:
moving two coordinates by a >= b tells less than moving one by a + b. In units of the scale, a shift by a has
1 - delta_a(x) = g_a(x) = min(1, exp((x - a) / 2)) for x >= -a, and the shift by b has loss l with mass 1/2 at b,
exp(-b) / 2 at -b, and density exp((l - b) / 2) / 4 between. For 0 <= x <= a + b, E g_a(x - l) is at least
exp((x - a - b) / 2) / 2 from the mass at b, plus as much again from the part of l below x - a (or, when there is none,
from the density): together g_{a+b}(x). Negative x follow by symmetry, more coordinates by induction.
"""

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from bruit.errors import PrivacyError
from bruit.privacy.accountants.gaussian import delta_of, epsilon_of, rdp_to_epsilon, zcdp_to_epsilon
from bruit.privacy.accountants.rounding import rounded_delta, rounded_epsilon
from bruit.privacy.events import (
    BoundedEvent,
    DiscreteGaussianEvent,
    Event,
    Exact,
    GaussianEvent,
    LaplaceEvent,
    Mask,
)

CELLS, FARTHEST = 2e6, 1e5
"""Cells of a privacy loss distribution, beyond which they are made coarser (still rounded up); its largest spread."""

ORDERS = tuple(1.0 + x for x in np.geomspace(1e-3, 1e6, 1000).tolist())


@dataclass
class Tally:
    """Events added up by kind: mu**2 of Gaussian, zCDP of discrete Gaussian noise, counts by scale and by epsilon."""

    square: float = 0.0
    rho: float = 0.0
    laplace: Counter[float] = field(default_factory=Counter)
    pure: Counter[float] = field(default_factory=Counter)
    failure: float = 0.0
    exact: bool = False
    rounding: float = 0.0

    def basic(self) -> float:
        """What the pure parts cost by adding up."""
        return sum(count / z for z, count in self.laplace.items()) + sum(e * count for e, count in self.pure.items())

    def renyi(self, order: float) -> float:
        """Renyi divergences add: those of Gaussian noise are linear in the order."""
        linear = (self.rho + self.square / 2) * order
        laplace = sum(count * _laplace_renyi(order, 1 / z) for z, count in self.laplace.items())
        return linear + laplace + sum(count * _pure_renyi(order, e) for e, count in self.pure.items())

    def spread(self) -> float:
        """How far the privacy loss reaches, but for a negligible part."""
        return self.basic() + self.square / 2 + math.sqrt(self.square) * 40.0

    def distribution(self, more: float = 0.0) -> Any:
        """The privacy loss distribution of everything but failures and discrete noise, rounded up in cells that also
        suit what is composed with it and reaches `more` further."""
        from dp_accounting.pld import common
        from dp_accounting.pld import privacy_loss_distribution as pld

        cell = max(1e-4, (self.spread() + more) / CELLS)
        whole = pld.identity(value_discretization_interval=cell)
        for z, count in sorted(self.laplace.items()):
            one = pld.from_laplace_mechanism(z, value_discretization_interval=cell)
            whole = whole.compose(one.self_compose(count))
        for epsilon, count in sorted(self.pure.items()):
            one = pld.from_privacy_parameters(common.DifferentialPrivacyParameters(epsilon, 0.0), cell)
            whole = whole.compose(one.self_compose(count))
        if self.square > 0:
            gaussian = pld.from_gaussian_mechanism(1 / math.sqrt(self.square), value_discretization_interval=cell)
            whole = whole.compose(gaussian)
        return whole


def tally(events_with_counts: Iterable[tuple[Event, int]]) -> Tally:
    """All events by kind; masks cost nothing, an event of another kind raises PrivacyError."""
    total = Tally()
    for event, count in _simple(events_with_counts):
        if isinstance(event, GaussianEvent) and event.noise_multiplier:
            total.square += count / event.noise_multiplier**2
            total.rounding += count * event.rounding if event.rounding < math.inf else 0.0
        elif isinstance(event, DiscreteGaussianEvent) and event.noise_multiplier:
            total.rho += count * event.rho
        elif isinstance(event, LaplaceEvent) and event.noise_multiplier:
            total.laplace[event.noise_multiplier] += count
        elif isinstance(event, BoundedEvent) and event.epsilon < math.inf:
            total.failure += count * event.delta
            if event.epsilon:
                total.pure[event.epsilon] += count
        elif not isinstance(event, Mask):
            total.exact = True
    return total


def compose_epsilon(events_with_counts: Iterable[tuple[Event, int]], delta: float) -> float:
    """The epsilon at delta of all events together, each taken its number of times.

    An exact read gives infinity, masks cost nothing, and an event of another kind raises PrivacyError. At delta = 0
    pure parts add up, and anything Gaussian is infinite.
    """
    if not 0 <= delta < 1:
        raise PrivacyError(f"delta must be at least 0 and below 1, found {delta}; 1e-6 is the usual choice")
    total = tally(events_with_counts)
    if total.rounding and delta > 0:
        return rounded_epsilon(lambda left: _epsilon(total, left), total.rounding, delta)
    return _epsilon(total, delta)


def _epsilon(total: Tally, delta: float) -> float:
    """In real numbers."""
    left = delta - total.failure
    if total.exact or left < 0 or (left == 0 and (total.square or total.rho)):
        return math.inf
    if left == 0:
        return total.basic()
    if total.rho == 0 and not total.laplace and not total.pure:
        return epsilon_of(math.sqrt(total.square), left)
    if not total.laplace and not total.pure:
        return zcdp_to_epsilon(total.rho + total.square / 2, left)
    if total.rho > 0:
        return _renyi(total, left)
    basic = total.basic()
    pure = basic if total.square == 0 else math.inf
    if total.spread() > FARTHEST:  # far beyond any use: the sum of the parts is proof enough
        return basic + epsilon_of(math.sqrt(total.square), left)
    return min(pure, float(total.distribution().get_epsilon_for_delta(left)))


def compose_delta(events_with_counts: Iterable[tuple[Event, int]], epsilon: float) -> float:
    """The delta at epsilon of all events together, each taken its number of times."""
    total = tally(events_with_counts)
    if total.rounding:
        return rounded_delta(lambda left: _delta(total, left), total.rounding, epsilon)
    return _delta(total, epsilon)


def _delta(total: Tally, epsilon: float) -> float:
    """In real numbers."""
    if total.exact:
        return 1.0
    if total.rho == 0 and not total.laplace and not total.pure:
        return min(1.0, total.failure + delta_of(epsilon, math.sqrt(total.square)))
    if total.rho > 0:
        return min(1.0, total.failure + min(_renyi_delta(total, order, epsilon) for order in ORDERS))
    basic = total.basic()
    if total.square == 0 and epsilon >= basic:
        return min(1.0, total.failure)
    if total.spread() > FARTHEST:
        rest = delta_of(epsilon - basic, math.sqrt(total.square)) if epsilon >= basic else 1.0
        return min(1.0, total.failure + rest)
    return min(1.0, total.failure + float(total.distribution().get_delta_for_epsilon(epsilon)))


def _renyi_delta(total: Tally, order: float, epsilon: float) -> float:
    exponent = (order - 1) * (total.renyi(order) - epsilon + math.log1p(-1 / order)) - math.log(order)
    return math.exp(exponent) if exponent < 0 else 1.0


def renyi_of(events_with_counts: Iterable[tuple[Event, int]], order: float) -> float:
    """The Renyi divergence of all events together, infinite where only an (epsilon, delta) statement is known."""
    total = tally(events_with_counts)
    return math.inf if total.exact or total.failure > 0 else total.renyi(order)


_Simple = Exact | Mask | GaussianEvent | LaplaceEvent | DiscreteGaussianEvent | BoundedEvent


def _simple(events_with_counts: Iterable[tuple[Event, int]]) -> Iterable[tuple[_Simple, int]]:
    for whole, times in events_with_counts:
        if not isinstance(whole, Event):
            raise PrivacyError(f"unknown event {whole!r}; use the records of bruit.privacy.events")
        if times < 0:
            raise PrivacyError(f"an event happens a whole number of times >= 0, found {times} for {whole}")
        for event, count in whole.parts():
            if not isinstance(event, _Simple):
                raise PrivacyError(f"no accountant knows the event {event!r} (inside {whole!r}), so it is refused")
            if count * times:
                yield event, count * times


def _renyi(total: Tally, delta: float) -> float:
    return min(rdp_to_epsilon(order, total.renyi(order), delta) for order in ORDERS)


def _laplace_renyi(order: float, epsilon: float) -> float:
    """log(order / (2 order - 1) e^((order-1) epsilon) + (order-1) / (2 order - 1) e^(-order epsilon)) / (order - 1)."""
    rest = (order - 1) / (2 * order - 1) * math.exp(-(2 * order - 1) * epsilon)
    return min(epsilon, max(0.0, epsilon + math.log(order / (2 * order - 1) + rest) / (order - 1)))


def _pure_renyi(order: float, epsilon: float) -> float:
    """epsilon-DP is epsilon**2 / 2 zCDP, and never more than epsilon."""
    return min(epsilon, order * epsilon**2 / 2)
