"""Decision stumps: yes-or-no questions about one feature, the base predictors of boosting
(perso:PERSO-6).

    h(x) = 1 - 2 [x_j > threshold],    thresholds low_j + (i + 1)(high_j - low_j) / q,  i = 0 .. q-1,  q = ceil(K / p)

Ranges are public: they come from the meaning of the features or from public records, never from a
peer's own.
"""

from dataclasses import dataclass

import numpy as np

from bruit.arrays import Array, Ints
from bruit.errors import ConfigError


@dataclass(frozen=True, eq=False)
class Stumps:
    """One question a column of the answer: which feature, which threshold."""

    feature: Ints  # (K,)
    threshold: Array  # (K,)

    @staticmethod
    def over(low: Array, high: Array, count: int) -> "Stumps":
        """ceil(count / p) questions for each of the p features, evenly over its range [low,
        high]."""
        if low.ndim != 1 or low.shape != high.shape or not bool((low <= high).all()):
            raise ConfigError(
                f"ranges of features are two rows with low <= high, found {low.shape} and "
                f"{high.shape}"
            )
        if count < 1:
            raise ConfigError(f"boosting needs at least one stump, found {count}")
        each = -(-count // len(low))
        part = (np.arange(each) + 1) / each
        thresholds = low[:, None] + part * (high - low)[:, None]
        return Stumps(np.repeat(np.arange(len(low)), each), thresholds.ravel())

    def __call__(self, features: Array) -> Array:
        """The answers +1 and -1 to all questions."""
        if features.ndim != 2 or features.shape[1] <= int(self.feature.max()):
            raise ConfigError(
                f"records are {features.shape}, but a stump asks for feature "
                f"{int(self.feature.max())}"
            )
        return np.where(features[:, self.feature] > self.threshold, -1.0, 1.0)  # (r, K)
