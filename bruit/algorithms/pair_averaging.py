"""Randomized gossip: two neighbors meet now and then, and both take the mean of their values.

    x_i, x_j <- (x_i + x_j) / 2

Learns: the mean of the noisy values, E|x - mean|^2 shrinking by 1 - lambda_2(L_p)/2 per activation.  Shows: x_i to
whoever it meets.  Spec: gossip:GO-3, MUF-7; Boyd et al. 2006, arXiv:2206.05091, Algorithm 2.
"""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from bruit.algorithms.algorithm import Algorithm
from bruit.algorithms.home import Home
from bruit.algorithms.messages import Edges, Inbox, Message
from bruit.algorithms.schedules import Pairs
from bruit.arrays import Array
from bruit.privacy.network.meetings import ExactMeetings
from bruit.privacy.network.theorem import Theorem


class State(NamedTuple):
    value: Array  # (n, d)


@dataclass(frozen=True)
class PairAveraging(Algorithm[State]):
    schedule: Pairs = Pairs()
    linear: ClassVar[bool] = True

    def start(self, home: Home) -> State:
        return State(home.value())

    def emit(self, state: State, edges: Edges) -> Message:
        return edges.broadcast(state.value)

    def absorb(self, state: State, inbox: Inbox, home: Home) -> State:
        return State(inbox.mix(state.value))

    def estimate(self, state: State) -> Array:
        return state.value

    def guarantees(self) -> tuple[Theorem, ...]:
        return (ExactMeetings(),)
