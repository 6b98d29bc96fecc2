"""A file of lines that follow from each other: whoever edits, drops or reorders one is found out.

    line k = JSON with  n = k,  before = SHA-256 of line k - 1

Lines are only ever added, each with one write, synced before the writer goes on. What a crash left of
a last line is cut off by the next writer, who says so in a line of its own: nobody had gone on after
it. Lines that are missing at the end leave a chain as good as before; that is found out only by
whoever knows an earlier head (`ChainHead`): the register, a report, a journal.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from bruit.errors import BrokenStateError, ConfigError
from bruit.files import plain, sync_folder

PATIENCE = 10.0  # seconds another writer is waited for
NOTHING = "0" * 64  # what comes before the first line


class ChainHead(NamedTuple):
    """How far a chain has come: how many lines, and the hash of the last."""

    lines: int
    hash: str

    def describe(self) -> dict[str, Any]:
        return {"lines": self.lines, "hash": self.hash}


@dataclass(frozen=True)
class ChainLines:
    """What is in a file: its lines as far as they follow from each other, what a crash left of one
    after them, and the first flaw in words."""

    lines: list[dict[str, Any]]
    hashes: list[str]
    torn: int = 0
    flaw: str = ""

    @property
    def head(self) -> ChainHead:
        return ChainHead(len(self.lines), self.hashes[-1] if self.hashes else NOTHING)

    def reaches(self, known: ChainHead) -> bool:
        """Whether this chain has that head, or had it before it went on."""
        if known.lines == 0:
            return True
        return known.lines <= len(self.lines) and self.hashes[known.lines - 1] == known.hash


def examine(data: bytes) -> ChainLines:
    """The lines in these bytes, up to the first that does not follow."""
    if not data:
        return ChainLines([], [], flaw="it is empty")
    found = ChainLines([], [])
    parts = data.split(b"\n")
    last = parts.pop()
    for part in parts:
        line = _parsed(part)
        if why := _flaw(line, found):
            return ChainLines(found.lines, found.hashes, flaw=why)
        _add(found, part, line)
    if not last:
        return found
    line = _parsed(last)
    if not _flaw(line, found):  # whole but for its end
        _add(found, last, line)
        return ChainLines(found.lines, found.hashes, torn=-1)
    if not found.lines:
        return ChainLines([], [], flaw="it does not begin with a whole line")
    return ChainLines(found.lines, found.hashes, torn=len(last))


def _add(found: ChainLines, part: bytes, line: Any) -> None:
    found.lines.append(line)
    found.hashes.append(hashlib.sha256(part).hexdigest())


def _parsed(part: bytes) -> Any:
    try:
        return json.loads(part)
    except (ValueError, RecursionError):
        return None


def _flaw(line: Any, found: ChainLines) -> str:
    place = len(found.lines) + 1
    if not isinstance(line, dict) or type(line.get("n")) is not int:
        return f"line {place} is no line of such a file: it was edited, or damaged"
    if line["n"] > place:
        return f"line {place} calls itself number {line['n']}: lines were removed before it, or reordered"
    if line["n"] < place:
        return f"line {place} calls itself number {line['n']}: lines were inserted or reordered"
    if line.get("before") != found.head.hash:
        what = f"line {place - 1} or {place}" if place > 1 else "line 1"
        return f"line {place} does not follow from what is before it: {what} was edited"
    return ""


@dataclass
class Chain:
    """Such a file; `what` it is, in words of errors."""

    path: Path
    what: str = "the file"

    @property
    def place(self) -> Path:
        """Where it lies, links followed."""
        return Path(os.path.realpath(self.path))

    def exists(self) -> bool:
        """Whether there is one, or a link that should lead to one."""
        return os.path.lexists(self.path)

    def read(self) -> ChainLines:
        """Its lines; refused if one does not follow. No file, no lines."""
        if not self.exists():
            return ChainLines([], [])
        try:
            data = self.path.read_bytes()
        except OSError as error:
            raise BrokenStateError(
                f"{self.what} {self.path} cannot be read ({error.strerror or error}); put back the file"
                " as it was"
            ) from None
        return self._sound(examine(data))

    def begin(self, content: Mapping[str, Any]) -> None:
        """Make the file with its first line, whole or not at all, unless there is one."""
        if self.exists():
            return
        draft = self.path.with_name(f".{self.path.name}.{os.urandom(4).hex()}")
        try:
            handle = os.open(draft, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o600)
            try:
                Writer(handle, draft, ChainLines([], []), ChainHead(0, NOTHING)).add(content)
            finally:
                os.close(handle)
            with contextlib.suppress(FileExistsError):  # another process was faster
                os.link(draft, self.path)
            sync_folder(self.path.parent)
        except OSError as error:
            raise ConfigError(
                f"cannot write {self.what} {self.path}: {error.strerror or error}"
            ) from None
        finally:
            with contextlib.suppress(OSError):
                draft.unlink()

    def _sound(self, found: ChainLines) -> ChainLines:
        if found.flaw:
            raise BrokenStateError(
                f"{self.what} {self.path} is damaged ({found.flaw}); put back the file as it was"
            )
        return found

    @contextlib.contextmanager
    def writing(self, left: ChainEnd | None = None) -> Iterator[Writer]:
        """The only writer for a while, among threads and processes. It has read what is there, unless
        the file is as long as its only writer `left` it."""
        place = self.place
        if self.path.is_symlink() and not place.exists():
            raise BrokenStateError(
                f"{self.what} {self.path} is a link to {place}, which is not there; put it back"
            )
        try:
            handle = os.open(place, os.O_RDWR | os.O_APPEND)
        except OSError as error:
            raise ConfigError(
                f"cannot write {self.what} {place}: {error.strerror or error}"
            ) from None
        try:
            self._lock(handle)
            if left is not None and os.fstat(handle).st_size == left.bytes:
                yield Writer(handle, place, ChainLines([], []), left.head)
                return
            with open(handle, "rb", closefd=False) as stream:
                found = self._sound(examine(stream.read()))
            writer = Writer(handle, place, found, found.head)
            if found.torn:
                writer.mend()
            yield writer
        finally:
            os.close(handle)

    def _lock(self, handle: int) -> None:
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise ConfigError(
                        f"another process has held {self.what} {self.path} for {PATIENCE:g} s; "
                        "try again when it is done"
                    ) from None
                time.sleep(0.01)
            except OSError as error:
                raise ConfigError(
                    f"{self.what} {self.path} is on a disk that cannot lock files "
                    f"({error.strerror or error}); use a local disk"
                ) from None


class ChainEnd(NamedTuple):
    """Where a writer left a file."""

    head: ChainHead
    bytes: int


@dataclass
class Writer:
    """Adds lines to a file that nobody else writes meanwhile; `found` was there before."""

    handle: int
    path: Path
    found: ChainLines
    head: ChainHead

    def end(self) -> ChainEnd:
        """Where the file ends now."""
        return ChainEnd(self.head, os.fstat(self.handle).st_size)

    def add(self, content: Mapping[str, Any], synced: bool = True) -> ChainHead:
        """One line more; it is on the disk when this returns."""
        line = {
            "n": self.head.lines + 1,
            "before": self.head.hash,
            "when": datetime.now(UTC).isoformat(timespec="seconds"),
            **content,
        }
        data = json.dumps(plain(line), allow_nan=False).encode()
        self._write(data + b"\n", synced)
        self.head = ChainHead(self.head.lines + 1, hashlib.sha256(data).hexdigest())
        return self.head

    def mend(self) -> None:
        """After a crash in the middle of a line."""
        torn = self.found.torn
        if torn < 0:  # only its end was missing
            self._write(b"\n", True)
        else:
            os.ftruncate(self.handle, os.fstat(self.handle).st_size - torn)
        self.found = ChainLines(self.found.lines, self.found.hashes)
        if torn > 0:
            self.add({"what": "torn", "bytes": torn})

    def _write(self, data: bytes, synced: bool) -> None:
        try:
            if os.name == "posix":
                os.fchmod(self.handle, 0o600)
            done = os.write(self.handle, data)
            if done < len(data):
                raise OSError(f"{done} of {len(data)} bytes were written")
            if synced:
                os.fsync(self.handle)
        except OSError as error:
            raise ConfigError(
                f"cannot write {self.path}: {error.strerror or error}; nothing was released"
            ) from None
