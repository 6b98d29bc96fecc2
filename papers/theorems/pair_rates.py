"""How fast gossip over pairs of points converges: rates of GoSta and of gossip dual averaging
(perso:PAIR-3, PAIR-8).

    |E z(t) - U 1| <= (|h - U 1| + |H - h 1'|_F) / (c t)         c = lambda_2(L) / (2 |E|)

L: the Laplacian of the graph, H: all values of the kernel, h: its row means, |.|_F the root of the
sum of squares. The print has the largest singular value instead and c twice as large, and is too
small for some kernels. Any connected graph of at least two edges will do, a bipartite one too.
Proof: docs/theory/perso/pairwise.md.
"""

from __future__ import annotations

import math

import numpy as np

from bruit.arrays import Array, Ints
from bruit.errors import ConfigError


def contraction(edges: Ints, n: int) -> float:
    """c = lambda_2(L) / (2 |E|) of the graph with these edges  # dense: up to some thousand
    peers."""
    laplacian = _laplacian(edges, n)
    gap = float(np.linalg.eigvalsh(laplacian)[1])
    if len(edges) < 2 or gap <= 1e-12:
        raise ConfigError(
            "the rate is that of a connected graph of at least two edges; this one is not"
        )
    return gap / (2 * len(edges))


def gosta_bound(values: Array, c: float, t: int) -> float:
    """The bound on |E z(t) - U 1| after t rounds, from all values h(x_u, x_v) (0 on the diagonal)
    (perso:PAIR-3)."""
    means = values.mean(axis=1)
    return float(np.linalg.norm(means - means.mean()) + np.linalg.norm(values - means[:, None])) / (
        c * t
    )


def expected_estimates(values: Array, edges: Ints, t: int) -> Array:
    """E z(t) of synchronous GoSta exactly, in the n^2 form, by following expectations: O(t n^2)
    # (n,)."""
    n = len(values)
    laplacian = _laplacian(edges, n) / len(edges)
    averaging, swapping = np.eye(n) - laplacian / 2, np.eye(n) - laplacian
    z, places = np.zeros(n), np.eye(n)
    for number in range(1, t + 1):
        z = averaging @ ((number - 1) / number * z + (places * values).sum(axis=1) / number)
        places = swapping @ places
    return z


def dual_averaging_bound(
    distance: float, lipschitz: float, c: float, rate: float, rounds: int
) -> float:
    """C1 + C2 of the bound on E F(mean model) - F*, on average over peers, for gamma(t) = rate /
    sqrt(t); the bias term C3 is measured, not bounded (perso:PAIR-8). distance: |x*|; c as in
    `contraction`."""
    steps = rate * float(np.sum(1 / np.sqrt(np.arange(1, rounds))))
    first = (
        distance**2 * math.sqrt(rounds) / (2 * rounds * rate) + lipschitz**2 / (2 * rounds) * steps
    )
    return first + 3 * lipschitz**2 / (rounds * (1 - math.sqrt(1 - c))) * steps


def _laplacian(edges: Ints, n: int) -> Array:
    laplacian = np.zeros((n, n))
    for a, b in ((0, 1), (1, 0)):
        np.add.at(laplacian, (edges[:, a], edges[:, a]), 1.0)
        np.add.at(laplacian, (edges[:, a], edges[:, b]), -1.0)
    return laplacian
