"""Personalized models: everyone follows its own gradient and stays close to its neighbors, by
coordinate descent.

    x_u <- (1 - a_u) x_u + a_u (sum_v (w_uv / d_u) x_v - (c_u / coupling) g_u),    a_u = coupling / (coupling + c_u L_u)

g_u: gradient of peer u at its own model; c_u: its confidence, L_u: a public bound on its
smoothness, w: the weights of the graph. A peer stops after `updates` reads of its data and only
repeats its model; one of confidence 0 reads nothing and takes the mean of its neighbors; one
without neighbors never wakes and keeps the model it began with.
Learns: the minimizer of sum_u d_u c_u f_u(x_u) + (coupling/2) sum_{u<v} w_uv |x_u - x_v|^2.
Shows: the model after each update, to each neighbor.
Spec: perso:PERSO-1, PERSO-2, PERSO-3, private: PERSO-9, PERSO-10; Bellet, Guerraoui, Taziki and
Tommasi 2018, arXiv:1705.08435.
"""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from bruit.algorithms.algorithm import Algorithm
from bruit.algorithms.course import Course
from bruit.algorithms.door import Door
from bruit.algorithms.home import Home
from bruit.algorithms.messages import Edges, Inbox, Message
from bruit.algorithms.personal.neighborhood import Standing, around, per_peer, standing
from bruit.algorithms.schedules.wakes.schedule import Wakes
from bruit.algorithms.turns import Turns
from bruit.arrays import Array, Ints
from bruit.domains import chance, positive, whole
from bruit.graphs import Graph, GraphSequence
from bruit.privacy.theorem import Theorem
from bruit.privacy.theorems.arrived import Arrived


class State(NamedTuple):
    model: Array  # (n, d)
    spent: Ints  # (n,) reads so far


@dataclass(frozen=True)
class Public:
    peers: Standing
    updates: Array  # (n,) reads each peer may make


@dataclass(frozen=True)
class Personalized(Algorithm[State]):
    asks: ClassVar[str | None] = "gradients"
    coupling: float = 1.0
    smoothness: float | tuple[float, ...] = 1.0
    confidences: tuple[float, ...] | None = None
    updates: int | tuple[int, ...] | None = None
    schedule: Wakes = Wakes()
    linear: ClassVar[bool] = True

    def __post_init__(self) -> None:
        positive(self, "coupling", "smoothness")
        chance(self, "confidences")
        whole(self, "updates")

    def prepare(self, graph: Graph | GraphSequence, horizon: int) -> Public:
        allowed = per_peer("updates", self.updates, graph.n, np.inf)
        return Public(standing(self.confidences, self.smoothness, graph), allowed)

    def guarantees(self) -> tuple[Theorem, ...]:
        return (Arrived(),)

    def turns(self, graph: Graph | GraphSequence, steps: int) -> Turns:
        most = float(np.max(per_peer("updates", self.updates, graph.n, np.inf)))
        return Turns(cap=int(most) if np.isfinite(most) else None)

    def start(self, home: Home) -> State:
        return State(home.beginning(), np.zeros(len(home.ids), np.int64))

    def emit(self, state: State, edges: Edges) -> Message:
        return edges.broadcast(state.model)

    def absorb(self, state: State, inbox: Inbox, home: Home) -> State:
        trust = home.public.peers.confidence[home.ids][:, None]
        share = self.coupling / (
            self.coupling + trust * home.public.peers.smoothness[home.ids][:, None]
        )
        awake = state.spent < home.public.updates[home.ids]
        reads = awake & (trust[:, 0] > 0)
        gradient = home.gradient(state.model, where=reads)
        goal = around(inbox, inbox.rows) - trust / self.coupling * gradient
        model = np.where(awake[:, None], (1 - share) * state.model + share * goal, state.model)
        return State(model, state.spent + reads)

    def estimate(self, state: State) -> Array:
        return state.model

    def fused(self, state: State, course: Course) -> tuple[State, int]:
        """The state after these peers woke in this order, reading data through the door: the
        compiled path."""
        from bruit.algorithms.personal.fused_descent import descend

        public = self.prepare(course.graph, 0)
        model, spent = descend(
            models=state.model,
            spent=state.spent,
            graph=course.graph,
            woken=course.acting,
            door=course.door,
            coupling=self.coupling,
            trust=public.peers.confidence,
            smoothness=public.peers.smoothness,
            allowed=public.updates,
        )
        return State(model, spent), len(course.acting)

    def not_fused(self, door: Door) -> str:
        from bruit.algorithms.personal.fused_descent import reason

        return reason(door)
