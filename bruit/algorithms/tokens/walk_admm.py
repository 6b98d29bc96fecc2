"""Walk ADMM: a token carries the mean of everybody's duals, and whoever holds it takes one proximal
step.

    z = prox_{gamma r}(zhat),  x = prox_{gamma f_i}(2 z - u_i),  du = 2 l (x - z)
    u_i <- u_i + du,  zhat <- zhat + du / n,  then the token goes to w with probability W[v, w]

The token is zhat, the mean of the duals; its proximal point z is the model. Peer i keeps its dual
u_i. What passes the door is the gradient of the envelope at 2 z - u_i, clipped to `clip` and noised
with `sigma`; x follows from it. With `published` everybody is told the last token; the account
is local DP, which counts every release as seen by everybody, so it is the same.
Learns: the minimizer of (1/n) sum_i f_i + r, r = `l1` |x|_1 + (`l2`/2) |x|^2 within +-`bound`.
Shows: the token to whom it visits, and to all if published.
Spec: walk:ADMM-7, corrected (zhat and z kept apart), ADMM-10; arXiv:2302.12559.
"""

from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple

import numpy as np

from bruit.algorithms.admm.consensus_admm import contraction_on
from bruit.algorithms.admm.expected_duals import expected_duals
from bruit.algorithms.admm.regularizers import Regularizer, penalty
from bruit.algorithms.algorithm import CAME_LATER, Algorithm
from bruit.algorithms.course import Course
from bruit.algorithms.door import Door
from bruit.algorithms.expectation import DeclaredFacts, Expectation
from bruit.algorithms.home import Home
from bruit.algorithms.messages import Edges, Inbox, Message
from bruit.algorithms.schedules.walk.schedule import Walk
from bruit.algorithms.task_door import TaskDoor
from bruit.algorithms.tokens import walk_compiled
from bruit.arrays import Array, Ints
from bruit.domains import fraction, nonnegative, positive
from bruit.errors import ConfigError
from bruit.graphs import Graph, GraphSequence
from bruit.tasks import Logistic, Ridge
from bruit.tasks.newton import TOLERANCE
from bruit.tasks.task import Task

CHUNK = 1 << 17  # numbers of noise drawn at once: they stay in cache


class State(NamedTuple):
    token: Array  # (n, d) zhat as the peer last held it
    dual: Array  # (n, d) u_i


class Public(NamedTuple):
    peers: int


