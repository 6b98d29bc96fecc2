"""The register of one user of a machine: which records have an account, and how far it had come.

It holds no records and no amounts: for every account its place and head, and for contents of records
(a digest under a secret of this register) the account they pay from. So a copy of records, or an old
copy of an account, is recognized on this machine, by this user, bit for bit the same records only.
It lies in `$BRUIT_REGISTER`, else in `$XDG_STATE_HOME/bruit` or `~/.local/state/bruit`; where
`BRUIT_REGISTER` is empty there is none.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import logging
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from bruit.accounts.chain import ChainHead
from bruit.errors import BrokenStateError, BruitError
from bruit.files import closed_folder, write_whole

log = logging.getLogger("bruit.accounts")
WHERE = "BRUIT_REGISTER"


class Registered(NamedTuple):
    """What the register knows of one account."""

    id: str
    path: Path
    head: ChainHead


def place() -> Path | None:
    """Where the register lies; None where there is none."""
    named = os.environ.get(WHERE)
    if named is not None:
        return Path(named) if named else None
    state = os.environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state")
    return Path(state) / "bruit"


@dataclass(frozen=True)
class Register:
    """Small files in one folder, for its owner only."""

    folder: Path

    def account(self, id_: str) -> Registered | None:
        """What is known of an account."""
        found = self._read(self.folder / "accounts" / f"{id_}.json")
        if found is None:
            return None
        return Registered(
            id_, Path(found["path"]), ChainHead(int(found["lines"]), str(found["hash"]))
        )

    def paying_for(self, digest: bytes) -> Registered | None:
        """The account that records of these contents pay from."""
        if not (self.folder / "secret").exists():
            return None
        found = self._read(self._contents(digest))
        return None if found is None else self.account(str(found["account"]))

    def remember(self, known: Registered, digest: bytes | None) -> None:
        """An account has come so far; records of these contents pay from it."""
        accounts = self.folder / "accounts"
        closed_folder(accounts)
        about = {"path": str(known.path), **known.head._asdict()}
        _write(accounts / f"{known.id}.json", about)
        if digest is not None and not self._contents(digest).exists():
            closed_folder(self.folder / "contents")
            _write(self._contents(digest), {"account": known.id})

    def _contents(self, digest: bytes) -> Path:
        name = hmac.new(self._secret(), digest, hashlib.sha256).hexdigest()
        return self.folder / "contents" / f"{name}.json"

    def _secret(self) -> bytes:
        path = self.folder / "secret"
        if not path.exists():
            closed_folder(self.folder)
            draft = self.folder / f".secret.{os.getpid()}.{os.urandom(4).hex()}"
            write_whole(draft, lambda stream: stream.write(os.urandom(32)), private=True)
            try:
                os.link(draft, path)  # whoever is first has made it
            except FileExistsError:
                pass
            finally:
                draft.unlink()
        return path.read_bytes()

    def _read(self, path: Path) -> dict[str, Any] | None:
        try:
            found = json.loads(path.read_bytes())
            if not isinstance(found, dict):
                raise ValueError("no record")
            return found
        except (FileNotFoundError, NotADirectoryError):
            return None
        except (OSError, ValueError) as error:
            raise BrokenStateError(
                f"the register of accounts is damaged at {path} ({error}); put it back, or delete"
                " that file: copies of these records are then not recognized"
            ) from None


def _write(path: Path, content: dict[str, Any]) -> None:
    write_whole(path, lambda stream: stream.write(json.dumps(content).encode()), private=True)


def register() -> Register | None:
    """The register of this user, if there may be one."""
    folder = place()
    return None if folder is None else Register(folder)


def remember(known: Registered, digest: bytes | None) -> None:
    """Write down how far an account has come. Where no register can be written, that is told, and
    nothing else changes: the account itself holds every charge."""
    found = register()
    if found is None:
        return
    try:
        found.remember(known, digest)
    except (BruitError, OSError) as error:
        log.warning(
            "the register of accounts in %s cannot be written (%s): copies of these records and old"
            " copies of their account will not be recognized",
            found.folder,
            error,
        )
