"""GoSta: two neighbors meet, average their estimates of a statistic over pairs, and swap the points
they hold.

    z_i, z_j <- (z_i + z_j) / 2;  then for both  z_k <- (1 - 1/c_k) z_k + h(x_k, a_k) / c_k;  then a_i, a_j are swapped

x_k: the point peer k showed, a_k: the one it holds, c_k: its meetings so far, this one counted. h
counts n / (n - 1) for points of two peers and 0 for a point with itself, so that z tends to the
classical U-statistic. The clock 1 / p_k of the paper cancels: p_k m_k = c_k.
Learns: the U-statistic of the points shown, at the rate log t / t.
Shows: the point of everybody, in the end, to everybody. Only noise on the points themselves
protects them.
Spec: perso:PAIR-4, PAIR-10; Colin, Bellet, Salmon, Clemencon, NIPS 2015, Algorithm 2.
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
from bruit.algorithms.schedules.pairs.schedule import Pairs
from bruit.arrays import Array, Ints
from bruit.graphs import Graph, GraphSequence


class State(NamedTuple):
    own: Passing  # the point each peer showed, w numbers
    held: Passing  # the point it holds now
    estimate: Array  # (n, d)
    meetings: Ints  # (n,)


@dataclass(frozen=True)
class Gosta(Algorithm[State]):
    asks: ClassVar[str | None] = "a function of two points"
    schedule: Pairs = Pairs("edges")

    def prepare(self, graph: Graph | GraphSequence, horizon: int) -> Public:
        return passed_points.public(graph, self.name())

    def start(self, home: Home) -> State:
        own = Passing(home.value(), home.ids.copy())
        held = Passing(own.point.copy(), own.origin.copy())
        return State(own, held, home.zeros(), np.zeros(len(home.ids), np.int64))

    def emit(self, state: State, edges: Edges) -> Message:
        return edges.broadcast(passed_points.packed(state.held, state.estimate))

    def absorb(self, state: State, inbox: Inbox, home: Home) -> State:
        received, count = inbox.only(), state.meetings + 1
        middle = (state.estimate + received[:, : home.dim]) / 2
        share = 1.0 / count[:, None]
        fresh = (1.0 - share) * middle + share * passed_points.between(home, state.own, state.held)
        return State(state.own, passed_points.swapped(state.held, received), fresh, count)

    def estimate(self, state: State) -> Array:
        return state.estimate

    def fused(self, state: State, course: Course) -> tuple[State, int]:
        """Who holds what is a matter of the meetings alone: first the swaps, then all h at once,
        then the averages."""
        from bruit.algorithms.compiled.pairwise import average_meetings, swap_meetings

        graph, door = course.graph, course.door
        met = self.schedule.meetings(graph, course.steps, course.dice)
        origin, count = state.held.origin.copy(), state.meetings.copy()
        estimate, points = np.array(state.estimate, order="C"), state.own.point
        size = max(1, passed_points.CHUNK // (2 * points.shape[1]))
        for begin in range(0, len(met.a), size):
            a, b = met.a[begin : begin + size], met.b[begin : begin + size]
            here, there = swap_meetings(a, b, origin)
            values = (
                passed_points.between_peers(door, points, who, what)
                for who, what in ((a, here), (b, there))
            )
            average_meetings(a, b, *values, estimate, count)
        return State(state.own, Passing(points[origin], origin), estimate, count), len(met.a)
