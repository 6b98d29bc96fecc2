"""The command line: run, sweep, replay, epsilon, graph, list, show, init; budget, statement; log
verify; peer key, run; network init, join, revise, sign, book, demo.

Exit codes: 0 done. 1 the answer is no: a replay disagrees, a peer met nobody or missed more than
planned. 2 the request cannot mean anything. 3 what a peer remembers is damaged or an old copy. 130
interrupted; a peer that was stopped can go on. Results go to standard output, progress and errors
to standard error.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from bruit.commands.attacks.attack import attack_app
from bruit.commands.attacks.audit import audit
from bruit.commands.columns import columns_app
from bruit.commands.docs import docs
from bruit.commands.elsewhere import elsewhere
from bruit.commands.epsilon import epsilon
from bruit.commands.experiments import init, replay, run, sweep
from bruit.commands.help_screen import ASK, ATTACK, BEGIN, REAL, RUNS, TABLES, Commands
from bruit.commands.misplaced import refuse_given
from bruit.commands.network.books import network_book, network_revise, network_sign
from bruit.commands.network.keys import key_app
from bruit.commands.network.relay import relay_app
from bruit.commands.paper.log import log_app
from bruit.commands.paper.statement import statement
from bruit.commands.peers import network_app, peer_app
from bruit.commands.plans.plan import plan
from bruit.commands.predict import predict
from bruit.commands.printing import Printer, Reply, warn
from bruit.commands.reproduce import reproduce
from bruit.commands.starting import begin
from bruit.commands.statistics.budget import budget
from bruit.commands.statistics.gopa import gopa_app
from bruit.commands.statistics.ldp import ldp_app
from bruit.commands.statistics.one_table import auc, mean
from bruit.commands.statistics.pairwise import pairwise
from bruit.commands.terminal import (
    Force,
    Json,
    On,
    Quiet,
    RunDelta,
    out,
)
from bruit.commands.ui import ui
from bruit.errors import BruitError, ConfigError, ConformanceError

app = typer.Typer(
    help="Decentralized learning among people who do not trust each other with their data.",
    cls=Commands,
    epilog=BEGIN,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


def _version(asked: bool) -> None:
    if asked:
        from importlib.metadata import version
        from platform import python_version

        packages = ", ".join(f"{name} {version(name)}" for name in ("numpy", "scipy", "numba"))
        Printer().say(f"bruit {version('bruit')}, Python {python_version()}, {packages}")
        raise typer.Exit


@app.callback()
def bruit(
    version: Annotated[
        bool,
        typer.Option(
            "--version", is_eager=True, callback=_version, help="Print the version, and exit."
        ),
    ] = False,
) -> None:
    """What all commands share."""


app.command(rich_help_panel=RUNS)(run)
app.command(rich_help_panel=RUNS)(sweep)
app.command(rich_help_panel=RUNS)(replay)
app.command(rich_help_panel=ASK)(epsilon)


@app.command(rich_help_panel=ASK)
def graph(
    name: Annotated[str, typer.Argument(help="A graph string, e.g. er:1000,c=2.")],
    as_json: Json = False,
) -> None:
    """Facts of a graph: peers, links, degrees, diameter, spectral gap, mixing time, liars tolerated,
    validity.

    Example: bruit graph torus:16x16
    """
    from bruit.commands.listing import fact_text
    from bruit.graphs.facts import graph_facts

    facts = graph_facts(name)
    lines = (f"{key:>28}  {fact_text(value)}" for key, value in facts.items())
    Printer(json=as_json).answer(Reply(facts, lines))


@app.command("list", rich_help_panel=ASK)
def list_(
    what: Annotated[
        str,
        typer.Argument(
            help="algorithms, graphs, data, mechanisms, tasks, experiments, theorems, ahead."
        ),
    ] = "algorithms",
    as_json: Json = False,
) -> None:
    """What there is, one line each.

    Example: bruit list graphs
    """
    from bruit.commands.listing import listing

    rows = listing(what)
    width = max((len(key) for key in rows), default=0)
    Printer(json=as_json).answer(
        Reply(rows, (f"{key:<{width}}  {text}" for key, text in rows.items()))
    )


@app.command(rich_help_panel=RUNS)
def show(
    folders: Annotated[
        list[Path],
        typer.Argument(help="A run folder; with --html several, or CSV files of sweeps."),
    ],
    html: Annotated[
        Path | None, typer.Option(help="Write one self-contained page instead.")
    ] = None,
    csv: Annotated[
        Path | None, typer.Option(help="Write the numbers behind the figures to this folder.")
    ] = None,
    pdf: Annotated[
        Path | None, typer.Option(help="Write the figures as a PDF (extra `ui`).")
    ] = None,
    force: Force = False,
    on: On = None,
    delta: RunDelta = None,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """The story of a run: what was learned, and who could have learned what about whom.

    Example: bruit show runs/breast-cancer-seed3.run --html report.html
    """
    from bruit.commands.show import Pages, story

    printer = Printer(json=as_json, quiet=quiet)
    pages = Pages(html, csv, pdf)
    if html is None and len(folders) > 1:
        raise ConfigError(
            f"{len(folders)} runs are compared on a page: add --html FILE, or name one run folder"
        )
    if len(folders) > 1:
        refuse_given("it is written of one run", "csv", "pdf")
    if pages.asked:
        pages.check(force)
    else:
        refuse_given("it is about files to write", "force")
    with elsewhere(on, printer):
        if pages.asked:
            printer.answer(pages.write(folders, delta, printer))
        else:
            printer.answer(story(folders[0], delta, printer))


app.command(rich_help_panel=RUNS)(statement)
app.command(rich_help_panel=RUNS)(init)
app.command(rich_help_panel=RUNS)(predict)
app.command(rich_help_panel=RUNS)(ui)
app.command(rich_help_panel=RUNS)(docs)
app.command(rich_help_panel=RUNS)(reproduce)
app.command(rich_help_panel=ASK)(plan)
app.command(rich_help_panel=ATTACK)(audit)
app.add_typer(attack_app, name="attack", cls=Commands, rich_help_panel=ATTACK)
app.add_typer(columns_app, name="columns", cls=Commands, rich_help_panel=REAL)
app.add_typer(key_app, name="key", cls=Commands, rich_help_panel=REAL)
network_app.command("revise")(network_revise)
network_app.command("sign")(network_sign)
network_app.command("book")(network_book)
app.add_typer(network_app, name="network", cls=Commands, rich_help_panel=REAL)
app.add_typer(peer_app, name="peer", cls=Commands, rich_help_panel=REAL)
app.add_typer(log_app, name="log", cls=Commands, rich_help_panel=REAL)
app.add_typer(relay_app, name="relay", cls=Commands, rich_help_panel=REAL)
app.command(rich_help_panel=TABLES)(budget)
app.command(rich_help_panel=TABLES)(auc)
app.command(rich_help_panel=TABLES)(mean)
app.command(rich_help_panel=TABLES)(pairwise)
app.add_typer(ldp_app, name="ldp", cls=Commands, rich_help_panel=TABLES)
app.add_typer(gopa_app, name="gopa", cls=Commands, rich_help_panel=TABLES)


def main() -> None:
    """Entry point: errors of bruit become one sentence and an exit code."""
    if sys.argv[1:3] != ["peer", "run"]:  # which begins when it listens to its neighbors
        begin()
    if not out.is_terminal:
        out.width = 200  # a pipe has no edge: tables are not cut at the width of a terminal
    try:
        app(prog_name="bruit")
    except ConformanceError as error:
        warn(f"disagreement: {error}")
        sys.exit(1)
    except BruitError as error:
        warn(f"error: {error}")
        sys.exit(error.exit_code)
    except OSError as error:
        warn(f"error: {_in_words(error)}")
        sys.exit(2)
    except KeyboardInterrupt as error:
        _say_interrupted(error)
        sys.exit(130)
    except (
        SystemExit
    ) as end:  # typer turns an interruption into a silent exit; what it knew is its cause
        cause: BaseException | None = end
        while cause is not None and not isinstance(cause, KeyboardInterrupt):
            cause = cause.__cause__ or cause.__context__
        if cause is not None:
            _say_interrupted(cause)
        raise


def _in_words(error: OSError) -> str:
    """What the operating system refused, without its number: no space left on device: runs/a.run."""
    if not error.strerror:
        return str(error)
    words = error.strerror[0].lower() + error.strerror[1:]
    return words if error.filename is None else f"{words}: {os.fsdecode(error.filename)}"


def _say_interrupted(error: BaseException) -> None:
    words = str(error) or "no result was saved"
    warn(f"interrupted: {words}")
