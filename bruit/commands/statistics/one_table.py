"""`bruit auc` and `bruit mean`: of one table of users, each of whom is randomized before anything is
counted; or, with partners, of several holders."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bruit.commands.misplaced import refuse_given
from bruit.commands.printing import Printer, Reply
from bruit.commands.statistics.tables import (
    USUAL_DELTA,
    Book,
    Call,
    Clamp,
    Column,
    Confidence,
    High,
    Identity,
    Limit,
    Listen,
    Low,
    MostRows,
    Partner,
    Positive,
    Rehearse,
    Rounds,
    Table,
    promise,
)
from bruit.commands.terminal import Delta, Dropouts, Epsilon, Json, Quiet
from bruit.errors import ConfigError

if TYPE_CHECKING:
    from bruit.arrays import Array
    from bruit.statistics.one_table import TableAuc, TableMean

PATIENCE = 60.0  # seconds


def auc(
    table: Table,
    score: Annotated[str, typer.Option(help="The column of scores, private.")],
    label: Annotated[str, typer.Option(help="The column of labels, public, two classes.")],
    epsilon: Epsilon = 1.0,
    low: Low = 0.0,
    high: High = 1.0,
    positive: Positive = None,
    levels: Annotated[
        int | None, typer.Option(help="2**levels bins of scores; by default chosen from counts.")
    ] = None,
    clamp: Clamp = False,
    confidence: Confidence = 0.95,
    seed: Rehearse = None,
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
    """How well do private scores tell two classes apart? One randomized bit per user; labels are
    public.

    Example: bruit auc scores.csv --score s --label y --epsilon 1
    """
    from bruit.commands.statistics.holders import HolderOptions, auc_of_two_tables
    from bruit.statistics.one_table import TableQuestion, auc_of_table
    from bruit.tasks.data.formats.tables import read_table

    printer = Printer(json=as_json, quiet=quiet)
    partners = (listen, call, identity, partner, most_rows)
    if any(option is not None for option in partners) or rounds != 1:
        columns = read_table(table)
        refuse_given(
            "two holders compare scores as they are, with noise that neither knows",
            *("clamp", "levels", "seed", "low", "high"),
        )
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
        auc_of_two_tables(columns, (score, label, positive), epsilon, holders, confidence, printer)
        return
    asked = TableQuestion(
        table=table,
        low=low,
        high=high,
        epsilon=epsilon,
        clamp=clamp,
        confidence=confidence,
        limit=limit,
        seed=seed,
    )
    found = auc_of_table(asked, score, label, positive, levels)
    printer.answer(Reply(found.plain(), _auc_lines(found)))


def _auc_lines(answer: TableAuc) -> Iterator[str]:
    asked, found = answer.asked, answer.found
    yield (
        f"AUC {found.value:.4f}, between {found.low:.4f} and {found.high:.4f} "
        f"({100 * asked.confidence:g} % interval)"
    )
    yield (
        f"  {answer.positives} positive and {answer.negatives} negative users, one bit each, "
        f"{answer.bins} bins of scores; labels are public"
    )
    yield from promise(asked.epsilon, 0.0, asked.seed, answer.paid)


def mean(
    table: Table,
    column: Column,
    low: Low,
    high: High,
    epsilon: Epsilon = 1.0,
    protocol: Annotated[
        str | None, typer.Option(help="laplace (the default) or gaussian noise.")
    ] = None,
    delta: Delta = USUAL_DELTA,
    clamp: Clamp = False,
    confidence: Confidence = 0.95,
    seed: Rehearse = None,
    book: Book = None,
    identity: Identity = None,
    board: Annotated[
        Path | None, typer.Option(help="With --book: one's copy of the board, a file to write.")
    ] = None,
    rows: Annotated[
        str | None,
        typer.Option(
            help="With --book: protect rows, not peers; everybody's numbers of rows, by commas."
        ),
    ] = None,
    organizer: Annotated[int, typer.Option(help="With --book: who serves the board.")] = 0,
    dropouts: Dropouts = 0,
    patience: Annotated[
        float, typer.Option(help="With --book: seconds for which a list stays open.")
    ] = PATIENCE,
    limit: Limit = None,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """The mean of one column, from numbers that were made noisy by the users who hold them. With
    --book it is the mean of the rows of several peers, with canceling noise, and a board on which
    everybody can check everybody.

    Example: bruit mean values.csv --column x --low 0 --high 1 --epsilon 1
    """
    from bruit.statistics.one_table import TableQuestion, mean_of_table

    printer = Printer(json=as_json, quiet=quiet)
    if book is not None:
        from bruit.commands.statistics.average import Among, mean_among_peers, terms_of

        _refuse_alone(seed, protocol)
        among = Among(
            table=table,
            peers=book,
            identity=identity,
            board=board,
            rows=rows,
            organizer=organizer,
            dropouts=dropouts,
            patience=patience,
            limit=limit,
        )
        values = _column(table, column, (low, high) if clamp else None)
        terms = terms_of(column, low, high, epsilon, delta, among)
        mean_among_peers(values, terms, among, confidence, printer)
        return
    _refuse_idle(
        identity=identity,
        board=board,
        rows=rows,
        organizer=organizer or None,
        dropouts=dropouts or None,
        patience=None if patience == PATIENCE else patience,
    )
    asked = TableQuestion(
        table=table,
        low=low,
        high=high,
        epsilon=epsilon,
        clamp=clamp,
        confidence=confidence,
        limit=limit,
        seed=seed,
    )
    found = mean_of_table(asked, column, delta, protocol)
    printer.answer(Reply(found.plain(), _mean_lines(found)))


def _mean_lines(answer: TableMean) -> Iterator[str]:
    asked, found = answer.asked, answer.found
    yield (
        f"mean {found.value:.6g}, between {found.low:.6g} and {found.high:.6g} "
        f"({100 * asked.confidence:g} % interval)"
    )
    yield (f"  {found.reports} users, {answer.noise.kind} noise, standard error {found.error:.4g}")
    yield from promise(asked.epsilon, answer.delta, asked.seed, answer.paid)


def _column(table: Path, name: str, clamped: tuple[float, float] | None) -> Array:
    """One's own rows of a mean among peers."""
    import numpy as np

    from bruit.statistics.tables import column_of_numbers
    from bruit.tasks.data.formats.tables import read_table

    values = column_of_numbers(read_table(table), name)
    return values if clamped is None else np.clip(values, *clamped)


def _refuse_alone(seed: int | None, protocol: str | None) -> None:
    """Options that only a mean of one table has."""
    if seed is not None:
        raise ConfigError(
            "an average among real peers cannot be rehearsed from a seed; leave --seed out"
        )
    if protocol is not None:
        raise ConfigError(
            "peers average with coins that cancel, not with other noise; leave --protocol out"
        )


def _refuse_idle(**given: object) -> None:
    """Options that only an average among peers has: without its address book they would say
    nothing."""
    named = [f"--{name}" for name, value in given.items() if value is not None]
    if named:
        raise ConfigError(
            f"{', '.join(named)} is about an average among peers; add --book, or leave it out"
        )
