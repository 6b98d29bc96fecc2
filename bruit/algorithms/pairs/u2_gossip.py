"""U2-gossip: everybody averages h of two points that come by; estimates are not exchanged.

    round t:  on one edge the first points a_u, a_v are swapped, on another, independent one the second ones b_u, b_v;
              then every u: z_u <- ((t - 1) z_u + h(a_u, b_u)) / t

Both edges are drawn uniformly and publicly. The baseline that GoSta improves on: nobody averages
with anybody.
Learns: the U-statistic of the points shown.
Shows: the point of everybody, in the end, to everybody; a round shows one point to each end of an
edge.
Spec: perso:PAIR-5; Pelckmans and Suykens 2009.
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
    shown: Passing  # the point each peer showed, w numbers
    first: Passing  # the first point it holds
    second: Passing
    estimate: Array  # (n, d)
    rounds: Ints  # (n,)
    swaps_first: Ints  # (n,) with whom it swaps the first point next, -1 for nobody
    swaps_second: Ints  # (n,)


@dataclass(frozen=True)
class U2Gossip(Algorithm[State]):
    asks: ClassVar[str | None] = "a function of two points"

    @classmethod
    def name(cls) -> str:
        return "u2-gossip"

    def prepare(self, graph: Graph | GraphSequence, horizon: int) -> Public:
        return passed_points.public(graph, self.name())

    def start(self, home: Home) -> State:
        shown = Passing(home.value(), home.ids.copy())
        first, second = (Passing(shown.point.copy(), shown.origin.copy()) for _ in range(2))
        return State(
            shown,
            first,
            second,
            home.zeros(),
            np.zeros(len(home.ids), np.int64),
            *self._partners(home),
        )

    def _partners(self, home: Home) -> tuple[Ints, Ints]:
        one, two = home.common(2).T
        return (
            passed_points.partners(home.public.edges, one, home.ids),
            passed_points.partners(home.public.edges, two, home.ids),
        )

    def emit(self, state: State, edges: Edges) -> Message:
        return passed_points.tell(
            edges,
            [
                (state.swaps_first, passed_points.packed(state.first)),
                (state.swaps_second, passed_points.packed(state.second)),
            ],
        )

    def absorb(self, state: State, inbox: Inbox, home: Home) -> State:
        width = state.shown.point.shape[1] + 1
        met, received = passed_points.from_partner(inbox, state.swaps_first, slice(0, width))
        first = passed_points.swapped(state.first, received, met)
        met, received = passed_points.from_partner(inbox, state.swaps_second, slice(width, None))
        second, rounds = passed_points.swapped(state.second, received, met), state.rounds + 1
        value = passed_points.between(home, first, second)
        fresh = state.estimate + (value - state.estimate) / rounds[:, None]
        return State(state.shown, first, second, fresh, rounds, *self._partners(home))

    def estimate(self, state: State) -> Array:
        return state.estimate

    def fused(self, state: State, course: Course) -> tuple[State, int]:
        """Each pair of points counts as many rounds as a peer held it."""
        from bruit.algorithms.compiled.pairwise import stays

        graph, steps, door = course.graph, course.steps, course.door
        edges, points = graph.edges(), state.shown.point
        drawn = passed_points.drawn_edges(edges, door.common(np.arange(steps + 1), 2))
        (a, b), (c, d) = edges[drawn[:steps, 0]].T, edges[drawn[:steps, 1]].T
        one, two = state.first.origin.copy(), state.second.origin.copy()
        who, left, right, rounds = stays(a, b, c, d, one, two)
        value = passed_points.between_peers(door, points, left, right) * rounds[:, None]
        total = state.estimate * state.rounds[:, None]
        np.add.at(total, who, value)
        partner = np.full((2, graph.n), -1)
        for side in (0, 1):
            ends = edges[drawn[steps, side]]
            partner[side][ends] = ends[::-1]
        done = state.rounds + steps
        fresh = State(
            state.shown,
            Passing(points[one], one),
            Passing(points[two], two),
            total / np.maximum(done, 1)[:, None],
            done,
            partner[0],
            partner[1],
        )
        return fresh, steps
