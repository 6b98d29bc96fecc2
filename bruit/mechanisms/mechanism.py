"""A mechanism: a randomized release that knows its sensitivity and what it costs.

    release(x) = snap(clip(x)) + noise(address)          address = ("noise", run, lane, step, use)

snap rounds toward zero to the lattice of the noise (if it has one): no norm grows, and every sum
below is exact. That is an additive mechanism; randomized response is one that is not.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Any, ClassVar, final

import numpy as np

from bruit.arrays import Array, Bools, Ints
from bruit.discovery import classes
from bruit.errors import ConfigError
from bruit.mechanisms.clip import clip_rows
from bruit.mechanisms.releases_ahead import ReleasesAhead
from bruit.privacy.events import Adjacency, Event
from bruit.privacy.guarantee import Hypothesis
from bruit.randomness import Dice
from bruit.tasks.task import Task

LEVELS = ("user", "record")
LATTICE = 2.0**-30  # default spacing of the lattice, in units of the noise


class Mechanism(ABC):
    """A randomized release of rows at an address. Below it: frozen dataclasses, one per file.

    `keys` and `sizes` say how an experiment file speaks of it: keys of [privacy] that are fields of
    it, and those one of which says how much noise there is, "epsilon" among them if it can be
    `sized_for` one. Without sizes no file names it.
    """

    kind: ClassVar[str]
    keys: ClassVar[tuple[str, ...]] = ("clip",)
    sizes: ClassVar[tuple[str, ...]] = ()
    one_of_several: ClassVar[bool] = False  # whether it tells one of several values, adding nothing
    norm: ClassVar[int] = 2
    clip: float
    level: str
    adjacency: Adjacency = "replace"  # how records differ, at the level of records (silo:SILO-2)
    arithmetic: str = (
        "grid"  # "ideal": floats stand for real numbers, and nothing is proven for what is sent
    )
    unequal: ClassVar[bool] = (
        False  # whether peers add noise of different sizes, which few theorems on views cover
    )
    unclipped: ClassVar[bool] = (
        False  # whether answers are not clipped: sensitivities were derived for some of them
    )
    measures: str  # if nothing is clipped: which answer the noise was measured for
    divisor: float = 1.0  # the public number that sums of records are divided by after the noise

    @property
    @abstractmethod
    def sigma(self) -> float:
        """Absolute standard deviation of the noise on each coordinate."""

    def deviations(self) -> tuple[float, ...]:
        """Absolute standard deviation of the noise of every peer, where these are agreed on and
        differ; empty where all add the same."""
        return ()

    def parts(self, lanes: Ints) -> Iterator[tuple[Bools, "Mechanism"]]:
        """The lanes by the size of their noise, and the mechanism of each size; asked where there
        are `deviations`."""
        yield np.ones(len(lanes), bool), self

    @property
    @abstractmethod
    def spacing(self) -> float:
        """Distance of neighboring points of the lattice releases lie on, a power of two; 0 for
        plain floats."""

    @abstractmethod
    def event(self) -> Event:
        """What one release costs."""

    @classmethod
    def from_keys(cls, given: Mapping[str, Any], dim: int) -> "Mechanism":
        """The mechanism that `keys` and one of `sizes` describe, for values of `dim` numbers; without
        any of its sizes, the one that is then `sized_for` an epsilon."""
        return cls(**given)

    def sized_for(self, epsilon: float, delta: float, ahead: ReleasesAhead) -> "Mechanism":
        """The same with the least noise for which all the releases ahead are (epsilon, delta)-DP
        together."""
        raise ConfigError(
            f"{self.kind} noise is not made for an epsilon; say how much by one of "
            f"{', '.join(self.sizes)}"
        )

    def event_of(self, dim: int, rounding: float | None = None) -> Event:
        """What one release of `dim` numbers costs; `rounding` (fp:FP-0) if the protocol around it
        adds to that."""
        return self.event()

    def fine_grid(self, times: float = 1.0, data: float = 1.0, noise: float = 1.0) -> float:
        """The grid for a protocol whose arithmetic is proven for the bits that are sent (fp:FP-1),
        a power of two.

        `times` is a public factor of its releases, such as a step size; its numbers hold at most
        `data` clipped values and noise of `noise` times the deviation of one release. 0: the
        mechanism knows of no such protocol, and what follows a release is computed in floats.
        """
        return 0.0

    def reach(self, times: float = 1.0, data: float = 1.0, noise: float = 1.0) -> float:
        """How far numbers on that grid are from zero at most, but for a chance of 1e-889 each."""
        return 0.0

    def release_on(
        self,
        grid: float,
        times: float,
        values: Array,
        dice: Dice,
        lanes: Ints,
        steps: Ints | int,
        use: int,
        run: Ints | int = 0,
    ) -> Array:
        """toward_zero(times * clip(x)) + times * noise, on a grid that `fine_grid` gave  # (k,
        d)."""
        raise ConfigError(
            f"{self.kind} noise has no grid of its own for a protocol; use gaussian noise"
        )

    def bare_on(self, grid: float, times: float, values: Array, lanes: Ints) -> Array:
        """The same but for the noise  # (k, d)."""
        raise ConfigError(
            f"{self.kind} noise has no grid of its own for a protocol; use gaussian noise"
        )

    @abstractmethod
    def noise(
        self, dice: Dice, lanes: Ints, steps: Ints | int, use: int, d: int, run: Ints | int = 0
    ) -> Array:
        """The noise alone, for each lane  # (len(lanes), d)."""

    @abstractmethod
    def describe(self) -> dict[str, Any]:
        """A JSON-able description; `mechanism_from` reads it back."""

    @abstractmethod
    def release(
        self,
        values: Array,
        dice: Dice,
        lanes: Ints,
        steps: Ints | int,
        use: int,
        run: Ints | int = 0,
    ) -> Array:
        """Each row made private by draws at ("noise", run, lane, step, use). An address serves once
        # (k, d)."""

    @abstractmethod
    def bare(self, values: Array, lanes: Ints) -> Array:
        """Each row as it is released but for the randomness: bounded, and on the lattice of the
        noise  # (k, d)."""

    @property
    @abstractmethod
    def gamma(self) -> float:
        """Chance that a release is uniform whatever the data (randomized response); 0 for additive
        noise."""

    def measured_for(self, answer: str) -> "Mechanism | None":
        """The noise on a release of that answer, where nothing is clipped; None: it was measured
        for other answers, and says nothing of this one."""
        return None

    def on_blank(self, peers: int, dim: int) -> "Mechanism":
        """The same for a rehearsal of so many peers on blank values of `dim` numbers."""
        return self

    def assumed(self, task: Task) -> tuple[str, ...]:
        """What its price rests on that nobody can check, in words that are the same for every peer and
        tell nothing of its records."""
        return ()

    def compared(self, task: Task) -> tuple[Hypothesis, ...]:
        """Compare the noise with the task it is to hide: what was checked, what is assumed;
        PrivacyError if it fails.

        What is clipped is bounded whatever the task answers, and needs no comparison.
        """
        return ()

    def scaled(self, factor: float) -> "Mechanism":
        """The same mechanism with its noise multiplied by the factor, where shares of noise add up
        to whole ones."""
        raise ConfigError(
            f"{self.kind} noise cannot be shared out, since its shares do not add up; use gaussian "
            f"noise"
        )

    def masked_event(self, dim: int, grain: float, shares: int) -> Event:
        """What a release of `dim` numbers in whole grains costs whose noise is made together, in
        so many shares, under masks (silo:SILO-4)."""
        raise ConfigError(
            f"{self.kind} noise cannot be made together, since its shares do not add up; use "
            f"gaussian noise"
        )

    @property
    def sensitivity(self) -> float:
        """How far a release can move when the data behind it is replaced: 2 * clip, in the norm of
        the mechanism.

        The same at the record level: a row is clipped as a whole, and one record may move it from
        end to end.
        """
        return 2.0 * self.clip

    @property
    def inside(self) -> float:
        """The norm that rows are cut to: clip, or a little less where the arithmetic needs room."""
        return self.clip

    @property
    def farthest(self) -> float:
        """Coordinates of data, and of releases, are cut to this: a function of the exact sum. inf:
        nothing is cut."""
        return math.inf


