"""The Gaussian mechanism: clip in L2, add N(0, sigma**2) to each coordinate (gossip:DP-4, walk:F-1).

    release(x) = snap(clip(x)) + g * round(sigma N / g)          g: spacing of the lattice, about sigma * 2**-20

One release is exactly mu-GDP with mu = sensitivity / sigma = 2 clip / sigma.

Why the lattice costs nothing. Let y = snap(clip(x)), a point of g Z**d with |y| <= clip (rounding toward zero shortens
every coordinate). For y on the lattice, y + g * round(z / g) = g * round((y + z) / g): the release is a fixed function
of y + z with z ~ N(0, sigma**2 I), hence post-processing of the ideal mechanism, whatever g is. g is a power of two,
so the additions are exact and the float sent is a function of the lattice point alone: the holes that textbook float
noise leaves, which depend on the data, are gone. What remains is the distance of the sampler to the ideal normal law:
Box-Muller on 52-bit uniforms moves the edge of a cell by a relative 2e-16 * sigma / g, some 1e-10 at g = 2**-20 sigma,
and ends the tails at 8.57 sigma (mass below 1e-17).
"""

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from bruit.arrays import Array, Ints
from bruit.errors import ConfigError
from bruit.mechanisms.mechanism import LATTICE, Additive, check_lattice, check_parameters, lattice_spacing
from bruit.privacy.events import Event, Exact, GaussianEvent
from bruit.randomness import Dice


@dataclass(frozen=True)
class Gaussian(Additive):
    """Gaussian noise of absolute standard deviation sigma after clipping to L2 norm clip; sigma = 0: no noise."""

    clip: float = 1.0
    sigma: float = 0.0
    level: str = "user"
    lattice: float | None = LATTICE
    kind: ClassVar[str] = "gaussian"

    def __post_init__(self) -> None:
        check_parameters(self.clip, self.sigma, self.level, "sigma")
        check_lattice(self.lattice)

    @property
    def spacing(self) -> float:
        return lattice_spacing(self.lattice, self.sigma, self.clip)

    @property
    def noise_multiplier(self) -> float:
        """sigma / sensitivity."""
        return self.sigma / self.sensitivity

    def scaled(self, factor: float) -> "Gaussian":
        return replace(self, sigma=factor * self.sigma)

    def event(self) -> Event:
        return GaussianEvent(self.noise_multiplier) if self.sigma else Exact()

    def noise(self, dice: Dice, lanes: Ints, steps: Ints | int, use: int, d: int, run: Ints | int = 0) -> Array:
        if self.sigma == 0:
            return np.zeros((len(lanes), d))
        draws = dice.normal("noise", lanes, steps, use, d, run)
        if not self.spacing:
            return self.sigma * draws
        draws *= self.sigma / self.spacing
        np.rint(draws, out=draws)
        draws *= self.spacing
        return draws  # (len(lanes), d)

    def calibrate(self, epsilon: float, delta: float = 1e-6, releases: int = 1) -> "Gaussian":
        """The same mechanism with the least sigma for which all releases together are (epsilon, delta)-DP.

            sigma = sensitivity * sqrt(releases) / mu(epsilon, delta)       (exact for Gaussian noise, gossip:DP-4)
        """
        if releases < 1:
            raise ConfigError(f"noise is calibrated for 1 release or more, found {releases}")
        return self.calibrate_pair(epsilon, delta, float(releases))

    def calibrate_pair(self, epsilon: float, delta: float, loss: float) -> "Gaussian":
        """The least sigma for which a pair of peers with this total loss meets (epsilon, delta).

        loss: m[u, v] summed over releases, in local-DP units (1 = one release seen in full), so that
        mu = sensitivity * sqrt(loss) / sigma.
        """
        from bruit.privacy.accountants.gaussian import epsilon_of
        from bruit.privacy.calibrate import least

        if not (epsilon > 0 and math.isfinite(epsilon)):
            raise ConfigError(f"noise is calibrated for a positive, finite epsilon, found {epsilon}")
        if not (loss >= 0 and math.isfinite(loss)):
            raise ConfigError(f"the loss of a pair must be a finite number >= 0, found {loss}")
        if loss == 0:
            return replace(self, sigma=0.0)
        reach = self.sensitivity * math.sqrt(loss)
        return replace(self, sigma=least(lambda sigma: epsilon_of(reach / sigma, delta), epsilon, start=reach))

    def describe(self) -> dict[str, Any]:
        return {
            "kind": self.kind, "clip": self.clip, "sigma": self.sigma, "level": self.level, "lattice": self.lattice,
        }
