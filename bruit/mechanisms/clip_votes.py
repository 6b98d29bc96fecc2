"""Votes on the clip: how many records are shorter than it, in the same release (silo:SILO-7).

A record's clipped gradient of norm at most C is said with one more coordinate, its vote: + or -
C z_g / (2 z_b), as its gradient is or is not shorter than C. Under noise of z_g C the two together
are one release of multiplier z, in both adjacencies:

    z = (z_g^-2 + (2 z_b)^-2)^(-1/2)          since the vector has the norm C sqrt(1 + z_g^2 / (4 z_b^2)) at most

so for a given z the noise on the gradients grows to z_g, and z_b says how good the votes are. The
share of shorter records is 1/2 + votes / (expected batch), unbiased, and the next clip is

    C <- C exp(-0.2 (share - 1/2))

which goes to the median of the norms (Andrew et al., arXiv:1905.03871). The clip is public: a
function of what was released.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from bruit.arrays import Array, Ints
from bruit.errors import ConfigError

LEARNING_RATE = 0.2  # of the clip, in the exponent
FARTHEST = 2.0**10  # by how much the clip may move from the one that was declared, either way


class ClipVotes(NamedTuple):
    """Votes of records under noise of `noise` = z_b, at clips of `scale` times the declared one, a
    number for each lane."""

    noise: float
    scale: Array  # (lanes,)

    def gradient_noise(self, z: float) -> float:
        """z_g, for which gradients and votes together have the multiplier z."""
        if 2 * self.noise <= z:
            raise ConfigError(
                f"votes on the clip need noise of more than {z / 2:g}, half of sigma / clip, found "
                f"clip_votes = {self.noise:g}: with less they would cost more than the gradients"
            )
        return 1.0 / math.sqrt(z**-2 - (2 * self.noise) ** -2)

    def height(self, clip: float, z: float, grain: float) -> int:
        """One vote, in grains, rounded toward zero."""
        return int(clip * self.gradient_noise(z) / (2 * self.noise) / grain)


def next_scale(scale: Array, votes: Ints, height: int, batch: Array) -> Array:
    """The clips after a sum of votes over an expected batch, in units of the declared one
    # (lanes,)."""
    above_half = votes / (2.0 * height * batch)  # the share of shorter records, minus 1/2
    return np.clip(scale * np.exp(-LEARNING_RATE * above_half), 1 / FARTHEST, FARTHEST)
