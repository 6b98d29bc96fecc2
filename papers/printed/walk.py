"""The printed losses of a walk on any graph. NOT A GUARANTEE: kept to reproduce figures and to
compare.

    Thm 7.7   N_u (alpha / z^2) [log(T) / n - log(I - W + 11^T/n)_uv],   z^2 >= alpha (alpha - 1) / 2
    (D.8)     N_u (alpha / z^2) S_T(u, v),   S_T = sum_{t = 1..T} W^t / t            (H_T in place of log T)

They add up the losses of the contributions of u, although two contributions between the same two
visits of v are hidden by the same noise. A clique of 41 peers with one more attached, 30
contributions, alpha = z = 2 (walk:RW-15): exact 2.705206 for additive updates, printed 0.885001.
What holds: `bruit.privacy.ahead.walk_pairs`. (walk:RW-8, RW-9, RW-10, RW-12, RW-13. Cyffers,
Bellet, Upadhyay, arXiv:2402.07471.)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from bruit.arrays import Array, Ints
from bruit.errors import PrivacyError
from bruit.privacy.calibrate import least
from bruit.privacy.guarantee import Guarantee, Hypothesis
from bruit.privacy.profile import RenyiProfile, check_delta
from bruit.privacy.question import Peers, question

if TYPE_CHECKING:
    from bruit.graphs import Graph

REFUTED = (
    "not an upper bound: contributions between two visits share their noise; clique of 41 plus a "
    "pendant peer, 30"
    " contributions, alpha = z = 2: exact 2.705206, printed 0.885001 (walk:RW-15)"
)


def visit_sums(graph: Graph, steps: int) -> Array:
    """S_T = sum_{t = 1..T} W^t / t, in units of alpha / z^2 (D.8)  # (n, n).

    >>> from bruit.graphs import ring
    >>> visit_sums(ring(5), 50)[0, 1:3].round(9).tolist()
    [1.056266872, 0.625857931]
    """
    _check_steps(steps)
    values, vectors = np.linalg.eigh(graph.weights.toarray())
    return np.asarray((vectors * _partial_sums(values, steps)) @ vectors.T)


def printed_sums(graph: Graph, steps: int) -> Array:
    """log(T) / n - log(I - W + 11^T/n), in units of alpha / z^2 (Thm 7.7)  # (n, n).

    Refused for disconnected graphs, where the matrix has no logarithm: split the graph by
    component.
    """
    _check_steps(steps)
    return math.log(steps) / graph.n + log_term(graph)


def log_term(graph: Graph) -> Array:
    """- log(I - W + 11^T/n), what the pair adds to the common baseline; may be negative; rows sum
    to 0  # (n, n)."""
    if not graph.is_connected():
        raise PrivacyError(
            f"Thm 7.7 needs a connected graph, and {graph.name} is not; take each component for "
            f"itself"
        )
    n = graph.n
    values, vectors = np.linalg.eigh(np.eye(n) - graph.weights.toarray() + 1.0 / n)
    return np.asarray(-(vectors * np.log(values)) @ vectors.T)


def known_sender(graph: Graph, steps: int, of: int, observer: int) -> float:
    """max over neighbors w of v of S_T(u, w), in units of alpha / z^2; 1/2 when u is itself a
    neighbor (walk:RW-9).

    The print omits the direct transition when u is a neighbor of v: the loss is then the local one,
    alpha / (2 z^2), unless another neighbor is printed higher.

    >>> from bruit.graphs import ring
    >>> round(known_sender(ring(5), 50, 0, 2), 9)
    1.056266872
    """
    question(graph.n, of, observer)
    neighbors = graph.neighbors(observer)
    others = visit_sums(graph, steps)[of, neighbors[neighbors != of]]
    direct = 0.5 if of in neighbors else 0.0
    return max(direct, float(others.max(initial=0.0)))


def colluding(graph: Graph, steps: int, of: int, observers: Sequence[int] | Ints) -> float:
    """sum over v in F of S_T(u, v), in units of alpha / z^2 (D.12, D.13; walk:RW-10).

    >>> from bruit.graphs import ring
    >>> round(colluding(ring(5), 50, 0, [2, 3]), 9)
    1.251715861
    """
    asked = question(graph.n, of, tuple(int(v) for v in observers))
    return float(visit_sums(graph, steps)[of, list(asked.observers)].sum())


def published_walk_guarantee(
    graph: Graph,
    of: int,
    seen_by: Peers,
    noise_multiplier: float,
    steps: int,
    contributions: float | None = None,
) -> Guarantee:
    """NOT A GUARANTEE. The printed loss of u, who contributes N_u = T / n times unless told
    otherwise (Thm 7.7, D.12).

    >>> from bruit.graphs import ring
    >>> printed = published_walk_guarantee(ring(5), 0, 1, 4.0, 50)
    >>> round(printed.profile.divergence(2.0), 9), printed.status
    (1.173538006, 'published')
    """
    asked = question(graph.n, of, seen_by)
    _check_noise(noise_multiplier)
    times = steps / graph.n if contributions is None else contributions
    sums = times * float(printed_sums(graph, steps)[of, list(asked.observers)].sum())
    largest = largest_order(noise_multiplier)
    orders = tuple(1 + (largest - 1) * x for x in np.geomspace(1e-3, 1.0, 200).tolist())
    if largest >= 2.0:
        orders = tuple(sorted({2.0, *orders}))
    return Guarantee(
        theorem="Theorem 7.7 for walks on arbitrary graphs",
        spec="walk:RW-8",
        status="published",
        level="user",
        of=asked.of,
        against=asked.against,
        hypotheses=(
            Hypothesis(
                f"orders up to {largest:g}, where z^2 >= alpha (alpha - 1) / 2", checked=True
            ),
            Hypothesis("losses of several contributions add up, which is false", checked=False),
        ),
        profile=RenyiProfile(lambda order: max(0.0, order / noise_multiplier**2 * sums), orders),
        loss=2 * max(0.0, sums),
        noise_multiplier=noise_multiplier,
        notes=(REFUTED,),
        seen="time, value and next holder of the token at every visit",
    )


