"""MAFALDA-SGD: gossip gradient descent under noise that is correlated over time, and over the graph.

    y_i(t) = x_i - rate * (g_i + eta_i + w_i(t) - sum_k back_k w_i(t-k));     x_i <- sum_j W_ij y_j
    w_i = own * (noise of i alone) + pair * (noise that cancels between neighbors)

With `by_degree` noise between neighbors is smaller where both have many.
eta_i is the noise of the release; `own` and `pair` are in its units. back = (0.5, ...) takes parts
of a draw back in later rounds, where models would have added it up. Records take turns: record
r of a peer is read in the rounds t = r modulo `cycle`, so that few rounds speak of it (level =
"record"; at user level the cycle is 1, and taking noise back hides little).
Learns: one model everywhere, with less noise than fresh draws leave at the same loss.
Shows: y_i, to everybody. The account is exact for observers who see every y, and know their own
noise and what they share; it holds for gradients that react.
Spec: gossip:COR-1, COR-2, fp:FP-3. Bellet, Cyffers, Frey, Gaudel, Lerévérend, Taïani,
arXiv:2510.17480; with `pair` also Allouah et al., arXiv:2405.01031.
"""

import math
from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple

import numpy as np

from bruit.algorithms.algorithm import CAME_LATER, Algorithm
from bruit.algorithms.door import COARSEST, OnGrid, Turn
from bruit.algorithms.gossip.canceling import canceling, degrees_of
from bruit.algorithms.gossip.exchange import check_range
from bruit.algorithms.gossip.noise_over_time import designed
from bruit.algorithms.home import Home
from bruit.algorithms.messages import Edges, Inbox, Message
from bruit.arrays import Array, Ints
from bruit.domains import chance, counts, nonnegative, positive
from bruit.errors import ConfigError
from bruit.graphs import Graph, GraphSequence
from bruit.graphs import graph as named_graph
from bruit.privacy.exact import FINENESS, CorrelatedNoise
from bruit.privacy.theorem import Theorem
from bruit.privacy.theorems.correlated import PublishedMessages


class State(NamedTuple):
    model: Array  # (n, d) the mixed model
    message: Array  # (n, d) what is said next
    drawn: Array  # (n, (1 + back) d) the last draws of w, the latest first


class Public(NamedTuple):
    data: float  # clipped answers that a number may hold
    noise: float  # deviation of the noise that it may hold, in units of the release's
    degrees: Ints | None  # (n,) that parts of noise are made of


