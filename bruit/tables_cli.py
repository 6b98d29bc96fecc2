"""What the statistics commands share: their options, how they read a table, and how they say what was promised."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from bruit.errors import ConfigError
from bruit.terminal import say

if TYPE_CHECKING:
    from bruit.arrays import Array
    from bruit.local_dp.protocol import MeanProtocol
    from bruit.randomness import Dice
    from bruit.tasks.columns import Columns

AGAINST = "everybody (local DP): the aggregator, and whoever sees the reports"
Table = Annotated[Path, typer.Argument(help="A CSV file with a header line; each row is one user.")]
Low = Annotated[float, typer.Option(help="The least possible value, declared without looking at the data.")]
High = Annotated[float, typer.Option(help="The largest possible value, declared without looking at the data.")]
Clamp = Annotated[bool, typer.Option("--clamp", help="Move values outside of low..high to the nearest end.")]
Confidence = Annotated[float, typer.Option(help="How sure the interval is.")]
Column = Annotated[str, typer.Option(help="The column of private values.")]
Identity = Annotated[Path | None, typer.Option(help="Among several holders: the folder of one's own keys.")]
Rehearse = Annotated[int | None, typer.Option("--seed", help="Replayable dice, for data one may lose: not private.")]
Positive = Annotated[str | None, typer.Option(help="Which label is the positive class; left out: 1, or the larger.")]
Limit = Annotated[float | None, typer.Option(help="What all questions about this table may cost a user; the record is "
                                                  "TABLE.spent.json.")]  # fmt: skip
USUAL_DELTA = 1e-6


def privacy(epsilon: float, delta: float, seed: int | None, paid: Paid | None = None) -> None:
    """Say what each user pays, and to whom, and what was written down."""
    say(f"  each user: epsilon = {epsilon:g}, delta = {delta:g}, user level, against {AGAINST}")
    if paid is not None and paid.record:
        say(f"  the users of this table have paid epsilon = {paid.total:g} in all, recorded in {paid.record}")
    if seed is not None:
        say("  a rehearsal: whoever knows the seed can undo the noise; leave --seed out for data that matter")


class Paid(NamedTuple):
    """Where a question was written down, and what the rows have paid in all; no record: a rehearsal."""

    record: str
    total: float


def pay(table: Path, limit: float | None, statistic: str, epsilon: float, delta: float, seed: int | None) -> Paid:
    """Write a question down before anything about the rows leaves, or refuse it; a rehearsal is not written down."""
    from bruit.privacy.spent_file import beside, total

    record = beside(table, limit)
    if seed is None:
        record.write(epsilon, statistic=statistic, delta=delta)
        return Paid(str(record.path), total(record.lines()))
    if limit is not None:
        raise ConfigError("a rehearsal from a --seed hides nothing and is not written down; leave --limit out")
    return Paid("", 0.0)


def dice(seed: int | None, *hides: object) -> Dice:
    """Dice nobody can throw again, unless a seed asks for a rehearsal: then they follow from what they hide, too."""
    from bruit.digests import digest
    from bruit.randomness import Replay, Secure

    return Secure() if seed is None else Replay(seed, digest(digest(b"", "reports", seed), *hides))


def existing(path: Path) -> Path:
    """The path of a file that is there."""
    if not path.is_file():
        raise ConfigError(f"there is no file {path}")
    return path


def column_of_numbers(columns: Columns, name: str) -> Array:
    """One column of a table, refused if it holds text."""
    from bruit.tasks.columns import numbers

    found = numbers(columns, name)
    if found is None:
        raise ConfigError(f"{columns.file}, column {name!r} holds text where numbers are needed")
    return found


def mean_protocol(
    low: float, high: float, epsilon: float, delta: float = USUAL_DELTA, kind: str | None = None
) -> MeanProtocol:
    """Noise for numbers of low..high: Laplace, which needs no delta, unless Gaussian noise is asked for."""
    from bruit.local_dp.gaussian_mean import GaussianMean
    from bruit.local_dp.laplace_mean import LaplaceMean

    if kind not in (None, "laplace", "gaussian"):
        raise ConfigError(f"no protocol {kind!r} reports numbers; there are: laplace, gaussian")
    if kind == "gaussian":
        return GaussianMean(low, high, epsilon, delta)
    if delta != USUAL_DELTA:
        raise ConfigError(f"Laplace noise needs no delta, found --delta {delta:g}; leave it out, or add --protocol"
                          " gaussian")  # fmt: skip
    return LaplaceMean(low, high, epsilon)


def too_few(users: int, epsilon: float, needed: int) -> str:
    """The sentence about an estimate that noise drowns: how many users it would take."""
    return (f"{users} users at epsilon = {epsilon:g} say nothing: a guess without looking is as good; it takes about "
            f"{needed} users at this epsilon, or a larger epsilon")
