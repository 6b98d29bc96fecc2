"""Reports in files: what clients write and an aggregator reads, without running anything found in
them.

    reports.npz     arrays `format`, `version`, `protocol` (JSON text) and one array a column; never pickled
    reports.csv     # bruit local-dp reports 1 {"kind": "k-ary", "k": 4, "epsilon": 1.0}
                    value
                    3

A row that is not a possible report is counted and refused, and the rest is used; a file that is not
of this format, or of another version, is refused as a whole. Reports carry no names: who sent what
is not the aggregator's business.
"""

from __future__ import annotations

import json
import zipfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from io import BytesIO, StringIO
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from bruit.errors import ConfigError
from bruit.files import check_place, write_whole

FORMAT, VERSION = "bruit local-dp reports", 1
_RESERVED = ("format", "version", "protocol")


@dataclass(frozen=True, eq=False)
class Reports:
    """Columns of reports with the description of the protocol that made them.

    unreadable: rows of a file that were left out. labels: what the values 0, 1, ... are called, if
    they have names.
    """

    protocol: dict[str, Any]
    columns: dict[str, NDArray[Any]]
    unreadable: int = 0
    labels: tuple[str, ...] = ()

    def __len__(self) -> int:
        return min((len(column) for column in self.columns.values()), default=0)

    def column(self, name: str) -> NDArray[Any]:
        """One column, or an error that says which ones there are."""
        if name not in self.columns:
            raise ConfigError(
                f"these reports have no column {name!r} (there are: {', '.join(self.columns)});"
                f" they were not made by the protocol {self.protocol.get('kind')!r} they name"
            )
        return self.columns[name]


def merge(parts: Sequence[Reports]) -> Reports:
    """Reports of several files as one; all must come from one protocol with the same parameters."""
    if not parts:
        raise ConfigError("there are no reports to estimate from; name at least one file")
    first = parts[0]
    for part in parts[1:]:
        if (part.protocol, part.labels) != (first.protocol, first.labels):
            raise ConfigError(
                f"reports of different protocols cannot be counted together: {first.protocol} and "
                f"{part.protocol}; estimate from each alone"
            )
    columns = {
        name: np.concatenate([part.column(name) for part in parts]) for name in first.columns
    }
    return Reports(first.protocol, columns, sum(part.unreadable for part in parts), first.labels)


def save_reports(reports: Reports, path: Path) -> None:
    """Write a .npz or .csv file, whole or not at all."""
    check_place(path)
    if path.suffix == ".npz":
        write_whole(path, lambda stream: _write_npz(reports, stream))
    elif path.suffix == ".csv":
        write_whole(path, lambda stream: _write_csv(reports, stream))
    else:
        raise ConfigError(f"reports are written to a .npz or .csv file, found {path.name}")


def load_reports(path: Path) -> Reports:
    """Read a .npz or .csv file of reports; what cannot be one is refused."""
    if not path.is_file():
        raise ConfigError(f"there is no file {path}")
    try:
        return _read_npz(path) if path.suffix == ".npz" else _read_csv(path)
    except (ValueError, OSError, EOFError, KeyError, zipfile.BadZipFile) as error:
        raise ConfigError(
            f"{path.name} is no file of reports: {error}; write it with `bruit ldp report`"
        ) from None


def _write_npz(reports: Reports, stream: IO[bytes]) -> None:
    arrays: dict[str, Any] = {"format": np.str_(FORMAT), "version": np.int64(VERSION)}
    arrays |= {"protocol": np.str_(_header(reports)), **reports.columns}
    np.savez(stream, **arrays)


def _write_csv(reports: Reports, stream: IO[bytes]) -> None:
    stream.write(f"# {FORMAT} {VERSION} {_header(reports)}\n".encode())
    stream.write((",".join(reports.columns) + "\n").encode())
    cells = [_cells(column) for column in reports.columns.values()]
    stream.writelines((",".join(row) + "\n").encode() for row in zip(*cells, strict=True))


def _cells(column: NDArray[Any]) -> list[str]:
    """Numbers as they are read back exactly; a row of bytes as one hexadecimal word."""
    if column.ndim == 2:
        return [row.tobytes().hex() for row in np.ascontiguousarray(column, dtype=np.uint8)]
    return [repr(value) for value in column.tolist()]


