"""Gossip averaging: everybody repeatedly replaces its value by a weighted mean of its
neighborhood's.

    x_i <- sum_j W_ij m_j,   m_j = x_j and a dither, on a grid (see `exchange`)

Learns: the mean of the noisy values everywhere, at the rate (1 - spectral gap)^t.
Shows: m_i to each neighbor, each round; sums instead of means in a butterfly.
Spec: gossip:GO-1, fp:FP-1, FP-2; with Gaussian noise at the start it is Muffliato, gossip:MUF-1,
MUF-2 (arXiv:2206.05091).
"""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from bruit.algorithms.algorithm import Algorithm
from bruit.algorithms.course import Course, Reads
from bruit.algorithms.gossip.exchange import Arithmetic, ExchangeFacts, exchange_of
from bruit.algorithms.home import Home
from bruit.algorithms.messages import Edges, Inbox, Message
from bruit.arrays import Array
from bruit.graphs import Graph, GraphSequence
from bruit.privacy.theorem import Theorem
from bruit.privacy.theorems.gossip import ExactGossip, PublishedGossip
from bruit.privacy.theorems.unequal import UnequalGossip


class State(NamedTuple):
    value: Array  # (n, d) the current estimate of the mean
    message: Array  # (n, d) what is said next


@dataclass(frozen=True)
class Averaging(Algorithm[State]):
    asks: ClassVar[str | None] = "a value to average"
    linear: ClassVar[bool] = True
    in_blocks: ClassVar[bool] = True
    fused_reads: ClassVar[Reads] = "nothing"

    def prepare(self, graph: Graph | GraphSequence, horizon: int) -> ExchangeFacts:
        return exchange_of(graph, horizon)

    def start(self, home: Home) -> State:
        arithmetic = Arithmetic(home.public, home)
        value = home.value(grid=arithmetic.grid)
        return State(value, arithmetic.message(value))

    def emit(self, state: State, edges: Edges) -> Message:
        return edges.broadcast(state.message)

    def absorb(self, state: State, inbox: Inbox, home: Home) -> State:
        arithmetic = Arithmetic(home.public, home)
        mixed = arithmetic.mixed(inbox)
        return State(mixed.value, arithmetic.message(mixed.said))

    def estimate(self, state: State) -> Array:
        return state.value

    def fused(self, state: State, course: Course) -> tuple[State, int]:
        from bruit.algorithms.compiled.mixing import mix

        once, never = np.ones(course.steps), np.zeros(course.steps)
        value = mix(course.graph.weights, state.value, once, never, previous=False)[0]
        return State(value, value), course.steps

    def guarantees(self) -> tuple[Theorem, ...]:
        return ExactGossip(), UnequalGossip(), PublishedGossip()
