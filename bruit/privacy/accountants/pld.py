"""Epsilon of a list of events: exact where a closed form exists, a proven upper bound elsewhere.

    Gaussian only              mu**2 = sum of count / noise_multiplier**2, then gossip:DP-1: exact
    with Laplace               privacy loss distributions of dp_accounting, rounded pessimistically;
                               Laplace alone never exceeds basic composition (gossip:DP-5)
    with discrete Gaussian     Renyi divergences add: alpha * rho, alpha * mu**2 / 2, and that of Laplace; gossip:DP-2

A Laplace release of a vector is charged as one number moved by the whole L1 sensitivity, which is the worst case:
moving two coordinates by a >= b tells less than moving one by a + b. In units of the scale, a shift by a has
1 - delta_a(x) = g_a(x) = min(1, exp((x - a) / 2)) for x >= -a, and the shift by b has loss l with mass 1/2 at b,
exp(-b) / 2 at -b, and density exp((l - b) / 2) / 4 between. For 0 <= x <= a + b, E g_a(x - l) is at least
exp((x - a - b) / 2) / 2 from the mass at b, plus as much again from the part of l below x - a (or, when there is none,
from the density): together g_{a+b}(x). Negative x follow by symmetry, more coordinates by induction.
"""

import math
from collections.abc import Iterable

import numpy as np

from bruit.errors import PrivacyError
from bruit.privacy.accountants.gaussian import epsilon_of, rdp_to_epsilon, zcdp_to_epsilon
from bruit.privacy.events import DiscreteGaussianEvent, Event, Exact, GaussianEvent, LaplaceEvent, Mask

_CELLS = 2e6  # of a privacy loss distribution: beyond it, coarser cells (still rounded up)


def compose_epsilon(events_with_counts: Iterable[tuple[Event, int]], delta: float) -> float:
    """The epsilon at delta of all events together, each taken its number of times.

    An exact read gives infinity, masks cost nothing, and an event of another kind raises PrivacyError.
    """
    if not 0 < delta < 1:
        raise PrivacyError(f"delta must be between 0 and 1, both excluded, found {delta}; 1e-6 is the usual choice")
    square, rho = 0.0, 0.0  # of the Gaussian part: mu**2; of the discrete Gaussian part: zCDP
    laplace: dict[float, int] = {}
    for event, count in _simple(events_with_counts):
        if isinstance(event, Exact) or (not isinstance(event, Mask) and event.noise_multiplier == 0):
            return math.inf
        if isinstance(event, GaussianEvent):
            square += count / event.noise_multiplier**2
        elif isinstance(event, DiscreteGaussianEvent):
            rho += count * event.rho
        elif isinstance(event, LaplaceEvent):
            laplace[event.noise_multiplier] = laplace.get(event.noise_multiplier, 0) + count
    if rho == 0 and not laplace:
        return epsilon_of(math.sqrt(square), delta)
    if not laplace:
        return zcdp_to_epsilon(rho + square / 2, delta)
    if rho > 0:
        return _renyi(rho + square / 2, laplace, delta)
    return _distributions(square, laplace, delta)


_Simple = Exact | Mask | GaussianEvent | LaplaceEvent | DiscreteGaussianEvent


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


def _renyi(rho: float, laplace: dict[float, int], delta: float) -> float:
    best = math.inf
    for x in np.geomspace(1e-3, 1e6, 1000):
        order = 1.0 + float(x)
        divergence = rho * order + sum(count * _laplace_renyi(order, 1 / z) for z, count in laplace.items())
        best = min(best, rdp_to_epsilon(order, divergence, delta))
    return best


def _laplace_renyi(order: float, epsilon: float) -> float:
    """log(order / (2 order - 1) e^((order-1) epsilon) + (order-1) / (2 order - 1) e^(-order epsilon)) / (order - 1)."""
    rest = (order - 1) / (2 * order - 1) * math.exp(-(2 * order - 1) * epsilon)
    return min(epsilon, max(0.0, epsilon + math.log(order / (2 * order - 1) + rest) / (order - 1)))


def _distributions(square: float, laplace: dict[float, int], delta: float) -> float:
    basic = sum(count / z for z, count in laplace.items())
    pure = basic if square == 0 else math.inf
    spread = basic + square / 2 + math.sqrt(square) * 40.0
    if not math.isfinite(spread) or spread > 1e5:  # far beyond any use: the sum of the parts is proof enough
        return basic + epsilon_of(math.sqrt(square), delta)
    from dp_accounting.pld import privacy_loss_distribution as pld

    cell = max(1e-4, spread / _CELLS)
    total = pld.identity(value_discretization_interval=cell)
    for z, count in sorted(laplace.items()):
        one = pld.from_laplace_mechanism(z, value_discretization_interval=cell)
        total = total.compose(one.self_compose(count))
    if square > 0:
        total = total.compose(pld.from_gaussian_mechanism(1 / math.sqrt(square), value_discretization_interval=cell))
    return min(pure, float(total.get_epsilon_for_delta(delta)))
