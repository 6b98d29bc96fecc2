"""Compiled loops for personal models: coordinate descent on logistic losses, one wake-up after the
other."""

import math

import numpy as np
from numba import njit

from bruit.algorithms.compiled.clipping import clip_factor
from bruit.arrays import Array, Bools, Ints


@njit(cache=True, nogil=True)
def wake_counts(
    woken: Ints, spent: Ints, allowed: Array, trusted: Bools
) -> tuple[Ints, Bools, Bools]:
    """For every wake-up: its number among those of its peer, whether the peer still updates, and whether
    it reads data.

    `spent`, the reads so far, is moved on in place.
    """
    count, awake = np.zeros(len(spent), np.int64), np.zeros(len(woken), np.bool_)
    step, reads = np.empty(len(woken), np.int64), np.zeros(len(woken), np.bool_)
    for e in range(len(woken)):
        u = woken[e]
        count[u] += 1
        step[e] = count[u]
        awake[e] = spent[u] < allowed[u]
        reads[e] = awake[e] and trusted[u]
        spent[u] += reads[e]
    return step, awake, reads


@njit(
    cache=True, nogil=True, fastmath={"reassoc", "contract"}
)  # sums may be taken in any order, nothing else
def _logistic_gradient(
    models: Array,
    u: int,
    low: int,
    high: int,
    features: Array,
    targets: Array,
    ridge: float,
    bound: float,
    g: Array,
) -> float:
    """g <- mean of the records' slopes (cut at `bound`) times the records, plus ridge x; its sum,
    finite if g is."""
    d, total = len(g), 0.0
    for k in range(d):
        g[k] = ridge * models[u, k]
    share = 1.0 / (high - low)
    for r in range(low, high):
        score = 0.0
        for k in range(d):
            score += features[r, k] * models[u, k]
        slope = 1.0 / (1.0 + math.exp(-score)) - 0.5 * (1.0 + targets[r])
        slope = min(max(slope, -bound), bound) * share
        for k in range(d):
            g[k] += slope * features[r, k]
    for k in range(d):
        total += g[k]
    return total


@njit(cache=True, nogil=True)
def _around(models: Array, near: Ints, weights: Array, low: int, high: int, mean: Array) -> None:
    """mean <- weighted sum of the rows of the neighbors in low..high."""
    d = len(mean)
    for j in range(d):
        mean[j] = 0.0
    for k in range(low, high):
        w, v = weights[k], near[k]
        for j in range(d):
            mean[j] += w * models[v, j]


@njit(cache=True, nogil=True)
def _clip(g: Array, clip: float, norm: int, spacing: float) -> None:
    """What a mechanism does to a row before the noise: scale it into its ball, round it toward
    zero."""
    size = 0.0
    for k in range(len(g)):
        size += abs(g[k]) if norm == 1 else g[k] * g[k]
    size = size if norm == 1 else math.sqrt(size)
    factor = clip_factor(size, clip, len(g))
    for k in range(len(g)):
        g[k] *= factor
        if spacing > 0.0:
            g[k] = math.trunc(g[k] / spacing) * spacing


@njit(cache=True, nogil=True)
def logistic_descent(
    woken: Ints,
    awake: Bools,
    reads: Bools,
    noise: Array,
    start: Ints,
    near: Ints,
    weights: Array,
    models: Array,
    record_start: Ints,
    features: Array,
    targets: Array,
    ridge: Array,
    bound: float,
    clip: float,
    norm: int,
    spacing: float,
    farthest: float,
    coupling: float,
    trust: Array,
    share: Array,
) -> int:
    """Peers wake in this order and update their row of `models` in place (perso:PERSO-2).

    weights: w_uv / d_u; share: a_u; noise: one row a wake-up, or none at all. Returns the first
    wake-up whose gradient is not finite, or -1.
    """
    d, noisy = models.shape[1], len(noise) > 0
    g, mean = np.zeros(d), np.empty(d)
    for e in range(len(woken)):
        u = woken[e]
        if not awake[e]:
            continue
        a = share[u]
        _around(models, near, weights, start[u], start[u + 1], mean)
        if reads[e]:
            low, high = record_start[u], record_start[u + 1]
            if not math.isfinite(
                _logistic_gradient(models, u, low, high, features, targets, ridge[u], bound, g)
            ):
                return e
            if clip < np.inf:
                _clip(g, clip, norm, spacing)
            for j in range(d):
                slope = min(max(g[j] + noise[e, j], -farthest), farthest) if noisy else g[j]
                models[u, j] = (1.0 - a) * models[u, j] + a * (
                    mean[j] - trust[u] / coupling * slope
                )
        else:
            for j in range(d):
                models[u, j] = (1.0 - a) * models[u, j] + a * mean[j]
    return -1
