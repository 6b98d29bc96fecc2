"""Guarantees of gossip, GOPA and hidden graphs on small cases: runs and joint Gaussians as truth."""

import math
from dataclasses import replace
from functools import lru_cache

import guarantee_truths as truths
import numpy as np
from guarantee_truths import gaussian_pair

import bruit as br
from bruit.engines.forms import exact_losses
from bruit.experiment import rehearse
from bruit.graphs import butterfly, complete, grid, k_out, path, ring, star
from bruit.privacy.account import Accountant
from bruit.privacy.checks import Case
from bruit.privacy.composition import composed
from bruit.privacy.network import closed_forms, private_graph
from bruit.privacy.network.descent import (
    Descent,
    FixedGradients,
    fixed_statistics_guarantee,
    quadratic_guarantee,
    sampled_quadratic_guarantee,
)
from bruit.privacy.network.gopa import gopa_guarantee
from bruit.privacy.network.gopa_binomial import gopa_binomial_guarantee
from bruit.privacy.network.gopa_k_out import Crowd, k_out_guarantee
from bruit.privacy.network.group import group_guarantee
from bruit.privacy.network.masked_consensus import MaskedRound, masked_guarantee
from bruit.privacy.network.secure_sums import noisy_secure_sum_guarantee, secure_sum_guarantee
from bruit.privacy.profile import GaussianProfile
from bruit.tasks.task import Constants

SOME = ((0,), (0, 2))
GRID, RING, CHAIN, BUTTERFLY = grid(2, 3), ring(7), path(4), butterfly(4)
TAU = MaskedRound(2, 0.4, 0.7)
LINE = Descent(CHAIN, 1, 2)
SLOPES = (0.3, 0.15, 0.6, 0.3)


def charged(algorithm, graph, of, constants=None, theorem=None, arithmetic="grid"):
    """What the accountant says after a run without data; `constants` are declared and `theorem` asked for."""

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
    """Releases counted message by message, forward in time: everybody's set of wake-ups it may know of."""

    def truth(z, steps, observers):
        run = rehearse(br.Personalized(), graph, br.Gaussian(clip=0.5, sigma=z), steps)
        known = truths.told_forward(graph, run.trace.meetings.a.tolist(), observers)
        lines = zip(run.ledger.column("peer").tolist(), run.ledger.column("step").tolist(), strict=True)
        return gaussian_pair(sum(line in known for line in lines if line[0] == of), z)

    return truth


def forms_of(algorithm, graph, of):
    @lru_cache
    def energy(steps, observers):
        return exact_losses(algorithm, graph, steps, observers)[of]

    return lambda z, steps, observers: gaussian_pair(energy(steps, observers), z)


def run_case(name, algorithm, graph, of, exact=True, **more):
    make = charged(algorithm, graph, of)
    refused = (lambda: make(1.0, 2, (of,)), lambda: make(1.0, 2, (0, of)), lambda: make(1.0, 2, (99,)))
    return Case(name, make, forms_of(algorithm, graph, of), exact, observers=SOME, refused=refused, **more)


def matrices(graph, exchanges):
    return [(graph.at(t) if hasattr(graph, "at") else graph).weights.toarray() for t in range(exchanges)]


