"""The record of meetings: who meets whom, by the law of the schedule."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from bruit.algorithms.schedules.draws import SHEET, activation_draws, hop
from bruit.algorithms.schedules.given import Given
from bruit.algorithms.schedules.pairs.bulk import play
from bruit.algorithms.schedules.schedule import Schedule
from bruit.algorithms.schedules.stage import Stage
from bruit.arrays import Array, Ints
from bruit.domains import whole
from bruit.errors import ConfigError
from bruit.graphs import Graph
from bruit.randomness import Dice
from bruit.trace import Meetings

if TYPE_CHECKING:
    from bruit.algorithms.schedules.peer import PeerMachine, Seat


@dataclass(frozen=True)
class Pairs(Schedule):
    """Two neighbors meet and exchange (gossip:GO-3).

    law "weights": an idle or active meeting, p_e = 2 W_e / n per activation; "edges": a uniform
    edge; "clocks": a uniform peer, then a uniform neighbor. In time, each peer wakes at rate 1 (law
    "edges": rate proportional to its degree), and `steps` is the duration; with `activations`
    exactly that many activations happen instead, by a timetable that all real peers draw together.
    """

    law: str = "weights"
    activations: int | None = None
    unit: ClassVar[str] = "units of time"
    events: ClassVar[str] = "meetings"
    timed: ClassVar[bool] = True
    worth: ClassVar[int] = 100_000  # activations

    def __post_init__(self) -> None:
        if self.law not in ("weights", "edges", "clocks"):
            raise ConfigError(
                f"unknown law of meetings {self.law!r}; use 'weights', 'edges' or 'clocks'"
            )
        whole(self, "activations")

    def meetings(
        self, graph: Graph, steps: int, dice: Dice, before: int = 0, holder: int | None = None
    ) -> Meetings:
        """All meetings; idle ones are left out."""
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
        return Meetings(time[active], who[active], whom[active]).sorted()

    def play(self, stage: Stage) -> Any:
        return play(stage)

    def machine(self, seat: Seat) -> PeerMachine:
        from bruit.algorithms.schedules.pairs.peer import MeetingPeer

        return MeetingPeer(seat)

    def counted(self, steps: int) -> int | None:
        return self.activations

    def check_given(self, given: Given) -> None:
        met = given.trace.meetings
        given.check_links(met.a, met.b, "meet", stays=False)

    def work(self, graph: Graph, steps: int, dim: int) -> int:
        if graph.implicit:
            return 0
        return steps * graph.n if self.activations is None else self.activations

    def acting(self, graph: Graph, steps: int, dice: Dice) -> Ints:
        """Nothing: a compiled path draws meetings as it goes, and never holds all of them."""
        return np.zeros(0, np.int64)

    def messages(self, graph: Graph, acting: Ints, total: int) -> int:
        return 2 * total

    def levels(self, graph: Graph, meetings: Meetings) -> Ints:
        from bruit.algorithms.compiled.meetings import pair_levels

        return np.asarray(pair_levels(meetings.a, meetings.b, graph.n))

    def entries(self, graph: Graph) -> tuple[Array, Ints]:
        """The law of one activation: cumulated over the entries of the matrix, and the two ends of
        every entry.

        An activation is the first entry with law >= u for one uniform u; the same end twice is an
        idle one.
        """
        matrix = graph.weights
        rows = np.repeat(np.arange(graph.n), np.diff(matrix.indptr))
        off = matrix.indices != rows
        if self.law == "weights":
            chance = matrix.data.copy()
        elif self.law == "edges":
            chance = off.astype(np.float64)
        else:
            chance = np.where(
                graph.degrees[rows] == 0, 1.0, off / np.maximum(graph.degrees, 1)[rows]
            )
        if not chance.any():
            chance[:] = 1.0  # nobody has a neighbor: every activation is idle
        law = np.cumsum(chance)
        law /= law[-1]
        return law, np.stack(
            (rows, matrix.indices.astype(np.int64)), axis=1
        )  # (entries,), (entries, 2)

    def clock_rate(self, graph: Graph, peer: int) -> float | None:
        return None if self.activations is not None else float(self._rates(graph)[peer])

    def _rates(self, graph: Graph) -> Array:
        if self.law == "edges":
            return np.asarray(
                graph.degrees * (graph.n / max(int(graph.degrees.sum()), 1)), np.float64
            )
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
        shifted = graph.weights.indices[
            np.minimum(entry + 1, len(graph.weights.indices) - 1)
        ].astype(np.int64)
        return np.where(degree == 0, -1, np.where(chosen >= who, shifted, chosen))
