"""Any algorithm as a machine: a peer is a batch of one. One file per schedule builds on what is
common here.

Messages that no honest peer could have sent raise RemoteProtocolError and change nothing;
duplicates are recognized and change nothing either. A peer is a deterministic function of its seat
and its inputs in order, so that executing the inputs again after a crash leads to the same state
and the same words. With a finite `timeout` nobody is waited for without end; without one
(simulation) nothing is ever given up.

What a machine keeps of a neighbor is bounded by what was agreed on, not by what the neighbor sends.
A line between real peers keeps the order of messages, loses none and doubles none, so more can be
refused there (`hear`) than in a simulation, and what comes too early is left on the line (`early`).
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from bruit.algorithms.algorithm import Algorithm
from bruit.algorithms.door import Door
from bruit.algorithms.doorway import Watch, begun, resumed, spoken
from bruit.algorithms.home import Home
from bruit.algorithms.messages import Links, take
from bruit.algorithms.schedules.machine import Alarm, Effect, Envelope, Machine, WakeAt
from bruit.algorithms.schedules.vouchers import Seals
from bruit.algorithms.task_door import TaskDoor
from bruit.arrays import Array, Ints
from bruit.errors import LocalProtocolError, RemoteProtocolError
from bruit.graphs import Graph, GraphSequence
from bruit.privacy.ledger import Ledger
from bruit.randomness import Dice, Replay
from bruit.trace import Faults

ONE = np.array([0])
LARGEST = 1e150  # beyond it the square of a number is not finite: no honest model gets there
EMPTY = (
    "offer",
    "busy",
    "ask",
    "go",
    "stop",
    "past",
    "still",
    "fence",
    "end",
)  # kinds without payload


def fits(row: Any, like: Any) -> bool:
    """Whether a payload is one row of the same types and widths as `like`, its numbers up to
    LARGEST."""
    if isinstance(like, np.ndarray):
        if (
            not isinstance(row, np.ndarray)
            or row.dtype != like.dtype
            or row.shape != (1, *like.shape[1:])
        ):
            return False
        return row.dtype.kind != "f" or bool(
            (np.abs(row) <= LARGEST).all()
        )  # false for what is not a number, too
    return type(row) is type(like) and all(
        fits(part, other) for part, other in zip(row, like, strict=True)
    )


@dataclass(frozen=True, kw_only=True)
class Seat:
    """Where a peer sits: who it is, what it runs, and what is public."""

    me: int
    algorithm: Algorithm[Any]
    graph: Graph | GraphSequence
    door: Door
    dice: Dice
    steps: int
    public: Any
    faults: Faults
    calls: Array  # (calls,) when this peer wakes by its own clock
    partners: Ints  # (calls,) whom it then calls
    state: Any = None  # where an earlier phase left it
    timeout: float = math.inf  # how long anybody is waited for
    shared: Dice | None = (
        None  # dice that fall alike for all peers, for what is drawn in public; else `dice` do
    )
    seals: Seals | None = (
        None  # signatures, among real peers; in a simulation everybody is believed
    )


class PeerMachine(Machine):
    """Runs one seat; `state` is the algorithm's state, a batch of one."""

    kinds: ClassVar[tuple[str, ...]]  # what its neighbors may say
    keyed: ClassVar[bool] = False  # whether every start shows a public key of its own
    declined: ClassVar[tuple[str, ...]] = ()  # what is refused in the name of a peer that is away
    kept: ClassVar[tuple[str, ...]] = ()  # what waits until a peer that is away comes back
    derived: ClassVar[tuple[str, ...]] = (
        "seat",
        "ids",
        "_links",
    )  # what follows from the seat and the rest

    def __init__(self, seat: Seat) -> None:
        self.seat, self.count = seat, 0
        self.state: Any = None
        self.example: Any = None  # no row of a message, but of the types and widths of one
        self.ids = np.array([seat.me])
        self._links = Links.of_peer(self._graph(0), seat.me)
        self._calls = 0

    @property
    def listening(self) -> bool:
        """Whether this peer has begun, and takes what neighbors say."""
        return self.state is not None

    @property
    def waiting(self) -> bool:
        """Whether this peer is in the middle of a meeting."""
        return self.bound_to is not None

    @property
    def bound_to(self) -> int | None:
        """With whom this peer is in the middle of a meeting."""
        return None

    @property
    def calls_left(self) -> int:
        """How often its own clock has still to ring."""
        return len(self.seat.calls) - self._calls

    @property
    def called(self) -> bool:
        """Whether its own clock has rung."""
        return self._calls > 0

    def unheard(self) -> tuple[int, ...]:
        """Neighbors without whose first word this peer's clock would call in vain."""
        return ()

    def reads_on(self, until: float) -> bool:
        """Whether its next input may make this peer read data, if its algorithm does so up to that
        position."""
        return self.state is not None and self.count < until

    @property
    def reads_with_one(self) -> bool:
        """Whether one neighbor is enough for what this peer releases: it goes to one, who has just
        spoken or is asked first."""
        return False

    def renew(self, now: float, key: bytes) -> list[Effect]:
        """This start shows another public key than the last one; of machines that are `keyed`."""
        raise LocalProtocolError(f"peer {self.seat.me} has no use for a key")

    def uttered(self) -> list[Envelope]:
        """What it has said since it was last asked that no later start can make again, because it
        depends on secrets that live as long as this start."""
        return []

    def recite(self, envelope: Envelope) -> None:
        """When its inputs are executed again: this is what it will have said next."""
        raise LocalProtocolError(f"peer {self.seat.me} has said nothing that it cannot make again")

    def back(self) -> tuple[int, ...]:
        """Who was missed for a while and takes part again, so that nothing is left over."""
        return ()

    def told(self) -> dict[str, Any]:
        """What a report says of this peer besides what is said of all."""
        return {}

    def memory(self) -> dict[str, Any]:
        """All that this machine remembers of its inputs, to go on from later."""
        return {name: value for name, value in vars(self).items() if name not in self.derived}

    def resume(self, memory: dict[str, Any]) -> None:
        """Go on, in the same seat, from where a machine was when it told its memory."""
        if set(memory) != set(self.memory()):
            raise LocalProtocolError(
                "a peer was to go on from the memory of another kind of machine or version"
            )
        vars(self).update(memory)
        self._links = self._around(self.count)

    def _around(self, number: int) -> Links:
        """This peer's links at one position of the schedule."""
        return self._links

    @abstractmethod
    def _handle(self, now: float, sender: int, envelope: Envelope) -> list[Effect]:
        """React to a message of this protocol."""

    @abstractmethod
    def _ring(self, now: float, alarm: Alarm, number: int) -> list[Effect]:
        """React to an alarm."""

    def _graph(self, number: int) -> Graph:
        return self.seat.graph if isinstance(self.seat.graph, Graph) else self.seat.graph.at(number)

    def _home(self, clock: int, last: bool, door: Door | None = None) -> Home:
        edges = self._links.edges.none() if last else self._links.edges
        count = np.array([self.count])
        door = door or self.seat.door
        return Home(
            door, self.ids, count, np.array([clock]), np.array([last]), edges, self.seat.public
        )

    def _say(self, links: Links) -> Any:
        return spoken(self.seat.algorithm, self.state, links.edges)

    def _mine(self, partner: int) -> Any:
        """What this peer says to one other."""
        return take(self._say(Links.of_meetings(self.ids, np.array([partner]))).rows, ONE)

    def _start(self, last: bool) -> None:
        self.state = self._begun(self._home(0, last))
        self.example = take(self._say(self._links).rows, ONE[:0])

    def _begun(self, home: Home) -> Any:
        earlier, algorithm = self.seat.state, self.seat.algorithm
        return begun(algorithm, home) if earlier is None else resumed(algorithm, earlier, home)

    def expected(self) -> Any:
        """`example`, known before this peer has begun: from a beginning with dice that hide nothing,
        which writes into no ledger and is forgotten."""
        door = self.seat.door
        if self.example is not None or not isinstance(door, TaskDoor):
            return self.example
        aside = replace(
            door,
            dice=Replay(0),
            ledger=Ledger(peers=self._graph(0).n),
            left_out=[],
            watch=Watch(),
            masks=None,
        )
        state = self._begun(self._home(0, self.seat.steps == 0, aside))
        return take(spoken(self.seat.algorithm, state, self._links.edges).rows, ONE[:0])

    def row_of(self, kind: str) -> Any:
        """No row, but of the types and widths that a message of this kind holds; None for those
        that hold nothing."""
        return None if kind in EMPTY else self.example

    def value_of(self, envelope: Envelope) -> Any:
        """What an observer learns from a message: its row, unless that holds more than values;
        None if it holds none."""
        return envelope.row

    def early(self, sender: int, kind: str, number: int) -> bool:
        """Whether this message is of a future that this peer can do nothing with yet: it is left on
        its line, in the memory of nobody but its sender, until it is due."""
        return False

    def hear(self, now: float, sender: int, envelope: Envelope) -> list[Effect]:
        """`receive`, from a line that keeps the order of messages, loses none and doubles none."""
        if self.state is not None and sender != self.seat.me:
            self._check(sender, envelope)
            self._check_order(sender, envelope)
        return self.receive(now, sender, envelope)

    def _check_order(self, sender: int, envelope: Envelope) -> None:
        """Refuse what cannot follow what this neighbor has said before, before anything changes."""

    def _most_calls(self, sender: int) -> float:
        """More calls than that a neighbor's clock does not make: Poisson, its mean and eight
        standard deviations; where calls are counted, all of them."""
        schedule = self.seat.algorithm.schedule
        rate = schedule.clock_rate(self._graph(0), sender)
        if rate is None:
            total = schedule.counted(self.seat.steps)
            return math.inf if total is None else total
        mean = self.seat.steps * rate
        return mean + 8 * math.sqrt(mean) + 32

    def receive(self, now: float, sender: int, envelope: Envelope) -> list[Effect]:
        if self.state is None:
            raise LocalProtocolError(
                "a peer was handed a message before it began; keep messages until then"
            )
        self._check(sender, envelope)
        return self._handle(now, sender, envelope)

    def _check(self, sender: int, envelope: Envelope) -> None:
        """Refuse what is not of this protocol, before anything changes."""
        if envelope.kind not in self.kinds:
            raise RemoteProtocolError(
                f"peer {sender} sent a message of kind {envelope.kind!r}, which nobody expects"
            )
        if type(envelope.number) is not int or envelope.number < 0:
            raise RemoteProtocolError(f"peer {sender} numbered its message {envelope.number!r}")
        example = self.row_of(envelope.kind)
        if envelope.row is not None if example is None else not fits(envelope.row, example):
            due = f"one row of the agreed types and widths, of numbers up to {LARGEST:g}"
            wanted = "nothing" if example is None else due
            raise RemoteProtocolError(
                f"peer {sender} sent a message of kind {envelope.kind} that holds not {wanted}"
            )

    def _check_neighbor(self, sender: int) -> None:
        if sender not in self._links.senders:
            raise RemoteProtocolError(f"peer {sender} is not a neighbor of peer {self.seat.me}")

    def wake(self, now: float, alarm: Alarm = "call", number: int = 0) -> list[Effect]:
        if self.state is None or (alarm == "call" and self._calls >= len(self.seat.calls)):
            raise LocalProtocolError(
                f"peer {self.seat.me} was woken at {now:g}, when its own clock did not ring"
            )
        return self._ring(now, alarm, number)

    def skip(self) -> list[Effect]:
        """Miss one call of the own clock: the peer is away."""
        self._calls += 1
        return self._next_call()

    def refuse(self, sender: int, envelope: Envelope) -> list[Effect]:
        """Decline a message of one of the kinds that are `declined`."""
        raise LocalProtocolError(f"nobody declines a message of kind {envelope.kind!r}")

    def _next_call(self) -> list[Effect]:
        return (
            [WakeAt(float(self.seat.calls[self._calls]))]
            if self._calls < len(self.seat.calls)
            else []
        )

    def _patience(self, now: float, alarm: Alarm, number: int, times: float = 1) -> list[Effect]:
        """The end of this peer's patience, so many times over, with whom it now waits for."""
        return (
            [WakeAt(now + times * self.seat.timeout, alarm, number)]
            if math.isfinite(self.seat.timeout)
            else []
        )


def peer_machine(seat: Seat) -> PeerMachine:
    """The machine that the algorithm's schedule asks for."""
    return seat.algorithm.schedule.machine(seat)
