"""What both sides of the protocol are: machines that turn a message into messages, without sockets,
clocks or threads.

    message = one byte that says its kind, then its content; a kind that is not due is refused
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque

from bruit.errors import LocalProtocolError, RemoteProtocolError

KINDS = ("hello", "points", "point", "columns", "tables", "outputs", "own")


class HolderMachine(ABC):
    """One side. `done` turns true with its last message."""

    done: bool = False

    @abstractmethod
    def start(self) -> list[bytes]:
        """What to say before anything was heard."""

    @property
    @abstractmethod
    def largest(self) -> int:
        """Bytes of the longest message that an honest party may send now: more are not even
        read."""

    @abstractmethod
    def receive(self, message: bytes) -> list[bytes]:
        """What to answer; RemoteProtocolError when the message is not what an honest party would
        send now."""


def pack(kind: str, content: bytes) -> bytes:
    """A message."""
    return bytes([KINDS.index(kind)]) + content


def unpack(message: bytes, due: str) -> bytes:
    """The content of a message of the kind that is due."""
    kind = KINDS[message[0]] if message and message[0] < len(KINDS) else None
    if kind != due:
        raise RemoteProtocolError(
            f"the other holder sent {kind or 'an unknown message'!r} where {due!r} was due; is it "
            "the same version of bruit, in the other role?"
        )
    return message[1:]


def exactly(content: bytes, size: int, what: str) -> bytes:
    """The content, if it has the only size it can have."""
    if len(content) != size:
        raise RemoteProtocolError(f"{what} must be {size} bytes long, found {len(content)}")
    return content


def converse(one: HolderMachine, other: HolderMachine) -> int:
    """Both machines in one process, over a link that loses nothing: tests and rehearsals. Gives the
    bytes said."""
    waiting = deque((other, message) for message in one.start())
    waiting.extend((one, message) for message in other.start())
    sent = 0
    while waiting:
        hearer, message = waiting.popleft()
        sent += len(message)
        speaker = one if hearer is other else other
        waiting.extend((speaker, answer) for answer in hearer.receive(message))
    if not (one.done and other.done):
        raise LocalProtocolError("both holders wait for each other")
    return sent