def reacting(graph, exchanges, of, slopes=(0.0, -0.5, 1.5, 20.0), rounds=lambda steps: steps // 2, **more):
    @lru_cache
    def pair(steps, observers):
        return truths.reacting(matrices(graph, exchanges), rounds(steps), observers, of, 1.0, slopes, **more)

    return lambda z, steps, observers: pair(steps, observers).scaled(z)


def drawn_graph(z, *_):
    """The worst peer of one graph, its noises by a plain inverse."""
    laplacian = -(k_out(300, 120, seed=3).weights.toarray() != 0).astype(float)
    np.fill_diagonal(laplacian, 0.0)
    np.fill_diagonal(laplacian, -laplacian.sum(axis=1))
    return GaussianProfile(math.sqrt(np.linalg.inv(np.eye(300) + 81 * laplacian).diagonal().max()) / z)


def admm_truth(energy, sigma):
    """The worst linear-quadratic losses of the others, audited at noise 1; `sigma`: the noise for a multiplier of 1."""

    @lru_cache
    def worst(iterations, observers):
        return max(energy(iterations, observers, h) for h in (0.0, 0.5, 5.0, 50.0))

    return lambda z, steps, observers: GaussianProfile(math.sqrt(worst(steps // 2, observers)) / (sigma * z))


def hidden_pairs(z, steps, runs=1):
    energies = truths.hidden_law(steps)
    return truths.MixtureProfile(runs * energies / z**2, np.full(len(energies), 1 / len(energies)))


def fresh(count):
    return [private_graph.HiddenRound(False, private_graph.stranger_share(5, 1, 2))] * count


GOSSIP = {
    "gossip": (
        run_case("averaging", br.Averaging(), GRID, 5),
        run_case("accelerated averaging", br.Chebyshev(), GRID, 5),
        run_case("averaging on a butterfly", br.Averaging(), BUTTERFLY, 3, steps=(1, 2)),
    ),
    "meetings": (run_case("pair averaging", br.PairAveraging(), RING, 6, steps=(2, 5, 9)),),
    "renoised": (run_case("re-noised gossip", br.Renoised(tau=0.3, flat=99), GRID, 5, exact=False),),
    "consensus": (
        Case("exact-consensus rounds", charged(br.GossipSGD(mixing=2), BUTTERFLY, 3), reacting(BUTTERFLY, 2, 3),
             steps=(2, 4, 6), observers=((0,), (0, 1)),
             refused=(lambda: charged(br.GossipSGD(mixing=2), BUTTERFLY, 3)(1.0, 2, (3,)),)),
    ),
    "last_round": (
        Case("all rounds but the last", charged(br.GossipSGD(mixing=2), CHAIN, 3), reacting(CHAIN, 2, 3),
             steps=(2, 4, 6), observers=((0,), (0, 1)),
             refused=(lambda: charged(br.GossipSGD(mixing=2), CHAIN, 3)(1.0, 2, (0, 3)),)),
    ),
    "descent": (
        Case("gradients that do not react", charged(br.GossipSGD(mixing=2), CHAIN, 3,
             Constants(1.0, 0.0, 0.0, "declared"), FixedGradients(2)), reacting(CHAIN, 2, 3, (0.0,)),
             steps=(2, 4, 6), observers=((0,), (0, 1))),
        Case("fixed statistics", lambda z, t, v: fixed_statistics_guarantee(replace(LINE, rounds=t), 3, v, z),
             reacting(CHAIN, 2, 3, (0.0,), lambda steps: steps), observers=((0,), (0, 1)),
             refused=(lambda: fixed_statistics_guarantee(LINE, 0, 0, 1.0),
                      lambda: fixed_statistics_guarantee(replace(LINE, slopes=SLOPES), 3, 0, 1.0))),
        Case("quadratic losses", lambda z, t, _: quadratic_guarantee(replace(LINE, rounds=t, slopes=SLOPES), 3, 0, z),
             lambda z, t, _: truths.alike(matrices(CHAIN, 2), t, SLOPES, 3, z), exact=True,
             refused=(lambda: quadratic_guarantee(LINE, 3, 0, 1.0),)),
        Case("quadratic losses, sampled",
             lambda z, t, _: sampled_quadratic_guarantee(replace(LINE, rounds=t, slopes=SLOPES), 3, 0, z),
             lambda z, t, _: truths.alike(matrices(CHAIN, 2), t, SLOPES, 3, z)),
    ),
    "masked_consensus": (
        Case("masked models", lambda z, rounds, v: masked_guarantee(CHAIN, [TAU] * rounds, 3, v, z),
             reacting(CHAIN, 2, 3, (0.0, -0.5, 1.5), lambda steps: steps, tau=0.4, omega=0.7, reveal=True),
             observers=((0,), (0, 1)),
             refused=(lambda: masked_guarantee(CHAIN, [TAU], 0, 0, 1), lambda: masked_guarantee(CHAIN, [TAU], 9, 0, 1),
                      lambda: masked_guarantee(CHAIN, [replace(TAU, omega=0.0)], 3, 0, 1.0))),
    ),
    "closed_forms": (
        Case("a ring", lambda z, t, _: closed_forms.closed_form_guarantee("ring:7", 2, closed_forms.line_loss(2, t), z),
             forms_of(br.Averaging(), RING, 2), exact=True, refused=(lambda: closed_forms.line_loss(0, 1),)),
        Case("a star from a leaf",
             lambda z, t, _: closed_forms.closed_form_guarantee("star:6", 2, closed_forms.star_leaf_loss(6, 2, t), z),
             lambda z, t, _: gaussian_pair(exact_losses(br.Averaging(), star(6), t, (1,))[2], z), exact=True),
        Case("a butterfly", lambda z, t, _: closed_forms.closed_form_guarantee(
             "butterfly:4", 2, closed_forms.butterfly_loss((2, 2), 3, 0), z), forms_of(br.Averaging(), BUTTERFLY, 3),
             exact=True, steps=(2,), refused=(lambda: closed_forms.butterfly_loss((2, 2), 1, 1),)),
    ),
    "group": (
        Case("a group", lambda z, t, v: group_guarantee(GRID, t, [3, 4, 5], v, z),
             lambda z, t, v: gaussian_pair(truths.group_energy(GRID.weights.toarray(), t, [3, 4, 5], v), z),
             observers=SOME, refused=(lambda: group_guarantee(GRID, 2, [0, 1], 0, 1.0),
                                      lambda: group_guarantee(GRID, 2, [], 0, 1.0))),
    ),
    "secure_sums": (
        Case("sums over neighborhoods", lambda z, t, v: secure_sum_guarantee(GRID, t, 5, v, z),
             lambda z, t, v: truths.reacting(matrices(GRID, t), 1, v, 5, z, sums_only=True), exact=True, observers=SOME,
             refused=(lambda: secure_sum_guarantee(GRID, 2, 0, (0, 1), 1.0),)),
        Case("noisy sums", lambda z, t, v: noisy_secure_sum_guarantee(GRID, [0.5] * t, 5, 0, z),
             lambda z, t, v: truths.reacting(matrices(GRID, t), 1, v, 5, z, sums_only=True, tau=0.5),
             refused=(lambda: noisy_secure_sum_guarantee(GRID, [0.0], 5, 0, 1.0),
                      lambda: noisy_secure_sum_guarantee(GRID, [0.5], 5, 5, 1.0))),
    ),
    "gopa": (
        Case("canceling noise", lambda z, _, v: gopa_guarantee(GRID, z, 2 * z, 5, v),
             lambda z, _, v: GaussianProfile(math.sqrt(truths.pairwise_masks(GRID, z, 2 * z, v, 5))), exact=True,
             steps=(1,), observers=((0,), (0, 2), (0, 2, 4)),
             refused=(lambda: gopa_guarantee(GRID, 1.0, 1.0, 5, (0, 5)), lambda: gopa_guarantee(GRID, 0.0, 1.0, 5, 0),
                      lambda: gopa_guarantee(GRID, 1.0, -1.0, 5, 0))),
    ),
    "arrived": (
        Case("releases that arrived", charged(br.Personalized(), CHAIN, 3), chained(CHAIN, 3), exact=True, steps=(1, 3),
             observers=((0,), (0, 1)), refused=(lambda: charged(br.Personalized(), CHAIN, 3)(1.0, 2, (0, 3)),)),
    ),
    "gopa_binomial": (
        Case("coins as own noise", lambda z, _, v: gopa_binomial_guarantee(GRID, 1, coins(z), 2.0**40, 5, v),
             lambda z, _, v: truths.sum_of_coins(coins(z) * (6 - len(v))), noises=(2.0, 4.0), steps=(1,),
             observers=((0,), (0, 2)),
             refused=(lambda: gopa_binomial_guarantee(GRID, 1, 0, 1.0, 5, 0),
                      lambda: gopa_binomial_guarantee(GRID, 1, 8, 0.0, 5, 0),
                      lambda: gopa_binomial_guarantee(GRID, 1, 8, 1.0, 5, (0, 5)))),
    ),
    "server": (
        Case("the models a server tells", charged(br.FedAvg(), star(6), 5),
             lambda z, steps, v: GaussianProfile(truths.told_means(steps // 2, 6, v) / z), exact=True, steps=(2, 7),
             observers=((1,), (1, 2)), refused=()),
        Case("masked answers at a server", charged(br.FedAvg(ratio=2.0), complete(5), 4),
             lambda z, steps, v: GaussianProfile(math.sqrt(
                 steps // 2 * truths.pairwise_masks(complete(5), z, 2 * z, v, 4))), exact=True, steps=(2, 6),
             observers=((0,), (0, 2)), refused=()),
    ),
    "server_admm": (
        Case("ADMM on the grid: local DP", charged(br.FederatedADMM(gamma=0.5), star(9), 8),
             admm_truth(lambda k, v, h: truths.centralized(9, k, 0.5, 0.5, h, len(v))[0], 2.0),
             noises=(0.7, 9.0), steps=(2, 7), observers=((1,), (1, 2, 3, 4)), refused=()),
        Case("the models of ADMM", charged(br.FederatedADMM(gamma=0.5), star(9), 8, arithmetic="ideal"),
             admm_truth(lambda k, v, h: truths.centralized(9, k, 0.5, 0.5, h, len(v))[0], 2.0),
             noises=(0.7, 9.0), steps=(2, 7), observers=((1,), (1, 2, 3, 4)), refused=()),
        Case("the models of ADMM, over-relaxed", charged(br.FederatedADMM(0.5, 0.7), star(16), 8, arithmetic="ideal"),
             admm_truth(lambda k, v, h: truths.centralized(16, k, 0.7, 0.5, h, len(v))[0], 2.0),
             noises=(0.7, 9.0), steps=(2, 7), observers=((1,),), refused=()),
        Case("a trusted server's noise", charged(br.FederatedADMM(gamma=0.5, noise="server"), star(5), 4),
             admm_truth(lambda k, v, h: truths.noisy_models(5, k + 1, 0.5, 0.5, h, unseen=0), 1 / 5), exact=True,
             noises=(0.7, 9.0), steps=(2, 7), observers=((1,), (1, 2)), refused=()),
        Case("a trusted server's noise, over-relaxed", charged(br.FederatedADMM(0.5, 0.75, noise="server"), star(5), 4),
             admm_truth(lambda k, v, h: truths.noisy_models(5, k + 1, 0.75, 0.5, h, unseen=0), 3 / 5),
             noises=(0.7, 9.0), steps=(2, 9), refused=(), observers=((1,),)),
    ),
    "gopa_k_out": (
        Case("a random k-out graph", lambda z, *_: k_out_guarantee(Crowd(300), 120, z, 9 * z, 1e-7), drawn_graph,
             steps=(1,), refused=(lambda: k_out_guarantee(Crowd(300), 9, 1.0, 1.0, 1e-7), lambda: Crowd(20),
                                  lambda: k_out_guarantee(Crowd(300), 120, 1.0, 1.0, 1.0))),
    ),
    "private_graph": (
        Case("a stranger", lambda z, t, _: private_graph.hidden_graph(5, 1, t, z), lambda z, t, _: hidden_pairs(z, t),
             refused=(lambda: private_graph.hidden_graph(5, 4, 2, 1.0),)),
        Case("a stranger, Renyi", lambda z, t, _: private_graph.hidden_graph_renyi(5, 1, t, z),
             lambda z, t, _: hidden_pairs(z, t)),
        Case("runs on one hidden graph", lambda z, runs, _: private_graph.hidden_graph(5, 1, 2, z, runs=runs),
             lambda z, runs, _: hidden_pairs(z, 2, runs),
             refused=(lambda: private_graph.hidden_graph(5, 1, 2, 1.0, runs=0),)),
        Case("a neighbor", lambda z, t, _: private_graph.hidden_graph_neighbor(5, t, z),
             lambda z, t, _: gaussian_pair(1.0, z), exact=True),
        Case("fresh hidden graphs", lambda z, t, _: private_graph.fresh_hidden_graphs(fresh(t), z),
             lambda z, t, _: composed(hidden_pairs(z, 2), t), steps=(1, 2), noises=(0.7, 9.0),
             refused=(lambda: private_graph.fresh_hidden_graphs([], 1.0),)),
        Case("fresh hidden graphs, Renyi", lambda z, t, _: private_graph.fresh_hidden_graphs_renyi(fresh(t), z),
             lambda z, t, _: composed(hidden_pairs(z, 2), t), steps=(1, 2), noises=(0.7, 9.0)),
        Case("fresh hidden graphs, a heuristic",
             lambda z, t, _: private_graph.fresh_hidden_graphs_without_consensus(fresh(t), z)),
    ),
}  # fmt: skip
