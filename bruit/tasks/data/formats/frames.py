"""Data frames and other rows in hand, as columns of text: every value as a CSV file would spell it.

a hole (None, nan, NaT, NA)   an empty cell
True, False                   true, false
a number                      all its digits
a date, a time                2024-03-01, 2024-03-01 12:30:00
a value of a category         the value
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime, time, timedelta
from typing import Any

import numpy as np

from bruit.errors import ConfigError
from bruit.tasks.data.columns import Columns

Frame = Any  # a data frame of pandas or polars, a table of pyarrow, a mapping of columns, a list of mappings
ROWS = "the table"  # what rows in hand are called; a file has a name
NO_CELLS = (bytes, bytearray, Mapping, list, tuple, set, np.ndarray, timedelta, np.timedelta64)


def as_columns(rows: Any) -> Columns:
    """Rows by name as columns of text: a data frame, a mapping of columns, or a list of
    mappings."""
    if isinstance(rows, Columns):
        return rows
    if isinstance(rows, Mapping):
        return from_values(ROWS, list(rows.items()))
    if are_mappings(rows):
        keys = list(dict.fromkeys(key for row in rows for key in row))
        return from_values(ROWS, [(key, [row.get(key) for row in rows]) for key in keys])
    if hasattr(rows, "to_pydict"):  # a table of pyarrow
        return from_values(ROWS, list(rows.to_pydict().items()))
    if hasattr(rows, "collect"):  # a lazy frame of polars
        raise ConfigError(
            "the rows are a lazy frame, which holds no values yet; give its collect()"
        )
    names = getattr(rows, "columns", None)
    if names is None:
        raise ConfigError(
            f"rows are a data frame, a mapping of columns, a list of mappings or an array of "
            f"numbers, found {type(rows).__name__}"
        )
    _refuse_doubled([str(name) for name in names])
    return from_values(ROWS, [(name, rows[name]) for name in names])


def from_values(file: str, columns: Sequence[tuple[Any, Iterable[Any]]]) -> Columns:
    """Columns of text from columns of values."""
    _refuse_doubled([str(name) for name, _ in columns])
    cells = tuple(_cells(file, str(name), values) for name, values in columns)
    if len({len(column) for column in cells}) != 1 or not cells[0]:
        raise ConfigError(
            f"{file} has columns of different lengths, or no row; give at least one"
            if file == ROWS
            else f"{file} holds no records; give at least one"
        )
    names = tuple(str(name).strip() for name, _ in columns)
    return Columns(file, names, cells, tuple(range(1, len(cells[0]) + 1)))


def are_mappings(rows: Any) -> bool:
    """Whether rows are a list of mappings, one a row."""
    return (
        isinstance(rows, list | tuple)
        and bool(rows)
        and all(isinstance(row, Mapping) for row in rows)
    )


def _refuse_doubled(names: list[str]) -> None:
    doubled = next((name for name in names if names.count(name) > 1), None)
    if doubled is not None:
        raise ConfigError(f"{ROWS} has two columns called {doubled!r}; rename one")


def _cells(file: str, name: str, values: Iterable[Any]) -> tuple[str, ...]:
    found = []
    for row, value in enumerate(values):
        text = _cell(value)
        if text is None:
            raise ConfigError(
                f"{file} row {row}, column {name!r} holds a {type(value).__name__}; a cell is a "
                f"text, a number, a date or true or false: turn it into one, or leave the column "
                f"out"
            )
        found.append(text)
    return tuple(found)


def _cell(value: Any) -> str | None:
    """The text of one value; None if it is none that a cell can hold."""
    if isinstance(value, str):
        return value.strip()
    if isinstance(value, NO_CELLS):
        return None
    if isinstance(value, np.datetime64):
        value = value.astype("datetime64[us]").item()
    elif isinstance(value, np.bool_ | np.number):
        value = value.item()
    if value is None or type(value).__name__ in ("NAType", "NaTType") or value != value:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, datetime):
        whole = value.time() == time() and value.tzinfo is None
        return value.date().isoformat() if whole else value.isoformat(sep=" ")
    if isinstance(value, date):
        return value.isoformat()
    return str(value).strip()
