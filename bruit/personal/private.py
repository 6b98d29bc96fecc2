"""Private coordinate descent with a budget that grows over time (perso:PERSO-9, 10, 12, 13).

Optionally a private warm start: models fitted alone, released once, smoothed over the graph
(post-processing). Then one phase for each planned update: peers wake, each updates at most once,
with the noise of that phase. All phases share one ledger, so `run.epsilon(delta=...)` is the total.
Corrected: later phases get more of the budget, not less.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bruit.algorithms.personal.model_propagation import ModelPropagation
from bruit.algorithms.personal.personalized import Personalized
from bruit.errors import ConfigError
from bruit.graphs import Graph
from bruit.mechanisms import Mechanism
from bruit.mechanisms.record_noise import RecordNoise
from bruit.personal.sensitivity import (
    gradient_sensitivities,
    loss_sensitivities,
    model_sensitivities,
)
from bruit.personal.utility import allocate, expected_times
from bruit.runs.result import Run
from bruit.runs.run import run
from bruit.tasks.linear import LinearTask
from bruit.tasks.personal import Personal

PATIENCE = 5.0  # units of time a phase lasts: all but e^-5 of the peers wake in it


def gradient_noise(task: Personal | LinearTask, law: str = "gaussian") -> RecordNoise:
    """Noise on local gradients, measured by 2 L / m_u, not yet calibrated (perso:PERSO-9,
    PERSO-10)."""
    order = 1 if law == "laplace" else 2
    return RecordNoise(gradient_sensitivities(task, order), task.dim, law=law)


def model_noise(task: Personal | LinearTask, law: str = "euclidean") -> RecordNoise:
    """Noise on models fitted alone, measured by 2 L / (m_u mu_u), not yet calibrated
    (perso:PERSO-13)."""
    if law == "laplace":
        raise ConfigError(
            "the sensitivity of a fitted model is known in L2; use 'euclidean' or 'gaussian' noise"
        )
    return RecordNoise(model_sensitivities(task), task.dim, law=law, measures="model")


def loss_noise(task: Personal, ceiling: float, law: str = "laplace") -> RecordNoise:
    """Noise on losses cut at the ceiling, measured by B / m_u, not yet calibrated
    (perso:PERSO-14)."""
    return RecordNoise(loss_sensitivities(task.sizes, ceiling), 1, law=law, measures="loss")


@dataclass(frozen=True)
class NoisePlan:
    """The mechanisms of a private run: one for the warm start, or none, and one for each planned
    update."""

    updates: tuple[Mechanism, ...]
    warm: Mechanism | None = None

    @staticmethod
    def of(
        task: Personal | LinearTask,
        epsilon: float,
        updates: int,
        *,
        law: str = "laplace",
        factor: float | None = None,
        warm: Mechanism | None = None,
    ) -> "NoisePlan":
        """Epsilons that add up to `epsilon` over so many updates: even, or growing by the factor C
        of PERSO-12."""
        if updates < 1 or not epsilon > 0:
            raise ConfigError(
                f"a plan needs a positive epsilon and at least one update, found {epsilon} and "
                f"{updates}"
            )
        times = expected_times(task.peers, updates)
        shares = np.full(updates, epsilon / updates)
        if factor is not None:
            shares = allocate(epsilon, times, factor, int(times[-1]) + 1)
        noise = gradient_noise(task, law)
        return NoisePlan(
            tuple(noise.calibrate(share, delta=0.0) for share in shares.tolist()), warm
        )


def private_descent(
    algorithm: Personalized,
    graph: Graph | str,
    task: Personal,
    plan: NoisePlan,
    *,
    smoothing: int = 10,
    seed: int = 0,
    **options: Any,
) -> Run:
    """The last run of the phases; `smoothing`: units of time that warm models are propagated
    for."""
    last = None
    if plan.warm is not None:
        smooth = ModelPropagation(algorithm.coupling, algorithm.confidences)
        last = run(smooth, graph, task, privacy=plan.warm, steps=smoothing, seed=seed, **options)
    once = replace(algorithm, updates=1)
    for noise in plan.updates:
        last = run(
            once,
            graph,
            task,
            privacy=noise,
            steps=int(PATIENCE),
            seed=seed + 1,
            after=last,
            carry=None if last is None else "model",
            **options,
        )
    if last is None:
        raise ConfigError("a plan without updates has nothing to run")
    return last
