"""Logistic regression by a token walk: local, network and central privacy; four graphs (walk:RWE-3,
RWE-6).

Every method takes `STEPS` noisy steps of one peer's gradient. Local DP: a capped peer hands the
token on as it is. The network: it adds noise, and another peer is the observer. Central: no cap,
and a curator keeps secret who was drawn.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

import bruit as br
from bruit.algorithms.course import Course
from bruit.algorithms.task_door import TaskDoor
from bruit.algorithms.tokens.walk_sgd import State
from bruit.arrays import Array
from bruit.errors import ConfigError
from bruit.graphs import Graph
from bruit.privacy.ahead.walk_ahead import least_noise
from bruit.privacy.calibrate import least
from bruit.privacy.exact.compiled.paths import contributions
from bruit.privacy.ledger import Ledger
from bruit.privacy.toolbox.gaussian import mu_of, rdp_to_epsilon
from bruit.privacy.toolbox.sampled_renyi import fixed_size
from bruit.randomness import Replay
from bruit.tasks import Logistic
from bruit.tasks.data.split import Split
from bruit.tasks.records import Sample, finish_rows, pack
from papers.printed.walk_complete import least_printed_noise
from papers.printed.walk_sum import advanced

PEERS, STEPS, CAP, DELTA = 2000, 20_000, 12, 1e-6
RATES = (1e-4, 5e-4, 2e-3, 5e-3, 2e-2, 0.1, 0.5, 2.0)
ROWS, TESTED = 20_640, 4128
WEIGHTS = (1.5, -1.0, 0.8, 0.5, -0.5, 0.3, 0.0, 0.0)
METHODS = ("local", "network, published", "network, proven", "central")


def stand_in(peers: int, each: int, seed: int = 0) -> Logistic:
    """The stand-in of walk:RWE-3: 8 features of correlation 0.4, unit rows, no intercept; a fifth
    is held out."""
    rng = np.random.default_rng(seed)
    features = math.sqrt(0.4) * rng.normal(size=(ROWS, 1)) + math.sqrt(0.6) * rng.normal(
        size=(ROWS, 8)
    )
    labels = np.where(features @ np.array(WEIGHTS) + 0.25 * rng.normal(size=ROWS) > 0, 1.0, -1.0)
    ready, bound = finish_rows(
        (features - features.mean(axis=0)) / features.std(axis=0), "unit", intercept=False
    )
    dealt = Split(np.arange(peers * each), np.arange(0, peers * each + 1, each))
    tested = Sample(ready[-TESTED:], labels[-TESTED:])
    return Logistic(
        pack(ready, labels, dealt, held_out=tested, classes=("-1", "1"), row_bound=bound)
    )


def dealt(peers: int, each: int) -> tuple[str, Logistic]:
    """The houses of the source, dealt to so many peers, or the stand-in where they are not here."""
    try:
        return "houses", Logistic.load("houses", peers=peers)
    except ConfigError:
        return "stand-in", stand_in(peers, each)


def noise_multipliers(
    epsilon: float, peers: int = PEERS, steps: int = STEPS, cap: int = CAP
) -> dict[str, float]:
    """sigma / (2 clip) of every method at (epsilon, 1e-6), exactly accounted but for the published
    one.

    Local: `cap` releases. Network: Remark D.12 as printed, and walk:RW-14. Central: one of n peers
    drawn each step, one of them replaced.
    """
    found = (
        math.sqrt(cap) / mu_of(epsilon, DELTA),
        least_printed_noise(epsilon, DELTA, peers, cap),
        least_noise(epsilon, DELTA, peers, cap),
        central_noise(epsilon, peers, steps),
    )
    return dict(zip(METHODS, found, strict=True))


@lru_cache(maxsize=8)
def central_noise(epsilon: float, peers: int, steps: int) -> float:
    """The least z of a curator who draws one of n peers each step, by Renyi orders 2 to 64
    (walk:ADMM-9)."""

    def cost(z: float) -> float:
        return min(
            rdp_to_epsilon(k, steps * fixed_size(k, 1 / peers, z), DELTA)
            for k in map(float, range(2, 65))
        )

    return least(cost, epsilon)


def released_sigmas(epsilon: float) -> tuple[float, float]:
    """sigma of local and of central DP for L = 1 by the formulas of the released experiments; NOT
    the exact ones.

        local    sqrt(8 log(1.25 / d)) / e,  sqrt(2 K log(1 / d)) e + K e (exp(e) - 1) = epsilon,  d = delta / K, K = 12
        central  16 sqrt(T log(2 / delta) log(1.25 T / (delta n))) / (n epsilon)
    """
    slack = DELTA / CAP
    each = 1 / least(lambda inverse: advanced(CAP, 1 / inverse, slack), epsilon)
    central = (
        16
        / (PEERS * epsilon)
        * math.sqrt(STEPS * math.log(2 / DELTA) * math.log(1.25 * STEPS / (DELTA * PEERS)))
    )
    return math.sqrt(8 * math.log(1.25 / slack)) / each, central


@dataclass(frozen=True)
class Score:
    """Mean over the runs: objective on all peers' records, held-out accuracy, its deviation, and
    the step size."""

    objective: float
    accuracy: float
    spread: float
    rate: float


def objective(task: Logistic, models: Array) -> Array:
    """Mean loss of models on the records of all peers  # (runs,)."""
    pool = task.records.together()
    return np.asarray(
        np.logaddexp(0.0, -(models @ pool.features[0].T) * pool.targets[0]).mean(axis=1)
    )


