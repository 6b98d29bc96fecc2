"""Guarantees of gossip, GOPA and hidden graphs on small cases: runs and joint Gaussians as
truth."""

import math
from dataclasses import replace
from functools import lru_cache

import numpy as np

import bruit as br
from bruit.graphs import butterfly, complete, grid, k_out, path, ring, star
from bruit.privacy.account import Accountant
from bruit.privacy.ahead import private_graph
from bruit.privacy.ahead.gopa_binomial import gopa_binomial_guarantee
from bruit.privacy.ahead.gopa_k_out import Crowd, k_out_guarantee
from bruit.privacy.ahead.masked_consensus import masked_guarantee
from bruit.privacy.ahead.secure_sums import noisy_secure_sum_guarantee, secure_sum_guarantee
from bruit.privacy.checks import TheoremCase
from bruit.privacy.composition import composed
from bruit.privacy.exact import MaskedRound
from bruit.privacy.profile import GaussianProfile
from bruit.privacy.theorems.descent import (
    FixedGradients,
    GossipDescent,
    fixed_statistics_guarantee,
    quadratic_guarantee,
    sampled_quadratic_guarantee,
)
from bruit.privacy.theorems.gopa import gopa_guarantee
from bruit.privacy.theorems.group import group_guarantee
from bruit.runs.engines.forms import exact_losses
from bruit.runs.run import rehearse
from bruit.tasks.task import Constants
from papers.theorems import closed_forms
from tests.laws import guarantee_truths as truths
from tests.laws.guarantee_truths import gaussian_pair
from tests.laws.slow_case import SlowCase

SOME = ((0,), (0, 2))
GRID, RING, CHAIN, BUTTERFLY = grid(2, 3), ring(7), path(4), butterfly(4)
TAU = MaskedRound(2, 0.4, 0.7)
LINE = GossipDescent(CHAIN, 1, 2)
SLOPES = (0.3, 0.15, 0.6, 0.3)


def charged(algorithm, graph, of, constants=None, theorem=None, arithmetic="grid"):
    """What the accountant says after a run without data; `constants` are declared and `theorem`
    asked for."""

    def make(z, steps, observers):
        noise = br.Gaussian(clip=0.5, sigma=z, arithmetic=arithmetic)
        facts = rehearse(algorithm, graph, noise, steps).facts()
        asked = algorithm.guarantees() if theorem is None else (theorem,)
        accountant = Accountant(replace(facts, constants=constants or facts.constants), asked)
        return accountant.guarantee(of=of, seen_by=observers)

    return make


def coins(z):
    """As many fair coins as have z times the spread of one level."""
    return 2 * round(2 * z * abs(z))


def chained(graph, of):
    """Releases counted message by message, forward in time: everybody's set of wake-ups it may know
    of."""

    def truth(z, steps, observers):
        run = rehearse(br.Personalized(), graph, br.Gaussian(clip=0.5, sigma=z), steps)
        known = truths.told_forward(graph, run.trace.meetings.a.tolist(), observers)
        lines = zip(
            run.ledger.column("peer").tolist(), run.ledger.column("step").tolist(), strict=True
        )
        return gaussian_pair(sum(line in known for line in lines if line[0] == of), z)

    return truth


def forms_of(algorithm, graph, of):
    @lru_cache
    def energy(steps, observers):
        return exact_losses(algorithm, graph, steps, observers)[of]

    return lambda z, steps, observers: gaussian_pair(energy(steps, observers), z)


def run_case(name, algorithm, graph, of, exact=True, kind=TheoremCase, **more):
    make = charged(algorithm, graph, of)
    refused = (
        lambda: make(1.0, 2, (of,)),
        lambda: make(1.0, 2, (0, of)),
        lambda: make(1.0, 2, (99,)),
    )
    return kind(
        name=name,
        make=make,
        truth=forms_of(algorithm, graph, of),
        exact=exact,
        observers=SOME,
        refused=refused,
        **more,
    )


def matrices(graph, exchanges):
    return [
        (graph.at(t) if hasattr(graph, "at") else graph).weights.toarray() for t in range(exchanges)
    ]


def reacting(
    graph, exchanges, of, slopes=(0.0, -0.5, 1.5, 20.0), rounds=lambda steps: steps // 2, **more
):
    @lru_cache
    def pair(steps, observers):
        return truths.reacting(
            matrices(graph, exchanges), rounds(steps), observers, of, 1.0, slopes, **more
        )

    return lambda z, steps, observers: pair(steps, observers).scaled(z)


