"""The journal: the durable memory of one peer, and the keeper of the budget law.

    Spend is in the journal, synced, before the message that spends it leaves. A retransmission is the same bytes and
    costs nothing. After a kill at any point the peer goes on; noise is never redrawn for a value already released, and
    the recorded spend is an upper bound of what left the machine.

How: a peer is a deterministic function of its secret, its records (a fact, checked at every start) and its inputs in
order. One `step` commits inputs, the spend they caused and the messages they caused, all or nothing, with one sync;
messages can be read from the outbox only after that. After a restart the inputs are executed again, without a step,
and lead to the same state and the same noise. What was not committed was never sent. A `snapshot` of the peer's state
replaces the inputs that led to it, in one transaction; ledger lines and unconfirmed messages stay.

An error inside a step leaves the peer in memory ahead of its journal, so the journal refuses to go on: open it again
and execute the inputs again. The one exception is a first message refused with RemoteProtocolError, which changes
nothing. Use one journal from one thread at a time.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path

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
from bruit.network.journal_step import Input, Spend, Step
from bruit.network.outbox import Outbox
from bruit.network.step_content import pack, unpack

__all__ = ["Input", "Journal", "Spend", "Step", "copy_ledger", "recorded_spend"]


class Journal:
    """One run of one peer, on disk. Made by `Journal.open`; close it, or use it in a `with` statement."""

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        self.path, self._connection = path, connection
        self._outbox = Outbox(connection, path)
        self._step: Step | None = None
        self._broken = ""
        self._heard: dict[int, int] = {}
        self._events: set[str] = set()
        self._first, self._number = 0, 0  # the last step before the snapshot, and of all
        self._before, self._inputs = 0, 0  # how many inputs the snapshot replaces, and how many there were in all
        self.volume = 0  # bytes of steps since the last snapshot

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
        line = self._snapshot_line()
        if line is not None:
            places = json.loads(line[1])
            heard, sent, acknowledged = ({int(peer): place for peer, place in places[name]}
                                         for name in ("heard", "sent", "acknowledged"))  # fmt: skip
            self._heard, self._number, self._inputs = heard, places["step"], places["inputs"]
            self._outbox.restore(sent, acknowledged)
        self._first, self._before = self._number, self._inputs
        for number, content in self._contents():
            found = unpack(content)
            self._heard |= {sender: sequence for _, sender, sequence, _ in found.inputs}
            self._outbox.found(number, found.messages, found.acknowledged)
            self._number, self._inputs = number, self._inputs + len(found.inputs)
            self.volume += len(content)

    def _contents(self) -> Iterator[tuple[int, bytes]]:
        """(number, content) of the steps since the snapshot, in order."""
        number = self._first
        while True:
            with told(self.path):
                sql = "SELECT number, content, seal FROM steps WHERE number > ? ORDER BY number LIMIT 1"
                row = self._connection.execute(sql, (number,)).fetchone()
            if row is None:
                return
            number += 1
            if row[0] != number:
                raise damaged(self.path, f"step {number} is missing")
            check_seal(row[2], self.path, f"step {number}", number, row[1])
            yield number, row[1]

    def secret(self) -> bytes:
        """The 16 bytes from which all noise of this run is derived; drawn once, when the journal was made."""
        self._ready()
        with told(self.path):
            (value,) = self._connection.execute("SELECT value FROM header WHERE name = 'secret'").fetchone()
        return bytes(value)

    @contextmanager
    def step(self) -> Iterator[Step]:
        """One transaction: on leaving it without error everything recorded is on disk, synced; else nothing is."""
        step = self.begin()
        try:
            yield step
            self.commit(step)
        except BaseException as error:
            self.fail(step, error)
            raise

    def begin(self) -> Step:
        """Begin a step, to be ended by `commit` or `fail`; meanwhile the outbox holds what was committed before."""
        self._ready()
        self._step = Step(self._heard, self._outbox.sent, self._events)
        return self._step

    def commit(self, step: Step) -> None:
        """Everything the step holds is on disk, synced, when this returns."""
        if self._broken or step is not self._step:
            raise LocalProtocolError(f"the journal {self.path} was to commit a step that is not under way")
        outbox, number = self._outbox, self._number + 1
        confirmed = {to: outbox.acknowledged[to] for to in outbox.unwritten}
        if step.inputs or step.messages or step.spends or confirmed:
            content = pack(step.inputs, step.messages, confirmed)
            with told(self.path):
                self._connection.execute("BEGIN IMMEDIATE")
                self._connection.execute("INSERT INTO steps VALUES (?, ?, ?)", (number, content, seal(number, content)))
                for line in step.spends:
                    self._connection.execute("INSERT INTO spends (peer, step, clock, event, seal) "
                                             "VALUES (?, ?, ?, ?, ?)", (*line, seal(*line)))  # fmt: skip
                self._connection.execute("COMMIT")
            self._number, self._inputs = number, self._inputs + len(step.inputs)
            self.volume += len(content)
            outbox.unwritten.difference_update(confirmed)
            self._heard.update(step.heard)
            outbox.found(number, step.messages, {})
        self._step, step.closed = None, True

    def fail(self, step: Step, error: BaseException) -> None:
        """Nothing of that step is kept. Unless a machine refused its first message, the journal is of no more use."""
        first = isinstance(error, RemoteProtocolError) and len(step.inputs) <= 1 and not step.speaks()
        if not first:
            self._broken = f"a step failed ({type(error).__name__}), and the peer in memory is ahead of its journal"
        self._step, step.closed = None, True
        self._roll_back()

    def _roll_back(self) -> None:
        try:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
        except sqlite3.Error as error:  # the error that led here is told; this one only ends the journal's use
            self._broken = f"a step could not be undone ({error})"

    def _usable(self) -> None:
        if self._broken:
            raise LocalProtocolError(f"the journal {self.path} cannot be used any more: {self._broken}; open it again "
                                     f"and execute its inputs again")  # fmt: skip

    def _ready(self) -> None:
        """Outside a step, on a journal that may be used."""
        self._usable()
        if self._step is not None:
            raise LocalProtocolError(f"the journal {self.path} is in the middle of a step; what is in it is not on "
                                     f"disk yet, so nothing may be read or begun before it ends")  # fmt: skip

    def inputs(self) -> Iterator[Input]:
        """The committed inputs since the snapshot, in order: execute them again after a restart."""
        self._ready()
        position = self._before
        for _, content in self._contents():
            for words in unpack(content).inputs:
                position += 1
                yield Input(position, *words)

    def outbox(self, to: int, after: int = 0) -> Iterator[tuple[int, bytes]]:
        """(sequence, bytes) of the messages to that peer which it has not acknowledged, in order, as first written."""
        for line in self._outbox.messages(to, after):
            self._usable()
            yield line

    def acknowledge(self, to: int, sequence: int) -> None:
        """That peer has all messages up to `sequence` in its own journal; it is written down with the next step.

        An acknowledgment lost in a crash costs one retransmission of the same bytes, so it needs no sync of its own.
        """
        self._outbox.acknowledge(to, sequence)

    def confirmed(self, to: int) -> int:
        """How many messages that peer has acknowledged."""
        return self._outbox.acknowledged.get(to, 0)

    def settled(self, to: int) -> bool:
        """Whether that peer has acknowledged everything."""
        return self._outbox.settled(to)

    def last_sequence(self, sender: int) -> int:
        """The last committed input of that sender, 0 if none: what may be acknowledged; what comes again is dropped."""
        return self._heard.get(sender, 0)

    def last_sent(self, to: int) -> int:
        """The last committed message to that peer, 0 if none."""
        return self._outbox.sent.get(to, 0)

    def spent(self) -> list[Spend]:
        """All ledger lines, in order."""
        self._ready()
        return _spent(self._connection, self.path)

    def snapshot(self, state: bytes) -> None:
        """The peer's whole state after all inputs so far, in place of these inputs; all of it or nothing, synced."""
        self._ready()
        places = {"step": self._number, "inputs": self._inputs, "heard": list(self._heard.items()),
                  "sent": list(self._outbox.sent.items()), "acknowledged": list(self._outbox.acknowledged.items())}
        content = (state, json.dumps(places))
        try:
            with told(self.path):
                self._connection.execute("BEGIN IMMEDIATE")
                self._outbox.move()
                self._connection.execute("INSERT OR REPLACE INTO snapshot VALUES (1, ?, ?, ?)",
                                         (*content, seal(*content)))  # fmt: skip
                self._connection.execute("DELETE FROM steps")
                self._connection.execute("COMMIT")
        except BaseException as error:
            self._broken = f"a snapshot failed ({type(error).__name__})"
            self._roll_back()
            raise
        self._outbox.moved()
        self._first, self._before, self.volume = self._number, self._inputs, 0

    def latest_snapshot(self) -> bytes | None:
        """The state as last kept, or None; `inputs` are those that came after it."""
        self._ready()
        line = self._snapshot_line()
        return None if line is None else line[0]

    def _snapshot_line(self) -> tuple[bytes, str] | None:
        with told(self.path):
            line = self._connection.execute("SELECT state, places, seal FROM snapshot").fetchone()
        if line is None:
            return None
        check_seal(line[2], self.path, "the snapshot", line[0], line[1])
        return line[0], line[1]

    def backup(self, path: str | Path) -> None:
        """Copy the ledger: a record of what was spent, without secret, inputs or state, so that no peer can go on."""
        self._ready()
        _copy(self._connection, Path(path))

    def close(self) -> None:
        """Write what is pending and give the file free; a step under way is given up."""
        try:
            if self._outbox.unwritten and not self._broken and self._step is None:
                with self.step():
                    pass
        finally:
            self._broken = self._broken or "it was closed"
            self._connection.close()

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def copy_ledger(path: str | Path, target: str | Path) -> None:
    """The same of the journal of a peer that does not run."""
    with closing(connect(Path(path))) as connection:
        _copy(connection, Path(target))


def _copy(connection: sqlite3.Connection, target: Path) -> None:
    def fill(draft: sqlite3.Connection) -> None:
        connection.backup(draft)
        draft.execute("PRAGMA journal_mode = DELETE")
        draft.execute("PRAGMA secure_delete = ON")
        draft.execute("DELETE FROM header WHERE name = 'secret'")
        for table in ("steps", "outbox", "snapshot"):
            draft.execute(f"DELETE FROM {table}")
        draft.execute("VACUUM")

    try:
        publish(target, fill)
    except FileExistsError:
        raise ConfigError(f"{target} exists already; choose another name for the copy") from None


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
