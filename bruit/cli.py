"""The command line: run, sweep, replay, epsilon, graph, list, show, init; peer key, run; network init, join, demo.

Exit codes: 0 done, 1 the answer is no (a replay disagrees), 2 the request cannot mean anything, 3 a peer was stopped
and can go on, 130 interrupted. Results go to standard output, progress and errors to standard error.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from bruit.attacks_cli import attack_app
from bruit.audit_cli import audit
from bruit.errors import BruitError, ConfigError, ConformanceError
from bruit.gopa_cli import gopa_app
from bruit.ldp_cli import ldp_app
from bruit.peers_cli import network_app, peer_app
from bruit.planning_cli import plan
from bruit.privacy.guarantee import Status
from bruit.statistics_cli import auc, mean
from bruit.terminal import Delta, Json, Published, Quiet, Seed, Ticker, emit_json, err, out, program, say
from bruit.ui_cli import ui
from bruit.whole_files import check_place, write_whole

app = typer.Typer(
    help="Decentralized learning among people who do not trust each other with their data.",
    no_args_is_help=True, add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False,
)  # fmt: skip
app.add_typer(peer_app, name="peer")
app.add_typer(network_app, name="network")
app.add_typer(attack_app, name="attack")
app.command()(plan)
app.command()(audit)
app.command()(auc)
app.command()(mean)
app.command()(ui)
app.add_typer(ldp_app, name="ldp")
app.add_typer(gopa_app, name="gopa")


@app.command()
def run(
    experiment: Annotated[str, typer.Argument(help="A TOML file, or the name of a bundled experiment.")],
    seed: Seed = None,
    engine: Annotated[str | None, typer.Option(help="bulk or events, instead of the file's.")] = None,
    output: Annotated[Path | None, typer.Option("--out", help="Run folder to write.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite an existing run folder.")] = False,
    rehearsal: Annotated[
        bool, typer.Option("--rehearsal", help="The noise of peers that run with --rehearse, whatever the records.")
    ] = False,
    delta: Delta = 1e-6,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Run an experiment and print what was learned, by whom, about whom.

    Example: bruit run breast-cancer --seed 7
    """
    from bruit import report
    from bruit.build import build
    from bruit.config import from_dict, read

    file, text = read(experiment)
    changes: dict[str, Any] = {} if seed is None else {"seed": seed}
    if engine is not None:
        changes["engine"] = {**file.engine.model_dump(), "name": engine}
    file = from_dict({**file.model_dump(), **changes}, where="the command line")
    target = output if output is not None else Path("runs") / f"{Path(experiment).stem}-seed{file.seed}.run"
    if target.exists() and output is not None and not force:
        raise ConfigError(f"{target} exists; choose another --out or add --force")
    built = build(file, text, experiment)
    with Ticker(quiet or as_json, "learning") as ticker:
        result = built.run(ticker, rehearsal)
    with Ticker(quiet or as_json, "accounting") as ticker:
        summary = result.summary(delta, progress=ticker)
    result.save(target, overwrite=force or output is None)
    if as_json:
        emit_json({**report.as_json(result, summary), "folder": str(target)})
        return
    report.show(out, result, summary)
    if not quiet:
        if result.privacy is not None:
            say(f"\nthe noise is {result.noise_words()}")
        say(f"\nsaved in {target}; try next:\n  {program()} epsilon {target} --of 0 --seen-by {result.n - 1}")