def drawn_graph(z, *_):
    """The worst peer of one graph, its noises by a plain inverse."""
    laplacian = -(k_out(300, 120, seed=3).weights.toarray() != 0).astype(float)
    np.fill_diagonal(laplacian, 0.0)
    np.fill_diagonal(laplacian, -laplacian.sum(axis=1))
    return GaussianProfile(
        math.sqrt(np.linalg.inv(np.eye(300) + 81 * laplacian).diagonal().max()) / z
    )


def admm_truth(energy, sigma):
    """The worst linear-quadratic losses of the others, audited at noise 1; `sigma`: the noise for a
    multiplier of 1."""

    @lru_cache
    def worst(iterations, observers):
        return max(energy(iterations, observers, h) for h in (0.0, 0.5, 5.0, 50.0))

    return lambda z, steps, observers: GaussianProfile(
        math.sqrt(worst(steps // 2, observers)) / (sigma * z)
    )


def hidden_pairs(z, steps, runs=1):
    energies = truths.hidden_law(steps)
    return truths.MixtureProfile(runs * energies / z**2, np.full(len(energies), 1 / len(energies)))


def fresh(count):
    return [private_graph.HiddenRound(False, private_graph.stranger_share(5, 1, 2))] * count


def correlated_case(name, algorithm, graph, of):
    noise = algorithm.guarantees()[0].noise
    make = charged(algorithm, graph, of)
    return TheoremCase(
        name=name,
        make=make,
        truth=lambda z, steps, observers: gaussian_pair(
            truths.correlated_energy(graph, noise, steps, observers, of), z
        ),
        steps=(1, 2, 4),
        observers=SOME,
        refused=(lambda: make(1.0, 2, (of,)), lambda: make(1.0, 2, (99,))),
    )


GOSSIP = {
    "correlated": (
        correlated_case("noise between neighbors", br.Decor(ratio=3.0), GRID, 5),
        correlated_case(
            "noise that is taken back", br.Mafalda(own=1.0, pair=2.0, back=(0.5, 0.25)), RING, 4
        ),
        correlated_case("noise by degree", br.Decor(ratio=3.0, by_degree=True), GRID, 5),
    ),
    "gossip": (
        run_case("averaging", br.Averaging(), GRID, 5),
        run_case("accelerated averaging", br.Chebyshev(), GRID, 5),
        run_case("averaging on a butterfly", br.Averaging(), BUTTERFLY, 3, steps=(1, 2)),
    ),
    "meetings": (
        run_case("pair averaging", br.PairAveraging(), RING, 6, steps=(2, 5, 9), kind=SlowCase),
    ),
    "renoised": (
        run_case("re-noised gossip", br.Renoised(tau=0.3, flat=99), GRID, 5, exact=False),
        SlowCase(
            name="descent with masked consensus",
            make=charged(br.MaskedConsensus(mixing=2, tau=0.4, omega=0.7), CHAIN, 3),
            truth=reacting(
                CHAIN,
                2,
                3,
                (0.0, -0.5, 1.5),
                lambda steps: steps // 2,
                tau=0.4,
                omega=0.7,
                reveal=True,
            ),
            steps=(2, 4, 6),
            observers=((0,), (0, 1)),
            refused=(lambda: charged(br.MaskedConsensus(mixing=2), CHAIN, 3)(1.0, 2, (3,)),),
        ),
    ),
    "consensus": (
        TheoremCase(
            name="exact-consensus rounds",
            make=charged(br.GossipSGD(mixing=2), BUTTERFLY, 3),
            truth=reacting(BUTTERFLY, 2, 3),
            steps=(2, 4, 6),
            observers=((0,), (0, 1)),
            refused=(lambda: charged(br.GossipSGD(mixing=2), BUTTERFLY, 3)(1.0, 2, (3,)),),
        ),
    ),
    "last_round": (
        TheoremCase(
            name="all rounds but the last",
            make=charged(br.GossipSGD(mixing=2), CHAIN, 3),
            truth=reacting(CHAIN, 2, 3),
            steps=(2, 4, 6),
            observers=((0,), (0, 1)),
            refused=(lambda: charged(br.GossipSGD(mixing=2), CHAIN, 3)(1.0, 2, (0, 3)),),
        ),
    ),
    "descent": (
        TheoremCase(
            name="gradients that do not react",
            make=charged(
                br.GossipSGD(mixing=2),
                CHAIN,
                3,
                Constants(1.0, 0.0, 0.0, "declared"),
                FixedGradients(2),
            ),
            truth=reacting(CHAIN, 2, 3, (0.0,)),
            steps=(2, 4, 6),
            observers=((0,), (0, 1)),
        ),
        TheoremCase(
            name="fixed statistics",
            make=lambda z, t, v: fixed_statistics_guarantee(replace(LINE, rounds=t), 3, v, z),
            truth=reacting(CHAIN, 2, 3, (0.0,), lambda steps: steps),
            observers=((0,), (0, 1)),
            refused=(
                lambda: fixed_statistics_guarantee(LINE, 0, 0, 1.0),
                lambda: fixed_statistics_guarantee(replace(LINE, slopes=SLOPES), 3, 0, 1.0),
            ),
        ),
        TheoremCase(
            name="quadratic losses",
            make=lambda z, t, _: quadratic_guarantee(
                replace(LINE, rounds=t, slopes=SLOPES), 3, 0, z
            ),
            truth=lambda z, t, _: truths.alike(matrices(CHAIN, 2), t, SLOPES, 3, z),
            exact=True,
            refused=(lambda: quadratic_guarantee(LINE, 3, 0, 1.0),),
        ),
        TheoremCase(
            name="quadratic losses, sampled",
            make=lambda z, t, _: sampled_quadratic_guarantee(
                replace(LINE, rounds=t, slopes=SLOPES), 3, 0, z
            ),
            truth=lambda z, t, _: truths.alike(matrices(CHAIN, 2), t, SLOPES, 3, z),
        ),
    ),
    "masked_consensus": (
        SlowCase(
            name="masked models",
            make=lambda z, rounds, v: masked_guarantee(CHAIN, [TAU] * rounds, 3, v, z),
            truth=reacting(
                CHAIN, 2, 3, (0.0, -0.5, 1.5), lambda steps: steps, tau=0.4, omega=0.7, reveal=True
            ),
            observers=((0,), (0, 1)),
            refused=(
                lambda: masked_guarantee(CHAIN, [TAU], 0, 0, 1),
                lambda: masked_guarantee(CHAIN, [TAU], 9, 0, 1),
                lambda: masked_guarantee(CHAIN, [replace(TAU, omega=0.0)], 3, 0, 1.0),
            ),
        ),
    ),
    "theorems/closed_forms": (
        TheoremCase(
            name="a ring",
            make=lambda z, t, _: closed_forms.closed_form_guarantee(
                "ring:7", 2, closed_forms.line_loss(2, t), z
            ),
            truth=forms_of(br.Averaging(), RING, 2),
            exact=True,
            refused=(lambda: closed_forms.line_loss(0, 1),),
        ),
        TheoremCase(
            name="a star from a leaf",
            make=lambda z, t, _: closed_forms.closed_form_guarantee(
                "star:6", 2, closed_forms.star_leaf_loss(6, 2, t), z
            ),
            truth=lambda z, t, _: gaussian_pair(
                exact_losses(br.Averaging(), star(6), t, (1,))[2], z
            ),
            exact=True,
        ),
        TheoremCase(
            name="a butterfly",
            make=lambda z, t, _: closed_forms.closed_form_guarantee(
                "butterfly:4", 2, closed_forms.butterfly_loss((2, 2), 3, 0), z
            ),
            truth=forms_of(br.Averaging(), BUTTERFLY, 3),
            exact=True,
            steps=(2,),
            refused=(lambda: closed_forms.butterfly_loss((2, 2), 1, 1),),
        ),
    ),
    "group": (
        TheoremCase(
            name="a group",
            make=lambda z, t, v: group_guarantee(GRID, t, [3, 4, 5], v, z),
            truth=lambda z, t, v: gaussian_pair(
                truths.group_energy(GRID.weights.toarray(), t, [3, 4, 5], v), z
            ),
            observers=SOME,
            refused=(
                lambda: group_guarantee(GRID, 2, [0, 1], 0, 1.0),
                lambda: group_guarantee(GRID, 2, [], 0, 1.0),
            ),
        ),
    ),
    "secure_sums": (
        TheoremCase(
            name="sums over neighborhoods",
            make=lambda z, t, v: secure_sum_guarantee(GRID, t, 5, v, z),
            truth=lambda z, t, v: truths.reacting(matrices(GRID, t), 1, v, 5, z, sums_only=True),
            exact=True,
            observers=SOME,
            refused=(lambda: secure_sum_guarantee(GRID, 2, 0, (0, 1), 1.0),),
        ),
        TheoremCase(
            name="noisy sums",
            make=lambda z, t, v: noisy_secure_sum_guarantee(GRID, [0.5] * t, 5, 0, z),
            truth=lambda z, t, v: truths.reacting(
                matrices(GRID, t), 1, v, 5, z, sums_only=True, tau=0.5
            ),
            refused=(
                lambda: noisy_secure_sum_guarantee(GRID, [0.0], 5, 0, 1.0),
                lambda: noisy_secure_sum_guarantee(GRID, [0.5], 5, 5, 1.0),
            ),
        ),
    ),
    "gopa": (
        TheoremCase(
            name="canceling noise",
            make=lambda z, _, v: gopa_guarantee(GRID, z, 2 * z, 5, v),
            truth=lambda z, _, v: GaussianProfile(
                math.sqrt(truths.pairwise_masks(GRID, z, 2 * z, v, 5))
            ),
            exact=True,
            steps=(1,),
            observers=((0,), (0, 2), (0, 2, 4)),
            refused=(
                lambda: gopa_guarantee(GRID, 1.0, 1.0, 5, (0, 5)),
                lambda: gopa_guarantee(GRID, 0.0, 1.0, 5, 0),
                lambda: gopa_guarantee(GRID, 1.0, -1.0, 5, 0),
            ),
        ),
    ),
    "arrived": (
        TheoremCase(
            name="releases that arrived",
            make=charged(br.Personalized(), CHAIN, 3),
            truth=chained(CHAIN, 3),
            exact=True,
            steps=(1, 3),
            observers=((0,), (0, 1)),
            refused=(lambda: charged(br.Personalized(), CHAIN, 3)(1.0, 2, (0, 3)),),
        ),
    ),
    "gopa_binomial": (
        TheoremCase(
            name="coins as own noise",
            make=lambda z, _, v: gopa_binomial_guarantee(GRID, 1, coins(z), 2.0**40, 5, v),
            truth=lambda z, _, v: truths.sum_of_coins(coins(z) * (6 - len(v))),
            noises=(2.0, 4.0),
            steps=(1,),
            observers=((0,), (0, 2)),
            refused=(
                lambda: gopa_binomial_guarantee(GRID, 1, 0, 1.0, 5, 0),
                lambda: gopa_binomial_guarantee(GRID, 1, 8, 0.0, 5, 0),
                lambda: gopa_binomial_guarantee(GRID, 1, 8, 1.0, 5, (0, 5)),
            ),
        ),
    ),
    "server": (
        TheoremCase(
            name="the models a server tells",
            make=charged(br.FedAvg(), star(6), 5),
            truth=lambda z, steps, v: GaussianProfile(truths.told_means(steps // 2, 6, v) / z),
            exact=True,
            steps=(2, 7),
            observers=((1,), (1, 2)),
            refused=(),
        ),
        TheoremCase(
            name="masked answers at a server",
            make=charged(br.FedAvg(ratio=2.0), complete(5), 4),
            truth=lambda z, steps, v: GaussianProfile(
                math.sqrt(steps // 2 * truths.pairwise_masks(complete(5), z, 2 * z, v, 4))
            ),
            exact=True,
            steps=(2, 6),
            observers=((0,), (0, 2)),
            refused=(),
        ),
    ),
    "masked_sums": (
        TheoremCase(
            name="sums under masks, against as many as were planned for, and more",
            make=charged(br.MaskedSGD(colluders=2), complete(6), 5),
            truth=lambda z, steps, v: GaussianProfile(
                math.sqrt(steps * (4 if len(v) > 2 else 1)) / z
            ),
            exact=True,
            steps=(1, 5),
            observers=((0,), (0, 2), (0, 1, 2)),
            refused=(),
        ),
    ),
    "server_admm": (
        SlowCase(
            name="ADMM on the grid: local DP",
            make=charged(br.FederatedADMM(gamma=0.5), star(9), 8),
            truth=admm_truth(lambda k, v, h: truths.centralized(9, k, 0.5, 0.5, h, len(v))[0], 2.0),
            noises=(0.7, 9.0),
            steps=(2, 7),
            observers=((1,), (1, 2, 3, 4)),
            refused=(),
        ),
        SlowCase(
            name="the models of ADMM",
            make=charged(br.FederatedADMM(gamma=0.5), star(9), 8, arithmetic="ideal"),
            truth=admm_truth(lambda k, v, h: truths.centralized(9, k, 0.5, 0.5, h, len(v))[0], 2.0),
            noises=(0.7, 9.0),
            steps=(2, 7),
            observers=((1,), (1, 2, 3, 4)),
            refused=(),
        ),
        SlowCase(
            name="the models of ADMM, over-relaxed",
            make=charged(
                br.FederatedADMM(gamma=0.5, relaxation=0.7), star(16), 8, arithmetic="ideal"
            ),
            truth=admm_truth(
                lambda k, v, h: truths.centralized(16, k, 0.7, 0.5, h, len(v))[0], 2.0
            ),
            noises=(0.7, 9.0),
            steps=(2, 7),
            observers=((1,),),
            refused=(),
        ),
        SlowCase(
            name="a trusted server's noise",
            make=charged(br.FederatedADMM(gamma=0.5, noise="server"), star(5), 4),
            truth=admm_truth(
                lambda k, v, h: truths.noisy_models(5, k + 1, 0.5, 0.5, h, unseen=0), 1 / 5
            ),
            exact=True,
            noises=(0.7, 9.0),
            steps=(2, 7),
            observers=((1,), (1, 2)),
            refused=(),
        ),
        SlowCase(
            name="a trusted server's noise, over-relaxed",
            make=charged(br.FederatedADMM(gamma=0.5, relaxation=0.75, noise="server"), star(5), 4),
            truth=admm_truth(
                lambda k, v, h: truths.noisy_models(5, k + 1, 0.75, 0.5, h, unseen=0), 3 / 5
            ),
            noises=(0.7, 9.0),
            steps=(2, 9),
            refused=(),
            observers=((1,),),
        ),
    ),
    "gopa_k_out": (
        TheoremCase(
            name="a random k-out graph",
            make=lambda z, *_: k_out_guarantee(Crowd(300), 120, z, 9 * z, 1e-7),
            truth=drawn_graph,
            steps=(1,),
            refused=(
                lambda: k_out_guarantee(Crowd(300), 9, 1.0, 1.0, 1e-7),
                lambda: Crowd(20),
                lambda: k_out_guarantee(Crowd(300), 120, 1.0, 1.0, 1.0),
            ),
        ),
    ),
    "private_graph": (
        TheoremCase(
            name="a stranger",
            make=lambda z, t, _: private_graph.hidden_graph(5, 1, t, z),
            truth=lambda z, t, _: hidden_pairs(z, t),
            refused=(lambda: private_graph.hidden_graph(5, 4, 2, 1.0),),
        ),
        TheoremCase(
            name="a stranger, Renyi",
            make=lambda z, t, _: private_graph.hidden_graph_renyi(5, 1, t, z),
            truth=lambda z, t, _: hidden_pairs(z, t),
        ),
        SlowCase(
            name="runs on one hidden graph",
            make=lambda z, runs, _: private_graph.hidden_graph(5, 1, 2, z, runs=runs),
            truth=lambda z, runs, _: hidden_pairs(z, 2, runs),
            refused=(lambda: private_graph.hidden_graph(5, 1, 2, 1.0, runs=0),),
        ),
        TheoremCase(
            name="a neighbor",
            make=lambda z, t, _: private_graph.hidden_graph_neighbor(5, t, z),
            truth=lambda z, t, _: gaussian_pair(1.0, z),
            exact=True,
        ),
        TheoremCase(
            name="fresh hidden graphs",
            make=lambda z, t, _: private_graph.fresh_hidden_graphs(fresh(t), z),
            truth=lambda z, t, _: composed(hidden_pairs(z, 2), t),
            steps=(1, 2),
            noises=(0.7, 9.0),
            refused=(lambda: private_graph.fresh_hidden_graphs([], 1.0),),
        ),
        TheoremCase(
            name="fresh hidden graphs, Renyi",
            make=lambda z, t, _: private_graph.fresh_hidden_graphs_renyi(fresh(t), z),
            truth=lambda z, t, _: composed(hidden_pairs(z, 2), t),
            steps=(1, 2),
            noises=(0.7, 9.0),
        ),
        TheoremCase(
            name="fresh hidden graphs, a heuristic",
            make=lambda z, t, _: private_graph.fresh_hidden_graphs_without_consensus(fresh(t), z),
        ),
    ),
}
