"""Rows of one's own CSV file, prepared by what was agreed on and by nothing else.

Centers, scales, columns and classes are public constants, the same for everybody: a statistic of
the rows themselves would tell something about them that no ledger knows of, and would differ from
participant to participant.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bruit.arrays import Array, Ints
from bruit.errors import ConfigError
from bruit.files import to_json
from bruit.tasks.data.agreed_columns import AgreedColumns
from bruit.tasks.data.choice import refuse_ids, select
from bruit.tasks.data.columns import Columns, nearest, numbers, spelled
from bruit.tasks.data.formats.tables import read_table
from bruit.tasks.data.recipe import Recipe
from bruit.tasks.data.recipe_column import Column

if TYPE_CHECKING:
    from bruit.tasks.kinds.section import TaskSection

Constants = dict[str, tuple[float, float]]  # column: center and scale, in the order of the features


@dataclass(frozen=True)
class Agreement:
    """What all participants prepare their records by: the experiment's task, label, columns and
    classes; or its columns file, which says all of that."""

    task: TaskSection
    label: str | None
    columns: Constants | None  # None: all columns as they are
    classes: tuple[str, ...] = ()
    prepared: AgreedColumns | None = None


def read_rows(path: Path, agreement: Agreement, tell: Callable[[str], None]) -> Columns:
    """The columns that were agreed on, holes filled and records left out as agreed
    (`bruit.tasks.data.choice`)."""
    every = read_table(path)
    choice = agreement.task.choice()
    if choice.by_public_mean():
        raise ConfigError(
            'fill = "public" is for simulations, which hold the public rows; here agree on '
            "constants:"
            " fill = { column = number }"
        )
    if agreement.columns is not None:
        named = tuple(name for name in agreement.columns if name != agreement.label)
        if choice.columns and set(choice.columns) != set(named):
            raise ConfigError(
                f"the experiment's columns are {', '.join(choice.columns)}, but centers and scales"
                f" are given for {', '.join(named)}; make them the same"
            )
        choice = replace(choice, columns=named, drop=())
    table, reading = select(every, choice, agreement.label, None)
    refuse_ids(table, reading.used, (), choice.columns)
    for line in reading.sentences():
        tell(f"{table.file}: {line}")
    return table


def _chosen(table: Columns, agreement: Agreement) -> Constants:
    """The columns that are features, with their agreed constants."""
    agreed = agreement.columns or dict.fromkeys(table.names, (0.0, 1.0))
    chosen = {name: pair for name, pair in agreed.items() if name != agreement.label}
    if not chosen:
        raise ConfigError(f"{table.file} has no feature column beside the label")
    return chosen


def features(table: Columns, agreement: Agreement) -> Array:
    return np.column_stack(
        [column(table, name, *pair) for name, pair in _chosen(table, agreement).items()]
    )


def _fill(agreement: Agreement, name: str) -> str:
    """What was agreed on for holes of a column, as it would be written; nothing if they are
    refused."""
    constant = agreement.task.choice().constant(name)
    return "" if constant is None else str(constant)


def own_recipe(
    table: Columns, agreement: Agreement, center: float = 0.0, unit: float = 1.0
) -> Recipe:
    """What is done to the rows, for new ones: agreed names and constants; center and unit are the
    label's."""
    chosen, label = _chosen(table, agreement), agreement.label or ""
    return Recipe(
        columns=tuple(Column(name, fill=_fill(agreement, name)) for name in chosen),
        centers=np.array([pair[0] for pair in chosen.values()]),
        scales=np.array([pair[1] for pair in chosen.values()]),
        limits=np.full(len(chosen), math.inf),
        rows=agreement.task.rows,
        label=label,
        center=center,
        unit=unit,
        classes=agreement.classes,
    )


def column(table: Columns, name: str, center: float, scale: float) -> Array:
    found = numbers(table, name)
    if found is None:
        raise ConfigError(
            f"{table.file}, column {name!r} holds text or nothing; turn it into numbers, or leave"
            " it out of the agreed columns"
        )
    return (found - center) / scale


def places(table: Columns, label: str, agreement: Agreement, two: bool = False) -> Ints:
    """Which of the agreed classes each cell of the label is; `two`: there are to be two of them."""
    kind, classes, cells = agreement.task.kind, agreement.classes, table.of(label)
    if len(set(classes)) != len(classes) or len(classes) < 2 or (two and len(classes) != 2):
        raise ConfigError(
            f"{kind} needs the agreed classes of {label!r} in their order, "
            f"{'two' if two else 'at least two'} different ones; found "
            f"{', '.join(classes) or 'none'}: give --classes, e.g. --classes healthy,ill"
        )
    place = {spelled(name): k for k, name in enumerate(classes)}
    for line, cell in zip(table.lines, cells, strict=True):
        if spelled(cell) not in place:
            raise ConfigError(
                f"{table.file} line {line}, column {label!r} holds {cell!r}, which is none of the"
                f" agreed classes{nearest(cell, classes)}"
            )
    return np.array([place[spelled(cell)] for cell in cells], np.int64)


def recipe_column(recipe: Recipe | None) -> dict[str, Any]:
    """How the rows were prepared, for the model's file: names and agreed constants, no row."""
    return {} if recipe is None else {"recipe": np.str_(to_json(recipe.describe()))}
