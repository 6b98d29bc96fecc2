"""Any algorithm as a machine: a peer is a batch of one. One file per schedule builds on what is common here.

Messages that no honest peer could have sent raise RemoteProtocolError and change nothing; duplicates are recognized
and change nothing either. A peer is a deterministic function of its seat and its inputs in order, so that executing
the inputs again after a crash leads to the same state and the same words. With a finite `timeout` nobody is waited for
for ever; without one (simulation) nothing is ever given up.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from bruit.algorithms.algorithm import Algorithm
from bruit.algorithms.doorway import begun, resumed, spoken
from bruit.algorithms.home import Door, Home
from bruit.algorithms.messages import Links, take
from bruit.algorithms.schedules import Pairs, Rounds, Wakes, Walk
from bruit.arrays import Array, Ints
from bruit.errors import LocalProtocolError, RemoteProtocolError
from bruit.graphs import Graph, GraphSequence
from bruit.protocols.machine import Alarm, Effect, Envelope, Machine, WakeAt
from bruit.randomness import Dice
from bruit.trace import Faults

ONE = np.array([0])
LARGEST = 1e150  # beyond it the square of a number is not finite: no honest model gets there
EMPTY = ("offer", "busy", "ask", "go", "stop", "past", "still", "fence", "end")  # kinds without payload


def fits(row: Any, like: Any) -> bool:
    """Whether a payload is one row of the same types and widths as `like`, its numbers up to LARGEST."""
    if isinstance(like, np.ndarray):
        if not isinstance(row, np.ndarray) or row.dtype != like.dtype or row.shape != (1, *like.shape[1:]):
            return False
        return row.dtype.kind != "f" or bool((np.abs(row) <= LARGEST).all())  # false for what is not a number, too
    return type(row) is type(like) and all(fits(part, other) for part, other in zip(row, like, strict=True))


@dataclass(frozen=True)
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
    shared: Dice | None = None  # dice that fall alike for all peers, for what is drawn in public; else `dice` do


class PeerMachine(Machine):
    """Runs one seat; `state` is the algorithm's state, a batch of one."""

    kinds: ClassVar[tuple[str, ...]]  # what its neighbors may say
    derived: ClassVar[tuple[str, ...]] = ("seat", "ids", "_links")  # what follows from the seat and the rest

    def __init__(self, seat: Seat) -> None:
        self.seat, self.count = seat, 0
        self.state: Any = None
        self.example: Any = None  # no row of a message, but of the types and widths of one
        self.ids = np.array([seat.me])
        self._links = Links.of_peer(self._graph(0), seat.me)
        self._calls = 0

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

    def memory(self) -> dict[str, Any]:
        """All that this machine remembers of its inputs, to go on from later."""
        return {name: value for name, value in vars(self).items() if name not in self.derived}

    def resume(self, memory: dict[str, Any]) -> None:
        """Go on, in the same seat, from where a machine was when it told its memory."""
        if set(memory) != set(self.memory()):
            raise LocalProtocolError("a peer was to go on from the memory of another kind of machine or version")
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

    def _home(self, clock: int, last: bool) -> Home:
        edges = self._links.edges.none() if last else self._links.edges
        count = np.array([self.count])
        return Home(self.seat.door, self.ids, count, np.array([clock]), np.array([last]), edges, self.seat.public)

    def _say(self, links: Links) -> Any:
        return spoken(self.seat.algorithm, self.state, links.edges)

    def _mine(self, partner: int) -> Any:
        """What this peer says to one other."""
        return take(self._say(Links.of_meetings(self.ids, np.array([partner]))).rows, ONE)

    def _start(self, last: bool) -> None:
        earlier, home = self.seat.state, self._home(0, last)
        algorithm = self.seat.algorithm
        self.state = begun(algorithm, home) if earlier is None else resumed(algorithm, earlier, home)
        self.example = take(self._say(self._links).rows, ONE[:0])

    def receive(self, now: float, sender: int, envelope: Envelope) -> list[Effect]:
        if self.state is None:
            raise LocalProtocolError("a peer was handed a message before it began; keep messages until then")
        self._check(sender, envelope)
        return self._handle(now, sender, envelope)

    def _check(self, sender: int, envelope: Envelope) -> None:
        """Refuse what is not of this protocol, before anything changes."""
        if envelope.kind not in self.kinds:
            raise RemoteProtocolError(f"peer {sender} sent a message of kind {envelope.kind!r}, which nobody expects")
        if type(envelope.number) is not int or envelope.number < 0:
            raise RemoteProtocolError(f"peer {sender} numbered its message {envelope.number!r}")
        if envelope.row is not None if envelope.kind in EMPTY else not fits(envelope.row, self.example):
            due = f"one row of the agreed types and widths, of numbers up to {LARGEST:g}"
            wanted = "nothing" if envelope.kind in EMPTY else due
            raise RemoteProtocolError(f"peer {sender} sent a message of kind {envelope.kind} that holds not {wanted}")

    def _check_neighbor(self, sender: int) -> None:
        if sender not in self._links.senders:
            raise RemoteProtocolError(f"peer {sender} is not a neighbor of peer {self.seat.me}")

    def wake(self, now: float, alarm: Alarm = "call", number: int = 0) -> list[Effect]:
        if self.state is None or (alarm == "call" and self._calls >= len(self.seat.calls)):
            raise LocalProtocolError(f"peer {self.seat.me} was woken at {now:g}, when its own clock did not ring")
        return self._ring(now, alarm, number)

    def skip(self) -> list[Effect]:
        """Miss one call of the own clock: the peer is away."""
        self._calls += 1
        return self._next_call()

    def _next_call(self) -> list[Effect]:
        return [WakeAt(float(self.seat.calls[self._calls]))] if self._calls < len(self.seat.calls) else []

    def _patience(self, now: float, alarm: Alarm, number: int, times: float = 1) -> list[Effect]:
        """The end of this peer's patience, so many times over, with whom it now waits for."""
        return [WakeAt(now + times * self.seat.timeout, alarm, number)] if math.isfinite(self.seat.timeout) else []


def peer_machine(seat: Seat) -> PeerMachine:
    """The machine that the algorithm's schedule asks for."""
    from bruit.protocols.meetings import MeetingPeer
    from bruit.protocols.rounds import RoundPeer
    from bruit.protocols.tokens import TokenPeer
    from bruit.protocols.wakes import WakePeer

    kinds: dict[type, type[PeerMachine]] = {Rounds: RoundPeer, Pairs: MeetingPeer, Walk: TokenPeer, Wakes: WakePeer}
    return kinds[type(seat.algorithm.schedule)](seat)
