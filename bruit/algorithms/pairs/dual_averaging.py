"""Gossip dual averaging: two neighbors meet, average their sums of gradients, and learn from the
points they swap.

    a_i, a_j are swapped;  z = (z_i + z_j) / 2;  then for both
    z_k <- z + (1 / p_k) grad h(x_k; point_k, a_k);   m_k <- m_k + 1 / p_k;   x_k <- pi_{m_k}(z_k)

and the mean of the x_k so far is the answer. h: the task's loss of two points; p_k: the chance that
peer k takes part in a meeting, so that m_k is a clock that runs alike for all. pi: see
`dual_steps`; psi is given by l1, l2, ball and semidefinite.
Learns: the minimizer of (1/n^2) sum over u, v of h(x; x_u, x_v) + psi(x).
Shows: the point of everybody, in the end, to everybody. Only noise on the points themselves
protects them.
Spec: perso:PAIR-6, PAIR-9, PAIR-10; Colin, Bellet, Salmon, Clemencon, ICML 2016.
"""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from bruit.algorithms.algorithm import Algorithm
from bruit.algorithms.home import Home
from bruit.algorithms.messages import Edges, Inbox, Message
from bruit.algorithms.pairs import passed_points
from bruit.algorithms.pairs.dual_steps import DualStep
from bruit.algorithms.pairs.passed_points import Passing
from bruit.algorithms.schedules.pairs.schedule import Pairs
from bruit.arrays import Array
from bruit.graphs import Graph, GraphSequence


class Public(NamedTuple):
    activity: Array  # (n,) p_k


class State(NamedTuple):
    own: Passing  # the point each peer showed, w numbers
    held: Passing  # the point it holds now
    dual: Array  # (n, d) z
    model: Array  # (n, d) x
    mean: Array  # (n, d) of the models so far
    clock: Array  # (n,) m


@dataclass(frozen=True, kw_only=True)
class DualAveraging(Algorithm[State]):
    asks: ClassVar[str | None] = "a loss of two points"
    rate: float = 1.0
    l1: float = 0.0
    l2: float = 0.0
    ball: float | None = None
    semidefinite: bool = False
    schedule: Pairs = Pairs("edges")

    def __post_init__(self) -> None:
        self._step()

    def _step(self) -> DualStep:
        return DualStep(self.rate, self.l1, self.l2, self.ball, self.semidefinite)

    def prepare(self, graph: Graph | GraphSequence, horizon: int) -> Public:
        return Public(
            passed_points.activity(self.schedule, passed_points.fixed(graph, self.name()))
        )

    def start(self, home: Home) -> State:
        own = Passing(home.value(), home.ids.copy())
        held = Passing(own.point.copy(), own.origin.copy())
        return State(own, held, home.zeros(), home.zeros(), home.zeros(), np.zeros(len(home.ids)))

    def emit(self, state: State, edges: Edges) -> Message:
        return edges.broadcast(passed_points.packed(state.held, state.dual))

    def absorb(self, state: State, inbox: Inbox, home: Home) -> State:
        received, weight = inbox.only(), 1.0 / home.public.activity[home.ids]
        held = passed_points.swapped(state.held, received)
        slope = passed_points.slope_between(home, state.model, state.own, held)
        dual = (state.dual + received[:, : home.dim]) / 2 + weight[:, None] * slope
        clock = state.clock + weight
        model = self._step()(dual, clock)
        mean = state.mean + (model - state.mean) * (weight / clock)[:, None]
        return State(state.own, held, dual, model, mean, clock)

    def estimate(self, state: State) -> Array:
        return state.mean
