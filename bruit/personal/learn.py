"""Learning whom to learn from: peers wake, sample a few others, and adjust the weights to them
(perso:PERSO-7).

    w_uv <- max(0, w_uv - rate dG/dw_uv)      for the sampled v; all other weights stay

rate "safe": 1 over the block constant, every step lowers G, slowly when `floor` is small. rate
"adaptive": from 0.5, after every n wake-ups halved and the weights restored if G did not fall (a step
too long and one back leave it as it was), else multiplied by 1.05; it stops when G decreases by less
than 1e-6 of itself, or when the rate is below 1e-12. A wake-up
costs O(sampled (dim + 1)), memory is O(pairs with a weight).
"""

from dataclasses import dataclass
from math import inf, isfinite

import numpy as np
from scipy.sparse import coo_array, csr_array

from bruit.arrays import Array, Ints
from bruit.errors import ConfigError
from bruit.graphs import Graph
from bruit.graphs.graph import Weights
from bruit.graphs.learn import Collaboration, degrees_of
from bruit.graphs.similarity import similarity
from bruit.randomness import Dice

FIRST_RATE, FASTER, SLOWER, ENOUGH, LEAST = 0.5, 1.05, 0.5, 1e-6, 1e-12
SAMPLED = 5


@dataclass(frozen=True, eq=False)
class LearnedGraph:
    """Weights of pairs, each pair once (a < b), and the objective after every n wake-ups."""

    peers: int
    pairs: Ints  # (E, 2)
    weights: Array  # (E,)
    history: Array  # (sweeps + 1,)

    @property
    def degrees(self) -> Array:
        return degrees_of(self.pairs, self.weights, self.peers)

    def matrix(self, least: float = 0.0) -> Weights:
        """The symmetric weight matrix, without weights below `least`."""
        keep = self.weights > least
        (a, b), w = self.pairs[keep].T, self.weights[keep]
        half = coo_array((w, (a, b)), shape=(self.peers, self.peers))
        return csr_array(half + half.T)

    def graph(self, least: float = 1e-3) -> Graph:
        """The graph to talk over, small weights dropped: an edge that light carries nothing but
        traffic."""
        return similarity(self.matrix(least), name=f"learned:{self.peers}")


def learn_graph(
    aim: Collaboration,
    models: Array,
    costs: Array,
    *,
    wakes: int,
    dice: Dice,
    sampled: int | None = None,
    rate: str | float = "adaptive",
    begin: LearnedGraph | None = None,
    farthest: float = inf,
    run: int = 0,
) -> LearnedGraph:
    """Weights after so many wake-ups from `begin` (no weights at all by default).

    models, costs: what peers told each other; costs are c_u F_u. farthest: peers whose models
    differ by more than this (Euclidean) get no weight. sampled: how many others a waking peer looks
    at, SAMPLED by default, or all. Draws have the addresses ("graph", run, sweep).
    """
    from bruit.algorithms.compiled.graph_steps import graph_steps, sample_peers

    aim.check(models, costs)
    n, models = len(models), np.ascontiguousarray(models, np.float64)
    sampled = min(SAMPLED, n - 1) if sampled is None else sampled
    _check(n, sampled, wakes, rate)
    steps = _Steps(
        aim,
        models,
        costs,
        begin or LearnedGraph(n, np.zeros((0, 2), np.int64), np.zeros(0), np.zeros(0)),
    )
    adaptive = rate == "adaptive"
    length = (
        FIRST_RATE
        if adaptive
        else 1 / aim.block_constant(sampled)
        if rate == "safe"
        else float(rate)
    )
    for sweep, first in enumerate(range(0, wakes, n)):
        count = min(n, wakes - first)
        draws = dice.uniform("graph", np.arange(first, first + count), sweep, 0, sampled + 1, run)
        woken = np.minimum((draws[:, 0] * n).astype(np.int64), n - 1)
        others = sample_peers(woken, draws[:, 1:], n)
        keys, values, degrees = steps.table(count * sampled)
        graph_steps(
            woken=woken,
            sampled=others,
            models=models,
            costs=costs,
            degrees=degrees,
            keys=keys,
            values=values,
            coupling=aim.coupling,
            spread=aim.spread,
            sparsity=aim.sparsity,
            floor=aim.floor,
            rate=length,
            farthest=farthest**2,
        )
        better = steps.take(keys, values, always=not adaptive)
        if adaptive:
            length *= FASTER if better else SLOWER
        if adaptive and (length < LEAST if not better else steps.settled()):
            break
    return steps.result()


class _Steps:
    """The weights so far: pairs as keys a * n + b, and the objective after every sweep."""

    def __init__(
        self, aim: Collaboration, models: Array, costs: Array, begin: LearnedGraph
    ) -> None:
        self._aim, self._models, self._costs, self._n = aim, models, costs, len(models)
        if begin.peers != self._n:
            raise ConfigError(
                f"the weights to begin with are of {begin.peers} peers, the models of {self._n}"
            )
        self._keys, self._weights = begin.pairs[:, 0] * self._n + begin.pairs[:, 1], begin.weights
        self._history = [self._value(self._keys, self._weights)]

    def _pairs(self, keys: Ints) -> Ints:
        return np.stack((keys // self._n, keys % self._n), axis=1)

    def _value(self, keys: Ints, weights: Array) -> float:
        return self._aim.value(self._pairs(keys), weights, self._models, self._costs)

    def table(self, coming: int) -> tuple[Ints, Array, Array]:
        """A table with room for so many new pairs, and the degrees."""
        from bruit.algorithms.compiled.graph_steps import EMPTY, fill

        room = 1 << (2 * (len(self._keys) + coming)).bit_length()
        keys, values = np.full(room, EMPTY, np.int64), np.zeros(room)
        fill(keys, values, self._keys, self._weights)
        return keys, values, degrees_of(self._pairs(self._keys), self._weights, self._n)

    def take(self, keys: Ints, values: Array, always: bool) -> bool:
        """Keep the weights of the table if they are better (or always); whether they are."""
        used = np.flatnonzero((keys >= 0) & (values > 0))
        order = used[np.argsort(keys[used])]
        value = self._value(keys[order], values[order]) if np.isfinite(values[order]).all() else inf
        better = isfinite(value) and value < self._history[-1]
        if better or always:
            self._keys, self._weights = keys[order], values[order]
            self._history.append(value)
        return better

    def settled(self) -> bool:
        before, now = self._history[-2:]
        return before - now < ENOUGH * abs(before)

    def result(self) -> LearnedGraph:
        return LearnedGraph(
            self._n, self._pairs(self._keys), self._weights, np.array(self._history)
        )


def _check(peers: int, sampled: int, wakes: int, rate: str | float) -> None:
    if peers < 2 or not 1 <= sampled < peers:
        raise ConfigError(
            f"each of {peers} peers can sample 1 to {peers - 1} others, found sampled = {sampled}"
        )
    if wakes < 0:
        raise ConfigError(f"the number of wake-ups must not be negative, found {wakes}")
    if isinstance(rate, str) and rate not in ("safe", "adaptive"):
        raise ConfigError(f"the rate is 'safe', 'adaptive' or a number, found {rate!r}")
