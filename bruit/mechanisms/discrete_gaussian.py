"""The discrete Gaussian mechanism: integer noise, sampled exactly (Canonne, Kamath, Steinke 2020,
arXiv:2004.00010).

    P(Z = k) proportional to exp(-k**2 / (2 s**2)),   s = sigma / grid;      release(x) = snap(clip(x)) + grid * Z

Values on the grid have L2 sensitivity 2 clip / grid in units of the grid, so one release is
rho-zCDP with rho = sensitivity**2 / (2 sigma**2) in any dimension (Theorem 14): divergence alpha *
rho, then the tight conversion of gossip:DP-2. The sampler is bruit.randomness.discrete_normal.
"""

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from bruit.arrays import Array, Ints
from bruit.errors import ConfigError
from bruit.mechanisms.mechanism import Additive, check_parameters
from bruit.privacy.events import DiscreteGaussianEvent, Event, Exact
from bruit.randomness import Dice
from bruit.randomness.discrete_normal import LARGEST, discrete_normals


@dataclass(frozen=True)
class DiscreteGaussian(Additive):
    """Exactly sampled integer noise times grid (a power of two), after clipping to L2 norm clip;
    sigma = 0: none."""

    clip: float = 1.0
    sigma: float = 0.0
    grid: float = 2.0**-10
    level: str = "user"
    kind: ClassVar[str] = "discrete_gaussian"
    sizes: ClassVar[tuple[str, ...]] = ("sigma",)

    def __post_init__(self) -> None:
        check_parameters(self.clip, self.sigma, self.level, "sigma")
        if not (self.grid > 0 and math.isfinite(self.grid) and math.frexp(self.grid)[0] == 0.5):
            raise ConfigError(
                f"grid must be a power of two, so that sums are exact, found {self.grid}; try "
                f"2**-10"
            )
        if max(self.sigma, self.clip) / self.grid > LARGEST:
            raise ConfigError(
                f"grid {self.grid} is too fine for clip {self.clip} and sigma {self.sigma}; "
                f"enlarge it"
            )

    @property
    def spacing(self) -> float:
        return self.grid

    @property
    def noise_multiplier(self) -> float:
        """sigma / sensitivity."""
        return self.sigma / self.sensitivity

    def event(self) -> Event:
        return DiscreteGaussianEvent(self.noise_multiplier) if self.sigma else Exact()

    def noise(
        self, dice: Dice, lanes: Ints, steps: Ints | int, use: int, d: int, run: Ints | int = 0
    ) -> Array:
        if self.sigma == 0:
            return np.zeros((len(lanes), d))
        return discrete_normals(
            dice=dice,
            purpose="noise",
            lanes=lanes,
            steps=steps,
            use=use,
            count=d,
            s=self.sigma / self.grid,
            run=run,
            grid=self.grid,
        )

    def calibrate(
        self, epsilon: float, delta: float = 1e-6, releases: int = 1
    ) -> "DiscreteGaussian":
        """The least sigma for which all releases together are (epsilon, delta)-DP by zCDP
        accounting."""
        from bruit.privacy.calibrate import least
        from bruit.privacy.toolbox.gaussian import zcdp_to_epsilon

        if not (epsilon > 0 and math.isfinite(epsilon)):
            raise ConfigError(
                f"noise is calibrated for a positive, finite epsilon, found {epsilon}"
            )
        if releases < 1:
            raise ConfigError(f"noise is calibrated for 1 release or more, found {releases}")

        def cost(sigma: float) -> float:
            return zcdp_to_epsilon(releases * 0.5 * (self.sensitivity / sigma) ** 2, delta)

        return replace(self, sigma=least(cost, epsilon, start=self.sensitivity))

    def describe(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "clip": self.clip,
            "sigma": self.sigma,
            "grid": self.grid,
            "level": self.level,
        }
