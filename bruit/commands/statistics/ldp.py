"""Local DP in two halves: `bruit ldp report` for whoever holds rows, `bruit ldp estimate` for
whoever collects reports.

Only the reports travel. Files of several holders are pooled: shares, means, or the AUC of scores
(one bit per user).
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bruit.commands.printing import Printer, Reply
from bruit.commands.statistics.tables import (
    USUAL_DELTA,
    Clamp,
    Column,
    Confidence,
    Limit,
    Rehearse,
    Table,
    promise,
)
from bruit.commands.terminal import Delta, Epsilon, Force, Json
from bruit.how_many import how_many

if TYPE_CHECKING:
    from bruit.statistics.reporting import Reported

ldp_app = typer.Typer(
    help="Local DP: randomized reports of users, and estimates from them.", no_args_is_help=True
)


@ldp_app.command("report")
def ldp_report(
    table: Table,
    column: Column,
    out: Annotated[Path, typer.Option(help="File of reports to write, .csv or .npz.")],
    epsilon: Epsilon = 1.0,
    protocol: Annotated[
        str | None,
        typer.Option(
            help="k-ary, hadamard, unary, local-hashing, randomized-response, "
            "laplace or gaussian; by default the best."
        ),
    ] = None,
    domain: Annotated[
        str | None, typer.Option(help="All possible values, by commas: red,green,blue.")
    ] = None,
    low: Annotated[
        float | None, typer.Option(help="Numbers: the least possible value; scores: 0.")
    ] = None,
    high: Annotated[
        float | None, typer.Option(help="Numbers: the largest possible value; scores: 1.")
    ] = None,
    delta: Delta = USUAL_DELTA,
    label: Annotated[
        str | None, typer.Option(help="Scores, for an AUC: the column of public labels.")
    ] = None,
    positive: Annotated[
        str | None, typer.Option(help="Scores: the positive label; by default labels are 0, 1.")
    ] = None,
    levels: Annotated[
        int | None, typer.Option(help="Scores: 2**levels bins, for all holders; by default 6.")
    ] = None,
    clamp: Clamp = False,
    keep_order: Annotated[
        bool,
        typer.Option(
            "--keep-order",
            help="Places are public: write reports in the order of the rows; by default they are shuffled.",
        ),
    ] = False,
    limit: Limit = None,
    seed: Rehearse = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """The clients' side: one randomized report per row, safe to send to an aggregator nobody
    trusts.

    Example: bruit ldp report colors.csv --column color --domain red,green,blue --out reports.csv

    Of scores, for an AUC over several holders: bruit ldp report scores.csv --column s --label y
    --out a.csv
    """
    from bruit.statistics.reporting import ReportQuestion, report_on

    asked = ReportQuestion(
        table=table,
        column=column,
        epsilon=epsilon,
        protocol=protocol,
        domain=domain,
        low=low,
        high=high,
        delta=delta,
        label=label,
        positive=positive,
        levels=levels,
        clamp=clamp,
        keep_order=keep_order,
        limit=limit,
        seed=seed,
    )
    found = report_on(asked, out, force)
    Printer(json=as_json).answer(Reply(found.plain(), _reported(found)))


def _reported(found: Reported) -> Iterator[str]:
    asked, bits = found.asked, found.bits
    yield (
        f"wrote {how_many(len(found.reports), 'report')} ({found.reports.protocol['kind']}, {bits:g} "
        f"bit{'' if bits == 1 else 's'} each) to {found.file}"
    )
    if asked.label is not None:
        yield "  labels are public and written beside the bits; send the file to whoever pools it"
    yield (
        "  in the order of the rows: whoever knows the table's order knows whose report is whose"
        if asked.keep_order
        else "  in random order: the place of a report says nothing"
    )
    yield from promise(asked.epsilon, found.delta, asked.seed, found.paid)


@ldp_app.command("estimate")
def ldp_estimate(
    files: Annotated[list[Path], typer.Argument(help="Files of reports, all of one protocol.")],
    confidence: Confidence = 0.95,
    as_json: Json = False,
) -> None:
    """The aggregator's side: unbiased estimates with intervals; impossible reports are counted and
    left out.

    Example: bruit ldp estimate reports.csv
    """
    from bruit.statistics.pooling import estimated

    about = estimated(files, confidence)
    Printer(json=as_json).answer(Reply(about, _estimated(about)))


def _estimated(about: dict[str, Any]) -> Iterator[str]:
    sure = f"{100 * about['confidence']:g} % interval"
    if "auc" in about:
        low, high = about["interval"]
        yield f"AUC {about['auc']:.4f}, between {low:.4f} and {high:.4f} ({sure})"
        yield (
            f"  {about['positives']} positive and {about['negatives']} negative users of "
            f"{how_many(about['files'], 'file')}, one "
            f"bit each, {about['bins']} bins of scores; labels are public"
        )
    elif "mean" in about:
        low, high = about["interval"]
        yield f"mean {about['mean']:.6g}, between {low:.6g} and {high:.6g} ({sure})"
    else:
        width = max(len(row["value"]) for row in about["shares"])
        for row in about["shares"]:
            low, high = row["interval"]
            yield (
                f"{row['value']:<{width}}  {row['share']:8.4f}   between {low:.4f} and {high:.4f} "
                f"({sure})"
            )
    yield (
        f"  {how_many(about['reports'], 'report')} by {about['protocol']}, {about['refused']} malformed ones "
        f"refused"
    )
    yield from promise(about["epsilon"], about["delta"], None, None)
    if about["note"]:
        yield f"  note: {about['note']}"
