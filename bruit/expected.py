"""What theory expects of a run, from declared constants and public facts alone: utility bounds, printed beside scores.

A walk of constant steps (walk:RW-7), ADMM by a walk on the complete graph and federated ADMM (walk:ADMM-3). Bounds are
on the distance of the model, or of all duals, from the optimum; they are often far above what is measured. Where no
statement applies, its reason is told.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, isfinite
from typing import Any

from bruit.algorithms.federated_admm import FederatedADMM
from bruit.algorithms.walk_admm import WalkADMM
from bruit.algorithms.walk_rate import declared_utility
from bruit.algorithms.walk_sgd import WalkSGD
from bruit.errors import ConfigError
from bruit.fixed_points.contraction import declared_contraction
from bruit.fixed_points.utility import Utility
from bruit.graphs import Graph
from bruit.result import Run


@dataclass(frozen=True)
class Expectation:
    """A bound on the mean squared distance from the optimum at the end, and the distance at the start it knows of."""

    spec: str
    what: str
    start: float
    bound: float
    facts: dict[str, float]

    def sentence(self) -> str:
        told = ", ".join(f"{name} {value:.4g}" for name, value in self.facts.items())
        empty = "" if self.bound < self.start else "; it promises nothing here"
        return f"utility ({self.spec}): {self.what} <= {self.bound:.4g}, from at most {self.start:.4g} ({told}){empty}"

    def plain(self) -> dict[str, Any]:
        return {"spec": self.spec, "what": self.what, "start": self.start, "bound": self.bound, **self.facts}


def expected(run: Run) -> Expectation | str | None:
    """The utility bound of a run; why there is none; or None for algorithms without a statement."""
    try:
        if isinstance(run.algorithm, WalkSGD):
            return _walk(run, run.algorithm)
        if isinstance(run.algorithm, WalkADMM):
            return _walk_admm(run, run.algorithm)
        if isinstance(run.algorithm, FederatedADMM):
            return _federated(run, run.algorithm)
    except ConfigError as error:
        return f"no utility bound: {error}"
    return None


def _noise(run: Run) -> tuple[float, float]:
    return (inf, 0.0) if run.privacy is None else (run.privacy.clip, run.privacy.sigma)


def _walk(run: Run, algorithm: WalkSGD) -> Expectation:
    if algorithm.cap is not None or algorithm.rest > 1 or algorithm.flush or algorithm.decay:
        raise ConfigError("the statement on walks is for constant steps in which everybody always contributes")
    if run.constants is None:
        raise ConfigError("the task declares no constants")
    clip, sigma = _noise(run)
    known = declared_utility(run.constants, run.graph, run.estimates.shape[1], clip=clip, sigma=sigma,
                             bound=algorithm.bound, batch=algorithm.batch)  # fmt: skip
    bound = known.bound_at(algorithm.rate, max(1, run.steps - algorithm.burn_in))
    facts = {"rate": algorithm.rate, "smoothness": known.smoothness, "strong convexity": known.convexity,
             "mixing time": known.mixing}  # fmt: skip
    return Expectation("walk:RW-7", "E|x - x*|^2", known.distance, bound, facts)


def _admm(run: Run, gamma: float, relaxation: float, active: float, members: int, steps: int) -> Expectation:
    """The direct recursion of ADMM-3: |u_i*| <= |x*| + gamma |g_i(x*)| with gradients of losses up to G."""
    constants = run.constants
    if constants is None or constants.source != "declared":
        raise ConfigError('constants are not declared before the run; normalize the rows (task.rows = "unit")')
    tau = declared_contraction(gamma, constants.smoothness, constants.strong_convexity)
    clip, sigma = _noise(run)
    longest = constants.lipschitz if isfinite(constants.lipschitz) else clip
    if not isfinite(longest):
        raise ConfigError("no bound on the gradients is declared; normalize the rows, or add privacy")
    far = longest / constants.strong_convexity
    start = members * (far + 2 * gamma * longest) ** 2
    known = Utility(tau, members * run.estimates.shape[1], 2 * gamma * sigma, start, active)
    facts = {"contraction, declared": tau}
    if "contraction" in run.references:
        facts["measured"] = run.references["contraction"]
    facts |= {"relaxation": relaxation, "chance to take part": active}
    what = "E|u - u*|^2 of all duals, if no clip cuts"
    return Expectation("walk:ADMM-3", what, start, known.direct(steps, relaxation), facts)


def _walk_admm(run: Run, algorithm: WalkADMM) -> Expectation:
    if not isinstance(run.graph, Graph) or not run.graph.alike:
        raise ConfigError("the statement on ADMM is for holders drawn independently, as on the complete graph")
    return _admm(run, algorithm.gamma, algorithm.relaxation, 1 / run.n, run.n, run.steps)


def _federated(run: Run, algorithm: FederatedADMM) -> Expectation:
    if algorithm.noise == "server":
        raise ConfigError("the statement on ADMM is for noise in the duals, and here the server adds it to their mean")
    members = len(algorithm.prepare(run.graph, run.steps).members)
    share = 1.0 if algorithm.participants is None else algorithm.participants / members
    return _admm(run, algorithm.gamma, algorithm.relaxation, share, members, run.steps // 2)
