"""The outbox of a journal: committed messages that their receivers have not yet confirmed, word for word.

The last few are kept in memory; older ones are read back from the steps of the journal, or, if a snapshot has replaced
those, from a table of their own. So a neighbor that is away for long costs disk, not memory.
"""

from __future__ import annotations

import sqlite3
from array import array
from collections import defaultdict, deque
from collections.abc import Iterator
from pathlib import Path

from bruit.errors import RemoteProtocolError
from bruit.network.journal_file import check_seal, damaged, seal, told
from bruit.network.step_content import Message, unpack

RECENT = 8  # messages to one receiver that are kept in memory
PAGE = 64  # lines read at a time


class Outbox:
    """What this peer has said to each receiver, and how much of it the receiver has."""

    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        self._connection, self._path = connection, path
        self.sent: dict[int, int] = {}
        self.acknowledged: dict[int, int] = {}
        self.unwritten: set[int] = set()  # receivers whose acknowledgments are not yet on disk
        self._recent: defaultdict[int, deque[Message]] = defaultdict(deque)
        self._steps: defaultdict[int, array[int]] = defaultdict(lambda: array("q"))  # where the later ones are
        self._moved: dict[int, int] = {}  # up to which message the others are in the table

    def restore(self, sent: dict[int, int], acknowledged: dict[int, int]) -> None:
        """As a snapshot left it."""
        self.sent, self.acknowledged, self._moved = dict(sent), dict(acknowledged), dict(sent)

    def found(self, step: int, messages: list[Message], acknowledged: dict[int, int]) -> None:
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
        if not 0 <= sequence <= sent:
            raise RemoteProtocolError(f"peer {to} acknowledges message {sequence}, but the journal {self._path} knows "
                                      f"of {sent}: either that peer is wrong, or this journal is an old copy; if so, "
                                      f"stop, or the same noise will protect two different values")  # fmt: skip
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
        """(sequence, bytes) of what it has not confirmed, in order; what is confirmed meanwhile is left out."""
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
            line = self._row("SELECT content, seal FROM steps WHERE number = ?", step)
            if line is not None:
                check_seal(line[1], self._path, f"step {step}", step, line[0])
                for message in unpack(line[0]).messages:
                    if (message.receiver, message.sequence) == (to, sequence):
                        return message.data
        else:
            line = self._row("SELECT payload, seal FROM outbox WHERE receiver = ? AND sequence = ?", to, sequence)
            if line is not None:
                check_seal(line[1], self._path, f"message {sequence} to peer {to}", to, sequence, line[0])
                return line[0]
        raise damaged(self._path, f"message {sequence} to peer {to} is missing")

    def _row(self, sql: str, *keys: int) -> tuple[bytes, bytes] | None:
        with told(self._path):
            row: tuple[bytes, bytes] | None = self._connection.execute(sql, keys).fetchone()
        return row

    def move(self) -> None:
        """Inside a transaction that removes all steps: keep what is unconfirmed in the table, and only that."""
        for to, sequence in self.acknowledged.items():
            self._connection.execute("DELETE FROM outbox WHERE receiver = ? AND sequence <= ?", (to, sequence))
        for to, sent in self.sent.items():
            moved = self._moved.get(to, 0)
            for sequence, payload in self.messages(to, moved):
                content = (to, sequence, payload)
                self._connection.execute("INSERT INTO outbox VALUES (?, ?, ?, ?)", (*content, seal(*content)))
            self._moved[to] = sent

    def moved(self) -> None:
        """After that transaction."""
        self._steps.clear()
        self.unwritten.clear()
