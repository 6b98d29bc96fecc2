"""Home: what a batch of peers may touch while it computes, and the one door to private data.

`start` and `absorb` receive a `Home`; `emit` does not. Every read of data goes through a `Door`, which adds the
noise and writes the ledger line, so that no algorithm holds differential-privacy code. A read without mechanism is
logged as `Exact`: its epsilon is infinite, never silently absent.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, cast

import numpy as np

from bruit.algorithms.doorway import Doorway, Watch, other_answer
from bruit.algorithms.messages import Edges, Slots
from bruit.arrays import Array, Bools, Ints
from bruit.discrete_normal import discrete_normals
from bruit.errors import ConfigError, LocalProtocolError, PrivacyError
from bruit.mechanisms.mechanism import Mechanism
from bruit.privacy.events import Exact, Mask
from bruit.privacy.guarantee import Hypothesis
from bruit.privacy.ledger import Budget, Ledger
from bruit.randomness import Dice
from bruit.tasks.task import Task


class Address(NamedTuple):
    """Where a release happens: which peers, at which of their own steps and positions, and the how-manieth use."""

    ids: Ints
    steps: Ints
    clock: Ints
    use: int

    def rows(self, where: Bools) -> Address:
        return Address(self.ids[where], self.steps[where], self.clock[where], self.use)


class LeftOut(NamedTuple):
    """A release that a spent budget left out: at which of the peer's own steps, and position of the schedule."""

    step: int
    clock: int


class OnGrid(NamedTuple):
    """What is drawn lies on a grid (fp:FP-1): its spacing, a public factor of the release (a step size, say), and how
    far what the noise is added to may be from the real protocol's, given the same rounded past, per coordinate. `least`
    is the smallest factor of the whole run, where it changes, and `copies` the most copies of a message that differ:
    one event then serves all steps and peers."""

    grid: float
    times: float = 1.0
    slack: float = 0.0
    least: float = 0.0
    copies: int = 1

    def rounding(self, width: int, sigma: float) -> float:
        """R of one row of noise of this deviation (fp:FP-0); infinite where the grid is too coarse for the lemma."""
        deviation = (self.least or self.times) * sigma
        if deviation < COARSEST * self.grid:
            return math.inf
        return self.copies * width * ((self.slack + self.grid / 2) / deviation) ** 2


LARGE = 2**16  # numbers from which rounding is compiled
COARSEST = 16.0  # least deviation of a noise, in units of the grid


