"""TaskDoor: the door of a run, with a task behind, a mechanism in front, and a ledger line for every
release."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from bruit.algorithms.door import COARSEST, Address, Door, LeftOut, OnGrid
from bruit.algorithms.doorway import Watch, other_answer
from bruit.algorithms.masks import Masks, agreed_masks, drawn_masks
from bruit.algorithms.messages import Edges
from bruit.arrays import Array, Ints, Words
from bruit.errors import ConfigError, Diverged, PrivacyError
from bruit.mechanisms.clip_votes import ClipVotes, next_scale
from bruit.mechanisms.mechanism import Mechanism, power_of_two, snap
from bruit.mechanisms.record_sums import RecordSums
from bruit.privacy.events import Exact, Mask
from bruit.privacy.guarantee import Hypothesis
from bruit.privacy.ledger import Budget, Ledger
from bruit.randomness import Dice
from bruit.randomness.discrete_normal import discrete_normals
from bruit.tasks.task import Task

if TYPE_CHECKING:
    from bruit.algorithms.schedules.ballots.attempt import Attempt

FINEST_MASKED = 2.0**-30  # the grain of masked sums, in units of the smallest share of the noise
UNMASKED_GRAIN = 2.0**-32  # where there is no noise
MOST_WORDS = 2.0**62  # no honest sum of masked answers comes near half of the words


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
    origin: int | None = (
        None  # the first of these phases, whose public draws go on; this one if None
    )
    declared: tuple[Hypothesis, ...] = field(
        default=(), init=False
    )  # what the noise takes from the task

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

    def _release(
        self,
        at: Address,
        raw: Array,
        level: float = 1.0,
        on: OnGrid | None = None,
        measured: Mechanism | None = None,
    ) -> Array:
        """`measured`: the noise that was measured for this very answer, where answers differ."""
        if self.mechanism is None:
            if self.budget is not None:
                return self._silence(at, raw.shape[1], level, on)
            self.ledger.record(at.ids, at.steps, at.clock, Exact())
            return raw
        if not self.mechanism.deviations():
            return self._released(measured or self.mechanism, at, raw, level, on)
        rows = np.empty_like(raw)
        for here, part in self.mechanism.parts(at.ids):
            rows[here] = self._released(part, at.rows(here), raw[here], level, on)
        return rows

    def _released(
        self, part: Mechanism, at: Address, raw: Array, level: float, on: OnGrid | None
    ) -> Array:
        """Releases of peers whose noise has one size, each with its line."""
        mechanism, width = part if level in (0.0, 1.0) else part.scaled(level), raw.shape[1]
        amount = None if on is None else on.rounding(width, mechanism.sigma)
        event = mechanism.event_of(width, amount) if level else Exact()
        if self.budget is not None and not all(
            self.budget.allows(self.ledger, int(u), event) for u in at.ids
        ):
            return self._silence(at, width, level, on, part)
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

    def _measured(self, what: str, *kinds: str) -> Mechanism | None:
        """The noise on an answer of one of these kinds. Noise that clips nothing is true for the
        answers its sensitivities were derived for, and no others."""
        if self.mechanism is None or not self.mechanism.unclipped:
            return self.mechanism
        for kind in kinds:
            if (found := self.mechanism.measured_for(kind)) is not None:
                return found
        raise PrivacyError(
            "the noise was measured by how far one record moves a full gradient or a fitted model,"
            f" clips nothing, and says nothing of {what}; use Gaussian(clip=...), or read whole"
            " gradients"
        )

    def _refuse_records(self) -> None:
        """Sums of clipped records are sums of gradients."""
        if isinstance(self.mechanism, RecordSums):
            raise ConfigError(
                "at record level gradients are clipped record by record, and this algorithm asks"
                " for values, fitted models or proximal steps; use an algorithm that reads"
                ' gradients, RecordNoise for fitted models, or level = "user"'
            )

    def _silence(
        self,
        at: Address,
        width: int,
        level: float,
        on: OnGrid | None,
        part: Mechanism | None = None,
    ) -> Array:
        """One release more would pass the budget: the noise that it would have carried, which
        others' guarantees may rely on, and no data."""
        self.left_out.extend(map(LeftOut, at.steps.tolist(), at.clock.tolist()))
        divisor = 1.0 if part is None else part.divisor
        sigma = 0.0 if part is None else level * part.sigma / divisor  # of what is said
        if part is None or on is not None:
            levels, once = np.full(len(at.ids), sigma), np.ones(len(at.ids), np.int64)
            form = on or OnGrid(0.0)
            form = form._replace(times=divisor * form.times, least=divisor * form.least)
            return self._lattice_noise("noise", at, at.ids, levels, once, width, form)
        self.ledger.record(at.ids, at.steps, at.clock, Mask(sigma))
        if not level:
            return np.zeros((len(at.ids), width))
        mechanism = part if level == 1.0 else part.scaled(level)
        return mechanism.noise(self.dice, at.ids, at.steps, at.use, width, self.run)

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
        self._refuse_records()
        if levels is None:
            return self._release(at, self.task.value(at.ids), 1.0, on)
        rows = np.empty((len(at.ids), self.dim))
        for level in np.unique(levels):
            here = levels == level
            rows[here] = self._release(
                at.rows(here), self.task.value(at.ids[here]), float(level), on
            )
        return rows

    def gradient_on(self, at: Address, x: Array, batch: int | None, on: OnGrid) -> Array:
        if isinstance(self.mechanism, RecordSums):
            return self._record_gradient(self.mechanism, at, x, batch, on)
        return self._release(at, self._gradient(at, x, batch), 1.0, on)

    def noise_on(self, at: Address, sigma: Array, width: int, on: OnGrid) -> Array:
        return self._lattice_noise(
            "noise", at, at.ids, sigma, np.ones(len(at.ids), np.int64), width, on
        )

    def dither_on(self, at: Address, sigma: Array, width: int, on: OnGrid) -> Array:
        return self.noise_on(at, sigma, width, on)

    def copy_noise_on(
        self, at: Address, edges: Edges, sigma: Array, width: int, on: OnGrid
    ) -> Array:
        counts = np.diff(edges.start)
        lanes = np.repeat(at.ids, counts) << 24 | edges.peers
        return self._lattice_noise("copy", at, lanes, sigma, counts, width, on)

    def pair_noise_on(
        self, at: Address, edges: Edges, sigma: float, width: int, on: OnGrid
    ) -> Array:
        """R of the sums of such noises is that of the peers' own noise (fp:FP-3): these add nothing
        to it."""
        counts = np.diff(edges.start)
        mine = np.repeat(at.ids, counts)
        proven = sigma >= COARSEST * on.grid and on.slack == 0
        self.ledger.record(at.ids, at.steps, at.clock, Mask(sigma, 0.0 if proven else math.inf))
        lanes, steps = self.dice.pair(mine, edges.peers), np.repeat(at.steps, counts)

        def drawn(dice: Dice, some: slice) -> Array:
            return discrete_normals(
                dice=dice,
                purpose="pair",
                lanes=lanes[some],
                steps=steps[some],
                use=at.use,
                count=width,
                s=sigma / on.grid,
                run=self.run,
                grid=on.grid,
            )

        parts = [drawn(*one) for one in self._pair_dice(edges.peers)]
        rows: Array = parts[0] if len(parts) == 1 else np.vstack([np.zeros((0, width)), *parts])
        return np.where(mine < edges.peers, 1.0, -1.0)[:, None] * rows

    def _pair_dice(self, peers: Ints) -> list[tuple[Dice, slice]]:
        """Whose dice fall for which slots. Dice of a real peer's own would cancel with nobody's."""
        if self.pairs is not None:
            return [(self.pairs[peer], slice(k, k + 1)) for k, peer in enumerate(peers.tolist())]
        if self.masks is not None:
            raise PrivacyError(
                "real neighbors share no dice: canceling noise needs keys that they agreed on"
            )
        return [(self.dice, slice(None))]

    def _lattice_noise(
        self,
        purpose: str,
        at: Address,
        lanes: Ints,
        sigma: Array,
        counts: Ints,
        width: int,
        on: OnGrid,
    ) -> Array:
        """Rows of discrete Gaussian noise, `counts` of them for each lane, of on.times times the
        deviation sigma."""
        rows, steps = np.zeros((len(lanes), width)), np.repeat(at.steps, counts)
        for level in np.unique(sigma):
            here = (sigma == level) & (counts > 0)
            if level == 0 or not here.any():  # no noise is a line too: nothing is proven with it
                self.ledger.record(at.ids[here], at.steps[here], at.clock[here], Mask(float(level)))
                continue
            deviation = on.times * float(level)
            mask = Mask(float(level), on.rounding(width, float(level)))
            if here.all():
                self.ledger.record(at.ids, at.steps, at.clock, mask)
                return discrete_normals(
                    dice=self.dice,
                    purpose=purpose,
                    lanes=lanes,
                    steps=steps,
                    use=at.use,
                    count=width,
                    s=deviation / on.grid,
                    run=self.run,
                    grid=on.grid,
                )
            self.ledger.record(at.ids[here], at.steps[here], at.clock[here], mask)
            each = np.repeat(here, counts)
            rows[each] = discrete_normals(
                dice=self.dice,
                purpose=purpose,
                lanes=lanes[each],
                steps=steps[each],
                use=at.use,
                count=width,
                s=deviation / on.grid,
                run=self.run,
                grid=on.grid,
            )
        return rows

    def value(self, at: Address) -> Array:
        self._refuse_records()
        measured = self._measured("values", "model", "loss")
        return self._release(at, self.task.value(at.ids), measured=measured)

    def value_with(self, at: Address, levels: Array) -> Array:
        self._refuse_records()
        measured = self._measured("values", "model", "loss")
        rows = np.empty((len(at.ids), self.dim))
        for level in np.unique(levels):
            here = levels == level
            raw = self.task.value(at.ids[here])
            rows[here] = self._release(at.rows(here), raw, float(level), measured=measured)
        return rows

    def loss(self, at: Address, x: Array, ceiling: float) -> Array:
        """A loss lies in [0, ceiling]: shifted and scaled to [-clip, clip] it is a row of one
        number, whose release costs what every release costs (perso:PERSO-14)."""
        self._refuse_records()
        self._measured("losses", "loss")
        raw = self.task.cut_losses(at.ids, x, ceiling)[:, None]
        if self.mechanism is None or self.mechanism.unclipped:
            return self._release(at, raw)[:, 0]
        half = ceiling / 2
        unit = self.mechanism.clip / half
        return self._release(at, unit * (raw - half))[:, 0] / unit + half

    def gradient(self, at: Address, x: Array, batch: int | None) -> Array:
        if isinstance(self.mechanism, RecordSums):
            return self._record_gradient(self.mechanism, at, x, batch, None)
        return self._release(at, self._gradient(at, x, batch))

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
                rows[here] = self._release(part, self._gradient(part, x[here], None), float(level))
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
            return self._release(at, raw) / sums.divisor + self.task.penalty_gradient(x)
        exact = on._replace(times=times, least=on.least / sums.divisor)
        most = on.times * sums.clip
        shift = np.clip(on.times * self.task.penalty_gradient(x), -most, most)
        return self._release(at, raw, 1.0, exact) + snap(shift, grid)

    def _clipped_sum(self, sums: RecordSums, at: Address, x: Array, unit: float) -> Ints:
        """Sums of whole numbers over records, which stay behind the door."""
        if at.turn.cycle > 1:
            taken = self._whose_turn(sums, at)
            return self.task.clipped_sum(at.ids, x, taken, 0.5, sums.clip, unit)
        coins = self._coins(sums, at)
        return self.task.clipped_sum(at.ids, x, coins, sums.sample_rate, sums.clip, unit)

    def _whose_turn(self, sums: RecordSums, at: Address) -> Array:
        """0 where it is a record's turn, else 1, in place of coins  # (lanes, records)."""
        if sums.sample_rate < 1:
            raise ConfigError(
                "records take turns in a public order, and sample_rate draws them in secret as"
                " well; use sample_rate = 1"
            )
        counts = self.task.record_counts()
        most = int(counts[at.ids % len(counts)].max(initial=1))
        others = np.arange(most) % at.turn.cycle != at.turn.number
        return np.tile(others.astype(np.float64), (len(at.ids), 1))

    def _coins(self, sums: RecordSums, at: Address) -> Array | None:
        """A secret coin for every record, fresh in each release; None where all records join
        # (lanes, records)."""
        if sums.sample_rate >= 1:
            return None
        counts = self.task.record_counts()
        most = int(counts[at.ids % len(counts)].max(initial=1))
        return self.dice.uniform("coins", at.ids, at.steps, at.use, most, self.run)

    def grain(self, peers: int, shares: int) -> float:
        if self.mechanism is None or not self.mechanism.sigma:
            return UNMASKED_GRAIN
        grain = power_of_two(self.mechanism.sigma / math.sqrt(shares) * FINEST_MASKED)
        if self.mechanism.reach(1.0 / grain, float(peers), math.sqrt(peers)) >= MOST_WORDS:
            raise ConfigError(
                "sums of masked answers might not fit into words of 64 bits; declare a smaller"
                " capacity, or use more noise"
            )
        return grain

    def masked_gradient(
        self, at: Address, x: Array, grain: float, shares: int, votes: ClipVotes | None = None
    ) -> Ints:
        mechanism, width = self.mechanism, x.shape[1] + (votes is not None)
        event = Exact() if mechanism is None else mechanism.masked_event(width, grain, shares)
        if self.budget is not None and not all(
            self.budget.allows(self.ledger, int(u), event) for u in at.ids
        ):
            self.left_out.extend(map(LeftOut, at.steps.tolist(), at.clock.tolist()))
            self.ledger.record(at.ids, at.steps, at.clock, Mask(self.sigma / math.sqrt(shares)))
            return self._share(at, width, grain, shares, votes)
        self.ledger.record(at.ids, at.steps, at.clock, event)
        if votes is None:
            answer = self._masked_answer(at, x, grain)
        else:
            answer = self._answer_with_votes(at, x, grain, votes)
        return answer + self._share(at, width, grain, shares, votes)

    def _answer_with_votes(self, at: Address, x: Array, grain: float, votes: ClipVotes) -> Ints:
        """Sums of records clipped at the present clips, in grains of these, and the votes on them;
        all of it stays behind the door  # (lanes, dim + 1)."""
        sums = self._summing()
        coins, found = self._coins(sums, at), np.zeros((len(x), x.shape[1] + 1), np.int64)
        height = votes.height(sums.clip, sums.z, grain) if sums.sigma else 1
        for scale in np.unique(votes.scale):
            here = votes.scale == scale
            some = None if coins is None else coins[here]
            asked = (at.ids[here], x[here], some, sums.sample_rate, scale * sums.clip)
            found[here, :-1] = self.task.clipped_sum(*asked, 1.0 / (scale * grain))
            found[here, -1] = height * self.task.clip_votes(*asked)
        return found

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
        rows = self._gradient(at, x, None)
        if self.mechanism is not None:
            rows = self.mechanism.bare_on(grain, 1.0, rows, at.ids)
        return np.trunc(rows / grain).astype(np.int64)

    def _share(
        self, at: Address, width: int, grain: float, shares: int, votes: ClipVotes | None = None
    ) -> Ints:
        """One share of the noise of a masked sum, in grains  # (lanes, width)."""
        if self.mechanism is None or not self.mechanism.sigma:
            return np.zeros((len(at.ids), width), np.int64)
        sigma = self.mechanism.sigma
        if votes is not None:
            sums = self._summing()
            sigma = sums.clip * votes.gradient_noise(sums.z)
        return discrete_normals(
            dice=self.dice,
            purpose="noise",
            lanes=at.ids,
            steps=at.steps,
            use=at.use,
            count=width,
            s=sigma / math.sqrt(shares) / grain,
            run=self.run,
        ).astype(np.int64)

    def pair_words(self, at: Address, attempt: Attempt, colluders: int, width: int) -> Words:
        if self.masks is None:
            return drawn_masks(self.dice, self.run, at.ids, attempt, colluders, width)
        return agreed_masks(self.masks, at.ids, attempt, colluders, width)

    def next_clip(self, sums: Words, grain: float, members: Ints, votes: ClipVotes) -> Array:
        mechanism = self._summing()
        height = votes.height(mechanism.clip, mechanism.z, grain) if mechanism.sigma else 1
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

    def _gradient(self, at: Address, x: Array, batch: int | None) -> Array:
        """The exact gradients, which stay behind the door."""
        if at.turn.cycle > 1:
            raise ConfigError(
                "records take turns at record level only, where each is clipped by itself; give"
                ' level = "record", or a cycle of 1'
            )
        if batch is None:
            self._measured("gradients", "gradient")
        else:
            self._measured("the gradient of sampled records")
        try:
            if batch is None:
                return self.task.gradient(at.ids, x)
            draws = self.dice.uniform("records", at.ids, at.steps, at.use, batch, self.run)
            return self.task.gradient_sampled(at.ids, x, draws)
        except Diverged as astray:
            when = f"at step {at.steps[astray.row]} of its own: {astray}"
            raise ConfigError(when) from None

    def prox(self, at: Address, x: Array, rho: Array) -> Array:
        self._refuse_records()
        self._measured("a proximal step")
        return self._release(at, self._points(at, x, rho))

    def envelope_gradient(self, at: Address, x: Array, rho: Array, level: float = 1.0) -> Array:
        self._refuse_records()
        self._measured("a proximal step")
        return self._release(at, (x - self._points(at, x, rho)) / rho[:, None], level)

    def descent(self, at: Address, x: Array, rate: float, count: int, batch: int | None) -> Array:
        if isinstance(self.mechanism, RecordSums):
            self._check_one_step(count)
            return -rate * self._record_gradient(self.mechanism, at, x, batch, None)
        return self._release(at, self._descended(at, x, rate, count, batch) - x)

    def descent_on(
        self, at: Address, x: Array, rate: float, count: int, batch: int | None, on: OnGrid
    ) -> Array:
        if isinstance(self.mechanism, RecordSums):
            self._check_one_step(count)
            return -self._record_gradient(
                self.mechanism, at, x, batch, on._replace(times=on.times * rate)
            )
        return self._release(at, self._descended(at, x, rate, count, batch) - x, 1.0, on)

    def _check_one_step(self, count: int) -> None:
        if count > 1:
            raise ConfigError(
                f"{count} local steps between two releases read every record again and again, and"
                " at record level each reading needs noise; use local_steps = 1"
            )

    def _descended(
        self, at: Address, x: Array, rate: float, count: int, batch: int | None
    ) -> Array:
        """Where the steps lead, exactly, which stays behind the door."""
        self._measured("the change of a model after local steps")
        y, draws = x, np.zeros((len(at.ids), 0))
        if batch is not None:
            draws = self.dice.uniform("records", at.ids, at.steps, at.use, batch * count, self.run)
        for k in range(count):
            if batch is None:
                y = y - rate * self.task.gradient(at.ids, y)
            else:
                y = y - rate * self.task.gradient_sampled(
                    at.ids, y, draws[:, k * batch : (k + 1) * batch]
                )
        return y

    def _points(self, at: Address, x: Array, rho: Array) -> Array:
        """The exact proximal points, which stay behind the door."""
        points = np.empty_like(x)
        for level in np.unique(rho):
            rows = rho == level
            points[rows] = self.task.prox(at.ids[rows], x[rows], float(level))
        return points

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
        for level in np.unique(sigma):
            rows = sigma == level
            self.ledger.record(at.ids[rows], at.steps[rows], at.clock[rows], Mask(float(level)))
        return sigma[:, None] * self.dice.normal("noise", at.ids, at.steps, at.use, width, self.run)

    def copy_noise(self, at: Address, edges: Edges, sigma: Array, width: int) -> Array:
        on, counts = self._own_grid(float(sigma.max(initial=0.0))), np.diff(edges.start)
        if on is not None:
            return self.copy_noise_on(at, edges, sigma, width, on)
        for level in np.unique(sigma):
            rows = (sigma == level) & (counts > 0)
            self.ledger.record(at.ids[rows], at.steps[rows], at.clock[rows], Mask(float(level)))
        lanes = np.repeat(at.ids, counts) << 24 | edges.peers
        draws = self.dice.normal(
            "copy", lanes, np.repeat(at.steps, counts), at.use, width, self.run
        )
        return np.repeat(sigma, counts)[:, None] * draws

    def pair_noise(self, at: Address, edges: Edges, sigma: float, width: int) -> Array:
        on, counts = self._own_grid(sigma), np.diff(edges.start)
        if on is not None:
            return self.pair_noise_on(at, edges, sigma, width, on)
        if self.masks is not None:
            raise PrivacyError("canceling noise of real peers lies on a grid, or hides nothing")
        mine = np.repeat(at.ids, counts)
        lanes = self.dice.pair(mine, edges.peers)
        draws = self.dice.normal(
            "pair", lanes, np.repeat(at.steps, counts), at.use, width, self.run
        )
        sign = np.where(mine < edges.peers, sigma, -sigma)
        self.ledger.record(at.ids, at.steps, at.clock, Mask(sigma))
        return sign[:, None] * draws
