"""Noise by how many records a peer holds, for experiment files and real peers: what everybody agrees
on is public, and each peer compares it with its own records (perso:PERSO-9, 10, 13).

    gradients:             noise of multiplier z, measured by 2 L / m_u
    models fitted alone:   noise of multiplier z, measured by 2 L / ridge      (with a `ridge`)

m_u: so many records peer u holds at least; L: a bound on the gradient of one record's loss, in L2;
ridge: m_u times the regularizer of peer u, at least. A peer with fewer records, a steeper loss or a
smaller regularizer is refused before it says anything: with more records, or less of the others,
noise is only larger than it had to be. Every answer is a release of `RecordNoise` with the same
multiplier, and costs the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import cached_property
from operator import index
from typing import Any, ClassVar, Literal, get_args

import numpy as np

from bruit.arrays import Array, Ints
from bruit.errors import ConfigError, PrivacyError
from bruit.mechanisms.mechanism import LATTICE, Additive, Mechanism
from bruit.mechanisms.record_noise import SHORT, UNCLIPPED, RecordNoise
from bruit.mechanisms.releases_ahead import ReleasesAhead
from bruit.privacy.calibrate import ROOM
from bruit.privacy.events import Event
from bruit.privacy.guarantee import Hypothesis
from bruit.randomness import Dice
from bruit.tasks.sensitivity import ROUNDING
from bruit.tasks.task import Task

SOLVER = 2.0**-10  # room for the error of a solver, as a part of how far one record moves a model
APART = 2**14  # the most records of a peer in units of the fewest: one grid serves all their noises
MOST_RECORDS = 2**40
Law = Literal["euclidean", "gaussian"]


@dataclass(frozen=True)
class NoiseBySize(Additive):
    """Noise on unclipped gradients and fitted models, less for peers of more records; one multiplier
    for all."""

    dim: int
    _: KW_ONLY
    records: Sequence[int] = ()
    lipschitz: float = 0.0
    ridge: float | None = None
    law: Law = "euclidean"
    noise_multiplier: float = 0.0
    level: str = "record"
    clip: float = field(default=UNCLIPPED, init=False, repr=False)
    kind: ClassVar[str] = "noise_by_size"
    keys: ClassVar[tuple[str, ...]] = ("level", "records", "lipschitz", "ridge", "law")
    sizes: ClassVar[tuple[str, ...]] = ("noise_multiplier", "epsilon")
    unequal: ClassVar[bool] = True
    unclipped: ClassVar[bool] = True
    measures: ClassVar[str] = "gradient"  # type: ignore[misc]

    def __post_init__(self) -> None:
        try:
            object.__setattr__(self, "records", tuple(map(index, self.records)))
        except TypeError:
            raise ConfigError(
                f"privacy.records are whole numbers, one for each peer, found {self.records!r}"
            ) from None
        if not self.records:
            raise ConfigError(
                "noise by size is made for numbers of records that all have agreed on: give"
                " privacy.records, for every peer a number of records that it holds at least"
            )
        few = [peer for peer, count in enumerate(self.records) if count < 1]
        if few:
            raise ConfigError(
                f"peer {few[0]} is to hold {self.records[few[0]]} records; say at least 1"
            )
        least, most = min(self.records), max(self.records)
        if most > MOST_RECORDS or most > APART * least:
            raise ConfigError(
                f"privacy.records are from {least} to {most}: on one grid, noise is drawn for up to"
                f" {MOST_RECORDS} records and numbers up to {APART} times apart; say less for those"
                " who hold many, since they need only hold as many"
            )
        if not 0 < self.lipschitz < UNCLIPPED:
            raise ConfigError(
                "give privacy.lipschitz, the length that the gradient of one record's loss has at"
                f" most: a positive number, found {self.lipschitz:g}"
            )
        if self.ridge is not None and not 0 < self.ridge < UNCLIPPED:
            raise ConfigError(f"ridge must be a positive number, found {self.ridge:g}")
        if self.law not in get_args(Law):
            raise ConfigError(
                f"the law of noise by size is euclidean or gaussian, found {self.law!r}"
            )
        self.gradients  # noqa: B018  # refuses what is no noise at all

    @classmethod
    def from_keys(cls, given: Mapping[str, Any], dim: int) -> NoiseBySize:
        return cls(dim, **given)

    @cached_property
    def gradients(self) -> RecordNoise:
        """The noise on gradients."""
        room = 2 * self.lipschitz * (1 + 2 * ROUNDING)
        return self._measured([room / count for count in self.records], "gradient")

    @cached_property
    def models(self) -> RecordNoise | None:
        """The noise on models fitted alone; None: it was measured for gradients only."""
        if self.ridge is None:
            return None
        moved = 2 * self.lipschitz / self.ridge * (1 + SOLVER)
        return self._measured([moved] * len(self.records), "model")

    def _measured(self, sensitivities: Sequence[float], answer: str) -> RecordNoise:
        return RecordNoise(
            tuple(sensitivities),
            self.dim,
            noise_multiplier=self.noise_multiplier,
            law=self.law,
            level=self.level,
            lattice=LATTICE,
            measures=answer,
        )

    def measured_for(self, answer: str) -> Mechanism | None:
        return {"gradient": self.gradients, "model": self.models}.get(answer)

    def on_blank(self, peers: int, dim: int) -> Mechanism:
        if len(self.records) != peers:
            raise ConfigError(
                f"privacy.records has {len(self.records)} numbers for {peers} peers; give one for"
                " each, in their order"
            )
        return _OnBlank(**{**self._fields(), "dim": dim})

    def _fields(self) -> dict[str, Any]:
        known = self.describe()
        known.pop("kind")
        return known

    @property
    def sigma(self) -> float:
        return self.gradients.sigma

    @property
    def sensitivity(self) -> float:
        return self.gradients.sensitivity

    @property
    def spacing(self) -> float:
        return self.gradients.spacing

    @property
    def farthest(self) -> float:
        return self.gradients.farthest

    def event(self) -> Event:
        return self.gradients.event()

    def noise(
        self, dice: Dice, lanes: Ints, steps: Ints | int, use: int, d: int, run: Ints | int = 0
    ) -> Array:
        return self.gradients.noise(dice, lanes, steps, use, d, run)

    def scaled(self, factor: float) -> NoiseBySize:
        return replace(self, noise_multiplier=factor * self.noise_multiplier)

    def sized_for(self, epsilon: float, delta: float, ahead: ReleasesAhead) -> NoiseBySize:
        """Equal releases are composed; of unequal pure ones the epsilons are added up."""
        noisy = replace(self, noise_multiplier=1.0)
        most, loss = ahead.most(), ahead.costs(noisy).loss
        if loss <= most:
            found = noisy.gradients.calibrate(epsilon, delta, most).noise_multiplier
        elif noisy.gradients.pure:
            found = ROOM * loss / epsilon
        else:
            found = noisy.gradients.calibrate(epsilon, delta, int(np.ceil(loss))).noise_multiplier
        return replace(self, noise_multiplier=found)

    def assumed(self, task: Task) -> tuple[str, ...]:
        return (
            f"the loss of one record has gradients of norm at most L = {self.lipschitz:g}, as the task"
            " declares for every admissible dataset",
            f"peers compute their answers with an error below {ROUNDING:g} of how far one record moves"
            " them",
            "every peer holds at least as many records as was agreed on in public, and how many is no"
            " secret",
        )

    def compared(self, task: Task) -> tuple[Hypothesis, ...]:
        """Each answer's sensitivities, with those that the task derives from its own records."""
        measured = (self.gradients,) if self.models is None else (self.gradients, self.models)
        found: dict[Hypothesis, None] = {}
        for one in measured:
            try:
                found |= dict.fromkeys(one.compared(task))
            except PrivacyError as error:
                if not str(error).startswith(SHORT):
                    raise
                raise PrivacyError(
                    f"{str(error).partition(':')[0]}: fewer records than privacy.records says, or"
                    " more than privacy.lipschitz and privacy.ridge allow; agree on other numbers,"
                    " without looking at what is in the records"
                ) from None
        agreed = "every peer holds at least as many records as was agreed on in public"
        return (*found, Hypothesis(agreed, checked=True))

    def describe(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "dim": self.dim,
            "records": list(self.records),
            "lipschitz": self.lipschitz,
            "ridge": self.ridge,
            "law": self.law,
            "noise_multiplier": self.noise_multiplier,
            "level": self.level,
        }


@dataclass(frozen=True)
class _OnBlank(NoiseBySize):
    """The same for a rehearsal on blank values, of which there is nothing to compare."""

    def compared(self, task: Task) -> tuple[Hypothesis, ...]:
        return ()
