"""Utility of private averaging, before a run: errors of the mean from gap, size, noise and steps
alone.

Errors are (1/2n) sum_v E ||x_v - mean||^2 as in arXiv:2206.05091, sigma^2 the variance of each peer's noise, `spread` a
public bound on (1/n) sum_v ||x_v - mean||^2 (1/4 for values in [0, 1]), never the data's own. Orders of magnitude
("up to logarithms") are named so. (gossip:MUF-4, MUF-6, MUF-7, MUF-9, MUF-X1, MUF-X2, MUF-X3, DP-8.)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np

from bruit.arrays import Array
from bruit.errors import ConfigError
from bruit.graphs import Graph

Family = Literal["arbitrary", "expander", "torus", "complete", "ring"]


def accelerated_error(
    gap: float, n: int, sigma: float, steps: int, spread: float = 0.25, dim: int = 1
) -> float:
    """Bound after T accelerated steps: (spread + D sigma^2) exp(-T sqrt(gap)) + D sigma^2 / n
    (gossip:MUF-4)."""
    _check(gap, n, sigma, steps)
    noise = dim * sigma**2
    return (spread + noise) * math.exp(-steps * math.sqrt(gap)) + noise / n


def accelerated_steps(gap: float, n: int, sigma: float, spread: float = 0.25) -> int:
    """T_stop = ceil(log(n max(1, spread / sigma^2)) / sqrt(gap)): the error is then <= 3 sigma^2 /
    n (gossip:MUF-4).

    >>> accelerated_steps(2 / 12, 2048, 1.0)
    19
    """
    _check(gap, n, sigma, 0)
    return math.ceil(_logarithm(n, sigma, spread) / math.sqrt(gap))


def randomized_error(
    rate: float, n: int, sigma: float, activations: int, spread: float = 0.25
) -> float:
    """Bound after T activations: [(spread + sigma^2) exp(-T rate) + sigma^2 / n] / 2
    (gossip:MUF-7).

    rate = lambda(p) = lambda_2(L_p) / 2, which is (1 - lambda_2(W)) / n when edges are drawn with p
    = 2W/n.
    """
    _check(rate, n, sigma, activations)
    return ((spread + sigma**2) * math.exp(-activations * rate) + sigma**2 / n) / 2


def randomized_steps(rate: float, n: int, sigma: float, spread: float = 0.25) -> int:
    """Activations after which the error is at most 2 sigma^2 / n; the print's rate is twice too
    fast (gossip:MUF-7).

    >>> randomized_steps((1 - 2 / 3) / 6, 6, 1.0), randomized_steps(2 * (1 - 2 / 3) / 6, 6, 1.0)
    (33, 17)
    """
    _check(rate, n, sigma, 0)
    return math.ceil(_logarithm(n, sigma, spread) / rate)


def averaging_error(
    graph: Graph, values: Array, sigma: float, steps: int, gamma: float = 1.0
) -> float:
    """The error exactly: (||P_T(W) (x - mean)||^2 + D sigma^2 ||P_T(W)||_F^2) / 2n (gossip:MUF-4).

    gamma = 1 is plain gossip. `values` are public: an example, or a worst case. Dense, for up to a
    few thousand peers.
    """
    x = np.asarray(values, dtype=np.float64).reshape(graph.n, -1)
    state = np.concatenate([x - x.mean(axis=0), np.eye(graph.n)], axis=1)
    before = state
    for t in range(steps):
        mixed = np.asarray(graph.weights @ state)
        before, state = state, mixed if t == 0 else gamma * mixed + (1 - gamma) * before
    data, noise = state[:, : x.shape[1]], state[:, x.shape[1] :]
    return float((data**2).sum() + x.shape[1] * sigma**2 * (noise**2).sum()) / (2 * graph.n)


def variance_at_mean_loss(
    mean: float, order: float, sensitivity: float, n: int, received: float
) -> float:
    """sigma^2 that keeps the mean Renyi loss at `mean`: alpha Delta^2 received / (2 n mean)
    (gossip:MUF-6).

    `received` counts what one view learns: d T for gossip, rank - 1 exactly, log2 n on a butterfly,
    n for local DP and 1 for a curator who adds the noise of everybody.

    >>> variance_at_mean_loss(0.1, 2, 1.0, 1024, 10 * 17), variance_at_mean_loss(0.1, 2, 1.0, 1024, 10)
    (1.66015625, 0.09765625)
    """
    if not (mean > 0 and order >= 1 and sensitivity >= 0 and n >= 1 and received >= 0):
        raise ConfigError(
            f"found mean loss {mean}, order {order}, sensitivity {sensitivity}, n = {n}, {received}"
            " received; the mean loss is positive, the order at least 1"
        )
    return order * sensitivity**2 * received / (2 * n * mean)


def error_at_mean_loss(
    mean: float, order: float, sensitivity: float, n: int, received: float
) -> float:
    """3 sigma^2 / n with the variance above: the error of accelerated gossip stopped at T_stop
    (gossip:MUF-6)."""
    return 3 * variance_at_mean_loss(mean, order, sensitivity, n, received) / n


def local_error(order: float, sensitivity: float, n: int, divergence: float) -> float:
    """Mean squared error of a mean under local DP: alpha Delta^2 / (2 n epsilon) (gossip:DP-8).

    >>> local_error(2, 1.0, 100, 1.0), central_error(2, 1.0, 100, 1.0)
    (0.01, 0.0001)
    """
    return variance_at_mean_loss(divergence, order, sensitivity, n, n) / n


def central_error(order: float, sensitivity: float, n: int, divergence: float) -> float:
    """Mean squared error of a mean released by a trusted curator: alpha Delta^2 / (2 n^2 epsilon)
    (gossip:DP-8)."""
    return local_error(order, sensitivity, n, divergence) / n


def synchronous_order(
    family: Family, n: int, *, degree: float = 1.0, gap: float = 1.0, dimension: int = 2
) -> float:
    """Order of the error of synchronous Muffliato at fixed mean loss (gossip:MUF-6).

    In units of alpha Delta^2 / epsilon and up to logarithms: Table 6.1 of arXiv:2206.05091, every
    entry capped by local DP's 1/n. degree and gap matter for "arbitrary", dimension for "torus".
    """
    _check_table(n, degree, gap, dimension)
    entries = {
        "arbitrary": degree / (n**2 * math.sqrt(gap)),
        "expander": 1 / n**2,
        "torus": dimension * n ** (1 / dimension - 2),
        "complete": 1 / n,
        "ring": 1 / n,
    }
    return _capped(entries, family, n)


def randomized_order(family: Family, n: int, *, gap: float = 1.0, dimension: int = 2) -> float:
    """The same for randomized Muffliato; gap = 1 - lambda_2(W)."""
    _check_table(n, 1.0, gap, dimension)
    entries = {
        "arbitrary": 1 / (n**2 * gap),
        "expander": 1 / n**2,
        "torus": n ** (2 / dimension - 2),
        "complete": 1 / n**2,
        "ring": 1 / n,
    }
    return _capped(entries, family, n)


def _capped(entries: dict[str, float], family: str, n: int) -> float:
    if family not in entries:
        raise ConfigError(f"no family {family!r}; choose {', '.join(entries)}")
    return min(entries[family], 1 / n)


def _check_table(n: int, degree: float, gap: float, dimension: int) -> None:
    if n < 1 or not 0 < gap <= 1 or dimension < 1 or degree < 0:
        raise ConfigError(
            f"found n = {n}, gap {gap}, dimension {dimension}, degree {degree}; the gap lies in "
            f"(0, 1]"
        )


def butterfly_variance(n: int, sigma: float) -> float:
    """Variance of every peer's estimate after a butterfly: that of the noisy mean, sigma^2 / n
    (gossip:MUF-X2)."""
    if n < 1 or sigma < 0:
        raise ConfigError(f"found n = {n} and sigma = {sigma}; give n >= 1 and sigma >= 0")
    return sigma**2 / n


def taper(gap: float, n: int, tau: float) -> Array:
    """Message noise: tau for ceil(log n / (2 gap)) steps, then as many shrinking by 1 - gap
    (gossip:MUF-X1)."""
    _check(gap, n, 1.0, 0)
    count = math.ceil(math.log(n) / (2 * gap)) if n > 1 else 0
    return np.concatenate([np.full(count, tau), tau * (1 - gap) ** np.arange(1.0, count + 1)])


def renoised_extra_variance(graph: Graph, tau: Sequence[float] | Array) -> float:
    """Extra variance of the network average, relative to sigma^2 / n: (1/n) sum_v s_v sum_t tau_t^2
    (gossip:MUF-X1).

    s_v = sum over neighbors of W_vw^2.

    >>> from bruit.graphs import ring
    >>> round(renoised_extra_variance(ring(8), [0.1] * 4), 11)
    0.00888888889
    """
    return float(_neighbor_squares(graph).mean() * (np.asarray(tau, dtype=np.float64) ** 2).sum())


def renoised_variance(graph: Graph, tau: Sequence[float] | Array) -> float:
    """Sum over peers of the variance of their estimates, in units of sigma^2 (gossip:MUF-X1).

    C_{t+1} = W C_t W^T + tau_t^2 diag(s), C_0 = I; the trace of the last C. 1 is the noisy mean
    everywhere; zeros for tau are gossip without message noise.
    """
    shares = _neighbor_squares(graph)
    covariance = np.eye(graph.n)
    for level in np.asarray(tau, dtype=np.float64):
        covariance = np.asarray(graph.weights @ np.asarray(graph.weights @ covariance).T)
        covariance[np.diag_indices(graph.n)] += level**2 * shares
    return float(np.trace(covariance))


def renoised_most_variance(graph: Graph, tau: Sequence[float] | Array, gap: float) -> float:
    """A bound of the same a peer, in units of sigma^2, from the gap: what is mixed completely, and what
    is left of releases and of the noise of every round's messages (gossip:MUF-X1).

    (1 + extra) / n + (1 - gap)^(2 T) + mean(s) sum_t tau_t^2 (1 - gap)^(2 (T - 1 - t))
    """
    levels, squares = np.asarray(tau, dtype=np.float64) ** 2, _neighbor_squares(graph)
    fading = (1 - min(gap, 1.0)) ** (2.0 * np.arange(len(levels))[::-1])
    mixed = (1 + renoised_extra_variance(graph, tau)) / graph.n
    left = (1 - min(gap, 1.0)) ** (2 * len(levels))
    return mixed + left + float(squares.mean() * (levels * fading).sum())


def masked_extra_variance(graph: Graph, mixing: int, tau: float, omega: float) -> float:
    """Extra variance of the average per round of masked consensus, relative to sigma^2 / n
    (gossip:MUF-X3)."""
    return omega**2 + renoised_extra_variance(graph, [tau] * mixing)


class Spread(NamedTuple):
    """How far peers are from their mean after a round, in steps of `rate`: `drift` times the longest
    gradient, and noise of variance `noise` a peer and coordinate, in units of a release's."""

    drift: float
    noise: float


