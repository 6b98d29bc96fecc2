"""Compiled steps on collaboration weights: O(sampled) a wake-up, pairs kept in a table of open
addressing."""

import numpy as np
from numba import njit

from bruit.arrays import Array, Ints

EMPTY = -1
_SPREAD = np.uint64(0x9E3779B97F4A7C15)


@njit(cache=True, nogil=True)
def sample_peers(woken: Ints, uniform: Array, n: int) -> Ints:
    """For every wake-up, different peers other than itself, uniformly, by Floyd's rule on one
    uniform number each."""
    wakes, count = uniform.shape
    chosen = np.empty((wakes, count), np.int64)
    for t in range(wakes):
        for k in range(count):
            most = n - 1 - count + k
            pick = np.int64(uniform[t, k] * (most + 1))
            for seen in range(k):
                if chosen[t, seen] == pick:
                    pick = most
                    break
            chosen[t, k] = pick
        for k in range(count):
            chosen[t, k] += chosen[t, k] >= woken[t]
    return chosen


@njit(cache=True, nogil=True)
def _place(keys: Ints, key: int) -> np.int64:
    """Where the key lies, or the free place it would take; the length of the table is a power of
    two."""
    mask = np.uint64(len(keys) - 1)
    at = (np.uint64(key) * _SPREAD >> np.uint64(20)) & mask
    while keys[at] != EMPTY and keys[at] != key:
        at = (at + np.uint64(1)) & mask
    return np.int64(at)


@njit(cache=True, nogil=True)
def fill(keys: Ints, values: Array, known: Ints, weights: Array) -> None:
    """Enter pairs into an empty table."""
    for k in range(len(known)):
        at = _place(keys, known[k])
        keys[at], values[at] = known[k], weights[k]


@njit(cache=True, nogil=True)
def graph_steps(
    woken: Ints,
    sampled: Ints,
    models: Array,
    costs: Array,
    degrees: Array,
    keys: Ints,
    values: Array,
    coupling: float,
    spread: float,
    sparsity: float,
    floor: float,
    rate: float,
    farthest: float,
) -> None:
    """Each woken peer moves its weights to the sampled peers down the slope and never below zero
    (perso:PERSO-7).

    Weights, in the table, and degrees are changed in place; pairs further apart than `farthest`
    (squared) get none.
    """
    n, d = models.shape
    count = sampled.shape[1]
    move = np.empty(count)
    for t in range(len(woken)):
        u = woken[t]
        lonely = 1.0 / (degrees[u] + floor)
        for k in range(count):
            v = sampled[t, k]
            apart = 0.0
            for j in range(d):
                apart += (models[u, j] - models[v, j]) ** 2
            at = _place(keys, min(u, v) * n + max(u, v))
            w = values[at] if keys[at] != EMPTY else 0.0
            slope = costs[u] + costs[v] + 0.5 * coupling * apart
            slope += spread * (2.0 * sparsity * w - lonely - 1.0 / (degrees[v] + floor))
            fresh = max(0.0, w - rate * slope) if apart <= farthest else 0.0
            move[k] = fresh - w
            if fresh > 0.0 or keys[at] != EMPTY:
                keys[at], values[at] = min(u, v) * n + max(u, v), fresh
        for k in range(count):
            degrees[u] += move[k]
            degrees[sampled[t, k]] += move[k]
        degrees[u] = max(degrees[u], 0.0)