def _read_npz(path: Path) -> Reports:
    with np.load(BytesIO(path.read_bytes()), allow_pickle=False) as content:
        found = {name: np.asarray(content[name]) for name in content.files}
    if any(name not in found for name in _RESERVED):
        raise ConfigError(f"{path.name} is no file of reports: it lacks {', '.join(_RESERVED)}")
    _check_version(path, str(found["format"]), str(found["version"]))
    columns = {name: array for name, array in found.items() if name not in _RESERVED}
    lengths = {array.shape[0] if array.ndim else -1 for array in columns.values()}
    if len(lengths) != 1 or lengths == {-1}:
        raise ConfigError(f"{path.name} is no file of reports: its columns differ in length")
    protocol, labels = _description(path, str(found["protocol"]))
    return Reports(protocol, columns, 0, labels)


def _read_csv(path: Path) -> Reports:
    lines = StringIO(path.read_bytes().decode("utf-8"))
    words = lines.readline().strip().split(" ", 5)
    if len(words) != 6 or " ".join(words[1:4]) != FORMAT:
        raise ConfigError(
            f"{path.name} is no file of reports: its first line must be `# {FORMAT} {VERSION} "
            f"{{...}}`"
        )
    _check_version(path, FORMAT, words[4])
    names = [name.strip() for name in lines.readline().strip().split(",")]
    rows, unreadable = [], 0
    for line in lines:
        if line.strip():
            cells = [
                _cell(name, text.strip())
                for name, text in zip(names, line.split(","), strict=False)
            ]
            right = line.count(",") == len(names) - 1 and all(cell is not None for cell in cells)
            unreadable += not right
            if right:
                rows.append(cells)
    usual = _usual_width(names, rows)
    kept = [
        row
        for row in rows
        if all(not isinstance(cell, bytes) or len(cell) == usual for cell in row)
    ]
    protocol, labels = _description(path, words[5])
    return Reports(protocol, _columns(names, kept), unreadable + len(rows) - len(kept), labels)


def _cell(name: str, text: str) -> int | float | bytes | None:
    """What a cell holds, None if it holds nothing sensible; a column of packed bits is written in
    hexadecimal."""
    try:
        if name == "bits":
            return bytes.fromhex(text)
        return int(text) if text.lstrip("-").isdigit() else float(text)
    except (ValueError, OverflowError):
        return None


def _columns(names: Sequence[str], rows: Sequence[Sequence[Any]]) -> dict[str, NDArray[Any]]:
    columns: dict[str, NDArray[Any]] = {}
    for name, cells in zip(
        names, zip(*rows, strict=True) if rows else [()] * len(names), strict=True
    ):
        if name == "bits":
            columns[name] = np.frombuffer(b"".join(cells), dtype=np.uint8).reshape(
                len(cells), -1 if cells else 0
            )
        elif all(isinstance(cell, int) for cell in cells):
            fits = [
                cell if -(2**63) <= cell < 2**63 else -1 for cell in cells
            ]  # no report is as large: refused later
            columns[name] = np.array(fits, dtype=np.int64)
        else:
            columns[name] = np.array([float(cell) for cell in cells], dtype=np.float64)
    return columns


def _usual_width(names: Sequence[str], rows: Sequence[Sequence[Any]]) -> int:
    """The length most rows of packed bits have; the protocol will say whether it is the right
    one."""
    if "bits" not in names:
        return 0
    widths = Counter(len(row[names.index("bits")]) for row in rows)
    return widths.most_common(1)[0][0] if widths else 0


def _header(reports: Reports) -> str:
    labels = {"labels": list(reports.labels)} if reports.labels else {}
    return json.dumps({**reports.protocol, **labels}, sort_keys=True)


def _check_version(path: Path, form: str, version: str) -> None:
    if form != FORMAT or version != str(VERSION):
        raise ConfigError(
            f"{path.name} says {form!r} version {version}; this version of bruit reads {FORMAT!r} "
            f"version {VERSION}"
        )


def _description(path: Path, text: str) -> tuple[dict[str, Any], tuple[str, ...]]:
    described = json.loads(text)
    if not isinstance(described, dict):
        raise ConfigError(f"{path.name} does not describe its protocol, found {text[:60]!r}")
    labels = described.pop("labels", [])
    if not isinstance(labels, list) or not all(isinstance(label, str) for label in labels):
        raise ConfigError(
            f"{path.name}: the labels of its values are a list of texts, found {str(labels)[:60]!r}"
        )
    return described, tuple(labels)
