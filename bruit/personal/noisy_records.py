"""The baseline: every record is published once with local noise, and models are fitted on those
(perso:PERSO-15).

    x + Laplace(2 p / epsilon_x) on each of p coordinates, x in [-1, 1]^p;     y by randomized response with epsilon_y

(epsilon_x + epsilon_y)-DP for each record, whatever is done with the published records afterwards;
both draws are exact (bruit.mechanisms.laplace, bruit.mechanisms.randomized_response).
"""

import numpy as np

from bruit.arrays import Array, Ints
from bruit.errors import ConfigError, PrivacyError
from bruit.mechanisms import Laplace, RandomizedResponse
from bruit.randomness import Dice


def publish(
    features: Array, labels: Array, epsilon: float, dice: Dice, share: float = 0.5
) -> tuple[Array, Array]:
    """Noisy features and labels -1, 1; `share` of epsilon goes to the features. Features are cut to
    [-1, 1]."""
    if not epsilon > 0:
        raise PrivacyError(f"records are published for a positive epsilon, found {epsilon}")
    if not 0 < share < 1:
        raise ConfigError(
            f"features and label both need a part of epsilon: share lies between 0 and 1, found "
            f"{share}"
        )
    if (
        features.ndim != 2
        or labels.shape != (len(features),)
        or not bool((np.abs(labels) == 1).all())
    ):
        raise ConfigError(
            f"give features (r, p) and r labels -1 and 1, found {features.shape} and {labels.shape}"
        )
    rows: Ints = np.arange(len(features))
    boxed = np.clip(features, -1.0, 1.0)  # L1 norm at most p
    noisy = (
        Laplace(clip=float(features.shape[1]))
        .calibrate(share * epsilon)
        .release(boxed, dice, rows, 0, 0)
    )
    answers = RandomizedResponse.of(2, min((1 - share) * epsilon, 700.0))
    answered = answers.release(np.eye(2)[(labels > 0).astype(np.int64)], dice, rows, 0, 1)
    return noisy, 2.0 * answered[:, 1] - 1.0
