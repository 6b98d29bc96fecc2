"""Histograms: every peer holds one of L values, all want to know how often each occurs.

A value is a row with a single 1, so that the mean of all rows is the histogram: the task is a
`Mean` of such rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bruit.arrays import Ints
from bruit.errors import ConfigError
from bruit.tasks.data.choice import EVERYTHING, Choice
from bruit.tasks.data.formats.tables import read_table
from bruit.tasks.data.own_rows import Agreement, places
from bruit.tasks.data.public import NOTHING, Agreed, Fact
from bruit.tasks.data.recipe import Recipe
from bruit.tasks.data.sources import load
from bruit.tasks.data.use import Use
from bruit.tasks.kinds.kind import FILE
from bruit.tasks.mean import Mean, MeanKind

if TYPE_CHECKING:
    from bruit.tasks.kinds.section import TaskSection


def histogram(
    peers: int,
    values: int = 2,
    data: str | None = None,
    label: str | None = None,
    seed: int = 0,
    agreed: Agreed = NOTHING,
    choice: Choice = EVERYTHING,
) -> Mean:
    """One of several values a peer: labels of as many records of a data set, or drawn, small ones
    more often.

    Without data, value floor(L u^2) for u uniform in [0, 1]; with data, `values` is the number of
    its labels, and no other column of a CSV file is read.
    """
    if data is None:
        if values < 2:
            raise ConfigError(
                f"a histogram counts 2 values or more, found {values}; say how many with task.dim"
            )
        drawn = np.abs(Mean.uniform(peers, 1, seed).values[:, 0])
        return _rows(
            np.minimum((values * drawn**2).astype(np.int64), values - 1),
            f"{values} values, drawn",
            tuple(str(value) for value in range(values)),
        )
    table = load(data, label, agreed=agreed, choice=choice, features=False)
    found = table.label_values()
    chosen = np.searchsorted(found, table.labels)
    if len(chosen) < peers:
        raise ConfigError(
            f"{table.name} has {len(chosen)} records for {peers} peers; each holds one label"
        )
    if not 2 <= len(found) <= 1000:
        raise ConfigError(
            f"{table.name} has {len(found)} different labels; a histogram counts 2 to 1000 values"
        )
    some = np.argsort(Mean.uniform(len(chosen), 1, seed).values[:, 0], kind="stable")[:peers]
    names = tuple(table.label_text(value) for value in found)
    reading = replace(table.reading, used=(table.label,), unused=())
    use = Use(reading=reading, peers=peers, held=peers, left_over=len(chosen) - peers)
    facts = (table.classes_fact(names), *reading.facts())
    return _rows(chosen.astype(np.int64)[some], f"labels of {table.name}", names, facts, use)


def _rows(
    chosen: Ints,
    name: str,
    values: tuple[str, ...],
    facts: tuple[Fact, ...] = (),
    use: Use | None = None,
) -> Mean:
    return Mean(np.eye(len(values))[chosen], name, facts, use, Recipe.plain((), classes=values))


class HistogramKind(MeanKind):
    """One of several values a peer: labels of as many records of a data set, or drawn, small ones
    more often."""

    name = "histogram"
    keys = FILE | {"classes"}
    counted = True

    def build(self, section: TaskSection, peers: int, seed: int) -> Mean:
        return histogram(
            peers,
            section.dim,
            section.data,
            section.label,
            seed,
            section.agreed(),
            section.choice(),
        )

    def from_csv(
        self, path: Path, agreement: Agreement, tell: Callable[[str], None]
    ) -> dict[str, Any]:
        """The one value of a participant, as a row with a single 1."""
        table, label = read_table(path), agreement.label
        if label is None:
            raise ConfigError("histogram needs the column that is counted: name it with --label")
        if len(table.lines) != 1:
            raise ConfigError(
                f"{table.file} holds {len(table.lines)} rows, but in a histogram every participant has "
                f"one "
                'value; to average shares of many rows, agree on task.kind = "mean"'
            )
        count, many = agreement.task.dim, len(agreement.classes)
        if agreement.task.data is None and many and count not in (1, many):
            raise ConfigError(
                f"a histogram of {count} values was agreed on (task.dim), but --classes names {many}"
            )
        return {"values": np.eye(many)[places(table, label, agreement)]}
