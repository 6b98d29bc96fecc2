"""Gossip averaging: everybody repeatedly replaces its value by a weighted mean of its neighborhood's.

    x_i <- sum_j W_ij m_j,   m_j = x_j and a dither, on a grid (bruit.algorithms.exchange)

Learns: the mean of the noisy values everywhere, at the rate (1 - spectral gap)^t.  Shows: m_i to each neighbor, each
round; sums instead of means in a butterfly.  Spec: gossip:GO-1, fp:FP-1, FP-2; with Gaussian noise at the start it is
Muffliato, gossip:MUF-1, MUF-2 (arXiv:2206.05091).
"""

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from bruit.algorithms.algorithm import Algorithm
from bruit.algorithms.exchange import Arithmetic, Exchange, exchange_of
from bruit.algorithms.home import Home
from bruit.algorithms.messages import Edges, Inbox, Message
from bruit.arrays import Array
from bruit.graphs import Graph, GraphSequence
from bruit.privacy.network.gossip import ExactGossip, PublishedGossip
from bruit.privacy.network.theorem import Theorem


class State(NamedTuple):
    value: Array  # (n, d) the current estimate of the mean
    message: Array  # (n, d) what is said next


@dataclass(frozen=True)
class Averaging(Algorithm[State]):
    linear: ClassVar[bool] = True

    def prepare(self, graph: Graph | GraphSequence, horizon: int) -> Exchange:
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

    def fused_rounds(self, state: State, graph: Graph, steps: int, public: Any) -> State:
        from bruit.kernels.mixing import mix

        value = mix(graph.weights, state.value, np.ones(steps), np.zeros(steps), previous=False)[0]
        return State(value, value)

    def guarantees(self) -> tuple[Theorem, ...]:
        return ExactGossip(), PublishedGossip()
