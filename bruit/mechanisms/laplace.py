"""The Laplace mechanism: clip in L1, add Laplace noise to each coordinate; pure epsilon, no delta.

    release(x) = snap(clip(x)) + g * round(scale L / g)          density of L: exp(-|t|) / 2

One release is (sensitivity / scale, 0)-DP with sensitivity = 2 clip in L1. Rounding toward zero shortens the L1 norm
as well, and rounding the noise to the lattice is post-processing for the reason given in bruit.mechanisms.gaussian.
The tails of the sampler end at 36.7 scale (mass 2**-53 on each coordinate), where the ideal mechanism goes on.
"""

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from bruit.arrays import Array, Ints
from bruit.errors import ConfigError
from bruit.mechanisms.mechanism import LATTICE, Additive, check_lattice, check_parameters, lattice_spacing
from bruit.privacy.events import Event, Exact, LaplaceEvent
from bruit.randomness import Dice


@dataclass(frozen=True)
class Laplace(Additive):
    """Laplace noise of the given scale after clipping to L1 norm clip; scale = 0: no noise."""

    clip: float = 1.0
    scale: float = 0.0
    level: str = "user"
    lattice: float | None = LATTICE
    kind: ClassVar[str] = "laplace"
    norm: ClassVar[int] = 1

    def __post_init__(self) -> None:
        check_parameters(self.clip, self.scale, self.level, "scale")
        check_lattice(self.lattice)

    @property
    def sigma(self) -> float:
        return math.sqrt(2.0) * self.scale

    @property
    def spacing(self) -> float:
        return lattice_spacing(self.lattice, self.scale, self.clip)

    @property
    def noise_multiplier(self) -> float:
        """scale / sensitivity: the inverse of epsilon."""
        return self.scale / self.sensitivity

    def event(self) -> Event:
        return LaplaceEvent(self.noise_multiplier) if self.scale else Exact()

    def noise(self, dice: Dice, lanes: Ints, steps: Ints | int, use: int, d: int, run: Ints | int = 0) -> Array:
        if self.scale == 0:
            return np.zeros((len(lanes), d))
        draws = self.scale * dice.laplace("noise", lanes, steps, use, d, run)
        return np.rint(draws / self.spacing) * self.spacing if self.spacing else draws  # (len(lanes), d)

    def calibrate(self, epsilon: float, releases: int = 1) -> "Laplace":
        """The least scale for which all releases together are epsilon-DP: sensitivity * releases / epsilon."""
        if not (epsilon > 0 and math.isfinite(epsilon)):
            raise ConfigError(f"noise is calibrated for a positive, finite epsilon, found {epsilon}")
        if releases < 1:
            raise ConfigError(f"noise is calibrated for 1 release or more, found {releases}")
        scale = self.sensitivity * releases / epsilon
        while releases / (scale / self.sensitivity) > epsilon:  # rounding: take the float above
            scale = math.nextafter(scale, math.inf)
        return replace(self, scale=scale)

    def describe(self) -> dict[str, Any]:
        return {
            "kind": self.kind, "clip": self.clip, "scale": self.scale, "level": self.level, "lattice": self.lattice,
        }
