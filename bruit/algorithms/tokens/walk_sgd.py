"""Walk SGD: a token carries the model from neighbor to neighbor, and whoever holds it takes one
gradient step.

    x <- P(x - rate_t * (g_v(x) + noise))     v: the current holder; then the token goes to w with probability W[v, w]

Each peer contributes at most `cap` times and rests `rest` hops after a contribution; a silent visit
adds the same noise without a gradient, so that visits look alike. rate_t = `rate` / (1 +
t)^`decay`; P projects on the ball of radius `bound`, after the noise. In the first `burn_in` hops
the token walks and nothing is done; in the last `flush` ones all are silent, so that a `published`
last token costs little.
Learns: the minimizer of sum_v pi_v f_v with pi the stationary law.
Shows: the token to whom it visits, and the last one to all if published. Steps and noise are on a
grid, and the token is rounded to it before each step: a hop is a number of fp:FP-0.
Spec: gossip:GO-4, DS-2, walk:RW-3, RW-7, RW-14, fp:FP-0, FP-1; arXiv:2402.07471, Algorithm 1.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple

import numpy as np

from bruit.algorithms.algorithm import Algorithm
from bruit.algorithms.course import Course, Reads
from bruit.algorithms.door import Door, OnGrid
from bruit.algorithms.expectation import DeclaredFacts, Expectation
from bruit.algorithms.gossip.exchange import check_range
from bruit.algorithms.home import Home
from bruit.algorithms.messages import Edges, Inbox, Message
from bruit.algorithms.schedules.walk.schedule import Walk
from bruit.algorithms.task_door import TaskDoor
from bruit.algorithms.tokens import walk_compiled
from bruit.algorithms.tokens.walk_rate import declared_utility
from bruit.algorithms.turns import Turns
from bruit.arrays import Array, Bools, Ints
from bruit.domains import counts, nonnegative, positive, whole
from bruit.errors import ConfigError
from bruit.graphs import Graph, GraphSequence
from bruit.mechanisms.gaussian import WIDEST
from bruit.mechanisms.mechanism import Mechanism
from bruit.privacy.theorem import Theorem
from bruit.privacy.theorems.walk import RealizedWalk
from bruit.tasks import Logistic, Task

CHUNK = 1 << 17  # numbers of noise drawn at once: they stay in cache
FLOAT_GRADIENT = (
    2.0**-30
)  # how far a gradient in floats may be from the exact one, in units of the clip


class State(NamedTuple):
    token: Array  # (n, d) the model as the peer last held it
    spent: Ints  # (n,) contributions so far
    latest: Ints  # (n,) hop of the last contribution


class Public(NamedTuple):
    horizon: int


@dataclass(frozen=True, kw_only=True)
class WalkSGD(Algorithm[State]):
    asks: ClassVar[str | None] = "gradients"
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
    fused_reads: ClassVar[Reads] = "home"
    words: ClassVar[Mapping[str, str]] = {"rate": "utility"}

    def __post_init__(self) -> None:
        positive(self, "rate", "bound")
        nonnegative(self, "decay")
        counts(self, "cap", "rest", "batch")
        whole(self, "burn_in", "flush")

    def prepare(self, graph: Graph | GraphSequence, horizon: int) -> Public:
        if 0 < horizon <= self.burn_in + self.flush:
            found = f"burn_in = {self.burn_in} and flush = {self.flush} of {horizon} hops"
            raise ConfigError(
                f"nobody would contribute: {found}; walk longer, or leave fewer of them out"
            )
        return Public(horizon)

    def explained(
        self,
        key: str,
        task: Task,
        graph: Graph | GraphSequence,
        steps: int,
        privacy: Mechanism | None,
    ) -> "WalkSGD":
        """The constant step of its utility statement, from declared constants only (walk:RW-7)."""
        if self.decay:
            raise ConfigError(
                f'rate = "{self.words[key]}" is the constant step of walk-sgd; leave decay out, or '
                f"give a number"
            )
        clip, sigma = (math.inf, 0.0) if privacy is None else (privacy.clip, privacy.sigma)
        known = declared_utility(
            task.constants(),
            graph,
            task.dim,
            clip=clip,
            sigma=sigma,
            bound=self.bound,
            batch=self.batch,
        )
        return replace(self, rate=known.rate(steps - self.burn_in - self.flush))

    def expected(self, known: DeclaredFacts) -> Expectation:
        """The bound D.6 of walk:RW-7, for constant steps in which everybody contributes."""
        if self.cap is not None or self.rest > 1 or self.flush or self.decay:
            raise ConfigError(
                "the statement on walks is for constant steps in which everybody always contributes"
            )
        if known.constants is None:
            raise ConfigError("the task declares no constants")
        utility = declared_utility(
            known.constants,
            known.graph,
            known.dim,
            clip=known.clip,
            sigma=known.sigma,
            bound=self.bound,
            batch=self.batch,
        )
        bound = utility.bound_at(self.rate, max(1, known.steps - self.burn_in))
        facts = {
            "rate": self.rate,
            "smoothness": utility.smoothness,
            "strong convexity": utility.convexity,
            "mixing time": utility.mixing,
        }
        return Expectation("walk:RW-7", "E|x - x*|^2", utility.distance, bound, facts)

    def start(self, home: Home) -> State:
        lanes = len(home.ids)
        return State(
            home.beginning(), np.zeros(lanes, np.int64), np.full(lanes, -(2**40), np.int64)
        )

    def emit(self, state: State, edges: Edges) -> Message:
        return edges.broadcast(state.token)

    def absorb(self, state: State, inbox: Inbox, home: Home) -> State:
        token, begun, now = (
            self._projected(inbox.only()),
            home.clock >= self.burn_in,
            home.before + home.clock,
        )
        may = (
            begun
            & (home.clock < home.public.horizon - self.flush)
            & (now - state.latest >= self.rest)
        )
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

    def form(
        self,
        hops: int,
        dim: int,
        grid_of: Callable[..., float],
        reach: Callable[..., float],
        warm: bool = False,
    ) -> OnGrid:
        """The grid of the token, and how far a step may be from the real one's. It adds up rounding
        the token (1/2 cell, kept by a step that does not expand), rounding it again (1/2), and its
        step toward zero (1). To these come a gradient in floats, and two projections, whose norms
        are sums of `dim` squares."""
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

    def turns(self, graph: Graph | GraphSequence, steps: int) -> Turns:
        return Turns(self.burn_in, steps - self.flush, self.rest, self.cap)

    def adopt(self, state: State, token: Array, public: Public) -> State:
        return state._replace(token=token)

    def estimate(self, state: State) -> Array:
        return state.token

    def fused(self, state: State, course: Course) -> tuple[State, int]:
        """The path is drawn first: contributions, visit counts and addresses of noise are known
        ahead of the model.

        If it is watched, the tokens of the compiled loop are what `absorb` makes of those received,
        many hops a batch.
        """
        from bruit.algorithms.compiled.walk import logistic_steps

        path, door, stops = course.acting, course.door, course.stops
        private, task = self._fusible(door)
        token, spent, latest = state.token.copy(), state.spent.copy(), state.latest.copy()
        may, step = self._visits(path, spent.copy(), latest.copy())
        clock = np.arange(len(path))
        begun, rates = clock >= self.burn_in, self._rates(clock)
        start, records = walk_compiled.eights(task.records)
        clip, lattice = walk_compiled.clip_and_spacing(private.mechanism)
        on = self.form(len(path), task.dim, private.fine_grid, private.reach, private.warm)
        x = self._first_token(token, path, private, on)
        before = None
        if stops.watched:
            before = walk_compiled.standing(path, may, state.spent, state.latest)
        for here in stops.parts(len(path), max(64, CHUNK // task.dim)):
            length = here.stop - here.start if stops.watched else 0
            trail, received = np.empty((length, task.dim)), x.copy()
            noise = walk_compiled.noise_of(
                private, path[here], step[here], may[here], begun[here], rates[here], on
            )
            bad = logistic_steps(
                path=path[here],
                may=may[here],
                noise=noise,
                start=start,
                sizes=task.records.sizes,
                records=records,
                token=token,
                x=x,
                rates=rates[here],
                radius=walk_compiled.or_infinite(self.bound),
                l2=task.l2,
                bound=walk_compiled.or_infinite(task.derivative_clip),
                clip=clip,
                spacing=on.grid,
                lattice=lattice,
                trail=trail,
            )
            _check_finite(path, here.start, bad)
            if before is not None:
                self._follow(private, path, step, here, rates[here], received, trail, before)
            else:
                walk_compiled.record(
                    private, path[here], step[here], may[here], begun[here], clock[here], on
                )
            _count_contributions(spent, latest, path, clock[here][may[here]])
            stops.pass_by(here.stop, len(path), State(token, spent, latest))
        return State(token, spent, latest), len(path)

    def _first_token(self, token: Array, path: Ints, door: TaskDoor, on: OnGrid) -> Array:
        """The model that the first holder begins with; a public model must lie on the grid's
        range."""
        if not len(path):
            return np.array(token[0])
        x: Array = self._projected(token[path[:1]])[0]
        if door.warm:
            check_range(path[:1], x[None], on.grid)
        return x

    def _follow(
        self,
        door: TaskDoor,
        path: Ints,
        step: Ints,
        here: slice,
        rates: Array,
        received: Array,
        trail: Array,
        before: tuple[Ints, Ints],
    ) -> None:
        """Give what the holders of these hops heard to `absorb`, and compare; hops of one rate are
        one batch. The first of them received a token, the others the one before in the trail."""
        heard = np.concatenate((received[None], trail[:-1]))
        hops = np.arange(here.start, here.stop)
        for some in ((hops == 0), (hops > 0) & (rates == 0), (hops > 0) & (rates > 0)):
            if some.any():
                at = hops[some]
                state = State(heard[some], before[0][at], before[1][at])
                after = walk_compiled.followed(
                    self, door, path, step, at, heard[some], state, Public(len(path))
                )
                walk_compiled.check_equal(after.token, trail[some], at, self.fused_within)

    def _visits(self, path: Ints, spent: Ints, latest: Ints) -> tuple[Bools, Ints]:
        """At which hops the holder contributes, and its own count of visits; `spent` and `latest`
        are written over."""
        from bruit.privacy.exact.compiled.paths import contributions

        cap, active = (
            -1 if self.cap is None else self.cap,
            slice(self.burn_in, len(path) - self.flush),
        )
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
            raise ConfigError(
                "the fused walk is compiled for logistic tasks; run this one with Bulk()"
            )
        if self.batch is not None:
            raise ConfigError(
                f"the fused walk reads all records of a peer, found batch = {self.batch}; use "
                f"Bulk()"
            )
        return private, private.task

    def not_fused(self, door: Door) -> str:
        if self.decay:
            return "steps of different size are watched one by one"
        return walk_compiled.refusal(self._fusible, door)

    def guarantees(self) -> tuple[Theorem, ...]:
        return (
            RealizedWalk(
                rate=self.rate,
                decay=self.decay,
                burn_in=self.burn_in,
                published=self.published,
                bound=self.bound,
            ),
        )


def _count_contributions(spent: Ints, latest: Ints, path: Ints, hops: Ints) -> None:
    """One more for the holder of each of these hops, and its latest one, in place."""
    spent += np.bincount(path[hops], minlength=len(spent))
    latest[path[hops]] = hops  # in their order, so the last one stays


def _check_finite(path: Ints, begin: int, bad: int) -> None:
    """Refuses a part of the path, from hop `begin` on, whose gradient `bad` is not finite (-1: all
    are)."""
    if bad >= 0:
        hop = begin + bad
        raise ConfigError(
            f"the gradient of peer {path[hop]} at hop {hop} is not finite; lower the rate"
        )
