"""The least noise multiplier for pairwise losses: z >= sqrt(m[u, v]) / mu(epsilon of the pair) for
every pair.

With an exact linear-Gaussian view the search is a formula: mu = sqrt(m) / z grows with m and falls
with z.
"""

from __future__ import annotations

import math

import numpy as np

from bruit.arrays import Array
from bruit.planning.question import Question
from bruit.privacy.toolbox.gaussian import mu_of


def least_multiplier(question: Question, m: Array) -> tuple[float, float]:
    """The least z that keeps the budget (worst pair, mean, or every pair's cap), and the loss that
    decided it."""
    if question.caps is not None:
        return _within_caps(question, m)
    loss = float(np.nanmax(m)) if question.protect == "worst" else mean_of(m)
    return math.sqrt(loss) / question.mu, loss


def mean_of(m: Array) -> float:
    """max over observers of the mean loss over peers: a summary, not a guarantee (gossip:MUF-3)."""
    return float(np.max(np.nansum(m, axis=0)) / len(m))


def _within_caps(question: Question, m: Array) -> tuple[float, float]:
    caps = question.caps if question.caps is not None else np.full_like(m, np.nan)
    allowed = np.where(np.isnan(caps), question.epsilon, caps)
    values, place = np.unique(allowed, return_inverse=True)
    mu = np.array([mu_of(float(epsilon), question.delta) for epsilon in values])[
        place.reshape(allowed.shape)
    ]
    needed = np.sqrt(m) / mu
    worst = np.unravel_index(np.nanargmax(needed), needed.shape)
    return float(needed[worst]), float(m[worst])
