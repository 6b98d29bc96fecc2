"""Audits of experiment files: engine and faults, graph, algorithm, mechanism, steps and records as
the file says."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np

from bruit.adversary.audits.audit import audit_run, observing
from bruit.adversary.audits.battery import AuditCase, engine_words, findings
from bruit.adversary.audits.evidence import CONFIDENCE
from bruit.adversary.audits.planted import Bug
from bruit.adversary.audits.verdict import Audit
from bruit.errors import PrivacyError
from bruit.on import Workplace, chosen, place_for
from bruit.privacy.guarantee import Status
from bruit.runs.build import Experiment, build
from bruit.runs.file import read
from bruit.runs.result import Run
from bruit.runs.run import run


def hardest_pair(done: Run, status: Status = "proven") -> tuple[int, int]:
    """The pair (of, seen by) whose claim is the most exposed: the largest proven loss that is
    finite, or, for a published formula, the largest proven loss that the formula puts lower. Of
    secret samples, and of noise that has no loss of pairs, all are charged alike, by releases."""
    busiest = int(done.facts().releases().argmax())
    alike = busiest, (busiest + 1) % done.n
    if done.facts().sampled and status == "proven":
        return alike
    try:
        m = done.losses()
    except PrivacyError:
        if status != "proven":
            raise
        return alike
    gap = m if status == "proven" else m - np.minimum(done.losses(status), m)
    gap = np.where(np.isfinite(gap), gap, np.nan) if np.isfinite(gap).any() else gap
    of, seen_by = np.unravel_index(int(np.nanargmax(gap)), gap.shape)
    return int(of), int(seen_by)


def audit_experiment(
    path: str | Path,
    of: int | None = None,
    seen_by: int | Iterable[int] | None = None,
    trials: int = 10_000,
    delta: float = 1e-6,
    confidence: float = CONFIDENCE,
    status: Status = "proven",
    seed: int | None = None,
    progress: Callable[[int, int], None] | None = None,
    on: Workplace | str | None = None,
) -> Audit:
    """Try to refute what is claimed, proven or published, for the protocol of an experiment file;
    the trials are made `on` another place, if one is given.

    The file's own engine runs it once, with its faults; paired runs repeat what happened on
    neighboring data of the same shape, the file's records among them. Walks and meetings are those
    of the file's seed, unless another one is given. Without `of` the hardest pair is chosen.
    """
    file, text = read(path)
    with chosen(place_for(1, on)):
        return audit_made(
            made=build(file, text, str(path)),
            of=of,
            seen_by=seen_by,
            trials=trials,
            delta=delta,
            confidence=confidence,
            status=status,
            seed=seed,
            progress=progress,
        )


def audit_made(
    made: Experiment,
    of: int | None = None,
    seen_by: int | Iterable[int] | None = None,
    trials: int = 10_000,
    delta: float = 1e-6,
    confidence: float = CONFIDENCE,
    status: Status = "proven",
    seed: int | None = None,
    progress: Callable[[int, int], None] | None = None,
    plant: Mapping[str, Bug] | None = None,
) -> Audit:
    """The same for an experiment that is built already. Half of the error goes to the paired runs
    of the pair, half to the check of one release; the other checks do not err."""
    chosen = made.file.seed if seed is None else seed
    watching = None if seen_by is None or isinstance(seen_by, int) else tuple(seen_by)
    if of is None:
        of, one = hardest_pair(_watched_run(made, chosen, ()), status)
        observers: int | tuple[int, ...] | None = one
    else:
        observers = seen_by if isinstance(seen_by, int) else watching
    seeing = observing(made.graph.n, of, observers)
    done, each = _watched_run(made, chosen, seeing), 1 - (1 - confidence) / 2
    claimed = None if status == "proven" else done.guarantee(of, observers, delta, status)
    found = audit_run(
        done=done,
        task=made.task,
        of=of,
        seen_by=observers,
        trials=trials,
        delta=delta,
        confidence=each,
        claimed=claimed,
        plant=plant,
        progress=progress,
    )
    case = AuditCase(
        made=made, done=done, of=of, observers=seeing, trials=trials, delta=delta, confidence=each
    )
    more = findings(case)
    refuted = found.refuted or any(one.refuted for one in more)
    return replace(
        found,
        findings=more,
        verdict="refuted" if refuted else "not refuted",
        confidence=confidence,
        engine=engine_words(done),
        defence="" if refuted else found.defence,
    )


def _watched_run(made: Experiment, seed: int, watch: Iterable[int]) -> Run:
    """The run of this experiment that is audited, without its evaluations."""
    # An engine that must be fused watches nobody; "auto" takes the general path to watch.
    fused = made.engine.describe().get("fused") is True
    return run(
        made.algorithm,
        made.graph,
        made.task,
        privacy=made.privacy,
        steps=made.steps,
        seed=seed,
        engine=made.engine,
        evaluate_every=0,
        watch=() if fused else watch,
    )
