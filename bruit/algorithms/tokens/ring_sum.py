"""Ring sum: a token goes around the ring and collects everybody's value, hidden by noise that only
some hops add.

    token <- token + x_u + s_t * noise        K times around: hop t is at peer t mod n, K n hops in all
    noise = "spaced":  s_t = 1 at hops 0, n - 1, 2 (n - 1), .., else 0        one noise between two visits to anybody
    noise = "shared":  s_t = 1 / sqrt(n - 1), but s_0 = 1                     a share from everybody, against colluders

The estimate is the sum divided by the contributions in it, the mean. With `published` the last
holder adds one whole noise more before everybody is told the token: without it the last values may
leave as they are (gossip:RING-4).
Learns: the sum of K contributions of each peer.
Shows: the token to the peer it visits, and to all if published. All of it are whole multiples of a
grid, so that the token is a sum to the bit (fp:FP-2).
Spec: gossip:RING-1, RING-2, RING-4, perso:NETDP-2; arXiv:2012.05326, Algorithm 1.
"""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from bruit.algorithms.algorithm import Algorithm
from bruit.algorithms.course import Course, Reads
from bruit.algorithms.door import Door, OnGrid
from bruit.algorithms.gossip.exchange import sum_grid
from bruit.algorithms.home import Home
from bruit.algorithms.messages import Edges, Inbox, Message
from bruit.algorithms.schedules.walk.schedule import Walk
from bruit.algorithms.tokens import walk_compiled
from bruit.arrays import Array, Ints
from bruit.errors import ConfigError
from bruit.graphs import Graph, GraphSequence
from bruit.privacy.theorem import Theorem
from bruit.privacy.theorems.token_sum import TokenSum


class State(NamedTuple):
    token: Array  # (n, d) the sum as the peer last held it
    added: Ints  # (n,) contributions in it


class Public(NamedTuple):
    peers: int
    hops: int


@dataclass(frozen=True)
class RingSum(Algorithm[State]):
    asks: ClassVar[str | None] = "a value to average"
    noise: str = "spaced"
    published: bool = False
    schedule: Walk = Walk(order="ring")
    linear: ClassVar[bool] = True
    fused_reads: ClassVar[Reads] = "home"

    def __post_init__(self) -> None:
        if self.noise not in ("spaced", "shared"):
            raise ConfigError(
                f"ring-sum places its noise 'spaced' or 'shared', found noise = {self.noise!r}"
            )
        if self.schedule.order != "ring":
            raise ConfigError(
                "ring-sum needs the order of the ring: schedule.order = 'ring'; use walk-sum "
                "otherwise"
            )

    def prepare(self, graph: Graph | GraphSequence, horizon: int) -> Public:
        return Public(graph.n, horizon)

    def start(self, home: Home) -> State:
        return State(home.zeros(), np.zeros(len(home.ids), np.int64))

    def emit(self, state: State, edges: Edges) -> Message:
        return edges.broadcast(state.token)

    def absorb(self, state: State, inbox: Inbox, home: Home) -> State:
        token = self._masked(inbox.only() + self._value(home), home)
        return State(token, home.before + home.clock + 1)

    def _value(self, home: Home) -> Array:
        """What each holder adds to the token."""
        grid = sum_grid(home, home.public.hops)
        return home.value(noise=self._levels(home.clock, home.public.peers), grid=grid)

    def _masked(self, token: Array, home: Home) -> Array:
        """The token with one noise more, at its last holder and if it is published."""
        if not self.published:
            return token
        return home.mask(token, home.sigma, home.last, OnGrid(sum_grid(home, home.public.hops)))

    def fused(self, state: State, course: Course) -> tuple[State, int]:
        """What holders add does not depend on the token: all of it is asked for at once, and added
        up."""
        path, door, stops = course.acting, course.door, course.stops
        walk_compiled.unbudgeted(door)
        token, added = state.token.copy(), state.added.copy()
        # The last noise is added to the last value, and both to the token: on a grid sums are
        # exact, in any order.
        walk_compiled.collected(
            door,
            path,
            token,
            added,
            Public(len(token), len(path)),
            stops,
            State,
            lambda home: self._masked(self._value(home), home),
        )
        return State(token, added), len(path)

    def not_fused(self, door: Door) -> str:
        return walk_compiled.refusal(walk_compiled.unbudgeted, door)

    def adopt(self, state: State, token: Array, public: Public) -> State:
        return State(token, np.full(len(token), public.hops, np.int64))

    def bare(self, graph: Graph | GraphSequence, steps: int, peer: int) -> str:
        at, first = np.arange(steps), self.schedule.first
        mine = np.ones(steps, bool) if isinstance(first, str) else (first + at) % graph.n == peer
        quiet = int(np.count_nonzero(mine & (self._levels(at, graph.n) == 0)))
        hops = "hop" if quiet == 1 else "hops"
        return (
            f'at {quiet} {hops} its value leaves without noise of its own; use noise = "shared"'
            if quiet
            else ""
        )

    def _levels(self, hop: Ints, n: int) -> Array:
        """The fraction of the noise that each hop adds."""
        others = max(1, n - 1)
        if self.noise == "spaced":
            return np.where(hop % others == 0, 1.0, 0.0)
        return np.where(hop == 0, 1.0, 1 / np.sqrt(others))

    def estimate(self, state: State) -> Array:
        return state.token / np.maximum(state.added, 1)[:, None]

    def guarantees(self) -> tuple[Theorem, ...]:
        return (TokenSum(self.published),)
