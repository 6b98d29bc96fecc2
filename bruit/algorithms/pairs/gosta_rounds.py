"""Synchronous GoSta: each round everybody refines its estimate of a statistic over pairs; two
average and swap.

    round t:  every u: z_u <- ((t - 1) z_u + h(x_u, a_u)) / t;  then on one edge {u, v}, drawn uniformly and publicly,
              z_u, z_v <- (z_u + z_v) / 2 and a_u, a_v are swapped

x_u: the point peer u showed, a_u: the one it holds. h counts n / (n - 1) for points of two peers
and 0 for a point with itself, so that z tends to the classical U-statistic: |E z(t) - U 1| = O(1 /
t), see perso:PAIR-3.
Learns: the U-statistic of the points shown.
Shows: the point of everybody, in the end, to everybody; a round shows one point and one estimate to
each end of the edge, and nothing to anybody else.
Spec: perso:PAIR-2, PAIR-3, PAIR-10; Colin, Bellet, Salmon, Clemencon, NIPS 2015, Algorithm 1.
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
    estimate: Array  # (n, d) z after the last exchange
    value: Array  # (n, d) h of the two points, which the next round adds
    rounds: Ints  # (n,)
    partner: Ints  # (n,) with whom it exchanges next, -1 for nobody


@dataclass(frozen=True)
class GostaRounds(Algorithm[State]):
    asks: ClassVar[str | None] = "a function of two points"

    def prepare(self, graph: Graph | GraphSequence, horizon: int) -> Public:
        return passed_points.public(graph, self.name())

    def start(self, home: Home) -> State:
        own = Passing(home.value(), home.ids.copy())
        held = Passing(own.point.copy(), own.origin.copy())
        none = np.zeros(len(home.ids), np.int64)
        return State(own, held, home.zeros(), home.zeros(), none, self._partner(home))

    def _partner(self, home: Home) -> Ints:
        return passed_points.partners(home.public.edges, home.common()[:, 0], home.ids)

    def _refined(self, state: State) -> Array:
        """The estimates of the round under way, before the exchange."""
        rounds = state.rounds[:, None]
        return np.asarray((rounds * state.estimate + state.value) / (rounds + 1))

    def emit(self, state: State, edges: Edges) -> Message:
        return passed_points.tell(
            edges, [(state.partner, passed_points.packed(state.held, self._refined(state)))]
        )

    def absorb(self, state: State, inbox: Inbox, home: Home) -> State:
        met, received = passed_points.from_partner(inbox, state.partner, slice(None))
        mine = self._refined(state)
        fresh = np.where(met[:, None], (mine + received[:, : home.dim]) / 2, mine)
        held = passed_points.swapped(state.held, received, met)
        value = passed_points.between(home, state.own, held)
        return State(state.own, held, fresh, value, state.rounds + 1, self._partner(home))

    def estimate(self, state: State) -> Array:
        return state.estimate

    def fused(self, state: State, course: Course) -> tuple[State, int]:
        """A peer that exchanges nothing adds the same h again and again: only the two ends of the
        edge need work."""
        from bruit.algorithms.compiled.pairwise import average_rounds, swap_meetings

        graph, steps, door = course.graph, course.steps, course.door
        edges, points = graph.edges(), state.own.point
        drawn = passed_points.drawn_edges(edges, door.common(np.arange(steps + 1), 1)[:, 0])
        a, b = edges[drawn[:steps]].T
        origin, first = state.held.origin.copy(), int(state.rounds[0])
        there, here = swap_meetings(a, b, origin)  # what a and b held before: b and a hold it after
        after_a, after_b = (
            passed_points.between_peers(door, points, who, what)
            for who, what in ((a, here), (b, there))
        )
        total, value = state.estimate * first, np.array(state.value, order="C")
        average_rounds(a, b, after_a, after_b, total, value, first)
        partner = np.full(graph.n, -1)
        partner[edges[drawn[steps]]] = edges[drawn[steps]][::-1]
        done = first + steps
        fresh = State(
            state.own,
            Passing(points[origin], origin),
            total / max(done, 1),
            value,
            np.full(graph.n, done),
            partner,
        )
        return fresh, steps