class Door(ABC):
    """The only way from an algorithm to private data and to noise; a new question is listed in `doorway.QUESTIONS`."""

    watch: Watch = Watch()  # of a door that gives no raw answers
    left_out: Sequence[LeftOut] = ()  # what a spent budget left out, in order; its noise left all the same

    @property
    @abstractmethod
    def dim(self) -> int:
        """Length of one row of values or of a model."""

    @property
    @abstractmethod
    def sigma(self) -> float:
        """Standard deviation of the noise each release carries; 0 without mechanism."""

    @property
    def gamma(self) -> float:
        """Chance that a release is a uniform value (randomized response); 0 for other mechanisms."""
        return 0.0

    @property
    def warm(self) -> bool:
        """Whether peers go on from what an earlier protocol left them: a model, or all of their state."""
        return False

    @property
    def before(self) -> int:
        """How many steps the earlier phases made whose states this one goes on from; 0 where it starts anew."""
        return 0

    def beginning(self, ids: Ints) -> Array:
        """The models peers begin with: zeros, or what an earlier protocol left them  # (lanes, dim)."""
        return np.zeros((len(ids), self.dim))

    def with_ledger(self, ledger: Ledger) -> Door:
        """The same door, writing into another ledger: each real peer keeps its own."""
        raise LocalProtocolError("this door keeps no ledger of its own")

    def fine_grid(self, times: float, data: float, noise: float) -> float:
        """The grid of what leaves this door, see `Mechanism.fine_grid`; 0: real numbers."""
        return 0.0

    def reach(self, times: float, data: float, noise: float) -> float:
        """How far numbers on that grid are from zero at most, but for a chance of 1e-889 each."""
        return 0.0

    def value_on(self, at: Address, on: OnGrid, levels: Array | None) -> Array:
        """The peers' values on a grid, released, with these fractions of the noise (None: all)  # (lanes, dim)."""
        raise LocalProtocolError("this door has no grid")

    def gradient_on(self, at: Address, x: Array, batch: int | None, on: OnGrid) -> Array:
        """The peers' gradients times a factor, on a grid, released  # (lanes, dim)."""
        raise LocalProtocolError("this door has no grid")

    def descent_on(self, at: Address, x: Array, rate: float, count: int, batch: int | None, on: OnGrid) -> Array:
        """How far so many gradient steps lead from x, on a grid, released  # (lanes, dim)."""
        raise LocalProtocolError("this door has no grid")

    def noise_on(self, at: Address, sigma: Array, width: int, on: OnGrid) -> Array:
        """Noise on a grid, without data, one row per lane  # (lanes, width)."""
        raise LocalProtocolError("this door has no grid")

    def dither_on(self, at: Address, sigma: Array, width: int, on: OnGrid) -> Array:
        """Noise on a grid that a message carries, one row per lane (fp:FP-1)  # (lanes, width)."""
        raise LocalProtocolError("this door has no grid")

    def copy_noise_on(self, at: Address, edges: Edges, sigma: Array, width: int, on: OnGrid) -> Array:
        """Independent noise on a grid for every message copy  # (copies, width)."""
        raise LocalProtocolError("this door has no grid")

    def pair_noise_on(self, at: Address, edges: Edges, sigma: float, width: int, on: OnGrid) -> Array:
        """Noise on a grid shared by the two ends of an edge with opposite signs  # (copies, width)."""
        raise LocalProtocolError("this door has no grid")

    @abstractmethod
    def value(self, at: Address) -> Array:
        """The peers' values, released  # (lanes, dim)."""

    def value_with(self, at: Address, levels: Array) -> Array:
        """The peers' values, each with that fraction of the mechanism's noise, 0 for none  # (lanes, dim)."""
        raise LocalProtocolError("this door adds all of the noise or nothing")

    @abstractmethod
    def gradient(self, at: Address, x: Array, batch: int | None) -> Array:
        """The peers' gradients at their own x, released  # (lanes, dim)."""

    @abstractmethod
    def prox(self, at: Address, x: Array, rho: Array) -> Array:
        """The peers' proximal points, released  # (lanes, dim)."""

    def envelope_gradient(self, at: Address, x: Array, rho: Array, level: float = 1.0) -> Array:
        """The gradients of the peers' Moreau envelopes, (x - prox(x)) / rho, released  # (lanes, dim).

        `level` is the fraction of the mechanism's noise, 0 for none."""
        raise LocalProtocolError("this door answers no proximal questions")

    def descent(self, at: Address, x: Array, rate: float, count: int, batch: int | None) -> Array:
        """How far so many gradient steps on the peers' own records lead from x, released  # (lanes, dim)."""
        raise LocalProtocolError("this door takes no gradient steps of its own")

    def pair_value(self, x: Array, y: Array) -> Array:
        """What the task computes from two points that were shown; reads no record  # (lanes, dim)."""
        raise LocalProtocolError("this door answers no questions about pairs of points")

    def pair_gradient(self, models: Array, x: Array, y: Array) -> Array:
        """The gradient of the task's loss of a pair of shown points; reads no record  # (lanes, dim)."""
        raise LocalProtocolError("this door answers no questions about pairs of points")

    @abstractmethod
    def keep(self, at: Address, query: Callable[[Task, Ints], Array]) -> Array:
        """A raw answer that must stay at home."""

    def keep_other(self, at: Address, query: Callable[[Task, Ints], Array], known: Array) -> Array:
        """What the same question would bring from other data than the `known` answer came from."""
        raise LocalProtocolError("this door gives no raw answers")

    @abstractmethod
    def choice(self, at: Address, count: int) -> Array:
        """Private uniform draws: choices that may hide something  # (lanes, count)."""

    @abstractmethod
    def common(self, clock: Ints, count: int) -> Array:
        """Uniform draws that everybody at the same position of the schedule shares  # (lanes, count)."""

    @abstractmethod
    def noise(self, at: Address, sigma: Array, width: int) -> Array:
        """Noise without data, one row per lane  # (lanes, width)."""

    @abstractmethod
    def copy_noise(self, at: Address, edges: Edges, sigma: Array, width: int) -> Array:
        """Independent noise for every message copy  # (copies, width)."""

    @abstractmethod
    def pair_noise(self, at: Address, edges: Edges, sigma: float, width: int) -> Array:
        """Noise shared by the two ends of an edge with opposite signs  # (copies, width)."""