class Additive(Mechanism):
    """Clips rows and adds noise that does not depend on them."""

    @final
    def release(
        self,
        values: Array,
        dice: Dice,
        lanes: Ints,
        steps: Ints | int,
        use: int,
        run: Ints | int = 0,
    ) -> Array:
        rows = self.bare(values, lanes)
        noisy = rows + self.noise(dice, lanes, steps, use, rows.shape[1], run)
        return (
            np.clip(noisy, -self.farthest, self.farthest) if self.farthest < math.inf else noisy
        )  # (k, d)

    @final
    def bare(self, values: Array, lanes: Ints) -> Array:
        raw = check_rows(values, lanes)
        rows = clip_rows(raw, self.inside, self.norm)
        if self.spacing:
            edge = on_the_edge(raw, self.spacing, self.inside, self.norm)
            rows = snap(np.where(edge[:, None], raw, rows), self.spacing)
        return np.clip(rows, -self.farthest, self.farthest) if self.farthest < math.inf else rows

    @property
    @final
    def gamma(self) -> float:
        return 0.0


def catalog() -> dict[str, type[Mechanism]]:
    """Every mechanism of the folder, by kind: a new file is enrolled by being there."""
    import bruit.mechanisms as folder

    # no mechanism is among the compiled loops, which are loaded when they are needed
    found = classes(folder, Mechanism, without=(".compiled",))  # type: ignore[type-abstract]
    whole = [kind for kind in found if not kind.__name__.startswith("_")]  # no part of another
    return dict(sorted({kind.kind: kind for kind in whole}.items()))


