"""Arithmetic modulo a prime near 2^24 on float64 arrays: sparse products and incremental row
elimination.

Residues are integers in [-p/2, p/2], held in float64: a product is below 2^46, so 64 of them add up
below 2^52 and every operation, fused or not, is exact. This vectorizes, which 64-bit integer
products do not.
"""

import math

import numba as nb
import numpy as np

from bruit.arrays import Array, Bools, Ints

GROUP = 32
"""Most rows eliminated together; sums of 32 products stay exact."""


@nb.njit(nogil=True, cache=True, fastmath={"contract"})
def multiply(indptr: Ints, indices: Ints, residues: Array, x: Array, out: Array, p: float) -> None:
    """out = W x modulo p, for W in CSR form and x of shape (n, s), both reduced."""
    inverse = 1.0 / p
    width = x.shape[1]
    for i in range(indptr.size - 1):
        row = out[i]
        for j in range(width):
            row[j] = 0.0
        pending = 0
        for k in range(indptr[i], indptr[i + 1]):
            weight = residues[k]
            source = x[indices[k]]
            for j in range(width):
                row[j] += weight * source[j]
            pending += 1
            if pending == 60:
                for j in range(width):
                    row[j] -= p * math.floor(row[j] * inverse + 0.5)
                pending = 0
        for j in range(width):
            row[j] -= p * math.floor(row[j] * inverse + 0.5)


@nb.njit(nogil=True, cache=True, fastmath={"contract", "reassoc", "nsz"})
def rows_times(matrix: Array, rows: Ints, x: Array, p: float) -> Array:
    """Some rows of a matrix times each row of x modulo p; the rows of x may be shorter than those
    of the matrix."""
    inverse = 1.0 / p
    count, width = x.shape
    out = np.zeros((rows.size, count))
    for i in range(rows.size):
        row = matrix[rows[i]]
        for first in range(0, width, 60):
            last = min(first + 60, width)
            part = row[first:last]
            for c in range(count):
                other = x[c, first:last]
                total = 0.0
                for j in range(part.size):
                    total += part[j] * other[j]
                total += out[i, c]
                out[i, c] = total - p * math.floor(total * inverse + 0.5)
    return out


@nb.njit(nogil=True, cache=True)
def _inverse(value: float, p: float) -> float:
    """The inverse of a non-zero residue, by the extended Euclidean algorithm."""
    modulus = np.int64(p)
    a = np.int64(value) % modulus
    b = modulus
    u = np.int64(1)
    v = np.int64(0)
    while b != 0:
        q = a // b
        a, b = b, a - q * b
        u, v = v, u - q * v
    u %= modulus
    if 2 * u > modulus:
        u -= modulus
    return float(u)


@nb.njit(nogil=True, cache=True, fastmath={"contract"})
def _subtract(first: Array, second: Array, pivots: Array, factors: Array, low: int) -> None:
    """first, second -= factors[0], factors[1] times the pivot rows, from column low on; the caller
    reduces.

    Two rows and four pivots at a time: each pivot row is loaded once for two uses, each row once
    for four.
    """
    count = pivots.shape[0]
    k = 0
    while k + 4 <= count:
        a0, a1, a2, a3 = factors[0, k], factors[0, k + 1], factors[0, k + 2], factors[0, k + 3]
        b0, b1, b2, b3 = factors[1, k], factors[1, k + 1], factors[1, k + 2], factors[1, k + 3]
        u0, u1, u2, u3 = pivots[k], pivots[k + 1], pivots[k + 2], pivots[k + 3]
        for j in range(low, first.size):
            first[j] -= a0 * u0[j] + a1 * u1[j] + a2 * u2[j] + a3 * u3[j]
            second[j] -= b0 * u0[j] + b1 * u1[j] + b2 * u2[j] + b3 * u3[j]
        k += 4
    while k < count:
        a0, b0, u0 = factors[0, k], factors[1, k], pivots[k]
        for j in range(low, first.size):
            first[j] -= a0 * u0[j]
            second[j] -= b0 * u0[j]
        k += 1


@nb.njit(nogil=True, cache=True, fastmath={"contract"})
def _reduce(row: Array, low: int, p: float) -> None:
    inverse = 1.0 / p
    for j in range(low, row.size):
        row[j] -= p * math.floor(row[j] * inverse + 0.5)


@nb.njit(nogil=True, cache=True)
def _first(row: Array, low: int) -> int:
    """The first column from low on with a non-zero entry; the width if there is none."""
    for j in range(low, row.size):
        if row[j] != 0.0:
            return j
    return row.size


