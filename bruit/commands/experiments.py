"""Commands on experiments in files: `bruit run`, `sweep`, `replay` and `init`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, cast

import typer

from bruit.commands.crash import replay_crash
from bruit.commands.elsewhere import elsewhere
from bruit.commands.printing import Printer, Reply, warn
from bruit.commands.terminal import (
    Force,
    Jobs,
    Json,
    On,
    Quiet,
    RunDelta,
    Seed,
    Set,
    program,
    typed,
)
from bruit.errors import ConfigError, ConformanceError
from bruit.files import check_place, write_whole
from bruit.how_many import how_many
from bruit.on.names import place_for
from bruit.runs.stopping import interruptible


def run(
    experiment: Annotated[
        str, typer.Argument(help="A TOML file, or the name of a bundled experiment.")
    ],
    set_: Set = [],  # noqa: B006
    seed: Seed = None,
    engine: Annotated[
        str | None, typer.Option(help="bulk or events, instead of the file's.")
    ] = None,
    output: Annotated[Path | None, typer.Option("--out", help="Run folder to write.")] = None,
    force: Force = False,
    rehearsal: Annotated[
        bool,
        typer.Option(
            "--rehearsal", help="The noise of peers that run with --rehearse, whatever the records."
        ),
    ] = False,
    on: On = None,
    delta: RunDelta = None,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Run an experiment and print what was learned, by whom, about whom.

    A run that is there already is shown; one that was interrupted (Ctrl-C keeps it) is run again,
    to its end. With --on, its peers are divided among workers, with the same numbers.

    Example: bruit run breast-cancer --seed 7
    """
    from bruit.commands.run import learned, tell_run
    from bruit.runs.build import build
    from bruit.runs.engines.blocks import in_blocks
    from bruit.runs.file import identity, read
    from bruit.runs.places import named_place, place_of, save
    from bruit.runs.result import load
    from bruit.runs.settings import change

    printer = Printer(json=as_json, quiet=quiet)
    there = place_for(1, on)
    given = [
        *set_,
        *([] if seed is None else [f"seed={seed}"]),
        *([] if engine is None else [f"engine.name={engine}"]),
    ]
    file, text, changes = change(read(experiment)[1], given, experiment)
    name = identity(file, rehearsal=rehearsal)
    if output is None:
        place = place_of(Path(experiment).stem, file.seed, name, force)
    else:
        place = named_place(output, name, force)
    if place.holds == "same":
        tell_run(load(place.folder), place, delta, printer, changes)
        return
    before = load(place.folder) if place.holds == "interrupted" else None
    with interruptible():
        with printer.ticker("sizing the noise") as ticker:
            built = build(file, text, experiment, ticker)
        if there is not None:
            built = replace(built, engine=in_blocks(built.engine, there, printer.note))
        result = learned(built, before, rehearsal, printer)
        if result is not before:
            place = place._replace(folder=save(result, place, output is not None))
        tell_run(result, place, delta, printer, changes)


