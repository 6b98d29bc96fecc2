"""Noisy descent of logistic losses, many problems and many settings at once: what a plan tries out.

    x <- x - rate * V,    V <- momentum V + (G + noise) / B,    G = sum over the batch of clip(gradient of record j, C)

The gradient of one record is (p - y) a, so that its clip is a cut of p - y at C / |a| (silo:SILO-1).
Numbers are plain floats, and noise is drawn from a public seed: this predicts how well a private run
would do, on made-up or public records, and protects nobody. The run itself is `masked-sgd`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from bruit.arrays import Array

if TYPE_CHECKING:
    from numpy.random import Generator

CACHED = 50_000
"""Scores that are worked on at once."""


@dataclass(frozen=True, kw_only=True)
class DescentSettings:
    """DescentSettings that are tried side by side, one number each  # (s,).

    clip: C. rate: the step. noise: deviation of the noise in the sum of all records, on each
    coordinate. steps, sample_rate and momentum are the same for all of them.
    """

    clip: Array
    rate: Array
    noise: Array
    steps: int
    sample_rate: float = 1.0
    momentum: float = 0.0


def descend(
    features: Array, labels: Array, batch: float, settings: DescentSettings, draws: Generator
) -> Array:
    """The models after all steps  # (problems, s, d).

    features: (problems, records, d); labels: (problems, records) of 0 and 1. batch: the public
    number B by which sums are divided, the expected batch.
    """
    problems, records, d = features.shape
    models = np.empty((problems, len(settings.clip), d))
    chunk = max(1, CACHED // (records * len(settings.clip)))
    for first in range(0, problems, chunk):
        some = slice(first, first + chunk)
        models[some] = _descend(features[some], labels[some], batch, settings, draws)
    return models


def _descend(
    features: Array, labels: Array, batch: float, settings: DescentSettings, draws: Generator
) -> Array:
    """A few problems, whose scores stay in the cache."""
    problems, _, d = features.shape
    lengths = np.maximum(np.linalg.norm(features, axis=2), 1e-12)
    cuts = settings.clip / lengths[:, :, None]  # (problems, records, s)
    below = -cuts
    turned = np.ascontiguousarray(features.transpose(0, 2, 1))
    model = np.zeros((problems, d, len(settings.clip)))
    speed = np.zeros_like(model)
    for _ in range(settings.steps):
        wrong = _sigmoid(features @ model)
        wrong -= labels[:, :, None]
        np.minimum(wrong, cuts, out=wrong)
        np.maximum(wrong, below, out=wrong)
        if settings.sample_rate < 1:
            wrong *= (draws.random(labels.shape) < settings.sample_rate)[:, :, None]
        total = turned @ wrong
        total += settings.noise * draws.standard_normal(total.shape)
        speed = settings.momentum * speed + total / batch
        model = model - settings.rate * speed
    return model.transpose(0, 2, 1)


def _sigmoid(scores: Array) -> Array:
    np.negative(scores, out=scores)
    np.minimum(scores, 700.0, out=scores)
    np.exp(scores, out=scores)
    scores += 1
    return np.reciprocal(scores, out=scores)
