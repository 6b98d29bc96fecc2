"""A participant's own points: the arrays that its file keeps, and points from its own CSV file.

    statistic   the agreed columns as they are, the label's place among the agreed classes last
    pairwise    features by agreed centers and scales, an intercept, the norm bounded; the label last

How wide a message is must be the same for everybody: `task.points` is the most that a peer shows,
one unless it is agreed on. The classes behind an AUC are public, as they are in a simulation:
`task.positives` is how many peers hold the second one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bruit.arrays import Array
from bruit.errors import ConfigError
from bruit.tasks.data.own_rows import (
    Agreement,
    features,
    own_recipe,
    places,
    read_rows,
    recipe_column,
)
from bruit.tasks.data.points import Points, grid_codebook, middles
from bruit.tasks.records import finish_rows

if TYPE_CHECKING:
    from bruit.tasks.kinds.section import TaskSection

LARGEST = 10_000  # points of a codebook: beyond it nothing could be told from the answers


def kept(points: Points) -> dict[str, Any]:
    """The points of one peer as arrays, without their rows."""
    coded = {} if points.codebook is None else {"codebook": points.codebook, "exact": points.exact}
    return {"points": np.int64(points.most), **coded}


def points_of(rows: Array, columns: Mapping[str, Any]) -> Points:
    """The points of one peer again."""
    if not len(rows):
        raise ConfigError("this peer holds no point; who holds none takes no part")
    made = Points(rows, np.zeros(len(rows), np.int64), room=int(columns["points"]))
    if "codebook" not in columns:
        return made
    return made.coded(columns["codebook"], int(columns["exact"]))


def agreed_points(section: TaskSection) -> dict[str, Any]:
    """What the records of a participant must have been prepared for, if it is agreed on."""
    room = getattr(section, "points", None)
    return {} if room is None else {"points": room}


def from_statistic_csv(
    path: Path, agreement: Agreement, labeled: bool, tell: Callable[[str], None]
) -> dict[str, Any]:
    """The points of a statistic: of the columns that the experiment names, in its order."""
    task, kernel = agreement.task, agreement.task.kernel
    if labeled and agreement.label is None:
        raise ConfigError(f"the statistic {kernel} needs a label: name its column with --label")
    table = read_rows(path, agreement, tell)
    values, levels = features(table, agreement), None
    if agreement.label is not None:
        marks = places(table, agreement.label, agreement, two=kernel == "auc")
        values = np.column_stack((values, marks))
        levels = np.arange(len(agreement.classes), dtype=np.float64)
    room = _room(table.file, len(values), task)
    coded = {}
    if task.bins is not None:
        book = codebook(values, task.bins, task.low, task.high, levels)
        ends = {"bins": task.bins, "low": task.low, "high": task.high}
        coded = {"codebook": book, "exact": int(levels is not None), **ends}
    counted = {}
    if kernel == "auc":
        counted["positives"] = _positives(task)
        _one(table.file, len(values))
    return {"values": values, "kernel": np.str_(kernel), "points": room, **coded, **counted}


def from_pairwise_csv(
    path: Path, agreement: Agreement, ordered: bool, two: bool, tell: Callable[[str], None]
) -> dict[str, Any]:
    """The labeled points of a loss; `ordered`: the label is a number, not one of the classes."""
    task = agreement.task
    if agreement.label is None:
        raise ConfigError(f"{task.kind} needs a label: name its column with --label")
    if task.bins is not None:
        raise ConfigError(
            "the points of a codebook are found on the public part of a whole data set, which no "
            "participant holds; leave task.bins out"
        )
    table = read_rows(path, agreement, tell)
    if ordered and not agreement.classes:
        targets = _numbers(table.of(agreement.label), table.file, agreement.label)
    else:
        targets = places(table, agreement.label, agreement, two).astype(np.float64)
        targets = 2 * targets - 1 if two else targets
    rows, bound = finish_rows(features(table, agreement), task.rows, intercept=True)
    return {
        "features": rows,
        "targets": targets,
        "loss": np.str_(task.loss),
        "row_bound": np.float64(bound),
        "points": _room(table.file, len(rows), task),
        **recipe_column(own_recipe(table, agreement)),
    }


def codebook(rows: Array, bins: int, low: float, high: float, labels: Array | None) -> Array:
    """The middles of equal bins between the declared ends, for every column but the label."""
    plain = rows if labels is None else rows[:, :-1]
    outside = np.argwhere((plain < low) | (plain > high))
    if len(outside):
        row, column = outside[0]
        raise ConfigError(
            f"record {row} has {plain[row, column]:g} in column {column}, outside the declared "
            f"domain "
            f"[{low:g}, {high:g}]; declare a wider one with low and high, whatever the records say"
        )
    size = bins ** plain.shape[1] * (1 if labels is None else len(labels))
    if size > LARGEST:
        raise ConfigError(
            f"{bins} bins of {plain.shape[1]} columns are {size} values, more than {LARGEST}; use "
            f"fewer"
        )
    levels = [middles(bins, low, high)] * plain.shape[1]
    return grid_codebook(*levels, *(() if labels is None else (labels,)))


def _room(file: str, held: int, task: TaskSection) -> int:
    """How many points every peer shows room for."""
    room: int = getattr(task, "points", 1)
    if held <= room:
        return room
    raise ConfigError(
        f"{file} holds {held} points, but {'one a peer' if room == 1 else f'at most {room}'} was "
        f"agreed on; agree on task.points, the most that any peer shows, or keep {room} of them"
    )


def _one(file: str, held: int) -> None:
    if held != 1:
        raise ConfigError(f"an AUC is of one record a peer, and {file} holds {held}; keep one")


def _positives(task: TaskSection) -> int:
    found: int | None = getattr(task, "positives", None)
    if found is None:
        raise ConfigError(
            "an AUC is an average over pairs of two classes, and no peer knows how many of them "
            "there are; agree on task.positives, how many peers hold the second class"
        )
    return found


def _numbers(cells: Any, file: str, label: str) -> Array:
    try:
        found = np.array([float(cell) for cell in cells])
    except ValueError as error:
        raise ConfigError(
            f"{file}, column {label!r} is to be a number, or one of agreed classes in their order "
            f"(--classes): {error}"
        ) from None
    if not np.isfinite(found).all():
        raise ConfigError(f"{file}, column {label!r} holds a number that is not finite")
    return found
