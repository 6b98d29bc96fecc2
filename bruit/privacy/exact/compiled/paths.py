"""Compiled loops over a path that a token took: which visits contribute, and path energies."""

import numpy as np
from numba import njit

from bruit.arrays import Array, Bools, Ints


@njit(cache=True, nogil=True, boundscheck=False)
def contributions(path: Ints, spent: Ints, latest: Ints, cap: int, rest: int) -> tuple[Bools, Ints]:
    """At which hops the holder contributes, and its own count of visits; brings `spent` and
    `latest` up to date."""
    may, step = np.empty(len(path), np.bool_), np.empty(len(path), np.int64)
    count = np.zeros(len(spent), np.int64)
    for t in range(len(path)):
        v = path[t]
        count[v] += 1
        step[t] = count[v]
        may[t] = t - latest[v] >= rest and (cap < 0 or spent[v] < cap)
        if may[t]:
            spent[v] += 1
            latest[v] = t
    return may, step


@njit(cache=True, nogil=True)
def _energy(times: Ints, count: int, length: int, hull_x: Array, hull_y: Array) -> float:
    """Path energy of contributions at the given 1-based steps of a segment (walk:F-2): lower hull
    of the corners (0, 0), (t_j - 1, j - 1), (length, count); sum of dy^2 / dx over its edges."""
    size = 0
    for j in range(count + 2):
        if j == 0:
            x, y = 0.0, 0.0
        elif j == count + 1:
            x, y = float(length), float(count)
        else:
            x, y = float(times[j - 1] - 1), float(j - 1)
        while size >= 2 and (hull_y[size - 1] - hull_y[size - 2]) * (x - hull_x[size - 2]) >= (
            y - hull_y[size - 2]
        ) * (hull_x[size - 1] - hull_x[size - 2]):
            size -= 1
        hull_x[size], hull_y[size] = x, y
        size += 1
    energy = 0.0
    for k in range(1, size):
        width = hull_x[k] - hull_x[k - 1]
        if width > 0.0:
            energy += (hull_y[k] - hull_y[k - 1]) ** 2 / width
    return energy


@njit(cache=True, nogil=True)
def energies(path: Ints, contributed: Bools, watching: Bools) -> Array:
    """X_u: total path energy of every peer's contributions in the watchers' view (walk:RW-6),
    O(steps)."""
    n, steps = len(watching), len(path)
    total = np.zeros(n)
    head = np.full(n, -1, np.int64)  # last contribution of each peer in the open segment
    before = np.full(steps, -1, np.int64)  # the peer's contribution before that one
    when = np.zeros(steps, np.int64)  # 1-based step within the segment
    touched = np.empty(steps, np.int64)
    times = np.empty(steps + 1, np.int64)
    hull_x, hull_y = np.empty(steps + 2), np.empty(steps + 2)
    length, marks = 0, 0
    for t in range(steps):
        v = path[t]
        if watching[v]:
            for k in range(marks):
                u = touched[k]
                count, entry = 0, head[u]
                while entry >= 0:
                    count += 1
                    entry = before[entry]
                entry = head[u]
                for j in range(count - 1, -1, -1):
                    times[j] = when[entry]
                    entry = before[entry]
                total[u] += _energy(times, count, length, hull_x, hull_y)
                head[u] = -1
            length, marks = 0, 0
            continue
        length += 1
        if contributed[t]:
            if head[v] < 0:
                touched[marks] = v
                marks += 1
            before[t], when[t] = head[v], length
            head[v] = t
    return total
