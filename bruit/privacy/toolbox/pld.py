"""Epsilon of a list of events: exact where a closed form exists, a proven upper bound elsewhere.

    Gaussian only              mu**2 = sum of count / noise_multiplier**2, then gossip:DP-1: exact
    with Laplace               privacy loss distributions of dp_accounting, rounded pessimistically;
                               Laplace alone never exceeds basic composition (gossip:DP-5)
    with secret samples        the same with the pairs of silo:SILO-2; never more than without sampling
    with discrete Gaussian     Renyi divergences add: alpha * rho, alpha * mu**2 / 2, and that of Laplace; gossip:DP-2
    with (epsilon, delta)      a mechanism known by one statement is the pure one at epsilon, except with probability
                               delta: the deltas are taken from the total, the rest counts as epsilon-DP
    finite precision           the rounding R of Gaussian releases adds up and is converted at the end (fp:FP-0)

A Laplace release of a vector is charged as one number moved by the whole L1 sensitivity, which is
the worst case: moving two coordinates by a >= b tells less than moving one by a + b. In units of
the scale, a shift by a has 1 - delta_a(x) = g_a(x) = min(1, exp((x - a) / 2)) for x >= -a. The
shift by b has loss l with mass 1/2 at b, exp(-b) / 2 at -b, and density exp((l - b) / 2) / 4
between. For 0 <= x <= a + b, E g_a(x - l) is at least exp((x - a - b) / 2) / 2 from the mass at b.
As much again comes from the part of l below x - a (or, when there is none, from the density).
Together that is g_{a+b}(x). Negative x follow by symmetry, more coordinates by induction.
"""

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np

from bruit.errors import PrivacyError
from bruit.privacy.events import (
    BoundedEvent,
    DiscreteGaussianEvent,
    Event,
    Exact,
    GaussianEvent,
    LaplaceEvent,
    Mask,
    SampledGaussianEvent,
)
from bruit.privacy.toolbox.gaussian import delta_of, epsilon_of, rdp_to_epsilon, zcdp_to_epsilon
from bruit.privacy.toolbox.rounding import rounded_delta, rounded_epsilon
from bruit.privacy.toolbox.sampled_pld import (
    Sampled,
    cell_of,
    reach,
    releases_of,
    renyi,
    slack,
    unsampled_square,
)
from bruit.privacy.toolbox.sampled_renyi import ORDERS as SAMPLED_ORDERS

CELLS, FARTHEST = 2e6, 1e5
"""Cells of a privacy loss distribution, beyond which they are made coarser (still rounded up); its
largest spread."""

CELL = 1e-4  # the finest of these cells, but for secret samples
LEAST_NOISE = 1e-12  # less is charged as none: far below, its square would be no float
MOST_NOISE, MOST_SAMPLED_NOISE = 1e150, 1e6  # more is charged as this much: numbers stay floats
MOST_RELEASES = 2**24  # that a budget is asked about

ORDERS = tuple(1.0 + x for x in np.geomspace(1e-3, 1e6, 1000).tolist())


@dataclass(kw_only=True)
class EventTotals:
    """Events added up by kind: mu**2 of Gaussian, zCDP of discrete Gaussian noise, counts by scale,
    by epsilon, and by what is known of a secret sample."""

    square: float = 0.0
    rho: float = 0.0
    laplace: Counter[float] = field(default_factory=Counter)
    pure: Counter[float] = field(default_factory=Counter)
    sampled: Counter[Sampled] = field(default_factory=Counter)
    failure: float = 0.0
    exact: bool = False
    rounding: float = 0.0

    def basic(self) -> float:
        """What the pure parts cost by adding up."""
        return sum(count / z for z, count in self.laplace.items()) + sum(
            e * count for e, count in self.pure.items()
        )

    def renyi(self, order: float) -> float:
        """Renyi divergences add: those of Gaussian noise are linear in the order."""
        linear = (self.rho + self.square / 2) * order
        laplace = sum(count * _laplace_renyi(order, 1 / z) for z, count in self.laplace.items())
        sampled = sum(count * renyi(order, kind) for kind, count in self.sampled.items())
        pure = sum(count * _pure_renyi(order, e) for e, count in self.pure.items())
        return linear + laplace + sampled + pure

    def orders(self) -> tuple[float, ...]:
        """The Renyi orders worth trying: divergences of samples cost time in proportion."""
        return SAMPLED_ORDERS if self.sampled else ORDERS

    def gaussian(self) -> bool:
        """Whether some loss is unbounded, as that of Gaussian noise is."""
        return bool(self.square or self.rho or self.sampled)

    def only_gaussian(self) -> bool:
        """Whether mu**2 and zCDP are all there is."""
        return not (self.laplace or self.pure or self.sampled)

    def unsampled(self) -> float:
        """mu**2 of the Gaussian noise if all samples were everybody: never less."""
        return self.square + sum(
            count * unsampled_square(kind) for kind, count in self.sampled.items()
        )

    def slack(self) -> float:
        """What is set aside of delta for the arithmetic of samples."""
        return slack(self.sampled.total()) if self.sampled else 0.0

    def spread(self) -> float:
        """How far the privacy loss reaches, but for a negligible part."""
        sampled = sum(reach(kind, count) for kind, count in self.sampled.items())
        return self.basic() + self.square / 2 + math.sqrt(self.square) * 40.0 + sampled

    def cell(self, more: float = 0.0) -> float:
        """The cells of its distribution, if what is composed with it reaches `more` further."""
        finest = [cell_of(kind) for kind in self.sampled]
        if not finest or self.laplace or self.pure or self.square or more:
            finest.append(CELL)
        return max(min(finest), (self.spread() + more) / CELLS)

    def distribution(self, more: float = 0.0) -> Any:
        """The privacy loss distribution of everything but failures and discrete noise, rounded up
        in cells that also suit what is composed with it and reaches `more` further."""
        return _distribution(
            self.square,
            tuple(sorted(self.laplace.items())),
            tuple(sorted(self.pure.items())),
            tuple(sorted(self.sampled.items())),
            self.cell(more),
        )


