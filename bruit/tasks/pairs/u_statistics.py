"""Complete U-statistics: the average of a kernel over all pairs of users (perso:PAIR-1).

    classical      U_cl = 2 / (n (n - 1)) * sum over u < v of h(x_u, x_v)
    square form    U    = 1 / n^2 * sum over u != v of h(x_u, x_v) = (n - 1) / n * U_cl          (what gossip estimates)

A peer with several points counts once: h(x_u, x_v) becomes the average over D_u x D_v. Kernels with
a faster sum use it, the others are summed over blocks of pairs, so that memory stays small.
"""

from __future__ import annotations

import numpy as np

from bruit.arrays import Array, Ints
from bruit.errors import ConfigError
from bruit.tasks.pairs.kernels import Kernel, as_points, check_bounds, check_kernel, duplicates
from bruit.tasks.pairs.ranking import concordance

BLOCK = 1024  # rows and columns of a block: some 8 MiB a temporary


def u_statistic(points: Array, kernel: Kernel) -> float:
    """The classical U-statistic over points, one a user.

    >>> from bruit.tasks.pairs.kernels import gini
    >>> round(u_statistic(np.array([1.0, 4.0, 2.0, 8.0]), gini()), 9)
    3.833333333
    """
    rows = as_points(points, kernel)
    check_kernel(kernel, rows)
    n = len(rows)
    total = kernel.total(rows) if kernel.total is not None else row_sums(rows, kernel).sum() / 2
    return float(total) / (n * (n - 1) / 2)


def square_form(points: Array, kernel: Kernel) -> float:
    """The n^2 form, in which a user's pair with itself counts 0.

    >>> from bruit.tasks.pairs.kernels import gini
    >>> square_form(np.array([1.0, 4.0, 2.0, 8.0]), gini())
    2.875
    """
    n = len(points)
    return (n - 1) / n * u_statistic(points, kernel)


def row_means(points: Array, kernel: Kernel) -> Array:
    """(1 / n) * sum over v != u of h(x_u, x_v), for each u; their mean is the square form
    # (n,)."""
    rows = as_points(points, kernel)
    check_kernel(kernel, rows)
    return row_sums(rows, kernel) / len(rows)


def peer_statistic(points: Array, owners: Ints, kernel: Kernel) -> float:
    """The classical U-statistic over peers that own several points each: pairs of points are
    averaged by pair of peers.

        2 / (n (n - 1)) * sum over u < v of (1 / (m_u m_v)) * sum over D_u x D_v of h
    """
    rows = as_points(points, kernel)
    check_kernel(kernel, rows)
    names, peers, sizes = np.unique(np.asarray(owners), return_inverse=True, return_counts=True)
    if len(peers) != len(rows):
        raise ConfigError(
            f"each point has one owner, found {len(peers)} owners for {len(rows)} points"
        )
    n = len(names)
    if n < 2:
        raise ConfigError("a pairwise statistic over peers needs at least two owners, found 1")
    sums = row_sums(rows, kernel, 1.0 / sizes[peers], peers.astype(np.int64))
    return float((sums / sizes[peers]).sum() / (n * (n - 1)))


def row_sums(
    rows: Array, kernel: Kernel, weights: Array | None = None, owners: Ints | None = None
) -> Array:
    """Sum over v of weight_v h(x_u, x_v), without v of the same owner (by default: without v = u)
    # (n,)."""
    n = len(rows)
    weights = np.ones(n) if weights is None else weights
    owners = np.arange(n) if owners is None else owners
    sums = np.zeros(n)
    for top in range(0, n, BLOCK):
        upper = slice(top, top + BLOCK)
        for left in range(top, n, BLOCK):
            side = slice(left, left + BLOCK)
            apart = owners[upper, None] != owners[None, side]
            values = kernel(rows[upper, None], rows[None, side])
            check_bounds(kernel, values[apart])
            values = values * apart
            sums[upper] += values @ weights[side]
            if left > top:  # the kernel is symmetric: one block serves both triangles
                sums[side] += weights[upper] @ values
    return sums


def kendall_tau(x: Array, y: Array) -> float:
    """Kendall's tau-a: (concordant - discordant) / number of pairs, in O(n log n).

    >>> kendall_tau(np.array([1.0, 2.0, 3.0]), np.array([1.0, 3.0, 2.0])) == 1 / 3
    True
    """
    x, y = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    if x.shape != y.shape or x.ndim != 1 or len(x) < 2:
        raise ConfigError(
            f"Kendall's tau needs two columns of at least two numbers, found {x.shape} and "
            f"{y.shape}"
        )
    agree, disagree = concordance(x, y)
    return (agree - disagree) / (len(x) * (len(x) - 1) / 2)


def renyi_entropy(points: Array) -> float:
    """Renyi's entropy of order 2, -log of the chance that two users hold the same point; infinite
    without any."""
    same = u_statistic(points, duplicates())
    return float(-np.log(same)) if same > 0 else float("inf")
