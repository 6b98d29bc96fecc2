"""Loss of every pair of peers in a token walk on any graph, before it starts (walk:RW-8, RW-9,
RW-10).

Each of u's at most N contributions is seen l noisy steps later, l the first visit to v, or back to
u after the cool-down C (see `walk_ahead`). For all pairs at once, by the resolvent of W (see
`passages`):

    divergence(alpha) = N / (alpha - 1) log(1 + E[exp(lambda / l) - 1]),   lambda = alpha (alpha - 1) / (2 z^2)

    N = 1     l = first passage to v, exactly: nothing of u comes after
    C = 1     l = first visit to u or v, exactly
    C > 1     the smaller of that and the union A_uv + B_u: first passage to v, plus first return to u from C on

Rounded up throughout. One pair, or a coalition, is sharper: `segment_law` follows its own walk
(walk:RW-14). Sender, receiver and the whole walk may be known (walk:RW-9). Valid under the
hypotheses walk:RW-0, by RW-V2.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from bruit.arrays import Array, Ints
from bruit.errors import PrivacyError
from bruit.graphs.validity import components_of
from bruit.privacy.ahead.exponential_sums import LARGEST, exponential_sum
from bruit.privacy.ahead.passages import passages
from bruit.privacy.ahead.walk_ahead import (
    Ending,
    SegmentLaw,
    check_cap,
    check_cooldown,
    check_noise,
    segment_law,
    walk_ahead,
)
from bruit.privacy.calibrate import least
from bruit.privacy.exact import one_blas_thread
from bruit.privacy.guarantee import Guarantee
from bruit.privacy.profile import RenyiProfile, check_delta
from bruit.privacy.question import Peers, question
from bruit.privacy.theorems.walk_hypotheses import Descent, limits, standing
from bruit.privacy.theorems.walk_realized import Visits
from bruit.privacy.toolbox.gaussian import epsilon_of

if TYPE_CHECKING:
    from bruit.graphs import Graph

LAMBDAS = tuple(np.geomspace(1e-3, 16.0, 32).tolist())
"""Where the curves of all pairs are known; the order follows from lambda and z. The best order has
lambda near log(1 / delta) / N or below, and larger ones need more terms of every law."""

THREADS = 2


_STEPS, _HIDDEN, _NEVER = Descent(), Ending(), 2**62


def pair_law(graph: Graph, of: int, seen_by: Peers, cooldown: int = 1) -> SegmentLaw:
    """The exact law of the segments of one peer, seen by one observer or by several who act as one
    (walk:RW-10).

    Across components nothing is ever seen.

    >>> from bruit.graphs import ring
    >>> round(pair_law(ring(5), 0, (2, 3)).mean_inverse, 9)
    0.621860432
    """
    asked, part = question(graph.n, of, seen_by), components_of(graph.weights)[1]
    check_cooldown(cooldown)
    if np.any(part[list(asked.observers)] == part[of]):
        return segment_law(graph.weights, of, asked.observers, cooldown)
    return SegmentLaw(np.zeros(1), 0.0, asked.of, asked.against, cooldown)


def pair_guarantee(
    graph: Graph,
    of: int,
    seen_by: Peers,
    noise_multiplier: float,
    cap: int = 1,
    cooldown: int = 1,
    *,
    route: str = "exact",
    descent: Descent = _STEPS,
    ending: Ending = _HIDDEN,
    happened: Visits | None = None,
) -> Guarantee:
    """What observers can learn about a peer who contributes at most `cap` times, by the exact law
    of its segments.

    Cap and cool-down are checked on the walk that `happened`, if it is given, else assumed.

    >>> from bruit.graphs import ring
    >>> about = pair_guarantee(ring(5), 0, (2, 3), 2.0)
    >>> about.against, about.status
    ('peers 2, 3 together', 'ideal')
    """
    check_cooldown(cooldown)
    alone = (
        cap == 1 and not ending.more_segments
    )  # after its one contribution a peer is silent: returns do not count
    law = replace(pair_law(graph, of, seen_by, _NEVER if alone else cooldown), cooldown=cooldown)
    return walk_ahead(
        law, cap, noise_multiplier, route=route, descent=descent, ending=ending, happened=happened
    )


def first_passage(graph: Graph, lambdas: Array) -> Array:
    """E[exp(lambda / H_v) - 1] of the first passage from u to v; lambda = 0 gives E[1 / H_v]  # (l,
    n, n).

    What one single contribution of u costs, rounded up; nan where u = v (walk:RW-8).

    >>> from bruit.graphs import ring
    >>> first_passage(ring(5), np.array([0.0]))[0, 0, [1, 2]].round(9).tolist()
    [0.475588814, 0.192614534]
    """
    return _matrices(graph, _as_vector(lambdas), _FIRST)


def segments(graph: Graph, lambdas: Array, cooldown: int = 1) -> Array:
    """E[exp(lambda / l) - 1], l the length of a segment of u in the view of v, rounded up  # (l, n,
    n), nan if u = v.

    Equal for C = 1; for C > 1 a bound by the union of the two ways to be seen (walk:RW-14 item 3).

    >>> from bruit.graphs import ring
    >>> segments(ring(5), np.array([0.3]))[0, 0, [1, 2]].round(8).tolist()
    [0.26394864, 0.19735587]
    """
    check_cooldown(cooldown)
    return _matrices(graph, _as_vector(lambdas), cooldown)


def pairwise_divergences(
    graph: Graph, noise_multiplier: float, order: float, cap: int = 1, cooldown: int = 1
) -> Array:
    """Renyi divergence of that order, of u's at most `cap` contributions in the view of v  # (n,
    n), nan if u = v."""
    _check(noise_multiplier, cap, cooldown)
    if not order > 1:
        raise PrivacyError(f"a Renyi order must be above 1, found {order}")
    local = cap * order / (2 * noise_multiplier**2)
    growth = order * (order - 1) / (2 * noise_multiplier**2)
    if growth > LARGEST:
        return _together(graph, local)
    found = _matrices(graph, np.array([growth]), _FIRST if cap == 1 else cooldown)[0]
    return np.asarray(np.minimum(cap / (order - 1) * np.log1p(found), local))


def pairwise_epsilons(
    graph: Graph, noise_multiplier: float, delta: float = 1e-6, cap: int = 1, cooldown: int = 1
) -> Array:
    """Epsilon at delta of u's at most `cap` contributions in the view of v, never above local DP
    # (n, n).

    The diagonal is nan; peers that no path connects learn nothing.
    """
    _check(noise_multiplier, cap, cooldown)
    check_delta(delta)
    lambdas = np.array(LAMBDAS)
    orders = orders_at(lambdas, noise_multiplier)[:, None, None]
    conversion = np.log1p(-1 / orders) - (math.log(delta) + np.log(orders)) / (orders - 1)
    found = _together(graph, epsilon_of(math.sqrt(cap) / noise_multiplier, delta))
    for peers, block, growth in _blocks(graph, lambdas, _FIRST if cap == 1 else cooldown):
        curve = cap / (orders - 1) * np.log1p(growth) + conversion
        where = np.ix_(peers, block)
        found[where] = np.minimum(found[where], np.maximum(curve.min(axis=0), 0.0))
    np.fill_diagonal(found, np.nan)
    return found


def orders_at(lambdas: Array, noise_multiplier: float) -> Array:
    """The orders alpha with alpha (alpha - 1) / (2 z^2) = lambda."""
    return (1 + np.sqrt(1 + 8 * noise_multiplier**2 * lambdas)) / 2


@dataclass(frozen=True, eq=False)
class WalkSummary:
    """One pass over all pairs, enough for the worst pair and the means at every noise multiplier
    and cap.

    worst = max over pairs and mean[v] = (1/n) sum over u != v of log(1 + E[exp(lambda / l) - 1]).
    The worst pair is a guarantee for everybody; a mean loss is a summary, NOT a guarantee
    (walk:RW-13).
    """

    lambdas: Array  # (l,)
    worst: Array  # (l,)
    mean: Array  # (l, n)
    cooldown: int = 1

    def worst_epsilon(self, noise_multiplier: float, delta: float = 1e-6, cap: int = 1) -> float:
        """Epsilon at delta of the worst pair, never above local DP."""
        _check(noise_multiplier, cap, 1)
        check_delta(delta)
        local = epsilon_of(math.sqrt(cap) / noise_multiplier, delta)
        orders = orders_at(self.lambdas, noise_multiplier)
        curve = (
            cap * self.worst / (orders - 1)
            + np.log1p(-1 / orders)
            - np.log(delta * orders) / (orders - 1)
        )
        return min(local, max(0.0, float(curve.min())))

    def mean_epsilon(self, noise_multiplier: float, delta: float = 1e-6, cap: int = 1) -> float:
        """A summary, NOT a guarantee: min over orders of the largest mean loss + log(1 / delta) /
        (order - 1)."""
        _check(noise_multiplier, cap, 1)
        check_delta(delta)
        orders = orders_at(self.lambdas, noise_multiplier)
        return float(((cap * self.mean.max(axis=1) - math.log(delta)) / (orders - 1)).min())

    def guarantee(
        self, noise_multiplier: float, cap: int = 1, descent: Descent = _STEPS
    ) -> Guarantee:
        """What any single peer can learn about any other: the worst pair, as Renyi divergences."""
        _check(noise_multiplier, cap, 1)
        orders = orders_at(self.lambdas, noise_multiplier)
        curve = dict(zip(orders.tolist(), (cap * self.worst / (orders - 1)).tolist(), strict=True))
        return Guarantee(
            theorem="the worst pair of a walk on this graph",
            spec="walk:RW-14",
            status="ideal",
            level="user",
            of="any peer",
            against="any other peer alone",
            hypotheses=(
                limits(cap, self.cooldown),
                *standing(descent, True, "the last token is not published"),
            ),
            profile=RenyiProfile(curve.__getitem__, tuple(curve)),
            noise_multiplier=noise_multiplier,
            seen="the token each time it reaches the observer",
            advice=("a longer cool-down", "fewer contributions", "a denser graph"),
        )

    def least_noise(self, epsilon: float, delta: float = 1e-6, cap: int = 1) -> float:
        """The least noise multiplier that keeps the worst pair below epsilon."""
        return least(lambda z: self.worst_epsilon(z, delta, cap), epsilon)

    def least_noise_for_mean(self, epsilon: float, delta: float = 1e-6, cap: int = 1) -> float:
        """The least noise multiplier whose mean loss converts to epsilon: for comparisons, NOT a
        guarantee."""
        return least(lambda z: self.mean_epsilon(z, delta, cap), epsilon)


def summary(graph: Graph, cooldown: int = 1) -> WalkSummary:
    """The worst pair and the mean loss of every observer, for all noise multipliers and caps
    (walk:RW-13, RW-14).

    Where all peers are alike (the graph knows its group), a few observers stand for all.
    """
    check_cooldown(cooldown)
    lambdas = np.array(LAMBDAS)
    worst, mean = np.zeros(len(lambdas)), np.zeros((len(lambdas), graph.n))
    alike = graph.group is not None
    for peers, block, growth in _blocks(graph, lambdas, cooldown, alike):
        seen = np.log1p(np.where(peers[:, None] == block, 0.0, growth))
        worst = np.maximum(worst, seen.max(axis=(1, 2)))
        mean[:, slice(None) if alike else block] = (
            seen.sum(axis=1)[:, :1] if alike else seen.sum(axis=1)
        )
    mean /= graph.n
    return WalkSummary(lambdas, worst, mean, cooldown)


_FIRST = 0
"""In place of a cool-down: the first passage alone, u's own returns not counted."""


