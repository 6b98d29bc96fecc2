"""What `bruit show` shows: the story of a run on the screen, or files of it (`--html`, `--csv`,
`--pdf`)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bruit.commands.printing import Line, Printer, Reply
from bruit.commands.terminal import knows_drawings
from bruit.errors import ConfigError
from bruit.files import check_place
from bruit.privacy.pair_table import Summary
from bruit.runs.result import Run
from bruit.show import summary as report


@dataclass(frozen=True)
class RunScreen:
    """A run and its account, on one screen."""

    run: Run
    summary: Summary

    def plain(self) -> dict[str, Any]:
        return report.as_json(self.run, self.summary)

    def lines(self) -> Iterator[Line]:
        from bruit.show.terminal import pictures

        yield from report.screen(self.run, self.summary)
        yield from pictures(self.run, plain=not knows_drawings())


def story(folder: Path, delta: float | None, printer: Printer) -> RunScreen:
    """The run of a folder, accounted for at this delta, or at that of its experiment."""
    from bruit.runs.result import load

    run = load(folder)
    with printer.ticker("accounting") as ticker:
        return RunScreen(run, run.summary(run.delta if delta is None else delta, progress=ticker))


@dataclass(frozen=True)
class Pages:
    """The files that were asked for instead."""

    html: Path | None = None
    csv: Path | None = None
    pdf: Path | None = None

    @property
    def asked(self) -> bool:
        return any(place is not None for place in (self.html, self.csv, self.pdf))

    def check(self, force: bool) -> None:
        """Refuse to overwrite anything, before anything is written."""
        for file in (self.html, self.pdf):
            if file is not None:
                check_place(file, force)
        refuse_numbers(self.csv, force)

    def write(self, folders: list[Path], delta: float | None, printer: Printer) -> Reply:
        """Write them; each is told as soon as it is there, since the next one may fail."""
        written: list[Path] = []
        if self.html is not None:
            written.append(show_html(folders, self.html, delta, printer))
        if self.csv is not None:
            written += show_csv(folders[0], self.csv, delta, printer)
        if self.pdf is not None:
            written.append(show_pdf(folders[0], self.pdf, delta, printer))
        return Reply({"written": [str(path) for path in written]}, [])


def show_html(folders: list[Path], path: Path, delta: float | None, printer: Printer) -> Path:
    """Write the report of a run folder, or the comparison of several and of sweeps (CSV files)."""
    from bruit.show.report import write_report

    with printer.ticker("accounting") as ticker:
        written = write_report(list(folders), path, delta, ticker)
    printer.say(f"wrote {written}; open it in any browser, it needs no network")
    return written


def show_csv(folder: Path, target: Path, delta: float | None, printer: Printer) -> list[Path]:
    """Write the numbers behind each figure of one run into a folder."""
    from bruit.show.report.numbers import write_csv
    from bruit.show.report.story import open_story

    if target.exists() and not target.is_dir():
        raise ConfigError(f"--csv needs a folder, and {target} is a file; choose another name")
    with printer.ticker("accounting") as ticker:
        written = write_csv(open_story(folder, delta, ticker), target)
    printer.say(f"wrote {', '.join(str(one) for one in written)}")
    return written


def refuse_numbers(target: Path | None, force: bool) -> None:
    """Refuse a folder in which the numbers of another run would be overwritten."""
    from bruit.show.report.numbers import FIGURES

    if target is None or force or not target.is_dir():
        return
    there = next(
        (target / f"{name}.csv" for name in FIGURES if (target / f"{name}.csv").exists()), None
    )
    if there is not None:
        raise ConfigError(
            f"{there} exists; choose another folder, or add --force to overwrite what is in it"
        )


def show_pdf(folder: Path, path: Path, delta: float | None, printer: Printer) -> Path:
    """Write the figures of one run as a PDF."""
    from bruit.runs.result import load
    from bruit.show.report.plots import Plots

    with printer.ticker("accounting") as ticker:
        written = Plots(load(folder), delta, ticker).pdf(path)
    printer.say(f"wrote {written}")
    return written
