"""What `bruit show --html`, `--csv` and `--pdf` do."""

from __future__ import annotations

from pathlib import Path

from bruit.errors import ConfigError
from bruit.terminal import Ticker, say


def show_html(folders: list[Path], path: Path, delta: float = 1e-6, quiet: bool = False) -> Path:
    """Write the report of a run folder, or the comparison of several and of sweeps (CSV files)."""
    from bruit.dashboard import write_report

    with Ticker(quiet, "accounting") as ticker:
        written = write_report(list(folders), path, delta, ticker)
    if not quiet:
        say(f"wrote {written}; open it in any browser, it needs no network")
    return written


def show_csv(folder: Path, target: Path, delta: float = 1e-6, quiet: bool = False) -> list[Path]:
    """Write the numbers behind each figure of one run into a folder."""
    from bruit.dashboard.numbers import write_csv
    from bruit.dashboard.story import open_story

    if target.exists() and not target.is_dir():
        raise ConfigError(f"--csv needs a folder, and {target} is a file; choose another name")
    with Ticker(quiet, "accounting") as ticker:
        written = write_csv(open_story(folder, delta, ticker), target)
    if not quiet:
        say(f"wrote {', '.join(str(one) for one in written)}")
    return written


def refuse_numbers(target: Path | None, force: bool) -> None:
    """Refuse a folder in which the numbers of another run would be overwritten."""
    from bruit.dashboard.numbers import FIGURES

    if target is None or force or not target.is_dir():
        return
    there = next((target / f"{name}.csv" for name in FIGURES if (target / f"{name}.csv").exists()), None)
    if there is not None:
        raise ConfigError(f"{there} exists; choose another folder, or add --force to overwrite what is in it")


def show_pdf(folder: Path, path: Path, delta: float = 1e-6, quiet: bool = False) -> Path:
    """Write the figures of one run as a PDF."""
    from bruit.dashboard.plots import Plots
    from bruit.result import load

    with Ticker(quiet, "accounting") as ticker:
        written = Plots(load(folder), delta, ticker).pdf(path)
    if not quiet:
        say(f"wrote {written}")
    return written
