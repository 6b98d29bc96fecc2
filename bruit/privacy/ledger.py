"""The ledger: one line for every release, in columns (peer, step, clock, event).

Accountants turn a ledger into epsilons; they never look at values. Events are interned: a million
Gaussian releases of one mechanism share one record.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import zip_longest
from pathlib import Path

import numpy as np

from bruit.arrays import Bools, Ints
from bruit.errors import ConfigError, PrivacyError
from bruit.privacy.events import Event, Exact, Mask, SampledGaussianEvent, from_json
from bruit.privacy.toolbox.pld import compose_epsilon, most_releases, tally

COLUMNS = ("peer", "step", "clock", "event")
AT_MOST = 1 + 1e-9  # what floats may add: noise that is made for exactly a budget keeps it


@dataclass(frozen=True)
class Budget:
    """What one peer may spend in all: (epsilon, delta) against everybody, composed over all its
    releases; releases under masks count as what is promised of them, against as many colluders as
    were planned for."""

    epsilon: float
    delta: float = 1e-6

    def __post_init__(self) -> None:
        if not (self.epsilon > 0 and 0 <= self.delta < 1):
            raise PrivacyError(
                f"a budget needs epsilon > 0 and 0 <= delta < 1, found {self.epsilon}, {self.delta}"
            )

    def within(self, other: Budget) -> bool:
        """Whether whoever keeps this budget keeps the other one."""
        return self.epsilon <= other.epsilon and self.delta <= other.delta

    def spent(self, ledger: Ledger, peer: int) -> float:
        """The epsilon at this delta of what the peer's lines say so far."""
        return _composed(tuple(_promised(ledger, peer)), self.delta)

    def allows(self, ledger: Ledger, peer: int, event: Event) -> bool:
        """Whether one more such release stays within the budget."""
        event = event.promised()
        counts = [*_promised(ledger, peer), (event, 1)]
        whole = tally(counts)
        if (
            not (whole.exact or whole.gaussian() or whole.failure)
            and whole.basic() <= self.epsilon * AT_MOST
        ):
            # pure releases that add up to no more: known without a privacy loss distribution
            return True
        alike = sum(count for one, count in counts if one == event)
        others = any(count for one, count in counts if one != event and not isinstance(one, Mask))
        if isinstance(event, SampledGaussianEvent) and not others:
            return alike <= most_releases(event, self.epsilon * AT_MOST, self.delta)
        return compose_epsilon(counts, self.delta) <= self.epsilon * AT_MOST


@lru_cache(maxsize=64)
def _composed(counts: tuple[tuple[Event, int], ...], delta: float) -> float:
    """Whoever watches a peer asks again and again, mostly with nothing new in its ledger."""
    return compose_epsilon(counts, delta)


def _promised(ledger: Ledger, peer: int) -> list[tuple[Event, int]]:
    """What a budget charges one peer for."""
    return [(event.promised(), count) for event, count in ledger.counts_of(peer)]


