"""A participant's records from its own CSV file, prepared by what was agreed on and by nothing else.

    features   (cell - center) / scale of the named columns in the agreed order, an intercept, then the norm bounded
    target     logistic: the second class is 1, the first -1; softmax: the place of the class; ridge: as a feature
    histogram  one row, whose label is one of the agreed classes: a 1 in its place, 0 elsewhere

Centers, scales, columns and classes are public constants, the same for everybody: a statistic of the rows themselves
would tell something about them that no ledger knows of, and would differ from participant to participant.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from bruit.arrays import Array, Ints
from bruit.config import TaskSection
from bruit.entrance import refuse_task_for_real_peers
from bruit.errors import ConfigError
from bruit.sites.own_records import recipe_column
from bruit.tasks.choice import refuse_ids, select
from bruit.tasks.columns import Columns, nearest, numbers, read_csv
from bruit.tasks.recipe import Column, Recipe
from bruit.tasks.records import finish_rows
from bruit.whole_files import check_place, write_whole

Constants = dict[str, tuple[float, float]]  # column: center and scale, in the order of the features


@dataclass(frozen=True)
class Agreement:
    """What all participants prepare their records by: the experiment's task, label, columns and classes."""

    task: TaskSection
    label: str | None
    columns: Constants | None  # None: all columns as they are
    classes: tuple[str, ...] = ()


def read_columns(path: Path) -> Constants:
    """The agreed columns of a TOML file, one `name = [center, scale]` a line."""
    if not path.is_file():
        raise ConfigError(f"there is no file {path}; it names the agreed columns, one `name = [center, scale]` a line")
    try:
        content = tomllib.loads(path.read_bytes().decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} is not valid TOML: {error}") from None
    found = {}
    for name, pair in content.items():
        right = isinstance(pair, list) and len(pair) == 2 and all(type(part) in (int, float) for part in pair)
        if not (right and all(math.isfinite(part) for part in pair) and pair[1] > 0):
            raise ConfigError(f"{path}: {name} must be [center, scale], two numbers, the scale above 0, found {pair!r}")
        found[name] = (float(pair[0]), float(pair[1]))
    if not found:
        raise ConfigError(f"{path} names no column; write one `name = [center, scale]` a line")
    return found


def write_records(path: Path, agreement: Agreement, out: Path, public: Path | None = None,
                  tell: Callable[[str], None] = lambda line: None) -> tuple[int, int]:  # fmt: skip
    """Prepare a CSV file, and one of records that belong to nobody; (records, features) that were written.

    `tell` is given what was left out and filled, for the owner's eyes.
    """
    check_place(out)
    kind = agreement.task.kind
    refuse_task_for_real_peers(kind)
    if agreement.task.components is not None:
        raise ConfigError("the experiment asks for components, a projection that only a whole data set defines; leave "
                          "`components` out of it, or make the columns of the projection yourself")  # fmt: skip
    if kind in ("mean", "histogram"):
        if public is not None:
            raise ConfigError(f"--public gives records to score a model on, and a {kind} is no model; leave it out")
        content: dict[str, Any] = {}
        if kind == "mean":
            own = _read(path, agreement, tell)
            content = {"values": _values(own, agreement), **recipe_column(_recipe(own, agreement))}
        else:
            content = {"values": _answer(_existing(path), agreement)}
    else:
        content = _linear(_read(path, agreement, tell), agreement)
        if public is not None:
            shown = _linear(_read(public, agreement, tell), agreement)
            content |= {"public_features": shown["features"], "public_targets": shown["targets"]}
    write_whole(out, lambda file: np.savez_compressed(file, kind=np.str_(kind), **content))
    out.chmod(0o600)
    rows = content["values"] if "values" in content else content["features"]
    return len(rows), rows.shape[1]


def _existing(path: Path) -> Columns:
    if not path.is_file():
        raise ConfigError(f"there is no file {path}")
    return read_csv(path)


def _read(path: Path, agreement: Agreement, tell: Callable[[str], None]) -> Columns:
    """The columns that were agreed on, holes filled and records left out as agreed (`bruit.tasks.choice`)."""
    every = _existing(path)
    choice = agreement.task.choice()
    if choice.by_public_mean():
        raise ConfigError('fill = "public" is for simulations, which hold the public rows; here agree on constants:'
                          " fill = { column = number }")  # fmt: skip
    if agreement.columns is not None:
        named = tuple(name for name in agreement.columns if name != agreement.label)
        if choice.columns and set(choice.columns) != set(named):
            raise ConfigError(f"the experiment's columns are {', '.join(choice.columns)}, but centers and scales are "
                              f"given for {', '.join(named)}; make them the same")  # fmt: skip
        choice = replace(choice, columns=named, drop=())
    table, reading = select(every, choice, agreement.label, None)
    refuse_ids(table, reading.used, (), choice.columns)
    for line in reading.sentences():
        tell(f"{table.file}: {line}")
    return table


