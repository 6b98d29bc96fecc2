"""Home: what a batch of peers may touch while it computes, and the one door to private data.

`start` and `absorb` receive a `Home`; `emit` does not. Every read of data goes through a `Door`, which adds the
noise and writes the ledger line, so that no algorithm holds differential-privacy code. A read without mechanism is
logged as `Exact`: its epsilon is infinite, never silently absent.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from bruit.algorithms.messages import Edges, Slots
from bruit.arrays import Array, Bools, Ints
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


class Door(ABC):
    """The only way from an algorithm to private data and to noise."""

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

    def beginning(self, ids: Ints) -> Array:
        """The models peers begin with: zeros, or what an earlier protocol left them  # (lanes, dim)."""
        return np.zeros((len(ids), self.dim))

    def with_ledger(self, ledger: Ledger) -> Door:
        """The same door, writing into another ledger: each real peer keeps its own."""
        raise LocalProtocolError("this door keeps no ledger of its own")

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
    """The door of a real or simulated run: task behind, mechanism in front, a ledger line for every release."""

    task: Task
    mechanism: Mechanism | None
    dice: Dice
    ledger: Ledger
    run: int = 0
    budget: Budget | None = None
    models: Array | None = None  # (n, dim) what an earlier protocol left the peers with
    declared: tuple[Hypothesis, ...] = field(default=(), init=False)  # what the noise takes from the task

    def __post_init__(self) -> None:
        if self.mechanism is not None:
            object.__setattr__(self, "declared", self.mechanism.compared(self.task))

    def beginning(self, ids: Ints) -> Array:
        return super().beginning(ids) if self.models is None else self.models[ids].copy()

    def with_ledger(self, ledger: Ledger) -> Door:
        return replace(self, ledger=ledger)

    @property
    def dim(self) -> int:
        return self.task.dim

    @property
    def sigma(self) -> float:
        return 0.0 if self.mechanism is None else self.mechanism.sigma

    @property
    def gamma(self) -> float:
        return 0.0 if self.mechanism is None else self.mechanism.gamma

    def _release(self, at: Address, raw: Array, level: float = 1.0) -> Array:
        if self.mechanism is None:
            self.ledger.record(at.ids, at.steps, at.clock, Exact())
            return raw
        mechanism = self.mechanism if level in (0.0, 1.0) else self.mechanism.scaled(level)
        event = mechanism.event() if level else Exact()
        if self.budget is not None and not all(self.budget.allows(self.ledger, int(u), event) for u in at.ids):
            return self._silence(at, raw.shape[1])
        self.ledger.record(at.ids, at.steps, at.clock, event)
        if not level:
            return mechanism.bare(raw, at.ids)
        return mechanism.release(raw, self.dice, at.ids, at.steps, at.use, self.run)

    def _refuse_unmeasured(self, what: str, *kinds: str) -> None:
        """Noise that clips nothing is true for the answers its sensitivities were derived for, and no others."""
        if self.mechanism is not None and self.mechanism.unclipped and self.mechanism.measures not in kinds:
            raise PrivacyError("the noise was measured by how far one record moves a full gradient or a fitted model,"
                               f" clips nothing, and says nothing of {what}; use Gaussian(clip=...), or read whole"
                               " gradients")  # fmt: skip

    def _silence(self, at: Address, width: int) -> Array:
        """The budget is spent: the full noise, which others' guarantees may rely on, and no data."""
        if self.mechanism is None:
            return np.zeros((len(at.ids), width))
        self.ledger.record(at.ids, at.steps, at.clock, Mask(self.mechanism.sigma))
        return self.mechanism.noise(self.dice, at.ids, at.steps, at.use, width, self.run)

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
        if batch is None:
            self._refuse_unmeasured("gradients", "gradient")
            return self._release(at, self.task.gradient(at.ids, x))
        self._refuse_unmeasured("the gradient of sampled records")
        draws = self.dice.uniform("records", at.ids, at.steps, at.use, batch, self.run)
        return self._release(at, self.task.gradient_sampled(at.ids, x, draws))

    def prox(self, at: Address, x: Array, rho: Array) -> Array:
        self._refuse_unmeasured("a proximal step")
        return self._release(at, self._points(at, x, rho))

    def envelope_gradient(self, at: Address, x: Array, rho: Array, level: float = 1.0) -> Array:
        self._refuse_unmeasured("a proximal step")
        return self._release(at, (x - self._points(at, x, rho)) / rho[:, None], level)

    def descent(self, at: Address, x: Array, rate: float, count: int, batch: int | None) -> Array:
        self._refuse_unmeasured("the change of a model after local steps")
        y, draws = x, np.zeros((len(at.ids), 0))
        if batch is not None:
            draws = self.dice.uniform("records", at.ids, at.steps, at.use, batch * count, self.run)
        for k in range(count):
            if batch is None:
                y = y - rate * self.task.gradient(at.ids, y)
            else:
                y = y - rate * self.task.gradient_sampled(at.ids, y, draws[:, k * batch : (k + 1) * batch])
        return self._release(at, y - x)

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
        return query(self.task, at.ids)

    def choice(self, at: Address, count: int) -> Array:
        return self.dice.uniform("choice", at.ids, at.steps, at.use, count, self.run)

    def common(self, clock: Ints, count: int) -> Array:
        return self.dice.uniform("public", clock, 0, 0, count, self.run)

    def noise(self, at: Address, sigma: Array, width: int) -> Array:
        for level in np.unique(sigma):
            rows = sigma == level
            self.ledger.record(at.ids[rows], at.steps[rows], at.clock[rows], Mask(float(level)))
        return sigma[:, None] * self.dice.normal("noise", at.ids, at.steps, at.use, width, self.run)

    def copy_noise(self, at: Address, edges: Edges, sigma: Array, width: int) -> Array:
        counts = np.diff(edges.start)
        for level in np.unique(sigma):
            rows = (sigma == level) & (counts > 0)
            self.ledger.record(at.ids[rows], at.steps[rows], at.clock[rows], Mask(float(level)))
        lanes = np.repeat(at.ids, counts) << 24 | edges.peers
        draws = self.dice.normal("copy", lanes, np.repeat(at.steps, counts), at.use, width, self.run)
        return np.repeat(sigma, counts)[:, None] * draws

    def pair_noise(self, at: Address, edges: Edges, sigma: float, width: int) -> Array:
        counts = np.diff(edges.start)
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
        self._door, self._use = door, 0

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

    def value(self, where: Bools | None = None, noise: float | Array | None = None) -> Array:
        """The peer's value through the door; rows not read are zero and write no ledger line.

        `noise` is the fraction of the mechanism's noise that this release carries, all of it by default. Where it is 0
        the value leaves as it is, clipped, and the ledger says so: only noise that others add can then hide it.
        """
        if noise is None:
            return self._masked(where, lambda at, _: self._door.value(at))
        levels = np.broadcast_to(np.asarray(noise, np.float64), (len(self.ids),))
        if np.any(levels < 0):
            raise ConfigError(f"a release carries a fraction >= 0 of the noise, found {levels.min()}")
        return self._masked(where, lambda at, rows: self._door.value_with(at, levels[rows]))

    def gradient(self, x: Array, where: Bools | None = None, batch: int | None = None) -> Array:
        """The peer's gradient at its own row of x through the door (`batch` records drawn, or all of them)."""
        return self._masked(where, lambda at, rows: self._door.gradient(at, x[rows], batch))

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
        self, x: Array, rate: float, count: int, batch: int | None = None, where: Bools | None = None
    ) -> Array:
        """Where `count` gradient steps on the peer's own records lead, minus x: one release, through the door.

        The mechanism clips the whole change, so the steps inside may be anything (perso:FL-2).
        """
        return self._masked(where, lambda at, rows: self._door.descent(at, x[rows], rate, count, batch))

    def pair_value(self, x: Array, y: Array) -> Array:
        """The task's h(x, y) of two points that `value` released somewhere: post-processing, no ledger line."""
        return self._door.pair_value(x, y)

    def pair_gradient(self, models: Array, x: Array, y: Array) -> Array:
        """The gradient of the task's loss of two released points at the peer's model: post-processing as well."""
        return self._door.pair_gradient(models, x, y)

    def keep(self, query: Callable[[Task, Ints], Array]) -> Array:
        """A raw answer for a state field listed in `private`: it never leaves and costs nothing."""
        return self._door.keep(self._address(), query)

    def choice(self, count: int = 1) -> Array:
        """Uniform draws of the peer's own, for choices: which record, which neighbor, which coordinate."""
        return self._door.choice(self._address(), count)

    def common(self, count: int = 1) -> Array:
        """Uniform draws shared by all peers at the same position of the schedule: public randomness."""
        if len(self.clock) > 1 and bool((self.clock == self.clock[0]).all()):  # one row serves all lanes: O(count)
            return np.broadcast_to(self._door.common(self.clock[:1], count), (len(self.clock), count))
        return self._door.common(self.clock, count)

    def mask(self, x: Array, sigma: float | Array, where: Bools | None = None) -> Array:
        """x plus fresh noise, without any data: silent walk steps, re-noised models, spent budgets."""
        levels = np.broadcast_to(np.asarray(sigma, np.float64), (len(self.ids),))
        if np.any(levels < 0):
            raise ConfigError(f"mask noise must not be negative, found sigma = {levels.min()}")
        at = self._address()
        if where is None:
            return x + self._door.noise(at, levels, x.shape[1])
        masked = x.copy()
        if where.any():
            masked[where] += self._door.noise(at.rows(where), levels[where], x.shape[1])
        return masked

    def copy_noise(self, sigma: float | Array, width: int | None = None) -> Slots:
        """Fresh noise for every message copy the lanes will send next, one independent draw each (gossip:MUF-X1)."""
        levels = np.broadcast_to(np.asarray(sigma, np.float64), (len(self.ids),))
        rows = self._door.copy_noise(self._address(), self.edges, levels, self.dim if width is None else width)
        return Slots(self.edges.start, self.edges.peers, rows)

    def pair_noise(self, sigma: float, width: int | None = None) -> Slots:
        """Noise that cancels between the two ends of each edge: the slot of i for j is minus the slot of j for i."""
        rows = self._door.pair_noise(self._address(), self.edges, sigma, self.dim if width is None else width)
        return Slots(self.edges.start, self.edges.peers, rows)

    def slots(self, width: int | None = None) -> Slots:
        """Zero rows, one per neighbor spoken to next."""
        width = self.dim if width is None else width
        return Slots(self.edges.start, self.edges.peers, np.zeros((len(self.edges.peers), width)))
