"""What `bruit run` does: learn, compare, keep, account, tell; and what it says when somebody stops
it on the way."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from bruit.commands.printing import Detail, Line, Printer
from bruit.commands.terminal import program, typed
from bruit.privacy.pair_table import Summary
from bruit.runs.build import Experiment
from bruit.runs.places import Place, farther, one_story
from bruit.runs.result import Run
from bruit.runs.stopping import Patient
from bruit.show import summary as report


def learned(built: Experiment, before: Run | None, rehearsal: bool, printer: Printer) -> Run:
    """The run, whole or as far as it got; `before` is what was kept of it when it was interrupted,
    and stays if this time it got less far."""
    with printer.ticker("learning") as ticker, Patient(ticker).listening() as patient:
        result = built.learn(patient, rehearsal)
    if before is not None and one_story(result, before):
        printer.note(f"run from the start; it begins as the run that was {before.stopped_words()}")
    if before is not None and farther(before, result):
        return before
    built.compare_or_stop(result)
    return result


@dataclass(frozen=True)
class SavedRun:
    """A run that is saved, its account, and what to do next."""

    run: Run
    summary: Summary
    place: Place
    changes: tuple[str, ...] = ()

    def plain(self) -> dict[str, Any]:
        return {
            **report.as_json(self.run, self.summary),
            "folder": str(self.place.folder),
            "run_again": self.place.holds != "same",
            "changed": list(self.changes),
        }

    def lines(self) -> Iterator[Line]:
        if self.changes:
            yield Detail(f"changed: {'; '.join(self.changes)}")
        yield from report.screen(self.run, self.summary)
        for line in _next(self.run, self.place):
            yield Detail(line)


def tell_run(
    result: Run, place: Place, delta: float | None, printer: Printer, changes: tuple[str, ...] = ()
) -> None:
    """The story of a run that is saved; a stopped one ends with KeyboardInterrupt and what was
    kept."""
    folder = place.folder
    delta = result.delta if delta is None else delta
    try:
        with printer.ticker("accounting") as ticker:
            summary = result.summary(delta, progress=ticker)
    except KeyboardInterrupt:
        raise KeyboardInterrupt(
            f"the accounting is not done, and the run is kept, in {folder}:\n"
            f"  {program()} show {folder}"
        ) from None
    printer.answer(SavedRun(result, summary, place, changes))
    if not result.identity:
        raise KeyboardInterrupt(
            f"the references (alone, central) were left out; the run is kept in {folder}, and the"
            f" same command runs it anew:\n  {typed()}"
        )
    if result.interrupted is not None:
        raise KeyboardInterrupt(
            f"{result.stopped_words().removeprefix('interrupted ')}; what was done is kept in"
            f" {folder} (releases, scores, models), for `{program()} show` and `{program()}"
            " epsilon`; the same command runs it again from the start, with the same draws, to its"
            f" end:\n  {typed()}"
        )


def _next(result: Run, place: Place) -> Iterator[str]:
    folder = place.folder
    if result.privacy is not None:
        yield f"\nthe noise is {result.noise_words()}"
    yield ""
    yield from report.model_lines(result, str(folder), program())
    if place.holds == "same":
        yield f"this very run was in {folder} already and was not run again (--force does)"
    else:
        yield f"saved in {folder}; try next:"
    yield f"  {program()} epsilon {folder} --of 0 --seen-by {result.n - 1}"