@dataclass(frozen=True, kw_only=True)
class Mafalda(Algorithm[State]):
    asks: ClassVar[str | None] = "gradients"
    rate: float = 0.1
    own: float = 3.0
    pair: float = 0.0
    back: tuple[float, ...] = (0.5,)
    cycle: int = 1
    by_degree: bool = field(default=False, metadata=CAME_LATER)
    linear: ClassVar[bool] = True

    def __post_init__(self) -> None:
        positive(self, "rate")
        nonnegative(self, "own", "pair")
        counts(self, "cycle")
        chance(self, "back")

    @classmethod
    def designed(
        cls, graph: Graph | GraphSequence | str, rounds: int, cycle: int = 1, parts: int = 4
    ) -> "Mafalda":
        """With the `own` and as many parts `back` that leave least noise in the models of this graph
        after so many rounds, at the same loss, as far as a search finds. It reads no data
        (gossip:COR-2).

        >>> found = Mafalda.designed("ring:6", rounds=24, cycle=4, parts=2)
        >>> found.own > 2, found.cycle, len(found.back)
        (True, 4, 2)
        """
        place = named_graph(graph)
        if not isinstance(place, Graph):
            raise ConfigError(f"noise is designed for one graph, and {place.name} changes")
        found = designed(place, rounds, cycle, parts)
        return cls(own=found.own, back=found.back, cycle=cycle)

    @property
    def taps(self) -> tuple[float, ...]:
        """How a draw enters its own round and those after it."""
        return (1.0, *(-round(FINENESS * part) / FINENESS for part in self.back))

    @property
    def simulated_only(self) -> str:  # type: ignore[override]
        return (
            "neighbors would have to agree on keys for their canceling noise again whenever one of"
            " them starts again in the middle of the run; use pair = 0, or masked-sgd"
            if self.pair
            else ""
        )

    def prepare(self, graph: Graph | GraphSequence, horizon: int) -> Public:
        degree = int(graph.degrees.max(initial=0)) if isinstance(graph, Graph) else graph.n
        mixed = self.own + self.pair * math.sqrt(max(1, degree))
        heaviest = 1 + mixed * sum(abs(tap) for tap in self.taps)
        rounds, degrees = max(1, horizon), degrees_of(graph, self.by_degree)
        return Public(float(rounds), math.sqrt(rounds) * heaviest, degrees)

    def start(self, home: Home) -> State:
        return self._begun(home.beginning(), home)

    def resume(self, state: State, home: Home) -> State:
        """Nobody was to hear the last message, so it holds no gradient: now one is read. Draws of
        the earlier phase are not taken back."""
        return self._begun(state.model, home)

    def _begun(self, begin: Array, home: Home) -> State:
        grid, none = self._grid(home), home.zeros(home.dim * len(self.taps))
        if home.warm:
            check_range(home.ids, begin, grid)
        return self._stepped(home.snap(begin, grid), none, home, grid)

    def _grid(self, home: Home) -> float:
        """The grid, if noise is so large on it that draws on a coarser one may be added (fp:FP-3)."""
        grid = home.grid(self._times, home.public.data, home.public.noise)
        coarse = FINENESS ** (2 if self.by_degree else 1) * grid
        least = COARSEST * math.sqrt(2 * len(self.taps)) * coarse
        if self._times * home.sigma < least:
            raise ConfigError(
                "the noise of a release is too small beside the data, or beside own and pair, for"
                " draws that come back to be exact; give more sigma, or smaller own and pair"
            )
        return grid

    @property
    def _times(self) -> float:
        """A sum over every cycle-th record stands for all of them."""
        return self.rate * self.cycle

    def _stepped(self, model: Array, drawn: Array, home: Home, grid: float) -> State:
        """A gradient step at the records whose turn it is; none where nobody hears of it."""
        if bool(home.last.all()):
            return State(model, model, drawn)
        turn = Turn((int(home.step[0]) + home.before) % self.cycle, self.cycle)
        step = home.gradient(model, ~home.last, None, self._times, OnGrid(grid), turn)
        drawn = np.concatenate((self._draw(home, grid), drawn[:, : -home.dim]), axis=1)
        rows = drawn.reshape(len(drawn), len(self.taps), home.dim)
        back = np.einsum("k,nkd->nd", np.array(self.taps), rows)
        return State(model, model - step - back, drawn)

    def _draw(self, home: Home, grid: float) -> Array:
        """Fresh w, on a grid so coarse that its multiples by taps lie on that of the messages."""
        scale, coarse = self._times * home.sigma, FINENESS * grid
        fresh = home.zeros()
        if self.own and scale:
            fresh = home.mask(fresh, self.own * scale, None, OnGrid(coarse))
        if self.pair and scale:
            fresh = fresh + canceling(home, self.pair * scale, coarse, home.public.degrees)
        return fresh

    def emit(self, state: State, edges: Edges) -> Message:
        return edges.broadcast(state.message)

    def absorb(self, state: State, inbox: Inbox, home: Home) -> State:
        grid = self._grid(home)
        return self._stepped(home.snap(inbox.mix(), grid), state.drawn, home, grid)

    def estimate(self, state: State) -> Array:
        return state.model

    def guarantees(self) -> tuple[Theorem, ...]:
        noise = CorrelatedNoise(self.own, self.pair, self.taps, self.cycle, self.by_degree)
        return (PublishedMessages(noise),)
