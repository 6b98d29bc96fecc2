"""Clipping: what bounds the influence of one peer before noise is added.

    clip(x) = x                          if |x| <= bound
            = x * bound / |x|            otherwise             |.|: L2 (order 2) or L1 (order 1), row by row

Rounding never lets a row out of its ball: rows are measured against a bound that is 2**-44 shorter,
more than the rounding errors of a norm (pairwise sums: below 100 units of 2**-53) and of the
scaling together.
"""

import math

import numpy as np

from bruit.arrays import Array
from bruit.errors import ConfigError

_SHORTER = 1.0 - 2.0**-44
_LARGE, _SMALL = 2.0**500, 2.0**-500


def clip_rows(values: Array, bound: float, order: int = 2) -> Array:
    """Rows of values (k, d), scaled down to norm at most bound; rows already inside are returned as
    they are."""
    if order not in (1, 2):
        raise ConfigError(
            f"rows are clipped in the L1 or L2 norm, found order {order}; pass 1 or 2"
        )
    if not (bound > 0 and math.isfinite(bound)):
        raise ConfigError(f"a clip bound must be a positive number, found {bound}")
    values = np.ascontiguousarray(values, dtype=np.float64)
    if values.ndim != 2:
        raise ConfigError(
            f"rows to clip must be a matrix (peers, dimension), found shape {values.shape}"
        )
    if values.size == 0:
        return values.copy()
    # Rows are measured in units of their largest entry, rounded to a power of two, so that squares
    # neither
    # overflow nor vanish and the change of units is exact; usual sizes are measured as they are.
    largest = np.abs(values).max(axis=1)  # (k,)
    usual = (largest < _LARGE) & (largest > _SMALL)
    unit = np.where(usual, 1.0, np.exp2(np.frexp(np.where(usual, 1.0, largest))[1] - 1.0))
    scaled = values if usual.all() else values / unit[:, None]
    norms = np.abs(scaled).sum(axis=1) if order == 1 else np.sqrt((scaled * scaled).sum(axis=1))
    with np.errstate(over="ignore", divide="ignore"):
        outside = norms > bound / unit * _SHORTER
        factor = np.where(outside, bound / norms * _SHORTER * _SHORTER, 1.0)
    if not outside.any():
        return values.copy()
    return np.where(outside[:, None], scaled * factor[:, None], values)  # (k, d)