def _blocks(
    graph: Graph, lambdas: Array, cooldown: int, first: bool = False
) -> Iterator[tuple[Ints, Ints, Array]]:
    """Peers of a component, some observers among them, E[exp(lambda / l) - 1] of these pairs  # (l,
    peers, block).

    `first`: the first block of the first component only.
    """
    rule = exponential_sum(lambdas)
    count, part = components_of(graph.weights)
    for label in range(1 if first else count):
        peers = np.flatnonzero(part == label)
        if peers.size < 2:
            continue
        with one_blas_thread(), ThreadPoolExecutor(THREADS) as pool:
            walk = passages(graph.weights[peers][:, peers] if count > 1 else graph.weights, rule)
            back = walk.back(cooldown)[:, :, None] if cooldown > 1 else 0.0
            blocks = list(walk.blocks())[: 1 if first else None]
            for block, (passage, either) in zip(
                blocks, pool.map(walk.expected, blocks), strict=True
            ):
                found = passage if cooldown == _FIRST else either
                yield (
                    peers,
                    peers[block],
                    np.minimum(passage + back, either) if cooldown > 1 else found,
                )


def _matrices(graph: Graph, lambdas: Array, cooldown: int) -> Array:
    found = np.zeros((len(lambdas), graph.n, graph.n))
    for peers, block, growth in _blocks(graph, lambdas, cooldown):
        found[:, peers[:, None], block] = growth
    found[:, np.arange(graph.n), np.arange(graph.n)] = np.nan
    return found


def _together(graph: Graph, value: float) -> Array:
    """The value for peers of one component, 0 for others, nan on the diagonal."""
    _, part = components_of(graph.weights)
    found = np.where(part[:, None] == part, value, 0.0)
    np.fill_diagonal(found, np.nan)
    return found


def _as_vector(lambdas: Array) -> Array:
    return np.atleast_1d(np.asarray(lambdas, np.float64))


def _check(noise_multiplier: float, cap: int, cooldown: int) -> None:
    check_noise(noise_multiplier)
    check_cap(cap)
    check_cooldown(cooldown)
