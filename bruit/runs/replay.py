"""Replay of a run: its trace again, in bulk, on the same data; the two must agree."""

from __future__ import annotations

import numpy as np

from bruit.errors import ConfigError, ConformanceError
from bruit.runs.engines.bulk import Bulk
from bruit.runs.engines.engine import Progress
from bruit.runs.engines.replay import ReplayDifference, compare, lines
from bruit.runs.result import Run
from bruit.runs.run import run
from bruit.tasks import Task


def replay(
    first: Run, task: Task | None = None, progress: Progress | None = None
) -> ReplayDifference:
    """Run the trace of `first` again and compare; raises ConformanceError when they disagree.

    A run from the command line carries its experiment and needs no task; others are given theirs.
    """
    if first.interrupted is not None:
        raise ConfigError(
            f"this run was {first.stopped_words()}: its steps are a part of a longer run, and only"
            " whole ones are replayed; run its experiment again, which begins with the same draws"
        )
    if first.phase:
        raise ConfigError(
            "this run goes on from an earlier one, whose states its trace does not hold; replay "
            "that one"
        )
    if task is None:
        if not first.experiment:
            raise ConfigError(
                "this run does not say where its data came from; give its task to replay it"
            )
        from bruit.runs.build import (
            build,  # reads experiment files, which a library user does without
        )
        from bruit.runs.file import parse

        file = parse(first.experiment).model_copy(update={"seed": first.seed})
        task = build(file).task
    second = run(
        first.algorithm,
        first.graph,
        task,
        privacy=first.privacy,
        steps=first.steps,
        seed=first.seed,
        engine=Bulk(),
        evaluate_every=0,
        given=first.trace,
        progress=progress,
        rehearsal=first.rehearsal,
        start=first.start,
    )
    tolerance = first.algorithm.fused_within if first.engine.get("fused") else 1e-9
    if first.state is not None:
        return compare(first, second, tolerance)
    difference = float(np.abs(first.estimates - second.estimates).max(initial=0.0))
    if not difference <= tolerance * max(1.0, float(np.abs(first.estimates).max(initial=0.0))):
        raise ConformanceError(f"the estimates differ by {difference:.3g}")
    if lines(first.ledger) != lines(second.ledger):
        raise ConformanceError(
            f"the ledgers differ: {len(first.ledger)} and {len(second.ledger)} lines"
        )
    return ReplayDifference(difference, len(second.ledger))
