"""Edge lists on disk: two columns of ids, plain or gzipped, and where the ego-Facebook files lie."""

from __future__ import annotations

import gzip
import os
from pathlib import Path
from zlib import error as ZlibError

import numpy as np

from bruit.arrays import Ints
from bruit.errors import ConfigError


def read_edges(path: Path) -> tuple[Ints, tuple[str, ...]]:
    """Edges (E, 2) over the positions of the ids in sorted order, and those ids.

    Ids sort as numbers when all are integers, as words otherwise. Columns are separated by blanks or one comma.
    """
    pairs = _pairs(path, _text(path))
    if not pairs:
        raise ConfigError(f"{path} holds no edge; expected two ids a line")
    flat = [name for pair in pairs for name in pair]
    try:
        ids, places = np.unique(np.array([int(name) for name in flat], dtype=np.int64), return_inverse=True)
        labels = tuple(str(i) for i in ids)
    except (ValueError, OverflowError):
        words, places = np.unique(np.array(flat), return_inverse=True)
        labels = tuple(str(word) for word in words)
    return places.reshape(-1, 2).astype(np.int64), labels


def ego_path(ego_id: int, folder: str | Path | None) -> Path:
    """The edges of one ego network in the first data folder that has them."""
    given = folder if folder is not None else os.environ.get("BRUIT_DATA")
    beside = (Path.cwd(), Path(__file__).resolve().parents[2])
    folders = [Path(given)] if given else list(dict.fromkeys((base / ".." / "shared" / "data").resolve()
                                                             for base in beside))
    for place in folders:
        for path in (place / "ego_facebook" / f"{ego_id}.edges.gz", place / "ego_facebook" / f"{ego_id}.edges"):
            if path.is_file():
                return path
    known = sorted(int(path.name.split(".")[0]) for place in folders
                   for path in (place / "ego_facebook").glob("*.edges*"))
    looked = ", ".join(str(place / "ego_facebook") for place in folders)
    hint = f"the egos there are {', '.join(map(str, known))}" if known else "set BRUIT_DATA to the data folder"
    raise ConfigError(f"no edges of ego {ego_id}: looked in {looked}; {hint}")


def _text(path: Path) -> str:
    try:
        raw = path.read_bytes()
        return (gzip.decompress(raw) if path.suffix == ".gz" else raw).decode("utf-8")
    except FileNotFoundError:
        raise ConfigError(f"no edge list at {path}") from None
    except (OSError, EOFError, ZlibError) as error:
        raise ConfigError(f"cannot read the edge list {path}: {error}") from None
    except UnicodeDecodeError:
        raise ConfigError(f"{path} is not a text file; expected two ids a line") from None


def _pairs(path: Path, text: str) -> list[list[str]]:
    pairs = []
    for number, line in enumerate(text.splitlines(), start=1):
        columns = line.split("#", 1)[0].replace(",", " ").split()
        if not columns:
            continue
        if len(columns) != 2:
            raise ConfigError(f"{path}, line {number}: {len(columns)} column(s) in {line.strip()[:60]!r}; "
                              "expected two ids")
        pairs.append(columns)
    return pairs
