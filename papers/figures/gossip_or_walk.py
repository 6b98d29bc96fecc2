"""Gossip against the walk at equal mean loss on four graphs (walk:RWE-7, the source's Table 7.1).

`ROUNDS` gradients of everybody, each averaged by gossip, against 10 n steps of a token. A mean loss
is a summary, not a guarantee; it is converted at delta = 1e-6 (walk:RW-13). Each side is charged in
two ways:

    gossip, printed    R K d_v / n: sums of single messages (Thm 6.6)             gossip, proven   R: local DP
    walk, printed      (T/n) (H_T - S_T(v, v)) / n at any order (Thm 7.7)         walk, proven     walk:RW-14, cool-down

Thm 7.7 holds below an order that the source's own accuracies rule out: with that condition the
printed walk needs the noise of `conditioned`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

import bruit as br
from bruit.arrays import Array
from bruit.graphs import Graph, chebyshev_gamma, spectral_gap
from bruit.privacy.ahead.exponential_sums import exponential_sum
from bruit.privacy.ahead.passages import passages
from bruit.privacy.ahead.walk_ahead import complete_law, contribution_divergence
from bruit.privacy.ahead.walk_pairs import LAMBDAS, WalkSummary, orders_at
from bruit.privacy.calibrate import least
from bruit.privacy.toolbox.gaussian import zcdp_to_epsilon
from bruit.tasks import Logistic
from papers.figures.walk_learning import DELTA, Score, accuracies, last_tokens
from papers.figures.walk_lengths import gossip_steps
from papers.printed.walk import complete_sum, mean_epsilon, mean_sums

ROUNDS, CAP, REST, OBSERVERS = 10, 13, 20, 32
EPSILONS = (0.5, 1.0, 2.0)
WALK_RATES, GOSSIP_RATES = (2e-4, 1e-3, 2e-3, 4e-3, 8e-3, 1.6e-2), (0.1, 0.5, 2.0)


def exchanges(graph: Graph) -> int:
    """Accelerated exchanges a gradient; one is enough where everybody hears everybody."""
    return 1 if graph.degrees.min() == graph.n - 1 else gossip_steps(graph, 1.0)


def gossip_noise(mean: float, epsilon: float) -> float:
    """The least z with a mean divergence alpha mean / (2 z^2) that converts to epsilon."""
    return least(lambda z: zcdp_to_epsilon(mean / (2 * z**2), DELTA, tight=False), epsilon)


def printed_gossip_mean(graph: Graph) -> float:
    """R K max_v d_v / n, never above R, the local loss."""
    return ROUNDS * min(1.0, exchanges(graph) * int(graph.degrees.max()) / graph.n)


def rest_of(graph: Graph) -> int:
    """The cool-down: none where every next holder is uniform anyway."""
    return 1 if exchanges(graph) == 1 else REST


def summary_of(graph: Graph) -> WalkSummary:
    """`walk_pairs.summary` in the views of the peer of most neighbors and of some others, drawn
    once.

    On the complete graph all views are alike and the law is known in closed form.
    """
    rest, lambdas = rest_of(graph), np.array(LAMBDAS)
    if rest == 1:
        orders, law = orders_at(lambdas, 1.0), complete_law(graph.n)
        seen = np.array([(k - 1) * contribution_divergence(law, k, 1.0) for k in orders.tolist()])
        return WalkSummary(lambdas, seen, (1 - 1 / graph.n) * seen[:, None])
    rule = exponential_sum(lambdas)
    drawn = np.random.default_rng(0).choice(graph.n, OBSERVERS - 1, replace=False)
    block = np.unique(np.append(drawn, graph.degrees.argmax()))
    walk = passages(graph.weights, rule)
    passage, either = walk.expected(block)
    growth = np.minimum(passage + walk.back(rest)[:, :, None], either)
    growth[:, block, np.arange(len(block))] = 0.0
    seen = np.log1p(growth)
    return WalkSummary(lambdas, seen.max(axis=(1, 2)), seen.sum(axis=1) / graph.n)


@dataclass(frozen=True)
class Noise:
    """Noise multipliers of the walk and of gossip that give one mean epsilon, one a way to
    charge."""

    walk_printed: float
    walk_conditioned: float
    walk_proven: float
    gossip_printed: float
    gossip_proven: float


def noises(graph: Graph, epsilons: Sequence[float] = EPSILONS) -> dict[float, Noise]:
    """What every mean epsilon asks for on this graph."""
    proven, steps = summary_of(graph), 10 * graph.n
    sums = (
        complete_sum(graph.n, steps) * (1 - 1 / graph.n)
        if rest_of(graph) == 1
        else mean_sums(graph, steps).max()
    )
    mean = 10 * float(sums)

    def of(epsilon: float) -> Noise:
        printed = least(lambda z: zcdp_to_epsilon(mean / z**2, DELTA, tight=False), epsilon)
        conditioned = least(lambda z: mean_epsilon(mean, z, DELTA), epsilon)
        return Noise(
            printed,
            conditioned,
            proven.least_noise_for_mean(epsilon, DELTA, CAP),
            gossip_noise(printed_gossip_mean(graph), epsilon),
            gossip_noise(ROUNDS, epsilon),
        )

    return {epsilon: of(epsilon) for epsilon in epsilons}


def gossip_score(
    graph: Graph, task: Logistic, z: float, runs: int, rates: Sequence[float] = GOSSIP_RATES
) -> Score:
    """Mean accuracy of the peers' models after the last average, at the best step size."""
    count = exchanges(graph)
    gamma = 1.0 if count == 1 else chebyshev_gamma(spectral_gap(graph))
    noise = br.Gaussian(clip=1.0, sigma=2 * z)

    def accuracy(rate: float, seed: int) -> float:
        algorithm = br.GossipSGD(rate=rate, mixing=count, gamma=gamma)
        run = br.run(
            algorithm, graph, task, privacy=noise, steps=ROUNDS * count, seed=seed, evaluate_every=0
        )
        return float(task.evaluate(run.estimates[:: max(1, graph.n // 64)])["accuracy"])

    found = [(rate, [accuracy(rate, seed) for seed in range(runs)]) for rate in rates]
    rate, best = max(found, key=lambda pair: float(np.mean(pair[1])))
    return Score(math.nan, float(np.mean(best)), float(np.std(best)), rate)


def walk_score(graph: Graph, task: Logistic, z: float, rest: int, runs: int) -> Score:
    """Accuracy of the last token after 10 n hops, at the best step size."""

    def found(rate: float) -> Array:
        walk = br.WalkSGD(rate=rate, cap=CAP, rest=rest)
        return accuracies(task, last_tokens(graph, task, z, walk, 10 * graph.n, runs))

    rate, best = max(
        ((rate, found(rate)) for rate in WALK_RATES), key=lambda pair: float(pair[1].mean())
    )
    return Score(math.nan, float(best.mean()), float(best.std()), rate)


def cell(graph: Graph, task: Logistic, noise: Noise, gossips: int, walks: int) -> dict[str, Score]:
    """One cell of the table, charged in every way: so many runs of gossip, and so many walks."""
    gossip = gossip_score(graph, task, noise.gossip_printed, gossips)
    same = math.isclose(noise.gossip_printed, noise.gossip_proven, rel_tol=1e-3)
    proven = gossip if same else gossip_score(graph, task, noise.gossip_proven, gossips)
    return {
        "gossip, printed": gossip,
        "gossip, proven": proven,
        "walk, printed": walk_score(graph, task, noise.walk_printed, 1, walks),
        "walk, conditioned": walk_score(graph, task, noise.walk_conditioned, 1, walks),
        "walk, proven": walk_score(graph, task, noise.walk_proven, rest_of(graph), walks),
    }