@app.command()
def sweep(
    experiment: Annotated[str, typer.Argument(help="A TOML file, or the name of a bundled experiment.")],
    vary: Annotated[list[str], typer.Option(help="key=value,value,...; give it several times for a grid.")] = [],  # noqa: B006
    seeds: Annotated[int, typer.Option(min=1, help="How many seeds per setting.")] = 1,
    jobs: Annotated[int, typer.Option(min=1, help="How many runs at a time, each on its own core.")] = 1,
    delta: Delta = 1e-6,
    output: Annotated[Path | None, typer.Option("--out", help="CSV file to write.")] = None,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Run an experiment for every combination of values and several seeds; one row per run.

    Example: bruit sweep breast-cancer --vary privacy.epsilon=2,8 --seeds 3
    """
    from bruit.sweep import sweep as run_sweep
    from bruit.sweep import to_csv, to_table

    if output is not None:
        check_place(output)
    with Ticker(quiet or as_json, "sweeping") as ticker:
        rows = run_sweep(experiment, vary, seeds, delta, ticker, jobs)
    if output is not None:
        to_csv(rows, output)
    if as_json:
        emit_json(rows)
    else:
        out.print(to_table(rows))


@app.command()
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


@app.command()
def epsilon(
    folder: Annotated[Path | None, typer.Argument(help="A run folder; or describe a protocol with options.")] = None,
    graph: Annotated[str | None, typer.Option(help="A graph, e.g. torus:16x16.")] = None,
    algorithm: Annotated[str, typer.Option(help="An algorithm or preset of `bruit list algorithms`.")] = "averaging",
    set_: Annotated[list[str], typer.Option("--set", help="A parameter of the algorithm, key=value.")] = [],  # noqa: B006
    steps: Annotated[int | None, typer.Option(help="Rounds, hops or units of time.")] = None,
    sigma: Annotated[float | None, typer.Option(help="Standard deviation of the noise.")] = None,
    sensitivity: Annotated[float, typer.Option(help="Largest L2 change of what one peer releases.")] = 1.0,
    smoothness: Annotated[float | None, typer.Option(help="Declare convex losses this smooth (walks).")] = None,
    dim: Annotated[int, typer.Option(min=1, help="Length of the model: rounding is charged for every number.")] = 1,
    of: Annotated[int | None, typer.Option(help="Whose data (the worst peer by default).")] = None,
    seen_by: Annotated[str | None, typer.Option(help="An observer, several (3,7), or everybody.")] = None,
    delta: Delta = 1e-6,
    published: Published = False,
    why: Annotated[bool, typer.Option("--why", help="Explain the worst pair too.")] = False,
    matrix: Annotated[Path | None, typer.Option(help="Write m[u, v] for all pairs to this .npy file.")] = None,
    seed: Seed = 0,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """What could these observers have learned about that peer? From a run, or from a protocol without any data.

    Example: bruit epsilon --graph torus:16x16 --algorithm averaging --steps 20 --sigma 1 --of 5 --seen-by 0
    """
    from bruit.asking import answer_json, answer_text, ask, describe_protocol, explain, write_matrix
    from bruit.privacy.account import Summary
    from bruit.result import load

    described = graph is not None or sigma is not None or steps is not None or bool(set_)
    if (folder is not None) == described or (folder is None and graph is None):
        raise ConfigError("name either a run folder or a protocol: --graph ... --algorithm ... --steps ... --sigma ...")
    if folder is not None:
        subject = load(folder)
    else:
        subject = describe_protocol(str(graph), algorithm, list(set_), steps, sigma, sensitivity, seed or 0, smoothness,
                                    dim)  # fmt: skip
    if matrix is not None:
        check_place(matrix)
    status: Status = "published" if published else "proven"
    with Ticker(quiet or as_json, "accounting") as ticker:
        if matrix is not None:
            write_matrix(subject, matrix, status, ticker)
        found = ask(subject, of, seen_by, delta, status, ticker)
        reason = explain(subject, found, delta, status) if why else None
    if as_json:
        emit_json({**answer_json(found), **({} if reason is None else {"why": reason})})
        return
    answer_text(out, found)
    if reason is not None and isinstance(found, Summary):
        say(f"\nthe worst pair:\n{reason}")


@app.command()
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


@app.command("list")
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


@app.command()
def show(
    folders: Annotated[list[Path], typer.Argument(help="A run folder; with --html several, or CSV files of sweeps.")],
    html: Annotated[Path | None, typer.Option(help="Write one self-contained page instead.")] = None,
    csv: Annotated[Path | None, typer.Option(help="Write the numbers behind the figures to this folder.")] = None,
    pdf: Annotated[Path | None, typer.Option(help="Write the figures as a PDF (extra `ui`).")] = None,
    delta: Delta = 1e-6,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """The story of a run: what was learned, and who could have learned what about whom.

    Example: bruit show runs/breast-cancer-seed3.run --html report.html
    """
    from bruit import report
    from bruit.dashboard.terminal import show_pictures
    from bruit.dashboard_cli import show_csv, show_html, show_pdf
    from bruit.result import load

    if html is None and len(folders) > 1:
        raise ConfigError(f"{len(folders)} runs are compared on a page: add --html FILE, or name one run folder")
    if html is not None or csv is not None or pdf is not None:
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


@app.command()
def init(
    path: Annotated[Path, typer.Argument(help="The TOML file to write.")] = Path("experiment.toml"),
    template: Annotated[str, typer.Option(help="Which bundled experiment to start from.")] = "breast-cancer",
    force: Annotated[bool, typer.Option("--force", help="Overwrite an existing file.")] = False,
    as_json: Json = False,
) -> None:
    """Write a commented experiment to start from.

    Example: bruit init my.toml && bruit run my.toml
    """
    from bruit.config import bundled

    shipped = bundled()
    if template not in shipped:
        raise ConfigError(f"there is no bundled experiment {template!r} (there are: {', '.join(shipped)})")
    if path.exists() and not force:
        raise ConfigError(f"{path} exists; choose another name or add --force")
    content = shipped[template].read_bytes()
    write_whole(path, lambda stream: stream.write(content))
    if as_json:
        emit_json({"written": str(path), "template": template})
    else:
        say(f"wrote {path}; try next:\n  {program()} run {path}")


def main() -> None:
    """Entry point: errors of bruit become one sentence and an exit code."""
    if not out.is_terminal:
        out.width = 200  # a pipe has no edge: tables are not cut at the width of a terminal
    try:
        app()
    except ConformanceError as error:
        err.print(f"disagreement: {error}", markup=False, highlight=False, soft_wrap=True)
        sys.exit(1)
    except BruitError as error:
        err.print(f"error: {error}", markup=False, highlight=False, soft_wrap=True)
        sys.exit(2)
    except OSError as error:
        err.print(f"error: {error}", markup=False, highlight=False, soft_wrap=True)
        sys.exit(2)
    except KeyboardInterrupt:
        err.print("interrupted; nothing was saved")
        sys.exit(130)
