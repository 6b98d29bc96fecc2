"""The file a journal lives in: made whole or not at all, locked, synced, and refused when anything
is wrong with it.

Nothing here ever starts afresh over an existing file: a peer that forgot what it said would draw
new noise for a value it has already released.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from bruit.errors import BrokenStateError, ConfigError, PrivacyError

MARK, VERSION = 0x62727569, 5  # "brui", the number that says whose file it is; and its layout
SECRET_BYTES = 16
# what sqlite says of a damaged schema or key, since our own statements are always the same
UNREADABLE = ("SQLITE_ERROR", "SQLITE_CONSTRAINT", "SQLITE_MISMATCH", "SQLITE_FORMAT")
PRIVATE = frozenset(
    {"records"}
)  # facts that are digests of private data: kept keyed by the secret, and never shown
LAYOUT = f"""
PRAGMA application_id = {MARK};
PRAGMA user_version = {VERSION};
CREATE TABLE header (name TEXT PRIMARY KEY, value BLOB NOT NULL);
CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE steps (number INTEGER PRIMARY KEY, content BLOB NOT NULL, lines INTEGER NOT NULL, seal BLOB NOT NULL);
CREATE TABLE spends (line INTEGER PRIMARY KEY, peer INTEGER NOT NULL, step INTEGER NOT NULL, clock INTEGER NOT NULL,
                     event TEXT NOT NULL, seal BLOB NOT NULL);
CREATE TABLE outbox (receiver INTEGER NOT NULL, sequence INTEGER NOT NULL, payload BLOB NOT NULL, seal BLOB NOT NULL,
                     PRIMARY KEY (receiver, sequence));
CREATE TABLE snapshot (one INTEGER PRIMARY KEY CHECK (one = 1), state BLOB NOT NULL, places TEXT NOT NULL,
                       seal BLOB NOT NULL);
