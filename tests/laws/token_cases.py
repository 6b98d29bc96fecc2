"""Guarantees of walks, rings and counts on small cases: enumerations of walks and of answers as
truth."""

import math
from functools import lru_cache

import numpy as np

import bruit as br
from bruit.algorithms.tokens.token_histogram import TokenHistogram
from bruit.algorithms.tokens.walk_sum import WalkSum
from bruit.graphs import complete, ring
from bruit.mechanisms.randomized_response import RandomizedResponse
from bruit.privacy.ahead.iteration import last_iterate
from bruit.privacy.ahead.ring import (
    additive_guarantee,
    ring_sum_guarantee,
    shared_noise,
    spaced_noise,
)
from bruit.privacy.ahead.ring_histogram import (
    RingHistogram,
    conditional_guarantee,
    histogram_guarantee,
)
from bruit.privacy.ahead.walk_ahead import Ending, complete_law, segment_law, walk_ahead
from bruit.privacy.ahead.walk_pairs import pair_guarantee, summary
from bruit.privacy.ahead.walk_sum import summation
from bruit.privacy.checks import TheoremCase
from bruit.privacy.formulas.randomized_response import gamma
from bruit.privacy.theorems.walk import RealizedWalk
from bruit.privacy.theorems.walk_realized import realized, visits
from bruit.runs.run import rehearse, run
from bruit.tasks import Mean
from bruit.tasks.task import Constants
from tests.laws import guarantee_truths as truths
from tests.laws.gossip_cases import SOME, charged, run_case
from tests.laws.guarantee_truths import gaussian_pair
from tests.laws.slow_case import SlowCase

PATH = [0, 2, 1, 3, 0, 0, 2, 3, 1, 2, 0, 3, 3, 2, 1, 0, 2]
SMOOTH = Constants(0.5, 1.0, 0.0, "declared")
FEW = {"noises": (0.7, 9.0), "steps": (1, 3)}  # where every profile is dear


@lru_cache
def rehearsed(algorithm, graph, steps):
    return rehearse(algorithm, graph, br.Gaussian(clip=0.5, sigma=1.0), steps)


def realized_truth(z, steps, observers):
    """Walk SGD with quadratic losses of any curvature: contracting steps of c = 1, 0.8, 0.3."""
    trace = rehearsed(br.WalkSGD(rate=0.5), complete(4), steps).facts().meetings.b.tolist()
    return gaussian_pair(
        max(truths.walk_energy(trace, 3, observers, [True] * steps, c) for c in (1.0, 0.8, 0.3)), z
    )


def visited(z, steps, observers, **more):
    return realized(visits(PATH[: 5 * steps], 4, **more), 3, observers, z)


def visited_truth(*keeps, published=False):
    def truth(z, steps, observers):
        trace = PATH[: 5 * steps]
        flags = [True] * len(trace)
        return gaussian_pair(
            max(truths.walk_energy(trace, 3, observers, flags, c, published) for c in keeps), z
        )

    return truth


def uniform(n):
    return np.full((n, n), 1 / n)


def walks(weights, of, length=5, published=False, begins=False):
    """All walks of that length, from a uniform first holder or from the peer itself."""
    n = len(weights)
    start = [float(v == of) for v in range(n)] if begins else [1 / n] * n
    return lambda z, cap, observers: truths.all_walks(
        weights, start, length, of, observers, cap, z, published
    )


def answers(z, windows):
    """The worst of two people's answers among uniform elements, whatever the other person's
    value."""
    truth = 1 / (1 + math.exp(-1 / z))
    return truths.Worst(
        tuple(truths.windows_of_answers(truth, [other], windows) for other in (0, 1))
    )


def worst_pair(z, count, _):
    """So many binary randomized answers: the worst pair of as many pure statements."""
    return truths.windows_of_answers(1 / (1 + math.exp(-1 / z)), [], [0] * count)


def histogram(z, cycles, make=histogram_guarantee, published=False):
    return make(RingHistogram(3, cycles, 2, gamma(2, 1 / z)), 1e-7, published)


def histogram_truth(z, cycles, _):
    first = math.ceil(gamma(2, 1 / z) * 3)
    return answers(z, [first] + [0] * (cycles - 1))


