"""The record of wakes: who wakes when."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from bruit.algorithms.schedules.given import Given
from bruit.algorithms.schedules.pairs.schedule import Pairs
from bruit.algorithms.schedules.schedule import Schedule
from bruit.algorithms.schedules.stage import Stage
from bruit.algorithms.schedules.wakes.bulk import play
from bruit.arrays import Bools, Ints
from bruit.domains import whole
from bruit.errors import ConfigError
from bruit.graphs import Graph
from bruit.randomness import Dice
from bruit.trace import Meetings

if TYPE_CHECKING:
    from bruit.algorithms.schedules.peer import PeerMachine, Seat


@dataclass(frozen=True)
class Wakes(Schedule):
    """One peer wakes, reads the latest message of each neighbor, and speaks to all of them.

    Each peer wakes at rate 1 and `steps` is the duration; with `activations` exactly that many
    peers wake, uniformly, by a timetable that all real peers draw together.
    """

    activations: int | None = None
    unit: ClassVar[str] = "units of time"
    events: ClassVar[str] = "wakes"
    timed: ClassVar[bool] = True
    reads: ClassVar[bool] = True

    def __post_init__(self) -> None:
        whole(self, "activations")

    def clock_rate(self, graph: Graph, peer: int) -> float | None:
        return None if self.activations is not None else 1.0

    def meetings(
        self, graph: Graph, steps: int, dice: Dice, before: int = 0, holder: int | None = None
    ) -> Meetings:
        found = Pairs("clocks", self.activations).meetings(graph, steps, dice, before)
        return Meetings(found.time, found.a, found.a)

    def play(self, stage: Stage) -> Any:
        return play(stage)

    def machine(self, seat: Seat) -> PeerMachine:
        from bruit.algorithms.schedules.wakes.peer import WakePeer

        return WakePeer(seat)

    def counted(self, steps: int) -> int | None:
        return self.activations

    def check_given(self, given: Given) -> None:
        a, b = given.trace.meetings.a, given.trace.meetings.b
        odd = np.flatnonzero(a != b)
        if len(odd):
            raise ConfigError(
                f"in the given trace peer {a[odd[0]]} meets peer {b[odd[0]]} (number {odd[0]}), and"
                f" {given.algorithm} follows wakes, where a peer wakes by itself (b = a)"
            )
        if given.trace.reads:
            self._check_reads(given)

    def _check_reads(self, given: Given) -> None:
        """Refuse words that nobody had said by then."""
        woken, reads = given.trace.meetings.a.tolist(), given.trace.reads
        if len(reads) != len(woken):
            raise ConfigError(
                f"the given trace has {len(woken)} wakes and says for {len(reads)} what was read"
            )
        graph = given.at(0)
        versions_made = np.zeros(graph.n, np.int64)
        for event, (peer, versions) in enumerate(zip(woken, reads, strict=True)):
            near = set(graph.neighbors(peer).tolist())
            if set(versions) != near:
                wrong = min(near ^ set(versions))
                raise ConfigError(
                    f"at wake {event} peer {peer} reads a word of each neighbor, and the given "
                    f"trace {'names' if wrong in versions else 'leaves out'} peer {wrong}"
                )
            unsaid = [
                other
                for other, number in versions.items()
                if not 0 <= number <= versions_made[other]
            ]
            if unsaid:
                raise ConfigError(
                    f"at wake {event} peer {peer} is to read word {versions[unsaid[0]]} of peer "
                    f"{unsaid[0]}, who had said words 0..{versions_made[unsaid[0]]} by then"
                )
            versions_made[peer] += 1

    def work(self, graph: Graph, steps: int, dim: int) -> int:
        if graph.implicit:
            return 0
        return steps * graph.n if self.activations is None else self.activations

    def messages(self, graph: Graph, acting: Ints, total: int) -> int:
        return int(graph.degrees[acting].sum())

    def levels(self, graph: Graph, meetings: Meetings) -> Ints:
        from bruit.algorithms.compiled.meetings import wake_levels

        links = self.opening(graph)
        return np.asarray(wake_levels(links.start, links.senders, meetings.a))

    def listeners(self, graph: Graph, a: int, b: int) -> Ints:
        return np.asarray(graph.neighbors(a), np.int64)

    def earshot(self, graph: Graph, peer: int) -> Bools:
        return np.isin(np.arange(graph.n), [peer, *graph.neighbors(peer)])
