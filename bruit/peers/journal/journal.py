"""The journal: the durable memory of one peer, and the keeper of the budget law.

    Spend is in the journal, synced, before the message that spends it leaves. A retransmission is the same bytes and
    costs nothing. After a kill at any point the peer goes on; noise is never redrawn for a value already released, and
    the recorded spend is an upper bound of what left the machine.

How: a peer is a deterministic function of its records (a fact, checked at every start) and of its
inputs in order, among which are the keys of its dice, a fresh one for every start. One `step`
commits inputs, the spend they caused and the messages they caused, all or nothing, with one sync;
messages can be read from the outbox only after that. After a restart the inputs are executed again,
without a step, and lead to the same state and the same noise. What was not committed was never
sent. A `snapshot` of the peer's state replaces the inputs that led to it, in one transaction;
ledger lines and unconfirmed messages stay. A journal that has lost its end is noticed by its head
(`journal_head`) and refused; one whose head is as old is found out by the stamps that neighbors
show (`stamps`), and condemned.

An error inside a step leaves the peer in memory ahead of its journal, so the journal refuses to go
on: open it again and execute the inputs again. The one exception is a first message refused with
RemoteProtocolError, which changes nothing. Use one journal from one thread at a time.
"""

from __future__ import annotations

import json
import sqlite3
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

from bruit.errors import BrokenStateError, ConfigError, LocalProtocolError, RemoteProtocolError
from bruit.peers.journal.file import (
    check_beginning,
    check_original,
    check_same_run,
    check_seal,
    check_whole,
    connect,
    create,
    damaged,
    journal_errors,
    publish,
    seal,
)
from bruit.peers.journal.head import (
    BEGINNING,
    Head,
    HeadFile,
    State,
    chained,
    check_end,
    expected,
    log_bytes,
    place,
    read_head,
)
from bruit.peers.journal.outbox import Outbox
from bruit.peers.journal.step import Input, Spend, Step
from bruit.peers.journal.step_content import pack, unpack

__all__ = ["Input", "Journal", "Spend", "Step", "copy_ledger", "recorded_spend"]