def sweep(
    experiment: Annotated[
        str, typer.Argument(help="A TOML file, or the name of a bundled experiment.")
    ],
    vary: Annotated[
        list[str],
        typer.Option(help="A key and its values: key=value,value. May be repeated, for a grid."),
    ] = [],  # noqa: B006
    seeds: Annotated[int, typer.Option(min=1, help="How many seeds per setting.")] = 1,
    set_: Set = [],  # noqa: B006
    jobs: Jobs = 1,
    on: On = None,
    delta: RunDelta = None,
    output: Annotated[Path | None, typer.Option("--out", help="CSV file to write.")] = None,
    force: Force = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Run an experiment for every combination of values and several seeds; one row per run.

    Rows are kept as they are done: after Ctrl-C or a failure the same command does what is missing;
    with --force it runs all of it again. Exit code 1 if a run failed.

    Example: bruit sweep breast-cancer --vary privacy.epsilon=2,8 --seeds 3
    """
    from bruit.runs.many.repeat import check_workers
    from bruit.runs.many.sweep import Kept, failed, planned, to_csv, to_table, work

    if output is not None:
        check_place(output, force)
    plan = planned(experiment, vary, seeds, delta, set_)
    kept = Kept.of(experiment, anew=force)
    printer = Printer(json=as_json, quiet=quiet)
    done = kept.count(plan)
    if done:
        printer.note(f"{done} of {len(plan)} from before, kept in {kept.where}")
    try:
        with (
            interruptible(),
            elsewhere(on, printer, check_workers(jobs), needed=done + 1 < len(plan)),
            printer.ticker("sweeping") as ticker,
        ):
            rows = work(plan, kept, ticker)
    except KeyboardInterrupt:
        rows = kept.rows_done(plan)
        printer.answer(Reply(rows, [to_table(rows)] if rows else []))
        done = len(rows) - len(failed(rows))
        unwritten = "" if output is None else f"; {output} is written when all are done"
        raise KeyboardInterrupt(
            f"{done} of {len(plan)} runs are done, kept in {kept.where}{unwritten}; the same"
            f" command does the others:\n  {typed()}"
        ) from None
    if output is not None:
        to_csv(rows, output)
    printer.answer(Reply(rows, [to_table(rows)] if rows else []))
    if failed(rows):
        lost = f"{len(failed(rows))} of {len(rows)} runs failed"
        warn(f"{lost}; the others are kept in {kept.where}")
        raise typer.Exit(1)


def replay(
    folder: Annotated[Path | None, typer.Argument(help="A run folder.")] = None,
    crash: Annotated[
        Path | None,
        typer.Option(help="Instead of a run: the file that a failed run names in its error."),
    ] = None,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Run a saved run again in bulk from its trace; exit code 1 if the two disagree.

    With --crash, call the function of an algorithm that failed once more, with what it was given
    then; exit code 0 if it fails in the same way, 1 if it does not.

    Example: bruit replay runs/breast-cancer-seed3.run
    """
    from bruit.runs.replay import replay as run_again
    from bruit.runs.result import load

    if (folder is None) == (crash is None):
        raise ConfigError("give a run folder, or --crash FILE")
    printer = Printer(json=as_json, quiet=quiet)
    if crash is not None:
        replay_crash(crash, printer)
        return
    first = load(cast(Path, folder))
    try:
        with printer.ticker("replaying") as ticker:
            found = run_again(first, progress=ticker)
    except ConformanceError as error:
        printer.answer(Reply({"agrees": False, "reason": str(error)}, []))
        raise
    about = {"agrees": True, "difference": found.difference, "ledger_lines": found.lines}
    sentence = (
        f"agrees: estimates differ by at most {found.difference:.3g}, {found.lines} ledger lines"
        " are equal"
    )
    printer.answer(Reply(about, [sentence]))


def init(
    path: Annotated[Path, typer.Argument(help="The TOML file to write.")] = Path("experiment.toml"),
    template: Annotated[
        str | None,
        typer.Option(help="Which bundled experiment to start from; by default breast-cancer."),
    ] = None,
    data: Annotated[
        str | None,
        typer.Option(help="Instead of a template: your table, CSV or Parquet, which then runs."),
    ] = None,
    label: Annotated[
        str | None, typer.Option(help="With --data: the column that is learned.")
    ] = None,
    owner: Annotated[str | None, typer.Option(help="The column that says whose a row is.")] = None,
    columns: Annotated[
        str | None,
        typer.Option(help="With --data: a columns file; see `bruit columns suggest`."),
    ] = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Write a commented experiment to start from.

    With --data it is about your own table. What had to be read off its rows is said, since no
    epsilon covers it.

    Example: bruit init my.toml --data mine.csv --label ill && bruit run my.toml
    """
    check_place(path, force)
    printer = Printer(json=as_json)
    if data is not None:
        if template is not None:
            raise ConfigError("--template and --data exclude each other; keep one of them")
        text, reply = _for_table(path, data, label, owner, columns)
        content = text.encode()
    else:
        for option, given in (("--label", label), ("--owner", owner), ("--columns", columns)):
            if given is not None:
                raise ConfigError(f"{option} is about your own table: give --data FILE, too")
        content, reply = _bundled(template or "breast-cancer", path)
    write_whole(path, lambda stream: stream.write(content))
    printer.answer(reply)


def _bundled(template: str, path: Path) -> tuple[bytes, Reply]:
    from bruit.runs.file import bundled

    shipped = bundled()
    if template not in shipped:
        raise ConfigError(
            f"there is no bundled experiment {template!r} (there are: {', '.join(shipped)})"
        )
    about = {"written": str(path), "template": template}
    reply = Reply(about, [f"wrote {path}; try next:\n  {program()} run {path}"])
    return shipped[template].read_bytes(), reply


def _for_table(
    path: Path, data: str, label: str | None, owner: str | None, columns: str | None
) -> tuple[str, Reply]:
    """An experiment for a table, built once before it is written, so that it runs."""
    from bruit.runs.build import build
    from bruit.runs.file import located, parse
    from bruit.runs.own_table import own_experiment

    made = own_experiment(data, path.parent, label, owner, columns)
    text = located(made.text, path.parent)
    built = build(parse(text, str(path)), text, str(path))
    about = {
        "written": str(path),
        "data": data,
        "peers": built.graph.n,
        "kind": built.file.task.kind,
        "read_off_the_rows": list(made.read),
        "left_out": dict(made.left_out),
        "public": made.public,
    }
    lines = [
        f"wrote {path}: a {built.file.task.kind} task of {how_many(built.graph.n, 'peer')}",
        *(f"left out: {name!r} {why}" for name, why in made.left_out.items()),
        *(f"read off the rows, covered by no epsilon: {line}" for line in made.read),
    ]
    if made.public:
        lines.append(
            f"PUBLIC, protected by nothing: {made.public}; if nobody may be, agree on a columns"
            " file and give it with --columns"
        )
    return made.text, Reply(about, [*lines, f"try next:\n  {program()} run {path}"])
