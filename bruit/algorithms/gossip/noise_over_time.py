"""The noise of `mafalda` that leaves least in the models of a graph, at the same loss (gossip:COR-2).

What noise n(s), s < T, of covariance N leaves in models that keep what is put in, x(t+1) = W (x(t) +
n(t)), added up over rounds and peers, is tr(G N), for a symmetric W with

    G_st = sum over r >= s, t of W^(r-s+1) W^(r-t+1)

For N = I + B B' x (own^2 I + pair^2 L) only W's eigenvalues l_i and c_i = q_i' L q_i are needed:

    tr(G N) = sum_s H(1)_ss + sum_st (B B')_st H(own^2 + pair^2 c)_st
    H(a)_st = sum over r >= s, t of sum_i a_i l_i^(2r - s - t + 2)

so that a matrix of (T n)^2 numbers is never made. No data are read.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, NamedTuple, cast

import numpy as np

from bruit.arrays import Array
from bruit.errors import ConfigError
from bruit.graphs import Graph
from bruit.privacy.exact import FINENESS, CorrelatedNoise, correlated_losses, edge_parts, tap_matrix

MOST_ROUNDS, MOST_PEERS, MOST_OWN, TRIED, FAR = 512, 2500, 64.0, 70, 5.0
STARTS = ((1.5, 0.0, 0.3), (3.0, 0.0, 1.5))
"""Where searches begin: logarithms of own, of the odds of the first part, and of fall."""
WORTH = 0.999  # of what fresh noise leaves: what a search may think it gained


def noise_kept(graph: Graph, noise: CorrelatedNoise, rounds: int) -> float:
    """tr(G N) of a coordinate, in units of the release's variance.

    >>> from bruit.graphs import complete
    >>> round(noise_kept(complete(4), CorrelatedNoise(), 3), 9)  # 1 + 2 + 3 of n means
    6.0
    """
    if graph.n > MOST_PEERS:
        raise ConfigError(
            f"what noise leaves in models is computed for up to {MOST_PEERS} peers, found {graph.n}"
        )
    if not graph.validity().symmetric:
        raise ConfigError(
            f"what noise leaves in models is computed for symmetric weights, and {graph.name} has"
            " others"
        )
    values, modes = np.linalg.eigh(graph.weights.toarray())
    shares = np.full(graph.n, noise.own**2)
    if noise.pair:
        parts = edge_parts(graph.degrees, graph.edges()) if noise.by_degree else 1.0
        apart = modes[graph.edges()[:, 0]] - modes[graph.edges()[:, 1]]
        shares = shares + noise.pair**2 * (parts * apart.T) ** 2 @ np.ones(len(apart))
    used = tap_matrix(noise.taps, rounds)
    plain = np.trace(_heard(values, np.ones(graph.n), rounds))
    return float(plain + np.sum((used @ used.T) * _heard(values, shares, rounds)))


def _heard(values: Array, shares: Array, rounds: int) -> Array:
    """H(a)  # (rounds, rounds)."""
    powers = np.power.outer(values, np.arange(2, 2 * rounds + 1)).T @ shares
    s, t = np.indices((rounds, rounds))
    apart, left = np.abs(s - t), rounds - np.maximum(s, t)
    sums = np.zeros((rounds, rounds + 1))  # [d, k]: k terms l^(d + 2), l^(d + 4), ...
    for d in range(rounds):
        terms = powers[d : d + 2 * (rounds - d) : 2]
        sums[d, 1 : len(terms) + 1] = np.cumsum(terms)
    return np.asarray(sums[apart, left])


class NoiseOverTime(NamedTuple):
    """`own` and `back` of mafalda, and what they leave in the models as a part of what fresh noise of
    the same loss leaves."""

    own: float
    back: tuple[float, ...]
    share: float


def designed(graph: Graph, rounds: int, cycle: int, parts: int) -> NoiseOverTime:
    """The best that a search finds among back_k = first k^-fall, k = 1 .. parts; no noise beside the
    release's where that leaves hardly more."""
    from scipy.optimize import minimize

    if not (1 <= rounds <= MOST_ROUNDS and cycle >= 1 and parts >= 1):
        raise ConfigError(
            f"noise is designed for 1 to {MOST_ROUNDS} rounds, a cycle and a number of parts of at"
            f" least 1, found {rounds}, {cycle} and {parts}"
        )
    plain = noise_kept(graph, CorrelatedNoise(), rounds) * math.ceil(rounds / cycle)

    def noise(x: Array) -> CorrelatedNoise:
        size, odds, fall = (math.exp(-number) for number in np.clip(x, -FAR, FAR).tolist())
        taps = (-(k ** -(1 / fall)) / (1 + odds) for k in range(1, parts + 1))
        return CorrelatedNoise(min(1 / size, MOST_OWN), 0.0, (1.0, *taps), cycle)

    def share(found: CorrelatedNoise) -> float:
        loss = float(correlated_losses(graph, found, rounds, ())[0])
        return loss * noise_kept(graph, found, rounds) / plain

    options = {"maxfev": TRIED}
    answers: list[Any] = [
        cast(Any, minimize)(
            lambda x: math.log(share(noise(x))), start, method="Nelder-Mead", options=options
        )
        for start in STARTS
    ]
    best = _written(noise(min(answers, key=lambda one: float(one.fun)).x))
    least = share(best)
    if least > WORTH:
        return NoiseOverTime(0.0, (), 1.0)
    return NoiseOverTime(best.own, tuple(0.0 - tap for tap in best.taps[1:]), least)


def _written(noise: CorrelatedNoise) -> CorrelatedNoise:
    """With the digits that a file has, and parts that are exact."""
    taps = tuple(round(FINENESS * tap) / FINENESS for tap in noise.taps)
    return replace(noise, own=float(f"{noise.own:.3g}"), taps=taps)