def masked_spread(graph: Graph, mixing: int, tau: float, omega: float) -> Spread:
    """The distances of masked models from their mean, however many rounds there were (gossip:MUF-X3).

    With a the largest |eigenvalue|^K but that of the mean, drift = a / (1 - a), and noise = (1/n) tr
    sum_t W^(Kt) S W^(Kt) off the mean, S = W^(2K) + tau^2 sum_(k<K) W^k diag(s) W^k + omega^2 I.
    """
    squares, modes = _modes(graph, mixing)
    powers = (squares[:, None] ** np.arange(mixing)).sum(axis=1)
    shares = _neighbor_squares(graph) @ modes**2
    return _spread(squares**mixing, squares**mixing + tau**2 * powers * shares + omega**2)


def correlated_spread(graph: Graph, mixing: int, ratio: float) -> Spread:
    """The same for noise that cancels between neighbors, of `ratio` times the noise of a release
    (gossip:COR-1): noise = (1/n) tr sum_(t>=1) W^(Kt) (I + ratio^2 L) W^(Kt) off the mean."""
    squares, modes = _modes(graph, mixing)
    links = modes[graph.edges()]  # (edges, 2, modes)
    energy = ((links[:, 0] - links[:, 1]) ** 2).sum(axis=0)  # u' L u
    return _spread(squares**mixing, squares**mixing * (1 + ratio**2 * energy))


