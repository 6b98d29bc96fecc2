"""A finished run once more, with curious peers watched: runs keep few views, and a trace says how
to get the others again."""

from __future__ import annotations

from typing import Any

from bruit.errors import ConfigError
from bruit.runs.build import build
from bruit.runs.file import parse
from bruit.runs.result import Run
from bruit.runs.run import run as run_again


def watched(run: Run, observers: list[int]) -> tuple[Run, Any]:
    """The run's trace again with these peers watched, since runs keep few views; and its task."""
    if not run.experiment:
        raise ConfigError(
            "this run was not made from an experiment file, so its records cannot be loaded again;"
            " use the functions of bruit.adversary.attacks on the run in memory"
        )
    task = build(parse(run.experiment).model_copy(update={"seed": run.seed})).task
    again = run_again(
        run.algorithm,
        run.graph,
        task,
        privacy=run.privacy,
        steps=run.steps,
        seed=run.seed,
        watch=observers,
        evaluate_every=0,
        given=run.trace,
    )
    return again, task
