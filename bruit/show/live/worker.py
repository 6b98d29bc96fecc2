"""One run in a process of its own, told line by line: `python -m bruit.show.live.worker
EXPERIMENT.toml OUT.run`.

Every line of standard output is a JSON object with an `event`: begin (what there is to draw), step
(progress, metrics and who spoke), leaks (what one peer could have learned about every other so
far), rehearsing, accounting, done, failed, stopped. A first SIGTERM ends the run between two steps
and keeps what is done, as `bruit run` does; a second one, or one at another time, ends the process.
A run folder is written whole or not at all, before the accounting.
"""

from __future__ import annotations

import json
import math
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from bruit.arrays import Array
from bruit.errors import BruitError
from bruit.graphs.coordinates import coordinates, talking
from bruit.privacy.guarantee import level_words
from bruit.runs.result import Run
from bruit.runs.stopping import Patient, interruptible
from bruit.show.live.saved import DRAWN, metric_of, plain, reached
from bruit.show.live.timetable import Timetable

LINKS = 20_000  # that are drawn
PATIENCE = 3.0  # seconds that rehearsals for the leaks may take together
WATCHER = 0  # whose view is followed, until somebody asks for another


def tell(event: str, **facts: Any) -> None:
    """One line for the page; numbers JSON does not know become null."""
    print(json.dumps({"event": event, **plain(facts)}), flush=True)


def leaks_ahead(built: Any, delta: float, watcher: int = WATCHER) -> dict[int, list[float]]:
    """Epsilon of every peer in the watcher's view, by step: of the same protocol, without data,
    ended at that step.

    A view only grows, so what holds for a later one holds now: in the middle of a round of
    consensus, say. Steps that would take longer than the patience are left out: a long run is not
    rehearsed at length. With latency, loss or churn nothing is told ahead, since what is missed
    changes what is known.
    """
    if built.privacy is None or built.graph.n > DRAWN or built.file.engine.name != "bulk":
        return {}
    found: dict[int, list[float]] = {}
    least = np.full(built.graph.n, np.inf)
    for step, learned in sorted(_rehearsed(built, delta, watcher).items(), reverse=True):
        least = np.fmin(least, learned)
        found[step] = [math.nan if v == watcher else float(x) for v, x in enumerate(least)]
    return found


def _rehearsed(built: Any, delta: float, watcher: int) -> dict[int, Array]:
    """What the watcher would learn in runs of 1, 2, 4 ... steps; then, coarse to fine, of as many
    as time allows."""
    from bruit.runs.run import rehearse

    def learned(step: int) -> Array:
        so_far = rehearse(
            built.algorithm, built.graph, built.privacy, step, built.file.seed, built.task.width
        )
        so_far.constants = (
            built.task.constants()
        )  # theorems ask how smooth these losses are, not how blank ones are
        return so_far.accountant().learned(watcher, delta)

    learned_by_step = {1: learned(1)}
    began, step, cost = time.monotonic(), 1, 0.0  # compiled code is loaded by now
    while 2 * step <= built.steps and time.monotonic() - began < PATIENCE / 4:
        step, before = 2 * step, time.monotonic()
        learned_by_step[step] = learned(step)
        cost = (time.monotonic() - before) / step
    every = max(1, built.steps // 20)
    latest_first = sorted({*range(every, built.steps + 1, every), built.steps}, reverse=True)
    for step in [step for stride in (16, 8, 4, 2, 1) for step in latest_first[::stride]]:
        if step not in learned_by_step and time.monotonic() - began + cost * step < PATIENCE:
            learned_by_step[step] = learned(step)
    return learned_by_step


class Followed:
    """Listens to a run's progress and tells of it, at most a few times a second."""

    def __init__(self, leaks: dict[int, list[float]], timetable: Timetable) -> None:
        self._leaks, self._timetable = leaks, timetable
        self._last, self._before, self._covered = 0.0, 0, 0

    def __call__(self, done: int, total: int, scores: dict[str, float] | None = None) -> None:
        now = time.monotonic()
        if not scores and now - self._last < 0.2 and done < total:
            return
        tell(
            "step",
            step=done,
            of=total,
            scores=scores or {},
            said=self._timetable.who_spoke(self._before, done),
        )
        self._last, self._before = now, done
        position = self._timetable.position(done)
        covering = min((step for step in self._leaks if step >= position), default=None)
        if position > self._covered and covering is not None:
            self._covered = covering
            tell("leaks", step=covering, seen_by=WATCHER, epsilons=self._leaks[covering])


class AccountingProgress:
    """Tells how far the accounting is, a few times a second."""

    def __init__(self) -> None:
        self._last = time.monotonic()

    def __call__(self, done: int, total: int) -> None:
        if time.monotonic() - self._last > 0.3:
            self._last = time.monotonic()
            tell("accounting", done=done, of=total)


def begin(built: Any, delta: float) -> None:
    """What there is to draw."""
    n, noise = built.graph.n, built.privacy
    of = ("user", "replace") if noise is None else (noise.level, noise.adjacency)
    shown = talking(built.graph, built.steps) if n <= DRAWN else None
    picture = None if shown is None else coordinates(built.graph, built.steps).plain()
    few = shown is not None and shown.edge_count <= LINKS
    tell(
        "begin",
        peers=n,
        graph=built.graph.name,
        steps=built.steps,
        unit=built.algorithm.schedule.unit,
        algorithm=built.algorithm.name(),
        noise=None if built.privacy is None else built.privacy.sigma,
        delta=delta,
        protects=level_words(*of),
        metric=metric_of(built.task.describe(), []),
        picture=picture,
        places=None if picture is None else picture["places"],
        edges=shown.edges().tolist() if shown is not None and few else None,
    )


def main(experiment: str, output: str) -> int:
    """Run, save, account; 0 when there is a run folder and all is told."""
    from bruit.runs.build import build
    from bruit.runs.file import read
    from bruit.show import summary as report

    try:
        with interruptible():
            file, text = read(experiment)
            built = build(file, text, Path(experiment).name)
            delta = file.delta
            begin(built, delta)
            result = learned(built, delta)
            tell("accounting")
            result.save(Path(output))
            if result.n <= DRAWN:
                tell(
                    "leaks",
                    step=reached(result),
                    seen_by=WATCHER,
                    final=True,
                    epsilons=result.accountant().learned(WATCHER, delta).tolist(),
                )
            summary = result.summary(delta, progress=AccountingProgress())
            tell("done", folder=Path(output).name, report=report.as_json(result, summary))
    except BruitError as error:
        tell("failed", reason=str(error))
        return 2
    except KeyboardInterrupt:
        tell("stopped", saved=Path(output).is_dir())
        return 130
    return 0


def learned(built: Any, delta: float) -> Run:
    """The run, whole or as far as it got, and what it is compared with, if it is whole."""
    tell("rehearsing")
    followed = Followed(leaks_ahead(built, delta), Timetable(built, WATCHER))
    with Patient(followed).listening() as patient:
        result: Run = built.learn(patient)
    built.compare_or_stop(result)
    return result


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:3]))
