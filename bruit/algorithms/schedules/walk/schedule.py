"""The record of a walk: where the token enters, and where it goes from there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from bruit.algorithms.messages import Links
from bruit.algorithms.schedules.draws import uniform_peer
from bruit.algorithms.schedules.given import Given
from bruit.algorithms.schedules.rounds.schedule import SWINGS
from bruit.algorithms.schedules.schedule import Schedule
from bruit.algorithms.schedules.stage import Stage
from bruit.algorithms.schedules.walk.bulk import play, published
from bruit.arrays import Ints
from bruit.domains import whole
from bruit.errors import ConfigError
from bruit.graphs import Complete, Graph
from bruit.randomness import Dice
from bruit.trace import Meetings

if TYPE_CHECKING:
    from bruit.algorithms.schedules.peer import PeerMachine, Seat

UNIFORM = "uniform"  # in place of the number of the peer with whom a walk starts


@dataclass(frozen=True)
class Walk(Schedule):
    """A token hops from v to w with probability W[v, w]; `steps` counts hops, a stay is a hop and a
    visit.

    The first hop is the token's entry at peer `first`: with T steps, v_0 = first, ..., v_{T-1} act
    (walk:RW-7). With first = "uniform" all peers draw it together, from public randomness: what is
    said of a walk before it starts, of sums and of how often a peer is visited, is often said for
    such a walk only (walk:RW-1, F-4). order "ring": nothing is drawn, the token goes to the
    neighbor whose number comes next (from the last peer on to peer 0). Where every peer is a
    neighbor of the next one this is the ring 0, 1, ..., n - 1, 0, ... (gossip:RING-1); elsewhere
    peers are left out, see `goes_round`. `token` tells several walks of one seed apart.
    """

    first: int | str = 0
    order: str = "random"
    token: int = 0
    unit: ClassVar[str] = "hops"
    entered: ClassVar[bool] = True
    worth: ClassVar[int] = 2_000  # hops
    looked_at: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.order not in ("random", "ring"):
            raise ConfigError(f"unknown order of a walk {self.order!r}; use 'random' or 'ring'")
        if isinstance(self.first, str) and self.first != UNIFORM:
            raise ConfigError(
                "a walk starts at a peer, by its number, or at a drawn one:"
                f" first = {UNIFORM!r}, found {self.first!r}"
            )
        whole(self, "token", *(() if self.first == UNIFORM else ("first",)))

    def start(self, graph: Graph, dice: Dice) -> int:
        """v_0. Drawn from `dice` that all peers share, if it is drawn: everybody must find the same
        one."""
        if self.first == UNIFORM:
            draw = float(dice.uniform("first holder", np.array([self.token]), 0)[0, 0])
            return min(int(draw * graph.n), graph.n - 1)
        if not int(self.first) < graph.n:
            raise ConfigError(
                f"the walk starts at peer {self.first}, but the graph has peers 0..{graph.n - 1}"
            )
        return int(self.first)

    def path(
        self, graph: Graph, steps: int, dice: Dice, before: int = 0, holder: int | None = None
    ) -> Ints:
        """The visited peers v_0 .. v_{steps-1}; it never depends on data, so it can be drawn first.

        After `before` hops that are over, the token goes on from its last holder: v_before ..
        v_{before+steps-1}."""
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
            path[:1], path[1:] = first, uniform_peer(graph.n, uniform)
            return path
        if steps > 10_000:
            from bruit.algorithms.compiled.walk import visits

            matrix = graph.weights
            return np.asarray(
                visits(matrix.indptr, matrix.indices, graph.cumulative, uniform, first)
            )
        law = graph.cumulative
        visited = [first]
        for draw in uniform[: max(steps - 1, 0)]:
            low, high = graph.weights.indptr[visited[-1]], graph.weights.indptr[visited[-1] + 1]
            entry = min(low + int(np.searchsorted(law[low:high], draw)), high - 1)
            visited.append(int(graph.weights.indices[entry]))
        return np.array(visited[:steps], np.int64)

    def next(self, graph: Graph, at: int, hop_number: int, dice: Dice) -> int:
        """Where the holder of hop `hop_number` sends the token, from its own row alone; agrees with
        `path`."""
        if self.order == "ring":
            return _successor(graph, at)
        around, weights = graph.row(at)
        draw = float(dice.uniform("hop", np.array([hop_number]), self.token)[0, 0])
        if graph.alike:
            return int(uniform_peer(graph.n, np.array([draw]))[0])
        return int(around[min(int(np.searchsorted(np.cumsum(weights), draw)), len(around) - 1)])

    def goes_round(self, graph: Graph) -> bool:
        """Whether in ring order every peer hands the token to the next one, so that nobody is left
        out."""
        return self.order == "ring" and np.array_equal(
            _successors(graph), (np.arange(graph.n) + 1) % graph.n
        )

    def meetings(
        self, graph: Graph, steps: int, dice: Dice, before: int = 0, holder: int | None = None
    ) -> Meetings:
        """The token's way; its entry is a hop from the first peer to itself, or from who holds it
        already."""
        path = self.path(graph, steps, dice, before, holder)
        entry = path[:1] if holder is None or not before else np.array([holder])[: len(path)]
        return Meetings(
            np.arange(len(path), dtype=np.float64), np.concatenate((entry, path[:-1])), path
        )

    def play(self, stage: Stage) -> Any:
        return play(stage)

    def machine(self, seat: Seat) -> PeerMachine:
        from bruit.algorithms.schedules.walk.peer import TokenPeer

        return TokenPeer(seat)

    def done(self, counts: Sequence[int], now: float) -> int:
        """The visits of all."""
        return sum(counts)

    def miscounted(self, events: int, steps: int) -> str:
        if events == steps:
            return ""
        what = "was lost" if events < steps else "was in two places"
        return f"the token {what}: {events} visits took place in a walk of {steps} hops"

    def holder(self, meetings: Meetings) -> int | None:
        return int(meetings.b[-1]) if len(meetings.b) else None

    def check_graph(self, graph: Graph) -> None:
        """Refuse a token that starts nowhere, and a ring that the graph does not have."""
        if self.first != UNIFORM and not 0 <= int(self.first) < graph.n:
            raise ConfigError(
                f"the token starts at peer {self.first}, but the peers are 0..{graph.n - 1}"
            )
        if self.order == "ring":
            self._check_ring(graph)
        elif not graph.validity().aperiodic:
            raise ConfigError(SWINGS.format(graph.name))

    def _check_ring(self, graph: Graph) -> None:
        if self.goes_round(graph):
            return
        missing = next(v for v in range(graph.n) if not graph.has_edge(v, (v + 1) % graph.n))
        raise ConfigError(
            f"in ring order every peer hands the token to the next one, but {graph.name} has no "
            f"link between peers {missing} and {(missing + 1) % graph.n}; use a graph with the "
            f"ring in it, such as ring:{graph.n}, or an algorithm that walks at random"
        )

    def check_given(self, given: Given) -> None:
        a, b = given.trace.meetings.a, given.trace.meetings.b
        if len(b) != given.steps:
            raise ConfigError(
                f"the given walk has {len(b)} hops and the run {given.steps} steps; make them equal"
            )
        torn = np.flatnonzero(a[1:] != b[:-1])
        if len(b) and a[0] != b[0]:
            raise ConfigError(
                f"the given walk starts with a hop from peer {a[0]} to {b[0]}; its first hop is "
                "the token's entry, from a peer to itself"
            )
        if len(torn):
            at = int(torn[0]) + 1
            raise ConfigError(
                f"hop {at} of the given walk leaves peer {a[at]}, but the token is at peer "
                f"{b[at - 1]}"
            )
        given.check_links(a, b, "hand over the token", stays=True)

    def opening(self, graph: Graph) -> Links:
        """Nobody: O(n), not O(edges)."""
        return Links.alone(graph.n)

    def acting(self, graph: Graph, steps: int, dice: Dice) -> Ints:
        return self.path(graph, steps, dice)

    def messages(self, graph: Graph, acting: Ints, total: int) -> int:
        return int(np.count_nonzero(acting[1:] != acting[:-1]))

    def concluded(self, stage: Stage, state: Any, acting: Ints) -> Any:
        return published(stage, state, acting[-1:]) if len(acting) else state


def _successor(graph: Graph, at: int) -> int:
    """The neighbor whose number comes next after the peer's own, around the circle of numbers;
    oneself if alone."""
    row = graph.row(at)[0]
    return int(row[np.argmin((row - at - 1) % graph.n)])


def _successors(graph: Graph) -> Ints:
    """The same for every peer  # (n,)."""
    if isinstance(graph, Complete):
        return (np.arange(graph.n) + 1) % graph.n
    matrix = graph.weights
    rows = np.repeat(np.arange(graph.n), np.diff(matrix.indptr))
    ahead = np.minimum.reduceat(
        (matrix.indices.astype(np.int64) - rows - 1) % graph.n, matrix.indptr[:-1]
    )
    return np.asarray((np.arange(graph.n) + 1 + ahead) % graph.n, np.int64)
