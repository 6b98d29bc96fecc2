"""Walk sum: a token walks at random, and whoever holds it adds its value and noise.

    token <- token + x_v + noise        v: the current holder; then the token goes to w with probability W[v, w]

On the complete graph every hop is to a peer drawn uniformly, and T hops collect T contributions.
The estimate is the sum divided by the contributions in it, whose mean is the mean of the values
with the stationary law. With `published` everybody is told the last token. All are multiples of a
grid: the token is a sum to the bit (fp:FP-2).
Learns: the sum of T contributions, with noise of standard deviation sqrt(T) sigma.
Shows: the token to whom it visits, and to all if published.
Spec: walk:RW-1, RW-6; arXiv:2012.05326, Algorithm 3.
"""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from bruit.algorithms.algorithm import Algorithm
from bruit.algorithms.course import Course, Reads
from bruit.algorithms.door import Door
from bruit.algorithms.gossip.exchange import sum_grid
from bruit.algorithms.home import Home
from bruit.algorithms.messages import Edges, Inbox, Message
from bruit.algorithms.schedules.walk.schedule import Walk
from bruit.algorithms.tokens import walk_compiled
from bruit.arrays import Array, Ints
from bruit.graphs import Graph, GraphSequence
from bruit.privacy.theorem import Theorem
from bruit.privacy.theorems.token_sum import TokenSum


class State(NamedTuple):
    token: Array  # (n, d) the sum as the peer last held it
    added: Ints  # (n,) contributions in it


class Public(NamedTuple):
    hops: int


@dataclass(frozen=True)
class WalkSum(Algorithm[State]):
    asks: ClassVar[str | None] = "a value to average"
    published: bool = False
    schedule: Walk = Walk()
    linear: ClassVar[bool] = True
    fused_reads: ClassVar[Reads] = "home"

    def prepare(self, graph: Graph | GraphSequence, horizon: int) -> Public:
        return Public(horizon)

    def start(self, home: Home) -> State:
        return State(home.zeros(), np.zeros(len(home.ids), np.int64))

    def emit(self, state: State, edges: Edges) -> Message:
        return edges.broadcast(state.token)

    def absorb(self, state: State, inbox: Inbox, home: Home) -> State:
        return State(inbox.only() + self._value(home), home.before + home.clock + 1)

    def _value(self, home: Home) -> Array:
        """What each holder adds to the token."""
        return home.value(grid=sum_grid(home, home.public.hops))

    def fused(self, state: State, course: Course) -> tuple[State, int]:
        """What holders add does not depend on the token: all of it is asked for at once, and added
        up."""
        path, door, stops = course.acting, course.door, course.stops
        walk_compiled.unbudgeted(door)
        token, added = state.token.copy(), state.added.copy()
        walk_compiled.collected(
            door, path, token, added, Public(len(path)), stops, State, self._value
        )
        return State(token, added), len(path)

    def not_fused(self, door: Door) -> str:
        return walk_compiled.refusal(walk_compiled.unbudgeted, door)

    def adopt(self, state: State, token: Array, public: Public) -> State:
        return State(token, np.full(len(token), public.hops, np.int64))

    def estimate(self, state: State) -> Array:
        return state.token / np.maximum(state.added, 1)[:, None]

    def guarantees(self) -> tuple[Theorem, ...]:
        return (TokenSum(self.published),)
