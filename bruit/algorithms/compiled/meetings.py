"""Compiled loops over meetings: dependency levels, so that disjoint ones run as one batch, and
averages of pairs."""

from typing import Any

import numpy as np
from numba import njit

from bruit.arrays import Array, Ints

U = np.uint64  # unsigned indices need no test for negative ones


@njit(cache=True, nogil=True)
def pair_levels(a: Ints, b: Ints, n: int) -> Ints:
    """Level of each meeting: one more than the last level of either peer; equal levels are
    disjoint."""
    free = np.zeros(n, np.int64)
    level = np.empty(len(a), np.int64)
    for e in range(len(a)):
        level[e] = max(free[a[e]], free[b[e]])
        free[a[e]] = free[b[e]] = level[e] + 1
    return level


@njit(cache=True, nogil=True)
def wake_levels(start: Ints, neighbors: Ints, woken: Ints) -> Ints:
    """Level of each wake: after the last words of the peers it reads, and not before they were last
    read."""
    n = len(start) - 1
    spoke = np.zeros(n, np.int64)  # first level at which the peer's latest words can be read
    heard = np.zeros(n, np.int64)  # last level at which the peer's earlier words were read
    level = np.empty(len(woken), np.int64)
    for e in range(len(woken)):
        v = woken[e]
        when = max(spoke[v], heard[v])
        for k in range(start[v], start[v + 1]):
            when = max(when, spoke[neighbors[k]])
        level[e] = when
        spoke[v] = when + 1
        for k in range(start[v], start[v + 1]):
            heard[neighbors[k]] = max(heard[neighbors[k]], when)
    return level


@njit(cache=True, nogil=True, boundscheck=False)
def find_entries(uniform: Array, law: Array, guide: Any, entries: Any) -> None:
    """The first entry with law[entry] >= u for every uniform number u: bisection without bisecting.

    guide[k] is the first entry with law[entry] >= k / len(guide); with len(guide) a power of two
    the product is exact and the search starts a step or two before its end. These two are taken
    without a branch, which would often be mispredicted.
    """
    cells = float(len(guide))
    for t in range(len(uniform)):
        u = uniform[t]
        entry = guide[U(np.int64(u * cells))]
        entry += np.int32(law[U(entry)] < u)
        entry += np.int32(law[U(entry)] < u)
        while law[U(entry)] < u:
            entry += 1
        entries[t] = entry


@njit(cache=True, nogil=True, boundscheck=False)
def average_numbers(entries: Any, ends: Any, x: Array) -> int:
    """Both ends of each entry take the mean of their numbers, in order; how many were not idle (an
    end met itself)."""
    active = 0
    for t in range(len(entries)):
        i, j = U(ends[U(entries[t]), 0]), U(ends[U(entries[t]), 1])
        active += i != j
        x[i] = x[j] = 0.5 * (x[i] + x[j])
    return active


@njit(cache=True, nogil=True, boundscheck=False)
def average_rows(entries: Any, ends: Any, x: Array) -> int:
    """`average_numbers` for rows of several numbers."""
    active = 0
    for t in range(len(entries)):
        i, j = U(ends[U(entries[t]), 0]), U(ends[U(entries[t]), 1])
        active += i != j
        for k in range(x.shape[1]):
            x[i, k] = x[j, k] = 0.5 * (x[i, k] + x[j, k])
    return active