def counts(z, hops, observers):
    """The same by a run: peers 0 and 1 answer, peer 2 looks on."""
    mechanism = RandomizedResponse(2, gamma(2, 1 / z))
    found = run(
        TokenHistogram(),
        ring(3),
        Mean(np.eye(2)[[0, 1, 0]]),
        privacy=mechanism,
        steps=hops,
        evaluate_every=0,
    )
    return found.accountant().guarantee(of=0, seen_by=observers)


def counts_truth(z, hops, observers):
    return histogram_truth(z, hops // 3, observers)


TOKENS = {
    "token_sum": (
        run_case("a sum by a walk", WalkSum(), complete(4), 3, exact=False, steps=(3, 7, 12)),
    ),
    "token_counts": (
        TheoremCase(
            name="a histogram by a token",
            make=counts,
            truth=counts_truth,
            steps=(3, 6, 9),
            noises=(0.7, 9.0),
            observers=((2,),),
            refused=(lambda: counts(1.0, 3, (0,)), lambda: counts(1.0, 3, (0, 2))),
        ),
    ),
    "iteration": (
        TheoremCase(
            name="the last iterate",
            make=lambda z, k, _: last_iterate([1.0] * k + [0.0] * (5 - k), z),
            truth=lambda z, k, _: gaussian_pair(
                max(
                    truths.walk_energy([1] * 5, 1, (0,), [t < k for t in range(5)], c, True)
                    for c in (1.0, 0.8, 0.3)
                ),
                z,
            ),
            refused=(lambda: last_iterate([-1.0], 1.0), lambda: last_iterate([1.0], 0.0)),
        ),
        TheoremCase(
            name="one contribution",
            make=lambda z, *_: last_iterate([1.0, 0, 0], z),
            steps=(1,),
            exact=True,
            truth=lambda z, *_: gaussian_pair(
                truths.walk_energy([1] * 3, 1, (0,), [1, 0, 0], 1.0, True), z
            ),
        ),
    ),
    "ring": (
        TheoremCase(
            name="spaced noise",
            make=lambda z, k, v: ring_sum_guarantee(5, spaced_noise(5, k), 3, v, z),
            truth=lambda z, k, v: gaussian_pair(
                truths.token_around(5, spaced_noise(5, k), v, 3), z
            ),
            exact=True,
            refused=(
                lambda: ring_sum_guarantee(5, spaced_noise(5, 1), 2, (2, 3), 1.0),
                lambda: ring_sum_guarantee(5, -spaced_noise(5, 1), 2, 3, 1.0),
                lambda: ring_sum_guarantee(4, spaced_noise(5, 1), 2, 3, 1.0),
            ),
        ),
        TheoremCase(
            name="shares of noise",
            make=lambda z, k, v: ring_sum_guarantee(5, shared_noise(5, k), 3, v, z, True),
            truth=lambda z, k, v: gaussian_pair(
                truths.token_around(5, shared_noise(5, k), v, 3, True), z
            ),
            exact=True,
            observers=((1,), (0, 1)),
        ),
        TheoremCase(
            name="additive noise",
            make=lambda z, k, _: additive_guarantee(5, k, 1 / z),
            steps=(1, 3),
            noises=(0.7, 9.0),
            truth=worst_pair,
            refused=(lambda: additive_guarantee(1, 1, 1),),
        ),
    ),
    "ring_histogram": (
        TheoremCase(
            name="a histogram",
            make=lambda z, k, _: histogram(z, k),
            truth=histogram_truth,
            steps=(1, 2),
            noises=(0.7, 9.0),
            refused=(lambda: RingHistogram(3, 1, 2, 0.0), lambda: RingHistogram(2, 1, 2, 0.5)),
        ),
        TheoremCase(
            name="a published histogram",
            make=lambda z, k, _: histogram(z, k, published=True),
            truth=histogram_truth,
            steps=(1, 2),
            noises=(0.7, 9.0),
        ),
        TheoremCase(
            name="a histogram, a heuristic",
            make=lambda z, k, _: histogram(z, k, conditional_guarantee),
            steps=(1, 2),
            noises=(0.7, 9.0),
        ),
    ),
    "walk": (
        TheoremCase(
            name="walk SGD",
            make=charged(br.WalkSGD(rate=0.5), complete(4), 3, SMOOTH, RealizedWalk(rate=0.5)),
            truth=realized_truth,
            steps=(4, 8, 12),
            observers=SOME,
            refused=(
                lambda: charged(
                    br.WalkSGD(rate=0.5), complete(4), 3, SMOOTH, RealizedWalk(rate=0.5)
                )(1, 4, (3,)),
            ),
        ),
    ),
    "walk_realized": (
        SlowCase(
            name="a walk that happened",
            make=visited,
            truth=visited_truth(1.0, 0.8, 0.3),
            observers=((0,), (0, 1)),
            refused=(
                lambda: visited(1.0, 1, (3,)),
                lambda: visited(1.0, 1, (0, 3)),
                lambda: visits([9], 4),
            ),
        ),
        SlowCase(
            name="a sum that happened",
            make=lambda z, t, v: visited(z, t, v, additive=True, published=True),
            truth=visited_truth(1.0, published=True),
            exact=True,
            observers=((0,),),
        ),
    ),
    "walk_ahead": (
        SlowCase(
            name="a walk on the complete graph",
            make=lambda z, cap, _: walk_ahead(complete_law(4), cap, z),
            truth=walks(uniform(4), 3),
            **FEW,
            refused=(
                lambda: complete_law(4, 4),
                lambda: walk_ahead(complete_law(4), 0, 1.0),
                lambda: walk_ahead(complete_law(4), 1, 0.0),
            ),
        ),
        SlowCase(
            name="a walk that begins at its peer, Renyi",
            make=lambda z, cap, _: walk_ahead(complete_law(4), cap, z, route="renyi"),
            truth=walks(uniform(4), 3, begins=True),
            **FEW,
        ),
        SlowCase(
            name="observers of a walk",
            make=lambda z, cap, v: walk_ahead(segment_law(uniform(4), 3, v), cap, z),
            truth=walks(uniform(4), 3),
            observers=((0,), (0, 1)),
            **FEW,
            refused=(
                lambda: segment_law(uniform(4), 3, [3]),
                lambda: segment_law(uniform(4) / 2, 3, [0]),
            ),
        ),
        SlowCase(
            name="a published token, a heuristic",
            make=lambda z, cap, _: walk_ahead(
                complete_law(4), cap, z, ending=Ending(True, approximate=True)
            ),
            **FEW,
        ),
    ),
    "walk_pairs": (
        SlowCase(
            name="a pair of a walk that begins at its peer",
            make=lambda z, cap, v: pair_guarantee(ring(4), 2, v, z, cap),
            truth=walks(ring(4).weights.toarray(), 2, begins=True),
            observers=((0,), (0, 1)),
            **FEW,
            refused=(
                lambda: pair_guarantee(ring(4), 0, (0, 1), 1.0),
                lambda: pair_guarantee(ring(4), 9, 0, 1.0),
            ),
        ),
        SlowCase(
            name="the worst pair of a walk",
            make=lambda z, cap, _: summary(ring(4)).guarantee(z, cap),
            truth=walks(ring(4).weights.toarray(), 1),
            **FEW,
        ),
    ),
    "walk_sum": (
        SlowCase(
            name="a published sum",
            make=lambda z, t, _: summation(3, t, z, first="uniform", grid=0.005),
            truth=lambda z, t, _: walks(uniform(3), 2, t, True)(z, 99, (0,)),
            steps=(1, 5),
            noises=(0.7, 9.0),
            refused=(
                lambda: summation(3, 0, 1.0),
                lambda: summation(3, 2, 0.0),
                lambda: summation(3, 2, 1.0, route="cycles"),
            ),
        ),
        SlowCase(
            name="a sum of a walk that begins at its peer, Renyi",
            make=lambda z, t, _: summation(3, t, z, published=False, route="renyi"),
            truth=lambda z, t, _: walks(uniform(3), 2, t, begins=True)(z, 99, (0,)),
            steps=(1, 5),
            noises=(0.7, 9.0),
        ),
        SlowCase(
            name="a sum, whole cycles",
            make=lambda z, t, _: summation(
                3, t, z, first="uniform", published=False, route="cycles", tail=1e-10
            ),
            truth=lambda z, t, _: walks(uniform(3), 2, t)(z, 99, (0,)),
            steps=(5,),
            noises=(2.0, 9.0),
        ),
    ),
}
