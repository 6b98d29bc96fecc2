"""What would have prevented it, in one sentence with numbers: more noise, re-noised messages, fewer
rounds."""

from __future__ import annotations

import math
from typing import Any

from bruit.algorithms.algorithm import Algorithm
from bruit.algorithms.gossip.renoised import Renoised
from bruit.errors import BruitError
from bruit.graphs import Graph, GraphSequence
from bruit.how_many import how_many
from bruit.mechanisms import DiscreteGaussian, Gaussian, Laplace, Mechanism, RecordSums
from bruit.privacy.guarantee import Guarantee
from bruit.runs.result import Run
from bruit.runs.run import run
from bruit.tasks.task import Task


def noise_for(mechanism: Mechanism, target: float, delta: float, loss: float, releases: int) -> str:
    """The noise with which a view of this loss, or all releases together, cost at most the
    target."""
    if isinstance(mechanism, Gaussian):
        counted = loss if loss > 0 and math.isfinite(loss) else float(max(releases, 1))
        needed = Gaussian(clip=mechanism.clip).calibrate_pair(target, delta, counted)
        return f"sigma = {needed.sigma:.4g} instead of {mechanism.sigma:.4g}"
    if isinstance(mechanism, RecordSums):
        sums = mechanism.calibrate(target, delta, max(releases, 1))
        return f"sigma = {sums.sigma:.4g} instead of {mechanism.sigma:.4g}"
    if isinstance(mechanism, Laplace):
        scale = Laplace(clip=mechanism.clip).calibrate(target, max(releases, 1)).scale
        return f"scale = {scale:.4g} instead of {mechanism.scale:.4g}"
    if isinstance(mechanism, DiscreteGaussian):
        discrete = DiscreteGaussian(clip=mechanism.clip, grid=mechanism.grid).calibrate(
            target, delta, max(releases, 1)
        )
        return f"sigma = {discrete.sigma:.4g} instead of {mechanism.sigma:.4g}"
    return "more noise"


def defence(
    rehearsal: Run,
    task: Task,
    of: int,
    observers: tuple[int, ...],
    delta: float,
    target: float,
    proven: Guarantee,
) -> str:
    """One sentence: what brings the epsilon of this pair down to the target, by what is proven."""
    mechanism, goal = rehearsal.privacy, f"epsilon = {target:.3g}"
    if mechanism is None:
        needed = Gaussian().calibrate(
            target, delta, max(1, int(rehearsal.facts().releases().max(initial=1)))
        )
        return f"Defence: without noise nothing is hidden; {goal} needs sigma = {needed.sigma:.4g} per unit of clip."
    releases = int(rehearsal.facts().releases()[of])
    ways = [noise_for(mechanism, target, delta, proven.loss, releases)]
    now = float(proven.epsilon(delta))
    again = _renoised(rehearsal, task, of, observers, delta, now)
    fewer = _fewer(rehearsal, task, of, observers, delta, target)
    ways += [way for way in (again, fewer) if way]
    return f"Defence: {goal} (now {now:.3g} proven) needs {'; or '.join(ways)}."


def _renoised(
    rehearsal: Run, task: Task, of: int, observers: tuple[int, ...], delta: float, now: float
) -> str:
    """What fresh noise on every message copy would give, when that is less than now
    (gossip:MUF-X1)."""
    algorithm = rehearsal.algorithm
    once = int(rehearsal.facts().releases().max(initial=0)) <= 1
    if not (algorithm.linear and once and algorithm.schedule.synchronous) or isinstance(
        algorithm, Renoised
    ):
        return ""
    found = _epsilon(
        Renoised(), rehearsal.graph, rehearsal.privacy, task, rehearsal.steps, of, observers, delta
    )
    if found is None or found > 0.99 * now:
        return ""
    return f"re-noised gossip (tau = 0.1) at the same sigma has epsilon = {found:.3g}"


def _fewer(
    rehearsal: Run, task: Task, of: int, observers: tuple[int, ...], delta: float, target: float
) -> str:
    """The most rounds within the target: the loss grows with the rounds."""
    if not rehearsal.algorithm.schedule.synchronous:
        return ""

    def within(steps: int) -> bool:
        found = _epsilon(
            rehearsal.algorithm,
            rehearsal.graph,
            rehearsal.privacy,
            task,
            steps,
            of,
            observers,
            delta,
        )
        return found is not None and found <= target

    low, high = 0, rehearsal.steps
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if within(middle) else (low, middle)
    return (
        f"at most {how_many(low, 'round')} instead of {rehearsal.steps}"
        if 0 < low < rehearsal.steps and within(low)
        else ""
    )


def _epsilon(
    algorithm: Algorithm[Any],
    graph: Graph | GraphSequence,
    mechanism: Mechanism | None,
    task: Task,
    steps: int,
    of: int,
    observers: tuple[int, ...],
    delta: float,
) -> float | None:
    try:
        tried = run(algorithm, graph, task, privacy=mechanism, steps=steps, evaluate_every=0)
        return float(tried.epsilon(of, observers, delta))
    except BruitError:
        return None  # this way is not open here; the others are named
