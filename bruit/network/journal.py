"""The journal: the durable memory of one peer, and the keeper of the budget law.

    Spend is in the journal, synced, before the message that spends it leaves. A retransmission is the same bytes and
    costs nothing. After a kill at any point the peer goes on; noise is never redrawn for a value already released, and
    the recorded spend is an upper bound of what left the machine.

How: a peer is a deterministic function of its secret, its records (a fact, checked at every start) and its inputs in
order. One `step` commits inputs, the spend they caused and the messages they caused, all or nothing, with one sync;
messages can be read from the outbox only after that. After a restart the inputs are executed again, without a step,
and lead to the same state and the same noise. What was not committed was never sent.

An error inside a step leaves the peer in memory ahead of its journal, so the journal refuses to go on: open it again
and execute the inputs again. The one exception is a first message refused with RemoteProtocolError, which changes
nothing. Use one journal from one thread at a time.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from bruit.errors import ConfigError, LocalProtocolError, RemoteProtocolError
from bruit.network.journal_file import (
    check_same_run,
    check_seal,
    check_whole,
    connect,
    create,
    damaged,
    publish,
    seal,
    told,
)
from bruit.privacy.events import from_json

PAGE = 64  # lines read at a time
ACKNOWLEDGE_EVERY = 8  # steps between two writes of acknowledgments: losing some costs retransmissions, nothing else


class Input(NamedTuple):
    """What the peer reacted to: a message, or something of its own such as a wake, in which case it is the sender."""

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


@dataclass
class Step:
    """One transaction. Its lines exist only once it has ended without error."""

    _connection: sqlite3.Connection
    _path: Path
    _heard: dict[int, int]
    _sent: dict[int, int]
    _inputs: int = 0
    _effects: int = 0
    _new_sent: dict[int, int] = field(default_factory=dict)
    _new_heard: dict[int, int] = field(default_factory=dict)
    _closed: bool = False

    def input(self, kind: str, sender: int, sequence: int, payload: bytes) -> None:
        """Remember what the peer is about to react to; sequences of one sender are 1, 2, 3, ... without gap."""
        sender, sequence = int(sender), int(sequence)
        due = self.last_sequence(sender) + 1
        if sequence != due:
            raise LocalProtocolError(f"input {sequence} of peer {sender} was to be recorded where {due} is due; drop "
                                     f"duplicates and refuse gaps before, see last_sequence")  # fmt: skip
        content = (str(kind), sender, sequence, bytes(payload))
        self._write("INSERT INTO inputs (kind, sender, sequence, payload, seal) VALUES (?, ?, ?, ?, ?)", content)
        self._new_heard[sender] = sequence
        self._inputs += 1

    def spend(self, peer: int, step: int, clock: int, event: str) -> None:
        """One ledger line: at its own `step` and the schedule's position `clock`, the peer releases `event` (JSON)."""
        from_json(event)  # an event nobody can account for is refused before it is spent
        self._effects += 1
        content = (int(peer), int(step), int(clock), str(event))
        self._write("INSERT INTO spends (peer, step, clock, event, seal) VALUES (?, ?, ?, ?, ?)", content)

    def next_sequence(self, to: int) -> int:
        """The place that the next message to that peer will have: it is part of the bytes."""
        return self._new_sent.get(to, self._sent.get(to, 0)) + 1

    def send(self, to: int, payload: bytes) -> int:
        """Put a message into the outbox and return its place; it can leave once the step has ended."""
        to, sequence = int(to), self.next_sequence(to)
        self._effects += 1
        content = (to, sequence, bytes(payload))
        self._write("INSERT INTO outbox (receiver, sequence, payload, seal) VALUES (?, ?, ?, ?)", content)
        self._new_sent[to] = sequence
        return sequence

    def last_sequence(self, sender: int) -> int:
        """The last input of that sender, those of this step included."""
        return self._new_heard.get(sender, self._heard.get(sender, 0))

    def _write(self, sql: str, content: tuple[object, ...]) -> None:
        if self._closed:
            raise LocalProtocolError("a step was used after it had ended; begin another one")
        with told(self._path):
            self._connection.execute(sql, (*content, seal(*content)))

    def _refused_at_once(self, error: BaseException) -> bool:
        """Whether a machine refused its first message, and so is as it was before the step."""
        return isinstance(error, RemoteProtocolError) and self._inputs <= 1 and not self._effects


