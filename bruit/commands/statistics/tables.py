"""What the statistics commands share: their options, and how they say what was promised."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from bruit.statistics.tables import Paid

Table = Annotated[Path, typer.Argument(help="A table, CSV or Parquet; each row is one user.")]
_LOW = "The least possible value, declared without looking at the data."
_HIGH = "The largest possible value, declared without looking at the data."
Low = Annotated[float, typer.Option(help=_LOW)]
High = Annotated[float, typer.Option(help=_HIGH)]
MaybeLow = Annotated[float | None, typer.Option(help=_LOW)]
MaybeHigh = Annotated[float | None, typer.Option(help=_HIGH)]
Clamp = Annotated[
    bool, typer.Option("--clamp", help="Move values outside of low..high to the nearest end.")
]
Confidence = Annotated[float, typer.Option(help="How sure the interval is.")]
Column = Annotated[str, typer.Option(help="The column of private values.")]
Identity = Annotated[
    Path | None, typer.Option(help="Among several holders: the folder of one's own keys.")
]
Book = Annotated[Path | None, typer.Option(help="Among several holders: the address book of all.")]
Rehearse = Annotated[
    int | None, typer.Option("--seed", help="Replayable dice, for data one may lose: not private.")
]
Positive = Annotated[
    str | None, typer.Option(help="Which label is the positive class; by default 1, or the larger.")
]
Limit = Annotated[
    float | None,
    typer.Option(
        help="What all questions about this table may cost a row; the account is TABLE.account.jsonl."
    ),
]
Listen = Annotated[
    str | None, typer.Option(help="Two holders: wait here, HOST:PORT, for the other.")
]
Call = Annotated[
    str | None, typer.Option("--with", help="Two holders: the other one waits at HOST:PORT.")
]
Partner = Annotated[Path | None, typer.Option(help="Two holders: the other one's public.toml.")]
Rounds = Annotated[int, typer.Option(help="Two holders: pairs that each row takes part in.")]
MostRows = Annotated[
    int | None,
    typer.Option(
        help="Two holders: the other one's rows times rounds, at most; by default 1048576."
    ),
]
USUAL_DELTA = 1e-6


def promise(epsilon: float, delta: float, seed: int | None, paid: Paid | None) -> Iterator[str]:
    """What each user pays, and to whom, and what was written down."""
    from bruit.statistics.tables import AGAINST

    yield f"  each user: epsilon = {epsilon:g}, delta = {delta:g}, user level, against {AGAINST}"
    if paid is not None and paid.record:
        yield f"  the users of this table have paid {paid.total} in all, recorded in {paid.record}"
    if seed is not None:
        yield (
            "  a rehearsal: whoever knows the seed can undo the noise; leave --seed out for data "
            "that matter"
        )
