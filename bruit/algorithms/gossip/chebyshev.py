"""Chebyshev-accelerated gossip: mix, then step beyond with the memory of the previous value.

    x^1 = W m^0,   x^{t+1} = gamma W m^t + (1 - gamma) m^{t-1},   m^t = x^t and a dither (see `exchange`)

with gamma = 2 (1 - sqrt(gap (1 - gap/4))) / (1 - gap/2)^2 of the source; `tuned` uses 2 / (1 +
sqrt(1 - (1 - gap)^2)), which is better and the only sensible choice when one step already averages
(gap 1).
Learns: the mean of the noisy values, at the rate exp(-t sqrt(gap)).
Shows: m_i to each neighbor, each round; exactly as much as plain gossip with as many rounds.
Spec: gossip:GO-2, MUF-4, fp:FP-1; arXiv:2206.05091, Algorithm 1.
"""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from bruit.algorithms.algorithm import Algorithm
from bruit.algorithms.course import Course, Reads
from bruit.algorithms.gossip.exchange import Arithmetic, ExchangeFacts, accelerated, exchange_of
from bruit.algorithms.home import Home
from bruit.algorithms.messages import Edges, Inbox, Message
from bruit.arrays import Array
from bruit.domains import positive
from bruit.errors import ConfigError
from bruit.graphs import Graph, GraphSequence, spectral_gap
from bruit.graphs.spectrum import chebyshev_gamma, chebyshev_gamma_star
from bruit.privacy.theorem import Theorem
from bruit.privacy.theorems.gossip import ExactGossip, PublishedGossip
from bruit.privacy.theorems.unequal import UnequalGossip


class State(NamedTuple):
    value: Array  # (n, d) x^t
    message: Array  # (n, d) what is said next
    previous: Array  # (n, d) what was said before


class Public(NamedTuple):
    gap: float
    gamma: float
    exchange: ExchangeFacts


@dataclass(frozen=True)
class Chebyshev(Algorithm[State]):
    asks: ClassVar[str | None] = "a value to average"
    gamma: float | None = None
    tuned: bool = False
    linear: ClassVar[bool] = True
    in_blocks: ClassVar[bool] = True
    fused_reads: ClassVar[Reads] = "nothing"
    fused_within: ClassVar[float] = 1e-5  # it mixes in single precision

    def __post_init__(self) -> None:
        positive(self, "gamma")

    def prepare(self, graph: Graph | GraphSequence, horizon: int) -> Public:
        if not isinstance(graph, Graph):
            raise ConfigError(
                "Chebyshev gossip needs one fixed graph; use averaging on a changing one"
            )
        gap = spectral_gap(graph)
        gamma = self._chosen(graph, gap)
        return Public(
            gap, gamma, accelerated(exchange_of(graph, horizon), graph.n, gamma, horizon, horizon)
        )

    def _chosen(self, graph: Graph, gap: float) -> float:
        if self.gamma is not None:
            return self.gamma
        if gap <= 1e-12:
            raise ConfigError(
                f"the spectral gap of {graph.name} is 0 (disconnected, or bipartite without "
                f"self-weights), so gossip"
                " does not converge; connect the graph or use the weights plus=1"
            )
        if self.tuned or gap > 1 - 1e-9:
            return chebyshev_gamma_star(gap)
        return chebyshev_gamma(gap)

    def start(self, home: Home) -> State:
        arithmetic = self._arithmetic(home)
        value = home.value(grid=arithmetic.grid)
        message = arithmetic.message(value)
        return State(value, message, message)

    def _arithmetic(self, home: Home) -> Arithmetic:
        gamma = 1.0 if home.before + home.step[0] <= 1 else home.public.gamma
        return Arithmetic(home.public.exchange, home, gamma=gamma)

    def emit(self, state: State, edges: Edges) -> Message:
        return edges.broadcast(state.message)

    def absorb(self, state: State, inbox: Inbox, home: Home) -> State:
        arithmetic = self._arithmetic(home)
        value = arithmetic.mixed(inbox, state.previous).value
        return State(value, arithmetic.message(value), state.message)

    def estimate(self, state: State) -> Array:
        return state.value

    def fused(self, state: State, course: Course) -> tuple[State, int]:
        """Equal to the generic path to 1e-5, relative to the largest value: its steps are taken in
        single precision."""
        from bruit.algorithms.compiled.mixing import mix

        if course.steps == 0:
            return state, 0
        gamma = np.full(course.steps, course.public.gamma)
        gamma[0] = 1.0
        value, previous = mix(course.graph.weights, state.value, gamma, 1.0 - gamma, single=True)
        return State(value, value, previous), course.steps

    def guarantees(self) -> tuple[Theorem, ...]:
        named = ("chebyshev",)
        return (
            ExactGossip(accelerated=True, about=named),
            UnequalGossip(accelerated=True, about=named),
            PublishedGossip(),
        )
