"""The fast Walsh-Hadamard transform: H x with H[i, j] = (-1)^popcount(i & j), in n log n additions,
no matrix."""

from __future__ import annotations

import numpy as np

from bruit.arrays import Array
from bruit.errors import ConfigError


def walsh_hadamard(values: Array) -> Array:
    """H x for a length that is a power of two; applied twice it gives n x.

    >>> walsh_hadamard(np.array([1.0, 0.0, 0.0, 2.0])).tolist()
    [3.0, -1.0, -1.0, 3.0]
    """
    done = np.array(values, dtype=np.float64)
    n = len(done)
    if done.ndim != 1 or n == 0 or n & (n - 1):
        raise ConfigError(
            f"the Hadamard transform needs a list whose length is a power of two, found "
            f"{done.shape}"
        )
    spare = np.empty(n // 2)
    half = 1
    while half < n:
        pairs, kept = done.reshape(-1, 2, half), spare.reshape(-1, half)
        kept[:] = pairs[:, 0]
        pairs[:, 0] += pairs[:, 1]
        np.subtract(kept, pairs[:, 1], out=pairs[:, 1])
        half *= 2
    return done
