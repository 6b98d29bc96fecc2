"""`bruit reproduce`: figures and tables of the papers, the source's numbers beside ours.

The figures are in the folder `papers` of the repository, which is not in the wheel. Nothing in the
package needs them; this command looks for them where the package lies, and loads them by name.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer

import bruit
from bruit.commands.elsewhere import elsewhere
from bruit.commands.misplaced import refuse_given
from bruit.commands.printing import Beside, Detail, Line, Printer, Reply
from bruit.commands.terminal import Force, Jobs, Json, On, Quiet
from bruit.errors import ConfigError


def reproduce(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[ID]...", help="th-6.1b, hdr-t4.1, ...; chapter-6 of the thesis; hdr, rep, th."
        ),
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="Every figure and table.")] = False,
    listed: Annotated[bool, typer.Option("--list", help="What there is, one line each.")] = False,
    quick: Annotated[
        bool, typer.Option("--quick", help="Smaller and fewer runs: not the source's sizes.")
    ] = False,
    publish: Annotated[
        bool,
        typer.Option(
            "--publish",
            help="Then write docs/gallery, the gallery of the documentation: all, or the ids named.",
        ),
    ] = False,
    jobs: Jobs = 1,
    on: On = None,
    folder: Annotated[
        Path, typer.Option("--out", help="Folder of the results, one folder a figure.")
    ] = Path("reproduced"),
    force: Force = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Repeat figures and tables of the papers: a picture, a table with the source's numbers beside
    ours, and whether what the source says holds.

    What is in the folder from before is kept (--force does it again), so after Ctrl-C the same
    command goes on. Exit code 1 if a figure failed, or a criterion was missed.

    Example: bruit reproduce th-4.1 --out figures
    """
    catalog, printer = _papers("catalog"), Printer(json=as_json, quiet=quiet)
    if listed:
        doing = ("everything", "quick", "publish", "jobs", "on", "folder", "force")
        refuse_given("--list repeats nothing", *doing)
        wanted = catalog.chosen(names or [], not names)
        shown = [] if names else list(catalog.illustrations().values())
        printer.answer(Reply([_entry(one) for one in wanted], _listing(wanted, shown)))
        return
    if publish and quick:
        raise ConfigError("the gallery shows figures at the source's sizes; leave out --quick")
    everything = everything or (publish and not names)
    if names:
        refuse_given("the figures are named", "everything")
    elif not everything:
        raise ConfigError(
            "name a figure, for instance `bruit reproduce th-4.1`; --list names them all, --all "
            "repeats them all"
        )
    wanted = catalog.chosen(names or [], everything)
    work = _papers("work").work
    with elsewhere(on, printer, jobs), printer.ticker("figures") as ticker:

        def tell(outcome: Any, done: int, total: int) -> None:
            ticker(done, total)
            printer.note(_sentence(outcome))

        outcomes = work(wanted, folder, quick=quick, anew=force, tell=tell)
    if publish:
        drawings = list(catalog.illustrations().values())
        printer.note(f"wrote {_papers('gallery').publish(outcomes, drawings)}")
    printer.answer(_Repeated(outcomes, quick, folder))
    if not all(outcome.good for outcome in outcomes):
        raise typer.Exit(1)


def _papers(module: str) -> Any:
    """A module of papers/reproduce; the repository is found beside the package, else in this
    folder."""
    for root in (Path(bruit.__file__).parents[1], Path.cwd()):
        if (root / "papers" / "reproduce" / "__init__.py").is_file():
            if str(root) not in sys.path:
                sys.path.append(str(root))
            return import_module(f"papers.reproduce.{module}")
    raise ConfigError(
        "the figures of papers are in the repository of bruit, not in the installed package; call "
        "this from the root of a clone"
    )


