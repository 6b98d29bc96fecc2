"""Columns of text, and columns into numbers. Every complaint names the line and the column."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Literal, NamedTuple

import numpy as np

from bruit.arrays import Array, Bools
from bruit.errors import ConfigError
from bruit.tasks.counted import Counted, counted

MISSING = frozenset({"", "?", "na", "n/a", "#n/a", "<na>", "nan", "null", "none"})
BOOLEANS = frozenset({"true", "false"})
MOST_CATEGORIES = 100
COMMA = re.compile(r"[+-]?\d*,\d+")
LONGEST = 2.0**53  # from here on a float is the neighbor of several whole numbers
HELP = 'fill it (fill), leave out records with holes (holes = "drop") or the column (drop), or repair the file'
STRAY = "repair it, or leave the column out (drop)"
NO_KEYS = ("leave the row out of the file, or repair it",) * 2  # where no experiment has such keys

TEXT_HELP = (
    'say what stands there (fill = {{ {name} = "unknown" }}), leave out records with holes (holes = '
    '"drop") or the column (drop = ["{name}"]), or repair the file'
)


@dataclass(frozen=True)
class Columns(Counted):
    """A table of text: its column names, its cells column by column, and the file line of each
    row."""

    file: str
    names: tuple[str, ...]
    cells: tuple[tuple[str, ...], ...]
    lines: tuple[int, ...]

    def of(self, name: str) -> tuple[str, ...]:
        """The cells of one column."""
        if name not in self.names:
            raise ConfigError(f"{self.file} has no column {name!r}{nearest(name, self.names)}")
        return self.cells[self.names.index(name)]

    def refuse(self, name: str, holes: frozenset[str], mend: str = HELP) -> None:
        """Complain about the first cell of a column that is one of these, and say what to do."""
        row = next((i for i, cell in enumerate(self.of(name)) if cell.lower() in holes), None)
        if row is not None:
            raise ConfigError(
                f"{self.file} row {row} (line {self.lines[row]}), column {name!r} holds no value; "
                f"{mend}"
            )

    def rows(self, kept: Sequence[int]) -> "Columns":
        """These rows only."""
        cells = tuple(tuple(column[i] for i in kept) for column in self.cells)
        return Columns(self.file, self.names, cells, tuple(self.lines[i] for i in kept))

    def only(self, names: Sequence[str]) -> "Columns":
        """These columns, in this order."""
        return Columns(self.file, tuple(names), tuple(self.of(name) for name in names), self.lines)

    def without(self, dropped: frozenset[str]) -> "Columns":
        """The other columns."""
        return self.only([name for name in self.names if name not in dropped])

    def filled(self, name: str, text: str) -> "Columns":
        """The same with this text in the holes of a column."""
        place = self.names.index(name)
        column = tuple(text if is_missing(cell) else cell for cell in self.cells[place])
        return Columns(
            self.file,
            self.names,
            (*self.cells[:place], column, *self.cells[place + 1 :]),
            self.lines,
        )


class Codes(NamedTuple):
    """A column of text as numbers of its sorted distinct texts."""

    codes: Array
    names: tuple[str, ...]

    def __repr__(self) -> str:
        return counted("Codes", self._asdict())


def nearest(word: str, words: tuple[str, ...]) -> str:
    """The end of a complaint about a name: the nearest one, or all of them."""
    close = get_close_matches(word, words, n=1, cutoff=0.5)
    if close:
        return f"; did you mean {close[0]!r}?"
    shown = ", ".join(words[:20]) + (", .." if len(words) > 20 else "")
    return f"; there are: {shown}"


def is_missing(cell: str) -> bool:
    """Whether a cell stands for no value."""
    return cell.lower() in MISSING


def missing(cells: Sequence[str]) -> Bools:
    """Which cells stand for no value."""
    empty = {cell for cell in set(cells) if is_missing(cell)}
    return np.array([cell in empty for cell in cells], dtype=np.bool_)


def values_of(cells: Sequence[str]) -> dict[str, int]:
    """The different values of a column and how often each occurs; holes are no values."""
    return {cell: count for cell, count in Counter(cells).items() if not is_missing(cell)}


def kind_of(cells: Sequence[str]) -> Literal["numbers", "texts"]:
    """What a column holds: numbers if at least half of its values are finite numbers; holes are no
    values."""
    if bool(np.isfinite([number(cell) for cell in set(cells)]).all()):
        return "numbers"
    values = values_of(cells)
    finite = sum(count for cell, count in values.items() if np.isfinite(number(cell)))
    return "numbers" if values and 2 * finite >= sum(values.values()) else "texts"


def with_commas(cells: Sequence[str]) -> bool:
    """Whether the values are numbers of which some are written with a comma."""
    values = [cell for cell in set(cells) if not is_missing(cell)]
    return any(map(COMMA.fullmatch, values)) and all(
        np.isfinite(number(cell.replace(",", "."))) for cell in values
    )


def numbers(
    columns: Columns, name: str, holes: bool = False, mends: tuple[str, str] = (HELP, STRAY)
) -> Array | None:
    """A column as numbers; None if it holds text. A stray text among numbers is an error, and so is
    a hole, unless holes are allowed, as nan. `mends` say what to do about a hole and a stray."""
    cells = columns.of(name)
    known = {cell: number(cell) for cell in set(cells)}
    values = np.array([known[cell] for cell in cells])
    if bool(np.isfinite(values).all()):
        return values
    if kind_of(cells) == "texts":
        return None
    for row in np.flatnonzero(~np.isfinite(values)).tolist():
        hole = is_missing(cells[row])
        if hole and holes:
            values[row] = np.nan
            continue
        found, mend = ("no value", mends[0]) if hole else (f"{cells[row]!r}", mends[1])
        raise ConfigError(
            f"{columns.file} row {row} (line {columns.lines[row]}), column {name!r}:"
            f" {found} where the column holds numbers; {mend}"
        )
    return values


def codes(columns: Columns, name: str, agreed: Sequence[str] = ()) -> Codes:
    """A column of text, numbered in sorted order or as agreed; 1 and 1.0 are the same text."""
    columns.refuse(name, frozenset({""}))
    written = {cell: spelled(cell) for cell in set(columns.of(name))}
    names = [spelled(text) for text in agreed] or sorted(set(written.values()))
    place = {text: number for number, text in enumerate(names)}
    cells = columns.of(name)
    if agreed:
        row = next((i for i, cell in enumerate(cells) if written[cell] not in place), None)
        if row is not None:
            raise ConfigError(
                f"{columns.file} row {row} (line {columns.lines[row]}), column {name!r} holds "
                f"{cells[row]!r}, which is none of the agreed "
                f"values{nearest(cells[row], tuple(names))}"
            )
    return Codes(np.array([place[written[cell]] for cell in cells], dtype=np.float64), tuple(names))


def encode(
    columns: Columns,
    categories: frozenset[str],
    vocabulary: Mapping[str, Sequence[str]],
    holes: bool = False,
) -> tuple[Array, tuple[str, ...], dict[str, tuple[str, ...]]]:
    """All columns as features: numbers as they are, text (and the named categories) as one 0/1
    column a value.

    Returns the features, their names, and the values of the columns that were one-hot encoded.
    """
    parts: list[Array] = []
    names: list[str] = []
    encoded: dict[str, tuple[str, ...]] = {}
    strange = next((name for name in vocabulary if name not in columns.names), None)
    if strange is not None:
        raise ConfigError(
            f"the agreed vocabulary is of a column {strange!r}, which {columns.file} does not have"
            f" among its features{nearest(strange, columns.names)}"
        )
    for name in columns.names:
        values = None if name in categories or name in vocabulary else numbers(columns, name, holes)
        if values is not None:
            parts.append(values[:, None])
            names.append(name)
            continue
        columns.refuse(name, frozenset({""}), TEXT_HELP.format(name=name))
        coded = codes(columns, name, vocabulary.get(name, ()))
        if len(coded.names) > MOST_CATEGORIES:
            raise ConfigError(
                f"{columns.file} column {name!r} holds {len(coded.names)} different texts; a "
                f"category "
                f"may have {MOST_CATEGORIES}: leave it out (drop) or turn it into numbers"
            )
        parts.append((coded.codes[:, None] == np.arange(len(coded.names))).astype(np.float64))
        names.extend(f"{name}={value}" for value in coded.names)
        encoded[name] = coded.names
    if not parts:
        raise ConfigError(f"{columns.file} has no feature column beside label and owner")
    return np.concatenate(parts, axis=1), tuple(names), encoded


def spelled(cell: str) -> str:
    """A value as all its spellings are written: 1 and 1.0 are one value, and so are True and
    TRUE. Numbers too long for a float are texts."""
    if cell.lower() in BOOLEANS:
        return cell.lower()
    value = number(cell)
    return cell if np.isnan(value) or abs(value) >= LONGEST else in_digits(value)


def in_digits(value: float) -> str:
    """A number with all its digits, so that different numbers have different names: 1, 0.5,
    1000001."""
    return str(int(value)) if value.is_integer() and abs(value) < LONGEST else repr(value)


def number(cell: str) -> float:
    """The number that a cell spells; nan if it spells none, such as 1_2, which Python takes for
    12."""
    try:
        return float("nan") if "_" in cell else float(cell)
    except ValueError:
        return float("nan")