class Journal:
    """One run of one peer, on disk. Made by `Journal.open`; close it, or use it in a `with`
    statement."""

    def __init__(self, path: Path, connection: sqlite3.Connection, head: HeadFile) -> None:
        self.path, self._connection, self._head = path, connection, head
        self._outbox = Outbox(connection, path)
        self._step: Step | None = None
        self._broken = ""
        self._condemned: BrokenStateError | None = None
        self._finish = weakref.finalize(
            self, head.finish, connection
        )  # by `close`, or at the latest when Python ends
        self._heard: dict[int, int] = {}
        self._stamps: dict[int, bytes] = {}  # the last stamp of each sender
        self._lines, self._chain = (
            0,
            BEGINNING,
        )  # how many ledger lines there are, and the hash of all steps
        self._events: set[str] = set()
        self._first, self._number = 0, 0  # the last step before the snapshot, and of all
        self._before, self._inputs = (
            0,
            0,
        )  # how many inputs the snapshot replaces, and how many there were in all
        self.volume = 0  # bytes of steps since the last snapshot
        # told of ledger lines, from which number on, before they are committed
        self.witness: Callable[[int, Sequence[Spend]], None] = lambda first, spends: None

    @classmethod
    def open(cls, path: str | Path, run_id: str, facts: Mapping[str, str]) -> Journal:
        """Begin or go on; `facts` are digests of what fixes the values: records, mechanism,
        experiment.

        ConfigError: another run, another process, a damaged or unwritable file. PrivacyError: a
        fact has changed.
        """
        path = Path(path)
        if not all(isinstance(text, str) for text in (run_id, *facts, *facts.values())):
            raise ConfigError(
                f"the run id and the facts of a journal are texts, found {run_id!r}, "
                f"{dict(facts)!r}"
            )
        if not path.exists():
            for left in (path.with_name(path.name + "-wal"), place(path)):
                if left.exists():
                    raise damaged(path, f"the file itself is missing, but {left.name} is there")
            create(path, run_id, facts)
        journal = cls._found(path)
        try:
            with journal_errors(path):
                check_same_run(journal._connection, path, run_id, facts)
            journal._start()
        except BaseException:
            journal.close()
            raise
        return journal

    @classmethod
    def _found(cls, path: Path) -> Journal:
        """A journal that is there, read to its end, which is where its head says, or later."""
        log = log_bytes(path)
        connection = connect(path)
        head = None
        try:
            with journal_errors(path):
                check_original(connection, path)
                starts = check_beginning(connection, path)
            due = expected(path, log, starts)
            head = HeadFile.open(path)
            journal = cls(path, connection, head)
            journal._recall(due)
        except BaseException:
            connection.close()
            if head is not None:
                head.file.close()
            raise
        head.last = journal._end("open")
        return journal

    def _start(self) -> None:
        """From now on there is a log, and the head says that there must be one."""
        self._head.write(self._end("closed"), sync=True)  # a new journal has no head before
        with journal_errors(self.path):
            self._connection.execute("UPDATE header SET value = value + 1 WHERE name = 'starts'")
        self._head.write(self._end("open"), sync=True)

    def _end(self, state: State) -> Head:
        return Head(self._number, self._lines, self._chain, state)

    def _recall(self, head: Head) -> None:
        line = self._snapshot_line()
        if line is not None:
            places = json.loads(line[1])
            heard, sent, acknowledged = (
                {int(peer): place for peer, place in places[name]}
                for name in ("heard", "sent", "acknowledged")
            )
            self._heard, self._number, self._inputs = heard, places["step"], places["inputs"]
            self._stamps = {int(peer): bytes.fromhex(stamp) for peer, stamp in places["stamps"]}
            self._lines, self._chain = places["lines"], bytes.fromhex(places["chain"])
            self._outbox.restore(sent, acknowledged)
        self._first, self._before = self._number, self._inputs
        self._compare(head)
        seals = self._line_seals(self._lines)
        for number, content, lines, step_seal in self._rows():
            found = unpack(content)
            for _, sender, sequence, _, stamp in found.inputs:
                self._heard[sender], self._stamps[sender] = sequence, stamp
            self._outbox.found(number, found.messages, found.acknowledged)
            mine = [next(seals, b"") for _ in range(lines - self._lines)]
            self._chain = chained(self._chain, *mine, step_seal)
            self._number, self._lines, self._inputs = (
                number,
                lines,
                self._inputs + len(found.inputs),
            )
            self.volume += len(content)
            self._compare(head)
        check_end(self.path, head, self._first, self._end("open"))
        with journal_errors(self.path):
            (last,) = self._connection.execute(
                "SELECT COALESCE(MAX(line), 0) FROM spends"
            ).fetchone()
        if last != self._lines:
            raise damaged(self.path, f"the ledger ends at line {last}, the steps at {self._lines}")

    def _compare(self, head: Head) -> None:
        if self._number == head.number and (self._chain, self._lines) != (head.chain, head.lines):
            raise damaged(
                self.path, f"step {head.number} is another one than {place(self.path).name} says"
            )

    def _line_seals(self, after: int) -> Iterator[bytes]:
        with journal_errors(self.path):
            sql = "SELECT seal FROM spends WHERE line > ? ORDER BY line"
            yield from (row[0] for row in self._connection.execute(sql, (after,)).fetchall())

    def _rows(self) -> Iterator[tuple[int, bytes, int, bytes]]:
        """(number, content, ledger lines so far, seal) of the steps since the snapshot, in
        order."""
        number = self._first
        while True:
            with journal_errors(self.path):
                sql = "SELECT number, content, lines, seal FROM steps WHERE number > ? ORDER BY number LIMIT 1"
                row = self._connection.execute(sql, (number,)).fetchone()
            if row is None:
                return
            number += 1
            if row[0] != number:
                raise damaged(self.path, f"step {number} is missing")
            check_seal(row[3], self.path, f"step {number}", *row[:3])
            yield row

    def secret(self) -> bytes:
        """16 bytes, drawn once, when the journal was made: what must not change with a start
        follows from them, such as the timetable of calls. Noise does not: every start has a key of
        its own (`recalling`)."""
        self._ready()
        with journal_errors(self.path):
            (value,) = self._connection.execute(
                "SELECT value FROM header WHERE name = 'secret'"
            ).fetchone()
        return bytes(value)

    @contextmanager
    def step(self) -> Iterator[Step]:
        """One transaction: on leaving it without error everything recorded is on disk, synced; else
        nothing is."""
        step = self.begin()
        try:
            yield step
            self.commit(step)
        except BaseException as error:
            self.fail(step, error)
            raise

    def begin(self) -> Step:
        """Begin a step, to be ended by `commit` or `fail`; meanwhile the outbox holds what was
        committed before."""
        self._ready()
        self._step = Step(_heard=self._heard, _sent=self._outbox.sent, _events=self._events)
        return self._step

    def commit(self, step: Step) -> None:
        """Everything the step holds is on disk, synced, when this returns."""
        if self._condemned is not None:
            raise self._condemned
        if self._broken or step is not self._step:
            raise LocalProtocolError(
                f"the journal {self.path} was to commit a step that is not under way"
            )
        outbox, number = self._outbox, self._number + 1
        confirmed = {to: outbox.acknowledged[to] for to in outbox.unwritten}
        if step.inputs or step.messages or step.spends or confirmed:
            content, lines = (
                pack(step.inputs, step.messages, confirmed),
                self._lines + len(step.spends),
            )
            seals = [*(seal(*line) for line in step.spends), seal(number, content, lines)]
            if step.spends:
                self.witness(self._lines + 1, step.spends)
            with journal_errors(self.path):
                self._connection.execute("BEGIN IMMEDIATE")
                self._connection.execute(
                    "INSERT INTO steps VALUES (?, ?, ?, ?)", (number, content, lines, seals[-1])
                )
                for line, line_seal in zip(step.spends, seals[:-1], strict=True):
                    self._connection.execute(
                        "INSERT INTO spends (peer, step, clock, event, seal) "
                        "VALUES (?, ?, ?, ?, ?)",
                        (*line, line_seal),
                    )
                self._connection.execute("COMMIT")
            self._number, self._inputs = number, self._inputs + len(step.inputs)
            self._lines, self._chain = lines, chained(self._chain, *seals)
            self._head.write(self._end("open"))  # before anything of this step can leave
            self._stamps.update({sender: stamp for _, sender, _, _, stamp in step.inputs})
            self.volume += len(content)
            outbox.unwritten.difference_update(confirmed)
            self._heard.update(step.heard)
            outbox.found(number, step.messages, {})
        self._step, step.closed = None, True

    def fail(self, step: Step, error: BaseException) -> None:
        """Nothing of that step is kept. Unless a machine refused its first message, the journal is
        of no more use."""
        first = (
            isinstance(error, RemoteProtocolError) and len(step.inputs) <= 1 and not step.speaks()
        )
        if not first:
            self._broken = f"a step failed ({type(error).__name__}), and the peer in memory is ahead of its journal"
        self._step, step.closed = None, True
        self._roll_back()

    def _roll_back(self) -> None:
        try:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
        except (
            sqlite3.Error
        ) as error:  # the error that led here is told; this one only ends the journal's use
            self._broken = f"a step could not be undone ({error})"

    def condemn(self, error: BrokenStateError) -> None:
        """A neighbor has proven that this journal is an old copy: nothing is committed or sent any
        more, now and after any later start."""
        if self._condemned is None and self._finish.alive:
            self._condemned = error
            self._head.write(self._end("condemned"), sync=True)

    def _usable(self) -> None:
        if self._condemned is not None:
            raise self._condemned
        if self._broken:
            raise LocalProtocolError(
                f"the journal {self.path} cannot be used any more: {self._broken}; open it again "
                f"and execute its inputs again"
            )

    def _ready(self) -> None:
        """Outside a step, on a journal that may be used."""
        self._usable()
        if self._step is not None:
            raise LocalProtocolError(
                f"the journal {self.path} is in the middle of a step; what is in it is not on "
                f"disk yet, so nothing may be read or begun before it ends"
            )

    def inputs(self) -> Iterator[Input]:
        """The committed inputs since the snapshot, in order: execute them again after a restart."""
        self._ready()
        position = self._before
        for _, content, _, _ in self._rows():
            for words in unpack(content).inputs:
                position += 1
                yield Input(position, *words[:4])

    def outbox(self, to: int, after: int = 0) -> Iterator[tuple[int, bytes]]:
        """(sequence, bytes) of the messages to that peer which it has not acknowledged, in order,
        as first written."""
        for line in self._outbox.messages(to, after):
            self._usable()
            yield line

    def acknowledge(self, to: int, sequence: int) -> None:
        """That peer has all messages up to `sequence` in its own journal; it is written down with
        the next step.

        An acknowledgment lost in a crash costs one retransmission of the same bytes, so it needs no
        sync of its own.
        """
        self._outbox.acknowledge(to, sequence)

    def confirmed(self, to: int) -> int:
        """How many messages that peer has acknowledged."""
        return self._outbox.acknowledged.get(to, 0)

    def settled(self, to: int) -> bool:
        """Whether that peer has acknowledged everything."""
        return self._outbox.settled(to)

    def last_sequence(self, sender: int) -> int:
        """The last committed input of that sender, 0 if none: what may be acknowledged; what comes
        again is dropped."""
        return self._heard.get(sender, 0)

    def last_stamp(self, sender: int) -> bytes:
        """The stamp of that input: what is shown back to the sender with a receipt."""
        return self._stamps.get(sender, b"")

    def last_sent(self, to: int) -> int:
        """The last committed message to that peer, 0 if none."""
        return self._outbox.sent.get(to, 0)

    @property
    def lines(self) -> int:
        """How many ledger lines are committed."""
        return self._lines

    def spent(self) -> list[Spend]:
        """All ledger lines, in order."""
        self._ready()
        return _spent(self._connection, self.path)

    def snapshot(self, state: bytes) -> None:
        """The peer's whole state after all inputs so far, in place of these inputs; all of it or
        nothing, synced."""
        self._ready()
        places = {
            "step": self._number,
            "inputs": self._inputs,
            "lines": self._lines,
            "chain": self._chain.hex(),
            "heard": list(self._heard.items()),
            "sent": list(self._outbox.sent.items()),
            "acknowledged": list(self._outbox.acknowledged.items()),
            "stamps": [(peer, stamp.hex()) for peer, stamp in self._stamps.items()],
        }
        content = (state, json.dumps(places))
        self._head.write(
            self._end("open"), sync=True
        )  # so the head is never older than the snapshot
        try:
            with journal_errors(self.path):
                self._connection.execute("BEGIN IMMEDIATE")
                self._outbox.move()
                self._connection.execute(
                    "INSERT OR REPLACE INTO snapshot VALUES (1, ?, ?, ?)",
                    (*content, seal(*content)),
                )
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
        with journal_errors(self.path):
            line = self._connection.execute("SELECT state, places, seal FROM snapshot").fetchone()
        if line is None:
            return None
        check_seal(line[2], self.path, "the snapshot", line[0], line[1])
        return line[0], line[1]

    def backup(self, path: str | Path) -> None:
        """Copy the ledger: a record of what was spent, without secret, inputs or state, so that no
        peer can go on."""
        self._ready()
        _copy(self._connection, Path(path))

    def close(self) -> None:
        """Write what is pending and give the file free; a step under way is given up."""
        if not self._finish.alive:
            return
        try:
            if (
                self._outbox.unwritten
                and not self._broken
                and self._condemned is None
                and self._step is None
            ):
                with self.step():
                    pass
        finally:
            self._broken = self._broken or "it was closed"
            self._finish()

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def copy_ledger(path: str | Path, target: str | Path) -> None:
    """The same of the journal of a peer that does not run; refused if it has lost its end."""
    with closing(Journal._found(Path(path))) as journal:
        journal.backup(target)


def _copy(connection: sqlite3.Connection, target: Path) -> None:
    def fill(draft: sqlite3.Connection) -> None:
        connection.backup(draft)
        draft.execute("PRAGMA journal_mode = DELETE")
        draft.execute("PRAGMA secure_delete = ON")
        draft.execute("DELETE FROM header WHERE name IN ('secret', 'seal')")
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
    with journal_errors(path):
        connection = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=0)
        with closing(connection):
            check_whole(connection, path)
            lines, head = _spent(connection, path), read_head(path)
    if head is not None and len(lines) < head.lines:
        raise damaged(
            path, f"its ledger has {len(lines)} lines, but {place(path).name} says {head.lines}"
        )
    return lines


def _spent(connection: sqlite3.Connection, path: Path) -> list[Spend]:
    with journal_errors(path):
        lines = connection.execute(
            "SELECT line, peer, step, clock, event, seal FROM spends ORDER BY line"
        ).fetchall()
    for due, (line, *content, found) in enumerate(lines, 1):
        if line != due:
            raise damaged(path, f"ledger line {due} is missing")
        check_seal(found, path, f"ledger line {line}", *content)
    return [Spend(*line[1:5]) for line in lines]