"""


def seal(*parts: object) -> bytes:
    """A checksum of one line: sqlite itself would not notice a flipped bit inside a value."""
    digest = hashlib.blake2b(digest_size=8)
    for part in parts:
        content = part if isinstance(part, bytes) else repr(part).encode()
        digest.update(len(content).to_bytes(8, "little") + content)
    return digest.digest()


def check_seal(found: bytes, path: Path, what: str, *parts: object) -> None:
    if found != seal(*parts):
        raise damaged(path, f"{what} has changed since it was written")


def damaged(path: Path, why: object) -> BrokenStateError:
    return BrokenStateError(
        f"the journal {path} is damaged ({why}); this peer cannot go on in this run, since it no"
        " longer knows what it has said: keep the file, and begin a new run with a new budget"
    )


@contextlib.contextmanager
def journal_errors(path: Path) -> Iterator[None]:
    """Turn what sqlite and the system say into one sentence that names the file."""
    try:
        yield
    except sqlite3.Error as error:
        name = getattr(error, "sqlite_errorname", "")
        if name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
            raise ConfigError(
                f"the journal {path} is in use by another process; one peer, one process: stop the "
                f"other one first"
            ) from error
        if name.startswith(("SQLITE_CORRUPT", "SQLITE_NOTADB")):
            raise damaged(path, error) from error
        if name.startswith(("SQLITE_FULL", "SQLITE_IOERR")):
            raise ConfigError(
                f"cannot write the journal {path}: {error}; nothing of this step was kept or sent:"
                " make room on the disk, then start the peer again"
            ) from error
        if name.startswith(("SQLITE_READONLY", "SQLITE_CANTOPEN", "SQLITE_PERM")):
            raise ConfigError(
                f"cannot write the journal {path}: {error}; nothing of this step was kept or sent:"
                " give this user the right to write there"
            ) from error
        if name.startswith(UNREADABLE) or (
            not name and isinstance(error, sqlite3.OperationalError)
        ):
            raise damaged(path, error) from error
        raise ConfigError(f"the journal {path} failed: {error}") from error
    except UnicodeDecodeError as error:  # so python says what sqlite would have said
        raise damaged(path, error) from error
    except OSError as error:
        raise ConfigError(f"cannot write the journal {path}: {error.strerror or error}") from error


def stored_fact(name: str, value: str, secret: bytes) -> str:
    """A fact as the journal keeps it: who has no secret (a copy has none) cannot compare a private
    one with guesses."""
    return (
        hashlib.blake2b(value.encode(), digest_size=16, key=secret).hexdigest()
        if name in PRIVATE
        else value
    )


def create(path: Path, run_id: str, facts: Mapping[str, str]) -> None:
    """Make the journal of a new run, with a fresh secret; it appears complete or not at all."""

    def fill(draft: sqlite3.Connection) -> None:
        draft.executescript(f"BEGIN; {LAYOUT}")
        secret = os.urandom(SECRET_BYTES)
        known = (("run_id", run_id), ("secret", secret), ("starts", 0))
        draft.executemany("INSERT INTO header VALUES (?, ?)", known)
        lines = [(name, stored_fact(name, value, secret)) for name, value in sorted(facts.items())]
        draft.executemany("INSERT INTO facts VALUES (?, ?)", lines)
        draft.execute(
            "INSERT INTO header VALUES ('seal', ?)", (beginning_seal(run_id, secret, dict(lines)),)
        )
        draft.execute("COMMIT")

    with contextlib.suppress(
        FileExistsError
    ):  # another process was faster: its journal is opened, if it lets us
        publish(path, fill)


def publish(path: Path, fill: Callable[[sqlite3.Connection], None]) -> None:
    """Fill a database beside `path`, readable by its owner only, then put it there; FileExistsError
    if one is there."""
    draft = path.with_name(f".{path.name}.{os.urandom(4).hex()}.part")
    try:
        with journal_errors(path):
            os.close(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
            with contextlib.closing(sqlite3.connect(draft, isolation_level=None)) as connection:
                connection.execute("PRAGMA synchronous = FULL")
                fill(connection)
        try:
            os.link(draft, path)  # unlike a renaming, never over an existing file
        except FileExistsError:
            raise
        except OSError as error:
            raise ConfigError(
                f"cannot write the journal {path}: {error.strerror or error}"
            ) from error
        sync_folder(path.parent)
    finally:
        for name in (draft, draft.with_name(draft.name + "-journal")):
            with contextlib.suppress(OSError):
                name.unlink()


def sync_folder(folder: Path) -> None:
    """Make the names in a folder survive a power cut, where the system can."""
    if os.name == "posix":
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def connect(path: Path) -> sqlite3.Connection:
    """Open an existing journal for this process alone, every commit synced; check that it is
    whole."""
    with journal_errors(path):
        connection = sqlite3.connect(
            f"{path.absolute().as_uri()}?mode=rw",
            uri=True,
            timeout=0,
            isolation_level=None,
            check_same_thread=False,
        )
        try:
            connection.execute(
                "PRAGMA locking_mode = EXCLUSIVE"
            )  # before the first read, which then takes the lock
            check_whole(connection, path)
            (mode,) = connection.execute("PRAGMA journal_mode = WAL").fetchone()
            for setting in (
                "synchronous = FULL",
                "fullfsync = ON",
                "checkpoint_fullfsync = ON",
                "cache_size = -64",
            ):
                connection.execute(f"PRAGMA {setting}")
            connection.execute(
                "BEGIN IMMEDIATE"
            )  # whoever may write holds the lock until the connection is closed
            connection.execute("COMMIT")
            if mode != "wal":
                raise ConfigError(
                    f"the journal {path} is on a disk that cannot keep it safe (sqlite mode"
                    f" {mode}); use a local disk"
                )
        except BaseException:
            connection.close()
            raise
    return connection


def check_whole(connection: sqlite3.Connection, path: Path) -> None:
    """Refuse another program's file, another layout, and a damaged one."""
    (mark,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if mark != MARK:
        raise damaged(path, "it is empty or not a journal")
    if version != VERSION:
        raise ConfigError(
            f"the journal {path} has layout {version}, this version reads {VERSION};"
            " use the version that began the run"
        )
    (verdict,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    if verdict != "ok":
        raise damaged(path, verdict)


def beginning_seal(run_id: object, secret: object, facts: Mapping[str, str]) -> bytes:
    """A checksum of what a journal was made with, and never changes."""
    return seal(run_id, secret, *(part for fact in sorted(facts.items()) for part in fact))


def check_beginning(connection: sqlite3.Connection, path: Path) -> int:
    """Refuse a journal whose header or facts have changed: a flipped bit in them is damage, and not
    the other run or the other records it would look like. How often it was opened before."""
    header = dict(connection.execute("SELECT name, value FROM header"))
    facts = dict(connection.execute("SELECT name, value FROM facts"))
    texts = all(isinstance(text, str) for fact in facts.items() for text in fact)
    starts = header.get("starts")
    if (
        not texts
        or not isinstance(starts, int)
        or header.get("seal") != beginning_seal(header.get("run_id"), header.get("secret"), facts)
    ):
        raise damaged(path, "its header has changed since it was written")
    return starts


def check_original(connection: sqlite3.Connection, path: Path) -> None:
    """Refuse a copy of the ledger."""
    if connection.execute("SELECT COUNT(*) FROM header WHERE name = 'secret'").fetchone() == (0,):
        raise BrokenStateError(
            f"{path} is a copy of a journal; what was said after it was made is not in it, so going"
            " on from it would release more than its ledger says"
        )


def check_same_run(
    connection: sqlite3.Connection, path: Path, run_id: str, facts: Mapping[str, str]
) -> None:
    """Refuse to go on with another run, other records, another mechanism: the noise so far is
    fixed."""
    header = dict(connection.execute("SELECT name, value FROM header"))
    if header.get("run_id") != run_id:
        raise ConfigError(
            f"the journal {path} belongs to run {header.get('run_id')}, not to run {run_id};"
            " use one folder per run, and the address book and experiment this run began with"
        )
    began: dict[str, str] = dict(connection.execute("SELECT name, value FROM facts"))
    for name in sorted(began.keys() | facts.keys()):
        then = began.get(name, "none")
        now = stored_fact(name, facts[name], header["secret"]) if name in facts else "none"
        if then != now:
            how = (
                f"the digest in {path} is another"
                if name in PRIVATE
                else f"digest {then} in {path}, {now} now"
            )
            raise PrivacyError(
                f"the {name} changed since this run began ({how}): refusing to go on, because the"
                " same noise would protect two different values"
            )
