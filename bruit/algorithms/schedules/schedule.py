"""Schedule: when peers speak, and all that an engine has to know about it.

One folder a schedule: its record and rule (`schedule.py`), the loop that plays it for all peers at
once (`bulk.py`), and the machine of one peer (`peer.py`). Engines ask the schedule, never which one
it is. So a new schedule is a new folder, or one file, with `meetings`, `play` and `machine`; every
other question has an answer here that is true of events that happen one after the other.

Because draws are addressed by peer and count, the bulk engine generates for all peers what each
real peer generates for itself.
"""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from bruit.algorithms.messages import Links
from bruit.arrays import Bools, Ints
from bruit.discovery import classes
from bruit.errors import ConfigError
from bruit.graphs import Graph, GraphSequence
from bruit.randomness import Dice
from bruit.trace import Meetings

if TYPE_CHECKING:
    from bruit.algorithms.schedules.given import Given
    from bruit.algorithms.schedules.peer import PeerMachine, Seat
    from bruit.algorithms.schedules.stage import Stage


class Schedule(ABC):
    """Abstract; a schedule is a frozen record of its rule's parameters.

    `unit` is what `steps` counts, `events` what the schedule draws. `synchronous`: everybody speaks
    along every link in every step, so nothing is drawn, the graph may change from step to step, and
    an absent peer has its links down. `timed`: peers act by their own clocks, and `steps` is a
    length of time. `reads`: the trace says which word of each neighbor was read at each event.
    `entered`: the run is the way of one token, which enters at a peer of the schedule's choice.
    `complete`: all peers must be neighbors of each other. `masked`: messages are words modulo 2^64,
    whose masks cancel in a sum.
    """

    unit: ClassVar[str] = "steps"
    events: ClassVar[str] = "steps"
    synchronous: ClassVar[bool] = False
    timed: ClassVar[bool] = False
    reads: ClassVar[bool] = False
    entered: ClassVar[bool] = False
    complete: ClassVar[bool] = False
    masked: ClassVar[bool] = False

    # what every schedule says

    @abstractmethod
    def meetings(
        self, graph: Graph, steps: int, dice: Dice, before: int = 0, holder: int | None = None
    ) -> Meetings:
        """All events, in order of time; none if nothing is drawn.

        The first `before` steps, units of time or activations are over: draws go on after them, and
        time starts at 0. `holder` has the token of a walk that goes on."""

    @abstractmethod
    def play(self, stage: Stage) -> Any:
        """The run of all peers at once, as if messages were instantaneous; their final states."""

    @abstractmethod
    def machine(self, seat: Seat) -> PeerMachine:
        """One peer of it, without clock, thread or socket."""

    # how long it is, and where it stands

    def counted(self, steps: int) -> int | None:
        """How many events a run of so many steps has; None if that is drawn."""
        return steps

    def most_turns(self, steps: int) -> int:
        """How often a peer acts at most in a run of so many steps, whatever happens; where that is
        drawn, see `bruit.algorithms.turns`."""
        return steps

    def may_be_gone(self) -> int:
        """How many peers a run among real ones is planned to be without, at the beginning or from
        any moment on."""
        return 0

    def quorum(self, neighbors: int) -> int:
        """How many of its neighbors must be there before a real peer releases something in the
        middle of a run, unless its site says otherwise: half of them."""
        return (neighbors + 1) // 2

    def done(self, counts: Sequence[int], now: float) -> int:
        """How many steps are over, from the counts of all machines and the time."""
        return int(now)

    def behind(self, count: int, steps: int) -> bool:
        """Whether a peer that has counted so many exchanges has come to rest before its end."""
        return False

    def miscounted(self, events: int, steps: int) -> str:
        """What is wrong with so many events in a simulated run of so many steps; "": nothing."""
        return ""

    def clock_rate(self, graph: Graph, peer: int) -> float | None:
        """How often a peer's own clock calls in a unit of time, on average; None where none does."""
        return None

    def lasts(self, graph: Graph | GraphSequence, steps: int) -> float | None:
        """For how long the clocks of real peers call, in units of time; None where they have none.
        So many events of all together are as many as n clocks of rate 1 make in this time."""
        if not self.timed:
            return None
        total = self.counted(steps)
        return float(steps) if total is None else total / graph.n

    def by_clock(self, graph: Graph | GraphSequence, steps: int, events: Meetings) -> Meetings:
        """The events at their times by the clocks of real peers: counted ones one after the other,
        as far apart as they are on average."""
        if self.counted(steps) is None:
            return events
        return Meetings(events.time / graph.n, events.a, events.b)

    def holder(self, meetings: Meetings) -> int | None:
        """Who has the token after these hops; None where there is none."""
        return None

    # what it refuses

    def one_graph(self, graph: Graph | GraphSequence) -> Graph:
        """The one graph of meetings and walks; a changing graph is refused here."""
        if not isinstance(graph, Graph):
            raise ConfigError(
                f"{self.name()} need one fixed graph, found the sequence {graph.name}; use rounds "
                "on it"
            )
        return graph

    def check_graph(self, graph: Graph) -> None:
        """Refuse a graph on which it never converges, or leaves peers out."""
        return

    def check_given(self, given: Given) -> None:
        """Refuse a trace that says what cannot be; that facts have a place, and that events are in
        order of time, was checked before."""
        return

    # compiled paths (`bruit.algorithms.course`)

    worth: ClassVar[int] = 10_000
    """From how much work on a compiled path is taken by itself. Loading and warming it takes about
    a second, which is what the general path takes for so much."""
    looked_at: ClassVar[bool] = False
    """Whether a compiled path stops on the way where somebody looks."""

    def work(self, graph: Graph, steps: int, dim: int) -> int:
        """How much there is to do, in the unit of `worth`."""
        return steps

    def opening(self, graph: Graph) -> Links:
        """Who may hear what peers say when a compiled path begins."""
        return Links.of_graph(graph)

    def acting(self, graph: Graph, steps: int, dice: Dice) -> Ints:
        """Who acts, event by event, as far as a compiled path is to be told ahead."""
        return self.meetings(graph, steps, dice).a

    def messages(self, graph: Graph, acting: Ints, total: int) -> int:
        """How many messages were sent in so many events of these peers."""
        return total

    def concluded(self, stage: Stage, state: Any, acting: Ints) -> Any:
        """What the states are after the last event of a compiled path."""
        return state

    # what is shown of it

    def levels(self, graph: Graph, meetings: Meetings) -> Ints:
        """In which batch each event is played: events of one batch do not touch each other."""
        return np.arange(len(meetings.a))

    def listeners(self, graph: Graph, a: int, b: int) -> Ints:
        """Who hears a in the event (a, b)."""
        return np.array([b] if a != b else [], np.int64)

    def earshot(self, graph: Graph, peer: int) -> Bools:
        """Whose events tell this peer something  # (n,)."""
        return np.isin(np.arange(graph.n), [peer])

    @classmethod
    def name(cls) -> str:
        """Its name in experiments and manifests."""
        return cls.__name__.lower()

    @staticmethod
    def from_description(text: Mapping[str, Any] | str) -> Schedule:
        """The schedule a manifest describes: {"name": "pairs", "law": "edges"} or just "pairs"."""
        parameters: dict[str, Any] = {"name": text} if isinstance(text, str) else dict(text)
        kinds = schedules()
        kind = kinds.get(str(parameters.pop("name", "")).lower())
        if kind is None:
            raise ConfigError(f"there is no schedule {text!r}; known: {', '.join(kinds)}")
        unknown = set(parameters) - {field.name for field in dataclasses.fields(kind)}  # type: ignore[arg-type]
        if unknown:
            raise ConfigError(f"the schedule {kind.name()} has no parameter {sorted(unknown)[0]!r}")
        return kind(**parameters)


def schedules() -> dict[str, type[Schedule]]:
    """Every schedule of the folder, by name: a new file is enrolled by being there."""
    import bruit.algorithms.schedules as folder

    found = classes(folder, Schedule)  # type: ignore[type-abstract]
    return dict(sorted({kind.name(): kind for kind in found}.items()))
