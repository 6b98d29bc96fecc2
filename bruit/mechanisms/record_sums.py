"""Noise on a sum of clipped records, so that one record is hidden (silo:SILO-1, SILO-2).

    release(x) = ( sum over the batch of Q(g_j(x)) + N_g(0, sigma^2) ) / divisor,     |Q(g)| <= clip

Every record's gradient is clipped by itself, cut toward zero to whole grains and added up in
integers, so that replacing one record moves the sum by at most 2 clip, and adding or removing one by
clip, for the bits that are sent. A record joins the batch by its owner's own secret coin of chance
`sample_rate`, fresh in every release. The sum is divided by a public number, the expected batch of
a peer, never by the batch that came out, which is private. Regularizers come after the noise: they
read no record.

Under `replace` the numbers of records are public. Under `add-remove` they are not: rate, divisor
and capacity are then numbers that were declared beforehand.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar, get_args

import numpy as np

from bruit.arrays import Array, Ints
from bruit.errors import ConfigError, PrivacyError
from bruit.mechanisms.gaussian import COARSEST_GRID, FINEST, FINEST_GRID, SURE, WIDEST
from bruit.mechanisms.mechanism import Mechanism, check_parameters, check_rows, power_of_two
from bruit.mechanisms.releases_ahead import ReleasesAhead
from bruit.privacy.calibrate import least_noise_multiplier
from bruit.privacy.events import Adjacency, Event, Exact, MaskedEvent, record_event
from bruit.privacy.guarantee import Hypothesis
from bruit.randomness import Dice
from bruit.randomness.discrete_normal import discrete_normals
from bruit.tasks.record_gradients import chosen, summed
from bruit.tasks.task import Task

CAPACITY = 2**20  # records of one peer, at the most, unless another number is declared
WIDE = 4096  # numbers of a release that noise is calibrated for, if nobody says how many
DURATION = (
    "nobody measures how long an answer takes, which depends on how many records are in it (real "
    "peers: answer_seconds)"
)


@dataclass(frozen=True, kw_only=True)
class RecordSums(Mechanism):
    """Gaussian noise of deviation `sigma` on the sum of records clipped to `clip`; sigma = 0: none.

    z = sigma / clip under both adjacencies. `divisor` is the public number that sums are divided
    by; `capacity` bounds the number of records of one peer."""

    clip: float = 1.0
    sigma: float = 0.0
    sample_rate: float = 1.0
    adjacency: Adjacency = "replace"
    divisor: float = 1.0
    capacity: int = CAPACITY
    level: str = "record"
    kind: ClassVar[str] = "record-sums"
    keys: ClassVar[tuple[str, ...]] = ("clip", "sample_rate", "adjacency", "divisor", "capacity")
    sizes: ClassVar[tuple[str, ...]] = ("sigma", "epsilon")

    def __post_init__(self) -> None:
        check_parameters(self.clip, self.sigma, self.level, "sigma")
        if self.level != "record":
            raise ConfigError(
                f"sums of clipped records hide one record, so their level is 'record', found "
                f"{self.level!r}; use Gaussian(clip=...) to hide all that a peer holds"
            )
        if self.adjacency not in get_args(Adjacency):
            raise ConfigError(
                f"records differ by 'replace' or 'add-remove', found {self.adjacency!r}"
            )
        if isinstance(self.sample_rate, bool) or not 0 < self.sample_rate <= 1:
            raise ConfigError(
                f"sample_rate is the chance of a record to be in a batch, above 0 and at most 1, "
                f"found {self.sample_rate!r}"
            )
        if not (self.divisor > 0 and math.isfinite(self.divisor)):
            raise ConfigError(
                f"sums are divided by a positive public number, the expected batch of a peer, "
                f"found divisor = {self.divisor!r}"
            )
        if (
            isinstance(self.capacity, bool)
            or not isinstance(self.capacity, int)
            or not 1 <= self.capacity <= 2**40
        ):
            raise ConfigError(
                f"capacity is the most records that a peer may hold, a whole number from 1, found "
                f"{self.capacity!r}"
            )
        if self.divisor > self.capacity:
            raise ConfigError(
                f"sums are divided by the expected batch of one peer, and divisor = {self.divisor:g}"
                f" is more than the {self.capacity} records that a peer may hold"
            )

    @property
    def z(self) -> float:
        """sigma / clip, under both adjacencies."""
        return self.sigma / self.clip

    @property
    def sensitivity(self) -> float:
        """How far one record moves the sum, in L2."""
        return 2.0 * self.clip if self.adjacency == "replace" else self.clip

    @property
    def noise_multiplier(self) -> float:
        """sigma / sensitivity: z / 2 for replace, z for add-remove."""
        return self.sigma / self.sensitivity

    @property
    def gamma(self) -> float:
        return 0.0

    @property
    def spacing(self) -> float:
        return self.fine_grid()

    @property
    def grain(self) -> float:
        """What sums are counted in outside of any protocol: the grid, or a fine one without
        noise."""
        return self.spacing or power_of_two(self.clip * 2.0**-30)

    def fine_grid(self, times: float = 1.0, data: float = 1.0, noise: float = 1.0) -> float:
        """`times` is a factor of the sum: a step size over the divisor, say."""
        if self.sigma == 0:
            return 0.0
        grid = max(times * FINEST * self.sigma, self.reach(times, data, noise) / WIDEST)
        if not FINEST_GRID <= grid <= COARSEST_GRID:
            raise ConfigError(
                f"noise of sigma = {self.sigma:g} after a clip of {self.clip:g} needs a grid of "
                f"{grid:g}, which floats cannot compute with; measure the data in other units"
            )
        return power_of_two(grid)

    def reach(self, times: float = 1.0, data: float = 1.0, noise: float = 1.0) -> float:
        return times * (data * self.capacity * self.clip + noise * SURE * self.sigma)

    def event(self) -> Event:
        return self.event_of(1)

    def event_of(self, dim: int, rounding: float | None = None) -> Event:
        if self.sigma == 0:
            return Exact()
        apart = self.spacing / self.sigma
        amount = dim * apart * apart / 4 if rounding is None else rounding
        return record_event(self.z, self.sample_rate, self.adjacency, amount)

    def masked_event(self, dim: int, grain: float, shares: int) -> Event:
        if self.sigma == 0:
            return Exact()
        amount, how = dim * (grain / self.sigma) ** 2 / 4, (self.sample_rate, self.adjacency)
        return MaskedEvent(
            record_event(self.z, *how, amount),
            record_event(self.z / math.sqrt(shares), *how, shares * amount),
        )

    def scaled(self, factor: float) -> RecordSums:
        return replace(self, sigma=factor * self.sigma)

    def assumed(self, task: Task) -> tuple[str, ...]:
        known = (
            "the numbers of records of all peers are public"
            if self.adjacency == "replace"
            else "rate, divisor and capacity were declared without looking at how many records there are"
        )
        timed = self.sample_rate < 1 or self.adjacency == "add-remove"
        return (known, *task.assumed_of_records(), *((DURATION,) if timed else ()))

    def compared(self, task: Task) -> tuple[Hypothesis, ...]:
        sizes = task.record_counts()
        if int(sizes.max(initial=0)) > self.capacity:
            guilty = int(sizes.argmax())
            raise PrivacyError(
                f"peer {guilty} holds more records than the declared capacity {self.capacity}; "
                "declare a larger one, chosen without looking at the data"
            )
        alone = (
            ""
            if task.assumed_of_records()
            else " and is a function of that record, the model and public things"
        )
        return (
            Hypothesis(f"every record's gradient is clipped by itself{alone}", checked=True),
            *(Hypothesis(text, checked=False) for text in self.assumed(task)),
        )

    def calibrate(
        self, epsilon: float, delta: float = 1e-6, releases: int = 1, dim: int = WIDE
    ) -> RecordSums:
        """The same with the least sigma for which so many releases hide one record, (epsilon,
        delta) (silo:SILO-2), finite precision included for rows of up to `dim` numbers."""
        if not (epsilon > 0 and math.isfinite(epsilon)):
            raise ConfigError(
                f"noise is calibrated for a positive, finite epsilon, found {epsilon}"
            )
        how = (self.sample_rate, self.adjacency)
        almost = least_noise_multiplier(epsilon, delta, releases, *how, 0.0)
        apart = replace(self, sigma=almost * self.clip).coarsest_part()
        z = least_noise_multiplier(epsilon, delta, releases, *how, dim * apart**2 / 4)
        return replace(self, sigma=z * self.clip)

    def sized_for(self, epsilon: float, delta: float, ahead: ReleasesAhead) -> RecordSums:
        costs = ahead.costs(self.calibrate(epsilon, delta, 1, ahead.dim))
        releases = math.ceil(costs.loss)
        z = least_noise_multiplier(
            epsilon,
            delta,
            releases,
            self.sample_rate,
            self.adjacency,
            costs.rounding / releases,
        )
        return replace(self, sigma=z * self.clip)

    def coarsest_part(self) -> float:
        """The grid of one release is at most this part of sigma, and a smaller one for more
        noise."""
        return max(FINEST, (self.capacity / self.z + SURE) / WIDEST)

    def noise(
        self, dice: Dice, lanes: Ints, steps: Ints | int, use: int, d: int, run: Ints | int = 0
    ) -> Array:
        if self.sigma == 0:
            return np.zeros((len(lanes), d))
        return self._drawn(self.spacing, 1.0, dice, lanes, steps, use, d, run)

    def release(
        self,
        values: Array,
        dice: Dice,
        lanes: Ints,
        steps: Ints | int,
        use: int,
        run: Ints | int = 0,
    ) -> Array:
        """Sums of clipped records in multiples of the grid, with noise  # (k, d)."""
        rows = self.bare(values, lanes)
        return rows + self.noise(dice, lanes, steps, use, rows.shape[1], run)

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
        rows = self.bare_on(grid, times, values, lanes)
        if not self.sigma:
            return rows
        return rows + self._drawn(grid, times, dice, lanes, steps, use, rows.shape[1], run)

    def of_one_record(self, gradients: Array, coins: Array) -> Array:
        """The sums of peers with one record of this gradient each, before the noise  # (k, d)."""
        taken = chosen(coins if self.sample_rate < 1 else None, self.sample_rate, len(gradients), 1)
        counted = summed(gradients[:, None], taken, self.clip, 1.0 / self.grain)
        return self.grain * counted.astype(np.float64)

    def bare(self, values: Array, lanes: Ints) -> Array:
        """As they are: the records were clipped one by one, behind the door."""
        return check_rows(values, lanes)

    def bare_on(self, grid: float, times: float, values: Array, lanes: Ints) -> Array:
        return check_rows(values, lanes)

    def _drawn(
        self,
        grid: float,
        times: float,
        dice: Dice,
        lanes: Ints,
        steps: Ints | int,
        use: int,
        d: int,
        run: Ints | int,
    ) -> Array:
        return discrete_normals(
            dice=dice,
            purpose="noise",
            lanes=lanes,
            steps=steps,
            use=use,
            count=d,
            s=times * self.sigma / grid,
            run=run,
            grid=grid,
        )

    def describe(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "clip": self.clip,
            "sigma": self.sigma,
            "sample_rate": self.sample_rate,
            "adjacency": self.adjacency,
            "divisor": self.divisor,
            "capacity": self.capacity,
            "level": self.level,
        }
