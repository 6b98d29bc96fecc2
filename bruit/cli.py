"""The command line: run, sweep, replay, epsilon, graph, list, show, init; peer key, run; network init, join, demo.

Exit codes: 0 done, 1 the answer is no (a replay disagrees, a peer met nobody or missed more than planned), 2 the
request cannot mean anything, 130 interrupted; a peer that was stopped can go on. Results go to standard output,
progress and errors to standard error.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from bruit.attacks_cli import attack_app
from bruit.audit_cli import audit
from bruit.errors import BruitError, ConfigError, ConformanceError
from bruit.gopa_cli import gopa_app
from bruit.help_screen import ASK, ATTACK, BEGIN, REAL, RUNS, TABLES, Commands
from bruit.ldp_cli import ldp_app
from bruit.model_cli import predict
from bruit.peers_cli import network_app, peer_app
from bruit.planning_cli import plan
from bruit.privacy.guarantee import Status
from bruit.statistics_cli import auc, mean
from bruit.stopping import interruptible
from bruit.terminal import (
    Delta,
    Dim,
    Force,
    GraphName,
    Json,
    Published,
    Quiet,
    Seed,
    Sensitivity,
    Set,
    Sigma,
    Steps,
    Ticker,
    emit_json,
    err,
    out,
    program,
    say,
    typed,
)
from bruit.ui_cli import ui
from bruit.whole_files import check_place, write_whole

app = typer.Typer(
    help="Decentralized learning among people who do not trust each other with their data.", cls=Commands, epilog=BEGIN,
    no_args_is_help=True, rich_markup_mode=None, pretty_exceptions_enable=False,
)  # fmt: skip


def _version(asked: bool) -> None:
    if asked:
        from importlib.metadata import version
        from platform import python_version

        packages = ", ".join(f"{name} {version(name)}" for name in ("numpy", "scipy", "numba"))
        say(f"bruit {version('bruit')}, Python {python_version()}, {packages}")
        raise typer.Exit


@app.callback()
def bruit(
    version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_version, help="Print the version, and exit.")
    ] = False,
) -> None:
    """What all commands share."""


@app.command(rich_help_panel=RUNS)
def run(
    experiment: Annotated[str, typer.Argument(help="A TOML file, or the name of a bundled experiment.")],
    set_: Set = [],  # noqa: B006
    seed: Seed = None,
    engine: Annotated[str | None, typer.Option(help="bulk or events, instead of the file's.")] = None,
    output: Annotated[Path | None, typer.Option("--out", help="Run folder to write.")] = None,
    force: Force = False,
    rehearsal: Annotated[
        bool, typer.Option("--rehearsal", help="The noise of peers that run with --rehearse, whatever the records.")
    ] = False,
    delta: Delta = 1e-6,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Run an experiment and print what was learned, by whom, about whom.

    A run that is there already is shown; one that was interrupted (Ctrl-C keeps it) is run again, to its end.

    Example: bruit run breast-cancer --seed 7
    """
    from bruit.build import build
    from bruit.config import identity, read
    from bruit.result import load
    from bruit.run_cli import learned, shown
    from bruit.run_places import named_place, place_of, save
    from bruit.settings import change

    given = [*set_, *([] if seed is None else [f"seed={seed}"]), *([] if engine is None else [f"engine.name={engine}"])]
    file, text, changes = change(read(experiment)[1], given, experiment)
    name = identity(file, rehearsal=rehearsal)
    if output is None:
        place = place_of(Path(experiment).stem, file.seed, name, force)
    else:
        place = named_place(output, name, force)
    if place.holds == "same":
        shown(load(place.folder), place, delta, quiet, as_json, changes)
        return
    before = load(place.folder) if place.holds == "interrupted" else None
    with interruptible():
        with Ticker(quiet or as_json, "sizing the noise") as ticker:
            built = build(file, text, experiment, ticker)
        result = learned(built, before, rehearsal, quiet or as_json)
        if result is not before:
            place = place._replace(folder=save(result, place, output is not None))
        shown(result, place, delta, quiet, as_json, changes)