@lru_cache(maxsize=8)
def _distribution(
    square: float,
    laplace: tuple[tuple[float, int], ...],
    pure: tuple[tuple[float, int], ...],
    sampled: tuple[tuple[Sampled, int], ...],
    cell: float,
) -> Any:
    """The last few are kept: one statement is asked for many deltas."""
    from dp_accounting.pld import common
    from dp_accounting.pld import privacy_loss_distribution as pld

    whole = pld.identity(value_discretization_interval=cell)
    for z, count in laplace:
        one = pld.from_laplace_mechanism(z, value_discretization_interval=cell)
        whole = whole.compose(one.self_compose(count))
    for epsilon, count in pure:
        one = pld.from_privacy_parameters(common.DifferentialPrivacyParameters(epsilon, 0.0), cell)
        whole = whole.compose(one.self_compose(count))
    if square > 0:
        gaussian = pld.from_gaussian_mechanism(
            1 / math.sqrt(square), value_discretization_interval=cell
        )
        whole = whole.compose(gaussian)
    for kind, count in sampled:
        whole = whole.compose(releases_of(kind, count, cell))
    return whole


def tally(events_with_counts: Iterable[tuple[Event, int]]) -> EventTotals:
    """All events by kind; masks cost nothing, an event of another kind raises PrivacyError, and so
    do samples of both adjacencies together."""
    total = EventTotals()
    for event, count in _simple(events_with_counts):
        if isinstance(event, GaussianEvent) and event.noise_multiplier >= LEAST_NOISE:
            total.square += count / min(event.noise_multiplier, MOST_NOISE) ** 2
            total.rounding += count * event.rounding if event.rounding < math.inf else 0.0
        elif isinstance(event, SampledGaussianEvent) and event.noise_multiplier >= LEAST_NOISE:
            z = min(event.noise_multiplier, MOST_SAMPLED_NOISE)
            total.sampled[z, event.rate, event.adjacency] += count
            total.rounding += count * event.rounding if event.rounding < math.inf else 0.0
        elif isinstance(event, DiscreteGaussianEvent) and event.noise_multiplier >= LEAST_NOISE:
            total.rho += count * event.rho
        elif isinstance(event, LaplaceEvent) and event.noise_multiplier >= LEAST_NOISE:
            total.laplace[event.noise_multiplier] += count
        elif isinstance(event, BoundedEvent) and event.epsilon < math.inf:
            total.failure += count * event.delta
            if event.epsilon:
                total.pure[event.epsilon] += count
        elif not isinstance(event, Mask):
            total.exact = True
    if len({adjacency for _, _, adjacency in total.sampled}) > 1:
        raise PrivacyError(
            "releases that hide a replaced record and releases that hide one that comes or goes "
            "are two accounts, which are never added up; use one adjacency throughout"
        )
    return total


def compose_epsilon(events_with_counts: Iterable[tuple[Event, int]], delta: float) -> float:
    """The epsilon at delta of all events together, each taken its number of times.

    An exact read gives infinity, masks cost nothing, and an event of another kind raises
    PrivacyError. At delta = 0 pure parts add up, and anything Gaussian is infinite.
    """
    if not 0 <= delta < 1:
        raise PrivacyError(
            f"delta must be at least 0 and below 1, found {delta}; 1e-6 is the usual choice"
        )
    total = tally(events_with_counts)
    if total.rounding and delta > 0:
        return rounded_epsilon(lambda left: _epsilon(total, left), total.rounding, delta)
    return _epsilon(total, delta)


