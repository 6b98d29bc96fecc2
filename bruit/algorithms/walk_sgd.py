"""Walk SGD: a token carries the model from neighbor to neighbor, and whoever holds it takes one gradient step.

    x <- x - rate * (g_v(x) + noise)        v: the current holder; then the token goes to w with probability W[v, w]

Each peer contributes at most `cap` times and rests `rest` hops after a contribution; a silent visit adds the same
noise without a gradient, so that visits look alike.
Learns: the minimizer of sum_v pi_v f_v with pi the stationary law.  Shows: the token to whom it visits.
Spec: gossip:GO-4, DS-2, walk:RW-7, RW-14; arXiv:2402.07471, Algorithm 1.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from bruit.algorithms.algorithm import Algorithm
from bruit.algorithms.home import Home
from bruit.algorithms.messages import Edges, Inbox, Message
from bruit.algorithms.schedules import Walk
from bruit.arrays import Array, Ints
from bruit.errors import ConfigError
from bruit.privacy.network.theorem import Theorem
from bruit.privacy.network.walk import RealizedWalk


class State(NamedTuple):
    token: Array  # (n, d) the model as the peer last held it
    spent: Ints  # (n,) contributions so far
    latest: Ints  # (n,) hop of the last contribution


@dataclass(frozen=True)
class WalkSGD(Algorithm[State]):
    rate: float = 0.1
    cap: int | None = None
    rest: int = 1
    batch: int | None = None
    schedule: Walk = Walk()

    def __post_init__(self) -> None:
        if self.rest < 1 or (self.cap is not None and self.cap < 1):
            raise ConfigError(f"walk-sgd needs cap >= 1 and rest >= 1, found cap = {self.cap}, rest = {self.rest}")

    def start(self, home: Home) -> State:
        lanes = len(home.ids)
        return State(home.zeros(), np.zeros(lanes, np.int64), np.full(lanes, -(2**40), np.int64))

    def emit(self, state: State, edges: Edges) -> Message:
        return edges.broadcast(state.token)

    def absorb(self, state: State, inbox: Inbox, home: Home) -> State:
        token = inbox.only()
        may = home.clock - state.latest >= self.rest
        if self.cap is not None:
            may &= state.spent < self.cap
        update = home.gradient(token, where=may, batch=self.batch)
        if home.sigma > 0:
            update = home.mask(update, home.sigma, where=~may)
        latest = np.where(may, home.clock, state.latest)
        return State(token - self.rate * update, state.spent + may, latest)

    def estimate(self, state: State) -> Array:
        return state.token

    def guarantees(self) -> tuple[Theorem, ...]:
        return (RealizedWalk(self.rate),)
