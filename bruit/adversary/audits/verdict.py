"""What an audit says: the evidence it found, what was claimed, and how hard it was tried."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from bruit.adversary.audits.bounds import (
    Bound,
)
from bruit.adversary.audits.planted import PLANTED
from bruit.adversary.audits.power import Planted
from bruit.privacy.events import Adjacency
from bruit.privacy.guarantee import Guarantee, level_words

ATTACKER = "goal: tell neighboring data apart; passive; white box (graph, weights and algorithm known); view: {view}"


@dataclass(frozen=True)
class Evidence:
    """One lower bound: on which data, by which score, and what was claimed at its delta."""

    world: str
    score: str
    bound: Bound
    claimed: float

    @property
    def refutes(self) -> bool:
        return self.bound.epsilon > self.claimed * (1 + 1e-9)

    def __str__(self) -> str:
        return (
            f"epsilon >= {self.bound.epsilon:.4g} at delta = {self.bound.delta:g}, where "
            f"{self.claimed:.4g} was"
            f" claimed ({self.bound.method}, {self.score} score, data: {self.world})"
        )


@dataclass(frozen=True)
class Finding:
    """What one check of an audit found: "refuted", "not refuted", or "not asked" with the
    reason."""

    check: str
    verdict: str
    sentence: str

    @property
    def refuted(self) -> bool:
        return self.verdict == "refuted"

    def __str__(self) -> str:
        return f"{self.check}: {self.verdict}; {self.sentence}"


@dataclass(frozen=True, kw_only=True)
class Audit:
    """What was claimed, what was proven against it, and how hard it was tried. `gaussian_fit` is
    nan where scores need not be normal, and then the fit says nothing."""

    of: str
    seen_by: str
    theorem: str
    spec: str
    status: str
    level: str
    claimed: float
    clopper_pearson: float
    gaussian_fit: float
    delta: float
    confidence: float
    verdict: str
    evidence: tuple[Evidence, ...]
    planted: tuple[Planted, ...]
    trials: int
    seconds: float
    scores: tuple[str, ...]
    worlds: tuple[str, ...]
    attacker: str
    defence: str = ""
    engine: str = ""
    findings: tuple[Finding, ...] = ()
    adjacency: Adjacency = "replace"

    @property
    def lower(self) -> float:
        """The largest epsilon proven by the trials at the delta asked for."""
        return max(
            self.clopper_pearson, 0.0 if math.isnan(self.gaussian_fit) else self.gaussian_fit
        )

    @property
    def refuted(self) -> bool:
        return self.verdict == "refuted"

    @property
    def power(self) -> float:
        """The power against noise half as large: at least this fraction of such audits would refute
        the claim; nan when nothing was planted."""
        return next((bug.power for bug in self.planted if bug.bug == HALF), math.nan)

    @property
    def reason(self) -> str:
        """What was refuted, on which pair, with what confidence; empty for a claim that stands."""
        parts = [str(found) for found in self.findings if found.refuted]
        worst = max(
            (found for found in self.evidence if found.refutes),
            default=None,
            key=lambda found: found.bound.epsilon - found.claimed,
        )
        if worst is not None:
            parts.insert(
                0,
                f"about {self.of} against {self.seen_by} the trials prove {worst}, confidence"
                f" {self.confidence:.7g}",
            )
        return "; ".join(parts)

    def to_dict(self) -> dict[str, Any]:
        found = asdict(self)
        found["evidence"] = [{**asdict(one), "refutes": one.refutes} for one in self.evidence]
        return {**found, "lower": self.lower, "power": self.power, "reason": self.reason}

    def __str__(self) -> str:
        fit = (
            "does not apply"
            if math.isnan(self.gaussian_fit)
            else f"epsilon >= {self.gaussian_fit:.4g}"
        )
        lines = [
            f"{self.verdict}: epsilon = {self.claimed:.4g} at delta = {self.delta:g}, "
            f"{level_words(self.level, self.adjacency)}, was claimed"
            f" for {self.of} against {self.seen_by}",
            *([f"refuted because {self.reason}"] if self.refuted else []),
            f"  claimed by {self.theorem} ({self.spec}), {self.status}",
            *([f"  ran on {self.engine}"] if self.engine else []),
            f"  {self.trials} paired runs on each of: {', '.join(self.worlds)}; confidence "
            f"{self.confidence:.7g},"
            f" {self.seconds:.1f} s, scores: {', '.join(self.scores)}",
            f"  Clopper-Pearson: epsilon >= {self.clopper_pearson:.4g}",
            f"  Gaussian fit: {fit}",
            *(f"  planted: {bug}" for bug in self.planted),
            *(f"  check: {found}" for found in self.findings),
            f"  {self.attacker}",
            *([self.defence] if self.defence else []),
        ]
        return "\n".join(lines)


HALF, CLIPLESS = PLANTED


def verdict(
    claim: Guarantee,
    epsilon: float,
    proof: Sequence[Evidence],
    planted: Sequence[Planted],
    names: tuple[str, ...],
    places: tuple[str, ...],
    delta: float,
    confidence: float,
    trials: int,
    begin: float,
    sentence: str,
) -> Audit:
    """The record of an audit from its evidence."""
    here = [one.bound for one in proof if one.bound.delta == delta]
    counted = max(bound.epsilon for bound in here if bound.method == "Clopper-Pearson")
    fitted = max(
        (bound.epsilon for bound in here if bound.method == "Gaussian fit"), default=math.nan
    )
    refuted = any(one.refutes for one in proof)
    return Audit(
        of=claim.of,
        seen_by=claim.against,
        theorem=claim.theorem,
        spec=claim.spec,
        status=claim.status,
        level=claim.level,
        adjacency=claim.adjacency,
        claimed=epsilon,
        clopper_pearson=counted,
        gaussian_fit=fitted,
        delta=delta,
        confidence=confidence,
        verdict="refuted" if refuted else "not refuted",
        evidence=tuple(proof),
        planted=tuple(planted),
        trials=trials,
        seconds=time.perf_counter() - begin,
        scores=names,
        worlds=places,
        attacker=ATTACKER.format(view=claim.against),
        defence=sentence,
    )