def accuracies(task: Logistic, models: Array) -> Array:
    """Share of held-out records told apart, of every model  # (runs,)."""
    return np.array([task.evaluate(model[None])["accuracy"] for model in models])


def score(task: Logistic, models: Array, rate: float) -> Score:
    found = accuracies(task, models)
    return Score(
        float(objective(task, models).mean()), float(found.mean()), float(found.std()), rate
    )


def last_tokens(
    graph: Graph, task: Logistic, z: float, walk: br.WalkSGD, steps: int, runs: int
) -> Array:
    """The last token of independent walks with the library's own algorithm, compiled  # (runs,
    d)."""
    noise, found = br.Gaussian(clip=1.0, sigma=2 * z), []
    for seed in range(runs):
        run = br.run(
            walk,
            graph,
            task,
            privacy=noise,
            steps=steps,
            seed=seed,
            evaluate_every=0,
            engine=br.Bulk(fused=True),
        )
        found.append(run.estimates[run.trace.meetings.b[-1]])
    return np.array(found)


def forwarded(
    graph: Graph, task: Logistic, z: float, rate: float, cap: int, steps: int, runs: int
) -> Array:
    """The same for local DP, where a capped peer does nothing: the walk over the visits that
    contribute."""
    algorithm, noise, found = br.WalkSGD(rate=rate), br.Gaussian(clip=1.0, sigma=2 * z), []
    for seed in range(runs):
        dice, none = Replay(seed), np.zeros(graph.n, np.int64)
        path = algorithm.schedule.path(graph, steps, dice)
        path = path[contributions(path, none.copy(), none - 2**40, cap, 1)[0]]
        start = State(np.zeros((graph.n, task.dim)), none.copy(), none - 2**40)
        door = TaskDoor(task=task, mechanism=noise, dice=dice, ledger=Ledger(peers=graph.n))
        state, _ = algorithm.fused(
            start,
            Course(graph=graph, steps=len(path), public=None, door=door, dice=dice, acting=path),
        )
        found.append(state.token[path[-1]])
    return np.array(found)


def tuned(
    graph: Graph, task: Logistic, method: str, z: float, runs: int, rates: Sequence[float] = RATES
) -> Score:
    """The best step size of the grid by the mean objective of the last token, as in walk:RWE-3."""

    def models(rate: float) -> Array:
        if method == "local":
            return forwarded(graph, task, z, rate, CAP, STEPS, runs)
        walk = br.WalkSGD(rate=rate, cap=None if method == "central" else CAP)
        return last_tokens(graph, task, z, walk, STEPS, runs)

    return min(
        (score(task, models(rate), rate) for rate in rates), key=lambda found: found.objective
    )


def comparison(task: Logistic, epsilon: float, runs: int) -> dict[str, tuple[float, Score]]:
    """Noise multiplier and score of every method on the complete graph."""
    graph, noise = br.graphs.complete(task.peers), noise_multipliers(epsilon, task.peers)
    return {method: (z, tuned(graph, task, method, z, runs)) for method, z in noise.items()}


def graphs_of_source(peers: int = 2048) -> dict[str, Graph]:
    """Complete, hypercube, geometric of radius .07 (at 2048 peers), and a square grid of about as many peers
    (walk:RWE-6, RWE-7)."""
    side = math.isqrt(peers)
    return {
        "complete": br.graphs.complete(peers),
        "exponential": br.graphs.hypercube(round(math.log2(peers))),
        "geometric": br.graphs.geometric(peers, 0.07 * math.sqrt(2048 / peers), seed=0),
        "grid": br.graphs.grid(side, side),
    }


@dataclass(frozen=True)
class OnGraph:
    """Objective and accuracy on one graph, and the share of visits below the cap."""

    score: Score
    useful: float


def on_graph(
    graph: Graph, task: Logistic, runs: int, z: float = 0.508, rate: float = 0.02, cap: int = 13
) -> OnGraph:
    """Walk SGD over T = 10 n hops (walk:RWE-6)."""
    steps = 10 * graph.n
    useful = []
    for seed in range(runs):
        path, none = br.Walk().path(graph, steps, Replay(seed)), np.zeros(graph.n, np.int64)
        useful.append(contributions(path, none.copy(), none - 2**40, cap, 1)[0].mean())
    found = score(
        task, last_tokens(graph, task, z, br.WalkSGD(rate=rate, cap=cap), steps, runs), rate
    )
    return OnGraph(found, float(np.mean(useful)))
