"""Statistics that nobody could have collected, from one table of users: `bruit auc`, `bruit mean`.

Each row is one user, whose report is randomized before anything is counted. What is printed is epsilon-DP for every
user (user level) against everybody, the aggregator first.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from bruit.errors import ConfigError
from bruit.tables_cli import (
    AGAINST,
    USUAL_DELTA,
    Clamp,
    Column,
    Confidence,
    High,
    Identity,
    Limit,
    Low,
    Positive,
    Rehearse,
    Table,
    column_of_numbers,
    dice,
    existing,
    mean_protocol,
    pay,
    privacy,
    too_few,
)
from bruit.terminal import Delta, Epsilon, Json, Quiet, emit_json, say

if TYPE_CHECKING:
    from bruit.arrays import Array
    from bruit.local_dp.protocol import MeanProtocol
    from bruit.tasks.columns import Columns

PATIENCE = 60.0  # seconds


def auc(
    table: Table,
    score: Annotated[str, typer.Option(help="The column of scores, private.")],
    label: Annotated[str, typer.Option(help="The column of labels, public, two classes.")],
    epsilon: Epsilon = 1.0,
    low: Low = 0.0,
    high: High = 1.0,
    positive: Positive = None,
    levels: Annotated[int | None, typer.Option(help="2**levels bins of scores; left out: chosen from counts.")] = None,
    clamp: Clamp = False,
    confidence: Confidence = 0.95,
    seed: Rehearse = None,
    listen: Annotated[str | None, typer.Option(help="Two holders: wait here, HOST:PORT, for the other.")] = None,
    call: Annotated[str | None, typer.Option("--with", help="Two holders: the other one waits at HOST:PORT.")] = None,
    identity: Identity = None,
    partner: Annotated[Path | None, typer.Option(help="Two holders: the other one's public.toml.")] = None,
    rounds: Annotated[int, typer.Option(help="Two holders: pairs that each row takes part in.")] = 1,
    limit: Limit = None,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """How well do private scores tell two classes apart? One randomized bit per user; labels are public.

    Example: bruit auc scores.csv --score s --label y --epsilon 1
    """
    from bruit.local_dp.private_auc import PrivateAuc, choose_levels
    from bruit.local_dp.quantized import bins_of
    from bruit.statistics.ranking import two_classes
    from bruit.tasks.columns import read_csv

    columns = read_csv(existing(table))
    if any(option is not None for option in (listen, call, identity, partner)) or rounds != 1:
        from bruit.two_party_cli import Holders, auc_of_two_tables, labels_of

        if clamp or levels is not None or seed is not None:
            raise ConfigError("two holders compare scores as they are, with noise that neither knows: leave --clamp, "
                              "--levels and --seed out")
        auc_of_two_tables(column_of_numbers(columns, score), labels_of(columns, label, positive), epsilon,
                          Holders(table, listen, call, identity, partner, rounds, limit), confidence, quiet, as_json)
        return
    scores, labels = column_of_numbers(columns, score), _labels(columns, label, positive)
    up, down = (len(part) for part in two_classes(scores, labels))
    depth = choose_levels(up, down, epsilon) if levels is None else levels
    asked = PrivateAuc(depth, epsilon, ties="half")
    _refuse_blind_auc(up, down, asked)
    bins = bins_of(np.clip(scores, low, high) if clamp else scores, 1 << depth, low, high)
    paid = pay(table, limit, f"auc of {score} by {label}", epsilon, 0.0, seed)
    found = asked.estimate(asked.report(bins, dice(seed, asked, bins)), labels, confidence=confidence)
    about = {
        "auc": found.value, "interval": [found.low, found.high], "confidence": confidence, "error": found.error,
        "raw": found.raw, "epsilon": epsilon, "delta": 0.0, "level": "user", "against": AGAINST, "bits_per_user": 1,
        "users": up + down, "positives": up, "negatives": down, "bins": 1 << depth, "protects": "scores, not labels",
        "rehearsal": seed is not None, "recorded": paid.record or None,
    }
    if as_json:
        emit_json(about)
        return
    say(f"AUC {found.value:.4f}, between {found.low:.4f} and {found.high:.4f} ({100 * confidence:g} % interval)")
    say(f"  {up} positive and {down} negative users, one bit each, {1 << depth} bins of scores; labels are public")
    privacy(epsilon, 0.0, seed, paid)


def mean(
    table: Table,
    column: Column,
    low: Low,
    high: High,
    epsilon: Epsilon = 1.0,
    protocol: Annotated[str | None, typer.Option(help="laplace (if left out) or gaussian noise.")] = None,
    delta: Delta = USUAL_DELTA,
    clamp: Clamp = False,
    confidence: Confidence = 0.95,
    seed: Rehearse = None,
    book: Annotated[Path | None, typer.Option(help="Average with others: the address book of all.")] = None,
    identity: Identity = None,
    board: Annotated[Path | None, typer.Option(help="With --book: one's copy of the board, a file to write.")] = None,
    rows: Annotated[str | None, typer.Option(help="With --book: protect rows, not peers; everybody's numbers of rows, "
                                                  "by commas.")] = None,
    organizer: Annotated[int, typer.Option(help="With --book: who serves the board.")] = 0,
    dropouts: Annotated[int, typer.Option(help="With --book: how many may leave on the way.")] = 0,
    patience: Annotated[float, typer.Option(help="With --book: seconds for which a list stays open.")] = PATIENCE,
    limit: Limit = None,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """The mean of one column, from numbers that were made noisy by the users who hold them. With --book it is the mean
    of the rows of several peers, with canceling noise, and a board on which everybody can check everybody.

    Example: bruit mean values.csv --column x --low 0 --high 1 --epsilon 1
    """
    from bruit.local_dp.protocol import check_range
    from bruit.tasks.columns import read_csv

    if book is not None:
        from bruit.average_cli import Among, mean_among_peers, terms_of

        if seed is not None:
            raise ConfigError("an average among real peers cannot be rehearsed from a seed; leave --seed out")
        if protocol is not None:
            raise ConfigError("peers average with coins that cancel, not with other noise; leave --protocol out")
        asked = Among(table, book, identity, board, rows, organizer, dropouts, patience, limit)
        columns = read_csv(existing(table))
        numbers = column_of_numbers(columns, column)
        terms = terms_of(column, low, high, epsilon, delta, asked)
        mean_among_peers(np.clip(numbers, low, high) if clamp else numbers, terms, asked, confidence, quiet, as_json)
        return
    _refuse_idle(identity=identity, board=board, rows=rows, organizer=organizer or None, dropouts=dropouts or None,
                 patience=None if patience == PATIENCE else patience)  # fmt: skip
    noise = mean_protocol(low, high, epsilon, delta, protocol)
    spent = delta if noise.kind == "gaussian" else 0.0
    values = column_of_numbers(read_csv(existing(table)), column)
    _refuse_blind_mean(noise, len(values))
    values = check_range(np.clip(values, low, high) if clamp else values, low, high)
    paid = pay(table, limit, f"mean of {column}", epsilon, spent, seed)
    found = noise.estimate(noise.report(values, dice(seed, noise, values)), confidence)
    about = {
        "mean": found.value, "interval": [found.low, found.high], "confidence": confidence, "error": found.error,
        "epsilon": epsilon, "delta": spent, "level": "user", "against": AGAINST,
        "bits_per_user": noise.bits(), "users": found.reports, "protocol": noise.kind,
        "rehearsal": seed is not None, "recorded": paid.record or None,
    }
    if as_json:
        emit_json(about)
        return
    say(f"mean {found.value:.6g}, between {found.low:.6g} and {found.high:.6g} ({100 * confidence:g} % interval)")
    say(f"  {found.reports} users, {noise.kind} noise, standard error {found.error:.4g}")
    privacy(epsilon, spent, seed, paid)


def _refuse_idle(**given: object) -> None:
    """Options that only an average among peers has: without its address book they would say nothing."""
    named = [f"--{name}" for name, value in given.items() if value is not None]
    if named:
        raise ConfigError(f"{', '.join(named)} is about an average among peers; add --book, or leave it out")


def _labels(columns: Columns, name: str, positive: str | None) -> Array:
    """1 for the positive class, 0 for the other."""
    cells = columns.of(name)
    found = sorted(set(cells))
    if positive is not None:
        if positive not in found:
            raise ConfigError(f"{columns.file}, column {name!r} never holds the positive label {positive!r}; it holds "
                              f"{', '.join(found[:10])}")
        return np.array([float(cell == positive) for cell in cells])
    values = column_of_numbers(columns, name)
    kinds = np.unique(values)
    if len(kinds) > 2:
        raise ConfigError(f"{columns.file}, column {name!r} holds {len(kinds)} different labels; an AUC compares two: "
                          "say which one is positive with --positive")
    top = kinds[-1]
    return np.asarray((values == top) if len(kinds) == 2 else (values > 0), dtype=np.float64)


def _refuse_blind_auc(up: int, down: int, asked: Any) -> None:
    """Before any report is made: an expected error above 1/2 is worse than guessing 1/2."""
    from bruit.local_dp.private_auc import predicted_error, users_needed

    if predicted_error(up, down, asked.levels, asked.epsilon) > 0.5:
        raise ConfigError(too_few(up + down, asked.epsilon, users_needed(up / (up + down), asked.epsilon)))


def _refuse_blind_mean(protocol: MeanProtocol, users: int) -> None:
    """Before any report is made: an error above half of the range is worse than guessing its middle."""
    wide = protocol.high - protocol.low
    if users and protocol.variance(users) > (wide / 2) ** 2:
        raise ConfigError(too_few(users, protocol.epsilon, protocol.users_needed(wide / 10)))
