"""Adam on rows of models, all peers at once, without noise: for observers' references and for parts
that are fitted at home.

    m = .9 m + .1 g,  v = .999 v + .001 g^2,  x = x - rate m^ / (sqrt(v^) + 1e-8)

The rate falls to 0 along a half cosine. A network has many minima: what these steps find is a fair
opponent, not the best one.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from bruit.arrays import Array

STEPS, RATE = 300, 0.01


def adam(
    start: Array, gradient: Callable[[Array, int], Array], steps: int = STEPS, rate: float = RATE
) -> Array:
    """Where so many steps lead from `start`; gradient(models, step)  # (k, d)."""
    models = np.array(start, np.float64)
    mean, square = np.zeros_like(models), np.zeros_like(models)
    for step in range(steps):
        slope = gradient(models, step)
        mean = 0.9 * mean + 0.1 * slope
        square = 0.999 * square + 0.001 * slope * slope
        size = rate * (1 + math.cos(math.pi * step / steps)) / 2
        way = mean / (1 - 0.9 ** (step + 1))
        models -= size * way / (np.sqrt(square / (1 - 0.999 ** (step + 1))) + 1e-8)
    return models


def round_robin(sizes: Array, batch: int, step: int) -> Array:
    """Numbers in [0, 1) that name `batch` of each peer's records, all of them in turn, spread over
    the records as `Task.gradient_sampled` reads them  # (k, batch)."""
    places = step * batch + np.arange(batch)
    golden = np.maximum(1, np.round(0.618 * sizes))
    golden = np.where(np.gcd(golden.astype(np.int64), sizes.astype(np.int64)) == 1, golden, 1)
    return ((places[None, :] * golden[:, None]) % sizes[:, None] + 0.5) / sizes[:, None]