def _entry(figure: Any) -> dict[str, Any]:
    return {
        "id": figure.id,
        "also": list(figure.also),
        "source": figure.document,
        "number": figure.number,
        "page": figure.page,
        "title": figure.title,
        "criterion": figure.criterion,
        "cpu_s": figure.cpu_s,
        "data": list(figure.data),
        "missing": figure.missing(),
        "instead": figure.instead,
        "why_not": figure.why_not(),
        "theory": list(figure.theory),
    }


def _listing(figures: list[Any], illustrations: list[Any]) -> Iterator[str]:
    for figure in figures:
        needs = f"  [skipped: {why}]" if (why := figure.why_not()) else ""
        also = f"  [also {', '.join(figure.also)}]" if figure.also else ""
        words = f"{figure.title} ({figure.number}){also}{needs}"
        yield f"{figure.id:<10} {figure.cpu_s:>6.0f} s  {words}"
    total = sum(figure.cpu_s for figure in figures)
    yield f"{len(figures)} figures and tables, about {total / 60:.0f} minutes of CPU"
    if illustrations:
        yield "without numbers, so nothing to repeat:"
        yield from (f"{one.id:<10} {one.number}: {one.why}" for one in illustrations)


@dataclass(frozen=True)
class _Repeated:
    """What came of all figures that were asked for."""

    outcomes: list[Any]
    quick: bool
    folder: Path

    def plain(self) -> list[dict[str, Any]]:
        return [
            {**outcome.plain, "folder": str(outcome.folder), "kept": outcome.kept}
            for outcome in self.outcomes
        ]

    def lines(self) -> Iterator[Line]:
        for outcome in self.outcomes:
            yield from _story(outcome, alone=len(self.outcomes) == 1)
        if len(self.outcomes) > 1:
            counts = {
                verdict: sum(outcome.verdict == verdict for outcome in self.outcomes)
                for verdict in dict.fromkeys(outcome.verdict for outcome in self.outcomes)
            }
            said = ", ".join(f"{count} {verdict}" for verdict, count in counts.items())
            yield f"{len(self.outcomes)} figures: {said}"
        if self.quick:
            yield "--quick: smaller than in the source, so numbers differ from its numbers"
        yield Beside(f"tables and pictures are in {self.folder}")


def _story(outcome: Any, alone: bool) -> Iterator[Line]:
    plain = outcome.plain
    if not alone:
        if not outcome.good:
            yield _sentence(outcome)
        return
    if "rows" not in plain:
        yield _sentence(outcome)
        return
    yield f"{plain['id']}: {plain['title']} ({plain['source']}, {plain['number']}, {plain['page']})"
    yield Detail(_table(plain))
    for check in plain["checks"]:
        why = f": {check['why']}" if check["why"] else ""
        yield f"  {check['verdict']}: {check['words']}{why}"
    for words in (plain["words"], plain["instead_of_data"]):
        if words:
            yield f"  {words}"
    if plain["settings"]:
        said = ", ".join(f"{key} = {value}" for key, value in plain["settings"].items())
        yield Detail(f"  settings: {said}")
    again = ", kept from before" if outcome.kept else ""
    yield Detail(f"  {plain['cpu_s']:.1f} s of CPU{again}")


def _table(plain: dict[str, Any]) -> Any:
    from rich.table import Table

    table = Table()
    for name in plain["header"]:
        table.add_column(name, justify="right", overflow="fold")
    for row in plain["rows"]:
        table.add_row(*(f"{cell:.4g}" if isinstance(cell, float) else str(cell) for cell in row))
    return table


def _sentence(outcome: Any) -> str:
    why = outcome.plain.get("why") or "; ".join(
        check["words"]
        for check in outcome.plain.get("checks", ())
        if check["verdict"] in ("missed", "unexpected")
    )
    kept = " (kept from before)" if outcome.kept else f" ({outcome.cpu_s:.0f} s)"
    return f"{outcome.id:<10} {outcome.verdict}{kept}{': ' + why if why else ''}"
