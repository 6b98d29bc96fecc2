"""The command line: run, sweep, replay, epsilon, graph, list, show, init.

Exit codes: 0 done, 1 the answer is no (a replay disagrees), 2 the request cannot mean anything, 130 interrupted.
Results go to standard output, progress and errors to standard error.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from bruit.errors import BruitError, ConfigError, ConformanceError
from bruit.privacy.guarantee import Status
from bruit.whole_files import check_place, to_json, write_whole

app = typer.Typer(
    help="Decentralized learning among people who do not trust each other with their data.",
    no_args_is_help=True, add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False,
)  # fmt: skip
out, err = Console(), Console(stderr=True)

Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]
Quiet = Annotated[bool, typer.Option("--quiet", help="No progress, only the result.")]
Seed = Annotated[int | None, typer.Option(help="Seed of the run.")]
Delta = Annotated[float, typer.Option(help="The delta of every printed epsilon.")]
Published = Annotated[bool, typer.Option("--published", help="The formula as printed in the papers: not a guarantee.")]


def emit_json(content: Any) -> None:
    print(to_json(content))


def say(text: str) -> None:
    """A line as it is: no markup, no colors, no cuts."""
    out.print(text, markup=False, highlight=False, soft_wrap=True)


def progress_bar(quiet: bool) -> Any:
    """A progress display on the terminal, or None when quiet or piped."""
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    if quiet or not err.is_terminal:
        return None
    return Progress(
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(),
        TimeRemainingColumn(), TextColumn("{task.fields[note]}"), console=err, transient=True,
    )  # fmt: skip


def program() -> str:
    """How this shell calls bruit: by its name if that is on the path, else by the file that was started."""
    import os
    import shutil

    started = Path(sys.argv[0])
    if shutil.which("bruit") is not None or started.name != "bruit":
        return "bruit"
    return os.path.relpath(started)


class Ticker:
    """Feeds a progress bar from an engine's or accountant's callback; does nothing without one."""

    def __init__(self, quiet: bool, title: str) -> None:
        self._bar, self._title, self._task = progress_bar(quiet), title, None

    def __enter__(self) -> Ticker:
        if self._bar is not None:
            self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def __call__(self, done: int, total: int, scores: dict[str, float] | None = None) -> None:
        if self._bar is None:
            return
        if self._task is None:
            self._task = self._bar.add_task(self._title, total=total, note="")
        self._bar.update(self._task, completed=done, total=total)
        if scores:
            name, value = next(iter(scores.items()))
            self._bar.update(self._task, note=f"{name} {value:.4f}")


@app.command()
def run(
    experiment: Annotated[str, typer.Argument(help="A TOML file, or the name of a bundled experiment.")],
    seed: Seed = None,
    engine: Annotated[str | None, typer.Option(help="bulk or events, instead of the file's.")] = None,
    output: Annotated[Path | None, typer.Option("--out", help="Run folder to write.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite an existing run folder.")] = False,
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
        result = built.run(ticker)
    with Ticker(quiet or as_json, "accounting") as ticker:
        summary = result.summary(delta, progress=ticker)
    result.save(target, overwrite=force or output is None)
    if as_json:
        emit_json({**report.as_json(result, summary), "folder": str(target)})
        return
    report.show(out, result, summary)
    if not quiet:
        say(f"\nsaved in {target}; try next:\n  {program()} epsilon {target} --of 0 --seen-by {result.n - 1}")


@app.command()
def sweep(
    experiment: Annotated[str, typer.Argument(help="A TOML file, or the name of a bundled experiment.")],
    vary: Annotated[list[str], typer.Option(help="key=value,value,...; give it several times for a grid.")] = [],  # noqa: B006
    seeds: Annotated[int, typer.Option(min=1, help="How many seeds per setting.")] = 1,
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
        rows = run_sweep(experiment, vary, seeds, delta, ticker)
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
    dim: Annotated[int, typer.Option(min=1, help="Length of the model (walks charge the noise's lattice).")] = 1,
    of: Annotated[int | None, typer.Option(help="Whose data (the worst peer by default).")] = None,
    seen_by: Annotated[str | None, typer.Option(help="An observer, several (3,7), or everybody.")] = None,
    delta: Delta = 1e-6,
    published: Published = False,
    matrix: Annotated[Path | None, typer.Option(help="Write m[u, v] for all pairs to this .npy file.")] = None,
    seed: Seed = 0,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """What could these observers have learned about that peer? From a run, or from a protocol without any data.

    Example: bruit epsilon --graph torus:16x16 --algorithm averaging --steps 20 --sigma 1 --of 5 --seen-by 0
    """
    from bruit.asking import answer_json, answer_text, ask, describe_protocol, write_matrix
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
    if as_json:
        emit_json(answer_json(found))
    else:
        answer_text(out, found)


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
    what: Annotated[str, typer.Argument(help="algorithms, graphs, data, mechanisms, tasks ...")] = "algorithms",
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
    folder: Annotated[Path, typer.Argument(help="A run folder.")],
    delta: Delta = 1e-6,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """The story of a run: what was learned, and who could have learned what about whom.

    Example: bruit show runs/breast-cancer-seed3.run
    """
    from bruit import report
    from bruit.result import load

    result = load(folder)
    with Ticker(quiet or as_json, "accounting") as ticker:
        summary = result.summary(delta, progress=ticker)
    if as_json:
        emit_json(report.as_json(result, summary))
    else:
        report.show(out, result, summary)


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


peer_app = typer.Typer(help="One real peer: its key, and its part in an experiment.", no_args_is_help=True)
network_app = typer.Typer(help="A network of real peers: found it, join it, see it.", no_args_is_help=True)
app.add_typer(peer_app, name="peer")
app.add_typer(network_app, name="network")


@peer_app.command("key")
def peer_key(
    name: Annotated[str, typer.Argument(help="The participant's name, e.g. hospital-a.")],
    folder: Annotated[Path, typer.Option("--out", help="Folder for the keys.")] = Path(),
    host: Annotated[str, typer.Option(help="Where others reach this peer.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="At which port.")] = 7400,
    as_json: Json = False,
) -> None:
    """Make this participant's keys, and the public part to send to the others.

    Example: bruit peer key hospital-a --host a.example.org --port 7400 --out site
    """
    from bruit.network.address_book import public_entry
    from bruit.network.identity import Identity, short_form
    from bruit.whole_files import write_whole

    identity = Identity.create(name)
    public = public_entry(identity, host, port)  # before anything is written, so that a wrong address leaves nothing
    folder.mkdir(parents=True, exist_ok=True)
    identity.save(folder)
    write_whole(folder / "public.toml", lambda file: file.write(public.encode()))
    if as_json:
        emit_json({"name": name, "fingerprint": identity.fingerprint(), "public": str(folder / "public.toml")})
        return
    say(f"keys of {name} are in {folder} (keep key.pem and signing.pem secret)")
    say(f"send {folder / 'public.toml'} to the others")
    say(f"fingerprint, to compare by telephone: {short_form(identity.fingerprint())}")


@peer_app.command("run")
def peer_run(
    site: Annotated[Path, typer.Argument(help="The participant's site.toml.")],
    rehearse: Annotated[int | None, typer.Option(help="Replayable dice with this seed, for data one may lose.")] = None,
    metrics_port: Annotated[int | None, typer.Option(help="Serve Prometheus metrics on this loopback port.")] = None,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Run one peer until the experiment ends; start it again after a crash and it goes on.

    Exit code 0: ended; 3: stopped by a signal, the next start goes on. Example: bruit peer run site/site.toml
    """
    import logging

    from bruit.network.running import run_participant, status
    from bruit.network.site import participant, read_site

    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(message)s", stream=sys.stderr)
    if rehearse is not None and not quiet and not as_json:
        say("rehearsal: the dice can be replayed, so the noise protects nothing")
    chosen = participant(read_site(site), rehearse)
    code = run_participant(chosen, metrics_port)
    if as_json:
        emit_json(status(chosen))
    elif not quiet:
        now = status(chosen)
        say(f"peer {now['peer']}: {now['step']} of {now['steps']} steps, {now['sent']} messages sent,"
            f" epsilon spent {float(now['epsilon']):.4g} at delta {now['delta']:g}; report in {chosen.site.state}")
    raise typer.Exit(code)