class Journal:
    """One run of one peer, on disk. Made by `Journal.open`; close it, or use it in a `with` statement."""

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        self.path, self._connection = path, connection
        self._step: Step | None = None
        self._broken = ""
        self._heard: dict[int, int] = {}
        self._sent: dict[int, int] = {}
        self._acknowledged: dict[int, int] = {}
        self._unwritten: set[int] = set()  # receivers whose acknowledgments are not yet on disk
        self._late = 0  # steps since they were last written

    @classmethod
    def open(cls, path: str | Path, run_id: str, facts: Mapping[str, str]) -> Journal:
        """Begin or go on; `facts` are digests of what fixes the values: records, mechanism, experiment.

        ConfigError: another run, another process, a damaged or unwritable file. PrivacyError: a fact has changed.
        """
        path = Path(path)
        if not all(isinstance(text, str) for text in (run_id, *facts, *facts.values())):
            raise ConfigError(f"the run id and the facts of a journal are texts, found {run_id!r}, {dict(facts)!r}")
        if not path.exists():
            left = path.with_name(path.name + "-wal")
            if left.exists():
                raise damaged(path, f"the file itself is missing, but {left.name} is there")
            create(path, run_id, facts)
        connection = connect(path)
        try:
            with told(path):
                check_same_run(connection, path, run_id, facts)
                journal = cls(path, connection)
                journal._recall()
        except BaseException:
            connection.close()
            raise
        return journal

    def _recall(self) -> None:
        query = self._connection.execute
        self._heard = dict(query("SELECT sender, MAX(sequence) FROM inputs GROUP BY sender"))
        for receiver, sent, acknowledged in query("SELECT receiver, sent, acknowledged FROM links"):
            self._sent[receiver], self._acknowledged[receiver] = sent, acknowledged

    def secret(self) -> bytes:
        """The 16 bytes from which all noise of this run is derived; drawn once, when the journal was made."""
        self._ready()
        with told(self.path):
            (value,) = self._connection.execute("SELECT value FROM header WHERE name = 'secret'").fetchone()
        return bytes(value)

    @contextmanager
    def step(self) -> Iterator[Step]:
        """One transaction: on leaving it without error everything recorded is on disk, synced; else nothing is."""
        self._ready()
        step = Step(self._connection, self.path, self._heard, self._sent)
        with told(self.path):
            self._connection.execute("BEGIN IMMEDIATE")
        self._step = step
        try:
            yield step
            self._commit(step)
        except BaseException as error:
            if not step._refused_at_once(error):
                self._broken = f"a step failed ({type(error).__name__}), and the peer in memory is ahead of its journal"
            self._roll_back()
            raise
        finally:
            self._step, step._closed = None, True

    def _commit(self, step: Step) -> None:
        with told(self.path):
            for receiver, sent in step._new_sent.items():
                self._connection.execute("INSERT INTO links VALUES (?, ?, 0) ON CONFLICT (receiver) "
                                         "DO UPDATE SET sent = excluded.sent", (receiver, sent))  # fmt: skip
            due = self._late >= ACKNOWLEDGE_EVERY
            if due:
                self._write_acknowledgments()
            self._connection.execute("COMMIT")
        if due:
            self._unwritten.clear()
        self._late = 0 if due else self._late + 1
        self._heard.update(step._new_heard)
        self._sent.update(step._new_sent)

    def _roll_back(self) -> None:
        try:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
        except sqlite3.Error as error:  # the error that led here is told; this one only ends the journal's use
            self._broken = f"a step could not be undone ({error})"

    def _ready(self) -> None:
        """Outside a step, on a journal that may be used."""
        if self._broken:
            raise LocalProtocolError(f"the journal {self.path} cannot be used any more: {self._broken}; open it again "
                                     f"and execute its inputs again")  # fmt: skip
        if self._step is not None:
            raise LocalProtocolError(f"the journal {self.path} is in the middle of a step; what is in it is not on "
                                     f"disk yet, so nothing may be read or sent before it ends")  # fmt: skip

    def _lines(self, sql: str, start: int, *keys: int) -> Iterator[tuple[int, tuple[object, ...], bytes]]:
        """(place, content, seal) of the lines after `start`, a page at a time; the place is the first column."""
        while True:
            self._ready()
            with told(self.path):
                page = self._connection.execute(f"{sql} LIMIT {PAGE}", (start, *keys)).fetchall()
            for place, *content, found in page:
                yield place, tuple(content), found
                start = place
            if len(page) < PAGE:
                return

    def inputs(self, after: int = 0) -> Iterator[Input]:
        """The committed inputs after that position, in order: execute them again after a restart."""
        sql = "SELECT position, kind, sender, sequence, payload, seal FROM inputs WHERE position > ? ORDER BY position"
        for due, (position, content, found) in enumerate(self._lines(sql, after), after + 1):
            if position != due:
                raise damaged(self.path, f"input {due} is missing")
            check_seal(found, self.path, f"input {position}", *content)
            yield Input(position, *content)  # type: ignore[arg-type]

    def outbox(self, to: int, after: int = 0) -> Iterator[tuple[int, bytes]]:
        """(sequence, bytes) of the messages to that peer which it has not acknowledged, in order, as first written."""
        sql = "SELECT sequence, payload, seal FROM outbox WHERE sequence > ? AND receiver = ? ORDER BY sequence"
        for sequence, (payload,), found in self._lines(sql, max(after, self._acknowledged.get(to, 0)), to):
            check_seal(found, self.path, f"message {sequence} to peer {to}", to, sequence, payload)
            if isinstance(payload, bytes) and sequence > self._acknowledged.get(to, 0):
                yield sequence, payload

    def acknowledge(self, to: int, sequence: int) -> None:
        """That peer has all messages up to `sequence` in its own journal; they are forgotten with a later step.

        An acknowledgment lost in a crash costs one retransmission of the same bytes, so it needs no sync of its own.
        """
        sent = self._sent.get(to, 0)
        if not 0 <= sequence <= sent:
            raise RemoteProtocolError(f"peer {to} acknowledges message {sequence}, but the journal {self.path} knows "
                                      f"of {sent}: either that peer is wrong, or this journal is an old copy; if so, "
                                      f"stop, or the same noise will protect two different values")  # fmt: skip
        if sequence > self._acknowledged.get(to, 0):
            self._acknowledged[to] = sequence
            self._unwritten.add(to)

    def _write_acknowledgments(self) -> None:
        for to in self._unwritten:
            line = (self._acknowledged[to], to)
            self._connection.execute("UPDATE links SET acknowledged = ? WHERE receiver = ?", line)
            self._connection.execute("DELETE FROM outbox WHERE sequence <= ? AND receiver = ?", line)

    def last_sequence(self, sender: int) -> int:
        """The last committed input of that sender, 0 if none: what may be acknowledged; what comes again is dropped."""
        return self._heard.get(sender, 0)

    def last_sent(self, to: int) -> int:
        """The last committed message to that peer, 0 if none."""
        return self._sent.get(to, 0)

    def spent(self) -> list[Spend]:
        """All ledger lines, in order."""
        self._ready()
        return _spent(self._connection, self.path)

    def snapshot(self, position: int, state: bytes) -> None:
        """Keep the peer's whole state after the first `position` inputs, to execute only later ones again."""
        self._ready()
        with told(self.path):
            (known,) = self._connection.execute("SELECT COALESCE(MAX(position), 0) FROM inputs").fetchone()
            if not 0 <= position <= known:
                raise LocalProtocolError(f"a snapshot after {position} inputs cannot be kept: {known} are committed")
            self._connection.execute("INSERT OR REPLACE INTO snapshot VALUES (1, ?, ?, ?)",
                                     (position, state, seal(position, state)))  # fmt: skip

    def latest_snapshot(self) -> tuple[int, bytes] | None:
        """(position, state) as last kept, or None."""
        self._ready()
        with told(self.path):
            line = self._connection.execute("SELECT position, state, seal FROM snapshot").fetchone()
        if line is None:
            return None
        check_seal(line[2], self.path, "the snapshot", line[0], line[1])
        return line[0], line[1]

    def backup(self, path: str | Path) -> None:
        """Copy the journal, without its secret: a record of what was spent, from which no peer can go on."""
        self._ready()
        target = Path(path)

        def fill(draft: sqlite3.Connection) -> None:
            self._connection.backup(draft)
            draft.execute("PRAGMA journal_mode = DELETE")
            draft.execute("PRAGMA secure_delete = ON")
            draft.execute("DELETE FROM header WHERE name = 'secret'")
            draft.execute("VACUUM")

        try:
            publish(target, fill)
        except FileExistsError:
            raise ConfigError(f"{target} exists already; choose another name for the copy") from None

    def close(self) -> None:
        """Write what is pending and give the file free."""
        try:
            if self._unwritten and not self._broken:
                self._late = ACKNOWLEDGE_EVERY
                with self.step():
                    pass
        finally:
            self._broken = self._broken or "it was closed"
            self._connection.close()

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def recorded_spend(path: str | Path) -> list[Spend]:
    """The ledger lines in a copy of a journal, or in the journal of a peer that does not run."""
    path = Path(path)
    with told(path):
        connection = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=0)
        with closing(connection):
            check_whole(connection, path)
            return _spent(connection, path)


def _spent(connection: sqlite3.Connection, path: Path) -> list[Spend]:
    with told(path):
        lines = connection.execute("SELECT line, peer, step, clock, event, seal FROM spends ORDER BY line").fetchall()
    for due, (line, *content, found) in enumerate(lines, 1):
        if line != due:
            raise damaged(path, f"ledger line {due} is missing")
        check_seal(found, path, f"ledger line {line}", *content)
    return [Spend(*line[1:5]) for line in lines]