@app.command(rich_help_panel=RUNS)
def sweep(
    experiment: Annotated[str, typer.Argument(help="A TOML file, or the name of a bundled experiment.")],
    vary: Annotated[list[str], typer.Option(help="key=value,value,...; give it several times for a grid.")] = [],  # noqa: B006
    seeds: Annotated[int, typer.Option(min=1, help="How many seeds per setting.")] = 1,
    set_: Set = [],  # noqa: B006
    jobs: Annotated[int, typer.Option(min=1, help="How many runs at a time, each on its own core.")] = 1,
    delta: Delta = 1e-6,
    output: Annotated[Path | None, typer.Option("--out", help="CSV file to write.")] = None,
    force: Force = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Run an experiment for every combination of values and several seeds; one row per run.

    Rows are kept as they are done: after Ctrl-C or a failure the same command does what is missing; with --force it
    runs all of it again. Exit code 1 if a run failed.

    Example: bruit sweep breast-cancer --vary privacy.epsilon=2,8 --seeds 3
    """
    from bruit.sweep import Kept, failed, planned, to_csv, to_table, work

    if output is not None:
        check_place(output, force)
    plan = planned(experiment, vary, seeds, delta, set_)
    kept = Kept.of(experiment, anew=force)
    rows: list[dict[str, Any]] = []
    done = kept.count(plan)
    if done and not quiet and not as_json:
        err.print(f"{done} of {len(plan)} from before, kept in {kept.where}", highlight=False, soft_wrap=True)
    try:
        with interruptible(), Ticker(quiet or as_json, "sweeping") as ticker:
            rows = work(plan, kept, ticker, jobs)
    except KeyboardInterrupt:
        rows = kept.found(plan)
        _print_rows(rows, as_json, to_table)
        done = len(rows) - len(failed(rows))
        unwritten = "" if output is None else f"; {output} is written when all are done"
        raise KeyboardInterrupt(f"{done} of {len(plan)} runs are done, kept in {kept.where}{unwritten}; the same"
                                f" command does the others:\n  {typed()}") from None  # fmt: skip
    if output is not None:
        to_csv(rows, output)
    _print_rows(rows, as_json, to_table)
    if failed(rows):
        lost = f"{len(failed(rows))} of {len(rows)} runs failed"
        err.print(f"{lost}; the others are kept in {kept.where}", highlight=False, soft_wrap=True)
        raise typer.Exit(1)


def _print_rows(rows: list[dict[str, Any]], as_json: bool, to_table: Callable[[list[dict[str, Any]]], Any]) -> None:
    if as_json:
        emit_json(rows)
    elif rows:
        out.print(to_table(rows))


@app.command(rich_help_panel=RUNS)
def replay(
    folder: Annotated[Path, typer.Argument(help="A run folder.")],
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Run a saved run again in bulk from its trace; exit code 1 if the two disagree.

    Example: bruit replay runs/breast-cancer-seed3.run
    """
    from bruit.replaying import replay as run_again
    from bruit.result import load

    first = load(folder)
    try:
        with Ticker(quiet or as_json, "replaying") as ticker:
            found = run_again(first, progress=ticker)
    except ConformanceError as error:
        if as_json:
            emit_json({"agrees": False, "reason": str(error)})
        raise
    if as_json:
        emit_json({"agrees": True, "difference": found.difference, "ledger_lines": found.lines})
    else:
        say(f"agrees: estimates differ by at most {found.difference:.3g}, {found.lines} ledger lines are equal")


@app.command(rich_help_panel=ASK)
def epsilon(
    folder: Annotated[Path | None, typer.Argument(help="A run folder; or describe a protocol with options.")] = None,
    graph: GraphName = None,
    algorithm: Annotated[str, typer.Option(help="An algorithm or preset of `bruit list algorithms`.")] = "averaging",
    set_: Set = [],  # noqa: B006
    steps: Steps = None,
    sigma: Sigma = None,
    sensitivity: Sensitivity = 1.0,
    smoothness: Annotated[float | None, typer.Option(help="Declare convex losses this smooth (walks).")] = None,
    dim: Dim = 1,
    of: Annotated[int | None, typer.Option(help="Whose data (the worst peer by default).")] = None,
    seen_by: Annotated[str | None, typer.Option(help="An observer, several (3,7), or everybody.")] = None,
    delta: Delta = 1e-6,
    published: Published = False,
    before: Annotated[
        bool, typer.Option("--before", help="Of a walk: before it goes, over all the ways it may go.")
    ] = False,
    why: Annotated[bool, typer.Option("--why", help="Explain the worst pair too.")] = False,
    matrix: Annotated[Path | None, typer.Option(help="Write m[u, v] for all pairs to this .npy file.")] = None,
    force: Force = False,
    seed: Seed = 0,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """What could these observers have learned about that peer? From a run, or from a protocol without any data.

    Example: bruit epsilon --graph torus:16x16 --algorithm averaging --steps 20 --sigma 1 --of 5 --seen-by 0
    """
    from bruit.asking import answer_json, answer_text, ask, describe_protocol, explain, write_matrix
    from bruit.planning_cli import ask_before
    from bruit.privacy.account import Summary
    from bruit.privacy.guarantee import Epsilon
    from bruit.result import load

    described = graph is not None or sigma is not None or steps is not None or bool(set_) or smoothness is not None
    described = described or (algorithm, sensitivity, dim, seed) != ("averaging", 1.0, 1, 0)
    if (folder is not None) == described or (folder is None and graph is None):
        raise ConfigError("name either a run folder or a protocol: --graph ... --algorithm ... --steps ... --sigma ...")
    if folder is not None:
        subject = load(folder)
    else:
        subject = describe_protocol(str(graph), algorithm, list(set_), steps, sigma, sensitivity, seed or 0, smoothness,
                                    dim)  # fmt: skip
    if before and (published or matrix is not None):
        raise ConfigError("before a walk there is one proven answer, of a pair or of the worst one; leave --published"
                          " and --matrix out")  # fmt: skip
    if matrix is not None:
        check_place(matrix, force)
    status: Status = "published" if published else "proven"
    with Ticker(quiet or as_json, "accounting") as ticker:
        if matrix is not None:
            write_matrix(subject, matrix, status, ticker)
        if before:
            found: Epsilon | Summary = ask_before(subject, of, seen_by, delta, folder is None)
        else:
            found = ask(subject, of, seen_by, delta, status, ticker)
        reason = explain(subject, found, delta, status) if why else None
    if as_json:
        emit_json({**answer_json(found), **({} if reason is None else {"why": reason})})
        return
    answer_text(out, found)
    if reason is not None and isinstance(found, Summary):
        say(f"\nthe worst pair:\n{reason}")


@app.command(rich_help_panel=ASK)
def graph(
    name: Annotated[str, typer.Argument(help="A graph string, e.g. er:1000,c=2.")],
    as_json: Json = False,
) -> None:
    """Facts of a graph: peers, links, degrees, diameter, spectral gap, mixing time, validity.

    Example: bruit graph torus:16x16
    """
    from bruit.listing import fact_text, graph_facts

    facts = graph_facts(name)
    if as_json:
        emit_json(facts)
        return
    for key, value in facts.items():
        say(f"{key:>28}  {fact_text(value)}")


@app.command("list", rich_help_panel=ASK)
def list_(
    what: Annotated[str, typer.Argument(help="algorithms, graphs, data, mechanisms, tasks, theorems.")] = "algorithms",
    as_json: Json = False,
) -> None:
    """What there is, one line each.

    Example: bruit list graphs
    """
    from bruit.listing import listing

    rows = listing(what)
    if as_json:
        emit_json(rows)
        return
    width = max((len(key) for key in rows), default=0)
    for key, text in rows.items():
        say(f"{key:<{width}}  {text}")


@app.command(rich_help_panel=RUNS)
def show(
    folders: Annotated[list[Path], typer.Argument(help="A run folder; with --html several, or CSV files of sweeps.")],
    html: Annotated[Path | None, typer.Option(help="Write one self-contained page instead.")] = None,
    csv: Annotated[Path | None, typer.Option(help="Write the numbers behind the figures to this folder.")] = None,
    pdf: Annotated[Path | None, typer.Option(help="Write the figures as a PDF (extra `ui`).")] = None,
    force: Force = False,
    delta: Delta = 1e-6,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """The story of a run: what was learned, and who could have learned what about whom.

    Example: bruit show runs/breast-cancer-seed3.run --html report.html
    """
    from bruit import report
    from bruit.dashboard.terminal import show_pictures
    from bruit.dashboard_cli import refuse_numbers, show_csv, show_html, show_pdf
    from bruit.result import load

    if html is None and len(folders) > 1:
        raise ConfigError(f"{len(folders)} runs are compared on a page: add --html FILE, or name one run folder")
    if html is not None or csv is not None or pdf is not None:
        for file in (html, pdf):
            if file is not None:
                check_place(file, force)
        refuse_numbers(csv, force)
        written = [show_html(folders, html, delta, quiet or as_json)] if html is not None else []
        written += show_csv(folders[0], csv, delta, quiet or as_json) if csv is not None else []
        written += [show_pdf(folders[0], pdf, delta, quiet or as_json)] if pdf is not None else []
        if as_json:
            emit_json({"written": [str(path) for path in written]})
        return
    result = load(folders[0])
    with Ticker(quiet or as_json, "accounting") as ticker:
        summary = result.summary(delta, progress=ticker)
    if as_json:
        emit_json(report.as_json(result, summary))
    else:
        report.show(out, result, summary)
        show_pictures(out, result)


@app.command(rich_help_panel=RUNS)
def init(
    path: Annotated[Path, typer.Argument(help="The TOML file to write.")] = Path("experiment.toml"),
    template: Annotated[str, typer.Option(help="Which bundled experiment to start from.")] = "breast-cancer",
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Write a commented experiment to start from.

    Example: bruit init my.toml && bruit run my.toml
    """
    from bruit.config import bundled

    shipped = bundled()
    if template not in shipped:
        raise ConfigError(f"there is no bundled experiment {template!r} (there are: {', '.join(shipped)})")
    check_place(path, force)
    content = shipped[template].read_bytes()
    write_whole(path, lambda stream: stream.write(content))
    if as_json:
        emit_json({"written": str(path), "template": template})
    else:
        say(f"wrote {path}; try next:\n  {program()} run {path}")


app.command(rich_help_panel=RUNS)(predict)
app.command(rich_help_panel=RUNS)(ui)
app.command(rich_help_panel=ASK)(plan)
app.command(rich_help_panel=ATTACK)(audit)
app.add_typer(attack_app, name="attack", cls=Commands, rich_help_panel=ATTACK)
app.add_typer(network_app, name="network", cls=Commands, rich_help_panel=REAL)
app.add_typer(peer_app, name="peer", cls=Commands, rich_help_panel=REAL)
app.command(rich_help_panel=TABLES)(auc)
app.command(rich_help_panel=TABLES)(mean)
app.add_typer(ldp_app, name="ldp", cls=Commands, rich_help_panel=TABLES)
app.add_typer(gopa_app, name="gopa", cls=Commands, rich_help_panel=TABLES)


def main() -> None:
    """Entry point: errors of bruit become one sentence and an exit code."""
    if not out.is_terminal:
        out.width = 200  # a pipe has no edge: tables are not cut at the width of a terminal
    try:
        app(prog_name="bruit")
    except ConformanceError as error:
        err.print(f"disagreement: {error}", markup=False, highlight=False, soft_wrap=True)
        sys.exit(1)
    except BruitError as error:
        err.print(f"error: {error}", markup=False, highlight=False, soft_wrap=True)
        sys.exit(2)
    except OSError as error:
        err.print(f"error: {error}", markup=False, highlight=False, soft_wrap=True)
        sys.exit(2)
    except KeyboardInterrupt as error:
        _say_interrupted(error)
        sys.exit(130)
    except SystemExit as end:  # typer turns an interruption into a silent exit; what it knew is its cause
        cause: BaseException | None = end
        while cause is not None and not isinstance(cause, KeyboardInterrupt):
            cause = cause.__cause__ or cause.__context__
        if cause is not None:
            _say_interrupted(cause)
        raise


def _say_interrupted(error: BaseException) -> None:
    words = str(error) or "no result was saved"
    err.print(f"interrupted: {words}", markup=False, highlight=False, soft_wrap=True)