def of_files() -> dict[str, type[Mechanism]]:
    """Those that an experiment file may name, as it writes them: discrete_gaussian is
    discrete-gaussian."""
    return {kind.replace("_", "-"): known for kind, known in catalog().items() if known.sizes}


def mechanism_from(record: Mapping[str, Any]) -> Mechanism:
    """The mechanism a manifest describes."""
    fields, kinds = dict(record), catalog()
    kind = fields.pop("kind", None)
    if kind not in kinds:
        raise ConfigError(f"unknown mechanism {kind!r}; known ones: {', '.join(kinds)}")
    try:
        return kinds[kind](**fields)
    except TypeError as error:
        raise ConfigError(
            f"the {kind} mechanism cannot be read from {dict(record)!r}: {error}"
        ) from error


def snap(rows: Array, spacing: float) -> Array:
    """Round toward zero to multiples of a power of two: exact, and no coordinate grows in size.
    There is one zero."""
    rows = np.trunc(rows * (1.0 / spacing))
    rows *= spacing
    rows += 0.0  # -0.0 would tell a sign
    return rows


def on_the_edge(rows: Array, spacing: float, bound: float, order: int) -> Bools:
    """Which rows are on the very edge of their ball and still in it on a coarse lattice, decided in
    whole numbers.

    A clip that allows for rounding would push them to the next point inside. On a fine lattice,
    none  # (k,)."""
    most = bound / spacing
    if not most < 2.0**25:
        return np.zeros(len(rows), bool)
    with np.errstate(over="ignore"):
        norms = np.abs(rows).sum(axis=1) if order == 1 else np.sqrt((rows * rows).sum(axis=1))
    units = np.minimum(np.trunc(np.abs(rows) * (1.0 / spacing)), 2.0**25)
    sizes = units.sum(axis=1) if order == 1 else (units * units).sum(axis=1)
    limit = Fraction(most) if order == 1 else Fraction(most) ** 2
    near = np.abs(norms - bound) <= 2.0**-40 * bound
    return np.asarray(near & (sizes < 2.0**53) & (sizes <= math.floor(limit)))


def power_of_two(largest: float) -> float:
    """The largest power of two up to a positive number."""
    return float(2.0 ** (math.frexp(largest)[1] - 1))


def lattice_spacing(lattice: float | None, noise: float, clip: float) -> float:
    """The largest power of two up to lattice * noise; coarser if noise is so small that clip /
    spacing > 2**50.

    A power of two makes every multiple, and every sum of two, an exact float: the float that is
    sent is a function of the lattice point alone and says nothing more.
    """
    if lattice is None or noise == 0:
        return 0.0
    return power_of_two(max(lattice * noise, clip * 2.0**-50))


def check_parameters(clip: float, noise: float, level: str, noise_name: str) -> None:
    """Refuse parameters that cannot mean anything."""
    if not (clip > 0 and math.isfinite(clip)):
        raise ConfigError(
            f"clip must be a positive number, found {clip}; it bounds the norm of what a peer "
            f"releases"
        )
    if not (noise >= 0 and math.isfinite(noise)):
        raise ConfigError(
            f"{noise_name} must be a number >= 0 (0: no noise, infinite epsilon), found {noise}"
        )
    if level not in LEVELS:
        raise ConfigError(f"level must be 'user' or 'record', found {level!r}")


def check_lattice(lattice: float | None) -> None:
    """A lattice is given in units of the noise, at most one unit apart; None: plain floats."""
    if lattice is not None and not 2.0**-40 <= lattice <= 1.0:
        raise ConfigError(
            f"lattice must be between 2**-40 and 1 (units of the noise), or None, found {lattice}"
        )


def check_rows(values: Array, lanes: Ints) -> Array:
    """One finite row per lane, or an error that names the peer."""
    values = np.asarray(values, dtype=np.float64)
    if values.ndim != 2 or len(values) != len(lanes):
        raise ConfigError(
            f"a release needs one row per peer, found shape {values.shape} for {len(lanes)} peers; "
            "pass a matrix (peers, dimension)"
        )
    finite = np.isfinite(values)
    if not finite.all():
        row, column = np.argwhere(~finite)[0]
        raise ConfigError(
            f"peer {lanes[row]} has {values[row, column]} at coordinate {column} of what it would"
            " release; look for a diverging step size or missing values in its records"
        )
    return values
