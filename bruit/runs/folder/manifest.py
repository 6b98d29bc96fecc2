"""The manifest of a run folder: everything needed to understand and repeat the run, as plain data."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np

from bruit.graphs.stored import describe_graph

if TYPE_CHECKING:
    from bruit.runs.result import Run

FORMAT, VERSION = "bruit-run", 1


FILES = ("trace.npz", "ledger.npz", "metrics.json", "estimates.npz", "experiment.toml")


BEFORE = "before.run"


COUNTS = ("messages", "refusals", "retransmissions", "missed", "bytes")


def _plain_facts(public: Any) -> dict[str, Any]:
    """The public facts an algorithm prepared, as plain data."""
    facts = public._asdict() if hasattr(public, "_asdict") else {}
    return {
        name: _plain_facts(value) if hasattr(value, "_asdict") else np.asarray(value).tolist()
        for name, value in facts.items()
    }


def digest(manifest: dict[str, Any]) -> str:
    """A checksum of the manifest itself."""
    return hashlib.sha256(json.dumps(manifest, sort_keys=True).encode()).hexdigest()


def manifest_of(run: Run) -> dict[str, Any]:
    """Everything needed to understand and repeat the run, as plain data."""
    counts = {name: getattr(run.trace, name) for name in COUNTS}
    return {
        "format": FORMAT,
        "version": VERSION,
        "algorithm": run.algorithm.describe(),
        "graph": describe_graph(run.graph),
        "steps": run.steps,
        "seed": run.seed,
        "engine": run.engine,
        "privacy": None if run.privacy is None else run.privacy.describe(),
        "task": run.task,
        "constants": None if run.constants is None else asdict(run.constants),
        "phase": run.phase,
        "declared": [asdict(one) for one in run.declared],
        "start": None
        if run.start is None
        else {"source": run.start.source, "digest": run.start.digest()},
        "carried": run.carried,
        "before": None if run.before is None else BEFORE,
        "rehearsal": run.rehearsal,
        "unwatched": run.unwatched,
        **({"opened": run.opened} if run.opened else {}),
        "local": run.local,
        "planned": not run.noise,
        "noise": run.noise_words(),
        "interrupted": run.interrupted,
        "identity": run.identity,
        "verdict": None if (found := run.verdict()) is None else found.describe(),
        "public": _plain_facts(run.public),
        **counts,
    }
