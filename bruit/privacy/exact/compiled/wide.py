"""Sums of two doubles, entry by entry in one pass: the same operations as
`bruit.privacy.exact.wide`, to the digit.

Contractions into fused multiply-adds would change low parts, so fast math stays off.
"""

from collections.abc import Sequence

import numba as nb
import numpy as np

from bruit.arrays import Array


@nb.njit(nogil=True, cache=True, inline="always")
def _plus(high: float, low: float, other: float) -> tuple[float, float]:
    """high + low + other, rounded once to double-double."""
    total = high + other
    back = total - high
    error = (high - (total - back)) + (other - back) + low
    rounded = total + error
    return rounded, error - (rounded - total)


@nb.njit(nogil=True, cache=True)
def _sliced(high: Array, low: Array, unit: float, shrink: float, out: Array) -> None:
    count, size = out.shape
    # Adding and subtracting 1.5 * 2^52 units leaves the nearest multiple of the unit, ties to even.
    magic = np.empty(count)
    for k in range(count):
        unit *= shrink
        magic[k] = 6755399441055744.0 * unit
    for i in range(size):
        a, b = high[i], low[i]
        for k in range(count):
            part = (a + magic[k]) - magic[k]
            out[k, i] = part
            a, b = _plus(a, b, -part)


@nb.njit(nogil=True, cache=True)
def _add(high: Array, low: Array, term: Array) -> None:
    for i in range(high.size):
        high[i], low[i] = _plus(high[i], low[i], term[i])


def sliced(high: Array, low: Array, unit: float, shrink: float, count: int) -> Array:
    """Parts on the lattices unit * shrink, unit * shrink^2, ... that add up to high + low
    # (count, ...)."""
    out = np.empty((count, high.size))
    _sliced(
        np.ascontiguousarray(high).ravel(), np.ascontiguousarray(low).ravel(), unit, shrink, out
    )
    return out.reshape(count, *high.shape)


def summed(terms: Sequence[Array]) -> tuple[Array, Array]:
    """The terms added one after the other, as high and low."""
    high = np.array(terms[0], order="C")
    low = np.zeros_like(high)
    for term in terms[1:]:
        _add(high.ravel(), low.ravel(), np.ascontiguousarray(term).ravel())
    return high, low