@dataclass(kw_only=True)
class Ledger:
    """Append-only columns; `record` costs O(lines) and copies nothing it already holds.

    Columns and counts are put together when they are asked for, and kept: a later question pays for
    the lines that came since. As lines are only ever added, what is kept stays true."""

    peers: int
    events: list[Event] = field(default_factory=list)
    _index: dict[Event, int] = field(default_factory=dict, repr=False)
    _parts: list[tuple[Ints, Ints, Ints, int]] = field(default_factory=list, repr=False)
    _columns: Ints = field(
        default_factory=lambda: np.zeros((4, 0), np.int64), repr=False, compare=False
    )
    _joined: int = field(default=0, repr=False, compare=False)  # calls that are in the columns
    _table: Ints = field(
        default_factory=lambda: np.zeros((0, 0), np.int64), repr=False, compare=False
    )
    _counted: int = field(default=0, repr=False, compare=False)  # calls that are in the table

    def record(self, peer: Ints, step: Ints, clock: Ints, event: Event) -> None:
        """One line per peer: at its own `step`, at the schedule's position `clock`, it released
        `event`."""
        if not len(peer):
            return
        if event not in self._index:
            self._index[event] = len(self.events)
            self.events.append(event)
        self._parts.append((peer, step, clock, self._index[event]))

    def digest(self) -> str:
        """A name for all lines in order; it holds no values."""
        found = hashlib.sha256(json.dumps([one.describe() for one in self.events]).encode())
        for name in COLUMNS:
            found.update(np.ascontiguousarray(self.column(name), "<i8").tobytes())
        return found.hexdigest()

    def events_of(self, peer: int) -> list[Event]:
        """The kinds of data releases of a peer; those of all where it has made none."""
        mine = [event for event, count in self.counts_of(peer) if count]
        known = [event for event in mine if not isinstance(event, Mask)]
        return known or [event for event in self.events if not isinstance(event, Mask)]

    def __len__(self) -> int:
        return sum(len(part[0]) for part in self._parts)

    def column(self, name: str) -> Ints:
        """One column: "peer", "step", "clock" or "event" (an index into `events`)."""
        place = COLUMNS.index(name)
        if self._joined < len(self._parts):
            self._columns = _columns_of(self._columns, self._parts[self._joined :])
            self._joined = len(self._parts)
        column: Ints = self._columns[place]
        return column

    @property
    def calls(self) -> int:
        """How many times something was recorded; see `since`."""
        return len(self._parts)

    def head(self, calls: int) -> Ledger:
        """The ledger as it was after that many calls, as one of its own."""
        return Ledger(
            peers=self.peers,
            events=list(self.events),
            _index=dict(self._index),
            _parts=self._parts[:calls],
        )

    def since(self, calls: int) -> Iterator[tuple[int, int, int, Event]]:
        """The lines (peer, step, clock, event) recorded after that many calls."""
        for peer, step, clock, event in self._parts[calls:]:
            for line in zip(peer.tolist(), step.tolist(), clock.tolist(), strict=True):
                yield (*line, self.events[event])

    def tail(self, lines: int) -> Ledger:
        """The lines after the first so many, as a ledger of their own."""
        rest = Ledger(peers=self.peers)
        for peer, step, clock, event in self._parts:
            if lines < len(peer):
                rest.record(peer[lines:], step[lines:], clock[lines:], self.events[event])
            lines = max(0, lines - len(peer))
        return rest

    def counts(self) -> Ints:
        """How often each peer released each event  # (peers, events)."""
        return self._counts().copy()

    def counts_of(self, peer: int) -> list[tuple[Event, int]]:
        """How often one peer released each event."""
        return list(zip(self.events, self._counts()[peer].tolist(), strict=True))

    def _counts(self) -> Ints:
        if self._table.shape != (self.peers, len(self.events)):
            table = np.zeros((self.peers, len(self.events)), np.int64)
            table[: len(self._table), : self._table.shape[1]] = self._table
            self._table = table
        for peer, _, _, event in self._parts[self._counted :]:
            if len(peer) == 1:
                self._table[peer[0], event] += 1
            else:
                self._table[:, event] += np.bincount(peer, minlength=self.peers)
        self._counted = len(self._parts)
        return self._table

    def is_data(self) -> Bools:
        """Which events read data (masks do not)  # (events,)."""
        return np.array([not isinstance(event, Mask) for event in self.events], bool)

    def has_exact(self) -> bool:
        """Whether anybody read data without a mechanism."""
        return any(isinstance(event, Exact) for event in self.events)

    def extend(self, other: Ledger) -> None:
        """Append another ledger of the same peers: phases of one story share one ledger."""
        if other.peers != self.peers:
            raise PrivacyError(
                f"cannot join the ledgers of {self.peers} and of {other.peers} peers: they differ"
            )
        for peer, step, clock, event in other._parts:
            self.record(peer, step, clock, other.events[event])

    def merge(self, parts: Sequence[Ledger]) -> None:
        """Append the lines of disjoint groups of peers that recorded the same events at the same
        calls, as if all had been one batch, in the order of the peers."""
        for calls in zip_longest(*(part._parts for part in parts)):
            events = {
                None if call is None else part.events[call[3]]
                for call, part in zip(calls, parts, strict=True)
            }
            event = events.pop()
            if events or event is None:
                raise PrivacyError("groups of peers wrote different lines, which make no ledger")
            peer, step, clock = (np.concatenate([call[k] for call in calls]) for k in range(3))
            order = np.argsort(peer, kind="stable")
            self.record(peer[order], step[order], clock[order], event)

    def save(self, path: Path) -> None:
        columns = {name: self.column(name) for name in COLUMNS}
        text = np.array([event.to_json() for event in self.events], dtype=np.str_)
        np.savez_compressed(path, peers=np.int64(self.peers), events=text, **columns)  # type: ignore[arg-type]

    @classmethod
    def load(cls, path: Path) -> Ledger:
        with np.load(path, allow_pickle=False) as stored:
            ledger = cls(peers=int(stored["peers"]))
            columns = [stored[name] for name in COLUMNS]
            events = [from_json(str(text)) for text in stored["events"]]
        if len({len(column) for column in columns}) != 1:
            raise ConfigError(f"the ledger {path} has columns of different lengths; it is broken")
        peer, step, clock, kind = columns
        if any(
            len(part) and not 0 <= part.min() <= part.max() < most
            for part, most in ((peer, ledger.peers), (kind, len(events)))
        ):
            raise ConfigError(
                f"the ledger {path} names a peer or an event that does not exist; it is broken"
            )
        cuts = np.flatnonzero(np.diff(kind)) + 1
        for lines in np.split(np.arange(len(kind)), cuts):
            if len(lines):
                ledger.record(peer[lines], step[lines], clock[lines], events[int(kind[lines[0]])])
        return ledger


def _columns_of(known: Ints, parts: list[tuple[Ints, Ints, Ints, int]]) -> Ints:
    """The known columns and those of more parts, not to be written to  # (4, lines)."""
    sizes = np.array([len(part[0]) for part in parts])
    more = [
        np.concatenate([np.asarray(part[place], np.int64).reshape(-1) for part in parts])
        for place in range(3)
    ]
    kinds = np.repeat(np.array([part[3] for part in parts], np.int64), sizes)
    joined = np.concatenate((known, np.stack((*more, kinds))), axis=1)
    joined.flags.writeable = False
    return joined
