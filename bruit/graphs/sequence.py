"""Public sequences of graphs: which graph mixes in which round, known to all and never dependent on
data."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from bruit.arrays import Ints
from bruit.errors import ConfigError
from bruit.graphs.graph import Graph
from bruit.graphs.mixing import from_edges


class GraphSequence(ABC):
    """A graph for every round t = 0, 1, ...; `period` is None when the sequence never repeats by
    construction."""

    n: int
    name: str

    @property
    @abstractmethod
    def period(self) -> int | None:
        """After how many rounds the sequence starts again."""

    @abstractmethod
    def at(self, t: int) -> Graph:
        """The mixing graph of round t."""


@dataclass(frozen=True, eq=False)
class Static(GraphSequence):
    """The same graph in every round."""

    graph: Graph
    n: int
    name: str

    @property
    def period(self) -> int:
        return 1

    def at(self, t: int) -> Graph:
        _check_round(t)
        return self.graph


@dataclass(frozen=True, eq=False)
class ListedGraphs(GraphSequence):
    """A list of graphs, one a round, from the start again after the last."""

    graphs: tuple[Graph, ...]
    n: int
    name: str

    @property
    def period(self) -> int:
        return len(self.graphs)

    def at(self, t: int) -> Graph:
        _check_round(t)
        return self.graphs[t % len(self.graphs)]


@dataclass(frozen=True, eq=False, kw_only=True)
class Fresh(GraphSequence):
    """A random graph drawn anew every few rounds; draw number r has a seed derived from (seed,
    r)."""

    family: Callable[[int], Graph]
    every: int
    seed: int
    n: int
    name: str
    _current: dict[int, Graph] = field(default_factory=dict, repr=False)

    @property
    def period(self) -> None:
        return None

    def at(self, t: int) -> Graph:
        _check_round(t)
        number = t // self.every
        graph = self._current.get(number)
        if graph is None:
            graph = self.family(_derived_seed(self.seed, number))
            if graph.n != self.n:
                raise ConfigError(
                    f"{self.name}: draw {number} has {graph.n} peers, the first had {self.n}"
                )
            self._current.clear()
            self._current[number] = graph
        return graph


@dataclass(frozen=True, eq=False)
class Butterfly(GraphSequence):
    """Exact averaging in m steps (gossip:MUF-X2): in step t the peers that differ only in digit t
    mod m average.

    The position of a peer is written in mixed radix, position = sum of digit_i * r_0 ... r_(i-1),
    and the r_i peers of a cell take weights exactly 1 / r_i. With `relabel` = s, block r of m steps
    uses public positions drawn from default_rng((s, r)); without, the position of a peer is its
    number.
    """

    radices: tuple[int, ...]
    relabel: int | None
    n: int
    name: str
    _current: dict[tuple[int, int], Graph] = field(default_factory=dict, repr=False)

    @property
    def period(self) -> int | None:
        return self._steps if self.relabel is None else None

    @property
    def _steps(self) -> int:
        return max(1, len(self.radices))

    def labels(self, t: int) -> Ints:
        """The position of each peer in the butterfly during the m steps that contain step t."""
        _check_round(t)
        if self.relabel is None:
            return np.arange(self.n)
        return np.random.default_rng((self.relabel, t // self._steps)).permutation(self.n)

    def at(self, t: int) -> Graph:
        _check_round(t)
        digit = t % self._steps
        number = 0 if self.relabel is None else t // self._steps
        graph = self._current.get((number, digit))
        if graph is None:
            for stale in [key for key in self._current if key[0] != number]:
                del self._current[stale]
            graph = self._current[number, digit] = self._step(t, digit)
        return graph

    def _step(self, t: int, digit: int) -> Graph:
        radix = self.radices[digit] if self.radices else 1
        stride = math.prod(self.radices[:digit])
        holder = np.argsort(self.labels(t))  # position -> peer
        cells = holder.reshape(
            -1, radix, stride
        )  # the peers of a cell differ in the middle coordinate
        a, b = np.triu_indices(radix, 1)
        edges = np.stack([cells[:, a, :].ravel(), cells[:, b, :].ravel()], axis=1)
        group = tuple(reversed(self.radices)) if self.relabel is None else None
        return from_edges(
            self.n,
            edges,
            name=f"{self.name}@{t if self.relabel is not None else digit}",
            group=group,
        )


@dataclass(frozen=True, eq=False)
class AfterCircles(GraphSequence):
    """Circles first: in round 0 the members of each circle average among themselves, weights
    exactly 1 / size, and from round 1 on the same graph mixes all.

    All that leaves a circle is then a function of its mean, behind the noise of all members; who is
    outside cannot tell them apart (silo:SILO-11).
    """

    circles: Graph
    graph: Graph
    n: int
    name: str

    @property
    def period(self) -> None:
        return None

    def at(self, t: int) -> Graph:
        _check_round(t)
        return self.graph if t else self.circles


def after_circles(
    members: Sequence[Sequence[int]],
    links: Sequence[tuple[int, int]] | None = None,
    *,
    kind: str = "max",
    plus: int = 1,
) -> AfterCircles:
    """Circles of peers 0..n-1, each in one of them, and then a graph of all links within circles
    and the given ones between them; left out, member i of each circle talks to member i of others
    (as many as there are; of many circles to those 1, 2, 4, ... further)."""
    found = [tuple(sorted(set(map(int, circle)))) for circle in members]
    everybody = sorted(u for circle in found for u in circle)
    twice = [u for u, v in pairwise(everybody) if u == v]
    if twice:
        raise ConfigError(
            f"peer {twice[0]} is in two circles: trust is not passed on, so whoever is in one of"
            " them is not trusted by the other; put it into one, or join them if all trust all"
        )
    if not everybody or everybody != list(range(len(everybody))):
        raise ConfigError(
            f"circles divide the peers 0..n-1 among them, found {everybody[:8]}; name the others"
            " too, alone if nobody trusts them"
        )
    n, between = len(everybody), _across(found) if links is None else list(links)
    inside = [(u, v) for circle in found for u in circle for v in circle if u < v]
    text = "/".join("+".join(map(str, circle)) for circle in found)
    if links is not None:
        text += ",links=" + "/".join(f"{u}-{v}" for u, v in links)
    text += ("" if kind == "max" else f",kind={kind}") + ("" if plus == 1 else f",plus={plus}")
    name = f"circles:{text}"
    first = from_edges(n, inside, name=f"{name}@0")
    then = from_edges(n, [*inside, *between], name=f"{name}@1", kind=kind, plus=plus)
    return AfterCircles(first, then, n, name)


FEW_CIRCLES = 8  # up to which each is linked with all others


def _across(circles: Sequence[tuple[int, ...]]) -> list[tuple[int, int]]:
    """Links between circles, member by member."""
    count, found = len(circles), set[tuple[int, int]]()
    apart = range(1, count) if count <= FEW_CIRCLES else [2**k for k in range(count.bit_length())]
    for c, circle in enumerate(circles):
        for d in {(c + step) % count for step in apart} - {c}:
            for i in range(max(len(circle), len(circles[d]))):
                u, v = circle[i % len(circle)], circles[d][i % len(circles[d])]
                found.add((min(u, v), max(u, v)))
    return sorted(found)


def static(graph: Graph | str) -> GraphSequence:
    """The same graph in every round."""
    from bruit.graphs.names import fixed_graph  # names sequences itself

    graph = fixed_graph(graph)
    return Static(graph, graph.n, graph.name)


def given(graphs: Sequence[Graph | str]) -> GraphSequence:
    """A list of graphs on the same peers, used one after the other, round and round."""
    if not graphs:
        raise ConfigError("a sequence of graphs needs at least one graph")
    from bruit.graphs.names import fixed_graph  # names sequences itself

    chosen = tuple(fixed_graph(graph) for graph in graphs)
    sizes = [graph.n for graph in chosen]
    if len(set(sizes)) > 1:
        raise ConfigError(f"the graphs of a sequence must have the same peers, found sizes {sizes}")
    return ListedGraphs(chosen, sizes[0], "+".join(dict.fromkeys(graph.name for graph in chosen)))


def fresh(family: Callable[[int], Graph], every: int = 1, seed: int = 0) -> GraphSequence:
    """A new draw of family(seed) every few rounds; named as the graph, with the seed of the
    sequence."""
    if every < 1:
        raise ConfigError(f"fresh draws come every K >= 1 rounds, found K = {every}")
    first = family(_derived_seed(seed, 0))
    parts = [part for part in first.name.split(",") if not part.startswith("seed=")]
    name = ",".join([*parts, *([f"seed={seed}"] if seed else []), f"fresh={every}"])
    return Fresh(family=family, every=every, seed=seed, n=first.n, name=name, _current={0: first})


def butterfly(
    n: int, relabel: int | None = None, radices: Sequence[int] | None = None
) -> Butterfly:
    """The butterfly on n peers; the radices default to the prime factors of n, smallest first."""
    if n < 1:
        raise ConfigError(f"butterfly needs at least one peer, found n = {n}")
    if relabel is not None and relabel < 0:
        raise ConfigError(f"butterfly needs a seed >= 0 to relabel, found {relabel}")
    digits = tuple(radices) if radices is not None else _prime_factors(n)
    if any(radix < 2 for radix in digits) or math.prod(digits) != n:
        raise ConfigError(f"butterfly needs radices >= 2 whose product is n = {n}, found {digits}")
    name = f"butterfly:{n}"
    if digits != _prime_factors(n):
        name += ",radices=" + "x".join(map(str, digits))
    if relabel is not None:
        name += ",relabel=true" + (f",seed={relabel}" if relabel else "")
    return Butterfly(digits, relabel, n, name)


def _derived_seed(seed: int, number: int) -> int:
    """An independent seed for draw `number` of a seeded sequence."""
    return int(np.random.SeedSequence((seed, number)).generate_state(1, np.uint64)[0])


def _prime_factors(n: int) -> tuple[int, ...]:
    factors, divisor = [], 2
    while divisor * divisor <= n:
        while n % divisor == 0:
            factors.append(divisor)
            n //= divisor
        divisor += 1
    return (*factors, n) if n > 1 else tuple(factors)


def _check_round(t: int) -> None:
    if t < 0:
        raise ConfigError(f"rounds are counted from 0, found {t}")
