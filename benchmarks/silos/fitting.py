"""Logistic regression without privacy, many fits at once: pooled, alone, or at home on top of a
shared model.

    min over v of  sum over records of w_j log(1 + exp(-y_j (a_j v + o_j)))  +  (ridge / 2) |v - center|^2

What is fitted at home after the last release never leaves the house and costs nothing (silo:SILO-6).
"""

from __future__ import annotations

import numpy as np

from bruit.arrays import Array

RIDGE = 1.0
"""The usual weight of a regularizer, never chosen on these tables."""
MOST_STEPS = 30


def fit(
    features: Array,
    labels: Array,
    *,
    center: Array | None = None,
    offset: Array | None = None,
    ridge: float = RIDGE,
) -> Array:
    """Newton's method for k fits at once: features (k, r, d), labels (k, r) of 0 and 1  # (k, d)."""
    k, rows, d = features.shape
    middle = np.zeros((k, d)) if center is None else center
    shift = np.zeros((k, rows)) if offset is None else offset
    model = middle.copy()
    for _ in range(MOST_STEPS):
        scores = np.clip((features @ model[:, :, None])[:, :, 0] + shift, -35, 35)
        chances = 1 / (1 + np.exp(-scores))
        slope = (features * (chances - labels)[:, :, None]).sum(axis=1) + ridge * (model - middle)
        weights = chances * (1 - chances)
        curve = (features.transpose(0, 2, 1) * weights[:, None, :]) @ features
        curve[:, np.arange(d), np.arange(d)] += ridge + 1e-9
        move = np.linalg.solve(curve, slope[:, :, None])[:, :, 0]
        longest = np.linalg.norm(move, axis=1, keepdims=True)
        model = model - move * np.minimum(1, 10 / np.maximum(longest, 1e-12))
        if float(longest.max()) < 1e-8:
            break
    return model


def fit_intercept(features: Array, labels: Array, models: Array, ridge: float) -> Array:
    """One constant that is added to the scores of each model (k, d)  # (k,)."""
    offset = (features @ models[:, :, None])[:, :, 0]
    ones = np.ones((*labels.shape, 1))
    return fit(ones, labels, offset=offset, ridge=ridge)[:, 0]
