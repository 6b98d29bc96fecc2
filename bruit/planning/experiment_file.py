"""The experiment that a plan plans, as a file that `bruit run` takes: graph, steps, algorithm and
noise of the plan.

The noise is the planned one, rounded up, so that the run is within the planned budget wherever the
run's guarantee is of the plan's kind: a walk is planned before it goes, and accounted for after it
went.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bruit.errors import ConfigError
from bruit.files import write_whole
from bruit.how_many import how_many
from bruit.planning.option import rounded_up
from bruit.planning.plan import Plan
from bruit.runs.settings import document

ROWS = 400
"""Peers up to which each gets a row of the bundled data set."""
DRAWN = 8
"""Rows each of more peers draws of it."""


def write_experiment(plan: Plan, path: Path) -> None:
    """The experiment as a file, whole or not at all."""
    text = experiment_text(plan)
    write_whole(path, lambda file: file.write(text.encode()))


def experiment_of(plan: Plan) -> dict[str, Any]:
    """The experiment as data; refused where nobody in this package runs the protocol."""
    asked, chosen = plan.question, plan.chosen
    if chosen.algorithm is None:
        raise ConfigError(
            f"no experiment file runs {chosen.protocol} for this job, so there is nothing to save;"
            f" plan another protocol, e.g. {', '.join(_savable(plan)) or 'with --contributions'}"
        )
    width = asked.dim
    task: dict[str, Any] = {"kind": "mean", "dim": width}
    if asked.job == "learning":
        task = {
            "kind": "logistic",
            "data": "breast_cancer",
            **({"components": width - 1} if 1 < width <= 31 else {}),
        }
        if asked.peers > ROWS:
            task["split"] = f"replicate:{DRAWN}"
        task |= chosen.task or {}
    sigma = float(rounded_up(chosen.noise_multiplier * asked.sensitivity, 9))
    return {
        "graph": f"complete:{asked.peers}" if chosen.graph == "any" else chosen.graph,
        "steps": chosen.steps,
        "seed": 0,
        "task": task,
        "algorithm": dict(chosen.algorithm),
        "privacy": {
            "mechanism": "gaussian",
            "clip": asked.sensitivity / 2,
            "sigma": sigma,
            "delta": asked.delta,
        },
    }


def experiment_text(plan: Plan) -> str:
    """The same as commented TOML."""
    asked = plan.question
    comments = [f"# planned by `bruit plan`: {plan.chosen.protocol}, {plan.claim()}"]
    if asked.job == "mean":
        comments.append(
            f"# values are drawn in [-1, 1] and cut to length {asked.sensitivity / 2:g}, half of"
            " the sensitivity; --sensitivity 2 keeps one number whole"
        )
    else:
        comments.append(
            f"# the data are an example: name yours, for models of {how_many(asked.dim, 'number')}"
            " as planned; the rate is that of the bound, and may be chosen freely"
        )
        if asked.peers > ROWS:
            comments.append(
                f"# breast_cancer has fewer rows than {asked.peers} peers, so each draws {DRAWN} of"
                " them, and several hold the same row; with data of yours choose another split"
            )
    return "\n".join(comments) + "\n" + document(experiment_of(plan))


def _savable(plan: Plan) -> list[str]:
    return [option.protocol for option in plan.alternatives if option.algorithm is not None]
