"""Gossip averaging: everybody repeatedly replaces its value by a weighted mean of its neighborhood's.

    x_i <- sum_j W_ij x_j

Learns: the mean of the noisy values everywhere, at the rate (1 - spectral gap)^t.  Shows: x_i to each neighbor, each
round.  Spec: gossip:GO-1; with Gaussian noise at the start it is Muffliato, gossip:MUF-1, MUF-2 (arXiv:2206.05091).
"""

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from bruit.algorithms.algorithm import Algorithm
from bruit.algorithms.home import Home
from bruit.algorithms.messages import Edges, Inbox, Message
from bruit.arrays import Array
from bruit.graphs import Graph
from bruit.privacy.network.gossip import ExactGossip, PublishedGossip
from bruit.privacy.network.theorem import Theorem


class State(NamedTuple):
    value: Array  # (n, d) the current estimate of the mean


@dataclass(frozen=True)
class Averaging(Algorithm[State]):
    linear: ClassVar[bool] = True

    def start(self, home: Home) -> State:
        return State(home.value())

    def emit(self, state: State, edges: Edges) -> Message:
        return edges.broadcast(state.value)

    def absorb(self, state: State, inbox: Inbox, home: Home) -> State:
        return State(inbox.mix())

    def estimate(self, state: State) -> Array:
        return state.value

    def fused_rounds(self, state: State, graph: Graph, steps: int, public: Any) -> State:
        from bruit.kernels.mixing import mix

        return State(mix(graph.weights, state.value, np.ones(steps), np.zeros(steps), previous=False)[0])

    def guarantees(self) -> tuple[Theorem, ...]:
        return ExactGossip(), PublishedGossip()
