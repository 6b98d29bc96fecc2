"""The Laplace mechanism on a grid: clip in L1, add exact discrete Laplace noise to each coordinate;
pure epsilon.

    release(x) = cut(snap(clip(x)) + g Z),    P(Z = k) proportional to a**|k|,    a = exp(-g / scale)

g is a power of two, some 2**-40 scale; scale means the rational number that the float is; Z is
drawn by whole numbers (bruit.mechanisms.discrete_laplace), so that its law is this one and no
other. One release is (2 clip / scale, 0)-DP for the bits that are sent, and costs no more than a
release of real-valued Laplace noise in any composition:

1. Rows are cut to L1 norm clip (1 - 2**-44) - 2 g, which outweighs the rounding of the norm, and
   rounded toward zero: two rows are m <= 2 clip / g - 4 steps of the grid apart, exactly.
2. Ratios. Moving the row by m steps changes each probability by a factor of at most a**-m <= exp(2
   clip / scale).
3. Composition. Let delta_m(x) = sum over k of (P(k) - exp(x) P(k - m))+ for one number moved by m
   steps. It is linear in exp(x) between the points x_j = (m - 2 j) g / scale, and delta_m(x_j) = 1
   - a**j for 0 <= j <= m: the value of real-valued Laplace noise whose shift is m g. Hence
   delta_m(x) <= that of real-valued noise at x - 2 g / scale, which is real-valued noise moved by
   (m + 2) g <= 2 clip - 2 g.
4. Rows of several numbers, moved by m = b_1 + ... + b_d: no more than one number moved by m. For
   two, b <= c, both sides are linear in exp(x) between the same points x_j. At x_j, 1 - delta is
   the sum over the losses (b - 2 k) g / scale of the first of P(loss) a**max(j - k, 0): a**j (1 + j
   (1 - a) / (1 + a)) for j < b, and a**j (2 + (b - 1) (1 - a)) / (1 + a) for b <= j <= c, both at
   least a**j; j > c follows by symmetry, more numbers by induction.
5. Range. Sums are cut to 2**51 g, a function of the exact sum, whatever Z was (Z itself is cut to
   2**52, further than any row can bring back): no number is ever rounded by its size, and no event
   of small probability is set aside.

What is assumed is that the words of the dice are uniform: for `Secure`, that AES cannot be told
from chance.
"""

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from bruit.arrays import Array, Ints
from bruit.errors import ConfigError
from bruit.mechanisms.discrete_laplace import FARTHEST, Draws, discrete_laplace
from bruit.mechanisms.mechanism import Additive, check_parameters
from bruit.mechanisms.releases_ahead import ReleasesAhead
from bruit.privacy.calibrate import ROOM
from bruit.privacy.events import Event, Exact, LaplaceEvent
from bruit.randomness import Dice

_LEAST, _MOST = 1e-280, 1e280  # of clip and scale: the grid, and its farthest point, are floats


@dataclass(frozen=True)
class Laplace(Additive):
    """Laplace noise of the given scale after clipping to L1 norm clip; scale = 0: no noise."""

    clip: float = 1.0
    scale: float = 0.0
    level: str = "user"
    kind: ClassVar[str] = "laplace"
    sizes: ClassVar[tuple[str, ...]] = ("scale", "epsilon")
    norm: ClassVar[int] = 1

    def __post_init__(self) -> None:
        check_parameters(self.clip, self.scale, self.level, "scale")
        if self.scale and not (_LEAST <= self.scale <= _MOST and _LEAST <= self.clip <= _MOST):
            raise ConfigError(
                f"Laplace noise has clips and scales of {_LEAST:g} to {_MOST:g}, found clip"
                f" {self.clip} and scale {self.scale}; change the unit of the values"
            )
        if self.scale and self.scale < self.clip * 2.0**-49:
            raise ConfigError(
                f"a scale of {self.scale} hides nothing of values up to {self.clip} (epsilon above"
                " 1e15); enlarge it, or use scale = 0 on purpose"
            )

    @property
    def sigma(self) -> float:
        return math.sqrt(2.0) * self.scale

    @property
    def spacing(self) -> float:
        """2**-40 scale, finer where the clip would be below 2**16 steps, coarser where either is
        above 2**50."""
        if self.scale == 0:
            return 0.0
        finest = max(
            min(self.scale * 2.0**-40, self.clip * 2.0**-16),
            self.scale * 2.0**-47,
            self.clip * 2.0**-50,
        )
        return float(2.0 ** (math.frexp(finest)[1] - 1))

    @property
    def inside(self) -> float:
        return (
            max(self.clip * (1.0 - 2.0**-44) - 2 * self.spacing, self.spacing / 2)
            if self.scale
            else self.clip
        )

    @property
    def farthest(self) -> float:
        return FARTHEST * self.spacing if self.scale else math.inf

    @property
    def noise_multiplier(self) -> float:
        """scale / sensitivity: the inverse of epsilon."""
        return self.scale / self.sensitivity

    def event(self) -> Event:
        return LaplaceEvent(self.noise_multiplier) if self.scale else Exact()

    def noise(
        self, dice: Dice, lanes: Ints, steps: Ints | int, use: int, d: int, run: Ints | int = 0
    ) -> Array:
        if self.scale == 0:
            return np.zeros((len(lanes), d))
        at = Draws(dice=dice, purpose="noise", lanes=lanes, steps=steps, use=use, run=run)
        return discrete_laplace(at, self.scale / self.spacing, d) * np.float64(
            self.spacing
        )  # (len(lanes), d)

    def calibrate(self, epsilon: float, releases: int = 1) -> "Laplace":
        """The least scale for which all releases together are epsilon-DP: ROOM * sensitivity *
        releases / epsilon."""
        if not (epsilon > 0 and math.isfinite(epsilon)):
            raise ConfigError(
                f"noise is calibrated for a positive, finite epsilon, found {epsilon}"
            )
        if releases < 1:
            raise ConfigError(f"noise is calibrated for 1 release or more, found {releases}")
        return replace(self, scale=ROOM * self.sensitivity * releases / epsilon)

    def sized_for(self, epsilon: float, delta: float, ahead: ReleasesAhead) -> "Laplace":
        return self.calibrate(epsilon, ahead.most())

    def describe(self) -> dict[str, Any]:
        return {"kind": self.kind, "clip": self.clip, "scale": self.scale, "level": self.level}
