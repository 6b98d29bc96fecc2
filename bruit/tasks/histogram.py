"""Histograms: every peer holds one of L values, all want to know how often each occurs.

A value is a row with a single 1, so that the mean of all rows is the histogram: the task is a `Mean` of such rows.
"""

from dataclasses import replace

import numpy as np

from bruit.arrays import Ints
from bruit.errors import ConfigError
from bruit.tasks.choice import EVERYTHING, Choice
from bruit.tasks.data import load
from bruit.tasks.mean import Mean
from bruit.tasks.public import NOTHING, Agreed, Fact
from bruit.tasks.recipe import Recipe
from bruit.tasks.use import Use


def histogram(peers: int, values: int = 2, data: str | None = None, label: str | None = None, seed: int = 0,
              agreed: Agreed = NOTHING, choice: Choice = EVERYTHING) -> Mean:
    """One of several values a peer: labels of as many records of a data set, or drawn, small ones more often.

    Without data, value floor(L u^2) for u uniform in [0, 1]; with data, `values` is the number of its labels, and no
    other column of a CSV file is read.
    """
    if data is None:
        if values < 2:
            raise ConfigError(f"a histogram counts 2 values or more, found {values}; say how many with task.dim")
        drawn = np.abs(Mean.uniform(peers, 1, seed).values[:, 0])
        return _rows(np.minimum((values * drawn**2).astype(np.int64), values - 1), f"{values} values, drawn",
                     tuple(str(value) for value in range(values)))
    table = load(data, label, agreed=agreed, choice=choice, features=False)
    found = table.label_values()
    chosen = np.searchsorted(found, table.labels)
    if len(chosen) < peers:
        raise ConfigError(f"{table.name} has {len(chosen)} records for {peers} peers; each holds one label")
    if not 2 <= len(found) <= 1000:
        raise ConfigError(f"{table.name} has {len(found)} different labels; a histogram counts 2 to 1000 values")
    some = np.argsort(Mean.uniform(len(chosen), 1, seed).values[:, 0], kind="stable")[:peers]
    names = tuple(table.label_text(value) for value in found)
    reading = replace(table.reading, used=(table.label,), unused=())
    use = Use(reading=reading, peers=peers, held=peers, left_over=len(chosen) - peers)
    facts = (table.classes_fact(names), *reading.facts())
    return _rows(chosen.astype(np.int64)[some], f"labels of {table.name}", names, facts, use)


def _rows(chosen: Ints, name: str, values: tuple[str, ...], facts: tuple[Fact, ...] = (),
          use: Use | None = None) -> Mean:
    return Mean(np.eye(len(values))[chosen], name, facts, use, Recipe.plain((), classes=values))
