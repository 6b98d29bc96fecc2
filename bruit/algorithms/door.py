"""Door: the one way from an algorithm to private data and to noise, and the address of a release.

Every read of data goes through a `Door`, which adds the noise and writes the ledger line, so that
no algorithm holds differential-privacy code. A read without mechanism is logged as `Exact`: its
epsilon is infinite, never silently absent.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from bruit.algorithms.doorway import Watch
from bruit.algorithms.messages import Edges
from bruit.arrays import Array, Bools, Ints, Words
from bruit.errors import LocalProtocolError
from bruit.mechanisms.clip_votes import ClipVotes
from bruit.privacy.ledger import Ledger
from bruit.tasks.task import Task

if TYPE_CHECKING:
    from bruit.algorithms.schedules.ballots.attempt import Attempt


class Turn(NamedTuple):
    """Whose turn it is among a peer's records: those whose place is `number` modulo `cycle`."""

    number: int = 0
    cycle: int = 1


WHOLE = Turn()
"""All records, always."""


class Address(NamedTuple):
    """Where a release happens: which peers, at which of their own steps, at which position of the
    schedule (`clock`), and which use of the door within that step, counted from 0; and of which
    records."""

    ids: Ints
    steps: Ints
    clock: Ints
    use: int
    turn: Turn = WHOLE

    def rows(self, where: Bools) -> Address:
        return self._replace(ids=self.ids[where], steps=self.steps[where], clock=self.clock[where])


class LeftOut(NamedTuple):
    """A release that was not made because the budget was spent: at which of the peer's own steps,
    and at which position of the schedule."""

    step: int
    clock: int


class OnGrid(NamedTuple):
    """The grid that a release lies on (fp:FP-1).

    `grid` is its spacing. `times` is a public factor of the release, such as a step size. `slack`
    bounds, per coordinate, how far the number before the noise may be from that of the protocol in
    real numbers with the same rounded past. `least` is the smallest factor of the whole run, where
    factors change. `copies` is the most copies of one message that differ. With these, one event
    serves all steps and peers."""

    grid: float
    times: float = 1.0
    slack: float = 0.0
    least: float = 0.0
    copies: int = 1

    def rounding(self, width: int, sigma: float) -> float:
        """R of one row of noise of this deviation (fp:FP-0); infinite where the grid is too coarse
        for the lemma."""
        deviation = (self.least or self.times) * sigma
        if deviation < COARSEST * self.grid:
            return math.inf
        return self.copies * width * ((self.slack + self.grid / 2) / deviation) ** 2


COARSEST = 16.0  # least deviation of a noise, in units of the grid


