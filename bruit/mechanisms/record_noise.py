"""Noise measured by each peer's own sensitivity: a peer with many records needs less
(perso:PERSO-9, 10, 13).

    release(x) = x + noise_u,     noise_u = noise_multiplier * sensitivity_u * draw,    the same cost for everybody

law "laplace": sensitivities in L1, Laplace numbers on each coordinate, exactly drawn on the grid of the noise; pure
epsilon for the bits that are sent, by the argument of bruit.mechanisms.laplace. "gaussian": in L2, N(0, 1).
"euclidean": sensitivities in L2, pure epsilon. The vector of density exp(-|b|_2) (perso:PERSO-13) has no exact sampler:
with floats its pure epsilon would hold for real numbers only. So the noise is "laplace" noise sqrt(dim) times as large,
since |x|_1 <= sqrt(dim) |x|_2: a standard deviation sqrt(2 dim / (dim + 1)) < 1.42 times that of the vector.

Nothing is clipped here. The sensitivities must follow from the task: 2 L / m for the gradient of a
mean of m losses with L-Lipschitz terms, say; `Task.sensitivities` derives them from declared bounds
and refuses to guess. The door asks the task again (`compared`): noise that was measured for other
records, other bounds or another regularizer is refused. Values are rounded toward zero to a lattice
as in bruit.mechanisms.gaussian. Two values that close may round apart by one spacing on each
coordinate, so sqrt(dim) (L2) or dim + 3 (L1; three for step 3 of that argument and for the rounding
of the scales themselves) spacings are added to every sensitivity.
"""

import math
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from bruit.arrays import Array, Ints
from bruit.errors import ConfigError, PrivacyError
from bruit.mechanisms.discrete_laplace import FARTHEST, Draws, discrete_laplace
from bruit.mechanisms.mechanism import (
    LATTICE,
    Additive,
    Mechanism,
    check_lattice,
    check_parameters,
    lattice_spacing,
)
from bruit.privacy.events import Event, Exact, GaussianEvent, LaplaceEvent
from bruit.privacy.guarantee import Hypothesis
from bruit.randomness import Dice
from bruit.randomness.discrete_normal import discrete_normals
from bruit.tasks.task import Task

LAWS = ("laplace", "gaussian", "euclidean")
ANSWERS = ("gradient", "model", "loss")
SHORT = "one record can move"  # begins the refusal of noise that is too little for these records
UNCLIPPED = 1e150  # the square is still a float


