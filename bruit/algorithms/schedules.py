"""Schedules: when peers speak, as local rules on addressed draws.

`Rounds` (everybody at once), `Pairs` (two peers meet on Poisson clocks), `Walk` (a token hops), `Wakes` (one wakes,
reads the latest message of its neighbors, and speaks). Because draws are addressed by peer and count, the bulk engine
generates for all peers what each real peer generates for itself.
"""

from __future__ import annotations

import dataclasses
from abc import ABC
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from bruit.arrays import Array, Ints
from bruit.domains import whole
from bruit.errors import ConfigError
from bruit.graphs import Complete, Graph
from bruit.randomness import Dice
from bruit.trace import Meetings

SHEET = 1024  # activations whose draws share one address
UNIFORM = "uniform"  # in place of the number of the peer with whom a walk starts


class Schedule(ABC):
    """Abstract; a schedule is a frozen record of its rule's parameters."""

    unit: ClassVar[str] = "steps"

    @staticmethod
    def from_description(text: Mapping[str, Any] | str) -> Schedule:
        """The schedule a manifest describes: {"name": "pairs", "law": "edges"} or just "pairs"."""
        parameters = {"name": text} if isinstance(text, str) else dict(text)
        kinds = {kind.__name__.lower(): kind for kind in (Rounds, Pairs, Walk, Wakes)}
        kind = kinds.get(str(parameters.pop("name", "")).lower())
        if kind is None:
            raise ConfigError(f"there is no schedule {text!r}; known: {', '.join(kinds)}")
        unknown = set(parameters) - {field.name for field in dataclasses.fields(kind)}
        if unknown:
            raise ConfigError(f"the schedule {kind.__name__.lower()} has no parameter {sorted(unknown)[0]!r}")
        return kind(**parameters)


@dataclass(frozen=True)
class Rounds(Schedule):
    """Everybody speaks to all neighbors, then everybody absorbs; `steps` counts rounds."""

    unit: ClassVar[str] = "rounds"


