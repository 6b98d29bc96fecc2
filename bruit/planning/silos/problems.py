"""Made-up logistic problems of a given size, from a public seed: what settings are chosen on
(silo:SILO-7).

A record has columns of numbers (center 0, scale 1/2, cut at 3 scales) and columns of two values
(-1/2, 1/2), which hang together by one hidden factor, and an intercept column of 0.3: prepared rows
look like that where columns have public centers and scales. Its label is drawn with the chance
sigmoid(w a + b): w random, such that scores have a deviation between 1.5 and 3, and b between -1 and
1. All of it was fixed before any real record was looked at, and none of it depends on one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from bruit.arrays import Array

if TYPE_CHECKING:
    from numpy.random import Generator

INTERCEPT = 0.3
JUDGED = 1000
"""Fresh rows on which a model of a problem is judged."""


@dataclass(frozen=True, kw_only=True)
class Problems:
    """Several problems of one size.

    features (problems, records, d), labels (problems, records); fresh rows, and the chance of each
    to have label 1.
    """

    features: Array
    labels: Array
    fresh: Array
    chances: Array

    def accuracy(self, models: Array) -> Array:
        """Expected accuracy on fresh rows of models (problems, s, d)  # (problems, s)."""
        ones = self.fresh @ models.transpose(0, 2, 1) > 0
        chances = self.chances[:, :, None]
        return np.asarray(np.where(ones, chances, 1 - chances).mean(axis=1))

    def best(self) -> Array:
        """The accuracy of whoever knows the true chances  # (problems,)."""
        return np.asarray(np.maximum(self.chances, 1 - self.chances).mean(axis=1))

    def blind(self) -> Array:
        """The accuracy of the larger class, without any data  # (problems,)."""
        share = self.chances.mean(axis=1)
        return np.asarray(np.maximum(share, 1 - share))


def generator(seed: int) -> Generator:
    """Draws of a plan: public, the same every time."""
    return np.random.default_rng([seed, 19])


def make_problems(count: int, records: int, dim: int, draws: Generator) -> Problems:
    """So many problems with models of `dim` numbers, the intercept among them."""
    rows = records + JUDGED
    columns = max(dim - 1, 0)
    loading = draws.uniform(-0.7, 0.7, (count, 1, columns))
    hidden = draws.standard_normal((count, rows, 1))
    values = loading * hidden + np.sqrt(1 - loading**2) * draws.standard_normal(
        (count, rows, columns)
    )
    two = draws.random((count, 1, columns)) < 0.5
    border = draws.uniform(-0.8, 0.8, (count, 1, columns))
    values = np.where(two, np.sign(values - border), np.clip(values, -3, 3)) / 2
    direction = draws.standard_normal((count, columns, 1))
    scores = (values @ direction)[:, :, 0]
    spread = draws.uniform(1.5, 3, (count, 1)) / np.maximum(scores.std(axis=1)[:, None], 1e-12)
    scores = spread * (scores - scores.mean(axis=1)[:, None]) + draws.uniform(-1, 1, (count, 1))
    chances = 1 / (1 + np.exp(-scores))
    labels = (draws.random(chances.shape) < chances).astype(np.float64)
    features = np.concatenate([values, np.full((count, rows, 1), INTERCEPT)], axis=2)
    return Problems(
        features=features[:, :records],
        labels=labels[:, :records],
        fresh=features[:, records:],
        chances=chances[:, records:],
    )
