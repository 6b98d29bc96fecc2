"""Gossip SGD: follow the local gradient, then mix with the neighbors.

    x_i <- sum_j [W^K]_ij (x_j - rate * g_j)        g_j: gradient of peer j at its own model, `mixing` = K exchanges

`batch` draws that many of the peer's records for each gradient (all of them by default); `gamma`
accelerates the K exchanges by Chebyshev's recursion (1 is plain gossip). All of it is on a grid,
and messages carry dithers, or are sums in a butterfly (bruit.algorithms.gossip.exchange).
Learns: one model everywhere.
Shows: the model after the gradient step, then its mixtures, to each neighbor. On a butterfly graph
with K = its digits, rounds end in exact consensus and the account is proven for adaptive gradients
(gossip:MUF-X2); elsewhere only the last round is sharper than local DP.
Spec: gossip:DS-1, MUF-9, fp:FP-1, FP-2.
Lian et al. 2017, arXiv:1705.09056; arXiv:2206.05091, Algorithm 3.
"""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from bruit.algorithms.algorithm import Algorithm
from bruit.algorithms.door import OnGrid
from bruit.algorithms.gossip.exchange import (
    Arithmetic,
    ExchangeFacts,
    Mixed,
    accelerated,
    exchange_of,
)
from bruit.algorithms.home import Home
from bruit.algorithms.messages import Edges, Inbox, Message
from bruit.arrays import Array
from bruit.domains import counts, positive
from bruit.errors import ConfigError
from bruit.graphs import Graph, GraphSequence
from bruit.privacy.theorem import Theorem
from bruit.privacy.theorems.consensus import ExactConsensus
from bruit.privacy.theorems.descent import FixedGradients
from bruit.privacy.theorems.last_round import LastRound
from bruit.privacy.theorems.published_descent import PublishedDescent


class State(NamedTuple):
    model: Array  # (n, d) the mixed model: what a peer keeps
    message: Array  # (n, d) what it says next
    previous: Array  # (n, d) what it said before, for the accelerated recursion


@dataclass(frozen=True)
class GossipSGD(Algorithm[State]):
    asks: ClassVar[str | None] = "gradients"
    rate: float = 0.1
    mixing: int = 1
    batch: int | None = None
    gamma: float = 1.0
    linear: ClassVar[bool] = True
    in_blocks: ClassVar[bool] = True

    def __post_init__(self) -> None:
        positive(self, "rate", "gamma")
        counts(self, "mixing", "batch")

    def prepare(self, graph: Graph | GraphSequence, horizon: int) -> ExchangeFacts:
        facts = exchange_of(graph, horizon, max(1, -(-horizon // self.mixing)), self.mixing)
        return accelerated(facts, graph.n, self.gamma, horizon, min(horizon, self.mixing))

    def start(self, home: Home) -> State:
        return self._begun(home.beginning(), home)

    def resume(self, state: State, home: Home) -> State:
        """Nobody was to hear the last message, so it holds no gradient: now one is read, at the
        model it ended with."""
        if home.before % self.mixing:
            raise ConfigError(
                f"the earlier phase stopped after {home.before} rounds, in the middle of the"
                f" {self.mixing} exchanges of a gradient; stop after a multiple of {self.mixing}, or"
                " carry the 'model'"
            )
        return self._begun(state.model, home)

    def _begun(self, begin: Array, home: Home) -> State:
        arithmetic = self._arithmetic(home)
        arithmetic.check_begun(begin)
        model = home.snap(begin, arithmetic.grid)
        return self._step(Mixed(model, model), model, home, arithmetic)

    def _arithmetic(self, home: Home) -> Arithmetic:
        """Half a cell more than plain mixing: a message holds a mixture and a gradient, both
        rounded."""
        first = (home.step[0] - 1) % self.mixing == 0
        return Arithmetic(home.public, home, self.rate, 1.0 if first else self.gamma, 0.5)

    def _step(self, mixed: Mixed, previous: Array, home: Home, arithmetic: Arithmetic) -> State:
        if home.step[0] % self.mixing:
            return State(mixed.value, arithmetic.message(mixed.said), previous)
        model = mixed.value
        step = home.gradient(model, ~home.last, self.batch, self.rate, OnGrid(arithmetic.grid))
        message = arithmetic.message(model - step)
        return State(model, message, message)

    def emit(self, state: State, edges: Edges) -> Message:
        return edges.broadcast(state.message)

    def absorb(self, state: State, inbox: Inbox, home: Home) -> State:
        arithmetic = self._arithmetic(home)
        return self._step(arithmetic.mixed(inbox, state.previous), state.message, home, arithmetic)

    def estimate(self, state: State) -> Array:
        return state.model

    def guarantees(self) -> tuple[Theorem, ...]:
        plain = self.gamma == 1.0
        return (
            ExactConsensus(self.mixing, plain),
            FixedGradients(self.mixing, self.gamma),
            LastRound(self.mixing, plain),
            PublishedDescent(self.mixing),
        )
