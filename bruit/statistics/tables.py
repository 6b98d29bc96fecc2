"""A table of users and what every question to it shares: reading a column, paying, dice, labels,
and when an answer says nothing."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np

from bruit.accounts.account import beside
from bruit.accounts.prices import Price, Unit, in_all
from bruit.arrays import Array
from bruit.digests import digest
from bruit.errors import ConfigError
from bruit.privacy.events import Event
from bruit.randomness import Dice, Replay, Secure
from bruit.statistics.local.gaussian_mean import GaussianMean
from bruit.statistics.local.laplace_mean import LaplaceMean
from bruit.statistics.local.protocol import MeanProtocol
from bruit.tasks.data.columns import NO_KEYS, Columns, numbers

AGAINST = "everybody (local DP): the aggregator, and whoever sees the reports"
PROTECTS = "scores, not labels"
USUAL_DELTA = 1e-6


class Paid(NamedTuple):
    """Where a question was written down, and what the rows have paid in all; no record: a
    rehearsal."""

    record: str
    total: str


def price(statistic: str, epsilon: float, delta: float, event: Event) -> Price:
    """What one report of every row costs: a row is one user, who is against everybody."""
    return Price(
        about=statistic,
        unit=Unit.of("record"),
        events=((event, 1),),
        epsilon=epsilon,
        delta=delta,
        against=AGAINST,
    )


def pay(table: Path, limit: float | None, asked: Price, seed: int | None) -> Paid:
    """Write a question down before anything about the rows leaves, or refuse it; a rehearsal is not
    written down."""
    record = beside(table, limit)
    if seed is None:
        record.charge(asked)
        return Paid(str(record.path), in_all(record.balance().events(asked.unit)))
    if limit is not None:
        raise ConfigError(
            "a rehearsal from a --seed hides nothing and is not written down; leave --limit out"
        )
    return Paid("", "")


def dice(seed: int | None, *hides: object) -> Dice:
    """Dice nobody can throw again, unless a seed asks for a rehearsal: then they follow from what
    they hide, too."""
    return Secure() if seed is None else Replay(seed, digest(digest(b"", "reports", seed), *hides))


def column_of_numbers(columns: Columns, name: str) -> Array:
    """One column of a table, refused if it holds text."""
    found = numbers(columns, name, mends=NO_KEYS)
    if found is None:
        raise ConfigError(f"{columns.file}, column {name!r} holds text where numbers are needed")
    return found


def two_labels(columns: Columns, name: str, positive: str | None) -> Array:
    """1 for the positive class, 0 for the other."""
    cells = columns.of(name)
    found = sorted(set(cells))
    if positive is not None:
        if positive not in found:
            raise ConfigError(
                f"{columns.file}, column {name!r} never holds the positive label {positive!r};"
                f" it holds {', '.join(found[:10])}"
            )
        return np.array([float(cell == positive) for cell in cells])
    values = column_of_numbers(columns, name)
    kinds = np.unique(values)
    if len(kinds) > 2:
        raise ConfigError(
            f"{columns.file}, column {name!r} holds {len(kinds)} different labels;"
            " an AUC compares two: say which one is positive with --positive"
        )
    top = kinds[-1]
    return np.asarray((values == top) if len(kinds) == 2 else (values > 0), dtype=np.float64)


def labels_of(columns: Columns, name: str, positive: str | None) -> Array:
    """1 or 0 for each row; a holder may have rows of one class only, so the class is never
    guessed."""
    cells = columns.of(name)
    if positive is not None:
        return np.array([float(cell == positive) for cell in cells])
    strange = next(
        (row for row, cell in enumerate(cells) if cell not in ("0", "1", "0.0", "1.0")), None
    )
    if strange is not None:
        raise ConfigError(
            f"{columns.file} line {columns.lines[strange]}, column {name!r} holds "
            f"{cells[strange]!r}; "
            "between two holders labels are 0 and 1, or the positive one is named with --positive"
        )
    return np.array([float(cell) for cell in cells])


def mean_protocol(
    low: float, high: float, epsilon: float, delta: float = USUAL_DELTA, kind: str | None = None
) -> MeanProtocol:
    """Noise for numbers of low..high: Laplace, which needs no delta, unless Gaussian noise is asked
    for."""
    if kind not in (None, "laplace", "gaussian"):
        raise ConfigError(f"no protocol {kind!r} reports numbers; there are: laplace, gaussian")
    if kind == "gaussian":
        return GaussianMean(low, high, epsilon, delta)
    if delta != USUAL_DELTA:
        raise ConfigError(
            f"Laplace noise needs no delta, found --delta {delta:g}; leave it out, or add"
            " --protocol gaussian"
        )
    return LaplaceMean(low, high, epsilon)


def too_few(users: int, epsilon: float, needed: int) -> str:
    """The sentence about an estimate that noise drowns: how many users it would take."""
    return (
        f"{users} users at epsilon = {epsilon:g} say nothing: a guess without looking is as good;"
        f" it takes about {needed} users at this epsilon, or a larger epsilon"
    )