def _epsilon(total: EventTotals, delta: float) -> float:
    """In real numbers."""
    left = delta - total.failure
    if total.exact or left < 0 or (left == 0 and total.gaussian()):
        return math.inf
    if left == 0:
        return total.basic()
    if total.only_gaussian():
        if total.rho == 0:
            return epsilon_of(math.sqrt(total.square), left)
        return zcdp_to_epsilon(total.rho + total.square / 2, left)
    if total.rho > 0:
        return _renyi(total, left)
    basic = total.basic()
    pure = basic if not total.gaussian() else math.inf
    far, rest = total.spread() > FARTHEST, left - total.slack()
    if far or total.sampled:  # the sum of the parts is proof enough, and far beyond any use all
        pure = min(pure, basic + epsilon_of(math.sqrt(total.unsampled()), left))
    if far or rest <= 0:
        return pure
    with np.errstate(over="ignore"):  # a loss too large for a float is infinite
        return min(pure, float(total.distribution().get_epsilon_for_delta(rest)))


@lru_cache(maxsize=64)
def most_releases(event: Event, epsilon: float, delta: float) -> int:
    """How many releases of one event stay within epsilon at delta, at most MOST_RELEASES: found by
    doubling and halving, so that a budget that is asked before every release need not compose them
    all each time."""

    def within(count: int) -> bool:
        return compose_epsilon([(event, count)], delta) <= epsilon

    low, high = 0, 1
    while within(high):
        low, high = high, 2 * high
        if low >= MOST_RELEASES:
            return low
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if within(middle) else (low, middle)
    return low


def compose_delta(events_with_counts: Iterable[tuple[Event, int]], epsilon: float) -> float:
    """The delta at epsilon of all events together, each taken its number of times."""
    total = tally(events_with_counts)
    if total.rounding:
        return rounded_delta(lambda left: _delta(total, left), total.rounding, epsilon)
    return _delta(total, epsilon)


def _delta(total: EventTotals, epsilon: float) -> float:
    """In real numbers."""
    if total.exact:
        return 1.0
    if total.rho == 0 and total.only_gaussian():
        return min(1.0, total.failure + delta_of(epsilon, math.sqrt(total.square)))
    if total.rho > 0:
        return min(
            1.0,
            total.failure + min(_renyi_delta(total, order, epsilon) for order in total.orders()),
        )
    basic, far = total.basic(), total.spread() > FARTHEST
    if not total.gaussian() and epsilon >= basic:
        return min(1.0, total.failure)
    found = 1.0
    if (far or total.sampled) and epsilon >= basic:
        found = delta_of(epsilon - basic, math.sqrt(total.unsampled()))
    if not far:
        composed = float(total.distribution().get_delta_for_epsilon(epsilon))
        found = min(found, composed + total.slack())
    return min(1.0, total.failure + found)


def _renyi_delta(total: EventTotals, order: float, epsilon: float) -> float:
    exponent = (order - 1) * (total.renyi(order) - epsilon + math.log1p(-1 / order)) - math.log(
        order
    )
    return math.exp(exponent) if exponent < 0 else 1.0


def renyi_of(events_with_counts: Iterable[tuple[Event, int]], order: float) -> float:
    """The Renyi divergence of all events together, infinite where only an (epsilon, delta)
    statement is known."""
    total = tally(events_with_counts)
    return math.inf if total.exact or total.failure > 0 else total.renyi(order)


_Simple = (
    Exact
    | Mask
    | GaussianEvent
    | SampledGaussianEvent
    | LaplaceEvent
    | DiscreteGaussianEvent
    | BoundedEvent
)


def _simple(events_with_counts: Iterable[tuple[Event, int]]) -> Iterable[tuple[_Simple, int]]:
    for whole, times in events_with_counts:
        if not isinstance(whole, Event):
            raise PrivacyError(f"unknown event {whole!r}; use the records of bruit.privacy.events")
        if times < 0:
            raise PrivacyError(
                f"an event happens a whole number of times >= 0, found {times} for {whole}"
            )
        for event, count in whole.parts():
            if not isinstance(event, _Simple):
                raise PrivacyError(
                    f"no accountant knows the event {event!r} (inside {whole!r}), so it is refused"
                )
            if count * times:
                yield event, count * times


def _renyi(total: EventTotals, delta: float) -> float:
    return min(rdp_to_epsilon(order, total.renyi(order), delta) for order in total.orders())


def _laplace_renyi(order: float, epsilon: float) -> float:
    """log(order / (2 order - 1) e^((order-1) epsilon) + (order-1) / (2 order - 1) e^(-order
    epsilon)) / (order - 1)."""
    rest = (order - 1) / (2 * order - 1) * math.exp(-(2 * order - 1) * epsilon)
    return min(epsilon, max(0.0, epsilon + math.log(order / (2 * order - 1) + rest) / (order - 1)))


def _pure_renyi(order: float, epsilon: float) -> float:
    """epsilon-DP is epsilon**2 / 2 zCDP, and never more than epsilon."""
    return min(epsilon, order * epsilon**2 / 2)
