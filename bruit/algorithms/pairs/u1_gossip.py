"""U1-gossip: everybody averages h of its own point and of the points that come by; estimates are
not exchanged.

    round t:  on one edge {u, v}, drawn uniformly and publicly, a_u, a_v are swapped;
              then every u: z_u <- ((t - 1) z_u + h(x_u, a_u)) / t

Learns: at each peer the mean of h between its own point and all others, its row of the U-statistic,
not the statistic.
Shows: the point of everybody, in the end, to everybody; a round shows one point to each end of the
edge.
Spec: perso:PAIR-5; the first half of U2-gossip, Pelckmans and Suykens 2009.
"""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from bruit.algorithms.algorithm import Algorithm
from bruit.algorithms.course import Course
from bruit.algorithms.home import Home
from bruit.algorithms.messages import Edges, Inbox, Message
from bruit.algorithms.pairs import passed_points
from bruit.algorithms.pairs.passed_points import Passing, Public
from bruit.arrays import Array, Ints
from bruit.graphs import Graph, GraphSequence


class State(NamedTuple):
    own: Passing  # the point each peer showed, w numbers
    held: Passing  # the point it holds now
    estimate: Array  # (n, d)
    rounds: Ints  # (n,)
    partner: Ints  # (n,) with whom it swaps next, -1 for nobody


@dataclass(frozen=True)
class U1Gossip(Algorithm[State]):
    asks: ClassVar[str | None] = "a function of two points"

    @classmethod
    def name(cls) -> str:
        return "u1-gossip"

    def prepare(self, graph: Graph | GraphSequence, horizon: int) -> Public:
        return passed_points.public(graph, self.name())

    def start(self, home: Home) -> State:
        own = Passing(home.value(), home.ids.copy())
        held = Passing(own.point.copy(), own.origin.copy())
        return State(
            own, held, home.zeros(), np.zeros(len(home.ids), np.int64), self._partner(home)
        )

    def _partner(self, home: Home) -> Ints:
        return passed_points.partners(home.public.edges, home.common()[:, 0], home.ids)

    def emit(self, state: State, edges: Edges) -> Message:
        return passed_points.tell(edges, [(state.partner, passed_points.packed(state.held))])

    def absorb(self, state: State, inbox: Inbox, home: Home) -> State:
        met, received = passed_points.from_partner(inbox, state.partner, slice(None))
        held, rounds = passed_points.swapped(state.held, received, met), state.rounds + 1
        value = passed_points.between(home, state.own, held)
        fresh = state.estimate + (value - state.estimate) / rounds[:, None]
        return State(state.own, held, fresh, rounds, self._partner(home))

    def estimate(self, state: State) -> Array:
        return state.estimate

    def fused(self, state: State, course: Course) -> tuple[State, int]:
        """Each pair of points counts as many rounds as a peer held it."""
        from bruit.algorithms.compiled.pairwise import stays

        graph, steps, door = course.graph, course.steps, course.door
        edges, points = graph.edges(), state.own.point
        drawn = passed_points.drawn_edges(edges, door.common(np.arange(steps + 1), 1)[:, 0])
        a, b = edges[drawn[:steps]].T
        own, held = state.own.origin.copy(), state.held.origin.copy()
        who, left, right, rounds = stays(a, b, a, a, held, own)
        value = passed_points.between_peers(door, points, left, right) * rounds[:, None]
        total = state.estimate * state.rounds[:, None]
        np.add.at(total, who, value)
        partner = np.full(graph.n, -1)
        partner[edges[drawn[steps]]] = edges[drawn[steps]][::-1]
        done = state.rounds + steps
        fresh = State(
            state.own,
            Passing(points[held], held),
            total / np.maximum(done, 1)[:, None],
            done,
            partner,
        )
        return fresh, steps