@dataclass(frozen=True)
class TaskDoor(Door):
    """The door of a real or simulated run: task behind, mechanism in front, a ledger line for every release.

    `dice` are for what hides data: noise, records drawn, a peer's own choices. `public` are for what all share; the
    same unless given."""

    task: Task
    mechanism: Mechanism | None
    dice: Dice
    ledger: Ledger
    run: int = 0
    budget: Budget | None = None
    models: Array | None = None  # (n, dim) what an earlier protocol left the peers with
    public: Dice | None = None
    watch: Watch = field(default_factory=Watch)
    left_out: list[LeftOut] = field(default_factory=list)
    resumed: bool = False  # whether an earlier protocol left the peers their whole state
    before: int = 0  # steps of the phases that left it
    origin: int | None = None  # the first of these phases, whose public draws go on; this one if None
    declared: tuple[Hypothesis, ...] = field(default=(), init=False)  # what the noise takes from the task

    def __post_init__(self) -> None:
        if self.mechanism is not None:
            object.__setattr__(self, "declared", self.mechanism.compared(self.task))

    @property
    def warm(self) -> bool:
        return self.resumed or self.models is not None

    def beginning(self, ids: Ints) -> Array:
        return super().beginning(ids) if self.models is None else self.models[ids].copy()

    def with_ledger(self, ledger: Ledger) -> Door:
        return replace(self, ledger=ledger, left_out=[])

    @property
    def dim(self) -> int:
        return self.task.dim

    @property
    def sigma(self) -> float:
        return 0.0 if self.mechanism is None else self.mechanism.sigma

    @property
    def gamma(self) -> float:
        return 0.0 if self.mechanism is None else self.mechanism.gamma

    def _release(self, at: Address, raw: Array, level: float = 1.0, on: OnGrid | None = None) -> Array:
        if self.mechanism is None:
            if self.budget is not None:
                return self._silence(at, raw.shape[1], level, on)
            self.ledger.record(at.ids, at.steps, at.clock, Exact())
            return raw
        mechanism, width = self.mechanism if level in (0.0, 1.0) else self.mechanism.scaled(level), raw.shape[1]
        amount = None if on is None else on.rounding(width, mechanism.sigma)
        event = mechanism.event_of(width, amount) if level else Exact()
        if self.budget is not None and not all(self.budget.allows(self.ledger, int(u), event) for u in at.ids):
            return self._silence(at, width, level, on)
        self.ledger.record(at.ids, at.steps, at.clock, event)
        if on is None:
            if not level:
                return mechanism.bare(raw, at.ids)
            return mechanism.release(raw, self.dice, at.ids, at.steps, at.use, self.run)
        if not level:
            return mechanism.bare_on(on.grid, on.times, raw, at.ids)
        return mechanism.release_on(on.grid, on.times, raw, self.dice, at.ids, at.steps, at.use, self.run)

    def _refuse_unmeasured(self, what: str, *kinds: str) -> None:
        """Noise that clips nothing is true for the answers its sensitivities were derived for, and no others."""
        if self.mechanism is not None and self.mechanism.unclipped and self.mechanism.measures not in kinds:
            raise PrivacyError("the noise was measured by how far one record moves a full gradient or a fitted model,"
                               f" clips nothing, and says nothing of {what}; use Gaussian(clip=...), or read whole"
                               " gradients")  # fmt: skip

    def _silence(self, at: Address, width: int, level: float, on: OnGrid | None) -> Array:
        """One release more would pass the budget: the noise that it would have carried, which others' guarantees may
        rely on, and no data."""
        self.left_out.extend(map(LeftOut, at.steps.tolist(), at.clock.tolist()))
        sigma = level * self.sigma
        if self.mechanism is None or on is not None:
            levels, once = np.full(len(at.ids), sigma), np.ones(len(at.ids), np.int64)
            return self._lattice_noise("noise", at, at.ids, levels, once, width, on or OnGrid(0.0))
        self.ledger.record(at.ids, at.steps, at.clock, Mask(sigma))
        if not level:
            return np.zeros((len(at.ids), width))
        mechanism = self.mechanism if level == 1.0 else self.mechanism.scaled(level)
        return mechanism.noise(self.dice, at.ids, at.steps, at.use, width, self.run)

    def fine_grid(self, times: float, data: float, noise: float) -> float:
        return 0.0 if self.mechanism is None else self.mechanism.fine_grid(times, data, noise)

    def reach(self, times: float, data: float, noise: float) -> float:
        return 0.0 if self.mechanism is None else self.mechanism.reach(times, data, noise)

    def value_on(self, at: Address, on: OnGrid, levels: Array | None) -> Array:
        if levels is None:
            return self._release(at, self.task.value(at.ids), 1.0, on)
        rows = np.empty((len(at.ids), self.dim))
        for level in np.unique(levels):
            here = levels == level
            rows[here] = self._release(at.rows(here), self.task.value(at.ids[here]), float(level), on)
        return rows

    def gradient_on(self, at: Address, x: Array, batch: int | None, on: OnGrid) -> Array:
        return self._release(at, self._gradient(at, x, batch), 1.0, on)

    def noise_on(self, at: Address, sigma: Array, width: int, on: OnGrid) -> Array:
        return self._lattice_noise("noise", at, at.ids, sigma, np.ones(len(at.ids), np.int64), width, on)

    def dither_on(self, at: Address, sigma: Array, width: int, on: OnGrid) -> Array:
        return self.noise_on(at, sigma, width, on)

    def copy_noise_on(self, at: Address, edges: Edges, sigma: Array, width: int, on: OnGrid) -> Array:
        counts = np.diff(edges.start)
        lanes = np.repeat(at.ids, counts) << 24 | edges.peers
        return self._lattice_noise("copy", at, lanes, sigma, counts, width, on)

    def pair_noise_on(self, at: Address, edges: Edges, sigma: float, width: int, on: OnGrid) -> Array:
        """R of the sums of such noises is that of the peers' own noise (fp:FP-3): these add nothing to it."""
        counts = np.diff(edges.start)
        mine = np.repeat(at.ids, counts)
        proven = sigma >= COARSEST * on.grid and on.slack == 0
        self.ledger.record(at.ids, at.steps, at.clock, Mask(sigma, 0.0 if proven else math.inf))
        rows = discrete_normals(self.dice, "pair", self.dice.pair(mine, edges.peers), np.repeat(at.steps, counts),
                                at.use, width, sigma / on.grid, self.run, on.grid)  # fmt: skip
        return np.where(mine < edges.peers, 1.0, -1.0)[:, None] * rows

    def _lattice_noise(self, purpose: str, at: Address, lanes: Ints, sigma: Array, counts: Ints, width: int,
                       on: OnGrid) -> Array:  # fmt: skip
        """Rows of discrete Gaussian noise, `counts` of them for each lane, of on.times times the deviation sigma."""
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
                return discrete_normals(self.dice, purpose, lanes, steps, at.use, width, deviation / on.grid,
                                        self.run, on.grid)  # fmt: skip
            self.ledger.record(at.ids[here], at.steps[here], at.clock[here], mask)
            each = np.repeat(here, counts)
            rows[each] = discrete_normals(self.dice, purpose, lanes[each], steps[each], at.use, width,
                                          deviation / on.grid, self.run, on.grid)  # fmt: skip
        return rows

    def value(self, at: Address) -> Array:
        self._refuse_unmeasured("values", "model", "loss")
        return self._release(at, self.task.value(at.ids))

    def value_with(self, at: Address, levels: Array) -> Array:
        self._refuse_unmeasured("values", "model", "loss")
        rows = np.empty((len(at.ids), self.dim))
        for level in np.unique(levels):
            here = levels == level
            rows[here] = self._release(at.rows(here), self.task.value(at.ids[here]), float(level))
        return rows

    def gradient(self, at: Address, x: Array, batch: int | None) -> Array:
        return self._release(at, self._gradient(at, x, batch))

    def _gradient(self, at: Address, x: Array, batch: int | None) -> Array:
        """The exact gradients, which stay behind the door."""
        if batch is None:
            self._refuse_unmeasured("gradients", "gradient")
            return self.task.gradient(at.ids, x)
        self._refuse_unmeasured("the gradient of sampled records")
        draws = self.dice.uniform("records", at.ids, at.steps, at.use, batch, self.run)
        return self.task.gradient_sampled(at.ids, x, draws)

    def prox(self, at: Address, x: Array, rho: Array) -> Array:
        self._refuse_unmeasured("a proximal step")
        return self._release(at, self._points(at, x, rho))

    def envelope_gradient(self, at: Address, x: Array, rho: Array, level: float = 1.0) -> Array:
        self._refuse_unmeasured("a proximal step")
        return self._release(at, (x - self._points(at, x, rho)) / rho[:, None], level)

    def descent(self, at: Address, x: Array, rate: float, count: int, batch: int | None) -> Array:
        return self._release(at, self._descended(at, x, rate, count, batch) - x)

    def descent_on(self, at: Address, x: Array, rate: float, count: int, batch: int | None, on: OnGrid) -> Array:
        return self._release(at, self._descended(at, x, rate, count, batch) - x, 1.0, on)

    def _descended(self, at: Address, x: Array, rate: float, count: int, batch: int | None) -> Array:
        """Where the steps lead, exactly, which stays behind the door."""
        self._refuse_unmeasured("the change of a model after local steps")
        y, draws = x, np.zeros((len(at.ids), 0))
        if batch is not None:
            draws = self.dice.uniform("records", at.ids, at.steps, at.use, batch * count, self.run)
        for k in range(count):
            if batch is None:
                y = y - rate * self.task.gradient(at.ids, y)
            else:
                y = y - rate * self.task.gradient_sampled(at.ids, y, draws[:, k * batch : (k + 1) * batch])
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
        return other_answer(lambda ids: query(self.task, ids), at.ids, self.task.peers, known, self.watch)

    def choice(self, at: Address, count: int) -> Array:
        return self.dice.uniform("choice", at.ids, at.steps, at.use, count, self.run)

    def common(self, clock: Ints, count: int) -> Array:
        run = self.run if self.origin is None else self.origin
        return (self.public or self.dice).uniform("public", clock + self.before, 0, 0, count, run)

    def _own_grid(self, most: float) -> OnGrid | None:
        """The mechanism's grid, for noise up to that size in a protocol about whose arithmetic nothing is known."""
        spacing = self.fine_grid(max(1.0, most / (COARSEST * self.sigma)), 1.0, 1.0) if self.sigma else 0.0
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
        draws = self.dice.normal("copy", lanes, np.repeat(at.steps, counts), at.use, width, self.run)
        return np.repeat(sigma, counts)[:, None] * draws

    def pair_noise(self, at: Address, edges: Edges, sigma: float, width: int) -> Array:
        on, counts = self._own_grid(sigma), np.diff(edges.start)
        if on is not None:
            return self.pair_noise_on(at, edges, sigma, width, on)
        mine = np.repeat(at.ids, counts)
        lanes = self.dice.pair(mine, edges.peers)
        draws = self.dice.normal("pair", lanes, np.repeat(at.steps, counts), at.use, width, self.run)
        sign = np.where(mine < edges.peers, sigma, -sigma)
        self.ledger.record(at.ids, at.steps, at.clock, Mask(sigma))
        return sign[:, None] * draws


