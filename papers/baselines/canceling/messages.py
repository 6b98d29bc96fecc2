"""What participants and the board say to each other, and what machines ask their driver to do:
frozen records."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from bruit.arrays import Words
from bruit.statistics.average.canceling.simulation import SimulatedAverage

Alarm = Literal["exchange", "ready", "values", "openings"]


@dataclass(frozen=True)
class Key:
    """My public key, to a neighbor."""

    public: bytes


@dataclass(frozen=True)
class Confirm:
    """Proof that I derived the same seed, to a neighbor."""

    tag: bytes


@dataclass(frozen=True)
class Ready:
    """To the board: the neighbors with whom a seed is confirmed."""

    partners: tuple[int, ...]


@dataclass(frozen=True)
class Roster:
    """From the board: who takes part, and which exchanges count for the receiver (both ends said
    ready)."""

    peers: tuple[int, ...]
    partners: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Masked:
    """To the board: value, own noise and canceling noise in one row of words."""

    words: Words  # (width,)


@dataclass(frozen=True)
class Posted:
    """From any copy of the board: this peer's masked value is public. Its exchanges must never be
    opened."""

    peer: int


@dataclass(frozen=True)
class Dropped:
    """From the board: the closed list of peers that published nothing and never will."""

    peers: tuple[int, ...]


@dataclass(frozen=True)
class Opened:
    """To the board: the keys of this round shared with dropped peers."""

    keys: tuple[tuple[int, bytes], ...]


Message = Key | Confirm | Ready | Roster | Masked | Posted | Dropped | Opened


def payload_bytes(message: Message) -> int:
    """What a message carries: 32 bytes a key or tag, 4 a peer's name, 16 the key of a round, 8 a
    number.

    >>> payload_bytes(Key(bytes(32))), payload_bytes(Ready((1, 2, 5)))
    (32, 12)
    """
    if isinstance(message, Key):
        return len(message.public)
    if isinstance(message, Confirm):
        return len(message.tag)
    if isinstance(message, Ready):
        return 4 * len(message.partners)
    if isinstance(message, Roster):
        return 4 * (len(message.peers) + len(message.partners))
    if isinstance(message, Masked):
        return 8 * len(message.words)
    if isinstance(message, Posted):
        return 4
    if isinstance(message, Dropped):
        return 4 * len(message.peers)
    return sum(4 + len(key) for _, key in message.keys)


@dataclass(frozen=True)
class Send:
    """Deliver to another participant."""

    to: int
    message: Message


@dataclass(frozen=True)
class Post:
    """Deliver to the board."""

    message: Message


@dataclass(frozen=True)
class WakeAt:
    """Wake the machine with this alarm at that time."""

    time: float
    alarm: Alarm


@dataclass(frozen=True)
class Withdrawn:
    """This participant publishes nothing (more), and why."""

    reason: str


@dataclass(frozen=True)
class Exposed:
    """What this participant published is protected by its own noise only, and why."""

    reason: str


@dataclass(frozen=True)
class Failed:
    """There is no result, and why."""

    reason: str


Effect = Send | Post | WakeAt | Withdrawn | Exposed | SimulatedAverage | Failed
