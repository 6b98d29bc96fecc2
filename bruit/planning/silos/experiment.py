"""The masked run that a plan of silos plans, as a file that `bruit run` takes.

Noise is that of the plan, rounded up, so that the run is within the planned budget.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bruit.files import write_whole
from bruit.how_many import how_many
from bruit.planning.option import rounded_up
from bruit.planning.silos.compared import SilosPlan
from bruit.runs.settings import document


def silos_experiment(plan: SilosPlan) -> dict[str, Any]:
    """The experiment as data: graph, steps, algorithm and noise."""
    asked, masked = plan.question, plan.option("masked")
    return {
        "graph": f"complete:{asked.silos}",
        "steps": masked.steps,
        "seed": 0,
        "task": {
            "kind": "logistic",
            "data": "breast_cancer",
            "split": "iid",
            **({"components": asked.dim - 1} if 1 < asked.dim <= 31 else {}),
        },
        "algorithm": {
            "name": "masked-sgd",
            "rate": float(f"{masked.rate:.4g}"),
            "momentum": 0.0,
            "colluders": asked.colluders,
            "dropouts": asked.dropouts,
            "spare": masked.attempts - masked.steps,
        },
        "privacy": {
            "level": "record",
            "adjacency": asked.adjacency,
            "clip": masked.clip,
            "sigma": float(rounded_up(masked.noise_multiplier * masked.clip, 9)),
            "sample_rate": masked.sample_rate,
            "divisor": float(f"{masked.batch / asked.silos:.6g}"),
            "delta": asked.delta,
        },
    }


def silos_text(plan: SilosPlan) -> str:
    """The same as commented TOML."""
    asked = plan.question
    held = ", ".join(map(str, asked.records))
    return (
        f"# planned by `bruit plan --silos {asked.silos}`: each record epsilon = {asked.epsilon:g} at "
        f"delta = {asked.delta:g} ({asked.adjacency}), against any {how_many(asked.colluders, 'peer')}\n"
        f"# made for {held} records and models of {asked.dim} numbers; the data below are an example:\n"
        "# name yours, with an agreed columns file (columns_file), public centers and scales in it\n"
        + document(silos_experiment(plan))
    )


def write_silos(plan: SilosPlan, path: Path) -> None:
    """The experiment as a file, whole or not at all."""
    text = silos_text(plan)
    write_whole(path, lambda file: file.write(text.encode()))
