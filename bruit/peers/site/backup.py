"""A backup of one participant: its keys, the account of its records and a copy of its ledger in one
file, as secret as the keys.

The journal itself is not in it. A peer that went on from a copy would release more than its ledger
says; so only what was spent is copied, without secret, keys of the dice and state, and no peer
starts from that. The copy of the account says that it is one (`accounts/backup`): it comes back where
nothing newer is left, and pays for nothing before somebody has stated what was paid since.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
import tomllib
import zipfile
from pathlib import Path

from bruit.accounts.account import beside
from bruit.accounts.backup import NAME as ACCOUNT
from bruit.accounts.backup import copy_of
from bruit.errors import ConfigError
from bruit.peers.journal.journal import copy_ledger, recorded_spend
from bruit.peers.site.audit_log import NAME as AUDIT_LOG
from bruit.peers.site.site import Site
from bruit.peers.wire.identity import CERTIFICATE, KEY, SIGNING_KEY, STAMPS
from bruit.peers.wire.members import FOLDER as SUCCESSIONS
from bruit.peers.wire.revisions.chain import books_beside, previous_of, standing_book
from bruit.peers.wire.revisions.memory import FILE as BOOKS

LEDGER = "ledger.db"


def back_up(site: Site, file: str | Path, out: Path) -> int:
    """Write keys, agreements, account and ledger of a peer that does not run to a new file; how many
    ledger lines there are."""
    wanted = {path.name: path for path in _agreements(site, Path(file))} | _keys(site)
    missing = [path for path in wanted.values() if not path.is_file()]
    if missing:
        raise ConfigError(f"there is no file {missing[0]} to back up")
    journal, account, lines = site.state / "journal.db", beside(_records(site)), 0
    with tempfile.TemporaryDirectory(prefix="bruit-backup-") as folder:
        if journal.exists():
            wanted[LEDGER] = Path(folder) / LEDGER
            copy_ledger(journal, wanted[LEDGER])
            lines = len(recorded_spend(wanted[LEDGER]))
        if account.exists():
            wanted[ACCOUNT] = Path(folder) / ACCOUNT
            wanted[ACCOUNT].write_bytes(copy_of(account))
        if (site.state / AUDIT_LOG).exists():
            wanted[AUDIT_LOG] = site.state / AUDIT_LOG
        _write(wanted, out)
    return lines


def _records(site: Site) -> Path:
    return site.folder / site.file.records


def _keys(site: Site) -> dict[str, Path]:
    """What says who this is: its keys, and the changes of keys that the others were told."""
    identity = site.folder / site.file.identity
    found = {name: identity / name for name in (KEY, SIGNING_KEY, CERTIFICATE)}
    found |= {name: identity / name for name in (STAMPS, BOOKS) if (identity / name).exists()}
    told = sorted((site.folder / SUCCESSIONS).glob("*"))
    return found | {f"{SUCCESSIONS}/{path.name}": path for path in told if path.is_file()}


def _agreements(site: Site, file: Path) -> list[Path]:
    """The files that were agreed on: site, book with the versions before it, experiment, columns."""
    book_file = site.folder / site.file.book
    experiment = site.folder / site.file.experiment
    found = [file, book_file, experiment]
    if not (book_file.is_file() and experiment.is_file()):
        return found
    before = {one.digest: path for path, one in books_beside(book_file)}
    book = standing_book(book_file)
    while book.revision is not None:
        found.append(before[book.revision.previous])
        book = previous_of(book, book_file)
    columns = tomllib.loads(experiment.read_text()).get("task", {}).get("columns_file")
    return found if columns is None else [*found, experiment.parent / columns]


def _write(files: dict[str, Path], out: Path) -> None:
    """One archive, readable by its owner only; never over an existing file, and whole or not at
    all."""
    try:
        handle = os.open(out, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        raise ConfigError(f"{out} exists already; choose another name for the backup") from None
    except OSError as error:
        raise ConfigError(f"cannot write {out}: {error.strerror or error}") from None
    try:
        with os.fdopen(handle, "wb") as stream, zipfile.ZipFile(stream, "w") as archive:
            for name, path in files.items():
                entry = zipfile.ZipInfo(name)
                entry.external_attr = 0o600 << 16  # unzip gives it back like that
                archive.writestr(entry, path.read_bytes(), zipfile.ZIP_DEFLATED)
    except BaseException as error:
        with contextlib.suppress(OSError):
            out.unlink()
        if isinstance(error, OSError):
            raise ConfigError(f"cannot write {out}: {error.strerror or error}") from None
        raise
