"""Peers as processes that are forked, killed and started again, and a note of every frame that
reached one of them.

A note is written by the receiver's process before anything is done with the frame, so it survives
the kill of whoever sent it and of whoever received it.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import signal
import sqlite3
import struct
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from bruit.accounts.register import WHERE as REGISTER
from bruit.errors import BruitError
from bruit.peers.founding.demo import read_json
from bruit.peers.founding.founding import found
from bruit.peers.founding.nursery import watch_lifeline
from bruit.peers.journal.journal import recorded_spend
from bruit.peers.journal.step import Spend
from bruit.peers.site.running import run_participants
from bruit.peers.site.site import participant, read_site
from bruit.peers.wire.address_book import AddressBook
from bruit.peers.wire.listening import Listener

NOTE = struct.Struct("<iqqB16s")
TEXT = """\
graph = "{graph}"
steps = {steps}
seed = 3

[task]
kind = "mean"
dim = 2

[algorithm]
name = "gossip-sgd"

[privacy]
sigma = 1.5
"""


class Note(NamedTuple):
    """One frame that reached a peer: who sent it, its place, its round, whether it carries values,
    and its digest."""

    sender: int
    sequence: int
    number: int
    payload: int
    digest: bytes


class Village:
    """Founded in a folder; processes end with `close`, or with the process that founded it."""

    def __init__(
        self,
        folder: Path,
        peers: int = 3,
        steps: int = 10**6,
        timeout: float = 600.0,
        graph: str = "",
    ) -> None:
        (folder / "agreed.toml").write_text(
            TEXT.format(graph=graph or f"ring:{peers}", steps=steps)
        )
        self.sites = found(
            str(folder / "agreed.toml"), peers, None, folder / "network", timeout=timeout
        )
        self.book = AddressBook.read(
            self.sites[0].parent / "book.toml"
        )  # read once, for all who are forked
        self.pids: dict[int, int] = {}
        self._read = [0] * peers
        self._watched, self._lifeline = os.pipe()

    def start(self, peer: int) -> None:
        sys.stdout.flush()
        pid = os.fork()
        if pid == 0:
            os.close(self._lifeline)
            _live(self.sites[peer], self._watched)
        self.pids[peer] = pid

    def end(self, peer: int, number: int, patience: float = 60.0) -> int:
        """Send a signal and wait for the end; the exit code, or minus the signal."""
        pid = self.pids.pop(peer)
        os.kill(pid, number)
        deadline = time.monotonic() + patience
        while True:
            gone, status = os.waitpid(pid, os.WNOHANG)
            if gone:
                return os.waitstatus_to_exitcode(status)
            if time.monotonic() > deadline:
                os.kill(pid, signal.SIGKILL)
            time.sleep(0.002)

    def gone(self, peer: int) -> int | None:
        """The exit code of a process that has ended by itself, None while it runs."""
        pid, status = os.waitpid(self.pids[peer], os.WNOHANG)
        if not pid:
            return None
        del self.pids[peer]
        return os.waitstatus_to_exitcode(status)

    def status(self, peer: int) -> dict[str, Any]:
        return read_json(self.sites[peer].parent / "state" / "status.json")

    def report(self, peer: int) -> dict[str, Any]:
        return read_json(self.sites[peer].parent / "state" / "report.json")

    def log(self, peer: int) -> str:
        return (self.sites[peer].parent / "log.txt").read_text(errors="replace")[-2000:]

    def releases(self, peer: int) -> list[int]:
        """The clock of every release of data in the journal of a peer that does not run."""
        journal = self.sites[peer].parent / "state" / "journal.db"
        if not journal.exists():
            return []
        try:
            lines = recorded_spend(journal)
        except (
            BruitError
        ):  # it was killed where only a writer can recover the file; that is done to a copy
            lines = _recovered(journal)
        return [line.clock for line in lines if '"gaussian"' in line.event]

    def notes(self, peer: int) -> Iterator[Note]:
        """The frames that reached this peer since the last time they were asked for."""
        path = self.sites[peer].parent / "notes.bin"
        if not path.exists():
            return
        with open(path, "rb") as stream:
            stream.seek(self._read[peer])
            data = stream.read()
        whole = len(data) // NOTE.size * NOTE.size
        self._read[peer] += whole
        yield from (Note(*line) for line in NOTE.iter_unpack(data[:whole]))

    def close(self) -> None:
        for peer in list(self.pids):
            self.end(peer, signal.SIGKILL)
        os.close(self._lifeline)
        os.close(self._watched)


@contextlib.contextmanager
def village(**settings: Any) -> Iterator[Village]:
    """A village in a folder of its own, which goes away with it."""
    with tempfile.TemporaryDirectory(prefix="bruit-reliability-") as folder:
        made = Village(Path(folder), **settings)
        try:
            yield made
        finally:
            made.close()


def until(condition: Callable[[], Any], what: str, patience: float = 120.0) -> Any:
    """Wait for a condition, with a deadline."""
    deadline = time.monotonic() + patience
    while not (found := condition()):
        if time.monotonic() > deadline:
            raise SystemExit(f"not within {patience:g} s: {what}")
        time.sleep(0.02)
    return found


def _recovered(journal: Path) -> list[Spend]:
    with tempfile.TemporaryDirectory(prefix="bruit-reliability-") as folder:
        for part in journal.parent.glob("journal.db*"):
            if not part.name.endswith("-shm"):
                shutil.copy(part, folder)
        copy = Path(folder) / journal.name
        with contextlib.closing(sqlite3.connect(copy)) as writer:
            writer.execute("PRAGMA wal_checkpoint").fetchall()
        return recorded_spend(copy)


def _live(site: Path, lifeline: int) -> None:
    """In the child: one real peer, to its end."""
    code = 2
    try:
        log = os.open(site.parent / "log.txt", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        os.dup2(log, 1)
        os.dup2(log, 2)
        watch_lifeline(lifeline, [os.getpid()])
        os.environ[REGISTER] = ""  # accounts of a village are gone with it
        _take_notes(
            os.open(site.parent / "notes.bin", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        )
        code = run_participants([participant(read_site(site))])
    except BaseException as error:  # the child must never return into the parent's code
        print(f"{type(error).__name__}: {error}", file=sys.stderr, flush=True)
    finally:
        os._exit(code)


def _take_notes(file: int) -> None:
    accept = Listener.accept

    async def noted(self: Listener, sender: int, frame: Any, data: bytes) -> bool:
        if frame.sequence:
            digest = hashlib.sha256(data).digest()[:16]
            os.write(
                file, NOTE.pack(sender, frame.sequence, frame.number, bool(frame.fields), digest)
            )
        return await accept(self, sender, frame, data)

    Listener.accept = noted  # type: ignore[method-assign]
