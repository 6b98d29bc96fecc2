"""Token histogram: a token counts values, and everybody answers by randomized response.

    token[y] <- token[y] + 1,  y = RR_gamma(x_v)        v: the current holder; uniform with probability gamma
    h = (token - (gamma R + U) / L) / (1 - gamma) / R   R reports and U uniform elements among L values: unbiased

On the ring, and elsewhere with `blanket`, the first holder puts ceil(gamma n) uniform elements in,
and if the token is `published` the last one puts as many in again. Within `rest` hops of its last
report a peer adds a uniform element instead. A value is a row with a single 1; counts are whole
numbers and tell nothing of their order.
Learns: how often each value occurs.
Shows: the counts to whom the token visits, and to all if published.
Spec: gossip:RING-3, walk:RW-2, corrected (gamma R / L is subtracted, not gamma / L);
arXiv:2012.05326, Algorithm 2.
"""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from bruit.algorithms.algorithm import Algorithm
from bruit.algorithms.home import Home
from bruit.algorithms.messages import Edges, Inbox, Message
from bruit.algorithms.schedules.walk.schedule import Walk
from bruit.algorithms.turns import Turns
from bruit.arrays import Array, Bools, Ints
from bruit.domains import counts
from bruit.graphs import Graph, GraphSequence
from bruit.privacy.theorem import Theorem
from bruit.privacy.theorems.token_counts import TokenCounts


class Token(NamedTuple):
    counts: Array  # (n, L)
    reports: Ints  # (n,)
    uniform: Ints  # (n,)


class State(NamedTuple):
    counts: Array  # (n, L) the token as the peer last held it
    reports: Ints  # (n,) randomized responses in it
    uniform: Ints  # (n,) uniform elements in it
    gamma: Array  # (n,) chance that a report is uniform
    latest: Ints  # (n,) hop of the peer's last report


class Public(NamedTuple):
    peers: int


@dataclass(frozen=True)
class TokenHistogram(Algorithm[State]):
    rest: int = 1
    blanket: bool = True
    published: bool = False
    schedule: Walk = Walk(order="ring")
    counting: ClassVar[bool] = True

    def __post_init__(self) -> None:
        counts(self, "rest")

    def prepare(self, graph: Graph | GraphSequence, horizon: int) -> Public:
        return Public(graph.n)

    def start(self, home: Home) -> State:
        none = np.zeros(len(home.ids), np.int64)
        return State(home.zeros(), none, none.copy(), np.full(len(none), home.gamma), none - 2**40)

    def emit(self, state: State, edges: Edges) -> Message:
        return edges.broadcast(Token(state.counts, state.reports, state.uniform))

    def absorb(self, state: State, inbox: Inbox, home: Home) -> State:
        now = home.before + home.clock
        may = now - state.latest >= self.rest
        counts = inbox.copies(inbox.rows.counts) + home.value(where=may)
        reports = inbox.copies(inbox.rows.reports).astype(np.int64) + may
        elements = np.where(may, 0, 1)
        if self.rest > 1:
            counts = counts + _uniform(home, 1, ~may)
        many = int(np.ceil(home.gamma * home.public.peers)) if self.blanket else 0
        for where in (home.clock == 0, home.last & self.published):
            if many and where.any():
                counts = counts + _uniform(home, many, where)
                elements = elements + np.where(where, many, 0)
        latest = np.where(may, now, state.latest)
        uniform = inbox.copies(inbox.rows.uniform).astype(np.int64) + elements
        return State(counts, reports, uniform, state.gamma, latest)

    def turns(self, graph: Graph | GraphSequence, steps: int) -> Turns:
        return Turns(rest=self.rest)

    def adopt(self, state: State, token: Token, public: Public) -> State:
        return state._replace(
            counts=token.counts,
            reports=token.reports.astype(np.int64),
            uniform=token.uniform.astype(np.int64),
        )

    def estimate(self, state: State) -> Array:
        expected = (state.gamma * state.reports + state.uniform) / state.counts.shape[1]
        kept = (1 - state.gamma) * np.maximum(state.reports, 1)
        return np.asarray((state.counts - expected[:, None]) / kept[:, None])

    def guarantees(self) -> tuple[Theorem, ...]:
        return (TokenCounts(self.blanket, self.published),)


def _uniform(home: Home, many: int, where: Bools) -> Array:
    """Counts of that many values drawn uniformly, for the lanes named  # (lanes, L)."""
    drawn = np.minimum((home.choice(many) * home.dim).astype(np.int64), home.dim - 1)
    lanes = np.repeat(np.arange(len(drawn)) * home.dim, many)
    counts = np.bincount(lanes + drawn.ravel(), minlength=len(drawn) * home.dim).reshape(
        len(drawn), home.dim
    )
    return np.where(where[:, None], counts, 0).astype(np.float64)
