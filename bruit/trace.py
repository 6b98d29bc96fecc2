"""Trace: what happened in a run, without meaning; View: the part of it an observer sees.

Meetings in order, faults, and, for watched observers only, the payloads they received. A trace that can be
regenerated from its schedule and seed needs no columns on disk.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from bruit.arrays import Array, Ints
from bruit.errors import ConfigError


class Meetings(NamedTuple):
    """What happened in order of time: `a` called `b` (pairs), handed the token to `b` (walk), or woke (b = a)."""

    time: Array  # (events,)
    a: Ints  # (events,)
    b: Ints  # (events,)

    @classmethod
    def none(cls) -> Meetings:
        return cls(np.zeros(0), np.zeros(0, np.int64), np.zeros(0, np.int64))

    def sorted(self) -> Meetings:
        order = np.argsort(self.time, kind="stable")
        return Meetings(self.time[order], self.a[order], self.b[order])

    def of(self, peer: int) -> Meetings:
        """The events this peer starts."""
        mine = self.a == peer
        return Meetings(self.time[mine], self.a[mine], self.b[mine])


class Faults(NamedTuple):
    """Links that were down, per round, in both directions (a < b); a peer that is away has all its links down."""

    round: Ints  # (faults,)
    a: Ints
    b: Ints

    @classmethod
    def none(cls) -> Faults:
        return cls(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, np.int64))

    def in_round(self, number: int) -> tuple[Ints, Ints]:
        here = self.round == number
        return self.a[here], self.b[here]


class Received(NamedTuple):
    """One payload row that an observer received: when, from whom, to whom, what."""

    clock: int
    sender: int
    receiver: int
    row: Any


@dataclass
class Trace:
    """The story of a run; `received` holds payloads of watched peers only."""

    peers: int
    steps: int
    meetings: Meetings = field(default_factory=Meetings.none)
    faults: Faults = field(default_factory=Faults.none)
    watched: frozenset[int] = frozenset()
    received: list[Received] = field(default_factory=list)
    reads: list[dict[int, int]] = field(default_factory=list)  # per wake: which message of each neighbor was read
    messages: int = 0
    refusals: int = 0
    retransmissions: int = 0

    def view(self, observers: frozenset[int]) -> View:
        missing = observers - self.watched
        if missing:
            raise ConfigError(
                f"peer {min(missing)} was not watched, so its view was not kept;"
                f" run again with watch={sorted(observers)}"
            )
        seen = [message for message in self.received if message.receiver in observers]
        return View(observers, seen, [message for message in seen if message.sender not in observers])


@dataclass(frozen=True)
class View:
    """What a peer or a coalition sees: every message it received, and those that came from outside of it."""

    observers: frozenset[int]
    messages: list[Received]
    foreign: list[Received]
