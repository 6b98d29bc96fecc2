"""DECOR: gossip gradient descent under noise that cancels between neighbors, fresh in every round.

    y_i = x_i - rate * (g_i + eta_i + sum over neighbors of v_ij),   v_ij = -v_ji;   x_i <- sum_j [W^K]_ij y_j

eta_i is the noise of the release, small; the v_ij have `ratio` times its deviation, or with
`by_degree` less where both ends have many neighbors. `mixing` = K exchanges follow each gradient.
All noise lies on one grid, so that it cancels to the bit.
Learns: one model everywhere; what is mixed completely has eta / n of noise and nothing of the v_ij.
Shows: y_i, to everybody: all that follows is a function of these. The account is exact for an
observer or several who see every y and know the noise they share. It adds up over rounds for
gradients that react. A peer whose neighbors all watch has eta alone.
Spec: gossip:COR-1, COR-2, fp:FP-3. Allouah, Koloskova, El Firdoussi, Jaggi, Guerraoui, arXiv:2405.01031.
"""

import math
from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple

from bruit.algorithms.algorithm import CAME_LATER, Algorithm
from bruit.algorithms.door import COARSEST, OnGrid
from bruit.algorithms.gossip.canceling import canceling, degrees_of
from bruit.algorithms.gossip.exchange import check_range
from bruit.algorithms.home import Home
from bruit.algorithms.messages import Edges, Inbox, Message
from bruit.arrays import Array, Ints
from bruit.domains import counts, nonnegative, positive
from bruit.errors import ConfigError
from bruit.graphs import Graph, GraphSequence
from bruit.privacy.exact import FINENESS, CorrelatedNoise
from bruit.privacy.theorem import Theorem
from bruit.privacy.theorems.correlated import PublishedMessages


class State(NamedTuple):
    model: Array  # (n, d) the mixed model
    message: Array  # (n, d) what is said next


class Public(NamedTuple):
    data: float  # clipped answers that a number may hold
    noise: float  # deviation of the noise that it may hold, in units of the release's
    degrees: Ints | None  # (n,) that parts of noise are made of


@dataclass(frozen=True)
class Decor(Algorithm[State]):
    asks: ClassVar[str | None] = "gradients"
    rate: float = 0.1
    ratio: float = 10.0
    mixing: int = 1
    batch: int | None = None
    by_degree: bool = field(default=False, metadata=CAME_LATER)
    linear: ClassVar[bool] = True
    simulated_only: ClassVar[str] = (
        "neighbors would have to agree on keys for their canceling noise again whenever one of them"
        " starts again in the middle of the run; use masked-sgd, or mafalda with pair = 0"
    )

    def __post_init__(self) -> None:
        positive(self, "rate")
        nonnegative(self, "ratio")
        counts(self, "mixing", "batch")

    def prepare(self, graph: Graph | GraphSequence, horizon: int) -> Public:
        degree = int(graph.degrees.max(initial=0)) if isinstance(graph, Graph) else graph.n
        rounds = max(1, -(-horizon // self.mixing))
        heaviest = 1 + self.ratio * math.sqrt(max(1, degree))
        degrees = degrees_of(graph, self.by_degree)
        return Public(float(rounds), math.sqrt(rounds) * heaviest, degrees)

    def check_peers(self, graph: Graph | GraphSequence, steps: int) -> None:
        if steps % self.mixing:
            raise ConfigError(
                f"{steps} rounds end in the middle of the {self.mixing} exchanges of a gradient;"
                f" make steps a multiple of mixing = {self.mixing}"
            )

    def start(self, home: Home) -> State:
        return self._begun(home.beginning(), home)

    def resume(self, state: State, home: Home) -> State:
        """Nobody was to hear the last message, so it holds no gradient: now one is read."""
        if home.before % self.mixing:
            raise ConfigError(
                f"the earlier phase stopped after {home.before} rounds, in the middle of the"
                f" {self.mixing} exchanges of a gradient; stop after a multiple of {self.mixing}"
            )
        return self._begun(state.model, home)

    def _begun(self, begin: Array, home: Home) -> State:
        grid = self._grid(home)
        if home.warm:
            check_range(home.ids, begin, grid)
        return self._stepped(home.snap(begin, grid), home, grid)

    def _grid(self, home: Home) -> float:
        """The grid, if noise is so large on it that draws on a coarser one may be added (fp:FP-3)."""
        grid = home.grid(self.rate, home.public.data, home.public.noise)
        if self.by_degree and self.rate * home.sigma < COARSEST * FINENESS * math.sqrt(2) * grid:
            raise ConfigError(
                "the noise of a release is too small beside the data, or beside ratio, for parts"
                " of draws to be exact; give more sigma, a smaller ratio, or by_degree = false"
            )
        return grid

    def _stepped(self, model: Array, home: Home, grid: float) -> State:
        """A gradient step under both noises; none where nobody hears of it."""
        if bool(home.last.all()):
            return State(model, model)
        step = home.gradient(model, ~home.last, self.batch, self.rate, OnGrid(grid))
        if home.sigma and self.ratio:
            scale = self.rate * self.ratio * home.sigma
            step += canceling(home, scale, grid, home.public.degrees)
        return State(model, model - step)

    def emit(self, state: State, edges: Edges) -> Message:
        return edges.broadcast(state.message)

    def absorb(self, state: State, inbox: Inbox, home: Home) -> State:
        grid = self._grid(home)
        model = home.snap(inbox.mix(), grid)
        return (
            State(model, model) if home.step[0] % self.mixing else self._stepped(model, home, grid)
        )

    def estimate(self, state: State) -> Array:
        return state.model

    def guarantees(self) -> tuple[Theorem, ...]:
        noise = CorrelatedNoise(pair=self.ratio, by_degree=self.by_degree)
        return (PublishedMessages(noise, self.mixing),)
