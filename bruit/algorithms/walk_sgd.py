"""Walk SGD: a token carries the model from neighbor to neighbor, and whoever holds it takes one gradient step.

    x <- P(x - rate_t * (g_v(x) + noise))     v: the current holder; then the token goes to w with probability W[v, w]

Each peer contributes at most `cap` times and rests `rest` hops after a contribution; a silent visit adds the same
noise without a gradient, so that visits look alike. rate_t = `rate` / (1 + t)^`decay`; P projects on the ball of radius
`bound`, after the noise. In the first `burn_in` hops the token walks and nothing is done; in the last `flush` ones
all are silent, so that a `published` last token costs little.
Learns: the minimizer of sum_v pi_v f_v with pi the stationary law.  Shows: the token to whom it visits, and the last
one to all if published.
Steps and noise are on a grid, and the token is rounded to it before each step: a hop is a number of fp:FP-0.
Spec: gossip:GO-4, DS-2, walk:RW-3, RW-7, RW-14, fp:FP-0, FP-1; arXiv:2402.07471, Algorithm 1.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from bruit.algorithms import walk_compiled
from bruit.algorithms.algorithm import Algorithm, Stops
from bruit.algorithms.exchange import check_range
from bruit.algorithms.home import Door, Home, OnGrid, TaskDoor
from bruit.algorithms.messages import Edges, Inbox, Message
from bruit.algorithms.schedules import Walk
from bruit.arrays import Array, Bools, Ints
from bruit.domains import counts, nonnegative, positive, whole
from bruit.errors import ConfigError
from bruit.graphs import Graph, GraphSequence
from bruit.mechanisms.gaussian import WIDEST
from bruit.privacy.network.theorem import Theorem
from bruit.privacy.network.walk import RealizedWalk
from bruit.tasks import Logistic

CHUNK = 1 << 17  # numbers of noise drawn at once: they stay in cache
FLOAT_GRADIENT = 2.0**-30  # how far a gradient in floats may be from the exact one, in units of the clip


class State(NamedTuple):
    token: Array  # (n, d) the model as the peer last held it
    spent: Ints  # (n,) contributions so far
    latest: Ints  # (n,) hop of the last contribution


class Public(NamedTuple):
    horizon: int


@dataclass(frozen=True)
class WalkSGD(Algorithm[State]):
    rate: float = 0.1
    cap: int | None = None
    rest: int = 1
    batch: int | None = None
    decay: float = 0.0
    bound: float | None = None
    burn_in: int = 0
    flush: int = 0
    published: bool = False
    schedule: Walk = Walk()
    fused_by_door: ClassVar[bool] = True

    def __post_init__(self) -> None:
        positive(self, "rate", "bound")
        nonnegative(self, "decay")
        counts(self, "cap", "rest", "batch")
        whole(self, "burn_in", "flush")

    def prepare(self, graph: Graph | GraphSequence, horizon: int) -> Public:
        if 0 < horizon <= self.burn_in + self.flush:
            found = f"burn_in = {self.burn_in} and flush = {self.flush} of {horizon} hops"
            raise ConfigError(f"nobody would contribute: {found}; walk longer, or leave fewer of them out")
        return Public(horizon)

    def start(self, home: Home) -> State:
        lanes = len(home.ids)
        return State(home.beginning(), np.zeros(lanes, np.int64), np.full(lanes, -(2**40), np.int64))

    def emit(self, state: State, edges: Edges) -> Message:
        return edges.broadcast(state.token)

    def absorb(self, state: State, inbox: Inbox, home: Home) -> State:
        token, begun, now = self._projected(inbox.only()), home.clock >= self.burn_in, home.before + home.clock
        may = begun & (home.clock < home.public.horizon - self.flush) & (now - state.latest >= self.rest)
        if self.cap is not None:
            may &= state.spent < self.cap
        rate = float(self._rates(home.clock)[0])
        on = self.form(home.public.horizon, home.dim, home.grid, home.reach, home.warm)
        if home.warm and home.clock[0] == 0:
            check_range(home.ids, token, on.grid)
        update = home.gradient(token, may, self.batch, rate, on) if rate else home.zeros()
        if home.sigma > 0 and rate:
            silent = begun & ~may
            noise = home.mask(home.zeros(), home.sigma, silent, on._replace(times=rate))
            update = update + (noise if on.grid else rate * noise)
        moved = self._projected(home.snap(token, on.grid) - update)
        latest = np.where(may, now, state.latest)
        return State(np.where(begun[:, None], moved, token), state.spent + may, latest)

    def form(self, hops: int, dim: int, grid_of: Callable[..., float], reach: Callable[..., float],
             warm: bool = False) -> OnGrid:  # fmt: skip
        """The grid of the token, and how far a step may be from the real one's: rounding the token (1/2 cell, kept by a
        step that does not expand), rounding it again (1/2), its step toward zero (1), a gradient in floats, and two
        projections, whose norms are sums of `dim` squares."""
        grid = grid_of(self.rate, float(hops + 1), math.sqrt(hops + 1))
        farthest = reach(self.rate, float(hops + 1), math.sqrt(hops + 1))
        farthest += WIDEST * grid if warm else 0.0
        ball = 0.0 if self.bound is None else (dim + 16) * 2.0**-53 * min(self.bound, farthest)
        floats = (self.rate * FLOAT_GRADIENT * reach(1.0, 1.0, 0.0) + ball) / math.sqrt(dim)
        least = self.rate / (1.0 + hops) ** self.decay if self.decay else 0.0
        return OnGrid(grid, self.rate, 2 * grid + floats, least)

    def _rates(self, hops: Ints) -> Array:
        """The step sizes at these hops; none before the burn-in is over."""
        if self.decay == 0:
            return np.where(hops < self.burn_in, 0.0, self.rate)
        done = np.maximum(hops - self.burn_in, 0)
        return np.where(hops < self.burn_in, 0.0, self.rate / (1.0 + done) ** self.decay)

    def _projected(self, x: Array) -> Array:
        if self.bound is None:
            return x
        length = np.maximum(np.linalg.norm(x, axis=1), self.bound)
        return np.asarray(x * (self.bound / length)[:, None])

    def adopt(self, state: State, token: Array, public: Public) -> State:
        return state._replace(token=token)

    def estimate(self, state: State) -> Array:
        return state.token

    def fused_walk(self, state: State, path: Ints, door: Door, stops: Stops) -> State:
        """The path is drawn first: contributions, visit counts and addresses of noise are known ahead of the model.

        If it is watched, the tokens of the compiled loop are what `absorb` makes of those received, many hops a batch.
        """
        from bruit.kernels.walk import logistic_steps

        private, task = self._fusible(door)
        mechanism = private.mechanism
        token, spent, latest = state.token.copy(), state.spent.copy(), state.latest.copy()
        may, step = self._visits(path, spent.copy(), latest.copy())
        clock = np.arange(len(path))
        begun, rates = clock >= self.burn_in, self._rates(clock)
        start, records = walk_compiled.eights(task.records)
        slope = np.inf if task.derivative_clip is None else task.derivative_clip
        clip, lattice = (np.inf, 0.0) if mechanism is None else (mechanism.clip, mechanism.spacing)
        on = self.form(len(path), task.dim, private.fine_grid, private.reach, private.warm)
        radius = np.inf if self.bound is None else self.bound
        x = self._projected(token[path[:1]])[0] if len(path) else token[0]
        if private.warm and len(path):
            check_range(path[:1], x[None], on.grid)
        before = walk_compiled.standing(path, may, state.spent, state.latest) if stops.watched else None
        for here in stops.parts(len(path), max(64, CHUNK // task.dim)):
            trail, received = np.empty((here.stop - here.start if stops.watched else 0, task.dim)), x.copy()
            noise = walk_compiled.noise_of(private, path[here], step[here], may[here], begun[here], rates[here], on)
            bad = logistic_steps(path[here], may[here], noise, start, task.records.sizes, records, token, x,
                                 rates[here], radius, task.l2, slope, clip, on.grid, lattice, trail)  # fmt: skip
            if bad >= 0:
                hop = here.start + bad
                raise ConfigError(f"the gradient of peer {path[hop]} at hop {hop} is not finite; lower the rate")
            if before is not None:
                heard = np.concatenate((received[None], trail[:-1]))
                self._follow(private, path, step, here, rates[here], heard, trail, before)
            else:
                walk_compiled.record(private, path[here], step[here], may[here], begun[here], clock[here], on)
            made = clock[here][may[here]]
            spent += np.bincount(path[made], minlength=len(spent))
            latest[path[made]] = made  # in the order of the hops, so the last one stays
            stops.pass_by(here.stop, len(path), State(token, spent, latest))
        return State(token, spent, latest)

    def _follow(self, door: TaskDoor, path: Ints, step: Ints, here: slice, rates: Array, heard: Array, trail: Array,
                before: tuple[Ints, Ints]) -> None:  # fmt: skip
        """Give what the holders of these hops heard to `absorb`, and compare; hops of one rate are one batch."""
        hops = np.arange(here.start, here.stop)
        for some in ((hops == 0), (hops > 0) & (rates == 0), (hops > 0) & (rates > 0)):
            if some.any():
                at = hops[some]
                state = State(heard[some], before[0][at], before[1][at])
                after = walk_compiled.followed(self, door, path, step, at, heard[some], state, Public(len(path)))
                walk_compiled.check_equal(after.token, trail[some], at, self.fused_within)

    def _visits(self, path: Ints, spent: Ints, latest: Ints) -> tuple[Bools, Ints]:
        """At which hops the holder contributes, and its own count of visits; `spent` and `latest` are written over."""
        from bruit.kernels.walk import contributions

        cap, active = -1 if self.cap is None else self.cap, slice(self.burn_in, len(path) - self.flush)
        if not self.burn_in and not self.flush:
            may, step = contributions(path, spent, latest, cap, self.rest)
            return may, step
        _, step = contributions(path, spent.copy(), latest.copy(), cap, self.rest)
        may = np.zeros(len(path), bool)
        latest -= self.burn_in
        may[active], _ = contributions(path[active], spent, latest, cap, self.rest)
        latest += self.burn_in
        return may, step

    def _fusible(self, door: Door) -> tuple[TaskDoor, Logistic]:
        """The door and task of a walk that is compiled; otherwise what stands in the way."""
        private = walk_compiled.private_door(door)
        if not isinstance(private.task, Logistic):
            raise ConfigError("the fused walk is compiled for logistic tasks; run this one with Bulk()")
        if self.batch is not None:
            raise ConfigError(f"the fused walk reads all records of a peer, found batch = {self.batch}; use Bulk()")
        return private, private.task

    def not_fused(self, door: Door) -> str:
        if self.decay:
            return "steps of different size are watched one by one"
        return walk_compiled.refusal(self._fusible, door)

    def guarantees(self) -> tuple[Theorem, ...]:
        return (RealizedWalk(self.rate, self.decay, self.burn_in, self.published, self.bound),)