def _modes(graph: Graph, mixing: int) -> tuple[Array, Array]:
    """Squares of the eigenvalues of symmetric weights, but that of the mean, and their vectors
    # (n - 1,), (n, n - 1)."""
    weights = graph.weights.toarray()
    if not np.allclose(weights, weights.T, atol=1e-12):
        raise ConfigError(f"{graph.name} has weights that are not symmetric")
    values, vectors = np.linalg.eigh(weights)
    squares = values[:-1] ** 2
    if (squares**mixing).max(initial=0.0) >= 1 - 1e-12:
        raise ConfigError(f"peers of {graph.name} never agree; connect it")
    return squares, vectors[:, :-1]


def _spread(contraction: Array, each: Array) -> Spread:
    """What a round adds to every mode, shortened in every later one."""
    slowest = math.sqrt(float(contraction.max(initial=0.0)))
    noise = float((each / (1 - contraction)).sum()) / (len(contraction) + 1)
    return Spread(slowest / (1 - slowest), noise)


def descent_mixing(gap: float, n: int, heterogeneity: float = 0.0) -> int:
    """Exchanges per gradient of Muffliato-SGD: ceil(log max(n, heterogeneity) / sqrt(gap))
    (gossip:MUF-9).

    heterogeneity = zeta^2 / (D sigma^2 + rho^2), from public bounds.
    """
    _check(gap, n, 1.0, 0)
    return max(1, math.ceil(math.log(max(n, heterogeneity)) / math.sqrt(gap)))


