"""The outbox of a journal: committed messages that their receivers have not yet confirmed, word for
word.

The last few are kept in memory; older ones are read back from the steps of the journal, or, if a
snapshot has replaced those, from a table of their own. So a neighbor that is away for long costs
disk, not memory.
"""

from __future__ import annotations

import sqlite3
from array import array
from collections import defaultdict, deque
from collections.abc import Iterator
from pathlib import Path

from bruit.errors import RemoteProtocolError
from bruit.peers.journal.file import check_seal, damaged, journal_errors, seal
from bruit.peers.journal.step_content import Content, StoredMessage, unpack

RECENT = 8  # messages to one receiver that are kept in memory
PAGE = 64  # lines read at a time


class Outbox:
    """What this peer has said to each receiver, and how much of it the receiver has."""

    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        self._connection, self._path = connection, path
        self.sent: dict[int, int] = {}
        self.acknowledged: dict[int, int] = {}
        self.unwritten: set[int] = set()  # receivers whose acknowledgments are not yet on disk
        self._recent: defaultdict[int, deque[StoredMessage]] = defaultdict(deque)
        self._steps: defaultdict[int, array[int]] = defaultdict(
            lambda: array("q")
        )  # where the later ones are
        self._moved: dict[int, int] = {}  # up to which message the others are in the table
        self._read: tuple[int, Content] | None = (
            None  # the step last read back: its messages are asked for in a row
        )

    def restore(self, sent: dict[int, int], acknowledged: dict[int, int]) -> None:
        """As a snapshot left it."""
        self.sent, self.acknowledged, self._moved = dict(sent), dict(acknowledged), dict(sent)

    def found(self, step: int, messages: list[StoredMessage], acknowledged: dict[int, int]) -> None:
        """Take note of a step that is on disk."""
        for message in messages:
            to = message.receiver
            self.sent[to] = message.sequence
            self._steps[to].append(step)
            recent = self._recent[to]
            recent.append(message)
            if len(recent) > RECENT:
                recent.popleft()
        self.acknowledged.update(acknowledged)

    def acknowledge(self, to: int, sequence: int) -> None:
        """That peer has all messages up to `sequence` in its own journal."""
        sent = self.sent.get(to, 0)
        if not 0 <= sequence <= sent:  # the sentence is told to that peer, so it names no file
            raise RemoteProtocolError(
                f"peer {to} acknowledges message {sequence}, but {sent} were sent to it"
            )
        if sequence > self.acknowledged.get(to, 0):
            self.acknowledged[to] = sequence
            self.unwritten.add(to)
            recent = self._recent[to]
            while recent and recent[0].sequence <= sequence:
                recent.popleft()

    def settled(self, to: int) -> bool:
        """Whether that peer has everything."""
        return self.acknowledged.get(to, 0) == self.sent.get(to, 0)

    def messages(self, to: int, after: int) -> Iterator[tuple[int, bytes]]:
        """(sequence, bytes) of what it has not confirmed, in order; what is confirmed meanwhile is
        left out."""
        at = max(after, self.acknowledged.get(to, 0)) + 1
        while at <= self.sent.get(to, 0):
            recent = self._recent[to]
            if recent and recent[0].sequence <= at:
                data = recent[at - recent[0].sequence].data
            else:
                data = self._stored(to, at)
            yield at, data
            at = max(at, self.acknowledged.get(to, 0)) + 1

    def _stored(self, to: int, sequence: int) -> bytes:
        """An older message, from the disk."""
        moved = self._moved.get(to, 0)
        if sequence > moved:
            step = self._steps[to][sequence - moved - 1]
            for message in self._content(step).messages:
                if (message.receiver, message.sequence) == (to, sequence):
                    return message.data
        else:
            line = self._row(
                "SELECT payload, seal, 0 FROM outbox WHERE receiver = ? AND sequence = ?",
                to,
                sequence,
            )
            if line is not None:
                check_seal(
                    line[1], self._path, f"message {sequence} to peer {to}", to, sequence, line[0]
                )
                return line[0]
        raise damaged(self._path, f"message {sequence} to peer {to} is missing")

    def _content(self, step: int) -> Content:
        """A step of the journal, read back."""
        if self._read is None or self._read[0] != step:
            line = self._row("SELECT content, seal, lines FROM steps WHERE number = ?", step)
            if line is None:
                raise damaged(self._path, f"step {step} is missing")
            check_seal(line[1], self._path, f"step {step}", step, line[0], line[2])
            self._read = (step, unpack(line[0]))
        return self._read[1]

    def _row(self, sql: str, *keys: int) -> tuple[bytes, bytes, int] | None:
        with journal_errors(self._path):
            row: tuple[bytes, bytes, int] | None = self._connection.execute(sql, keys).fetchone()
        return row

    def move(self) -> None:
        """Inside a transaction that removes all steps: keep what is unconfirmed in the table, and
        only that. Every step that holds such a message is read once."""
        for to, sequence in self.acknowledged.items():
            self._connection.execute(
                "DELETE FROM outbox WHERE receiver = ? AND sequence <= ?", (to, sequence)
            )
        steps: set[int] = set()
        for to in self.sent:
            steps.update(
                self._steps[to][max(self.acknowledged.get(to, 0) - self._moved.get(to, 0), 0) :]
            )
        for step in sorted(steps):
            for message in self._content(step).messages:
                if message.sequence > self.acknowledged.get(message.receiver, 0):
                    content = (message.receiver, message.sequence, message.data)
                    self._connection.execute(
                        "INSERT INTO outbox VALUES (?, ?, ?, ?)", (*content, seal(*content))
                    )
        self._moved.update(self.sent)

    def moved(self) -> None:
        """After that transaction."""
        self._steps.clear()
        self._read = None
        self.unwritten.clear()
