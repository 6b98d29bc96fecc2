"""Rows of a table: what was measured, its mean and its deviation over splits, and the goal."""

from __future__ import annotations

import json
import math
import sys
from dataclasses import asdict, dataclass
from typing import TypedDict

import numpy as np
from rich.console import Console
from rich.table import Table

from bruit.arrays import Array


@dataclass(frozen=True, kw_only=True)
class Measured:
    """One accuracy: mean over splits and draws, deviation over splits (of the means over draws), and
    the settings it was measured with."""

    what: str
    epsilon: float | None
    adjacency: str
    mean: float
    deviation: float
    settings: str = ""
    goal: float | None = None

    @property
    def held(self) -> bool:
        return self.goal is None or self.mean >= self.goal


class Budget(TypedDict):
    """What a row was promised to keep."""

    epsilon: float
    adjacency: str


def measured(
    what: str,
    accuracies: Array,
    *,
    epsilon: float | None = None,
    adjacency: str = "",
    settings: str = "",
    goal: float | None = None,
) -> Measured:
    """From accuracies (splits, ...)."""
    by_split = accuracies.reshape(len(accuracies), -1).mean(axis=1)
    deviation = float(by_split.std(ddof=1)) if len(by_split) > 1 else math.nan
    return Measured(
        what=what,
        epsilon=epsilon,
        adjacency=adjacency,
        mean=float(np.mean(by_split)),
        deviation=deviation,
        settings=settings,
        goal=goal,
    )


def show(title: str, rows: list[Measured], as_json: bool) -> None:
    """As a table for people, or as JSON."""
    if as_json:
        print(json.dumps([asdict(row) for row in rows], indent=1))
        return
    table = Table(title=title, title_justify="left")
    for column in ("what", "epsilon", "adjacency", "accuracy", "deviation", "settings", "goal"):
        table.add_column(column)
    for row in rows:
        table.add_row(
            row.what,
            "-" if row.epsilon is None else f"{row.epsilon:.4g}",
            row.adjacency,
            f"{row.mean:.4f}",
            f"{row.deviation:.4f}",
            row.settings,
            "" if row.goal is None else f"{row.goal:.3f} {'held' if row.held else 'MISSED'}",
        )
    Console(width=150, file=sys.stdout).print(table)
