"""Rules that mix what neighbors say although some of them may lie (gossip:LIE-1).

    x_i <- x_i + step * sum_j a_ij (m_j - x_i),   0 <= a_ij <= W_ij,   r_ij = |m_j - x_i|

    clip       a_ij = W_ij min(1, t_i / r_ij),  t_i the largest r such that neighbors at least so far weigh 2 b
    mean-clip  the same with t_i^2 = (1/b) * sum of W_ij r_ij^2 without the farthest weight b
    trim       the farthest weight b has a_ij = 0, the rest is whole

b is the weight of liars that is tolerated at every peer; b = 0 is plain mixing. `floor` is a
distance within which nobody is cut: what noise alone puts between honest messages. Whatever liars of
weight b say, the sum is near that over honest neighbors with their whole weights, rho being `tolerance.ERROR`:

    |difference|^2 <= rho b sum over honest j of W_ij r_ij^2 + 2 b^2 floor^2

Rules: CS+, ClippedGossip and geometric trimming of the frame of arXiv:2410.10418; the second is
arXiv:2202.01545, the third also nearest neighbor averaging (arXiv:2302.01772).
"""

from __future__ import annotations

from typing import cast

import numpy as np
from scipy.sparse import csr_array

from bruit.algorithms.messages import Inbox
from bruit.arrays import Array, Bools, Ints

GRAINS = 2.0**40
"""Weights are counted in whole grains: sums that decide have no order, and every engine the same."""
SLACK = 1e-9
"""What is left of a weight, relative, counts as nothing."""
FARTHEST = 1e100
"""A number that differs by more, or is none, differs by so much: of this there are squares."""


def robust_mix(
    rule: str, tolerate: float, inbox: Inbox, own: Array, step: float, floor: float = 0.0
) -> Array:
    """The rows after one exchange by a rule; flows that come after their round are left out.

    `own` is what each lane said itself, or would have  # (lanes, d).
    """
    links = inbox.links
    lanes = np.repeat(np.arange(len(links.ids)), np.diff(links.start))
    moves = inbox.copies() - own[lanes]
    if tolerate > 0:
        moves = np.where(np.abs(moves) <= FARTHEST, moves, FARTHEST)
    far = np.sqrt(np.einsum("kd,kd->k", moves, moves))
    shares = _shares(rule, tolerate, links.start, links.weights, far, floor)
    columns = np.arange(len(lanes))
    sums = csr_array((shares, columns, links.start), shape=(len(links.ids), len(lanes))) @ moves
    return cast(Array, own + step * sums)


def _shares(
    rule: str, tolerate: float, start: Ints, weights: Array, far: Array, floor: float
) -> Array:
    """a_ij of every copy  # (copies,)."""
    if tolerate <= 0:
        return weights
    if rule == "trim":
        return np.where(far <= floor, weights, _near(tolerate, start, weights, far))
    limits = (_tail if rule == "clip" else _mean)(tolerate, start, weights, far)
    limits = np.repeat(np.maximum(limits, floor), np.diff(start))
    beyond = far > limits
    return weights * np.divide(limits, far, out=np.ones_like(far), where=beyond)


def _ranked(start: Ints, weights: Array, far: Array) -> tuple[Ints, Ints, Ints]:
    """The copies, in every lane the farthest first; whole grains in the weight of each, and of those
    before it: so that liars of weight b are not counted as more, and nothing of them is kept."""
    order, degree = np.empty(len(far), np.int64), np.diff(start)
    for size in np.unique(degree[degree > 0]):  # lanes of one degree are a table
        copies = start[:-1][degree == size, None] + np.arange(size)
        farthest = np.argsort(-far[copies], axis=1, kind="stable")
        order[copies] = np.take_along_axis(copies, farthest, axis=1)
    grains = np.floor(weights[order] * GRAINS).astype(np.int64)
    total = np.concatenate(([0], np.cumsum(grains)))
    return order, grains, total[:-1] - np.repeat(total[start[:-1]], degree)


def _tail(tolerate: float, start: Ints, weights: Array, far: Array) -> Array:
    """t_i of `clip`; 0 where all neighbors weigh less than 2 b  # (lanes,)."""
    order, grains, before = _ranked(start, weights, far)
    need = 2 * tolerate * GRAINS * (1 - SLACK)
    reached: Bools = (before < need) & (before + grains >= need)
    lanes = np.repeat(np.arange(len(start) - 1), np.diff(start))
    limits = np.zeros(len(start) - 1)
    limits[lanes[reached]] = far[order[reached]]
    return limits


def _near(tolerate: float, start: Ints, weights: Array, far: Array) -> Array:
    """The weights without the farthest b of every lane  # (copies,)."""
    order, grains, before = _ranked(start, weights, far)
    left = tolerate * GRAINS * (1 + SLACK) - before  # still to be cut
    share = 1 - np.maximum(left, 0) / np.maximum(grains, 1)
    kept = np.empty(len(weights))
    kept[order] = np.where(left >= grains, 0.0, weights[order] * share)
    return kept


def _mean(tolerate: float, start: Ints, weights: Array, far: Array) -> Array:
    """t_i of `mean-clip`  # (lanes,)."""
    kept = _near(tolerate, start, weights, far)
    lanes = np.repeat(np.arange(len(start) - 1), np.diff(start))
    return np.sqrt(np.bincount(lanes, kept * far**2, len(start) - 1) / tolerate)
