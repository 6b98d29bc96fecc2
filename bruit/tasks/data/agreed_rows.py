"""Rows of a table read by an agreed columns file: what fits, what does not, and what is left out.

Nothing is guessed: a cell that was not agreed on is a complaint with its line and column, and a
table with a complaint is not used at all. Counts of holes, cuts and strangers are for the eyes of
whoever owns the table.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from bruit.arrays import Array, Bools
from bruit.errors import ConfigError
from bruit.how_many import how_many
from bruit.tasks.counted import Counted
from bruit.tasks.data.agreed_columns import AgreedColumns
from bruit.tasks.data.choice import Reading, complete
from bruit.tasks.data.columns import MISSING, Columns, is_missing, nearest, number, spelled
from bruit.tasks.data.formats.dates import ISO
from bruit.tasks.data.public import Fact
from bruit.tasks.data.recipe import Recipe
from bruit.tasks.data.recipe_column import Column, ReadCells
from bruit.tasks.data.table import Table, make_table, number_owners


class Complaint(NamedTuple):
    """A cell that was not agreed on: its line, its column, and what is wrong in one sentence."""

    line: int
    column: str
    sentence: str


@dataclass(frozen=True, eq=False, kw_only=True)
class AgreedRows(Counted):
    """The rows of a table that fit what was agreed on.

    raw: features before they are centered. labels: places in the classes, or numbers; none if the
    table has no label. cells: what was cut, filled and taken for another value, by column. kept:
    the rows that stay.
    """

    raw: Array  # (r, p)
    labels: Array  # (r,)
    table: Columns
    cells: dict[str, ReadCells]
    kept: Bools
    reading: Reading


def complaints(agreed: AgreedColumns, table: Columns, labelled: bool = True) -> list[Complaint]:
    """All that does not fit, column by column; rows that are left out are not looked at."""
    absent = _absent(agreed, table, labelled)
    if absent:
        return [Complaint(1, name, _no_column(agreed, table, name)) for name in absent]
    rows = np.flatnonzero(_complete_rows(agreed, table)).tolist()
    found = [one for column in agreed.columns for one in _of_column(agreed, table, column, rows)]
    return found + (_of_label(agreed, table, rows) if labelled else [])


def fitting(agreed: AgreedColumns, table: Columns, labelled: bool = True) -> AgreedRows:
    """The rows, ready to be centered and scaled; the first complaint is raised."""
    wrong = complaints(agreed, table, labelled)
    if wrong:
        more = f" (and {len(wrong) - 1} more; see `bruit columns check`)" if len(wrong) > 1 else ""
        raise ConfigError(wrong[0].sentence + more)
    kept, holes = complete(
        table.file,
        {
            column.name: np.array([column.is_hole(cell) for cell in table.of(column.name)])
            if column.name in agreed.leave_out
            else np.zeros(len(table.lines), np.bool_)
            for column in agreed.columns
        },
    )
    rest = table.rows(np.flatnonzero(kept).tolist())
    cells = agreed.recipe().read(rest)
    filled = {
        column.name: (count, column.fill or "a feature of its own")
        for column in agreed.columns
        if (count := cells[column.name].filled)
    }
    others = (agreed.label.name, agreed.owner)
    reading = Reading(
        records=len(table.lines),
        used=agreed.names,
        unused=tuple(name for name in table.names if name not in (*agreed.names, *others)),
        dropped=int((~kept).sum()),
        holes=holes,
        filled=filled,
    )
    raw = np.concatenate([part.features for part in cells.values()], axis=1)
    labels = _labels(agreed, rest) if labelled else np.zeros(0)
    return AgreedRows(raw=raw, labels=labels, table=rest, cells=cells, kept=kept, reading=reading)


def agreed_table(agreed: AgreedColumns, table: Columns, name: str, owner: str | None) -> Table:
    """A table of many owners' rows, or of nobody's in particular, for a simulation."""
    holder = owner or agreed.owner
    found = fitting(agreed, table)
    owners, owner_names = None, tuple[str, ...]()
    if holder is not None and (owner is not None or holder in table.names):
        found.table.refuse(holder, MISSING)
        owners, owner_names = number_owners(found.table.of(holder))
    recipe = agreed.recipe()
    digest = f", sha256 {agreed.digest[:16]}.." if agreed.digest else ""
    sentence = f"columns, centers, scales, ranges, values and classes ({agreed.file}{digest})"
    return make_table(
        name,
        found.raw,
        found.labels,
        owners,
        feature_names=recipe.features,
        label_names=agreed.classes,
        owner_names=owner_names,
        notes=(f"prepared by {agreed.file}",),
        facts=(
            *found.reading.facts(),
            Fact(sentence, "agreed"),
            *([Fact(off, "private rows")] if (off := agreed.off_these(table.file)) else []),
        ),
        label=agreed.label.name,
        classes_from="agreed",
        reading=found.reading,
        recipe=recipe,
    )


def ready(agreed: AgreedColumns, found: AgreedRows, rows: str) -> tuple[Array, Recipe]:
    """Prepared rows, and the recipe that prepares new ones alike."""
    recipe = agreed.recipe(rows)
    return recipe.finish(found.raw).rows, recipe


def in_words(agreed: AgreedColumns, found: AgreedRows) -> list[str]:
    """What became of the rows, for the eyes of their owner."""
    cut = {name: part.cut for name, part in found.cells.items() if part.cut}
    others = {name: part.others for name, part in found.cells.items() if part.others}
    off = agreed.off_these(found.table.file)
    lines = [*found.reading.sentences(), *([off] if off else [])]
    for column in agreed.columns:
        name = column.name
        if name in cut:
            lines.append(
                f"cut: {how_many(cut[name], 'date' if column.dates else 'number')} of {name!r} to "
                f"the range {column.in_words(column.low)} to {column.in_words(column.high)}"
            )
        if name in others:
            lines.append(
                f"not agreed on: {how_many(others[name], 'cell')} of {name!r}, taken for "
                f"{column.other!r}"
            )
    return lines


def _complete_rows(agreed: AgreedColumns, table: Columns) -> Bools:
    kept = np.ones(len(table.lines), np.bool_)
    for column in agreed.columns:
        if column.name in agreed.leave_out:
            kept &= ~np.array([column.is_hole(cell) for cell in table.of(column.name)])
    return kept


def _absent(agreed: AgreedColumns, table: Columns, labelled: bool) -> list[str]:
    wanted = (*agreed.names, *((agreed.label.name,) if labelled else ()))
    return [name for name in wanted if name not in table.names]


def _no_column(agreed: AgreedColumns, table: Columns, name: str) -> str:
    role = "the label" if name == agreed.label.name else "a column"
    return (
        f"{table.file} has no column {name!r}, {role} of {agreed.file}{nearest(name, table.names)}"
    )


def _of_column(
    agreed: AgreedColumns, table: Columns, column: Column, rows: Sequence[int]
) -> list[Complaint]:
    cells, found = table.of(column.name), []
    known: dict[str, str] = {}
    for row in rows:
        cell = cells[row]
        if cell not in known:
            known[cell] = _wrong(agreed, column, cell)
        if known[cell]:
            where = f"{table.file} row {row} (line {table.lines[row]}), column {column.name!r}"
            found.append(Complaint(table.lines[row], column.name, f"{where} {known[cell]}"))
    return found


def _wrong(agreed: AgreedColumns, column: Column, cell: str) -> str:
    """What is wrong with a cell; nothing if it fits."""
    if column.is_hole(cell):
        mend = "repair the row, or agree on what stands in a hole"
        return "" if column.allows_holes else f"holds no value; {mend} (hole)"
    if column.values:
        if column.value_of(cell) is not None:
            return ""
        return f"holds {cell!r}, which is none of the values of {agreed.file}{nearest(cell, column.values)}"
    if np.isnan(column.number_of(cell)):
        if column.dates:
            return f"holds {cell!r}, where {agreed.file} agrees on a date as {_form(column)}"
        return f"holds {cell!r}, where {agreed.file} agrees on a finite number"
    return ""


def _form(column: Column) -> str:
    return "2024-03-01" if column.dates == ISO else column.dates


def _of_label(agreed: AgreedColumns, table: Columns, rows: Sequence[int]) -> list[Complaint]:
    label, found = agreed.label, []
    spellings = tuple(text for texts in label.classes.values() for text in texts)
    cells = table.of(label.name)
    for row in rows:
        cell = cells[row]
        if label.classes and spelled(cell) in spellings:
            continue
        if not label.classes and np.isfinite(number(cell)):
            continue
        wrong = f"holds {cell!r}, where {agreed.file} agrees on a finite number"
        if is_missing(cell):
            wrong = "holds no value; a record without label cannot be learned from: remove it"
        elif label.classes:
            wrong = f"holds {cell!r}, which is none of the agreed classes{nearest(cell, spellings)}"
        where = f"{table.file} row {row} (line {table.lines[row]}), the label {label.name!r}"
        found.append(Complaint(table.lines[row], label.name, f"{where} {wrong}"))
    return found


def _labels(agreed: AgreedColumns, table: Columns) -> Array:
    label, cells = agreed.label, table.of(agreed.label.name)
    if not label.classes:
        return np.clip([number(cell) for cell in cells], label.low, label.high)
    place = {text: float(k) for k, texts in enumerate(label.classes.values()) for text in texts}
    return np.array([place[spelled(cell)] for cell in cells])
