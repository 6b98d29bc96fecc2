"""Files written whole or not at all, private ones never readable by others, and JSON that every
reader accepts."""

from __future__ import annotations

import contextlib
import json
import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any
from zipfile import BadZipFile
from zlib import error as ZlibError

from bruit.errors import ConfigError

# what reading a stored file raises when it was damaged, or never was one
UNREADABLE = (
    KeyError,
    IndexError,
    AttributeError,
    ValueError,
    TypeError,
    OSError,
    EOFError,
    BadZipFile,
    ZlibError,
)


def check_place(path: Path, force: bool = True) -> None:
    """Refuse a file that could never be written, before the work whose result it is to hold; unless
    forced, one that is there already, too."""
    if not path.parent.is_dir():
        raise ConfigError(f"cannot write {path}: there is no folder {path.parent}")
    if path.is_dir():
        raise ConfigError(f"cannot write {path}: it is a folder")
    if not force and path.exists():
        raise ConfigError(f"{path} exists; choose another name, or add --force to overwrite it")


def write_whole(
    path: Path,
    write: Callable[[IO[bytes]], object],
    private: bool = False,
    synced: bool = True,
) -> None:
    """Let `write` fill a draft beside the file, then put it in place at once; a failure leaves
    nothing behind.

    A private file can be read by its owner only, the draft of it too. What is of no use after a
    power cut, such as a status, need not be `synced` to the disk."""
    draft = path.with_name(f".{path.name}.part")
    try:
        with open(draft, "wb", opener=owner_only if private else None) as stream:
            write(stream)
            stream.flush()
            if synced:
                os.fsync(stream.fileno())
        os.replace(draft, path)
        if synced:
            sync_folder(path.parent)
    except OSError as error:
        raise ConfigError(f"cannot write {path}: {error.strerror or error}") from None
    finally:
        with contextlib.suppress(OSError):
            draft.unlink()


def sync_folder(folder: Path) -> None:
    """Make a new name survive a power cut, where folders can be synced at all."""
    if os.name != "posix":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        with contextlib.suppress(OSError):  # some file systems do not know how
            os.fsync(handle)
    finally:
        os.close(handle)


def owner_only(path: str, flags: int) -> int:
    """Open a file that its owner alone may read, whatever it was before; an `opener` for `open`."""
    handle = os.open(path, flags, 0o600)
    if os.name == "posix":
        os.fchmod(handle, 0o600)
    return handle


def private_folder(path: Path) -> list[str]:
    """Make a folder that its owner alone may enter, with files that its owner alone may read; what
    was open to others before, by name."""
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = []
    for place, mode in (
        (path, 0o700),
        *((file, 0o600) for file in sorted(path.iterdir()) if file.is_file()),
    ):
        if os.name == "posix" and place.stat().st_mode & 0o077:
            place.chmod(mode)
            found.append(place.name)
    return found


def closed_folder(path: Path) -> None:
    """Make a folder that its owner alone may enter. Files in one that was closed before are not
    looked at: nobody else could reach them, however many they are."""
    if not path.is_dir() or open_to_others(path):
        private_folder(path)


def open_to_others(path: Path) -> bool:
    """Whether others on this machine may read a file, as far as its own mode says."""
    return os.name == "posix" and path.exists() and bool(path.stat().st_mode & 0o077)


def plain(value: Any) -> Any:
    """The same content for JSON: infinite and undefined numbers become the words inf, -inf and
    nan."""
    if isinstance(value, dict):
        return {str(key): plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else str(float(value))
    return value


def to_json(content: Any) -> str:
    """JSON text without the tokens NaN and Infinity, which are no JSON."""
    return json.dumps(plain(content), indent=1, allow_nan=False)
