"""`bruit pairwise`: a pairwise statistic of two tables whose holders show each other no row."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bruit.commands.printing import Printer
from bruit.commands.statistics.tables import (
    Call,
    Clamp,
    Confidence,
    Identity,
    Limit,
    Listen,
    MaybeHigh,
    MaybeLow,
    MostRows,
    Partner,
    Rounds,
    Table,
)
from bruit.commands.terminal import Epsilon, Json, Quiet
from bruit.errors import ConfigError

if TYPE_CHECKING:
    from bruit.arrays import Array


def pairwise(
    table: Table,
    statistic: Annotated[
        str,
        typer.Option(
            help="kendall, wilcoxon, duplicates, gini, variance or scatter; of an AUC: bruit auc."
        ),
    ],
    points: Annotated[
        str,
        typer.Option(
            help="The columns of a row's numbers, its point, by commas: two for kendall and scatter (number, "
            "cluster), else one."
        ),
    ],
    epsilon: Epsilon = 1.0,
    low: MaybeLow = None,
    high: MaybeHigh = None,
    clamp: Clamp = False,
    confidence: Confidence = 0.95,
    listen: Listen = None,
    call: Call = None,
    identity: Identity = None,
    partner: Partner = None,
    rounds: Rounds = 1,
    most_rows: MostRows = None,
    limit: Limit = None,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """A statistic of pairs of rows of two tables: how do rows agree, differ, repeat? One noisy bit a
    pair; the holders show each other nothing else.

    gini, variance and scatter ask how far numbers are apart and need --low and --high.

    Example: bruit pairwise mine.csv --statistic kendall --points room,cleanliness --epsilon 2
    --listen 0.0.0.0:7411 --identity north --partner south/public.toml
    """
    from bruit.commands.statistics.holders import HolderOptions, find_together
    from bruit.statistics.holders import TablesQuestion

    printer = Printer(json=as_json, quiet=quiet)
    if statistic == "auc":
        raise ConfigError("an AUC has public labels: bruit auc --score ... --label ...")
    within = _range(low, high)
    question = TablesQuestion(statistic, epsilon, rounds, within=within)
    names = [name.strip() for name in points.split(",")]
    wanted = question.bit.comparison
    if len(names) != wanted.columns:
        raise ConfigError(
            f"{statistic} takes {wanted.columns} columns, found --points {points!r}"
            if wanted.columns > 1
            else f"{statistic} takes one column, found --points {points!r}"
        )
    if clamp and not wanted.ranged:
        raise ConfigError(f"{statistic} has no range to move values into; leave --clamp out")
    holders = HolderOptions(
        table=table,
        listen=listen,
        call=call,
        identity=identity,
        partner=partner,
        rounds=rounds,
        limit=limit,
        most_rows=most_rows,
    )
    rows = _rows(table, names, within if clamp else None)
    printer.answer(find_together(question, (rows, None), holders, confidence, printer))


def _range(low: float | None, high: float | None) -> tuple[float, float] | None:
    """The declared range, whole or not at all."""
    if low is None and high is None:
        return None
    if low is None or high is None:
        raise ConfigError("a range has two ends: give both --low and --high, or neither")
    return low, high


def _rows(table: Path, names: list[str], clamped: tuple[float, float] | None) -> Array:
    """One's own numbers, those of the first column moved into the range if that was asked for."""
    import numpy as np

    from bruit.statistics.tables import column_of_numbers
    from bruit.tasks.data.formats.tables import read_table

    columns = read_table(table)
    found = np.column_stack([column_of_numbers(columns, name) for name in names])
    if clamped is not None:
        found[:, 0] = np.clip(found[:, 0], *clamped)
    return found
