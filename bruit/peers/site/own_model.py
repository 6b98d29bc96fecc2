"""The model a real peer learned, in its state folder: its own, for itself to use and to give away
if it may."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from bruit.algorithms.algorithm import EVERYBODY
from bruit.algorithms.doorway import same, untwinned
from bruit.errors import ConfigError
from bruit.how_many import how_many
from bruit.peers.site.site import Participant
from bruit.runs.model import FILE, LOCAL, Model, statement
from bruit.runs.noise_keys import REHEARSED

SHARED = "shared-model.json"


def own_model(of: Participant, epsilon: float, delta: float, shared: bool = False) -> Model:
    """What this peer holds; `epsilon` is that of all its own releases, against whom its algorithm
    says.

    Nothing in it comes from the peer's rows but what it learned: a score is in it only if it was
    measured on the public records. `shared`: without the parts that this peer fits at home."""
    host, task, algorithm = of.host, of.task, of.host.machine.seat.algorithm
    if host.machine.state is None:
        raise ConfigError(f"peer {host.me} has learned nothing yet: it has not begun")
    state, twin = untwinned(host.machine.state)
    estimate = np.asarray(algorithm.estimate(state), np.float64)
    local = twin is not None and not same(estimate, algorithm.estimate(twin))
    parts: tuple[str, ...] = ()
    own = estimate
    if task.local and not shared:  # no message and no later step of this run depends on them
        parts, own = task.local, task.at_home(np.array([host.me]), estimate)
    whom = LOCAL
    if algorithm.against != EVERYBODY:
        whom = f"{algorithm.against}, and whoever is given the model"
    privacy, warnings = statement(of.privacy, epsilon, delta, local, whom, parts)
    releases = int(host.ledger.counts()[host.me, host.ledger.is_data()].sum())
    privacy |= {
        "why": f"epsilon = {epsilon:.6g} at delta = {delta:g}: {how_many(releases, 'release')} of this peer,"
        f" composed by their events; against {whom}"
    }
    if of.rehearsed:
        privacy |= {"protected": False, "noise": REHEARSED}
        warnings = (f"the noise is {REHEARSED}", *warnings)
    if not (host.ended or host.done):
        warnings = (
            f"stopped after {host.machine.count} of {how_many(host.machine.seat.steps, 'step')}",
            *warnings,
        )
    score = task.judge(own, 0)
    return Model(
        kind=task.kind,
        numbers=own.ravel(),
        recipe=task.recipe(),
        metric=task.metric,
        score=score.value if score.public else None,
        peer=host.me,
        peers=task.peers,
        privacy=privacy,
        made=_made(of),
        warnings=warnings,
        local=parts,
        network=task.learned_network(),
    )


def _made(of: Participant) -> dict[str, Any]:
    """How it came about."""
    host, task = of.host, of.task
    return {
        "by": "a real peer",
        "graph": host.machine.seat.graph.name,
        "algorithm": host.machine.seat.algorithm.describe(),
        "steps": host.machine.seat.steps,
        "run": host.run_id,
        "config": of.config,
        "ledger": host.ledger.digest(),
        "known_besides": task.describe().get("public", []),
    }


def save_own_model(of: Participant, epsilon: float, delta: float) -> Path:
    """Write it beside the report, for this participant only; one with parts that stay at home has the
    shared model beside it, to be given away."""
    if of.task.local:
        own_model(of, epsilon, delta, shared=True).save(of.site.state / SHARED, private=True)
    return own_model(of, epsilon, delta).save(of.site.state / FILE, private=True)