class Home:
    """A batch of peers at one step: who they are, where the schedule stands, public facts, the door, and dice.

    `clock` is the schedule's position (round, hop, tick), `step` each peer's own count, `last` whether anybody will
    still hear what the peer says. An address of a draw is spent once: `use` counts the draws of this step.
    """

    def __init__(self, door: Door, ids: Ints, step: Ints, clock: Ints, last: Bools, edges: Edges, public: Any) -> None:
        self.ids, self.step, self.clock, self.last = ids, step, clock, last
        self.edges, self.public = edges, public
        self._door, self._use = cast(Door, Doorway(door)), 0  # its questions only: no task, no dice, no ledger

    @property
    def doorway(self) -> Doorway:
        """How this home asks; for those who watch what is kept."""
        return cast(Doorway, self._door)

    @doorway.setter
    def doorway(self, chosen: Doorway) -> None:
        self._door = cast(Door, chosen)

    def again(self, doorway: Doorway) -> Home:
        """The same peers at the same step, before they asked anything, at another doorway."""
        other = copy(self)
        other._use, other.doorway = 0, doorway
        return other

    @property
    def degree(self) -> Ints:
        """Number of message copies each lane sends next."""
        return np.diff(self.edges.start)

    @property
    def dim(self) -> int:
        return self._door.dim

    @property
    def sigma(self) -> float:
        """Standard deviation of the noise in each release: what silent steps and message noise are measured by."""
        return self._door.sigma

    @property
    def gamma(self) -> float:
        """Chance that a release is a uniform value, whatever the data: what counts of releases are corrected by."""
        return self._door.gamma

    @property
    def warm(self) -> bool:
        """Whether peers go on from what an earlier protocol left them; known to all."""
        return self._door.warm

    @property
    def before(self) -> int:
        """How many steps earlier phases made whose states this run goes on from; public, 0 where it starts anew."""
        return self._door.before

    def beginning(self) -> Array:
        """The models to start from  # (lanes, dim)."""
        return self._door.beginning(self.ids)

    def zeros(self, width: int | None = None) -> Array:
        return np.zeros((len(self.ids), self.dim if width is None else width))

    def _address(self) -> Address:
        if self._use > 255:
            raise LocalProtocolError("more than 256 draws in one step; draw them as one wider row")
        at = Address(self.ids, self.step, self.clock, self._use)
        self._use += 1
        return at

    def _masked(self, where: Bools | None, read: Callable[[Address, Bools | slice], Array]) -> Array:
        at = self._address()
        if where is None or bool(where.all()):
            return read(at, slice(None))
        answer = self.zeros()
        if where.any():
            answer[where] = read(at.rows(where), where)
        return answer

    def grid(self, times: float = 1.0, data: float = 1.0, noise: float = 1.0) -> float:
        """The grid on which this run computes, for releases times a public factor, when its numbers hold at most `data`
        clipped values and noise of `noise` times the deviation of one release. 0 where values are real numbers: without
        noise, and in ideal arithmetic (fp:FP-1, FP-4)."""
        return self._door.fine_grid(times, data, noise)

    def reach(self, times: float = 1.0, data: float = 1.0, noise: float = 1.0) -> float:
        """How far such numbers are from zero at most, but for a chance of 1e-889 each."""
        return self._door.reach(times, data, noise)

    def snap(self, x: Array, grid: float, out: Array | None = None) -> Array:
        """x rounded to the nearest point of the grid, if there is one; there is one zero. `out` may be x itself, where
        nobody else needs it."""
        if not grid:
            return x
        rows = np.empty_like(x) if out is None else out
        if x.size >= LARGE and x.flags.c_contiguous and rows.flags.c_contiguous:
            from bruit.kernels.rounding import snap  # one pass: the same bits

            snap(x.reshape(-1), grid, rows.reshape(-1))
            return rows
        np.multiply(x, 1.0 / grid, out=rows)
        np.rint(rows, out=rows)
        rows *= grid
        rows += 0.0  # -0.0 would tell a sign
        return rows

    def value(self, where: Bools | None = None, noise: float | Array | None = None, grid: float = 0.0) -> Array:
        """The peer's value through the door; rows not read are zero and write no ledger line.

        `noise` is the fraction of the mechanism's noise that this release carries, all of it by default. Where it is 0
        the value leaves as it is, clipped, and the ledger says so: only noise that others add can then hide it.
        """
        if noise is None:
            if grid:
                return self._masked(where, lambda at, _: self._door.value_on(at, OnGrid(grid), None))
            return self._masked(where, lambda at, _: self._door.value(at))
        levels = np.broadcast_to(np.asarray(noise, np.float64), (len(self.ids),))
        if np.any(levels < 0):
            raise ConfigError(f"a release carries a fraction >= 0 of the noise, found {levels.min()}")
        if grid:
            return self._masked(where, lambda at, rows: self._door.value_on(at, OnGrid(grid), levels[rows]))
        return self._masked(where, lambda at, rows: self._door.value_with(at, levels[rows]))

    def gradient(self, x: Array, where: Bools | None = None, batch: int | None = None, times: float = 1.0,
                 on: OnGrid | None = None) -> Array:  # fmt: skip
        """The peer's gradient at its own row of x, times a public factor, through the door (`batch` records drawn, or
        all of them); on a grid, its noise included, if one is given."""
        if on is not None and on.grid:
            form = on._replace(times=times)
            return self._masked(where, lambda at, rows: self._door.gradient_on(at, x[rows], batch, form))
        answer = self._masked(where, lambda at, rows: self._door.gradient(at, x[rows], batch))
        return answer if times == 1.0 else times * answer

    def prox(self, x: Array, rho: float | Array, where: Bools | None = None) -> Array:
        """argmin_z f(z) + |z - x|^2 / (2 rho) of the peer's own loss, through the door; rho may differ by peer."""
        levels = np.broadcast_to(np.asarray(rho, np.float64), (len(self.ids),))
        return self._masked(where, lambda at, rows: self._door.prox(at, x[rows], levels[rows]))

    def envelope_gradient(
        self, x: Array, rho: float | Array, where: Bools | None = None, noise: float = 1.0
    ) -> Array:
        """(x - prox(x)) / rho, the gradient of the peer's own loss at its proximal point, through the door.

        The clip of the mechanism is the Lipschitz constant L it enforces, as for `gradient`: x - prox(x) is cut to norm
        rho L (walk:ADMM-10). If x is known to who sees the answer, replacing the records moves it by at most 2 L.
        `noise` is the fraction of the mechanism's noise, as for `value`.
        """
        if noise < 0:
            raise ConfigError(f"a release carries a fraction >= 0 of the noise, found {noise}")
        levels = np.broadcast_to(np.asarray(rho, np.float64), (len(self.ids),))
        return self._masked(where, lambda at, rows: self._door.envelope_gradient(at, x[rows], levels[rows], noise))

    def descent(
        self, x: Array, rate: float, count: int, batch: int | None = None, where: Bools | None = None,
        grid: float = 0.0,
    ) -> Array:  # fmt: skip
        """Where `count` gradient steps on the peer's own records lead, minus x: one release, through the door.

        The mechanism clips the whole change, so the steps inside may be anything (perso:FL-2).
        """
        if grid:
            on = OnGrid(grid)
            return self._masked(where, lambda at, rows: self._door.descent_on(at, x[rows], rate, count, batch, on))
        return self._masked(where, lambda at, rows: self._door.descent(at, x[rows], rate, count, batch))

    def pair_value(self, x: Array, y: Array) -> Array:
        """The task's h(x, y) of two points that `value` released somewhere: post-processing, no ledger line."""
        return self._door.pair_value(x, y)

    def pair_gradient(self, models: Array, x: Array, y: Array) -> Array:
        """The gradient of the task's loss of two released points at the peer's model: post-processing as well."""
        return self._door.pair_gradient(models, x, y)

    def keep(self, query: Callable[[Task, Ints], Array]) -> Array:
        """A raw answer for a state field listed in `private`: it never leaves and costs nothing.

        From then on every message is checked: it must be the same with other raw answers (`bruit.algorithms.doorway`).
        """
        return self._door.keep(self._address(), query)

    def choice(self, count: int = 1) -> Array:
        """Uniform draws of the peer's own, for choices: which record, which neighbor, which coordinate."""
        return self._door.choice(self._address(), count)

    def common(self, count: int = 1) -> Array:
        """Uniform draws shared by all peers at the same position of the schedule: public randomness."""
        if len(self.clock) > 1 and bool((self.clock == self.clock[0]).all()):  # one row serves all lanes: O(count)
            return np.broadcast_to(self._door.common(self.clock[:1], count), (len(self.clock), count))
        return self._door.common(self.clock, count)

    def mask(self, x: Array, sigma: float | Array, where: Bools | None = None, on: OnGrid | None = None) -> Array:
        """x plus fresh noise, without any data: silent walk steps, dithers, re-noised models, spent budgets."""
        levels = np.broadcast_to(np.asarray(sigma, np.float64), (len(self.ids),))
        if np.any(levels < 0):
            raise ConfigError(f"mask noise must not be negative, found sigma = {levels.min()}")
        at = self._address()
        if where is None:
            noise = self._noise(at, levels, x.shape[1], on)
            noise += x
            return noise
        masked = x.copy()
        if where.any():
            masked[where] += self._noise(at.rows(where), levels[where], x.shape[1], on)
        return masked

    def dither(self, x: Array, sigma: float, on: OnGrid) -> Array:
        """x, a message on a grid, plus its dither (fp:FP-1)."""
        rows = self._door.dither_on(self._address(), np.full(len(self.ids), sigma), x.shape[1], on)
        rows += x
        return rows

    def _noise(self, at: Address, levels: Array, width: int, on: OnGrid | None) -> Array:
        if on is not None and on.grid:
            return self._door.noise_on(at, levels, width, on)
        return self._door.noise(at, levels, width)

    def copy_noise(self, sigma: float | Array, width: int | None = None, on: OnGrid | None = None) -> Slots:
        """Fresh noise for every message copy the lanes will send next, one independent draw each (gossip:MUF-X1)."""
        levels = np.broadcast_to(np.asarray(sigma, np.float64), (len(self.ids),))
        at, width = self._address(), self.dim if width is None else width
        if on is not None and on.grid:
            rows = self._door.copy_noise_on(at, self.edges, levels, width, on)
        else:
            rows = self._door.copy_noise(at, self.edges, levels, width)
        return Slots(self.edges.start, self.edges.peers, rows)

    def pair_noise(self, sigma: float, width: int | None = None, grid: float = 0.0) -> Slots:
        """Noise that cancels between the two ends of each edge: the slot of i for j is minus the slot of j for i."""
        at, width = self._address(), self.dim if width is None else width
        if grid:
            rows = self._door.pair_noise_on(at, self.edges, sigma, width, OnGrid(grid))
        else:
            rows = self._door.pair_noise(at, self.edges, sigma, width)
        return Slots(self.edges.start, self.edges.peers, rows)

    def slots(self, width: int | None = None) -> Slots:
        """Zero rows, one per neighbor spoken to next."""
        width = self.dim if width is None else width
        return Slots(self.edges.start, self.edges.peers, np.zeros((len(self.edges.peers), width)))
