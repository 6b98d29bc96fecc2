"""What `bruit run` does: learn, compare, keep, account, tell; and what it says when somebody stops it on the way."""

from __future__ import annotations

from bruit import report
from bruit.build import Experiment
from bruit.errors import ConfigError
from bruit.result import Run
from bruit.run_places import Place, begins_with
from bruit.stopping import Patient
from bruit.terminal import Ticker, emit_json, err, out, program, say, typed


def learned(built: Experiment, before: Run | None, rehearsal: bool, quiet: bool) -> Run:
    """The run, whole or as far as it got; `before` is what was kept of it when it was interrupted, and stays if this
    time it got less far."""
    with Ticker(quiet, "learning") as ticker, Patient(ticker).listening() as patient:
        result = built.learn(patient, rehearsal)
    if before is not None and result.interrupted is None:
        if not begins_with(result, before):
            raise ConfigError(f"what was kept of this run, {before.stopped_words()}, is not how it began now: its data"
                              " or bruit itself changed; add --force to replace it")  # fmt: skip
        if not quiet:
            told = f"run from the start; it begins as the run that was {before.stopped_words()}"
            err.print(told, highlight=False, soft_wrap=True)
    if before is not None and begins_with(before, result) and _less_far(result, before):
        return before
    built.compare_or_stop(result)
    return result


def _less_far(one: Run, other: Run) -> bool:
    """Whether both were interrupted, and one of them earlier."""
    return one.interrupted is not None and other.interrupted is not None and one.interrupted[0] < other.interrupted[0]


def shown(result: Run, place: Place, delta: float, quiet: bool, as_json: bool,
          changes: tuple[str, ...] = ()) -> None:  # fmt: skip
    """The story of a run that is saved; a stopped one ends with KeyboardInterrupt and what was kept."""
    folder = place.folder
    try:
        with Ticker(quiet or as_json, "accounting") as ticker:
            summary = result.summary(delta, progress=ticker)
    except KeyboardInterrupt:
        raise KeyboardInterrupt(f"the accounting is not done, and the run is kept, in {folder}:\n"
                                f"  {program()} show {folder}") from None  # fmt: skip
    if as_json:
        emit_json({**report.as_json(result, summary), "folder": str(folder), "run_again": place.holds != "same",
                   "changed": list(changes)})  # fmt: skip
    else:
        if changes and not quiet:
            say(f"changed: {'; '.join(changes)}")
        report.show(out, result, summary)
        if not quiet:
            _say_next(result, place)
    if not result.identity:
        raise KeyboardInterrupt(f"the references (alone, central) were left out; the run is kept in {folder}, and the"
                                f" same command runs it anew:\n  {typed()}")  # fmt: skip
    if result.interrupted is not None:
        raise KeyboardInterrupt(f"{result.stopped_words().removeprefix('interrupted ')}; what was done is kept in"
                                f" {folder} (releases, scores, models), for `{program()} show` and `{program()}"
                                " epsilon`; the same command runs it again from the start, with the same draws, to its"
                                f" end:\n  {typed()}")  # fmt: skip


def _say_next(result: Run, place: Place) -> None:
    folder = place.folder
    if result.privacy is not None:
        say(f"\nthe noise is {result.noise_words()}")
    say("")
    for line in report.model_lines(result, str(folder), program()):
        say(line)
    if place.holds == "same":
        say(f"this very run was in {folder} already and was not run again (--force does)")
    else:
        say(f"saved in {folder}; try next:")
    say(f"  {program()} epsilon {folder} --of 0 --seen-by {result.n - 1}")
