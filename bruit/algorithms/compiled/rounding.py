"""Compiled rounding of large arrays: the same bits as numpy's, in one pass over the memory instead
of four."""

import numpy as np
from numba import njit

from bruit.arrays import Array


@njit(cache=True, nogil=True, boundscheck=False)
def snap(x: Array, grid: float, out: Array) -> None:
    """out = x rounded to multiples of a power of two, halves to even ones; there is one zero."""
    finer = 1.0 / grid
    for i in range(np.uint64(x.size)):
        out[i] = np.rint(x[i] * finer) * grid + 0.0  # -0.0 would tell a sign
