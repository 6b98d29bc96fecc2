"""TaskDoor: the door of a run, with a task behind, a mechanism in front, and a ledger line for every
release. What records answer exactly, and noise that leaves without them, is in `behind_door`."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from bruit.algorithms.behind_door.exact_answers import ExactAnswers
from bruit.algorithms.behind_door.masked_shares import grain_of, share_of
from bruit.algorithms.behind_door.noise_alone import NoiseAlone
from bruit.algorithms.behind_door.sums_of_records import SumsOfRecords
from bruit.algorithms.door import COARSEST, Address, Door, LeftOut, OnGrid
from bruit.algorithms.doorway import Watch, other_answer
from bruit.algorithms.masks import Masks, agreed_masks, drawn_masks
from bruit.algorithms.messages import Edges
from bruit.arrays import Array, Ints, Words
from bruit.errors import ConfigError
from bruit.mechanisms.clip_votes import ClipVotes, next_scale
from bruit.mechanisms.mechanism import Mechanism, snap
from bruit.mechanisms.record_sums import RecordSums
from bruit.privacy.events import Event, Exact, Mask
from bruit.privacy.guarantee import Hypothesis
from bruit.privacy.ledger import Budget, Ledger
from bruit.randomness import Dice
from bruit.tasks.task import Task

if TYPE_CHECKING:
    from bruit.algorithms.schedules.ballots.attempt import Attempt


class RawAnswer(NamedTuple):
    """An exact answer on its way out: a row for each peer, and how it is to be released."""

    raw: Array  # (lanes, width)
    level: float = 1.0  # the fraction of the noise
    on: OnGrid | None = None
    measured: Mechanism | None = None  # for this very answer, where answers differ

    @property
    def width(self) -> int:
        return int(self.raw.shape[1])


@dataclass(frozen=True, kw_only=True)
class TaskDoor(Door):
    """The door of a real or simulated run: task behind, mechanism in front, a ledger line for every
    release.

    `dice` are for what hides data: noise, records drawn, a peer's own choices. `public` are for
    what all share; the same unless given."""

    task: Task
    mechanism: Mechanism | None
    dice: Dice
    ledger: Ledger
    run: int = 0
    budget: Budget | None = None
    models: Array | None = None  # (n, dim) what an earlier protocol left the peers with
    public: Dice | None = None
    masks: Masks | None = None  # of a real peer; in a simulation they are drawn
    pairs: Mapping[int, Dice] | None = None  # by neighbor of a real peer, where both have the same
    watch: Watch = field(default_factory=Watch)
    left_out: list[LeftOut] = field(default_factory=list)
    resumed: bool = False  # whether an earlier protocol left the peers their whole state
    before: int = 0  # steps of the phases that left it
    # the first of these phases, whose public draws go on; this one if None
    origin: int | None = None
    # what the noise takes from the task
    declared: tuple[Hypothesis, ...] = field(default=(), init=False)

    def __post_init__(self) -> None:
        if self.mechanism is not None:
            object.__setattr__(self, "declared", self.mechanism.compared(self.task))

    @property
    def warm(self) -> bool:
        return self.resumed or self.models is not None

    def beginning(self, ids: Ints) -> Array:
        if self.models is None:
            return np.tile(self.task.start(), (len(ids), 1))
        return self.models[ids].copy()

    def with_ledger(self, ledger: Ledger) -> Door:
        return replace(self, ledger=ledger, left_out=[])

    @property
    def dim(self) -> int:
        return self.task.dim

    @property
    def sigma(self) -> float:
        return 0.0 if self.mechanism is None else self.mechanism.sigma / self.mechanism.divisor

    @property
    def gamma(self) -> float:
        return 0.0 if self.mechanism is None else self.mechanism.gamma

    def _release(self, at: Address, answer: RawAnswer) -> Array:
        """The answer with its noise, and a line for every peer  # (lanes, width)."""
        if self.mechanism is None:
            if self.budget is not None:
                return self._silence(at, answer)
            self.ledger.record(at.ids, at.steps, at.clock, Exact())
            return answer.raw
        if not self.mechanism.deviations():
            return self._released(answer.measured or self.mechanism, at, answer)
        rows = np.empty_like(answer.raw)
        for here, part in self.mechanism.parts(at.ids):
            rows[here] = self._released(part, at.rows(here), answer._replace(raw=answer.raw[here]))
        return rows

    def _released(self, part: Mechanism, at: Address, answer: RawAnswer) -> Array:
        """Releases of peers whose noise has one size, each with its line."""
        raw, level, on = answer.raw, answer.level, answer.on
        mechanism = part if level in (0.0, 1.0) else part.scaled(level)
        amount = None if on is None else on.rounding(answer.width, mechanism.sigma)
        event = mechanism.event_of(answer.width, amount) if level else Exact()
        if not self._affordable(at, event):
            return self._silence(at, answer, part)
        self.ledger.record(at.ids, at.steps, at.clock, event)
        if on is None:
            if not level:
                return mechanism.bare(raw, at.ids)
            return mechanism.release(raw, self.dice, at.ids, at.steps, at.use, self.run)
        if not level:
            return mechanism.bare_on(on.grid, on.times, raw, at.ids)
        return mechanism.release_on(
            on.grid, on.times, raw, self.dice, at.ids, at.steps, at.use, self.run
        )

    def _affordable(self, at: Address, event: Event) -> bool:
        """Whether no peer's budget would be passed by one event more."""
        return self.budget is None or all(
            self.budget.allows(self.ledger, int(u), event) for u in at.ids
        )

    def _silence(self, at: Address, answer: RawAnswer, part: Mechanism | None = None) -> Array:
        """One release more would pass the budget: the noise that it would have carried, which
        others' guarantees may rely on, and no data."""
        self.left_out.extend(map(LeftOut, at.steps.tolist(), at.clock.tolist()))
        level, on, width = answer.level, answer.on, answer.width
        divisor = 1.0 if part is None else part.divisor
        sigma = 0.0 if part is None else level * part.sigma / divisor  # of what is said
        if part is None or on is not None:
            form = on or OnGrid(0.0)
            form = form._replace(times=divisor * form.times, least=divisor * form.least)
            return self._alone.rows_on(at, np.full(len(at.ids), sigma), width, form)
        self.ledger.record(at.ids, at.steps, at.clock, Mask(sigma))
        if not level:
            return np.zeros((len(at.ids), width))
        mechanism = part if level == 1.0 else part.scaled(level)
        return mechanism.noise(self.dice, at.ids, at.steps, at.use, width, self.run)

    @property
    def _exact(self) -> ExactAnswers:
        return ExactAnswers(task=self.task, mechanism=self.mechanism, dice=self.dice, run=self.run)

    @property
    def _alone(self) -> NoiseAlone:
        return NoiseAlone(
            dice=self.dice,
            ledger=self.ledger,
            run=self.run,
            pairs=self.pairs,
            real=self.masks is not None,
        )

    def _sums(self, noise: RecordSums) -> SumsOfRecords:
        return SumsOfRecords(task=self.task, noise=noise, dice=self.dice, run=self.run)

    def fine_grid(self, times: float, data: float, noise: float) -> float:
        mechanism = self.mechanism
        return (
            0.0
            if mechanism is None
            else mechanism.fine_grid(times / mechanism.divisor, data, noise)
        )

    def reach(self, times: float, data: float, noise: float) -> float:
        mechanism = self.mechanism
        return 0.0 if mechanism is None else mechanism.reach(times / mechanism.divisor, data, noise)

    def value_on(self, at: Address, on: OnGrid, levels: Array | None) -> Array:
        self._exact.refuse_records()
        if levels is None:
            return self._release(at, RawAnswer(self.task.value(at.ids), on=on))
        rows = np.empty((len(at.ids), self.dim))
        for level in np.unique(levels):
            here = levels == level
            raw = self.task.value(at.ids[here])
            rows[here] = self._release(at.rows(here), RawAnswer(raw, float(level), on))
        return rows

    def gradient_on(self, at: Address, x: Array, batch: int | None, on: OnGrid) -> Array:
        if isinstance(self.mechanism, RecordSums):
            return self._record_gradient(self.mechanism, at, x, batch, on)
        return self._release(at, RawAnswer(self._exact.gradient(at, x, batch), on=on))

    def noise_on(self, at: Address, sigma: Array, width: int, on: OnGrid) -> Array:
        return self._alone.rows_on(at, sigma, width, on)

    def dither_on(self, at: Address, sigma: Array, width: int, on: OnGrid) -> Array:
        return self.noise_on(at, sigma, width, on)

    def copy_noise_on(
        self, at: Address, edges: Edges, sigma: Array, width: int, on: OnGrid
    ) -> Array:
        return self._alone.for_copies_on(at, edges, sigma, width, on)

    def pair_noise_on(
        self, at: Address, edges: Edges, sigma: float, width: int, on: OnGrid
    ) -> Array:
        return self._alone.for_pairs_on(at, edges, sigma, width, on)

    def value(self, at: Address) -> Array:
        self._exact.refuse_records()
        measured = self._exact.measured("values", "model", "loss")
        return self._release(at, RawAnswer(self.task.value(at.ids), measured=measured))

    def value_with(self, at: Address, levels: Array) -> Array:
        self._exact.refuse_records()
        measured = self._exact.measured("values", "model", "loss")
        rows = np.empty((len(at.ids), self.dim))
        for level in np.unique(levels):
            here = levels == level
            raw = self.task.value(at.ids[here])
            answer = RawAnswer(raw, float(level), measured=measured)
            rows[here] = self._release(at.rows(here), answer)
        return rows

    def loss(self, at: Address, x: Array, ceiling: float) -> Array:
        """A loss lies in [0, ceiling]: shifted and scaled to [-clip, clip] it is a row of one
        number, whose release costs what every release costs (perso:PERSO-14)."""
        self._exact.refuse_records()
        self._exact.measured("losses", "loss")
        raw = self.task.cut_losses(at.ids, x, ceiling)[:, None]
        if self.mechanism is None or self.mechanism.unclipped:
            return self._release(at, RawAnswer(raw))[:, 0]
        half = ceiling / 2
        unit = self.mechanism.clip / half
        return self._release(at, RawAnswer(unit * (raw - half)))[:, 0] / unit + half

    def gradient(self, at: Address, x: Array, batch: int | None) -> Array:
        if isinstance(self.mechanism, RecordSums):
            return self._record_gradient(self.mechanism, at, x, batch, None)
        return self._release(at, RawAnswer(self._exact.gradient(at, x, batch)))

    def gradient_with(self, at: Address, x: Array, levels: Array) -> Array:
        rows = np.empty_like(x)
        for level in np.unique(levels):
            here = levels == level
            part = at.rows(here)
            if level == 1:
                rows[here] = self.gradient(part, x[here], None)
            elif isinstance(self.mechanism, RecordSums):
                raise ConfigError(
                    "sums of clipped records have noise of one size, and this algorithm adds less"
                    " to later updates; leave growth out, or use noise-by-size"
                )
            else:
                raw = self._exact.gradient(part, x[here], None)
                rows[here] = self._release(part, RawAnswer(raw, float(level)))
        return rows

    def _record_gradient(
        self, sums: RecordSums, at: Address, x: Array, batch: int | None, on: OnGrid | None
    ) -> Array:
        """The noisy sum of the records' clipped gradients over the divisor, times a public factor,
        and after the noise the regularizer, which reads no record (silo:SILO-1)."""
        if batch is not None:
            raise ConfigError(
                f"batch = {batch} draws records with replacement, and at record level every record"
                " joins by a coin of its own; leave batch out and set privacy.sample_rate"
            )
        grid = sums.grain if on is None else on.grid
        times = 1.0 if on is None else on.times / sums.divisor
        raw = grid * self._clipped_sum(sums, at, x, times / grid).astype(np.float64)
        if on is None:
            return self._release(at, RawAnswer(raw)) / sums.divisor + self.task.penalty_gradient(x)
        exact = on._replace(times=times, least=on.least / sums.divisor)
        most = on.times * sums.clip
        shift = np.clip(on.times * self.task.penalty_gradient(x), -most, most)
        return self._release(at, RawAnswer(raw, on=exact)) + snap(shift, grid)

    def _clipped_sum(self, sums: RecordSums, at: Address, x: Array, unit: float) -> Ints:
        return self._sums(sums).clipped(at, x, unit)

    def grain(self, peers: int, shares: int) -> float:
        return grain_of(self.mechanism, peers, shares)

    def masked_gradient(
        self, at: Address, x: Array, grain: float, shares: int, votes: ClipVotes | None = None
    ) -> Ints:
        mechanism, width = self.mechanism, x.shape[1] + (votes is not None)
        event = Exact() if mechanism is None else mechanism.masked_event(width, grain, shares)
        if not self._affordable(at, event):
            self.left_out.extend(map(LeftOut, at.steps.tolist(), at.clock.tolist()))
            self.ledger.record(at.ids, at.steps, at.clock, Mask(self.sigma / math.sqrt(shares)))
            return self._share(at, width, grain, shares, votes)
        self.ledger.record(at.ids, at.steps, at.clock, event)
        if votes is None:
            answer = self._masked_answer(at, x, grain)
        else:
            answer = self._sums(self._summing()).with_votes(at, x, grain, votes)
        return answer + self._share(at, width, grain, shares, votes)

    def _summing(self) -> RecordSums:
        if not isinstance(self.mechanism, RecordSums):
            raise ConfigError(
                'votes on the clip are votes of records: they need level = "record" and noise;'
                " leave clip_votes out"
            )
        return self.mechanism

    def _masked_answer(self, at: Address, x: Array, grain: float) -> Ints:
        """The clipped answers in whole grains, which stay behind the door."""
        if isinstance(self.mechanism, RecordSums):
            return self._clipped_sum(self.mechanism, at, x, 1.0 / grain)
        rows = self._exact.gradient(at, x, None)
        if self.mechanism is not None:
            rows = self.mechanism.bare_on(grain, 1.0, rows, at.ids)
        return np.trunc(rows / grain).astype(np.int64)

    def _share(
        self, at: Address, width: int, grain: float, shares: int, votes: ClipVotes | None = None
    ) -> Ints:
        """One share of the noise of a masked sum, in grains  # (lanes, width)."""
        sigma = 0.0 if self.mechanism is None else self.mechanism.sigma
        if votes is not None and sigma:
            sums = self._summing()
            sigma = sums.clip * votes.gradient_noise(sums.z)
        return share_of(sigma, self.dice, self.run, at, width, grain, shares)

    def pair_words(self, at: Address, attempt: Attempt, colluders: int, width: int) -> Words:
        if self.masks is None:
            return drawn_masks(self.dice, self.run, at.ids, attempt, colluders, width)
        return agreed_masks(self.masks, at.ids, attempt, colluders, width)

    def next_clip(self, sums: Words, grain: float, members: Ints, votes: ClipVotes) -> Array:
        mechanism = self._summing()
        height = self._sums(mechanism).height(grain, votes)
        batch = mechanism.divisor * members.astype(np.float64)
        return next_scale(votes.scale, sums[:, -1].view(np.int64), height, batch)

    def summed_gradient(
        self, x: Array, sums: Words, grain: float, members: Ints, scale: Array
    ) -> Array:
        divisor = 1.0 if self.mechanism is None else self.mechanism.divisor
        mean = sums.view(np.int64) * (scale * grain / divisor) / members[:, None]
        if not isinstance(self.mechanism, RecordSums):
            return mean
        return mean + self.task.penalty_gradient(x)

    def prox(self, at: Address, x: Array, rho: Array) -> Array:
        return self._release(at, RawAnswer(self._exact.points(at, x, rho)))

    def envelope_gradient(self, at: Address, x: Array, rho: Array, level: float = 1.0) -> Array:
        raw = (x - self._exact.points(at, x, rho)) / rho[:, None]
        return self._release(at, RawAnswer(raw, level))

    def descent(self, at: Address, x: Array, rate: float, count: int, batch: int | None) -> Array:
        if isinstance(self.mechanism, RecordSums):
            self._check_one_step(count)
            return -rate * self._record_gradient(self.mechanism, at, x, batch, None)
        return self._release(at, RawAnswer(self._exact.descended(at, x, rate, count, batch) - x))

    def descent_on(
        self, at: Address, x: Array, rate: float, count: int, batch: int | None, on: OnGrid
    ) -> Array:
        if isinstance(self.mechanism, RecordSums):
            self._check_one_step(count)
            return -self._record_gradient(
                self.mechanism, at, x, batch, on._replace(times=on.times * rate)
            )
        raw = self._exact.descended(at, x, rate, count, batch) - x
        return self._release(at, RawAnswer(raw, on=on))

    def _check_one_step(self, count: int) -> None:
        if count > 1:
            raise ConfigError(
                f"{count} local steps between two releases read every record again and again, and"
                " at record level each reading needs noise; use local_steps = 1"
            )

    def pair_value(self, x: Array, y: Array) -> Array:
        return self.task.pair_value(x, y, self.gamma)

    def pair_gradient(self, models: Array, x: Array, y: Array) -> Array:
        return self.task.pair_gradient(models, x, y, self.gamma)

    def keep(self, at: Address, query: Callable[[Task, Ints], Array]) -> Array:
        self.watch.raw += 1
        return query(self.task, at.ids)

    def keep_other(self, at: Address, query: Callable[[Task, Ints], Array], known: Array) -> Array:
        return other_answer(
            lambda ids: query(self.task, ids), at.ids, self.task.peers, known, self.watch
        )

    def choice(self, at: Address, count: int) -> Array:
        return self.dice.uniform("choice", at.ids, at.steps, at.use, count, self.run)

    def common(self, clock: Ints, count: int) -> Array:
        run = self.run if self.origin is None else self.origin
        return (self.public or self.dice).uniform("public", clock + self.before, 0, 0, count, run)

    def _own_grid(self, most: float) -> OnGrid | None:
        """The mechanism's grid, for noise up to that size in a protocol about whose arithmetic
        nothing is known."""
        spacing = (
            self.fine_grid(max(1.0, most / (COARSEST * self.sigma)), 1.0, 1.0)
            if self.sigma
            else 0.0
        )
        return OnGrid(spacing, slack=math.inf) if spacing else None

    def noise(self, at: Address, sigma: Array, width: int) -> Array:
        on = self._own_grid(float(sigma.max(initial=0.0)))
        if on is not None:
            return self.noise_on(at, sigma, width, on)
        return self._alone.rows(at, sigma, width)

    def copy_noise(self, at: Address, edges: Edges, sigma: Array, width: int) -> Array:
        on = self._own_grid(float(sigma.max(initial=0.0)))
        if on is not None:
            return self.copy_noise_on(at, edges, sigma, width, on)
        return self._alone.for_copies(at, edges, sigma, width)

    def pair_noise(self, at: Address, edges: Edges, sigma: float, width: int) -> Array:
        on = self._own_grid(sigma)
        if on is not None:
            return self.pair_noise_on(at, edges, sigma, width, on)
        return self._alone.for_pairs(at, edges, sigma, width)
