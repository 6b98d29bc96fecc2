"""`bruit epsilon`: what observers could have learned, from a run or from a protocol without any data."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bruit.commands.elsewhere import elsewhere
from bruit.commands.misplaced import refuse_given
from bruit.commands.printing import Printer
from bruit.commands.terminal import (
    Dim,
    Force,
    GraphName,
    Json,
    On,
    Published,
    Quiet,
    RunDelta,
    Seed,
    Sensitivity,
    Set,
    Sigma,
    Steps,
)
from bruit.errors import ConfigError
from bruit.files import check_place
from bruit.privacy.guarantee import Status

if TYPE_CHECKING:
    from bruit.privacy.guarantee import Epsilon
    from bruit.privacy.pair_table import Summary
    from bruit.runs.asking import BlankProtocol
    from bruit.runs.result import Run


def epsilon(
    folder: Annotated[
        Path | None,
        typer.Argument(
            help="A run folder, or a real peer's site.toml, folder or state; or describe a protocol"
            " with options."
        ),
    ] = None,
    graph: GraphName = None,
    algorithm: Annotated[
        str, typer.Option(help="An algorithm or preset of `bruit list algorithms`.")
    ] = "averaging",
    set_: Set = [],  # noqa: B006
    steps: Steps = None,
    sigma: Sigma = None,
    sensitivity: Sensitivity = 1.0,
    smoothness: Annotated[
        float | None, typer.Option(help="Declare convex losses this smooth (walks).")
    ] = None,
    dim: Dim = 1,
    level: Annotated[
        str, typer.Option(help="What is hidden: user (all that a peer holds) or record (one row).")
    ] = "user",
    adjacency: Annotated[
        str, typer.Option(help="How records differ, at record level: replace or add-remove.")
    ] = "replace",
    sample_rate: Annotated[
        float, typer.Option(help="Chance of a record to be in a batch, at record level.")
    ] = 1.0,
    of: Annotated[
        str | None,
        typer.Option(help="Whose data; by default the worst peer; several (5,6): all at once."),
    ] = None,
    seen_by: Annotated[
        str | None, typer.Option(help="An observer, several (3,7), or everybody.")
    ] = None,
    delta: RunDelta = None,
    published: Published = False,
    before: Annotated[
        bool,
        typer.Option("--before", help="Of a walk: before it goes, over all the ways it may go."),
    ] = False,
    ahead: Annotated[
        str | None,
        typer.Option(
            help="A statement of `bruit list ahead`, its numbers by --set: no run, no algorithm."
        ),
    ] = None,
    why: Annotated[bool, typer.Option("--why", help="Explain the worst pair too.")] = False,
    matrix: Annotated[
        Path | None, typer.Option(help="Write m[u, v] for all pairs to this .npy file.")
    ] = None,
    report: Annotated[
        list[Path],
        typer.Option(
            help="Of a real run: a participant's report.json. Without those of all only local DP"
            " is known. May be repeated."
        ),
    ] = [],  # noqa: B006
    force: Force = False,
    on: On = None,
    seed: Seed = 0,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """What could these observers have learned about that peer? From a run, or from a protocol
    without any data.

    Example: bruit epsilon --graph torus:16x16 --algorithm averaging --steps 20 --sigma 1 --of 5
    --seen-by 0
    """
    from bruit.commands import asking
    from bruit.privacy.profile import USUAL_DELTA
    from bruit.runs.asking import BlankProtocol, ask, explain, write_matrix

    found: Epsilon | Summary
    members = asking.named_members(of)
    blank = BlankProtocol(
        graph=graph,
        algorithm=algorithm,
        settings=tuple(set_),
        steps=steps,
        sigma=sigma,
        sensitivity=sensitivity,
        smoothness=smoothness,
        dim=dim,
        seed=seed or 0,
        level=level,
        adjacency=adjacency,
        sample_rate=sample_rate,
    )
    if ahead is not None:
        _refuse_beside_ahead(blank, folder, published=published, before=before, matrix=matrix)
        given = {"graph": graph, "steps": steps, "of": members, "seen_by": seen_by}
        at = USUAL_DELTA if delta is None else delta
        answer = asking.ask_ahead(ahead, list(set_), given, sigma, sensitivity, at)
        Printer(json=as_json).answer(asking.EpsilonAnswer(answer))
        return
    if site := _site(folder, blank, report, published or before or matrix is not None or why):
        from bruit.peers.site.own_pairs import own_pairs

        watching = asking.named_observers(seen_by)
        found = own_pairs(site, report, members, watching, delta)
        Printer(json=as_json).answer(asking.EpsilonAnswer(found))
        return
    subject = _asked_about(folder, blank)
    delta = subject.delta if delta is None else delta
    _check_matrix(matrix, force, before, published)
    status: Status = "published" if published else "proven"
    printer = Printer(json=as_json, quiet=quiet)
    with elsewhere(on, printer), printer.ticker("accounting") as ticker:
        if matrix is not None:
            write_matrix(subject, matrix, status, ticker)
        if before:
            found = asking.ask_before(subject, members, seen_by, delta, folder is None)
        else:
            found = ask(subject, members, asking.named_observers(seen_by), delta, status, ticker)
        reason = explain(subject, found, delta, status) if why else None
    printer.answer(asking.EpsilonAnswer(found, reason, subject))


def _check_matrix(matrix: Path | None, force: bool, before: bool, published: bool) -> None:
    """Where all pairs are written, if anywhere; before a walk there is no such table."""
    if before and (published or matrix is not None):
        raise ConfigError(
            "before a walk there is one proven answer, of a pair or of the worst one; leave "
            "--published and --matrix out"
        )
    if matrix is None:
        refuse_given("it is about the file of --matrix", "force")
    else:
        check_place(matrix, force)


def _site(
    folder: Path | None, blank: BlankProtocol, reports: list[Path], other: bool
) -> Path | None:
    """The site file of a real peer, if its folder is asked about; refused with what is about
    simulated runs."""
    from bruit.runs.asking import BlankProtocol

    site = None
    if folder is not None:
        from bruit.peers.site.own_pairs import site_of

        site = site_of(folder)
    if site is None:
        if reports:
            raise ConfigError(
                "--report is about a real run: name the site.toml or the state folder of the"
                " participant whose data is asked about"
            )
        return None
    if other or blank != BlankProtocol():
        raise ConfigError(
            "of a real peer's run one asks --of, --seen-by, --report and --delta; all pairs and"
            " printed formulas are for simulated runs, leave the other options out"
        )
    refuse_given("of a real peer's run one pair is asked about", "on", "force")
    return site


def _asked_about(folder: Path | None, blank: BlankProtocol) -> Run:
    """The run of a folder, or a rehearsal of the protocol that the options describe."""
    from bruit.runs.asking import BlankProtocol
    from bruit.runs.result import load

    usual = BlankProtocol()
    if (folder is None) == (blank.graph is None) or (folder is not None and blank != usual):
        raise ConfigError(
            "name either a run folder or a protocol: --graph ... --algorithm ... --steps ... "
            "--sigma ..."
        )
    return blank.rehearse() if folder is None else load(folder)


ONLY_OF_PROTOCOLS = ("algorithm", "smoothness", "dim", "level", "adjacency", "sample_rate", "seed")


def _refuse_beside_ahead(
    blank: BlankProtocol, folder: Path | None, **others: Path | bool | None
) -> None:
    """What a statement about numbers alone has no use for."""
    from bruit.runs.asking import BlankProtocol

    refuse_given("--ahead is about numbers alone", "why", "report", "on", "force")
    usual = BlankProtocol()
    named = ["folder"] if folder is not None else []
    named += [name for name in ONLY_OF_PROTOCOLS if getattr(blank, name) != getattr(usual, name)]
    named += [name for name, value in others.items() if value]
    if named:
        shown = ", ".join(
            "a run" if name == "folder" else "--" + name.replace("_", "-") for name in named
        )
        raise ConfigError(
            f"--ahead is about a protocol known by its numbers, not about {shown}; leave that out,"
            " and give the numbers with --set"
        )
