"""The model a real peer learned, in its state folder: its own, for itself to use and to give away if it may."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from bruit.algorithms.doorway import same, untwinned
from bruit.errors import ConfigError
from bruit.model import FILE, Model, statement
from bruit.result import REHEARSED
from bruit.sites.site import Participant


def own_model(of: Participant, epsilon: float, delta: float) -> Model:
    """What this peer holds; `epsilon` is that of all its own releases, against everybody.

    Nothing in it comes from the peer's rows but what it learned: a score is in it only if it was measured on the public
    records."""
    host, task, algorithm = of.host, of.task, of.host.machine.seat.algorithm
    if host.machine.state is None:
        raise ConfigError(f"peer {host.me} has learned nothing yet: it has not begun")
    state, twin = untwinned(host.machine.state)
    estimate = np.asarray(algorithm.estimate(state), np.float64)
    local = twin is not None and not same(estimate, algorithm.estimate(twin))
    level, mechanism = (None, None) if of.privacy is None else (of.privacy.level, of.privacy.describe())
    privacy, warnings = statement(level or "user", mechanism, epsilon, delta, local)
    if of.rehearsed:
        privacy |= {"protected": False, "noise": REHEARSED}
        warnings = (f"the noise is {REHEARSED}", *warnings)
    if not (host.ended or host.done):
        warnings = (f"stopped after {host.machine.count} of {host.machine.seat.steps} steps", *warnings)
    score = task.judge(estimate, 0)
    made = {"by": "a real peer", "graph": host.machine.seat.graph.name, "algorithm": algorithm.describe(),
            "steps": host.machine.seat.steps, "run": host.run_id,
            "known_besides": task.describe().get("public", [])}  # fmt: skip
    return Model(
        kind=task.kind, numbers=estimate.ravel(), recipe=task.recipe(), metric=task.metric,
        score=score.value if score.public else None, peer=host.me, peers=task.peers, privacy=privacy, made=made,
        warnings=warnings,
    )  # fmt: skip


def save_own_model(of: Participant, epsilon: float, delta: float) -> Path:
    """Write it beside the report, for this participant only."""
    path = own_model(of, epsilon, delta).save(of.site.state / FILE)
    path.chmod(0o600)
    return path
