"""CSV files, plain or .gz: cells between commas, semicolons or tabs, in UTF-8. What is something
else is refused with its line and with what to do."""

from __future__ import annotations

import csv
import gzip
import re
from collections.abc import Iterator
from io import StringIO
from pathlib import Path

import numpy as np

from bruit.errors import ConfigError
from bruit.how_many import how_many
from bruit.tasks.data.columns import Columns, is_missing, number

BETWEEN = (",", ";", "\t")  # the first of these that the header holds stands between cells
DECIMAL_COMMA = re.compile(r"[+-]?\d*,\d+")
SHARED = 100_000  # so many different cells are kept once, however often they occur
UTF_16 = (b"\xff\xfe", b"\xfe\xff")
SAVE_AS = 'save it as UTF-8 (in a spreadsheet: "CSV UTF-8"; in a shell: iconv -f {guess} -t utf-8)'


def read_csv(path: Path) -> Columns:
    """A CSV file with a header line."""
    rows: list[list[str]] = []
    lines: list[int] = []
    text = _text(path)
    try:
        reader = csv.reader(StringIO(text, newline=""), delimiter=_between(text))
        header = [name.strip() for name in next(reader, [])]
        for row in _rows(path.name, reader, len(header)):
            rows.append(row)
            lines.append(reader.line_num)
    except csv.Error as error:
        raise ConfigError(f"{path.name} could not be read as CSV text: {error}") from error
    _check_header(path.name, header, rows)
    table = Columns(path.name, tuple(header), tuple(zip(*rows, strict=True)), tuple(lines))
    if _between(text) != ",":
        _refuse_decimal_commas(table)
    return table


def _rows(file: str, reader: Iterator[list[str]], width: int) -> Iterator[list[str]]:
    """The rows that hold anything; equal cells are one text in memory."""
    known: dict[str, str] = {}
    for row in reader:
        if row and len(row) != width:
            line = reader.line_num  # type: ignore[attr-defined]
            raise ConfigError(
                f"{file} line {line} has {how_many(len(row), 'cell')}, but the header names "
                f"{how_many(width, 'column')}; repair that line"
            )
        if len(known) < SHARED:
            known.update((cell, cell.strip()) for cell in row if cell not in known)
        if row:
            yield [known[cell] if cell in known else cell.strip() for cell in row]


def _text(path: Path) -> str:
    try:
        raw = path.read_bytes()
        raw = gzip.decompress(raw) if path.suffix == ".gz" else raw
    except (OSError, EOFError) as error:
        raise ConfigError(f"{path.name} could not be read: {error}") from error
    if raw.startswith(UTF_16):
        raise ConfigError(f"{path.name} is UTF-16 text; {SAVE_AS.format(guess='utf-16')}")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw[: error.start].count(b"\n") + 1
        raise ConfigError(
            f"{path.name} is not UTF-8 text: line {line} holds the byte 0x{raw[error.start]:02x}; "
            f"{SAVE_AS.format(guess='windows-1252')}"
        ) from error


def _between(text: str) -> str:
    header = text.partition("\n")[0]
    return next((sign for sign in BETWEEN if sign in header), ",")


def _refuse_decimal_commas(table: Columns) -> None:
    """A file with semicolons may have decimal commas, and 1,5 would be taken for a text."""
    for name, cells in zip(table.names, table.cells, strict=True):
        row = next((i for i, cell in enumerate(cells) if DECIMAL_COMMA.fullmatch(cell)), None)
        if row is None:
            continue
        points = (cell.replace(",", ".") for cell in set(cells) if not is_missing(cell))
        if all(np.isfinite(number(cell)) for cell in points):
            raise ConfigError(
                f"{table.file} line {table.lines[row]}, column {name!r} holds {cells[row]!r}, a "
                f"number with a decimal comma; save the file with decimal points"
            )


def _check_header(file: str, header: list[str], rows: list[list[str]]) -> None:
    if not header or not rows:
        raise ConfigError(f"{file} holds no records; give a header line and at least one record")
    if all(np.isfinite(number(name)) for name in header):
        raise ConfigError(f"the first line of {file} holds only numbers; it must name the columns")
    doubled = [name for name in header if header.count(name) > 1]
    if doubled:
        raise ConfigError(f"{file} has two columns called {doubled[0]!r}; rename one")
