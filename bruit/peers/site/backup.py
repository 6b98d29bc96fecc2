"""A backup of one participant: its keys and a copy of its ledger in one file, as secret as the
keys.

The journal itself is not in it. A peer that went on from a copy would release more than its ledger
says; so only what was spent is copied, without secret, keys of the dice and state, and no peer
starts from that.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
import zipfile
from pathlib import Path

from bruit.errors import ConfigError
from bruit.peers.journal.journal import copy_ledger, recorded_spend
from bruit.peers.site.site import Site
from bruit.peers.wire.identity import CERTIFICATE, KEY, SIGNING_KEY, STAMPS
from bruit.peers.wire.revisions.memory import FILE as BOOKS

LEDGER = "ledger.db"


def back_up(site: Site, file: str | Path, out: Path) -> int:
    """Write keys, agreements and ledger of a peer that does not run to a new file; how many ledger
    lines there are."""
    identity = site.folder / site.file.identity
    wanted = {name: identity / name for name in (KEY, SIGNING_KEY, CERTIFICATE)}
    if (identity / STAMPS).exists():
        wanted[STAMPS] = identity / STAMPS
    if (identity / BOOKS).exists():
        wanted[BOOKS] = identity / BOOKS
    wanted |= {
        "site.toml": Path(file),
        "book.toml": site.folder / site.file.book,
        "experiment.toml": site.folder / site.file.experiment,
    }
    missing = [path for path in wanted.values() if not path.is_file()]
    if missing:
        raise ConfigError(f"there is no file {missing[0]} to back up")
    journal, lines = site.state / "journal.db", 0
    with tempfile.TemporaryDirectory(prefix="bruit-backup-") as folder:
        if journal.exists():
            wanted[LEDGER] = Path(folder) / LEDGER
            copy_ledger(journal, wanted[LEDGER])
            lines = len(recorded_spend(wanted[LEDGER]))
        _write(wanted, out)
    return lines


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
