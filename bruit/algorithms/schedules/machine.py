"""Machine: a protocol without clock, thread or socket.

`begin`, `receive` and `wake` map (now, input) to a list of effects; whoever drives the machine, a
simulator or a real network, carries them out. Every effect is a frozen record.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, Literal

Kind = Literal[
    "round",
    "apart",
    "pact",
    "offer",
    "answer",
    "busy",
    "reply",
    "token",
    "ask",
    "go",
    "stop",
    "past",
    "still",
    "fence",
    "end",
    "result",
    "vouch",
    "post",
    "ballot",
    "list",
    "speak",
    "sum",
    "fetch",
    "record",
]
Alarm = Literal[
    "call",
    "round",
    "more",
    "offer",
    "reply",
    "token",
    "gone",
    "asked",
    "settled",
    "ballot",
    "grace",
    "again",
]


@dataclass(frozen=True)
class Envelope:
    """A message between two peers: its kind, its place in the protocol, and the payload row (None
    when empty).

    `number` is the round, the hop, or the sender's count of exchanges; with the kind and the sender
    it names the exchange, so that a repeated message is recognized.
    """

    kind: Kind
    number: int
    row: Any = None


@dataclass(frozen=True)
class Send:
    """Deliver an envelope to another peer."""

    to: int
    envelope: Envelope


@dataclass(frozen=True)
class WakeAt:
    """Call `wake` with the same alarm and number at that time: the peer's own clock, or the end of
    its patience."""

    time: float
    alarm: Alarm = "call"
    number: int = 0


@dataclass(frozen=True)
class Met:
    """A meeting, hop or wake took place at this peer: `other` called, handed over, or is the peer
    itself.

    `reads` names, for a wake, which message of each neighbor was the latest to have arrived.
    """

    other: int
    number: int
    reads: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True)
class Missed:
    """This peer went on without `other` in exchange `number`; "late" when what was missed was made
    up for later."""

    other: int
    number: int
    late: bool = False


@dataclass(frozen=True)
class Skipped:
    """Call `number` of this peer's own clock led to nothing: `others` had never said a word, or, if
    nobody is named, this peer was in the middle of another meeting, or the one it called was."""

    number: int
    others: tuple[int, ...] = ()


@dataclass(frozen=True)
class Done:
    """This peer has nothing more to do."""


@dataclass(frozen=True)
class GaveUp:
    """This peer does not go on, and says why; a later start may try again."""

    why: str


Effect = Send | WakeAt | Met | Missed | Skipped | Done | GaveUp


class Machine(ABC):
    """Abstract; one instance per participant."""

    @abstractmethod
    def begin(self, now: float) -> list[Effect]: ...

    @abstractmethod
    def receive(self, now: float, sender: int, envelope: Envelope) -> list[Effect]: ...

    @abstractmethod
    def wake(self, now: float, alarm: Alarm = "call", number: int = 0) -> list[Effect]: ...
