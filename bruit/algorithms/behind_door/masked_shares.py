"""Shares of the noise on masked sums, and the grains in which masked answers are counted (silo:SILO-4).

Nobody but the sum of all masked answers is seen, so that each peer makes one share of its noise
only: sigma / sqrt(shares).
"""

from __future__ import annotations

import math

import numpy as np

from bruit.algorithms.door import Address
from bruit.arrays import Ints
from bruit.errors import ConfigError
from bruit.mechanisms.mechanism import Mechanism, power_of_two
from bruit.randomness import Dice
from bruit.randomness.discrete_normal import discrete_normals

FINEST_MASKED = 2.0**-30  # the grain of masked sums, in units of the smallest share of the noise
UNMASKED_GRAIN = 2.0**-32  # where there is no noise
MOST_WORDS = 2.0**62  # no honest sum of masked answers comes near half of the words


def grain_of(mechanism: Mechanism | None, peers: int, shares: int) -> float:
    """The unit of masked answers of so many peers, a power of two."""
    if mechanism is None or not mechanism.sigma:
        return UNMASKED_GRAIN
    grain = power_of_two(mechanism.sigma / math.sqrt(shares) * FINEST_MASKED)
    if mechanism.reach(1.0 / grain, float(peers), math.sqrt(peers)) >= MOST_WORDS:
        raise ConfigError(
            "sums of masked answers might not fit into words of 64 bits; declare a smaller"
            " capacity, or use more noise"
        )
    return grain


def share_of(
    sigma: float, dice: Dice, run: int, at: Address, width: int, grain: float, shares: int
) -> Ints:
    """One share of noise of this deviation, in grains  # (lanes, width)."""
    if not sigma:
        return np.zeros((len(at.ids), width), np.int64)
    return discrete_normals(
        dice=dice,
        purpose="noise",
        lanes=at.ids,
        steps=at.steps,
        use=at.use,
        count=width,
        s=sigma / math.sqrt(shares) / grain,
        run=run,
    ).astype(np.int64)
