"""The record of rounds: nothing is drawn, and everybody counts the same rounds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from bruit.algorithms.schedules.given import Given, linked
from bruit.algorithms.schedules.rounds.bulk import play
from bruit.algorithms.schedules.schedule import Schedule
from bruit.algorithms.schedules.stage import Stage
from bruit.arrays import Ints
from bruit.errors import ConfigError
from bruit.graphs import Graph
from bruit.randomness import Dice
from bruit.trace import Meetings

if TYPE_CHECKING:
    from bruit.algorithms.schedules.peer import PeerMachine, Seat

SWINGS = (
    "the graph {} is bipartite and its peers give themselves no weight, so gossip swings for ever;"
    " use the weights plus=1"
)


@dataclass(frozen=True)
class Rounds(Schedule):
    """Everybody speaks to all neighbors, then everybody absorbs; `steps` counts rounds."""

    unit: ClassVar[str] = "rounds"
    synchronous: ClassVar[bool] = True
    worth: ClassVar[int] = 10**9  # numbers mixed

    def meetings(
        self, graph: Graph, steps: int, dice: Dice, before: int = 0, holder: int | None = None
    ) -> Meetings:
        return Meetings.none()

    def play(self, stage: Stage) -> Any:
        return play(stage)

    def machine(self, seat: Seat) -> PeerMachine:
        from bruit.algorithms.schedules.rounds.keyed import KeyedRoundPeer
        from bruit.algorithms.schedules.rounds.peer import RoundPeer
        from bruit.algorithms.task_door import TaskDoor

        own = isinstance(seat.door, TaskDoor) and seat.door.masks is not None
        keyed = own and seat.algorithm.shares_noise
        return KeyedRoundPeer(seat) if keyed else RoundPeer(seat)

    def done(self, counts: Sequence[int], now: float) -> int:
        """The rounds of the slowest."""
        return min(counts)

    def behind(self, count: int, steps: int) -> bool:
        return count < steps

    def check_graph(self, graph: Graph) -> None:
        if not graph.validity().aperiodic:
            raise ConfigError(SWINGS.format(graph.name))

    def check_given(self, given: Given) -> None:
        trace, faults = given.trace, given.trace.faults
        if len(trace.meetings.a):
            raise given.no_place(
                f"who met whom, {len(trace.meetings.a)} times",
                "in rounds everybody speaks to all neighbors, and what else is drawn comes from"
                " the seed; give links that were down (faults), or use an algorithm of meetings",
            )
        if trace.missed:
            raise ConfigError(
                f"the given trace counts {trace.missed} exchanges that some peer went on without, "
                "and does not say which, so these rounds cannot be played again"
            )
        beyond = np.flatnonzero((faults.round < 0) | (faults.round >= given.steps))
        if len(beyond):
            raise ConfigError(
                f"the given trace says that a link was down in round {faults.round[beyond[0]]}, "
                f"and this run has {given.steps}, numbered from 0"
            )
        for number in np.unique(faults.round).tolist():
            graph, (a, b) = given.at(number), faults.in_round(number)
            odd = np.flatnonzero(~linked(graph, a, b))
            if len(odd):
                raise ConfigError(
                    f"the given trace says that the link of peers {a[odd[0]]} and {b[odd[0]]} was "
                    f"down in round {number}, and {graph.name} has no such link"
                )

    def work(self, graph: Graph, steps: int, dim: int) -> int:
        return 0 if graph.implicit else steps * graph.entries * dim

    def acting(self, graph: Graph, steps: int, dice: Dice) -> Ints:
        return np.zeros(0, np.int64)

    def messages(self, graph: Graph, acting: Ints, total: int) -> int:
        return total * int(graph.degrees.sum())
