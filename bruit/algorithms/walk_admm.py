"""Walk ADMM: a token carries the mean of everybody's duals, and whoever holds it takes one proximal step.

    z = prox_{gamma r}(zhat),  x = prox_{gamma f_i}(2 z - u_i),  du = 2 l (x - z)
    u_i <- u_i + du,  zhat <- zhat + du / n,  then the token goes to w with probability W[v, w]

The token is zhat, the mean of the duals; its proximal point z is the model. Peer i keeps its dual u_i. What passes the
door is the gradient of the envelope at 2 z - u_i, clipped to `clip` and noised with `sigma`; x follows from it.
Learns: the minimizer of (1/n) sum_i f_i + r, r = `l1` |x|_1 + (`l2`/2) |x|^2 within +-`bound`.  Shows: the token to
whom it visits.  Spec: walk:ADMM-7, corrected (zhat and z kept apart), ADMM-10; arXiv:2302.12559.
"""

from dataclasses import dataclass
from math import inf
from typing import ClassVar, NamedTuple

import numpy as np

from bruit.algorithms import walk_compiled
from bruit.algorithms.algorithm import Algorithm, Stops
from bruit.algorithms.home import Door, Home, TaskDoor
from bruit.algorithms.messages import Edges, Inbox, Message
from bruit.algorithms.schedules import Walk
from bruit.arrays import Array, Ints
from bruit.domains import fraction, nonnegative, positive
from bruit.errors import ConfigError
from bruit.fixed_points.regularizers import Regularizer, penalty
from bruit.graphs import Graph, GraphSequence
from bruit.tasks import Logistic, Ridge
from bruit.tasks.newton import TOLERANCE

CHUNK = 1 << 17  # numbers of noise drawn at once: they stay in cache


class State(NamedTuple):
    token: Array  # (n, d) zhat as the peer last held it
    dual: Array  # (n, d) u_i


class Public(NamedTuple):
    peers: int


@dataclass(frozen=True)
class WalkADMM(Algorithm[State]):
    gamma: float = 1.0
    relaxation: float = 0.5
    l1: float = 0.0
    l2: float = 0.0
    bound: float | None = None
    schedule: Walk = Walk()
    private: ClassVar[tuple[str, ...]] = ("dual",)
    fused_within: ClassVar[float] = 1e-5  # two solvers agree to 1e-10, and the grid may round them to neighbors

    def __post_init__(self) -> None:
        positive(self, "gamma", "bound")
        fraction(self, "relaxation")
        nonnegative(self, "l1", "l2")

    @property
    def regularizer(self) -> Regularizer:
        return penalty(self.l1, self.l2, self.bound)

    def prepare(self, graph: Graph | GraphSequence, horizon: int) -> Public:
        return Public(graph.n)

    def start(self, home: Home) -> State:
        if home.beginning().any():
            raise ConfigError("walk-admm begins with all duals and the token at zero, their mean; carry"
                              " 'nothing', and leave start out")
        return State(home.zeros(), home.zeros())

    def emit(self, state: State, edges: Edges) -> Message:
        return edges.broadcast(state.token)

    def absorb(self, state: State, inbox: Inbox, home: Home) -> State:
        token = inbox.only()
        z = self.regularizer.prox(token, self.gamma)
        slope = home.envelope_gradient(2 * z - state.dual, self.gamma)
        change = 2 * self.relaxation * (z - state.dual - self.gamma * slope)  # x - z with x = 2 z - u - gamma slope
        return State(token + change / home.public.peers, state.dual + change)

    def fused_walk(self, state: State, path: Ints, door: Door, stops: Stops) -> State:
        """Proximal steps of ridge (closed form) and logistic tasks (Newton) in one compiled loop along the path."""
        from bruit.kernels.admm import LOGISTIC, SQUARED, proximal_walk
        from bruit.kernels.walk import contributions

        private = walk_compiled.private_door(door)
        task = self._fusible(private)
        mechanism, n = private.mechanism, len(state.token)
        token, dual, everywhere = state.token.copy(), state.dual.copy(), np.ones(len(path), bool)
        _, step = contributions(path, np.zeros(n, np.int64), np.full(n, -1, np.int64), -1, 1)
        clip, spacing = (inf, 0.0) if mechanism is None else (mechanism.clip, mechanism.spacing)
        loss = (LOGISTIC if isinstance(task, Logistic) else SQUARED, _or_infinite(task.derivative_clip), task.l2)
        start, features, targets = walk_compiled.flat(task.records)
        lengths, limits = (self.gamma, self.relaxation, TOLERANCE), (self.l1, self.l2, _or_infinite(self.bound))
        zhat = token[path[0]].copy() if len(path) else token[0]
        for here in stops.parts(len(path), max(64, CHUNK // task.dim)):
            noise = walk_compiled.noise_of(private, path[here], step[here], everywhere[here], everywhere[here])
            bad = proximal_walk(path[here], noise, start, features, targets, token, dual, zhat, loss, lengths,
                                limits, clip, spacing)  # fmt: skip
            if bad >= 0:
                hop = here.start + bad
                where = f"of peer {path[hop]} at hop {hop}"
                raise ConfigError(f"the proximal point {where} was not found to {TOLERANCE:g}; lower gamma or noise")
            clock = np.arange(here.start, here.stop)
            walk_compiled.record(private, path[here], step[here], everywhere[here], everywhere[here], clock)
            stops.pass_by(here.stop, len(path), State(token, dual))
        return State(token, dual)

    def not_fused(self, door: Door) -> str:
        return walk_compiled.refusal(lambda asked: self._fusible(walk_compiled.private_door(asked)), door)

    def _fusible(self, door: TaskDoor) -> Ridge | Logistic:
        if not isinstance(door.task, Ridge | Logistic):
            raise ConfigError("the fused walk-admm is compiled for ridge and logistic tasks; run this one with Bulk()")
        return door.task

    def estimate(self, state: State) -> Array:
        return self.regularizer.prox(state.token, self.gamma)


def _or_infinite(bound: float | None) -> float:
    return inf if bound is None else bound
