"""Synchronous gossip dual averaging: everybody learns from a pair of points each round; two
neighbors average and swap.

    round t:  on one edge {u, v}, drawn uniformly and publicly, z_u, z_v <- (z_u + z_v) / 2 and a_u, a_v are swapped;
              then every u: z_u <- z_u + grad h(x_u; point_u, a_u),  x_u <- pi_t(z_u)

and the mean of the x_u so far is the answer. h: the task's loss of two points; pi: see
`dual_steps`; psi is given by l1, l2, ball and semidefinite.
Learns: the minimizer of (1/n^2) sum over u, v of h(x; x_u, x_v) + psi(x), at the rate 1 / sqrt(t)
(perso:PAIR-8).
Shows: the point of everybody, in the end, to everybody; a round shows one point and one sum of
gradients to each end of the edge, and nothing to anybody else.
Spec: perso:PAIR-6, PAIR-7, PAIR-10; Colin, Bellet, Salmon, Clemencon, ICML 2016.
"""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from bruit.algorithms.algorithm import Algorithm
from bruit.algorithms.course import Course
from bruit.algorithms.door import Door
from bruit.algorithms.home import Home
from bruit.algorithms.messages import Edges, Inbox, Message
from bruit.algorithms.pairs import passed_points
from bruit.algorithms.pairs.dual_steps import DualStep
from bruit.algorithms.pairs.passed_points import Passing, Public
from bruit.algorithms.task_door import TaskDoor
from bruit.arrays import Array, Ints
from bruit.errors import ConfigError
from bruit.graphs import Graph, GraphSequence
from bruit.tasks.pairs.losses import ScoreLoss
from bruit.tasks.pairs.pairwise import Pairwise


class State(NamedTuple):
    own: Passing  # the point each peer showed, w numbers
    held: Passing  # the point it holds now
    dual: Array  # (n, d) z
    model: Array  # (n, d) x
    mean: Array  # (n, d) of the models so far
    rounds: Ints  # (n,)
    partner: Ints  # (n,) with whom it exchanges next, -1 for nobody


@dataclass(frozen=True)
class DualAveragingRounds(Algorithm[State]):
    asks: ClassVar[str | None] = "a loss of two points"
    rate: float = 1.0
    l1: float = 0.0
    l2: float = 0.0
    ball: float | None = None
    semidefinite: bool = False

    def __post_init__(self) -> None:
        self._step()

    def _step(self) -> DualStep:
        return DualStep(self.rate, self.l1, self.l2, self.ball, self.semidefinite)

    def prepare(self, graph: Graph | GraphSequence, horizon: int) -> Public:
        return passed_points.public(graph, self.name())

    def start(self, home: Home) -> State:
        own = Passing(home.value(), home.ids.copy())
        held = Passing(own.point.copy(), own.origin.copy())
        none = np.zeros(len(home.ids), np.int64)
        return State(own, held, home.zeros(), home.zeros(), home.zeros(), none, self._partner(home))

    def _partner(self, home: Home) -> Ints:
        return passed_points.partners(home.public.edges, home.common()[:, 0], home.ids)

    def emit(self, state: State, edges: Edges) -> Message:
        return passed_points.tell(
            edges, [(state.partner, passed_points.packed(state.held, state.dual))]
        )

    def absorb(self, state: State, inbox: Inbox, home: Home) -> State:
        met, received = passed_points.from_partner(inbox, state.partner, slice(None))
        held = passed_points.swapped(state.held, received, met)
        mixed = np.where(met[:, None], (state.dual + received[:, : home.dim]) / 2, state.dual)
        dual = mixed + passed_points.slope_between(home, state.model, state.own, held)
        rounds = state.rounds + 1
        model = self._step()(dual, rounds.astype(np.float64))
        mean = state.mean + (model - state.mean) / rounds[:, None]
        return State(state.own, held, dual, model, mean, rounds, self._partner(home))

    def estimate(self, state: State) -> Array:
        return state.mean

    def fused(self, state: State, course: Course) -> tuple[State, int]:
        from bruit.algorithms.compiled.pairwise import dual_rounds

        graph, steps, door = course.graph, course.steps, course.door
        loss = self._fusible(door)
        edges, points = graph.edges(), np.ascontiguousarray(state.own.point)
        drawn = passed_points.drawn_edges(edges, door.common(np.arange(steps + 1), 1)[:, 0])
        a, b = edges[drawn[:steps]].T
        origin, first = state.held.origin.copy(), int(state.rounds[0])
        dual, model, mean = (
            np.array(rows, order="C") for rows in (state.dual, state.model, state.mean)
        )
        ball = np.inf if self.ball is None else self.ball
        dual_rounds(
            a=a,
            b=b,
            points=points,
            origin=origin,
            z=dual,
            model=model,
            mean=mean,
            first=first,
            rate=self.rate,
            l1=self.l1,
            l2=self.l2,
            ball=ball,
            hinge=loss.hinge,
        )
        partner = np.full(graph.n, -1)
        partner[edges[drawn[steps]]] = edges[drawn[steps]][::-1]
        held = Passing(points[origin], origin)
        return State(
            state.own, held, dual, model, mean, np.full(graph.n, first + steps), partner
        ), steps

    def _fusible(self, door: Door) -> ScoreLoss:
        """The loss of a task that is compiled; otherwise what stands in the way."""
        task = door.task if isinstance(door, TaskDoor) else None
        if (
            not isinstance(task, Pairwise)
            or not isinstance(task.loss, ScoreLoss)
            or self.semidefinite
        ):
            raise ConfigError(
                "compiled dual averaging is for losses of two scores (auc, ranking); use Bulk()"
            )
        if task.points.codebook is not None or task.points.most > 1:
            raise ConfigError(
                "compiled dual averaging is for one point a peer, shown as it is; use Bulk()"
            )
        return task.loss
