"""CSV files, plain or .gz: cells between commas, semicolons, tabs or bars, in UTF-8. What is
something else is refused with its line and with what to do: a quote that is never closed would
swallow all rows after it."""

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
from bruit.tasks.data.columns import COMMA, Columns, number, with_commas

BETWEEN = (",", ";", "\t", "|")  # what the header holds most of stands between cells
QUOTED = re.compile(r'"(?:[^"]|"")*"')
LONGEST_HEADER = 1_000_000
SHARED = 100_000  # so many different cells are kept once, however often they occur
UTF_16 = (b"\xff\xfe", b"\xfe\xff")
SAVE_AS = 'save it as UTF-8 (in a spreadsheet: "CSV UTF-8"; in a shell: iconv -f {guess} -t utf-8)'


def read_csv(path: Path) -> Columns:
    """A CSV file with a header line."""
    rows: list[list[str]] = []
    lines: list[int] = [0]
    text = _text(path)
    between = _between(text)
    reader = csv.reader(
        StringIO(text, newline=""), delimiter=between, strict=True, skipinitialspace=between != "\t"
    )
    try:
        header = [name.strip() for name in next(reader, [])]
        lines[0] = reader.line_num
        for row in _rows(path.name, reader, len(header)):
            rows.append(row)
            lines.append(reader.line_num)
    except csv.Error as error:
        first, last = lines[-1] + 1, reader.line_num
        where = f"line {last}" if first >= last else f"lines {first} to {last}"
        raise ConfigError(
            f"{path.name}, {where}: a quote that opens there is not closed where its cell ends "
            f"({error}); repair it, and write a quote inside a cell twice"
        ) from error
    header, rows = _named(header, rows)
    _check_header(path.name, header, rows)
    table = Columns(path.name, tuple(header), tuple(zip(*rows, strict=True)), tuple(lines[1:]))
    if between != ",":
        _refuse_decimal_commas(table)
    return table


def _named(header: list[str], rows: list[list[str]]) -> tuple[list[str], list[list[str]]]:
    """Without columns that have neither a name nor a cell: spreadsheets write such."""
    bare = [k for k, name in enumerate(header) if not name and not any(row[k] for row in rows)]
    if not bare or not rows:
        return header, rows
    kept = [k for k in range(len(header)) if k not in bare]
    return [header[k] for k in kept], [[row[k] for k in kept] for row in rows]


def _rows(file: str, reader: Iterator[list[str]], width: int) -> Iterator[list[str]]:
    """The rows that hold anything; equal cells are one text in memory."""
    known: dict[str, str] = {}
    for row in reader:
        if row and len(row) != width:
            line = reader.line_num  # type: ignore[attr-defined]
            mend = "repair that line"
            if width == 1:
                mend = "the first line names the columns, so remove what stands above their names"
            elif sum(map(bool, row)) == 1:
                mend += ", or remove it if it is no row"
            raise ConfigError(
                f"{file} line {line} has {how_many(len(row), 'cell')}, but the header names "
                f"{how_many(width, 'column')}; {mend}"
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
    header = re.split(r"[\r\n]", QUOTED.sub("", text[:LONGEST_HEADER]), maxsplit=1)[0]
    return max(BETWEEN, key=header.count)


def _refuse_decimal_commas(table: Columns) -> None:
    """A file with semicolons may have decimal commas, and 1,5 would be taken for a text."""
    for name, cells in zip(table.names, table.cells, strict=True):
        if with_commas(cells):
            row = next(i for i, cell in enumerate(cells) if COMMA.fullmatch(cell))
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
    if "" in doubled:
        place = len(header) - header[::-1].index("")
        raise ConfigError(f"{file} has two columns without a name, one at place {place}; name them")
    if doubled:
        raise ConfigError(f"{file} has two columns called {doubled[0]!r}; rename one")