class Door(ABC):
    """The only way from an algorithm to private data and to noise; a new question is listed in
    `doorway.QUESTIONS`."""

    watch: Watch = Watch()  # of a door that gives no raw answers
    # releases without data, because the budget was spent, in order; their noise was sent all the same
    left_out: Sequence[LeftOut] = ()

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
        """Chance that a release is a uniform value (randomized response); 0 for other
        mechanisms."""
        return 0.0

    @property
    def warm(self) -> bool:
        """Whether peers go on from what an earlier protocol left them: a model, or all of their
        state."""
        return False

    @property
    def before(self) -> int:
        """How many steps the earlier phases made whose states this one goes on from; 0 where it
        starts anew."""
        return 0

    def beginning(self, ids: Ints) -> Array:
        """The models peers begin with: zeros, or what an earlier protocol left them  # (lanes,
        dim)."""
        return np.zeros((len(ids), self.dim))

    def with_ledger(self, ledger: Ledger) -> Door:
        """The same door, writing into another ledger: each real peer keeps its own."""
        raise LocalProtocolError("this door keeps no ledger of its own")

    def fine_grid(self, times: float, data: float, noise: float) -> float:
        """The grid of what leaves this door, see `Mechanism.fine_grid`; 0: real numbers."""
        return 0.0

    def reach(self, times: float, data: float, noise: float) -> float:
        """The largest absolute value on that grid; a number exceeds it with chance 1e-889."""
        return 0.0

    def value_on(self, at: Address, on: OnGrid, levels: Array | None) -> Array:
        """The peers' values on a grid, released, with these fractions of the noise (None: all)  #
        (lanes, dim)."""
        raise LocalProtocolError("this door has no grid")

    def gradient_on(self, at: Address, x: Array, batch: int | None, on: OnGrid) -> Array:
        """The peers' gradients times a factor, on a grid, released  # (lanes, dim)."""
        raise LocalProtocolError("this door has no grid")

    def descent_on(
        self, at: Address, x: Array, rate: float, count: int, batch: int | None, on: OnGrid
    ) -> Array:
        """The change of x after `count` gradient steps, on a grid, released  # (lanes, dim)."""
        raise LocalProtocolError("this door has no grid")

    def noise_on(self, at: Address, sigma: Array, width: int, on: OnGrid) -> Array:
        """Noise on a grid, without data, one row per lane  # (lanes, width)."""
        raise LocalProtocolError("this door has no grid")

    def dither_on(self, at: Address, sigma: Array, width: int, on: OnGrid) -> Array:
        """Noise on a grid that a message carries, one row per lane (fp:FP-1)  # (lanes, width)."""
        raise LocalProtocolError("this door has no grid")

    def copy_noise_on(
        self, at: Address, edges: Edges, sigma: Array, width: int, on: OnGrid
    ) -> Array:
        """Independent noise on a grid for every message copy  # (copies, width)."""
        raise LocalProtocolError("this door has no grid")

    def pair_noise_on(
        self, at: Address, edges: Edges, sigma: float, width: int, on: OnGrid
    ) -> Array:
        """Noise on a grid shared by the two ends of an edge with opposite signs  # (copies,
        width)."""
        raise LocalProtocolError("this door has no grid")

    def grain(self, peers: int, shares: int) -> float:
        """The unit of masked answers, a power of two: each is a whole number of them. It depends on
        how many peers answer and on how many shares the noise is made of."""
        raise LocalProtocolError("this door makes no masked answers")

    def masked_gradient(
        self, at: Address, x: Array, grain: float, shares: int, votes: ClipVotes | None = None
    ) -> Ints:
        """The peers' clipped gradients, or clipped sums of their records' gradients, as whole
        numbers of grains. Each carries one share of the noise only, so it may leave under masks
        only. With `votes` records are clipped at the present clips, and a last column holds their
        votes on these  # (lanes, dim) or (lanes, dim + 1)."""
        raise LocalProtocolError("this door makes no masked answers")

    def pair_words(self, at: Address, attempt: Attempt, colluders: int, width: int) -> Words:
        """The sum of each peer's masks in an attempt, modulo 2^64  # (lanes, width)."""
        raise LocalProtocolError("this door makes no masks")

    def next_clip(self, sums: Words, grain: float, members: Ints, votes: ClipVotes) -> Array:
        """The clips after the votes in masked sums of these members, in units of the declared one;
        reads no record  # (lanes,)."""
        raise LocalProtocolError("this door hears no votes")

    def summed_gradient(
        self, x: Array, sums: Words, grain: float, members: Ints, scale: Array
    ) -> Array:
        """The mean gradient of these members from the sum of their masked answers, in grains of
        `scale` (lanes, 1), plus the part of the gradient that depends on no record (a
        regularizer); reads no record  # (lanes, dim)."""
        raise LocalProtocolError("this door makes no masked answers")

    @abstractmethod
    def value(self, at: Address) -> Array:
        """The peers' values, released  # (lanes, dim)."""

    def value_with(self, at: Address, levels: Array) -> Array:
        """The peers' values, each with that fraction of the mechanism's noise, 0 for none  #
        (lanes, dim)."""
        raise LocalProtocolError("this door adds all of the noise or nothing")

    @abstractmethod
    def gradient(self, at: Address, x: Array, batch: int | None) -> Array:
        """The peers' gradients at their own x, released  # (lanes, dim)."""

    def gradient_with(self, at: Address, x: Array, levels: Array) -> Array:
        """The peers' gradients, each with that fraction of the mechanism's noise, above 0  #
        (lanes, dim)."""
        raise LocalProtocolError("this door adds all of the noise or nothing")

    @abstractmethod
    def prox(self, at: Address, x: Array, rho: Array) -> Array:
        """The peers' proximal points, released  # (lanes, dim)."""

    def envelope_gradient(self, at: Address, x: Array, rho: Array, level: float = 1.0) -> Array:
        """The gradients of the peers' Moreau envelopes, (x - prox(x)) / rho, released  # (lanes,
        dim).

        `level` is the fraction of the mechanism's noise, 0 for none."""
        raise LocalProtocolError("this door answers no proximal questions")

    def loss(self, at: Address, x: Array, ceiling: float) -> Array:
        """The peers' losses at their own x, that of every record cut at the ceiling, released
        # (lanes,)."""
        raise LocalProtocolError("this door tells no losses")

    def descent(self, at: Address, x: Array, rate: float, count: int, batch: int | None) -> Array:
        """The change of x after `count` gradient steps on the peers' own records, released  #
        (lanes, dim)."""
        raise LocalProtocolError("this door takes no gradient steps of its own")

    def pair_value(self, x: Array, y: Array) -> Array:
        """What the task computes from two released points; reads no record  # (lanes,
        dim)."""
        raise LocalProtocolError("this door answers no questions about pairs of points")

    def pair_gradient(self, models: Array, x: Array, y: Array) -> Array:
        """The gradient of the task's loss of two released points; reads no record  # (lanes,
        dim)."""
        raise LocalProtocolError("this door answers no questions about pairs of points")

    @abstractmethod
    def keep(self, at: Address, query: Callable[[Task, Ints], Array]) -> Array:
        """A raw answer that must stay at home."""

    def keep_other(self, at: Address, query: Callable[[Task, Ints], Array], known: Array) -> Array:
        """The answer to the same question from other data than those behind the `known` answer."""
        raise LocalProtocolError("this door gives no raw answers")

    @abstractmethod
    def choice(self, at: Address, count: int) -> Array:
        """Uniform draws that only the peer itself knows, for choices that others must not guess  #
        (lanes, count)."""

    @abstractmethod
    def common(self, clock: Ints, count: int) -> Array:
        """Uniform draws that everybody at the same position of the schedule shares  # (lanes,
        count)."""

    @abstractmethod
    def noise(self, at: Address, sigma: Array, width: int) -> Array:
        """Noise without data, one row per lane  # (lanes, width)."""

    @abstractmethod
    def copy_noise(self, at: Address, edges: Edges, sigma: Array, width: int) -> Array:
        """Independent noise for every message copy  # (copies, width)."""

    @abstractmethod
    def pair_noise(self, at: Address, edges: Edges, sigma: float, width: int) -> Array:
        """Noise shared by the two ends of an edge with opposite signs  # (copies, width)."""
