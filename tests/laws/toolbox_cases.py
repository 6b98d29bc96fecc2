"""Guarantees of ADMM and of the toolbox on small cases: audits of linear-quadratic runs and closed
forms as truth."""

import math

from bruit.privacy.ahead import admm
from bruit.privacy.checks import TheoremCase
from bruit.privacy.formulas.heterogeneous import statements
from bruit.privacy.formulas.randomized_response import answer
from bruit.privacy.formulas.shuffling import amplified
from bruit.privacy.formulas.subsampled import dp_sgd
from bruit.privacy.profile import GaussianProfile
from papers.printed.classical import classical
from papers.theorems.adjacency import widened
from tests.laws import guarantee_truths as truths
from tests.laws.slow_case import SlowCase
from tests.laws.token_cases import worst_pair

# ADMM: L = 1, gamma = 1/2, so that sigma = 2 z


def duals(z, relaxation=0.5):
    return admm.AdmmNoise(1.0, 0.5, 2 * z, relaxation)


def admm_truth(energy, *more):
    """The worst of quadratic losses of the others, over curvatures; an audit in units of sigma =
    1."""

    def truth(z, rounds, observers):
        return GaussianProfile(
            math.sqrt(max(energy(5, rounds, 0.5, 0.5, h, *more) for h in (0.0, 0.5, 5.0))) / (2 * z)
        )

    return truth


def models_truth(z, rounds, observers):
    """The last so many users look on; the first observer is an outsider."""
    exact = max(
        truths.centralized(6, rounds, 0.5, 0.5, h, len(observers) - 1)[0] for h in (0.0, 0.5, 5.0)
    )
    return GaussianProfile(math.sqrt(exact) / (2 * z))


def shared_model_truth(z, releases, observers):
    exact = max(truths.noisy_models(5, releases + 1, 0.5, 0.5, h) for h in (0.0, 0.5, 5.0))
    return GaussianProfile(math.sqrt(exact) / (z / 5))


def shuffled(z, *_):
    truth = 1 / (1 + math.exp(-1 / z))
    return truths.Worst(
        tuple(truths.Outcomes(*truths.shuffled_yes(truth, [value] * 999)) for value in (0, 1))
    )


TOOLBOX = {
    "admm": (
        TheoremCase(
            name="all duals",
            make=lambda z, k, _: admm.transcript_guarantee(duals(z), k),
            truth=admm_truth(truths.all_duals),
            refused=(
                lambda: duals(-1.0),
                lambda: duals(1.0, 1.5),
                lambda: admm.transcript_guarantee(duals(1.0), -1),
            ),
        ),
        TheoremCase(
            name="the server",
            make=lambda z, k, _: admm.federated_guarantee(duals(z), k),
            truth=admm_truth(truths.all_duals),
        ),
        TheoremCase(
            name="a token",
            make=lambda z, k, _: admm.decentralized_guarantee(duals(z), k),
            truth=admm_truth(truths.all_duals),
        ),
        TheoremCase(
            name="models only",
            make=lambda z, k, v: admm.models_guarantee(duals(z), 6, k, len(v) - 1),
            truth=models_truth,
            observers=((9,), (9, 5), (9, 4, 5)),
            steps=(1, 3, 6),
            refused=(
                lambda: admm.models_guarantee(duals(1.0), 6, 1, 6),
                lambda: admm.models_guarantee(duals(1.0), 1, 1),
            ),
        ),
        TheoremCase(
            name="consensus noise",
            make=lambda z, k, _: admm.consensus_guarantee(5, k, 1.0, 0.5, z / 5),
            truth=shared_model_truth,
            refused=(lambda: admm.consensus_guarantee(5, 1, 1.0, 0.5, 1.0, 1.0),),
        ),
        TheoremCase(
            name="models, a heuristic", make=lambda z, k, _: admm.models_estimate(duals(z), 6, k)
        ),
        TheoremCase(
            name="sampled users, a heuristic",
            make=lambda z, k, _: admm.federated_estimate(duals(z), 60, 6, k),
        ),
        TheoremCase(
            name="a token, a heuristic",
            make=lambda z, k, _: admm.decentralized_estimate(duals(z), 60, k),
        ),
    ),
    "printed/classical": (
        TheoremCase(
            name="classical noise",
            make=lambda z, *_: classical(1 / z, 1e-5),
            noises=(1.0, 2.0, 9.0),
            truth=lambda z, *_: GaussianProfile(1 / z / math.sqrt(2 * math.log(1.25e5))),
            exact=True,
            refused=(lambda: classical(1.5, 1e-5), lambda: classical(0.5, 0.0)),
        ),
        TheoremCase(
            name="classical noise for a group",
            make=lambda z, k, _: widened(classical(1 / z, 1e-5), "group", k),
            noises=(1.0, 2.0, 9.0),
            exact=True,
            truth=lambda z, k, _: GaussianProfile(k / z / math.sqrt(2 * math.log(1.25e5))),
            refused=(lambda: widened(classical(0.5, 1e-5), "user", 2),),
        ),
    ),
    "heterogeneous": (
        SlowCase(
            name="statements",
            make=lambda z, k, _: statements([1 / z] * k),
            noises=(2.0,),
            steps=(1, 2),
            truth=worst_pair,
            refused=(lambda: statements([-1.0]),),
        ),
    ),
    "randomized_response": (
        TheoremCase(
            name="an answer",
            make=lambda z, *_: answer(2, 1 / z),
            noises=(1.0, 9.0),
            steps=(1,),
            exact=True,
            truth=lambda z, *_: truths.Outcomes(
                *truths.shuffled_yes(1 / (1 + math.exp(-1 / z)), [])
            ),
            refused=(lambda: answer(0, 1.0),),
        ),
    ),
    "shuffling": (
        TheoremCase(
            name="a shuffler",
            make=lambda z, *_: amplified(1 / z, 1000, 1e-7),
            truth=shuffled,
            noises=(0.7, 9.0),
            steps=(1,),
            refused=(lambda: amplified(1.0, 0, 1e-7), lambda: amplified(1.0, 10, 1.0)),
        ),
    ),
    "subsampled": (
        TheoremCase(
            name="private SGD",
            make=lambda z, k, _: dp_sgd(100, 5, z, k),
            truth=lambda z, *_: truths.OneSample(0.05, z),
            refused=(lambda: dp_sgd(5, 6, 1.0, 1), lambda: dp_sgd(5, 1, -1.0, 1)),
        ),
        TheoremCase(
            name="private SGD, replace",
            make=lambda z, k, _: dp_sgd(100, 5, z, k, "replace"),
            noises=(0.7, 9.0),
        ),
    ),
}