@network_app.command("init")
def network_init(
    peers: Annotated[int, typer.Option(help="How many participants.")],
    experiment: Annotated[str, typer.Option(help="A TOML file, or the name of a bundled experiment.")] = "real-peers",
    graph: Annotated[str | None, typer.Option(help="A graph, with or without its size: ring, torus:4x4.")] = None,
    folder: Annotated[Path, typer.Option("--out", help="Where to write one folder per participant.")] = Path("network"),
    timeout: Annotated[float, typer.Option(help="How many seconds anybody is waited for.")] = 30.0,
    as_json: Json = False,
) -> None:
    """Write a folder per participant: keys, address book, its part of the experiment. For one machine.

    Example: bruit network init --peers 4 --graph ring --experiment x.toml
    """
    from bruit.network.founding import found

    sites = found(experiment, peers, graph, folder, timeout=timeout)
    if as_json:
        emit_json({"sites": [str(site) for site in sites]})
        return
    say(f"wrote {len(sites)} participants in {folder}; start each with")
    say(f"  bruit peer run {sites[0]}")


@network_app.command("join")
def network_join(
    public: Annotated[list[Path], typer.Argument(help="Everyone's public.toml; peers are numbered by name.")],
    book: Annotated[Path, typer.Option("--out", help="The address book to write.")] = Path("book.toml"),
    as_json: Json = False,
) -> None:
    """Merge public parts into an address book; compare the fingerprints by another channel.

    Example: bruit network join a/public.toml b/public.toml --out book.toml
    """
    from bruit.network.address_book import merge
    from bruit.network.identity import short_form

    missing = [path for path in public if not path.is_file()]
    if missing:
        raise ConfigError(f"there is no file {missing[0]}")
    merged = merge(path.read_text() for path in public)
    merged.write(book)
    if as_json:
        emit_json({"book": str(book), "fingerprints": {one.name: one.fingerprint for one in merged.entries}})
        return
    for one in merged.entries:
        say(f"peer {one.peer}  {one.name:<20} {one.address:<24} {short_form(one.fingerprint)}")
    say(f"wrote {book}; all participants must see the same fingerprints")


@network_app.command("demo")
def network_demo(
    peers: Annotated[int, typer.Option(help="How many real processes.")] = 8,
    experiment: Annotated[str, typer.Option(help="A TOML file, or the name of a bundled experiment.")] = "real-peers",
    graph: Annotated[str | None, typer.Option(help="A graph; a butterfly of that size by default.")] = None,
    folder: Annotated[Path | None, typer.Option("--out", help="Keep the participants' folders here.")] = None,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Start real processes on loopback, watch them learn, and read everyone's report.

    Example: bruit network demo --peers 8
    """
    import tempfile

    from bruit.network.showing import demonstrate

    with tempfile.TemporaryDirectory(prefix="bruit-demo-") as scratch:
        home = Path(scratch) / "network" if folder is None else folder
        emit = emit_json if as_json else None
        demonstrate(peers, experiment, graph, home, out, None if quiet or as_json or not err.is_terminal else err, emit)


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