@nb.njit(nogil=True, cache=True)
def _clear(
    rows: Array, echelon: Array, columns: Ints, groups: Ints, group_count: int, p: float
) -> None:
    """Reduce rows by every group of pivot rows found so far, two rows at a time."""
    factors = np.zeros((2, GROUP))
    spare = np.zeros(rows.shape[1])
    for g in range(group_count):
        start, stop, low = groups[g, 0], groups[g, 1], groups[g, 2]
        for i in range(0, rows.shape[0], 2):
            first = rows[i]
            second = rows[i + 1] if i + 1 < rows.shape[0] else spare
            for k in range(start, stop):
                factors[0, k - start] = first[columns[k]]
                factors[1, k - start] = second[columns[k]]
            _subtract(first, second, echelon[start:stop], factors, low)
            _reduce(first, low, p)
            _reduce(second, low, p)


@nb.njit(nogil=True, cache=True)
def insert(
    rows: Array, echelon: Array, columns: Ints, groups: Ints, state: Ints, alive: Bools, p: float
) -> None:
    """Insert up to 32 rows, in order, into a row echelon form modulo p.

    echelon (r, s) and columns (r,) hold the pivot rows and their columns. groups (g, 3) holds, for
    rows inserted together, first row, last row + 1 and first non-zero column. Rows of one group are
    reduced by each other, so that the factors of a new row can be read off at once. state is (rank,
    groups). alive[i] becomes False when row i depends on what came before.
    """
    rank = state[0]
    _clear(rows, echelon, columns, groups, state[1], p)
    found = 0
    members = np.empty(rows.shape[0], np.int64)
    lowest = rows.shape[1]
    for i in range(rows.shape[0]):
        row = rows[i]
        pivot = _first(row, 0)
        if pivot == row.size:
            alive[i] = False
            continue
        scale = _inverse(row[pivot], p)
        for j in range(pivot, row.size):
            row[j] *= scale
        _reduce(row, pivot, p)
        for k in range(rows.shape[0]):
            factor = rows[k, pivot]
            if k != i and factor != 0.0:
                other = rows[k]
                for j in range(pivot, row.size):
                    other[j] -= factor * row[j]
                _reduce(other, pivot, p)
        columns[rank + found] = pivot
        members[found] = i
        lowest = min(lowest, pivot)
        found += 1
    for k in range(found):
        echelon[rank + k] = rows[members[k]]
    if found:
        groups[state[1], 0] = rank
        groups[state[1], 1] = rank + found
        groups[state[1], 2] = lowest
        state[0] = rank + found
        state[1] += 1


@nb.njit(nogil=True, cache=True)
def profile(
    lead: Array, stack: Array, starts: Ints, width: int, full: int, p: float
) -> tuple[Ints, Array, Ints, Ints, Ints]:
    """Ranks modulo p of [lead; stack[0, starts]; ...; stack[t, starts]] for t = 0, 1, ...; and the
    echelon form.

    stack[t] holds the rows of the t-th power; a start whose row depends on earlier rows depends on
    them for ever and is dropped. Elimination stops at rank `full`, or when no start is left.
    """
    steps = stack.shape[0]
    capacity = min(full, lead.shape[0] + steps * starts.size)
    echelon = np.zeros((capacity + GROUP, width))
    columns = np.zeros(capacity + GROUP, np.int64)
    groups = np.zeros((capacity + 1, 3), np.int64)
    state = np.zeros(2, np.int64)
    for first in range(0, lead.shape[0], GROUP):
        block = lead[first : first + GROUP, :width].astype(np.float64)
        insert(block, echelon, columns, groups, state, np.ones(block.shape[0], np.bool_), p)
    ranks = np.zeros(steps, np.int64)
    active = starts.copy()
    for t in range(steps):
        kept = 0
        before = active.size
        for first in range(0, before, GROUP):
            last = min(first + GROUP, before)
            alive = np.ones(last - first, np.bool_)
            if state[0] < full:
                block = np.empty((last - first, width))
                for i in range(first, last):
                    source = stack[t, active[i]]
                    for j in range(width):
                        block[i - first, j] = source[j]
                insert(block, echelon, columns, groups, state, alive, p)
            for i in range(last - first):
                if alive[i]:
                    active[kept] = active[first + i]
                    kept += 1
        active = active[:kept]
        ranks[t] = state[0]
        if kept == 0 or state[0] == full:
            ranks[t:] = state[0]
            break
    return ranks, echelon, columns, groups, state
