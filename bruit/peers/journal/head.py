"""The head of a journal: a small file beside it that says how far it has come, so that a lost end
is noticed.

    journal.db-head   its state, the number of the last step, how many ledger lines there are, a hash of all steps

    chain(n) = blake2b(chain(n - 1), seals of the ledger lines of step n, seal of step n)

sqlite drops the end of its log (`journal.db-wal`) from the first page on that it cannot read, and
says nothing: after a kill, a lost or damaged log looks like an earlier moment. The head is written
after every commit and before anything leaves, so a journal that ends before its head, or differs
from it, has lost what was said. It is synced when it says something new about the file (opened,
closed, a snapshot) and once a second: after a power cut it may lag behind the journal, which is
synced with every commit, but not lead.

While the journal is in use the head says `open`, and then there is a log; a missing one is noticed
even if the head lags. Before an orderly close it says `closed`, and from then on nothing is added.
`condemned` says that a neighbor has proven that more was said than this journal knows: no later
start goes on from it.
"""

from __future__ import annotations

import hashlib
import os
import sqlite3
import time
from dataclasses import dataclass
from io import FileIO
from pathlib import Path
from typing import Literal, NamedTuple

from bruit.errors import BrokenStateError
from bruit.peers.journal.file import damaged, journal_errors, seal, sync_folder

State = Literal["open", "closed", "condemned"]
STATES: dict[str, State] = {"o": "open", "c": "closed", "x": "condemned"}
BEGINNING = bytes(16)
EVERY = 1.0  # seconds between two syncs of the head while the journal grows
LEAST_LOG = 32  # bytes: the header of a log that holds anything


class Head(NamedTuple):
    """How far a journal has come."""

    number: int  # the last committed step
    lines: int  # ledger lines up to it
    chain: bytes  # the hash of all steps up to it
    state: State

    def text(self) -> bytes:
        words = f"{self.state[0] if self.state != 'condemned' else 'x'} {self.number:020d} {self.lines:020d} "
        words += self.chain.hex()
        return f"{words} {seal(words).hex()}\n".encode()


def chained(before: bytes, *seals: bytes) -> bytes:
    """The hash of everything up to a step."""
    return hashlib.blake2b(before + b"".join(seals), digest_size=16).digest()


def place(journal: Path) -> Path:
    """Where the head of that journal is."""
    return journal.with_name(journal.name + "-head")


def log_bytes(journal: Path) -> int:
    """How large the log of that journal is; to be asked before sqlite opens it."""
    try:
        return journal.with_name(journal.name + "-wal").stat().st_size
    except OSError:
        return 0


def read_head(journal: Path) -> Head | None:
    """The head of that journal, None if there is none; BrokenStateError if it is not whole."""
    with journal_errors(journal):
        try:
            data = place(journal).read_bytes()
        except FileNotFoundError:
            return None
    if not data:  # made, and killed before the first word
        return None
    try:
        state, number, lines, chain, _ = data.decode().split()
        head = Head(int(number), int(lines), bytes.fromhex(chain), STATES[state])
    except (ValueError, KeyError):
        raise damaged(journal, f"{place(journal).name} is no head of a journal") from None
    if head.text() != data:
        raise damaged(journal, f"{place(journal).name} has changed since it was written")
    return head


def expected(journal: Path, log: int, starts: int) -> Head:
    """How far that journal must have come, when its log has so many bytes and it was opened so many
    times before."""
    head = read_head(journal)
    if head is None:
        if starts:
            raise damaged(
                journal,
                f"{place(journal).name} is missing, and without it a lost end would go unnoticed; "
                f"if the journal was moved, put that file beside it",
            )
        return Head(0, 0, BEGINNING, "closed")
    if head.state == "condemned":
        raise condemned(f"the journal {journal}", "an earlier start has found that out")
    if head.state == "open" and log < LEAST_LOG:
        raise damaged(
            journal, f"it was not closed, and its log {journal.name}-wal is missing or empty"
        )
    return head


def condemned(what: str, why: str) -> BrokenStateError:
    """The sentence about an old copy."""
    return BrokenStateError(
        f"{what} is an old copy: this peer has said more than is in it ({why}). It stops, and this "
        f"state cannot go on: what was spent is more than its ledger says, nobody knows how much. "
        f"Put back the newest state if there is one; else leave this run, keep the folder, and "
        f"begin a new run with a new budget"
    )


def check_end(journal: Path, head: Head, first: int, end: Head) -> None:
    """Refuse a journal, read from step `first` to its end, that has not come as far as its head
    says."""
    if end.number < head.number:
        raise damaged(
            journal,
            f"it ends at step {end.number} with {end.lines} ledger lines, but {place(journal).name}"
            f" says step {head.number} with {head.lines}: its log was lost or damaged, or it is an"
            " old copy",
        )
    if head.number < first:
        raise damaged(journal, f"{place(journal).name} is older than the snapshot in it")


@dataclass
class HeadFile:
    """The file, held open; one write of a few bytes at one place for every commit."""

    journal: Path
    file: FileIO
    last: Head | None = None  # how far the journal is known to have come
    synced: float = 0.0  # when it was last synced

    @classmethod
    def open(cls, journal: Path) -> HeadFile:
        """Open it, readable by its owner only; make it if there is none."""
        with journal_errors(journal):
            handle = os.open(place(journal), os.O_RDWR | os.O_CREAT, 0o600)
            sync_folder(journal.parent)
            return cls(journal, FileIO(handle, "r+"))

    def write(self, head: Head, sync: bool = False) -> None:
        """Say how far the journal has come."""
        self.last = head
        with journal_errors(self.journal):
            self.file.seek(0)
            self.file.write(head.text())
            now = time.monotonic()
            if sync or now > self.synced + EVERY:
                os.fsync(self.file.fileno())
                self.synced = now

    def finish(self, connection: sqlite3.Connection) -> None:
        """Say that nothing more will come, and only then let sqlite fold its log in."""
        try:
            if self.last is not None:
                self.write(
                    self.last._replace(state="closed") if self.last.state == "open" else self.last,
                    sync=True,
                )
        finally:
            connection.close()
            self.file.close()
