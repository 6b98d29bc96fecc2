"""Compiled loops for personal models: coordinate descent on logistic losses, one wake-up after the other."""

import math

import numpy as np
from numba import njit

from bruit.arrays import Array, Bools, Ints

_SHORTER = 1.0 - 2.0**-44  # of bruit.mechanisms.clip


@njit(cache=True, nogil=True)
def wake_counts(woken: Ints, spent: Ints, allowed: Array, trusted: Bools) -> tuple[Ints, Bools, Bools]:
    """For every wake-up: the how-manieth of its peer, whether the peer still updates, and whether it reads data.

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


@njit(cache=True, nogil=True)
def _logistic_gradient(
    x: Array, low: int, high: int, features: Array, targets: Array, ridge: float, bound: float, g: Array
) -> None:
    """g <- mean of the records' slopes (cut at `bound`) times the records, plus ridge x."""
    d = len(x)
    for k in range(d):
        g[k] = ridge * x[k]
    share = 1.0 / (high - low)
    for r in range(low, high):
        score = 0.0
        for k in range(d):
            score += features[r, k] * x[k]
        slope = 0.5 * (math.tanh(0.5 * score) - targets[r])
        slope = min(max(slope, -bound), bound) * share
        for k in range(d):
            g[k] += slope * features[r, k]


@njit(cache=True, nogil=True)
def _clip(g: Array, clip: float, norm: int, spacing: float) -> None:
    """What a mechanism does to a row before the noise: scale it into its ball, round it toward zero."""
    size = 0.0
    for k in range(len(g)):
        size += abs(g[k]) if norm == 1 else g[k] * g[k]
    size = size if norm == 1 else math.sqrt(size)
    factor = clip / size * _SHORTER if size > clip else 1.0
    for k in range(len(g)):
        g[k] *= factor
        if spacing > 0.0:
            g[k] = math.trunc(g[k] / spacing) * spacing


@njit(cache=True, nogil=True)
def logistic_descent(
    woken: Ints, awake: Bools, reads: Bools, noise: Array, start: Ints, near: Ints, weights: Array, models: Array,
    record_start: Ints, features: Array, targets: Array, ridge: Array, bound: float, clip: float, norm: int,
    spacing: float, coupling: float, trust: Array, share: Array,
) -> int:  # fmt: skip
    """Peers wake in this order and update their row of `models` in place (perso:PERSO-2).

    weights: w_uv / d_u; share: a_u; noise: one row a wake-up, or none at all. Returns the first wake-up whose gradient
    is not finite, or -1.
    """
    d, noisy = models.shape[1], len(noise) > 0
    g, mean = np.zeros(d), np.empty(d)
    for e in range(len(woken)):
        u = woken[e]
        if not awake[e]:
            continue
        x, a = models[u], share[u]
        mean[:] = 0.0
        for k in range(start[u], start[u + 1]):
            w, other = weights[k], models[near[k]]
            for j in range(d):
                mean[j] += w * other[j]
        if reads[e]:
            _logistic_gradient(x, record_start[u], record_start[u + 1], features, targets, ridge[u], bound, g)
            if not np.isfinite(g.sum()):
                return e
            if clip < np.inf:
                _clip(g, clip, norm, spacing)
            for j in range(d):
                slope = g[j] + noise[e, j] if noisy else g[j]
                x[j] = (1.0 - a) * x[j] + a * (mean[j] - trust[u] / coupling * slope)
        else:
            for j in range(d):
                x[j] = (1.0 - a) * x[j] + a * mean[j]
    return -1
