"""Compiled loops of gossip over pairs of points: who holds what, running means of h, and gradients
of scores."""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from bruit.arrays import Array, Ints


@njit(cache=True, nogil=True)
def swap_meetings(a: Ints, b: Ints, origin: Ints) -> tuple[Ints, Ints]:
    """What both ends of each meeting hold when they meet; then they swap. `origin` ends as it is
    after all of them."""
    here, there = np.empty(len(a), np.int64), np.empty(len(a), np.int64)
    for t in range(len(a)):
        here[t], there[t] = origin[a[t]], origin[b[t]]
        origin[a[t]], origin[b[t]] = there[t], here[t]
    return here, there


@njit(cache=True, nogil=True)
def average_meetings(
    a: Ints, b: Ints, value_a: Array, value_b: Array, z: Array, count: Ints
) -> None:
    """Both ends of each meeting take the mean of their estimates, then a running mean with their
    own h."""
    for t in range(len(a)):
        i, j = a[t], b[t]
        count[i] += 1
        count[j] += 1
        for k in range(z.shape[1]):
            middle = (z[i, k] + z[j, k]) / 2
            z[i, k] = (1.0 - 1.0 / count[i]) * middle + value_a[t, k] / count[i]
            z[j, k] = (1.0 - 1.0 / count[j]) * middle + value_b[t, k] / count[j]


@njit(cache=True, nogil=True)
def average_rounds(
    a: Ints, b: Ints, value_a: Array, value_b: Array, total: Array, value: Array, first: int
) -> None:
    """total = t z after round t, from `first` on: everybody adds its h each round, the ends of the
    edge average.

    value holds h of the points each peer holds, value_a and value_b what it becomes at the ends of
    each edge.
    """
    seen = np.full(len(total), first)  # the round up to which a peer's total is known
    for t in range(len(a)):
        now = first + t + 1
        i, j = a[t], b[t]
        for k in range(total.shape[1]):
            mine = total[i, k] + (now - seen[i]) * value[i, k]
            other = total[j, k] + (now - seen[j]) * value[j, k]
            total[i, k] = total[j, k] = (mine + other) / 2
            value[i, k], value[j, k] = value_a[t, k], value_b[t, k]
        seen[i] = seen[j] = now
    for u in range(len(total)):
        for k in range(total.shape[1]):
            total[u, k] += (first + len(a) - seen[u]) * value[u, k]


@njit(cache=True, nogil=True)
def stays(
    a: Ints, b: Ints, c: Ints, d: Ints, one: Ints, two: Ints
) -> tuple[Ints, Ints, Ints, Ints]:
    """Who held which two points for how many rounds, when in round t the first ones of a, b and the
    second ones of c, d are swapped: peer, origin of the first, origin of the second, rounds. `one`
    and `two` end as they are at the end."""
    n, steps = len(one), len(a)
    size = 4 * steps + n
    who, left, right = np.empty(size, np.int64), np.empty(size, np.int64), np.empty(size, np.int64)
    rounds = np.empty(size, np.int64)
    since = np.zeros(n, np.int64)
    count = 0
    for t in range(steps):
        for peer in (a[t], b[t], c[t], d[t]):
            if since[peer] < t:
                who[count], left[count], right[count], rounds[count] = (
                    peer,
                    one[peer],
                    two[peer],
                    t - since[peer],
                )
                since[peer] = t
                count += 1
        one[a[t]], one[b[t]] = one[b[t]], one[a[t]]
        two[c[t]], two[d[t]] = two[d[t]], two[c[t]]
    for peer in range(n):
        if since[peer] < steps:
            who[count], left[count], right[count], rounds[count] = (
                peer,
                one[peer],
                two[peer],
                steps - since[peer],
            )
            count += 1
    return who[:count], left[:count], right[:count], rounds[:count]


@njit(cache=True, nogil=True)
def slope(margin: float, hinge: bool) -> float:
    """The derivative of the logistic loss log(1 + e^-m), or of the hinge that is rounded between 0
    and 1."""
    if hinge:
        return -min(max(1.0 - margin, 0.0), 1.0)
    return -1.0 / (1.0 + math.exp(min(margin, 700.0)))


@njit(cache=True, nogil=True)
def dual_rounds(
    a: Ints,
    b: Ints,
    points: Array,
    origin: Ints,
    z: Array,
    model: Array,
    mean: Array,
    first: int,
    rate: float,
    l1: float,
    l2: float,
    ball: float,
    hinge: bool,
) -> None:
    """Synchronous dual averaging of a loss of two scores: points are rows (features, label); ball =
    inf for none."""
    n, p = model.shape
    for s in range(len(a)):
        t = first + s + 1
        i, j = a[s], b[s]
        origin[i], origin[j] = origin[j], origin[i]
        for k in range(p):
            z[i, k] = z[j, k] = (z[i, k] + z[j, k]) / 2
        gamma = rate / math.sqrt(t)
        for u in range(n):
            v = origin[u]
            if v != u and points[u, p] > points[v, p]:
                margin = 0.0
                for k in range(p):
                    margin += model[u, k] * (points[u, k] - points[v, k])
                pull = slope(margin, hinge)
                for k in range(p):
                    z[u, k] += pull * (points[u, k] - points[v, k])
            norm = 0.0
            for k in range(p):
                kept = max(abs(z[u, k]) - t * l1, 0.0)
                model[u, k] = -math.copysign(gamma * kept, z[u, k]) / (1.0 + 2.0 * l2 * t * gamma)
                norm += model[u, k] ** 2
            shrink = min(1.0, ball / math.sqrt(norm)) if norm > 0.0 else 1.0
            for k in range(p):
                model[u, k] *= shrink
                mean[u, k] += (model[u, k] - mean[u, k]) / t
