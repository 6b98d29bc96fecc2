"""GOPA: noise that cancels between neighbors hides every value, and the mean is as good as a
trusted curator's.

    masked_i = x_i + eta_i + sum over neighbors of Delta_ij,   Delta_ij = -Delta_ji;   then  m_i <- sum_j W_ij m_j

eta_i is the noise of the release, small; the Delta_ij have `ratio` times its standard deviation and
come from a seed that both ends share, so they cost no message. All noise lies on one grid, so that
it cancels to the bit. Masked values may be public: what gossip does to them afterwards reveals
nothing more. The first graph of a sequence says who shares noise; on a complete graph one round is
enough.
Learns: the mean of x_i + eta_i everywhere, at the rate of averaging; its variance is 1/n of one
release's.
Shows: masked_i, to everybody.
Spec: perso:GOPA-1, GOPA-2, GOPA-8, fp:FP-3; Sabater, Bellet, Ramon, arXiv:2006.07218.
"""

import math
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from bruit.algorithms.algorithm import Algorithm
from bruit.algorithms.course import Course, Reads
from bruit.algorithms.gossip.exchange import sum_grid
from bruit.algorithms.home import Home
from bruit.algorithms.messages import Edges, Inbox, Message
from bruit.arrays import Array
from bruit.domains import positive
from bruit.errors import ConfigError
from bruit.graphs import Graph, GraphSequence
from bruit.privacy.theorem import Theorem
from bruit.privacy.theorems.gopa import GopaView

LARGEST = 2.0**20  # noise of a masked value, in units of its own
NUMBERS = 2**24  # of canceling noise held at once


class State(NamedTuple):
    value: Array  # (n, d) masked at first, then the current estimate of the mean


class Public(NamedTuple):
    peers: int
    noise: float  # deviation of a masked value, in units of the release's own noise


@dataclass(frozen=True)
class Gopa(Algorithm[State]):
    asks: ClassVar[str | None] = "a value to average"
    ratio: float = 10.0
    fused_reads: ClassVar[Reads] = "nothing"
    shares_noise: ClassVar[bool] = True

    def __post_init__(self) -> None:
        positive(self, "ratio")

    def prepare(self, graph: Graph | GraphSequence, horizon: int) -> Public:
        first = graph if isinstance(graph, Graph) else graph.at(0)
        masks = self.ratio * math.sqrt(int(first.degrees.max(initial=0)))
        if masks > LARGEST:
            raise ConfigError(
                f"gopa with ratio {self.ratio:g} among {first.n} peers hides values under noise of"
                f" {masks:.3g} times that of a release, too much for numbers that cancel to the"
                " bit; use a smaller ratio"
            )
        return Public(first.n, 1.0 + masks)

    def start(self, home: Home) -> State:
        grid, sigma = sum_grid(home, home.public.peers, home.public.noise), home.sigma
        value = home.value(grid=grid)
        if not sigma:
            return State(value)
        width = max(1, min(home.dim, NUMBERS // max(1, len(home.edges.peers))))
        for low in range(0, home.dim, width):
            columns = slice(low, min(low + width, home.dim))
            value[:, columns] += home.pair_noise(
                self.ratio * sigma, columns.stop - low, grid
            ).sums()
        return State(value)

    def retold(self, row: Array) -> State:
        return State(row)

    def emit(self, state: State, edges: Edges) -> Message:
        return edges.broadcast(state.value)

    def absorb(self, state: State, inbox: Inbox, home: Home) -> State:
        return State(inbox.mix())

    def estimate(self, state: State) -> Array:
        return state.value

    def fused(self, state: State, course: Course) -> tuple[State, int]:
        from bruit.algorithms.compiled.mixing import mix

        once, never = np.ones(course.steps), np.zeros(course.steps)
        mixed = mix(course.graph.weights, state.value, once, never, previous=False)[0]
        return State(mixed), course.steps

    def guarantees(self) -> tuple[Theorem, ...]:
        return (GopaView(self.ratio),)