def _values(table: Columns, agreement: Agreement) -> Array:
    """The one row of a participant in a mean."""
    rows = _features(table, agreement)
    if len(rows) != 1:
        raise ConfigError(f"{table.file} holds {len(rows)} rows, but in a mean every participant has one value a "
                          f"column; average your rows first")  # fmt: skip
    return rows


def _answer(table: Columns, agreement: Agreement) -> Array:
    """The one value of a participant in a histogram, as a row with a single 1."""
    label = agreement.label
    if label is None:
        raise ConfigError("histogram needs the column that is counted: name it with --label")
    if len(table.lines) != 1:
        raise ConfigError(f"{table.file} holds {len(table.lines)} rows, but in a histogram every participant has one "
                          "value; to average shares of many rows, agree on task.kind = \"mean\"")  # fmt: skip
    count, many = agreement.task.dim, len(agreement.classes)
    if agreement.task.data is None and many and count not in (1, many):
        raise ConfigError(f"a histogram of {count} values was agreed on (task.dim), but --classes names {many}")
    return np.eye(many)[_places(table, label, agreement)]


def _linear(table: Columns, agreement: Agreement) -> dict[str, Any]:
    task = agreement.task
    targets, unit = _targets(table, agreement)
    named = recipe_column(_recipe(table, agreement))
    features, bound = finish_rows(_features(table, agreement), task.rows, intercept=True)
    clip = math.nan if task.derivative_clip is None else task.derivative_clip
    return {"features": features, "targets": targets, "classes": np.array(agreement.classes, np.str_),
            "row_bound": np.float64(bound), "label_unit": np.float64(unit), "l2": np.float64(task.l2),
            "derivative_clip": np.float64(clip), **named}  # fmt: skip


def _chosen(table: Columns, agreement: Agreement) -> Constants:
    """The columns that are features, with their agreed constants."""
    agreed = agreement.columns or dict.fromkeys(table.names, (0.0, 1.0))
    chosen = {name: pair for name, pair in agreed.items() if name != agreement.label}
    if not chosen:
        raise ConfigError(f"{table.file} has no feature column beside the label")
    return chosen


def _features(table: Columns, agreement: Agreement) -> Array:
    return np.column_stack([_column(table, name, *pair) for name, pair in _chosen(table, agreement).items()])


def _fill(agreement: Agreement, name: str) -> str:
    """What was agreed on for holes of a column, as it would be written; nothing if they are refused."""
    constant = agreement.task.choice().constant(name)
    return "" if constant is None else str(constant)


def _recipe(table: Columns, agreement: Agreement) -> Recipe:
    """What is done to the rows, for new ones: agreed names and constants."""
    chosen, label = _chosen(table, agreement), agreement.label or ""
    center, unit = (agreement.columns or {}).get(label, (0.0, 1.0)) if agreement.task.kind == "ridge" else (0.0, 1.0)
    return Recipe(
        columns=tuple(Column(name, fill=_fill(agreement, name)) for name in chosen),
        centers=np.array([pair[0] for pair in chosen.values()]),
        scales=np.array([pair[1] for pair in chosen.values()]), limits=np.full(len(chosen), math.inf),
        rows=agreement.task.rows, label=label, center=center, unit=unit, classes=agreement.classes,
    )  # fmt: skip


def _column(table: Columns, name: str, center: float, scale: float) -> Array:
    found = numbers(table, name)
    if found is None:
        raise ConfigError(f"{table.file}, column {name!r} holds text or nothing; turn it into numbers, or leave it out "
                          f"of the agreed columns")  # fmt: skip
    return (found - center) / scale


def _targets(table: Columns, agreement: Agreement) -> tuple[Array, float]:
    """The targets, and one unit of them in units of the label."""
    kind, label = agreement.task.kind, agreement.label
    if label is None:
        raise ConfigError(f"{kind} needs a label: name its column with --label")
    if kind == "ridge":
        center, scale = (agreement.columns or {}).get(label, (0.0, 1.0))
        return _column(table, label, center, scale), scale
    places = _places(table, label, agreement).astype(np.float64)
    return (2 * places - 1 if kind == "logistic" else places), 1.0


def _places(table: Columns, label: str, agreement: Agreement) -> Ints:
    """Which of the agreed classes each cell of the label is."""
    kind, classes, cells = agreement.task.kind, agreement.classes, table.of(label)
    if len(set(classes)) != len(classes) or len(classes) < 2 or (kind == "logistic" and len(classes) != 2):
        raise ConfigError(f"{kind} needs the agreed classes of {label!r} in their order, "
                          f"{'two' if kind == 'logistic' else 'at least two'} different ones; found "
                          f"{', '.join(classes) or 'none'}: give --classes, e.g. --classes healthy,ill")  # fmt: skip
    for line, cell in zip(table.lines, cells, strict=True):
        if cell not in classes:
            raise ConfigError(f"{table.file} line {line}, column {label!r} holds {cell!r}, which is none of the agreed "
                              f"classes{nearest(cell, classes)}")  # fmt: skip
    return np.array([classes.index(cell) for cell in cells], np.int64)
