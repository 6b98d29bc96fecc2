"""From a row echelon form modulo a prime: a vector of its null space, and its fully reduced form.

Residues as in bruit.privacy.exact.compiled.modular: integers in [-p/2, p/2] held in float64, p
below 2^24, so that sums of 64 products are exact.
"""

import math

import numba as nb

from bruit.arrays import Array, Ints


@nb.njit(nogil=True, cache=True, fastmath={"contract", "reassoc", "nsz"})
def complete_null_vector(
    echelon: Array, columns: Ints, groups: Ints, count: int, x: Array, p: float
) -> None:
    """Overwrite x at the pivot columns so that every row of the echelon form sends x to zero modulo
    p.

    The form is that of bruit.privacy.exact.compiled.modular.insert: a row is zero at the pivots of
    earlier groups and at the other pivots of its own group, so the groups are solved from last to
    first, each with what is known by then.
    """
    inverse = 1.0 / p
    width = x.size
    for g in range(count - 1, -1, -1):
        start, stop, low = groups[g, 0], groups[g, 1], groups[g, 2]
        for k in range(start, stop):
            x[columns[k]] = 0.0
        for k in range(start, stop):
            row = echelon[k]
            total = 0.0
            for first in range(low, width, 60):
                for j in range(first, min(first + 60, width)):
                    total += row[j] * x[j]
                total -= p * math.floor(total * inverse + 0.5)
            # Pivots of one group do not see each other, so writing at once changes no other row of
            # the group.
            x[columns[k]] = -total


@nb.njit(nogil=True, cache=True, fastmath={"contract"})
def clear_column(rows: Array, pivot: int, column: int, scale: float, p: float) -> None:
    """One Gauss-Jordan step: make rows[pivot, column] one by `scale`, its inverse, and all others
    of the column zero.

    Entries of the pivot row left of the column must be zero already.
    """
    inverse = 1.0 / p
    source = rows[pivot]
    for j in range(column, source.size):
        value = source[j] * scale
        source[j] = value - p * math.floor(value * inverse + 0.5)
    for i in range(rows.shape[0]):
        factor = rows[i, column]
        if i == pivot or factor == 0.0:
            continue
        row = rows[i]
        for j in range(column, row.size):
            value = row[j] - factor * source[j]
            row[j] = value - p * math.floor(value * inverse + 0.5)
