"""Edge lists on disk: two columns of ids and perhaps one of weights, plain or gzipped; where the
ego files lie."""

from __future__ import annotations

import gzip
import hashlib
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from zlib import error as ZlibError

import numpy as np

from bruit.arrays import Array, Ints
from bruit.errors import ConfigError
from bruit.files import check_place, write_whole
from bruit.how_many import how_many

if TYPE_CHECKING:
    from bruit.graphs.graph import Graph


class EdgeFile(NamedTuple):
    """What a file says: pairs of positions among the labels, and the weight of each pair if there
    is a third column."""

    edges: Ints  # (E, 2)
    labels: tuple[str, ...]
    weights: Array | None  # (E,)


def read_edges(path: Path, sha256: str | None = None) -> EdgeFile:
    """Edges over the positions of the ids in sorted order, those ids, and weights where every line
    has one.

    Ids sort as numbers when all are integers, as words otherwise. Columns are separated by blanks
    or one comma. A file with another digest than `sha256` is refused.
    """
    lines = _lines(path, _text(path, sha256))
    if not lines:
        raise ConfigError(f"{path} holds no edge; expected two ids a line")
    weights = _weights(path, lines)
    flat = [name for _, columns in lines for name in columns[:2]]
    try:
        ids, places = np.unique(
            np.array([int(name) for name in flat], dtype=np.int64), return_inverse=True
        )
        labels = tuple(str(i) for i in ids)
    except (ValueError, OverflowError):
        words, places = np.unique(np.array(flat), return_inverse=True)
        labels = tuple(str(word) for word in words)
    return EdgeFile(places.reshape(-1, 2).astype(np.int64), labels, weights)


def to_edge_list(graph: Graph | str, path: str | Path) -> Path:
    """Write a graph with its weights as an edge list, `id id weight` a line, which `file:` reads
    back to the last bit.

    A peer without neighbors is a line with its id twice. Ids are the labels of the peers, else
    their numbers.
    """
    from bruit.graphs.names import fixed_graph  # reads edge files itself

    graph = fixed_graph(graph)
    target = Path(path)
    check_place(target)
    names = graph.labels or tuple(str(v) for v in range(graph.n))
    bad = [name for name in names if not name or re.search(r"[\s,#]", name)]
    if bad:
        raise ConfigError(
            f"the label {bad[0]!r} cannot stand in an edge list, whose columns end at blanks,"
            " commas and #; give the graph other labels"
        )
    text = [f"# {graph.name}: {graph.n} peers, {graph.edge_count} edges, mixing weights"]
    rows, matrix = np.repeat(np.arange(graph.n), np.diff(graph.weights.indptr)), graph.weights
    written = (rows < matrix.indices) | ((rows == matrix.indices) & (graph.degrees[rows] == 0))
    entries = zip(
        rows[written].tolist(),
        matrix.indices[written].tolist(),
        matrix.data[written].tolist(),
        strict=True,
    )
    text += [f"{names[a]} {names[b]} {weight!r}" for a, b, weight in entries]
    content = ("\n".join(text) + "\n").encode()
    write_whole(
        target,
        lambda file: file.write(
            gzip.compress(content, mtime=0) if target.suffix == ".gz" else content
        ),
    )
    return target


def ego_path(ego_id: int, folder: str | Path | None) -> Path:
    """The edges of one ego network in the first data folder that has them."""
    given = folder if folder is not None else os.environ.get("BRUIT_DATA")
    beside = (Path.cwd(), Path(__file__).resolve().parents[2])
    folders = (
        [Path(given)]
        if given
        else list(dict.fromkeys((base / ".." / "shared" / "data").resolve() for base in beside))
    )
    for place in folders:
        for path in (
            place / "ego_facebook" / f"{ego_id}.edges.gz",
            place / "ego_facebook" / f"{ego_id}.edges",
        ):
            if path.is_file():
                return path
    known = sorted(
        int(path.name.split(".")[0])
        for place in folders
        for path in (place / "ego_facebook").glob("*.edges*")
    )
    looked = ", ".join(str(place / "ego_facebook") for place in folders)
    hint = (
        f"the egos there are {', '.join(map(str, known))}"
        if known
        else "set BRUIT_DATA to the data folder"
    )
    raise ConfigError(f"no edges of ego {ego_id}: looked in {looked}; {hint}")


def _text(path: Path, sha256: str | None) -> str:
    try:
        raw = path.read_bytes()
        digest = hashlib.sha256(raw).hexdigest()
        if sha256 is not None and digest != sha256:
            raise ConfigError(
                f"{path} is not the edge list that was agreed on: its sha256 is {digest}, expected "
                f"{sha256}; ask the others for theirs"
            )
        return (gzip.decompress(raw) if path.suffix == ".gz" else raw).decode("utf-8")
    except FileNotFoundError:
        raise ConfigError(f"no edge list at {path}") from None
    except (OSError, EOFError, ZlibError) as error:
        raise ConfigError(f"cannot read the edge list {path}: {error}") from None
    except UnicodeDecodeError:
        raise ConfigError(f"{path} is not a text file; expected two ids a line") from None


def _lines(path: Path, text: str) -> list[tuple[int, list[str]]]:
    """The number and the columns of every line that holds something; all lines have two columns, or
    all three."""
    lines: list[tuple[int, list[str]]] = []
    for number, line in enumerate(text.splitlines(), start=1):
        columns = line.split("#", 1)[0].replace(",", " ").split()
        if not columns:
            continue
        if len(columns) not in (2, 3):
            raise ConfigError(
                f"{path}, line {number}: {how_many(len(columns), 'column')} in {line.strip()[:60]!r}; "
                "expected two ids, and perhaps a weight"
            )
        if lines and len(columns) != len(lines[0][1]):
            raise ConfigError(
                f"{path}, line {number}: {len(columns)} columns, but line {lines[0][0]} has "
                f"{len(lines[0][1])}; give every edge a weight, or none"
            )
        lines.append((number, columns))
    return lines


def _weights(path: Path, lines: list[tuple[int, list[str]]]) -> Array | None:
    if len(lines[0][1]) == 2:
        return None
    weights = np.empty(len(lines))
    for place, (number, columns) in enumerate(lines):
        try:
            weights[place] = float(columns[2])
        except ValueError:
            weights[place] = np.nan
        if not 0 <= weights[place] < np.inf:
            raise ConfigError(
                f"{path}, line {number}: the weight {columns[2]!r} is not a number >= 0"
            )
    return weights