def descent_error_order(
    n: int, rounds: int, smoothness: float, convexity: float, variance: float, distance: float
) -> float:
    """Order of the excess loss of Muffliato-SGD: v / (n mu T) + L ||x0 - x*||^2 exp(-T mu / (2 L)) (gossip:MUF-9).

    variance v = rho^2 + D sigma^2 of one noisy gradient, distance = ||x0 - x*||.
    """
    if not (n >= 1 and rounds >= 1 and smoothness >= convexity > 0 and variance >= 0):
        raise ConfigError(
            f"found n = {n}, {rounds} rounds, smoothness {smoothness}, strong convexity"
            f" {convexity}; give smoothness >= strong convexity > 0"
        )
    decay = math.exp(-rounds * convexity / (2 * smoothness))
    return variance / (n * convexity * rounds) + smoothness * distance**2 * decay


def _neighbor_squares(graph: Graph) -> Array:
    return (
        np.asarray(graph.weights.multiply(graph.weights).sum(axis=1)).ravel()
        - graph.self_weights() ** 2
    )


def _logarithm(n: int, sigma: float, spread: float) -> float:
    if not sigma > 0:
        raise ConfigError(
            "the horizon of noisy averaging needs sigma > 0; without noise there is no error to "
            "stop at"
        )
    return math.log(n * max(1.0, spread / sigma**2))


def _check(gap: float, n: int, sigma: float, steps: int) -> None:
    if not 0 < gap <= 1:
        raise ConfigError(
            f"the gap (or rate) must lie in (0, 1], found {gap}; with gap 0 gossip never converges"
        )
    if n < 1 or sigma < 0 or steps < 0:
        raise ConfigError(
            f"found n = {n}, sigma = {sigma}, {steps} steps; give n >= 1, sigma >= 0, steps >= 0"
        )
