"""Home: what a batch of peers may touch while it computes.

`start` and `absorb` receive a `Home`; `emit` does not. It asks its door (`bruit.algorithms.door`)
for the peers it stands for, and spends every address of a draw once.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from bruit.algorithms.door import WHOLE, Address, Door, OnGrid, Turn
from bruit.algorithms.doorway import Doorway
from bruit.algorithms.messages import Edges, Slots
from bruit.arrays import Array, Bools, Ints, Words
from bruit.errors import ConfigError, LocalProtocolError
from bruit.mechanisms.clip_votes import ClipVotes
from bruit.tasks.task import Task

if TYPE_CHECKING:
    from bruit.algorithms.schedules.ballots.attempt import Attempt

LARGE = 2**16  # numbers from which rounding is compiled


class Home:
    """A batch of peers at one step: who they are, where the schedule stands, public facts, the
    door, and dice.

    `clock` is the schedule's position (round, hop, tick), `step` each peer's own count, `last`
    whether anybody will still hear what the peer says. An address of a draw is spent once: `use`
    counts the draws of this step. Several copies of a run are one batch: kernels see the peers' own
    numbers `ids`, and the door sees `lanes`, c n + i for peer i of copy c. `attempt` says which one
    it is in a run by ballots.
    """

    attempt: Attempt | None = None

    def __init__(
        self,
        door: Door,
        ids: Ints,
        step: Ints,
        clock: Ints,
        last: Bools,
        edges: Edges,
        public: Any,
        lanes: Ints | None = None,
    ) -> None:
        self.ids, self.step, self.clock, self.last = ids, step, clock, last
        self._lanes = ids if lanes is None else lanes
        self.edges, self.public = edges, public
        self._door, self._use = (
            cast(Door, Doorway(door)),
            0,
        )  # its questions only: no task, no dice, no ledger

    @property
    def doorway(self) -> Doorway:
        """How this home asks; for those who watch what is kept."""
        return cast(Doorway, self._door)

    @doorway.setter
    def doorway(self, chosen: Doorway) -> None:
        self._door = cast(Door, chosen)

    @property
    def lanes(self) -> Ints:
        """What the door knows these peers by."""
        return self._lanes

    def again(self, doorway: Doorway) -> Home:
        """The same peers at the same step, before they asked anything, at another doorway."""
        other = copy(self)
        other._use, other.doorway = 0, doorway
        return other

    def take(self, lanes: Ints) -> Home:
        """Some of these peers at the same step, before they asked anything."""
        other = self.again(self.doorway)
        other.ids, other.step, other.clock = self.ids[lanes], self.step[lanes], self.clock[lanes]
        other.last, other._lanes = self.last[lanes], self._lanes[lanes]
        other.edges = self.edges.take(lanes)
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
        """Standard deviation of the noise in each release: what silent steps and message noise are
        measured by."""
        return self._door.sigma

    @property
    def gamma(self) -> float:
        """Chance that a release is a uniform value, whatever the data: what counts of releases are
        corrected by."""
        return self._door.gamma

    @property
    def warm(self) -> bool:
        """Whether peers go on from what an earlier protocol left them; known to all."""
        return self._door.warm

    @property
    def before(self) -> int:
        """How many steps earlier phases made whose states this run goes on from; public, 0 where it
        starts anew."""
        return self._door.before

    def beginning(self) -> Array:
        """The models to start from  # (lanes, dim)."""
        return self._door.beginning(self.ids)

    def zeros(self, width: int | None = None) -> Array:
        return np.zeros((len(self.ids), self.dim if width is None else width))

    def _address(self) -> Address:
        if self._use > 255:
            raise LocalProtocolError("more than 256 draws in one step; draw them as one wider row")
        at = Address(self._lanes, self.step, self.clock, self._use)
        self._use += 1
        return at

    def _masked(
        self,
        where: Bools | None,
        read: Callable[[Address, Bools | slice], Array],
        turn: Turn = WHOLE,
    ) -> Array:
        at = self._address()._replace(turn=turn)
        if where is None or bool(where.all()):
            return read(at, slice(None))
        answer = self.zeros()
        if where.any():
            answer[where] = read(at.rows(where), where)
        return answer

    def grid(self, times: float = 1.0, data: float = 1.0, noise: float = 1.0) -> float:
        """The grid on which this run computes, for releases times a public factor, when its numbers
        hold at most `data` clipped values and noise of `noise` times the deviation of one release.
        0 where values are real numbers: without noise, and in ideal arithmetic (fp:FP-1, FP-4)."""
        return self._door.fine_grid(times, data, noise)

    def reach(self, times: float = 1.0, data: float = 1.0, noise: float = 1.0) -> float:
        """How far such numbers are from zero at most, but for a chance of 1e-889 each."""
        return self._door.reach(times, data, noise)

    def snap(self, x: Array, grid: float, out: Array | None = None) -> Array:
        """x rounded to the nearest point of the grid, if there is one; there is one zero. `out` may
        be x itself, where nobody else needs it."""
        if not grid:
            return x
        rows = np.empty_like(x) if out is None else out
        if x.size >= LARGE and x.flags.c_contiguous and rows.flags.c_contiguous:
            from bruit.algorithms.compiled.rounding import snap  # one pass: the same bits

            snap(x.reshape(-1), grid, rows.reshape(-1))
            return rows
        np.multiply(x, 1.0 / grid, out=rows)
        np.rint(rows, out=rows)
        rows *= grid
        rows += 0.0  # -0.0 would tell a sign
        return rows

    def value(
        self, where: Bools | None = None, noise: float | Array | None = None, grid: float = 0.0
    ) -> Array:
        """The peer's value through the door; rows not read are zero and write no ledger line.

        `noise` is the fraction of the mechanism's noise that this release carries, all of it by
        default. Where it is 0 the value leaves as it is, clipped, and the ledger says so: only
        noise that others add can then hide it.
        """
        if noise is None:
            if grid:
                return self._masked(
                    where, lambda at, _: self._door.value_on(at, OnGrid(grid), None)
                )
            return self._masked(where, lambda at, _: self._door.value(at))
        levels = np.broadcast_to(np.asarray(noise, np.float64), (len(self.ids),))
        if np.any(levels < 0):
            raise ConfigError(
                f"a release carries a fraction >= 0 of the noise, found {levels.min()}"
            )
        if grid:
            return self._masked(
                where, lambda at, rows: self._door.value_on(at, OnGrid(grid), levels[rows])
            )
        return self._masked(where, lambda at, rows: self._door.value_with(at, levels[rows]))

    def gradient(
        self,
        x: Array,
        where: Bools | None = None,
        batch: int | None = None,
        times: float = 1.0,
        on: OnGrid | None = None,
        turn: Turn = WHOLE,
    ) -> Array:
        """The peer's gradient at its own row of x, times a public factor, through the door (`batch`
        records drawn, or those whose `turn` it is, or all of them); on a grid, its noise included,
        if one is given."""
        if on is not None and on.grid:
            form = on._replace(times=times)
            return self._masked(
                where, lambda at, rows: self._door.gradient_on(at, x[rows], batch, form), turn
            )
        answer = self._masked(where, lambda at, rows: self._door.gradient(at, x[rows], batch), turn)
        return answer if times == 1.0 else times * answer

    def gradient_with(self, x: Array, noise: Array, where: Bools | None = None) -> Array:
        """The peer's gradient at its own row of x through the door; `noise` is the fraction of the
        mechanism's noise that this release carries  # (lanes, dim)."""
        if np.any(noise <= 0):
            raise ConfigError(f"a gradient carries some of the noise, found {noise.min()} of it")
        return self._masked(
            where, lambda at, rows: self._door.gradient_with(at, x[rows], noise[rows])
        )

    def loss(self, x: Array, ceiling: float, where: Bools | None = None) -> Array:
        """The peer's loss at its own row of x through the door, that of every record cut to [0,
        ceiling], without regularizers; 0 where it is not read  # (lanes,)."""
        at, answer = self._address(), np.zeros(len(self.ids))
        if where is None or bool(where.all()):
            return self._door.loss(at, x, ceiling)
        if where.any():
            answer[where] = self._door.loss(at.rows(where), x[where], ceiling)
        return answer

    def grain(self, peers: int, shares: int) -> float:
        """What masked answers are counted in, when so many peers make the noise in so many shares;
        refused where their sum might not fit into words (silo:SILO-4)."""
        return self._door.grain(peers, shares)

    def masked_gradient(
        self,
        x: Array,
        grain: float,
        shares: int,
        colluders: int,
        votes: ClipVotes | None = None,
    ) -> Words:
        """The peer's clipped answer at its own row of x in whole grains, with its share of the
        noise and its masks, modulo 2^64: what it may say in this attempt, once. With `votes`, a last
        column says how many records are shorter than the clip # (lanes, dim) or (lanes, dim + 1)."""
        answer = self.masked_answer(x, grain, shares, votes)
        if self.attempt is None:
            raise LocalProtocolError("masks are made for an attempt of a run by ballots")
        masks = self._door.pair_words(self._address(), self.attempt, colluders, answer.shape[1])
        return answer + masks

    def next_clip(self, sums: Words, grain: float, members: Ints, votes: ClipVotes) -> Array:
        """The clips after the votes in masked sums, in units of the declared one: public
        # (lanes,)."""
        return self._door.next_clip(sums, grain, members, votes)

    def masked_answer(
        self, x: Array, grain: float, shares: int, votes: ClipVotes | None = None
    ) -> Words:
        """The same without the masks, which have to be added before it is said: charged as a share
        of a masked sum  # (lanes, dim)."""
        at = self._address()
        return self._door.masked_gradient(at, x, grain, shares, votes).view(np.uint64)

    def summed_gradient(
        self, x: Array, sums: Words, grain: float, members: Ints, scale: Array
    ) -> Array:
        """The mean gradient at x that masked sums say, clipped at `scale` times the declared clip:
        post-processing, no ledger line."""
        return self._door.summed_gradient(x, sums, grain, members, scale)

    def prox(self, x: Array, rho: float | Array, where: Bools | None = None) -> Array:
        """argmin_z f(z) + |z - x|^2 / (2 rho) of the peer's own loss, through the door; rho may
        differ by peer."""
        levels = np.broadcast_to(np.asarray(rho, np.float64), (len(self.ids),))
        return self._masked(where, lambda at, rows: self._door.prox(at, x[rows], levels[rows]))

    def envelope_gradient(
        self, x: Array, rho: float | Array, where: Bools | None = None, noise: float = 1.0
    ) -> Array:
        """(x - prox(x)) / rho, the gradient of the peer's own loss at its proximal point, through
        the door.

        The clip of the mechanism is the Lipschitz constant L it enforces, as for `gradient`: x -
        prox(x) is cut to norm rho L (walk:ADMM-10). If x is known to who sees the answer, replacing
        the records moves it by at most 2 L. `noise` is the fraction of the mechanism's noise, as
        for `value`.
        """
        if noise < 0:
            raise ConfigError(f"a release carries a fraction >= 0 of the noise, found {noise}")
        levels = np.broadcast_to(np.asarray(rho, np.float64), (len(self.ids),))
        return self._masked(
            where, lambda at, rows: self._door.envelope_gradient(at, x[rows], levels[rows], noise)
        )

    def descent(
        self,
        x: Array,
        rate: float,
        count: int,
        batch: int | None = None,
        where: Bools | None = None,
        grid: float = 0.0,
    ) -> Array:
        """Where `count` gradient steps on the peer's own records lead, minus x: one release,
        through the door.

        The mechanism clips the whole change, so the steps inside may be anything (perso:FL-2).
        """
        if grid:
            on = OnGrid(grid)
            return self._masked(
                where, lambda at, rows: self._door.descent_on(at, x[rows], rate, count, batch, on)
            )
        return self._masked(
            where, lambda at, rows: self._door.descent(at, x[rows], rate, count, batch)
        )

    def pair_value(self, x: Array, y: Array) -> Array:
        """The task's h(x, y) of two points that `value` released somewhere: post-processing, no
        ledger line."""
        return self._door.pair_value(x, y)

    def pair_gradient(self, models: Array, x: Array, y: Array) -> Array:
        """The gradient of the task's loss of two released points at the peer's model:
        post-processing as well."""
        return self._door.pair_gradient(models, x, y)

    def keep(self, query: Callable[[Task, Ints], Array]) -> Array:
        """A raw answer for a state field listed in `private`: it never leaves and costs nothing.

        From then on every message is checked: it must be the same with other raw answers
        (`bruit.algorithms.doorway`).
        """
        return self._door.keep(self._address(), query)

    def choice(self, count: int = 1) -> Array:
        """Uniform draws of the peer's own, for choices: which record, which neighbor, which
        coordinate."""
        return self._door.choice(self._address(), count)

    def common(self, count: int = 1) -> Array:
        """Uniform draws shared by all peers at the same position of the schedule: public
        randomness."""
        if len(self.clock) > 1 and bool(
            (self.clock == self.clock[0]).all()
        ):  # one row serves all lanes: O(count)
            return np.broadcast_to(
                self._door.common(self.clock[:1], count), (len(self.clock), count)
            )
        return self._door.common(self.clock, count)

    def mask(
        self, x: Array, sigma: float | Array, where: Bools | None = None, on: OnGrid | None = None
    ) -> Array:
        """x plus fresh noise, without any data: silent walk steps, dithers, re-noised models, spent
        budgets."""
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

    def copy_noise(
        self, sigma: float | Array, width: int | None = None, on: OnGrid | None = None
    ) -> Slots:
        """Fresh noise for every message copy the lanes will send next, one independent draw each
        (gossip:MUF-X1)."""
        levels = np.broadcast_to(np.asarray(sigma, np.float64), (len(self.ids),))
        at, width = self._address(), self.dim if width is None else width
        if on is not None and on.grid:
            rows = self._door.copy_noise_on(at, self.edges, levels, width, on)
        else:
            rows = self._door.copy_noise(at, self.edges, levels, width)
        return Slots(self.edges.start, self.edges.peers, rows)

    def pair_noise(self, sigma: float, width: int | None = None, grid: float = 0.0) -> Slots:
        """Noise that cancels between the two ends of each edge: the slot of i for j is minus the
        slot of j for i. The two ends of an edge are lanes of the same copy."""
        at, width = self._address(), self.dim if width is None else width
        ends = self.edges
        if self._lanes is not self.ids:
            copy = np.repeat(self._lanes - self.ids, self.degree)
            ends = Edges(self._lanes, ends.start, ends.peers + copy)
        if grid:
            rows = self._door.pair_noise_on(at, ends, sigma, width, OnGrid(grid))
        else:
            rows = self._door.pair_noise(at, ends, sigma, width)
        return Slots(self.edges.start, self.edges.peers, rows)

    def slots(self, width: int | None = None) -> Slots:
        """Zero rows, one per neighbor spoken to next."""
        width = self.dim if width is None else width
        return Slots(self.edges.start, self.edges.peers, np.zeros((len(self.edges.peers), width)))
