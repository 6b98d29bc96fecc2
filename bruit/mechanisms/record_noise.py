"""Noise measured by each peer's own sensitivity: a peer with many records needs less (perso:PERSO-9, 10, 13).

    release(x) = x + noise_u,     noise_u = noise_multiplier * sensitivity_u * draw,    the same cost for everybody

law "laplace": sensitivities in L1, Laplace numbers on each coordinate, exactly drawn on the grid of the noise; pure
epsilon for the bits that are sent, by the argument of bruit.mechanisms.laplace. "gaussian": in L2, N(0, 1).
"euclidean": sensitivities in L2, pure epsilon. The vector of density exp(-|b|_2) (perso:PERSO-13) has no exact sampler:
with floats its pure epsilon would hold for real numbers only. So the noise is "laplace" noise sqrt(dim) times as large,
since |x|_1 <= sqrt(dim) |x|_2: a standard deviation sqrt(2 dim / (dim + 1)) < 1.42 times that of the vector.

Nothing is clipped here. The sensitivities must follow from the task: 2 L / m for the gradient of a mean of m losses
with L-Lipschitz terms, say; `bruit.personal.sensitivity` derives them from declared bounds and refuses to guess.
Values are rounded toward zero to a lattice as in bruit.mechanisms.gaussian. Two values that close may round apart by
one spacing on each coordinate, so sqrt(dim) (L2) or dim + 3 (L1; three for step 3 of that argument and for the rounding
of the scales themselves) spacings are added to every sensitivity.
"""

import math
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from bruit.arrays import Array, Ints
from bruit.errors import ConfigError
from bruit.mechanisms.discrete_laplace import FARTHEST, Draws, discrete_laplace
from bruit.mechanisms.mechanism import LATTICE, Additive, check_lattice, check_parameters, lattice_spacing
from bruit.privacy.events import Event, Exact, GaussianEvent, LaplaceEvent
from bruit.randomness import Dice

LAWS = ("laplace", "gaussian", "euclidean")
UNCLIPPED = 1e150  # the square is still a float


@dataclass(frozen=True)
class RecordNoise(Additive):
    """The same noise multiplier for every peer, and how far one record can move the answer of each."""

    sensitivities: tuple[float, ...]
    dim: int
    noise_multiplier: float = 0.0
    law: str = "gaussian"
    level: str = "record"
    lattice: float | None = LATTICE
    measures: str = "gradient"  # which answer the sensitivities are of: a full gradient, a fitted model, or a loss
    clip: float = field(default=UNCLIPPED, init=False, repr=False)
    kind: ClassVar[str] = "record_noise"
    unequal: ClassVar[bool] = True
    unclipped: ClassVar[bool] = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "sensitivities", tuple(self.sensitivities))  # a manifest keeps a list
        check_parameters(self.clip, self.noise_multiplier, self.level, "noise_multiplier")
        check_lattice(self.lattice)
        if self.law not in LAWS:
            raise ConfigError(f"the law of noise must be one of {', '.join(LAWS)}, found {self.law!r}")
        bad = [u for u, size in enumerate(self.sensitivities) if not (size > 0 and math.isfinite(size))]
        if not self.sensitivities:
            raise ConfigError("give the sensitivity of every peer, found none")
        if bad:
            found = self.sensitivities[bad[0]]
            raise ConfigError(f"peer {bad[0]} has sensitivity {found}; it must be a positive number")
        if self.dim < 1:
            raise ConfigError(f"a release has at least one coordinate, found dim = {self.dim}")

    @property
    def sensitivity(self) -> float:
        """The largest of all peers."""
        return max(self.sensitivities)

    @property
    def spacing(self) -> float:
        lattice = 2.0**-30 if self.pure and self.lattice is None else self.lattice  # pure noise is never plain floats
        return lattice_spacing(lattice, self.noise_multiplier * min(self.sensitivities), 0.0)

    @property
    def pure(self) -> bool:
        """Whether the noise is Laplace noise, exactly drawn: no delta."""
        return self.law != "gaussian"

    @property
    def farthest(self) -> float:
        return FARTHEST * self.spacing if self.pure and self.spacing else math.inf

    @property
    def scales(self) -> Array:
        """The scale of each peer's noise on one coordinate  # (n,)."""
        sizes = np.array(self.sensitivities) * (math.sqrt(self.dim) if self.law == "euclidean" else 1.0)
        return self.noise_multiplier * (sizes + self.spacing * (self.dim + 3 if self.pure else math.sqrt(self.dim)))

    @property
    def sigma(self) -> float:
        """Standard deviation of the noise on each coordinate of the peer that needs most."""
        return (math.sqrt(2.0) if self.pure else 1.0) * float(self.scales.max())

    def event(self) -> Event:
        if self.noise_multiplier == 0:
            return Exact()
        return (LaplaceEvent if self.pure else GaussianEvent)(self.noise_multiplier)

    def noise(self, dice: Dice, lanes: Ints, steps: Ints | int, use: int, d: int, run: Ints | int = 0) -> Array:
        if d != self.dim:
            raise ConfigError(f"this noise was calibrated for rows of {self.dim} numbers, found {d}")
        if self.noise_multiplier == 0:
            return np.zeros((len(lanes), d))
        if self.pure:
            at = Draws(dice, "noise", lanes, steps, use, run)
            return discrete_laplace(at, self.scales[lanes] / self.spacing, d) * np.float64(self.spacing)
        noise = self.scales[lanes][:, None] * dice.normal("noise", lanes, steps, use, d, run)
        return np.rint(noise / self.spacing) * self.spacing if self.spacing else noise  # (len(lanes), d)

    def calibrate(self, epsilon: float, delta: float = 1e-6, releases: int = 1) -> "RecordNoise":
        """The least noise for which all releases of a peer together are (epsilon, delta)-DP.

        Gaussian noise is composed exactly; pure noise by privacy loss distributions (delta = 0: by adding up).
        """
        from bruit.privacy.accountants.pld import compose_epsilon
        from bruit.privacy.calibrate import ROOM, least

        if not (epsilon > 0 and math.isfinite(epsilon)):
            raise ConfigError(f"noise is calibrated for a positive, finite epsilon, found {epsilon}")
        if releases < 1:
            raise ConfigError(f"noise is calibrated for 1 release or more, found {releases}")
        if self.pure and delta == 0:
            return replace(self, noise_multiplier=ROOM * releases / epsilon)

        def cost(multiplier: float) -> float:
            return compose_epsilon([(replace(self, noise_multiplier=multiplier).event(), releases)], delta)

        return replace(self, noise_multiplier=least(cost, epsilon, start=math.sqrt(releases) / epsilon))

    def describe(self) -> dict[str, Any]:
        return {"kind": self.kind, "sensitivities": list(self.sensitivities), "dim": self.dim, "law": self.law,
                "noise_multiplier": self.noise_multiplier, "level": self.level, "lattice": self.lattice}