@dataclass(frozen=True, kw_only=True)
class WalkADMM(Algorithm[State]):
    asks: ClassVar[str | None] = "proximal steps"
    gamma: float = 1.0
    relaxation: float = 0.5
    l1: float = 0.0
    l2: float = 0.0
    bound: float | None = None
    published: bool = field(default=False, metadata=CAME_LATER)
    schedule: Walk = Walk()
    private: ClassVar[tuple[str, ...]] = ("dual",)
    fused_within: ClassVar[float] = (
        1e-5  # two solvers agree to 1e-10, and the grid may round them to neighbors
    )

    def __post_init__(self) -> None:
        positive(self, "gamma", "bound")
        fraction(self, "relaxation")
        nonnegative(self, "l1", "l2")

    @property
    def regularizer(self) -> Regularizer:
        return penalty(self.l1, self.l2, self.bound)

    def prepare(self, graph: Graph | GraphSequence, horizon: int) -> Public:
        return Public(graph.n)

    def references(self, task: Task) -> dict[str, float]:
        return contraction_on(task, self.gamma, self.regularizer)

    def expected(self, known: DeclaredFacts) -> Expectation:
        if not isinstance(known.graph, Graph) or not known.graph.alike:
            raise ConfigError(
                "the statement on ADMM is for holders drawn independently, as on the complete graph"
            )
        return expected_duals(
            known,
            gamma=self.gamma,
            relaxation=self.relaxation,
            active=1 / known.graph.n,
            members=known.graph.n,
            steps=known.steps,
        )

    def start(self, home: Home) -> State:
        if home.beginning().any():
            raise ConfigError(
                "walk-admm begins with all duals and the token at zero, their mean; carry"
                " 'nothing', and leave start out"
            )
        return State(home.zeros(), home.zeros())

    def emit(self, state: State, edges: Edges) -> Message:
        return edges.broadcast(state.token)

    def absorb(self, state: State, inbox: Inbox, home: Home) -> State:
        token = inbox.only()
        z = self.regularizer.prox(token, self.gamma)
        slope = home.envelope_gradient(2 * z - state.dual, self.gamma)
        change = (
            2 * self.relaxation * (z - state.dual - self.gamma * slope)
        )  # x - z with x = 2 z - u - gamma slope
        return State(token + change / home.public.peers, state.dual + change)

    def fused(self, state: State, course: Course) -> tuple[State, int]:
        """Proximal steps of ridge (closed form) and logistic tasks (Newton) in one compiled loop
        along the path."""
        from bruit.algorithms.compiled.admm import LOGISTIC, SQUARED, proximal_walk
        from bruit.privacy.exact.compiled.paths import contributions

        path, door, stops = course.acting, course.door, course.stops
        private = walk_compiled.private_door(door)
        task = self._fusible(private)
        n = len(state.token)
        token, dual, everywhere = state.token.copy(), state.dual.copy(), np.ones(len(path), bool)
        _, step = contributions(path, np.zeros(n, np.int64), np.full(n, -1, np.int64), -1, 1)
        clip, spacing = walk_compiled.clip_and_spacing(private.mechanism)
        loss = (
            LOGISTIC if isinstance(task, Logistic) else SQUARED,
            walk_compiled.or_infinite(task.derivative_clip),
            task.l2,
        )
        start, features, targets = walk_compiled.flat(task.records)
        lengths, limits = (
            (self.gamma, self.relaxation, TOLERANCE),
            (self.l1, self.l2, walk_compiled.or_infinite(self.bound)),
        )
        zhat = token[path[0]].copy() if len(path) else token[0]
        for here in stops.parts(len(path), max(64, CHUNK // task.dim)):
            noise = walk_compiled.noise_of(
                private, path[here], step[here], everywhere[here], everywhere[here]
            )
            bad = proximal_walk(
                path=path[here],
                noise=noise,
                start=start,
                features=features,
                targets=targets,
                token=token,
                dual=dual,
                zhat=zhat,
                loss=loss,
                lengths=lengths,
                penalty=limits,
                clip=clip,
                spacing=spacing,
            )
            _check_found(path, here.start, bad)
            clock = np.arange(here.start, here.stop)
            walk_compiled.record(
                private, path[here], step[here], everywhere[here], everywhere[here], clock
            )
            stops.pass_by(here.stop, len(path), State(token, dual))
        return State(token, dual), len(path)

    def not_fused(self, door: Door) -> str:
        return walk_compiled.refusal(
            lambda asked: self._fusible(walk_compiled.private_door(asked)), door
        )

    def _fusible(self, door: TaskDoor) -> Ridge | Logistic:
        if not isinstance(door.task, Ridge | Logistic):
            raise ConfigError(
                "the fused walk-admm is compiled for ridge and logistic tasks; run this one with "
                "Bulk()"
            )
        return door.task

    def adopt(self, state: State, token: Array, public: Public) -> State:
        return state._replace(token=token)

    def estimate(self, state: State) -> Array:
        return self.regularizer.prox(state.token, self.gamma)


def _check_found(path: Ints, begin: int, bad: int) -> None:
    """Refuses a part of the path, from hop `begin` on, whose step `bad` did not converge (-1: all
    did)."""
    if bad >= 0:
        hop = begin + bad
        raise ConfigError(
            f"the proximal point of peer {path[hop]} at hop {hop} was not found to {TOLERANCE:g}; "
            f"lower gamma or noise"
        )
