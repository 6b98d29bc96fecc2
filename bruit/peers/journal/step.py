"""One step of a journal while it is being made: inputs, the spend and the messages they cause."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from bruit.errors import LocalProtocolError
from bruit.peers.journal.step_content import StoredMessage, Words
from bruit.privacy.events import from_json


class Input(NamedTuple):
    """What the peer reacted to: a message, or something of its own such as a wake, in which case it
    is the sender."""

    position: int  # from 1, without gaps
    kind: str
    sender: int
    sequence: int
    payload: bytes


class Spend(NamedTuple):
    """One ledger line; the event as JSON."""

    peer: int
    step: int
    clock: int
    event: str


@dataclass(kw_only=True)
class Step:
    """What one transaction will hold; nothing of it exists before it was committed."""

    _heard: dict[int, int]
    _sent: dict[int, int]
    _events: set[str]  # those known to be events
    inputs: list[Words] = field(default_factory=list)
    spends: list[Spend] = field(default_factory=list)
    messages: list[StoredMessage] = field(default_factory=list)
    heard: dict[int, int] = field(default_factory=dict)
    _new_sent: dict[int, int] = field(default_factory=dict)
    closed: bool = False

    def input(
        self, kind: str, sender: int, sequence: int, payload: bytes, stamp: bytes = b""
    ) -> None:
        """Remember what the peer is about to react to; sequences of one sender are 1, 2, 3, ...
        without gap. The stamp is what the sender's message carried, to be shown back to it."""
        self._open()
        sender, sequence = int(sender), int(sequence)
        due = self.last_sequence(sender) + 1
        if sequence != due:
            raise LocalProtocolError(
                f"input {sequence} of peer {sender} was to be recorded where {due} is due; drop "
                f"duplicates and refuse gaps before, see last_sequence"
            )
        self.inputs.append((kind, sender, sequence, payload, stamp))
        self.heard[sender] = sequence

    def spend(self, peer: int, step: int, clock: int, event: str) -> None:
        """One ledger line: at its own `step` and the schedule's position `clock`, the peer releases
        `event` (JSON)."""
        self._open()
        if event not in self._events:
            from_json(event)  # an event nobody can account for is refused before it is spent
            self._events.add(event)
        self.spends.append(Spend(int(peer), int(step), int(clock), event))

    def next_sequence(self, to: int) -> int:
        """The place that the next message to that peer will have: it is part of the bytes."""
        return self._new_sent.get(to, self._sent.get(to, 0)) + 1

    def send(self, to: int, head: bytes, body: bytes = b"") -> int:
        """Put a message, head + body, into the outbox and return its place; it can leave once the
        step has ended."""
        self._open()
        to, sequence = int(to), self.next_sequence(to)
        self.messages.append(StoredMessage(to, sequence, head, body))
        self._new_sent[to] = sequence
        return sequence

    def last_sequence(self, sender: int) -> int:
        """The last input of that sender, those of this step included."""
        return self.heard.get(sender, self._heard.get(sender, 0))

    def speaks(self) -> bool:
        """Whether somebody waits for its commit: it spends or says something."""
        return bool(self.spends or self.messages)

    def _open(self) -> None:
        if self.closed:
            raise LocalProtocolError("a step was used after it had ended; begin another one")
