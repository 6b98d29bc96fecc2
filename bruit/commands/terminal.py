"""What every command of the command line shares: two consoles, common options, progress."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

# Names of graphs, files and people are printed as they are: `complete:100:` is no emoji, and
# `[/bold]` no markup.
out, err = Console(markup=False, emoji=False), Console(stderr=True, markup=False, emoji=False)

Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]
Quiet = Annotated[bool, typer.Option("--quiet", help="No progress, only the result.")]
Seed = Annotated[
    int | None, typer.Option(help="Seed of everything that is drawn: the same seed, the same run.")
]
GraphName = Annotated[
    str | None, typer.Option(help="A graph, e.g. torus:16x16; see `bruit list graphs`.")
]
Steps = Annotated[int | None, typer.Option(help="How long: rounds, hops or units of time.")]
Sigma = Annotated[float | None, typer.Option(help="Standard deviation of the noise.")]
Dim = Annotated[int, typer.Option(min=1, help="Numbers in a value or a model.")]
Sensitivity = Annotated[
    float, typer.Option(help="Largest L2 change of what one peer releases: twice the clip.")
]
Epsilon = Annotated[
    float, typer.Option(help="The budget: what may be learned about one peer or user.")
]
Set = Annotated[
    list[str],
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="Change a key of the experiment: algorithm.rate=2. May be repeated.",
    ),
]
Jobs = Annotated[int, typer.Option(min=1, help="How many at a time, each on its own core.")]
On = Annotated[
    str | None,
    typer.Option(
        "--on",
        metavar="PLACE",
        help="Where many things are done: processes[:N], or ray[:ADDRESS][,actors=8,cpus=2].",
    ),
]
Delta = Annotated[float, typer.Option(help="The delta of every printed epsilon.")]
Dropouts = Annotated[int, typer.Option(help="How many may leave on the way.")]
RunDelta = Annotated[
    float | None,
    typer.Option(
        help="The delta of every printed epsilon; by default the experiment's (privacy.delta)."
    ),
]
RowsPerPerson = Annotated[
    list[int],
    typer.Option(
        min=1, help="Also tell what it is for a person with so many rows. May be repeated."
    ),
]
Force = Annotated[bool, typer.Option("--force", help="Overwrite what is there already.")]
Published = Annotated[
    bool, typer.Option("--published", help="The formula as printed in the papers: not a guarantee.")
]


def knows_drawings() -> bool:
    """Whether standard output can show characters beyond ASCII."""
    return out.encoding.lower().startswith("utf")


def progress_bar(quiet: bool) -> Any:
    """A progress display on the terminal, or None when quiet or piped."""
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        ProgressColumn,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )
    from rich.text import Text

    class Rate(ProgressColumn):
        """Steps a second."""

        def render(self, task: Any) -> Text:
            return Text("" if task.speed is None else f"{task.speed:.3g}/s")

    if quiet or not err.is_terminal:
        return None
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        Rate(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[note]}"),
        console=err,
        transient=True,
    )


def program() -> str:
    """How this shell calls bruit: by its name if that is on the path, else by the file or module
    that was started."""
    import os
    import shutil

    started = Path(sys.argv[0])
    if shutil.which("bruit") is not None or started.name not in ("bruit", "__main__.py"):
        return "bruit"
    if started.name == "bruit":
        return os.path.relpath(started)
    python = Path(sys.executable)
    named = shutil.which(python.name)
    return f"{python.name if named is not None and Path(named) == python else python} -m bruit"


def typed() -> str:
    """The command as it was typed, to be typed again."""
    import shlex

    return f"{program()} {shlex.join(sys.argv[1:])}"


class Ticker:
    """Feeds a progress bar from an engine's or accountant's callback; does nothing without one."""

    def __init__(self, quiet: bool, title: str) -> None:
        self._bar, self._title, self._task = progress_bar(quiet), title, None
        self._done = ""

    def __enter__(self) -> Ticker:
        if self._bar is not None:
            self._bar.start()
        return self

    def __exit__(self, _kind: object, error: BaseException | None, _where: object) -> None:
        if self._bar is not None:
            self._bar.stop()
        if (
            isinstance(error, KeyboardInterrupt) and not error.args and self._done
        ):  # whoever keeps something says so
            error.args = (f"{self._title}, {self._done} done, and lost; no result was saved",)

    def __call__(self, done: int, total: int, scores: dict[str, float] | None = None) -> None:
        self._done = f"{done} of {total}"
        if self._bar is None:
            return
        if self._task is None:
            self._task = self._bar.add_task(self._title, total=total, note="")
        self._bar.update(self._task, completed=done, total=total)
        if scores:
            name, value = next(iter(scores.items()))
            self._bar.update(self._task, note=f"{name} {value:.4f}")