@dataclass(frozen=True)
class RecordNoise(Additive):
    """The same noise multiplier for every peer, and how far one record can move the answer of
    each."""

    sensitivities: tuple[float, ...]
    dim: int
    _: KW_ONLY
    noise_multiplier: float = 0.0
    law: str = "gaussian"
    level: str = "record"
    lattice: float | None = LATTICE
    # which answer the sensitivities are of: a full gradient, a fitted model, or a loss
    measures: str = "gradient"
    clip: float = field(default=UNCLIPPED, init=False, repr=False)
    kind: ClassVar[str] = "record_noise"
    unequal: ClassVar[bool] = True
    unclipped: ClassVar[bool] = True

    def __post_init__(self) -> None:
        object.__setattr__(
            self, "sensitivities", tuple(self.sensitivities)
        )  # a manifest keeps a list
        check_parameters(self.clip, self.noise_multiplier, self.level, "noise_multiplier")
        check_lattice(self.lattice)
        if self.law not in LAWS:
            raise ConfigError(
                f"the law of noise must be one of {', '.join(LAWS)}, found {self.law!r}"
            )
        if self.measures not in ANSWERS:
            raise ConfigError(
                f"noise is measured for one of {', '.join(ANSWERS)}, found {self.measures!r}"
            )
        if self.level != "record":
            raise ConfigError(
                "sensitivities of this noise are those of one record, so its level is 'record',"
                f" found {self.level!r}; use Gaussian(clip=...) to hide all that a peer holds"
            )
        bad = [
            u for u, size in enumerate(self.sensitivities) if not (size > 0 and math.isfinite(size))
        ]
        if not self.sensitivities:
            raise ConfigError("give the sensitivity of every peer, found none")
        if bad:
            found = self.sensitivities[bad[0]]
            raise ConfigError(
                f"peer {bad[0]} has sensitivity {found}; it must be a positive number"
            )
        if self.dim < 1:
            raise ConfigError(f"a release has at least one coordinate, found dim = {self.dim}")

    @property
    def sensitivity(self) -> float:
        """The largest of all peers."""
        return max(self.sensitivities)

    @property
    def spacing(self) -> float:
        lattice = (
            2.0**-30 if self.pure and self.lattice is None else self.lattice
        )  # pure noise is never plain floats
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
        sizes = np.array(self.sensitivities) * (
            math.sqrt(self.dim) if self.law == "euclidean" else 1.0
        )
        return self.noise_multiplier * (
            sizes + self.spacing * (self.dim + 3 if self.pure else math.sqrt(self.dim))
        )

    @property
    def sigma(self) -> float:
        """Standard deviation of the noise on each coordinate of the peer that needs most."""
        return (math.sqrt(2.0) if self.pure else 1.0) * float(self.scales.max())

    @property
    def order(self) -> int:
        """The norm of the sensitivities: L1 for Laplace noise, L2 for the others."""
        return 1 if self.law == "laplace" else 2

    def compared(self, task: Task) -> tuple[Hypothesis, ...]:
        """The task derives its own sensitivities; the noise must have been measured by no smaller
        ones."""
        remedy = "measure it on the task it is used on (gradient_noise, model_noise, loss_noise)"
        if len(self.sensitivities) != task.peers:
            raise PrivacyError(
                f"the noise was measured for {len(self.sensitivities)} peers, and the task has "
                f"{task.peers}; {remedy}"
            )
        if self.dim != task.dim:
            raise PrivacyError(
                f"the noise was measured for rows of {self.dim} numbers, and the {self.measures} of"
                f" a peer has {task.dim}; {remedy}"
            )
        derived = task.sensitivities(self.measures, self.order)
        short = np.flatnonzero(np.array(self.sensitivities) < np.array(derived.values))
        if len(short):
            mine, true = self.sensitivities[short[0]], derived.values[short[0]]
            raise PrivacyError(
                f"{SHORT} the {self.measures} of peer {short[0]} by {true:.6g} (L{self.order}), and"
                f" the noise was measured for {mine:.6g}: for other records, bounds or"
                f" regularizers; {remedy}"
            )
        known = [value for value in derived.values if value]  # a real peer knows its own
        least, most = min(known), max(known)
        much = f"{most:.4g}" if least == most else f"{least:.4g} to {most:.4g}, peer by peer"
        moved = f"one record moves the {self.measures} of a peer by at most {much} (L{self.order}), derived by the task"
        return (
            Hypothesis(f"{moved}; the noise is measured by no less", checked=True),
            *(Hypothesis(text, checked=True) for text in derived.checked),
            *(Hypothesis(text, checked=False) for text in derived.assumed),
        )

    def measured_for(self, answer: str) -> Mechanism | None:
        return self if answer == self.measures else None

    def scaled(self, factor: float) -> "RecordNoise":
        return replace(self, noise_multiplier=factor * self.noise_multiplier)

    def event(self) -> Event:
        if self.noise_multiplier == 0:
            return Exact()
        if self.pure:
            return LaplaceEvent(self.noise_multiplier)
        apart = self.spacing / float(self.scales.min())
        return GaussianEvent(
            self.noise_multiplier, self.dim * apart**2 / 4 if self.spacing else math.inf
        )

    def noise(
        self, dice: Dice, lanes: Ints, steps: Ints | int, use: int, d: int, run: Ints | int = 0
    ) -> Array:
        if d != self.dim:
            raise ConfigError(
                f"this noise was calibrated for rows of {self.dim} numbers, found {d}"
            )
        if self.noise_multiplier == 0:
            return np.zeros((len(lanes), d))
        if self.pure:
            at = Draws(dice=dice, purpose="noise", lanes=lanes, steps=steps, use=use, run=run)
            return discrete_laplace(at, self.scales[lanes] / self.spacing, d) * np.float64(
                self.spacing
            )
        scales = self.scales[lanes]
        if not self.spacing:
            return scales[:, None] * dice.normal("noise", lanes, steps, use, d, run)
        noise = np.empty((len(lanes), d))
        steps, run = np.broadcast_to(steps, scales.shape), np.broadcast_to(run, scales.shape)
        for scale in np.unique(scales):
            here = scales == scale
            noise[here] = discrete_normals(
                dice=dice,
                purpose="noise",
                lanes=lanes[here],
                steps=steps[here],
                use=use,
                count=d,
                s=float(scale) / self.spacing,
                run=run[here],
                grid=self.spacing,
            )
        return noise  # (len(lanes), d)

    def calibrate(self, epsilon: float, delta: float = 1e-6, releases: int = 1) -> "RecordNoise":
        """The least noise for which all releases of a peer together are (epsilon, delta)-DP.

        Gaussian noise is composed exactly; pure noise by privacy loss distributions (delta = 0: by
        adding up).
        """
        from bruit.privacy.calibrate import ROOM, least
        from bruit.privacy.toolbox.pld import compose_epsilon

        if not (epsilon > 0 and math.isfinite(epsilon)):
            raise ConfigError(
                f"noise is calibrated for a positive, finite epsilon, found {epsilon}"
            )
        if releases < 1:
            raise ConfigError(f"noise is calibrated for 1 release or more, found {releases}")
        if self.pure and delta == 0:
            return replace(self, noise_multiplier=ROOM * releases / epsilon)

        def cost(multiplier: float) -> float:
            return compose_epsilon(
                [(replace(self, noise_multiplier=multiplier).event(), releases)], delta
            )

        return replace(
            self, noise_multiplier=least(cost, epsilon, start=math.sqrt(releases) / epsilon)
        )

    def describe(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "sensitivities": list(self.sensitivities),
            "dim": self.dim,
            "law": self.law,
            "noise_multiplier": self.noise_multiplier,
            "level": self.level,
            "lattice": self.lattice,
            "measures": self.measures,
        }
