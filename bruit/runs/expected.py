"""What theory expects of a run: the algorithm's utility statement, asked with what was declared."""

from __future__ import annotations

from math import inf

from bruit.algorithms.expectation import DeclaredFacts, Expectation
from bruit.errors import ConfigError
from bruit.runs.result import Run


def expected(run: Run) -> Expectation | str | None:
    """The utility bound of a run; why there is none; or None for algorithms without a statement."""
    known = DeclaredFacts(
        graph=run.graph,
        steps=run.steps,
        dim=run.estimates.shape[1],
        clip=inf if run.privacy is None else run.privacy.clip,
        sigma=0.0 if run.privacy is None else run.privacy.sigma,
        constants=run.constants,
        measured=run.references.get("contraction"),
        disturbed=_disturbed(run),
    )
    try:
        return run.algorithm.expected(known)
    except ConfigError as error:
        return f"no utility bound: {error}"


def _disturbed(run: Run) -> str:
    """Why it was not one whole run as agreed; empty if it was."""
    trace = run.trace
    if run.interrupted:
        return run.stopped_words()
    if trace.missed or len(trace.faults.round):
        return "some exchanges failed"
    return "" if run.before is None else "it goes on from an earlier phase"
