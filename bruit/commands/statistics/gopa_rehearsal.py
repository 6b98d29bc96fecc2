"""`bruit gopa rehearse`: what canceling noise would give for counts, or an AUC, of one table.

Every row plays a user who shares noise with a few others (perso:GOPA-1, 8). All rows lie in one
file and the noise follows from a seed, so nobody is protected by a rehearsal; it tells what the
same users would learn, and what it would cost them, before they do it.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from bruit.commands.printing import Printer, Reply
from bruit.commands.statistics.tables import Column, Confidence, Positive, Table
from bruit.commands.terminal import Delta, Epsilon, Json, Seed
from bruit.errors import ConfigError
from bruit.how_many import how_many

if TYPE_CHECKING:
    from bruit.arrays import Array, Ints
    from bruit.privacy.guarantee import Guarantee

REHEARSED = (
    "a rehearsal: all rows lie in one file and the noise follows from a seed; it protects nobody"
)


def gopa_rehearse(
    table: Table,
    column: Column,
    cuts: Annotated[
        str, typer.Option(help="Public cuts between the cells of the column, ascending: -1,0,1.")
    ],
    label: Annotated[
        str | None,
        typer.Option(help="A column of two classes, private too: print the AUC of the column."),
    ] = None,
    positive: Positive = None,
    epsilon: Epsilon = 1.0,
    delta: Delta = 1e-6,
    picks: Annotated[
        int, typer.Option(help="With how many others each user chooses to share noise.")
    ] = 12,
    colluders: Annotated[int, typer.Option(help="How many observers share what they see.")] = 1,
    leaving: Annotated[
        float, typer.Option(help="The share of users who leave after they exchanged noise.")
    ] = 0.0,
    confidence: Confidence = 0.95,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Counts by cell of a private column, or its AUC, with noise that cancels between users: a
    rehearsal on a table one may see.

    Example: bruit gopa rehearse scores.csv --column s --cuts 0.25,0.5,0.75 --epsilon 1
    """
    from bruit.graphs import k_out
    from bruit.statistics.tables import column_of_numbers, labels_of
    from bruit.tasks.data.formats.tables import read_table

    columns = read_table(table)
    values = column_of_numbers(columns, column)
    if not np.isfinite(values).all():
        raise ConfigError(f"{columns.file}, column {column!r} has holes or infinite values")
    if label is None and positive is not None:
        raise ConfigError("--positive names a class of --label; give both, or neither")
    users = len(values)
    together, gone = _who(users, colluders, leaving)
    asked: dict[str, Any] = {
        "graph": k_out(users, picks, seed=seed or 0),
        "epsilon": epsilon,
        "delta": delta,
        "seen_by": together,
        "dropped": gone,
        "leaving": leaving,
        "seed": seed or 0,
    }
    if label is None:
        about, lines, guarantee = _counted(values, _grid(cuts), confidence, asked)
    else:
        classes = labels_of(columns, label, positive).astype(np.int64)
        about, lines, guarantee = _ranked(values, classes, _grid(cuts), confidence, asked)
    privacy = _privacy(guarantee, delta)
    plain = {**about, "confidence": confidence, "users": users - len(gone), **privacy}
    lines += [
        f"  {users - len(gone)} users, {len(gone)} left; each chose {how_many(picks, 'other')};"
        f" {100 * confidence:g} % intervals",
        f"  each user: epsilon = {privacy['epsilon']:.4g}, delta = {delta:g}, {privacy['level']} level,"
        f" {privacy['status']}, against {privacy['against']}",
        f"  {REHEARSED}",
    ]
    Printer(json=as_json).answer(Reply(plain, lines))


def _counted(
    values: Array, grid: Array, confidence: float, asked: dict[str, Any]
) -> tuple[dict[str, Any], list[str], Guarantee]:
    """Users by cell: plain data, lines to print, and the guarantee."""
    from bruit.statistics.average.canceling.counts import private_histogram

    found = private_histogram(np.digitize(values, grid), len(grid) + 1, **asked)
    ends = list(zip(*found.interval(confidence), strict=True))
    lines = [
        f"{cell}: {count:.0f}, between {low:.0f} and {high:.0f}"
        for cell, count, (low, high) in zip(_cells(grid), found.counts, ends, strict=True)
    ]
    about = {
        "counts": found.counts.tolist(),
        "sigma": found.sigma,
        "interval": [[float(low), float(high)] for low, high in ends],
    }
    return about, lines, found.guarantee


def _ranked(
    values: Array, classes: Ints, grid: Array, confidence: float, asked: dict[str, Any]
) -> tuple[dict[str, Any], list[str], Guarantee]:
    """How well the values tell two classes apart: plain data, lines to print, and the guarantee."""
    from bruit.statistics.average.canceling.auc import private_auc

    found = private_auc(values, classes, grid, confidence=confidence, **asked)
    about = {"auc": found.value, "interval": [found.low, found.high]}
    line = f"AUC {found.value:.4f}, between {found.low:.4f} and {found.high:.4f}"
    return about, [line], found.guarantee


def _privacy(guarantee: Guarantee, delta: float) -> dict[str, Any]:
    """What the user who is worst protected would pay."""
    return {
        "epsilon": float(guarantee.epsilon(delta)),
        "delta": delta,
        "level": guarantee.level,
        "status": guarantee.status,
        "against": guarantee.against,
        "rehearsal": True,
    }


def _who(users: int, colluders: int, leaving: float) -> tuple[list[int], list[int]]:
    """The first rows collude, the last ones leave: on a drawn graph all rows are alike."""
    if not 0 <= leaving < 1:
        raise ConfigError(f"the share of users who leave lies in [0, 1), found {leaving:g}")
    gone = int(users * leaving)
    if not 1 <= colluders < users - gone:
        raise ConfigError(
            f"of {users} users {gone} leave, so 1..{users - gone - 1} may collude, found"
            f" {colluders}"
        )
    return list(range(colluders)), list(range(users - gone, users))


def _grid(text: str) -> Array:
    try:
        grid = np.array([float(part) for part in text.split(",")])
    except ValueError:
        raise ConfigError(f"--cuts {text!r} are not numbers like -1,0,1") from None
    if not np.isfinite(grid).all() or not (np.diff(grid) > 0).all():
        raise ConfigError(f"--cuts must be finite and ascend, found {text}")
    return grid


def _cells(grid: Array) -> list[str]:
    ends = ["", *(f"{cut:g}" for cut in grid), ""]
    return [
        f"below {high}" if not low else f"{low} and above" if not high else f"{low} to {high}"
        for low, high in pairwise(ends)
    ]
