"""One column of a recipe: how its cells, as people write them, become features (silo:SILO-7).

    number     cut(x, low, high)                              one feature
    date       the same of days since 1970-01-01              one feature
    category   `on` at its value, `off` elsewhere             one feature a value, but for the base
    a hole     what was agreed on stands in it; or all of the column's features are neutral, and one more feature is 1

A cell is first read as what was agreed on `instead` of it, then it may be a hole, then it is a
number or one of the values. All of it is public and the same for every row.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from math import inf
from typing import Any, NamedTuple

import numpy as np

from bruit.arrays import Array
from bruit.errors import ConfigError
from bruit.tasks.data.columns import Columns, is_missing, nearest, number, spelled
from bruit.tasks.data.formats.dates import day, days


class ReadCells(NamedTuple):
    """The features of one column before they are centered; how many cells were cut to the range,
    were holes that something stands in, or were taken for another value."""

    features: Array  # (r, k)
    cut: int
    filled: int
    others: int


@dataclass(frozen=True)
class Column:
    """A column as people write it: numbers, dates, or texts of which `values` are known.

    dates: how dates are written, "iso" or a form of `strptime`; nothing if it holds none.
    fill: what stands in its holes, if anything does. low, high: numbers are cut to this range.
    base: the value that has no feature. other: the value that unknown ones are taken for. off, on:
    the two numbers of a value's feature. missing: what means a hole besides the usual spellings.
    instead: what is read instead of some spellings. indicator: holes have a feature of their own.
    """

    name: str
    values: tuple[str, ...] = ()
    _: KW_ONLY
    fill: str = ""
    low: float = -inf
    high: float = inf
    base: str = ""
    other: str = ""
    off: float = 0.0
    on: float = 1.0
    missing: tuple[str, ...] = ()
    instead: tuple[tuple[str, str], ...] = ()
    indicator: bool = False
    dates: str = ""

    def __repr__(self) -> str:
        return (
            f"Column({self.name!r}, {len(self.values)} values)"
            if self.values
            else f"Column({self.name!r})"
        )

    @property
    def coded(self) -> tuple[str, ...]:
        """The values that have a feature."""
        return tuple(value for value in self.values if value != self.base)

    @property
    def features(self) -> tuple[str, ...]:
        """The names of the features it makes."""
        own = tuple(f"{self.name}={value}" for value in self.coded) if self.values else (self.name,)
        return (*own, f"{self.name} is missing") if self.indicator else own

    @property
    def allows_holes(self) -> bool:
        """Whether a row with a hole in this column can be prepared."""
        return bool(self.fill) or self.indicator

    def read_as(self, cell: str) -> str:
        """The cell, or what is read instead of it."""
        table = dict(self.instead)
        return table.get(spelled(cell), cell) if table else cell

    def is_hole(self, cell: str) -> bool:
        """Whether a cell stands for no value here; a value that is known, such as ?, is one."""
        read = self.read_as(cell)
        if spelled(read) in self.values:
            return False
        return is_missing(read) or (bool(self.missing) and spelled(read) in self.missing)

    def value_of(self, cell: str) -> str | None:
        """The known value that a cell of a category is, `other` for a stranger; None if it is
        neither."""
        found = spelled(self.read_as(cell))
        return found if found in self.values else self.other or None

    def number_of(self, cell: str) -> float:
        """The number that a cell spells, or the day; nan if it spells none that is finite."""
        read = self.read_as(cell)
        found = days(read, self.dates) if self.dates else number(read)
        return found if np.isfinite(found) else float("nan")

    def in_words(self, value: float) -> str:
        """A number of this column as people write it: a date, if it holds dates."""
        return day(value) if self.dates and np.isfinite(value) else f"{value:g}"

    def coding(self, value: str) -> Array:
        """The features of one value of a category  # (k,)."""
        own = np.array([self.on if value == one else self.off for one in self.coded])
        return np.append(own, 0.0) if self.indicator else own

    def extremes(self, neutral: float) -> Array:
        """All features a cell can have that are not between others: the ends of a range, every
        value, a hole  # (c, k)."""
        found = [self.coding(value) for value in self.values]
        if not self.values:
            found = [
                np.array([end, *([0.0] if self.indicator else [])]) for end in (self.low, self.high)
            ]
        if self.indicator:
            found.append(self.hole(neutral))
        return np.array(found)

    def hole(self, neutral: float) -> Array:
        """The features of a hole that has one of its own: all others are neutral  # (k,)."""
        return np.append(np.full(len(self.features) - 1, 0.0 if self.values else neutral), 1.0)

    def read(self, table: Columns, neutral: float = 0.0) -> ReadCells:
        """The features of every row; `neutral` is the number that centers to 0, which stands where
        a hole has a feature of its own. What cannot be read is refused with its line."""
        cells = table.of(self.name)
        place = {cell: k for k, cell in enumerate(dict.fromkeys(cells))}
        known = [self._read_one(cell, neutral) for cell in place]
        for row, cell in enumerate(cells):
            if known[place[cell]] is None:
                raise ConfigError(self._complaint(table, row))
        parts = [part for part in known if part is not None]
        rows = np.array([place[cell] for cell in cells], np.int64)
        often = np.bincount(rows, minlength=len(parts))
        counts = np.array([[part.cut, part.filled, part.others] for part in parts], np.int64)
        cut, filled, others = (often @ counts).tolist()
        return ReadCells(np.array([part.features for part in parts])[rows], cut, filled, others)

    def _read_one(self, cell: str, neutral: float) -> ReadCells | None:
        """The features of one cell; None if they cannot be told."""
        hole = self.is_hole(cell)
        if hole and self.indicator:
            return ReadCells(self.hole(neutral), 0, 1, 0)
        if hole and not self.fill:
            return None
        text = self.fill if hole else cell
        if self.values:
            value = self.value_of(text)
            stranger = value is not None and not hole and self._is_strange(text)
            return None if value is None else ReadCells(self.coding(value), 0, hole, stranger)
        found = self.number_of(text)
        if np.isnan(found):
            return None
        kept = min(max(found, self.low), self.high)
        own = np.array([kept, 0.0]) if self.indicator else np.array([kept])
        return ReadCells(own, kept != found, hole, 0)

    def _is_strange(self, cell: str) -> bool:
        return spelled(self.read_as(cell)) not in self.values

    def _complaint(self, table: Columns, row: int) -> str:
        cell = table.of(self.name)[row]
        what = "no value" if self.is_hole(cell) else f"{cell!r}"
        where = (
            f"{table.file} row {row} (line {table.lines[row]}), column {self.name!r} holds {what}"
        )
        if self.values:
            return f"{where}, which the model has never met{nearest(cell, self.values)}"
        what = "dates" if self.dates else "numbers"
        return (
            f"{where}, but the model was learned with {what} there; put one in, or leave the row "
            f"out"
        )

    def describe(self) -> dict[str, Any]:
        """As plain data; `column_from` reads it."""
        description: dict[str, Any] = {
            "name": self.name,
            "values": list(self.values) or None,
            "fill": self.fill or None,
        }
        usual = Column(self.name)
        for key in ("low", "high", "base", "other", "off", "on", "indicator", "dates"):
            if getattr(self, key) != getattr(usual, key):
                description[key] = getattr(self, key)
        if self.missing:
            description["missing"] = list(self.missing)
        if self.instead:
            description["instead"] = dict(self.instead)
        return description


def column_from(content: Mapping[str, Any]) -> Column:
    """The column that `Column.describe` wrote; raises KeyError, TypeError or ValueError for
    anything else."""
    return Column(
        str(content["name"]),
        tuple(spelled(str(value)) for value in content["values"] or ()),
        fill=str(content.get("fill") or ""),
        low=float(content.get("low", -inf)),
        high=float(content.get("high", inf)),
        base=spelled(str(content.get("base", ""))),
        other=spelled(str(content.get("other", ""))),
        off=float(content.get("off", 0.0)),
        on=float(content.get("on", 1.0)),
        missing=tuple(str(text) for text in content.get("missing", ())),
        instead=tuple((str(old), str(new)) for old, new in content.get("instead", {}).items()),
        indicator=bool(content.get("indicator", False)),
        dates=str(content.get("dates", "")),
    )
