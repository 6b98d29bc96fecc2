"""Private personal models: accuracy against dimension, budget and local size (perso:EXP-2).

A hundred peers whose linear targets lie in a plane; records bounded in L1 (Laplace noise) or L2
(Gaussian noise), record level, delta = 1e-5, models from zero, every peer makes the same number of
updates and then stops. Each number is the best of five couplings and four numbers of updates on the
test records of the same seeds, as in the specification: optimistic, by the same amount on both
sides. Means over three seeds; small users are in parentheses.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

import numpy as np

import bruit as br
from bruit.algorithms.personal.personalized import Personalized
from bruit.arrays import Array, Bools
from bruit.graphs import Graph
from bruit.graphs.similarity import similarity
from bruit.personal.private import gradient_noise
from bruit.tasks.personal import Personal
from papers.figures.personal_problems import angles

DELTA, SEEDS, EPSILONS = 1e-5, (0, 1, 2), (10.0, 3.0, 1.0)
COUPLINGS, UPDATES, UNHURRIED = (0.02, 0.1, 0.5, 2.0, 10.0), (1, 2, 5, 10), 50
Pair = tuple[float, float]  # everybody, small users


@dataclass(frozen=True)
class Case:
    """How many records peers have, in how many dimensions, and which noise."""

    sizes: tuple[int, int]
    dim: int
    law: str

    @property
    def small(self) -> int:
        """Up to so many records a user is a small one."""
        return 30 if self.sizes[1] <= 100 else 100


@dataclass(frozen=True)
class Row:
    """Accuracies of models fitted alone, of private ones for every epsilon, and of those without
    privacy."""

    local: Pair
    private: dict[float, Pair]
    together: Pair


CASES = (
    Case((10, 100), 2, "laplace"),
    Case((10, 100), 10, "gaussian"),
    Case((10, 100), 20, "gaussian"),
    Case((10, 1000), 10, "gaussian"),
    Case((10, 1000), 20, "gaussian"),
)
MEASURED = {  # perso:EXP-2, everybody: local, epsilon 10, 3, 1, no privacy
    CASES[0]: (0.960, 0.978, 0.972, 0.949, 0.982),
    CASES[1]: (0.870, 0.922, 0.808, 0.650, 0.956),
    CASES[2]: (0.808, 0.870, 0.706, 0.588, 0.939),
    CASES[3]: (0.955, 0.974, 0.965, 0.934, 0.979),
    CASES[4]: (0.933, 0.967, 0.947, 0.880, 0.974),
}


def private_row(case: Case, epsilons: tuple[float, ...] = EPSILONS) -> Row:
    """Means over the seeds."""
    local, together, private = [], [], {epsilon: [] for epsilon in epsilons}  # type: ignore[var-annotated]
    for seed in SEEDS:
        task, weights, trust, _ = angles(
            seed, case.dim, case.sizes, rows="l1" if case.law == "laplace" else "l2"
        )
        small, graph, alone = (
            task.sizes <= case.small,
            similarity(weights),
            task.value(np.arange(task.peers)),
        )
        local.append(_split(task.scores(alone), small))
        together.append(_split(best_scores(task, graph, trust, case.law, inf), small))
        for epsilon in epsilons:
            private[epsilon].append(
                _split(best_scores(task, graph, trust, case.law, epsilon), small)
            )
    return Row(
        _mean(local), {epsilon: _mean(found) for epsilon, found in private.items()}, _mean(together)
    )


def best_scores(task: Personal, graph: Graph, trust: Array, law: str, epsilon: float) -> Array:
    """Everybody's accuracy under the best setting; the run's own account is checked against the
    budget."""
    found = []
    for coupling in COUPLINGS:
        for count in (UNHURRIED,) if epsilon == inf else UPDATES:
            noise = None
            if epsilon < inf:
                noise = gradient_noise(task, law).calibrate(
                    epsilon, DELTA if law == "gaussian" else 0.0, count
                )
            smooth = tuple((task.ridge + 0.25).tolist())
            descent = Personalized(coupling, smooth, tuple(trust.tolist()), count)
            done = br.run(
                descent,
                graph,
                task,
                steps=6 * count,
                privacy=noise,
                evaluate_every=0,
                engine=br.Bulk(fused=True),
            )
            found.append((task.scores(done.estimates), done))
    scores, chosen = max(found, key=lambda pair: float(pair[0].mean()))
    if epsilon < inf and chosen.epsilon(delta=DELTA) > epsilon * (1 + 1e-6):
        raise SystemExit(f"a private run cost more than epsilon = {epsilon}")
    return scores


def _split(scores: Array, small: Bools) -> Pair:
    return float(scores.mean()), float(scores[small].mean())


def _mean(pairs: list[Pair]) -> Pair:
    everybody, small = np.mean(pairs, axis=0).tolist()
    return everybody, small
