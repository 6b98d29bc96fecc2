"""Compiled loops over meetings: dependency levels, so that disjoint meetings run as one batch."""

import numpy as np
from numba import njit

from bruit.arrays import Ints


@njit(cache=True, nogil=True)
def pair_levels(a: Ints, b: Ints, n: int) -> Ints:
    """Level of each meeting: one more than the last level of either peer; equal levels are disjoint."""
    free = np.zeros(n, np.int64)
    level = np.empty(len(a), np.int64)
    for e in range(len(a)):
        level[e] = max(free[a[e]], free[b[e]])
        free[a[e]] = free[b[e]] = level[e] + 1
    return level


@njit(cache=True, nogil=True)
def wake_levels(start: Ints, neighbors: Ints, woken: Ints) -> Ints:
    """Level of each wake: after the last words of the peers it reads, and not before they were last read."""
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
