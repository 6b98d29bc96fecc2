"""Trace: what happened in a run, without meaning; View: the part of it an observer sees.

Meetings in order, faults, and, for watched observers only, the payloads they received. A trace that
can be regenerated from its schedule and seed needs no columns on disk.
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from bruit.arrays import Array, Ints
from bruit.errors import ConfigError
from bruit.notebook_table import html_table


class Meetings(NamedTuple):
    """What happened in order of time: `a` called `b` (pairs), handed the token to `b` (walk), or
    woke (b = a)."""

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
    """Links that were down, per round, in both directions (a < b); a peer that is away has all its
    links down."""

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


@dataclass(kw_only=True)
class Trace:
    """The story of a run; `received` holds payloads of watched peers only."""

    peers: int
    steps: int
    meetings: Meetings = field(default_factory=Meetings.none)
    faults: Faults = field(default_factory=Faults.none)
    watched: frozenset[int] = frozenset()
    received: list[Received] = field(default_factory=list, repr=False)
    reads: list[dict[int, int]] = field(
        default_factory=list
    )  # per wake: which message of each neighbor was read
    messages: int = 0
    refusals: int = 0
    retransmissions: int = 0
    missed: int = 0  # exchanges that some real peer went on without
    bytes: int = 0  # of the payloads of these messages, without headers and repetitions

    def view(self, observers: frozenset[int]) -> View:
        missing = observers - self.watched
        if missing:
            raise ConfigError(
                f"peer {min(missing)} was not watched, so its view was not kept;"
                f" run again with watch={sorted(observers)}"
            )
        seen = [message for message in self.received if message.receiver in observers]
        return View(
            observers, seen, [message for message in seen if message.sender not in observers]
        )

    def columns(self) -> dict[str, Any]:
        """The trace as plain arrays, for a file; `trace_from` reads them back."""
        versions = [
            (event, peer, number)
            for event, read in enumerate(self.reads)
            for peer, number in read.items()
        ]
        heard = [(message.clock, message.sender, message.receiver) for message in self.received]
        return {
            "time": self.meetings.time,
            "a": self.meetings.a,
            "b": self.meetings.b,
            "round": self.faults.round,
            "dead_a": self.faults.a,
            "dead_b": self.faults.b,
            "reads": np.array(versions, np.int64).reshape(-1, 3),
            "wakes": np.int64(len(self.reads)),
            "watched": np.array(sorted(self.watched), np.int64),
            "heard": np.array(heard, np.int64).reshape(-1, 3),
            **_payloads([message.row for message in self.received]),
        }


PAYLOAD, FIELD = "payload", "payload."


def _payloads(rows: list[Any]) -> dict[str, Any]:
    """Received rows as one column, or one per field when messages are records."""
    if not rows:
        return {}
    if isinstance(rows[0], np.ndarray):
        return {PAYLOAD: np.concatenate(rows)}
    return {
        FIELD + name: np.concatenate([getattr(row, name) for row in rows])
        for name in rows[0]._fields
    }


def trace_from(
    columns: Mapping[str, Any], peers: int, steps: int, counts: Mapping[str, int]
) -> Trace:
    """The trace that `Trace.columns` wrote; `counts` are its messages, refusals, retransmissions,
    misses and bytes."""
    reads: list[dict[int, int]] = [{} for _ in range(int(columns["wakes"]))]
    for event, peer, number in columns["reads"].tolist():
        reads[event][peer] = number
    names = [name[len(FIELD) :] for name in columns if name.startswith(FIELD)]
    record = namedtuple("Row", names) if names else None
    received = []
    for k, (clock, sender, receiver) in enumerate(columns["heard"].tolist()):
        one = slice(k, k + 1)
        row = (
            columns[PAYLOAD][one]
            if record is None
            else record(*(columns[FIELD + name][one] for name in names))
        )
        received.append(Received(clock, sender, receiver, row))
    return Trace(
        peers=peers,
        steps=steps,
        meetings=Meetings(columns["time"], columns["a"], columns["b"]),
        faults=Faults(columns["round"], columns["dead_a"], columns["dead_b"]),
        watched=frozenset(columns["watched"].tolist()),
        received=received,
        reads=reads,
        messages=counts["messages"],
        refusals=counts["refusals"],
        retransmissions=counts["retransmissions"],
        missed=counts["missed"],
        bytes=counts.get("bytes", 0),
    )


@dataclass(frozen=True)
class View:
    """What a peer or a coalition sees: every message it received, and those that came from outside
    of it."""

    observers: frozenset[int]
    messages: list[Received]
    foreign: list[Received]

    def _repr_html_(self) -> str:
        who = ", ".join(map(str, sorted(self.observers)))
        senders = len({message.sender for message in self.foreign})
        return html_table(
            f"View of peers {who}",
            [
                ("messages received", len(self.messages)),
                ("from outside", len(self.foreign)),
                ("senders outside", senders),
            ],
        )
