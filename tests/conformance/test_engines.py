"""Every algorithm of the catalog, found by discovery, passes every public check.

What depends on who is linked to whom is asked on two graphs, a grid and a star, in both of which
peers have unequal numbers of neighbors: engines agree, replay under faults, data only through the
door. Pure messages, linearity and zero steps are laws of the algorithm alone: one graph will do.
"""

import numpy as np
import pytest

import bruit as br
from bruit.algorithms.algorithm import catalog
from bruit.algorithms.schedules.rounds.bulk import Exchanges
from bruit.graphs import butterfly, grid, ring, star
from bruit.testing import (
    check_linear,
    check_messages_are_pure,
    check_steps_zero,
    checks,
    small_task,
    suited,
)
from bruit.trace import Faults
from tests.conformance.hard_cases import CancelingNoise, FrankWolfe, GossipADMM

CASES = [kind() for kind in catalog().values()] + [
    br.WalkSGD(cap=2, rest=3, schedule=br.Walk("uniform")),
    br.Renoised(tau=0.3, flat=2),
    br.GossipSGD(mixing=3, gamma=1.2),
    br.GossipSGD(batch=2),
    br.PairAveraging(br.Pairs("edges")),
    br.PairAveraging(br.Pairs("clocks")),
    GossipADMM(),
    FrankWolfe(),
    CancelingNoise(),
    br.FederatedADMM(participants=2, noise="server"),
]
GRAPHS = [grid(2, 4), star(5)]
ON_ANY_GRAPH = (check_messages_are_pure, check_linear, check_steps_zero)
ASKED = [
    pytest.param(check, graph, id=f"{check.__name__}-{graph.name}")
    for check in checks()
    for graph in (GRAPHS[:1] if check in ON_ANY_GRAPH else GRAPHS)
]


def test_catalog_finds_every_file_by_itself():
    assert {
        "averaging",
        "chebyshev",
        "pair-averaging",
        "renoised",
        "gossip-sgd",
        "walk-sgd",
    } <= set(catalog())


@pytest.mark.parametrize(("check", "graph"), ASKED)
@pytest.mark.parametrize("algorithm", CASES, ids=repr)
def test_conformance(algorithm, check, graph):
    check(algorithm, suited(algorithm, graph), small_task(graph.n), 7)


@pytest.mark.parametrize(
    "algorithm", [br.Averaging(), br.GossipSGD(mixing=3), br.Renoised()], ids=repr
)
@pytest.mark.parametrize("check", checks(), ids=lambda check: check.__name__)
def test_conformance_on_changing_graphs(algorithm, check):
    graph = butterfly(8, relabel=3)
    check(algorithm, graph, small_task(8), 7)


def test_canceling_noise_cancels_and_hides():
    task = small_task(8)
    result = br.run(
        CancelingNoise(own_sigma=0.0), grid(2, 4), task, steps=1, watch=range(8), evaluate_every=0
    )
    values = task.value(np.arange(8))
    assert np.allclose(result.estimates.mean(axis=0), values.mean(axis=0))
    said = {message.sender: message.row[0] for message in result.trace.received}
    assert min(np.abs(said[peer] - values[peer]).max() for peer in range(8)) > 1.0


def test_gossip_admm_reaches_the_mean_without_a_server():
    task = small_task(8)
    result = br.run(GossipADMM(), ring(8), task, steps=300, evaluate_every=0)
    assert np.allclose(result.estimates, task.value(np.arange(8)).mean(axis=0), atol=1e-3)


@pytest.mark.parametrize(
    "algorithm",
    [
        br.ModelPropagation(schedule=br.Wakes(activations=7)),
        br.PairAveraging(br.Pairs(activations=7)),
        br.Personalized(schedule=br.Wakes(activations=7)),
        br.Gosta(schedule=br.Pairs("edges", 7)),
    ],
    ids=repr,
)
def test_a_clock_that_rings_at_the_very_start_is_heard(algorithm):
    """Whoever woke at time 0 had not heard its neighbors' first words yet, and its wake was
    dropped."""
    for seed in range(8):
        bulk, events = (
            br.run(
                algorithm,
                "er:6,q=0.5,seed=1",
                small_task(6),
                steps=4,
                seed=seed,
                evaluate_every=0,
                engine=engine,
            )
            for engine in (br.Bulk(), br.Events())
        )
        assert np.array_equal(bulk.trace.meetings.a, events.trace.meetings.a)
        assert np.allclose(bulk.estimates, events.estimates)


def test_dead_links_keep_the_mixing_doubly_stochastic():
    graph = grid(2, 4)
    faults = Faults(np.zeros(2, np.int64), np.array([0, 1]), np.array([1, 2]))
    dense = Exchanges(graph, faults).at(0).full.toarray()
    assert np.allclose(dense.sum(axis=0), 1)
    assert np.allclose(dense.sum(axis=1), 1)
    assert dense[0, 1] == dense[1, 2] == 0


def test_chained_phases_share_states_and_ledger():
    task, graph = small_task(8), grid(2, 4)
    noise = br.Gaussian(clip=2.0, sigma=1.0)
    first = br.run(br.GossipSGD(), graph, task, privacy=noise, steps=3, seed=1)
    second = br.run(br.GossipSGD(), graph, task, privacy=noise, steps=4, seed=2, after=first)
    assert (
        second.facts().data_lines().sum() == 8 * 4
    )  # every round has its gradient, the first one too
    assert len(second.ledger) == len(first.ledger) + 8 * 4 + 8 * 5  # and a dither for every message
    assert second.epsilon() > first.epsilon()
    assert "went on from its hidden states" in second.epsilon(of=1, seen_by=0).why()


def test_chain_goes_on_and_levels_do_not_mix():
    task, graph = small_task(8), grid(2, 4)
    first = br.run(br.GossipSGD(), graph, task, privacy=br.Gaussian(clip=2.0, sigma=1.0), steps=3)
    second = br.chain(first, task, steps=2)
    assert second.facts().data_lines().sum() == 8 * 2
    assert len(second.ledger) == len(first.ledger) + 8 * 2 + 8 * 3  # and a dither for every message
    assert not np.allclose(first.estimates, second.estimates)
    with pytest.raises(br.PrivacyError, match="different levels"):
        br.chain(first, task, steps=2, privacy=br.Gaussian(clip=2.0, sigma=1.0, level="record"))


def test_a_phase_never_reuses_the_noise_of_an_earlier_one():
    task, graph = small_task(8), grid(2, 4)
    noise = br.Gaussian(clip=100.0, sigma=1.0, arithmetic="ideal")
    first = br.run(br.Averaging(), graph, task, privacy=noise, steps=0, seed=1)
    second = br.run(
        br.Averaging(), graph, task, privacy=noise, steps=0, seed=1, after=first, carry="nothing"
    )
    assert np.abs(first.estimates - second.estimates).min() > 1e-6