def largest_order(noise_multiplier: float) -> float:
    """The largest alpha with alpha (alpha - 1) / 2 <= z^2, where the printed factor 2 holds
    (walk:F-3)."""
    _check_noise(noise_multiplier)
    return (1 + math.sqrt(1 + 8 * noise_multiplier**2)) / 2


def complete_sum(peers: int, steps: int) -> float:
    """S_T on the complete graph with W = 11^T/n: H_T / n (walk:RW-12)."""
    _check_steps(steps)
    return float(_harmonic(steps)) / peers


def ring_sum(peers: int, distance: int, steps: int, stay: float = 1 / 3) -> float:
    """S_T between two peers of a ring whose self-weight is kappa, by its Fourier modes
    (walk:RW-12).

        (1/n) sum_k cos(2 pi d k / n) sum_{t <= T} lambda_k^t / t,   lambda_k = kappa + (1 - kappa) cos(2 pi k / n)

    >>> round(ring_sum(10, 1, 200), 9), round(ring_sum(10, 5, 200), 9), round(ring_sum(6, 2, 100, 0.1), 9)
    (1.019849903, 0.29468372, 0.683531291)
    """
    _check_steps(steps)
    if peers < 3 or not 0 <= stay < 1:
        raise PrivacyError(
            f"a ring needs 3 peers and a self-weight in [0, 1), found {peers} and {stay}"
        )
    angles = 2 * np.pi * np.arange(peers) / peers
    sums = _partial_sums(stay + (1 - stay) * np.cos(angles), steps)
    return float(np.cos(distance * angles) @ sums) / peers


def ring_limit(peers: int, distance: int, steps: int) -> float:
    """Its limit for many steps at self-weight 1/3, Thm 7.12 corrected (walk:RW-12).

    (1/n) [H_T + sum_{k = 1..n-1} cos(2 pi d k / n) log(3 / (4 sin^2(pi k / n)))]
    """
    _check_steps(steps)
    k = np.arange(1, peers)
    modes = np.cos(2 * np.pi * distance * k / peers) * np.log(
        3 / (4 * np.sin(np.pi * k / peers) ** 2)
    )
    return float(_harmonic(steps) + modes.sum()) / peers


def star_to_center(peers: int) -> float:
    """E[1 / H] from a leaf of a star to its center under Hamilton weights: log(n - 1) / (n - 2)
    (walk:RW-12)."""
    if peers < 3:
        raise PrivacyError(f"a star with leaves needs at least 3 peers, found {peers}")
    return math.log(peers - 1) / (peers - 2)


def mean_sums(graph: Graph, steps: int) -> Array:
    """(1/n) sum over u != v of S_T(u, v) = (H_T - S_T(v, v)) / n, of every v; a summary, NOT a
    guarantee (walk:RW-13).

    In units of alpha N / z^2. Nearly the same for all graphs, since W is doubly stochastic.

    >>> from bruit.graphs import path
    >>> mean_sums(path(4, plus=0), 100).round(9).tolist()
    [0.851408431, 1.007214741, 1.007214741, 0.851408431]
    """
    return (float(_harmonic(steps)) - np.diag(visit_sums(graph, steps))) / graph.n


def noise_for_mean(
    graph: Graph,
    steps: int,
    epsilon: float,
    delta: float = 1e-6,
    contributions: float | None = None,
) -> float:
    """The least z whose largest printed mean loss converts to epsilon: comparisons only, NOT a
    guarantee (walk:RW-13).

    min over alpha with alpha (alpha - 1) / 2 <= z^2 of  mean(alpha) + log(1 / delta) / (alpha - 1)
    <=  epsilon
    """
    check_delta(delta)
    times = steps / graph.n if contributions is None else contributions
    mean = times * float(mean_sums(graph, steps).max())
    return least(lambda z: mean_epsilon(mean, z, delta), epsilon)


def mean_epsilon(mean: float, noise_multiplier: float, delta: float) -> float:
    """min over the allowed orders of alpha mean / z^2 + log(1 / delta) / (alpha - 1), in closed
    form."""
    slope = mean / noise_multiplier**2
    free = 1 + math.sqrt(-math.log(delta) / slope) if slope > 0 else math.inf
    order = min(free, largest_order(noise_multiplier))
    return slope * order - math.log(delta) / (order - 1)


def _partial_sums(values: Array, steps: int) -> Array:
    """sum_{t = 1..T} x^t / t for every eigenvalue x, smallest terms first."""
    total = np.zeros_like(values)
    for t in range(steps, 0, -1):  # Horner: x (1/1 + x (1/2 + ...))
        total = values * (total + 1.0 / t)
    return total


def _harmonic(steps: int) -> float:
    return float(np.sum(1.0 / np.arange(steps, 0, -1)))


def _check_steps(steps: int) -> None:
    if steps < 1:
        raise PrivacyError(f"a walk has at least one step, found {steps}")


def _check_noise(noise_multiplier: float) -> None:
    if not noise_multiplier > 0:
        raise PrivacyError(
            f"the printed losses need a noise multiplier above 0, found {noise_multiplier}"
        )
