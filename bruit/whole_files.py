"""Files written whole or not at all, and JSON that every reader accepts."""

from __future__ import annotations

import contextlib
import json
import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

from bruit.errors import ConfigError


def check_place(path: Path, force: bool = True) -> None:
    """Refuse a file that could never be written, before the work whose result it is to hold; unless forced, one that is
    there already, too."""
    if not path.parent.is_dir():
        raise ConfigError(f"cannot write {path}: there is no folder {path.parent}")
    if path.is_dir():
        raise ConfigError(f"cannot write {path}: it is a folder")
    if not force and path.exists():
        raise ConfigError(f"{path} exists; choose another name, or add --force to overwrite it")


def write_whole(path: Path, write: Callable[[IO[bytes]], object]) -> None:
    """Let `write` fill a draft beside the file, then put it in place at once; a failure leaves nothing behind."""
    draft = path.with_name(f".{path.name}.part")
    try:
        with open(draft, "wb") as stream:
            write(stream)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(draft, path)
    except OSError as error:
        raise ConfigError(f"cannot write {path}: {error.strerror or error}") from None
    finally:
        with contextlib.suppress(OSError):
            draft.unlink()


def plain(value: Any) -> Any:
    """The same content for JSON: infinite and undefined numbers become the words inf, -inf and nan."""
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
