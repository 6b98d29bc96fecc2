"""`bruit attack linkage`: two batches of local-DP reports from the same users; who is who?"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from bruit.commands.misplaced import refuse_given
from bruit.commands.printing import Printer, Reply
from bruit.commands.terminal import Json, Quiet
from bruit.errors import ConfigError
from bruit.how_many import how_many


def attack_linkage(
    files: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[REPORTS]...",
            help="Files of `bruit ldp report`: those of the first time, then those of the second, "
            "attributes in the same order; row k of all files is user k.",
        ),
    ] = None,
    users: Annotated[
        int | None, typer.Option(min=2, help="Instead of files: simulate so many users.")
    ] = None,
    attributes: Annotated[
        int, typer.Option(min=1, help="Simulated: how many attributes each user reports.")
    ] = 1,
    values: Annotated[
        int, typer.Option(min=2, help="Simulated: how many values an attribute has.")
    ] = 2,
    epsilon: Annotated[
        float,
        typer.Option(
            "--epsilon-per-report", help="Simulated: what one report of one attribute costs."
        ),
    ] = 1.0,
    protocol: Annotated[
        str,
        typer.Option(
            help="Simulated: k-ary, hadamard, unary, local-hashing, "
            "randomized-response, laplace or gaussian."
        ),
    ] = "k-ary",
    keep: Annotated[
        float, typer.Option(help="The chance that a user's data is the same both times.")
    ] = 1.0,
    confidence: Annotated[float, typer.Option(help="How sure the interval is.")] = 0.95,
    seed: Annotated[int, typer.Option(help="Seed of the simulated data and of the order.")] = 0,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Match the reports of one time with those of another, without names: how often is it right?

    Example: bruit attack linkage --users 200 --attributes 12 --values 4 --epsilon-per-report 2
    """
    from bruit.adversary.audits.bounds import check_confidence
    from bruit.adversary.audits.linkage import (
        Simulation,
        linkage_summary,
        matched_again,
        read_twice,
        simulated,
    )

    check_confidence(confidence)
    if bool(files) == (users is not None):
        raise ConfigError(
            "name either files of reports, first and second time, or --users to simulate"
        )
    if files:
        refuse_given(
            "files of reports say themselves what was reported and how",
            *("attributes", "values", "epsilon", "protocol"),
        )
        first, second = read_twice(files)
    else:
        first, second = simulated(
            Simulation(
                users=int(users or 0),
                attributes=attributes,
                values=values,
                epsilon=epsilon,
                protocol=protocol,
                keep=keep,
                seed=seed,
            )
        )
    printer = Printer(json=as_json, quiet=quiet)
    with printer.ticker("comparing") as ticker:
        right = matched_again(first, second, keep, seed)
        ticker(1, 1)
    answer = linkage_summary(first, right, confidence) | {"simulated": not files, "keep": keep}
    printer.answer(Reply(answer, _linked(answer)))


def _linked(answer: dict[str, Any]) -> Iterator[str]:
    low, high = answer["interval"]
    kinds = ", ".join(dict.fromkeys(answer["protocols"]))
    attributes = how_many(answer["attributes"], "attribute")
    yield (
        f"{how_many(answer['users'], 'user')}, {attributes} by {kinds}, reported twice at epsilon"
        f" {answer['epsilon_per_report']:g} each time"
    )
    sure = f"{100 * answer['confidence']:g} % interval"
    yield (
        f"  {answer['right']} matched rightly: {100 * answer['success']:.1f} %, between "
        f"{100 * low:.1f} and"
        f" {100 * high:.1f} % ({sure}); chance gives {100 * answer['chance']:.2g} %"
    )
    if not answer["beats_chance"]:
        yield "  this is what chance alone may give"
    if answer["limit"] is not None and answer["limit"] < 0.995:
        yield f"  no attack on one user does better than {100 * answer['limit']:.3g} %"
    yield f"threat: {'; '.join(f'{key}: {value}' for key, value in answer['taxonomy'].items())}"
    yield f"defence: {answer['defence']}"
