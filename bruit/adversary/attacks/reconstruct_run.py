"""Reconstruction as a question: of a protocol before it runs, or of a run that was saved; plain
data for whoever shows it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from bruit.adversary.attacks import (
    Reconstruction,
    Recovered,
    decide,
    own_dithers,
    reconstruct,
    run_knowledge,
    starting_values,
)
from bruit.adversary.attacks.reconstruct import defence, reconstructible
from bruit.adversary.attacks.watched_run import watched
from bruit.errors import ConfigError
from bruit.graphs import Graph
from bruit.graphs import graph as named_graph
from bruit.runs.result import Run

SHOWN = 5  # relations that are written out
LISTED = 500  # hidden peers beyond which the relations are only counted


@dataclass(frozen=True)
class AveragingKind:
    """Which averaging is predicted: its name, whether neighborhoods tell sums only, printed
    weights."""

    algorithm: str
    sums: bool
    published: bool


def predicted(
    name: str | None, observers: list[int], steps: int | None, asked: AveragingKind
) -> dict[str, Any]:
    """Whose values these peers could compute on a named graph, before anybody averages."""
    if name is None or steps is None:
        raise ConfigError("name either a run folder or a protocol: --graph ... --steps ...")
    if asked.algorithm not in ("averaging", "chebyshev"):
        raise ConfigError(
            f"a prediction is made for averaging or chebyshev, found {asked.algorithm!r}; for other"
            " averaging, run it and name the run folder"
        )
    found = named_graph(name)
    if asked.algorithm == "chebyshev" and not isinstance(found, Graph):
        raise ConfigError(
            f"accelerated gossip needs one fixed graph, found the sequence {found.name}"
        )
    if asked.published:
        if not isinstance(found, Graph):
            raise ConfigError(
                f"--published-weights needs one fixed graph, found the sequence {found.name}"
            )
        found = found.reweighted("max", plus=0)
    # Accelerated messages are rows of P_t(W), deg P_t = t: they span what those of W^t span
    # (gossip:REC-3).
    exposed = reconstructible(found, observers, steps, "sums" if asked.sums else "messages")
    hidden = None
    if isinstance(found, Graph) and not asked.sums:
        hidden = reconstructible(found, observers, steps, "sums")
    return _facts(found.name, steps, exposed) | {
        "algorithm": asked.algorithm,
        "defence": defence(exposed, hidden),
    }


def recovered(run: Run, observers: list[int]) -> dict[str, Any]:
    """Whose values these peers could compute in a run; and, where its records can be loaded again,
    which values they get."""
    exposed = decide(run_knowledge(run, observers))
    text = defence(exposed)
    if run.privacy is not None and run.privacy.sigma > 0:
        held = run.epsilon(seen_by=observers)
        text = (
            "The noise of this run is the defence: these observers computed noisy values, which"
            f" leave epsilon {float(held):.3g} at delta {held.delta:g}, {held.guarantee.protected},"
            " for the worst peer."
        )
    answer = _facts(run.graph.name, run.steps, exposed) | {"defence": text}
    if run.experiment:
        answer |= _values(run, observers)
    return answer


def _values(run: Run, observers: list[int]) -> dict[str, Any]:
    """Carry the attack out: the run's trace again with these peers watched, since runs keep few
    views."""
    again, task = watched(run, observers)
    released, known = starting_values(run, task), run_knowledge(again, observers)
    own, dithers = (
        released[np.array(observers)],
        None if known.sent is None else own_dithers(again, task, observers),
    )
    found: Recovered = reconstruct(again.view(set(observers)), known, own, dithers)
    true, noisy = found.score(task), found.score_noisy(released)
    return {
        "reliable": np.flatnonzero(found.reliable).tolist(),
        "residual": found.residual,
        "recovered": true.recovered.tolist(),
        "recovered_with_noise": noisy.recovered.tolist(),
        "largest_error": float(np.nanmax(true.errors)) if np.isfinite(true.errors).any() else None,
        "tolerance": true.tolerance,
        "sigma": 0.0 if run.privacy is None else run.privacy.sigma,
        "dithered": known.sent is not None,
        "tolerance_with_noise": noisy.tolerance,
        "errors": [float(found.error[u]) for u in found.prediction.peers],
    }


def _facts(name: str, steps: int, found: Reconstruction) -> dict[str, Any]:
    shown = found.relations()[:SHOWN] if found.hidden.size <= LISTED else ()
    return {
        "graph": name,
        "peers": found.known.n,
        "steps": steps,
        "seen_by": found.observers.tolist(),
        "reconstructible": found.peers.tolist(),
        "hidden": found.hidden.tolist(),
        "rank": found.rank,
        "relations": found.relation_count,
        "first_relations": [str(relation) for relation in shown],
        "proven": found.proven,
        "taxonomy": found.taxonomy,
    }