@dataclass(frozen=True)
class Pairs(Schedule):
    """Two neighbors meet and exchange (gossip:GO-3).

    law "weights": an idle or active meeting, p_e = 2 W_e / n per activation; "edges": a uniform edge; "clocks": a
    uniform peer, then a uniform neighbor. In time, each peer wakes at rate 1 (law "edges": rate proportional to its
    degree), and `steps` is the duration; with `activations` exactly that many activations happen instead.
    """

    law: str = "weights"
    activations: int | None = None
    unit: ClassVar[str] = "units of time"

    def __post_init__(self) -> None:
        if self.law not in ("weights", "edges", "clocks"):
            raise ConfigError(f"unknown law of meetings {self.law!r}; use 'weights', 'edges' or 'clocks'")
        whole(self, "activations")

    def meetings(self, graph: Graph, steps: int, dice: Dice, peers: Ints | None = None, before: int = 0) -> Meetings:
        """All meetings that the given peers (everybody by default) start, in order of time; idle ones are left out.

        The first `before` units of time, or activations, are over: the clocks go on after them, and time starts at 0.
        """
        if self.activations is not None:
            law, ends = self.entries(graph)
            total = before + self.activations
            uniform = activation_draws(dice, 0, -(-total // SHEET))[before:total]
            who, whom = ends[np.searchsorted(law, uniform)].T
            whom = np.where(whom == who, -1, whom)
            time = np.arange(len(uniform), dtype=np.float64)
        else:
            time, who, whom = self._clocks(graph, float(before + steps), dice)
            time = time - before
        active = (whom >= 0) & (time >= 0)
        if peers is not None:
            active &= np.isin(who, peers)
        return Meetings(time[active], who[active], whom[active]).sorted()

    def entries(self, graph: Graph) -> tuple[Array, Ints]:
        """The law of one activation: cumulated over the entries of the matrix, and the two ends of every entry.

        An activation is the first entry with law >= u for one uniform u; the same end twice is an idle one.
        """
        matrix = graph.weights
        rows = np.repeat(np.arange(graph.n), np.diff(matrix.indptr))
        off = matrix.indices != rows
        if self.law == "weights":
            chance = matrix.data.copy()
        elif self.law == "edges":
            chance = off.astype(np.float64)
        else:
            chance = np.where(graph.degrees[rows] == 0, 1.0, off / np.maximum(graph.degrees, 1)[rows])
        if not chance.any():
            chance[:] = 1.0  # nobody has a neighbor: every activation is idle
        law = np.cumsum(chance)
        law /= law[-1]
        return law, np.stack((rows, matrix.indices.astype(np.int64)), axis=1)  # (entries,), (entries, 2)

    def _rates(self, graph: Graph) -> Array:
        if self.law == "edges":
            return np.asarray(graph.degrees * (graph.n / max(int(graph.degrees.sum()), 1)), np.float64)
        return np.ones(graph.n)

    def _clocks(self, graph: Graph, horizon: float, dice: Dice) -> tuple[Array, Ints, Ints]:
        rates = self._rates(graph)
        now, live, count = np.zeros(graph.n), np.flatnonzero(rates > 0), 0
        times, callers, partners = [np.zeros(0)], [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
        while len(live):
            draws = dice.uniform("clock", live, count, 0, 2)
            now[live] -= np.log(draws[:, 0]) / rates[live]
            awake = now[live] < horizon
            live, draws = live[awake], draws[awake]
            times.append(now[live])
            callers.append(live)
            partners.append(self._partners(graph, live, draws[:, 1]))
            count += 1
        return np.concatenate(times), np.concatenate(callers), np.concatenate(partners)

    def _partners(self, graph: Graph, who: Ints, uniform: Array) -> Ints:
        """The neighbor each caller picks, -1 when it picks itself."""
        if self.law == "weights":
            partner = hop(graph, who, uniform)
            return np.where(partner == who, -1, partner)
        degree = graph.degrees[who]
        if graph.implicit:
            rank = np.minimum((uniform * degree).astype(np.int64), degree - 1)
            return rank + (rank >= who)
        start = graph.weights.indptr[who]
        rank = np.minimum((uniform * degree).astype(np.int64), np.maximum(degree - 1, 0))
        entry = np.minimum(start + rank, len(graph.weights.indices) - 1)
        chosen = graph.weights.indices[entry].astype(np.int64)
        shifted = graph.weights.indices[np.minimum(entry + 1, len(graph.weights.indices) - 1)].astype(np.int64)
        return np.where(degree == 0, -1, np.where(chosen >= who, shifted, chosen))


@dataclass(frozen=True)
class Walk(Schedule):
    """A token hops from v to w with probability W[v, w]; `steps` counts hops, a stay is a hop and a visit.

    The first hop is the token's entry at peer `first`: with T steps, v_0 = first, ..., v_{T-1} act (walk:RW-7). With
    first = "uniform" all peers draw it together, from public randomness: what is said of a walk before it starts, of
    sums and of how often a peer is visited, is often said for such a walk only (walk:RW-1, F-4).
    order "ring": nothing is drawn, the token goes to the neighbor whose number comes next (from the last peer on to
    peer 0). Where every peer is a neighbor of the next one this is the ring 0, 1, ..., n - 1, 0, ... (gossip:RING-1);
    elsewhere peers are left out, see `goes_round`. `token` tells several walks of one seed apart.
    """

    first: int | str = 0
    order: str = "random"
    token: int = 0
    unit: ClassVar[str] = "hops"

    def __post_init__(self) -> None:
        if self.order not in ("random", "ring"):
            raise ConfigError(f"unknown order of a walk {self.order!r}; use 'random' or 'ring'")
        if isinstance(self.first, str) and self.first != UNIFORM:
            raise ConfigError(f"a walk starts at a peer, by its number, or at a drawn one: first = {UNIFORM!r}, found"
                              f" {self.first!r}")  # fmt: skip
        whole(self, "token", *(() if self.first == UNIFORM else ("first",)))

    def start(self, graph: Graph, dice: Dice) -> int:
        """v_0. Drawn from `dice` that all peers share, if it is drawn: everybody must find the same one."""
        if self.first == UNIFORM:
            draw = float(dice.uniform("first holder", np.array([self.token]), 0)[0, 0])
            return min(int(draw * graph.n), graph.n - 1)
        if not int(self.first) < graph.n:
            raise ConfigError(f"the walk starts at peer {self.first}, but the graph has peers 0..{graph.n - 1}")
        return int(self.first)

    def path(self, graph: Graph, steps: int, dice: Dice, before: int = 0, holder: int | None = None) -> Ints:
        """The visited peers v_0 .. v_{steps-1}; it never depends on data, so it can be drawn first.

        After `before` hops that are over, the token goes on from its last holder: v_before .. v_{before+steps-1}."""
        if before and holder is not None:
            return self._visited(graph, steps + 1, dice, holder, before - 1)[1:]
        return self._visited(graph, steps, dice, self.start(graph, dice), 0)

    def _visited(self, graph: Graph, steps: int, dice: Dice, first: int, hops: int) -> Ints:
        """So many visits, `first` included, from the draw of hop number `hops` on."""
        if self.order == "ring":
            following, around = _successors(graph).tolist(), [first]
            while len(around) < steps:
                around.append(following[around[-1]])
            return np.array(around[:steps], np.int64)
        uniform = dice.uniform("hop", np.arange(hops, hops + max(steps - 1, 0)), self.token)[:, 0]
        if graph.alike:
            path = np.empty(steps, np.int64)
            path[:1], path[1:] = first, _uniform_peer(graph.n, uniform)
            return path
        if steps > 10_000:
            from bruit.kernels.walk import visits

            matrix = graph.weights
            return np.asarray(visits(matrix.indptr, matrix.indices, graph.cumulative, uniform, first))
        law = graph.cumulative
        visited = [first]
        for draw in uniform[: max(steps - 1, 0)]:
            low, high = graph.weights.indptr[visited[-1]], graph.weights.indptr[visited[-1] + 1]
            entry = min(low + int(np.searchsorted(law[low:high], draw)), high - 1)
            visited.append(int(graph.weights.indices[entry]))
        return np.array(visited[:steps], np.int64)

    def next(self, graph: Graph, at: int, hop_number: int, dice: Dice) -> int:
        """Where the holder of hop `hop_number` sends the token, from its own row alone; agrees with `path`."""
        if self.order == "ring":
            return _successor(graph, at)
        around, weights = graph.row(at)
        draw = float(dice.uniform("hop", np.array([hop_number]), self.token)[0, 0])
        if graph.alike:
            return int(_uniform_peer(graph.n, np.array([draw]))[0])
        return int(around[min(int(np.searchsorted(np.cumsum(weights), draw)), len(around) - 1)])

    def goes_round(self, graph: Graph) -> bool:
        """Whether in ring order every peer hands the token to the next one, so that nobody is left out."""
        return self.order == "ring" and np.array_equal(_successors(graph), (np.arange(graph.n) + 1) % graph.n)

    def meetings(self, graph: Graph, steps: int, dice: Dice, before: int = 0, holder: int | None = None) -> Meetings:
        """The token's way; its entry is a hop from the first peer to itself, or from who holds it already."""
        path = self.path(graph, steps, dice, before, holder)
        entry = path[:1] if holder is None or not before else np.array([holder])[: len(path)]
        return Meetings(np.arange(len(path), dtype=np.float64), np.concatenate((entry, path[:-1])), path)


@dataclass(frozen=True)
class Wakes(Schedule):
    """One peer wakes, reads the latest message of each neighbor, and speaks to all of them.

    Each peer wakes at rate 1 and `steps` is the duration; with `activations` exactly that many peers wake, uniformly.
    """

    activations: int | None = None
    unit: ClassVar[str] = "units of time"

    def __post_init__(self) -> None:
        whole(self, "activations")

    def meetings(self, graph: Graph, steps: int, dice: Dice, peers: Ints | None = None, before: int = 0) -> Meetings:
        found = Pairs("clocks", self.activations).meetings(graph, steps, dice, peers, before)
        return Meetings(found.time, found.a, found.a)


def _successor(graph: Graph, at: int) -> int:
    """The neighbor whose number comes next after the peer's own, around the circle of numbers; oneself if alone."""
    row = graph.row(at)[0]
    return int(row[np.argmin((row - at - 1) % graph.n)])


def _successors(graph: Graph) -> Ints:
    """The same for every peer  # (n,)."""
    if isinstance(graph, Complete):
        return (np.arange(graph.n) + 1) % graph.n
    matrix = graph.weights
    rows = np.repeat(np.arange(graph.n), np.diff(matrix.indptr))
    ahead = np.minimum.reduceat((matrix.indices.astype(np.int64) - rows - 1) % graph.n, matrix.indptr[:-1])
    return np.asarray((np.arange(graph.n) + 1 + ahead) % graph.n, np.int64)


def activation_draws(dice: Dice, first: int, sheets: int) -> Array:
    """The uniform numbers of the activations on these sheets: activation k is number k % SHEET of sheet k // SHEET."""
    return dice.uniform("meeting", np.arange(first, first + sheets), 0, 0, SHEET).reshape(-1)  # (sheets * SHEET,)


def _uniform_peer(n: int, uniform: Array) -> Ints:
    """One of n peers, for each uniform draw; draws are above 0."""
    return np.asarray(np.minimum(np.ceil(uniform * n) - 1, n - 1), np.int64)


def hop(graph: Graph, at: Ints, uniform: Array) -> Ints:
    """Where a token at each given peer goes, for one uniform draw each: vectorized inverse of the row's law."""
    if graph.implicit and graph.alike:
        return _uniform_peer(graph.n, uniform)
    total = np.concatenate(([0.0], np.cumsum(graph.weights.data)))
    low, high = graph.weights.indptr[at], graph.weights.indptr[at + 1]
    entry = np.searchsorted(total, total[low] + uniform * (total[high] - total[low]), side="right") - 1
    return np.asarray(graph.weights.indices[np.clip(entry, low, high - 1)], np.int64)
