"""`bruit audit`: thousands of paired runs on neighboring data, the largest epsilon they prove, and
checks beside."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bruit.commands.asking import named_observers, named_peer
from bruit.commands.elsewhere import elsewhere
from bruit.commands.printing import Printer, Reply
from bruit.commands.terminal import Delta, Json, On, Published, Quiet, Seed
from bruit.errors import ConfigError
from bruit.privacy.guarantee import Status


def audit(
    experiment: Annotated[
        Path,
        typer.Argument(
            metavar="EXPERIMENT", help="A TOML file, or the name of a bundled experiment."
        ),
    ],
    of: Annotated[
        str | None, typer.Option(help="Whose data differs; by default the hardest pair.")
    ] = None,
    seen_by: Annotated[
        str | None, typer.Option(help="An observer (7), several (3,7), or everybody else.")
    ] = None,
    trials: Annotated[
        int, typer.Option(min=1, help="Paired runs: as many on each of two neighboring data sets.")
    ] = (10_000),
    delta: Delta = 1e-6,
    confidence: Annotated[
        float, typer.Option(help="A true claim is refuted with the remaining probability.")
    ] = (1 - 1e-6),
    published: Published = False,
    on: On = None,
    seed: Seed = None,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Try to refute the epsilon of an experiment as it runs: its engine, faults, records and every
    release.

    Bugs planted on the way say what the audit would have seen. Exit code 1 if the claim is refuted.

    Example: bruit audit experiment.toml --of 3 --seen-by 0 --trials 10000 --delta 1e-6
    """
    from bruit.adversary.audits.experiments import audit_experiment

    status: Status = "published" if published else "proven"
    if (of is None) != (seen_by is None):
        raise ConfigError(
            "name both --of and --seen-by, or neither to have the hardest pair chosen"
        )
    observers = named_observers(seen_by)
    watching = None if isinstance(observers, str) else observers
    printer = Printer(json=as_json, quiet=quiet)
    with elsewhere(on, printer), printer.ticker("paired runs") as ticker:
        found = audit_experiment(
            path=experiment,
            of=named_peer(of),
            seen_by=watching,
            trials=trials,
            delta=delta,
            confidence=confidence,
            status=status,
            seed=seed,
            progress=ticker,
        )
    printer.answer(Reply(found.to_dict(), [str(found)]))
    if found.refuted:
        raise typer.Exit(1)
