"""Gossip SGD: follow the local gradient, then mix with the neighbors.

    x_i <- sum_j [W^K]_ij (x_j - rate * g_j)        g_j: gradient of peer j at its own model, `mixing` = K exchanges

`batch` draws that many of the peer's records for each gradient (all of them by default); `gamma` accelerates the K
exchanges by Chebyshev's recursion (1 is plain gossip).
Learns: one model everywhere.  Shows: the model after the gradient step, then its mixtures, to each neighbor.
Spec: gossip:DS-1, MUF-9; on a butterfly graph with K = its digits, rounds end in exact consensus and the account is
proven for adaptive gradients (gossip:MUF-X2); elsewhere only the last round is sharper than local DP.
Lian et al. 2017, arXiv:1705.09056; arXiv:2206.05091, Algorithm 3.
"""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from bruit.algorithms.algorithm import Algorithm
from bruit.algorithms.home import Home
from bruit.algorithms.messages import Edges, Inbox, Message
from bruit.arrays import Array
from bruit.domains import counts, positive
from bruit.privacy.network.consensus import Consensus
from bruit.privacy.network.descent import FixedGradients
from bruit.privacy.network.last_round import LastRound
from bruit.privacy.network.theorem import Theorem


class State(NamedTuple):
    model: Array  # (n, d) the mixed model: what a peer keeps
    outgoing: Array  # (n, d) what it says next
    previous: Array  # (n, d) what it said before, for the accelerated recursion


@dataclass(frozen=True)
class GossipSGD(Algorithm[State]):
    rate: float = 0.1
    mixing: int = 1
    batch: int | None = None
    gamma: float = 1.0
    linear: ClassVar[bool] = True

    def __post_init__(self) -> None:
        positive(self, "rate", "gamma")
        counts(self, "mixing", "batch")

    def start(self, home: Home) -> State:
        model = home.beginning()
        return self._step(model, model, home)

    def _step(self, model: Array, previous: Array, home: Home) -> State:
        if home.step[0] % self.mixing:
            return State(model, model, previous)
        gradient = home.gradient(model, where=~home.last, batch=self.batch)
        outgoing = model - self.rate * gradient
        return State(model, outgoing, outgoing)

    def emit(self, state: State, edges: Edges) -> Message:
        return edges.broadcast(state.outgoing)

    def absorb(self, state: State, inbox: Inbox, home: Home) -> State:
        model = inbox.mix()
        if self.gamma != 1.0 and (home.step[0] - 1) % self.mixing:
            model = self.gamma * model + (1 - self.gamma) * state.previous
        return self._step(model, state.outgoing, home)

    def estimate(self, state: State) -> Array:
        return state.model

    def guarantees(self) -> tuple[Theorem, ...]:
        plain = self.gamma == 1.0
        return Consensus(self.mixing, plain), FixedGradients(self.mixing, self.gamma), LastRound(self.mixing, plain)
