"""Butterfly Muffliato and its gradient descent against the numbers of gossip:MUF-X2 and MUF-9."""

import numpy as np
import pytest

import bruit as br
from bruit.graphs import butterfly, ring
from bruit.privacy.toolbox.gaussian import epsilon_of
from bruit.runs.run import rehearse

NOISE = br.Gaussian(clip=0.5, sigma=5.0)


def losses(algorithm, graph, steps, observers):
    accountant = rehearse(algorithm, graph, NOISE, steps).accountant()
    theorem, _, _ = accountant.theorem()
    return theorem.losses(accountant.facts, observers)


def test_averaging_examples_of_mufx2():
    assert np.allclose(
        losses(br.Averaging(), butterfly(8), 3, (0,)), [1, 1, 0.5, 0.5, 0.25, 0.25, 0.25, 0.25]
    )
    assert np.allclose(
        losses(br.Averaging(), butterfly(6, radices=(2, 3)), 2, (0,)), [1, 1, 0.5, 0.5, 0.5, 0.5]
    )
    assert np.allclose(
        losses(br.Averaging(), butterfly(8), 3, (0, 5)), [1, 1, 0.5, 0.5, 1, 1, 0.5, 0.5]
    )


def test_exact_average_after_one_round_per_digit():
    task = br.tasks.Mean(np.arange(12.0)[:, None])
    assert np.allclose(br.run(br.Averaging(), butterfly(12), task, steps=3).estimates, 5.5)


TWENTY_ROUNDS = [(0, 0.8, 4.305841), (5, 0.025, 0.6481051), (10, 0.00078125, 0.1015799)]


@pytest.mark.slow
@pytest.mark.parametrize(("bit", "rdp", "epsilon"), TWENTY_ROUNDS)
def test_gradient_descent_over_twenty_rounds(bit, rdp, epsilon):
    """gossip:MUF-X2 examples: T = 20, alpha = 2, sensitivity 1, sigma = 5, delta = 1e-6."""
    m = losses(br.GossipSGD(mixing=11), butterfly(2048), 220, (0,))[2**bit]
    assert m * 2 / (2 * 25) == pytest.approx(rdp)
    assert epsilon_of(m**0.5 / 5, 1e-6) == pytest.approx(epsilon, rel=1e-6)


def test_matrix_equals_single_pairs_and_relabelling_equalizes():
    run = rehearse(br.GossipSGD(mixing=4), butterfly(16, relabel=3), NOISE, 32)
    m = run.losses()
    assert run.epsilon(of=3, seen_by=9).guarantee.loss == pytest.approx(m[3, 9])
    assert np.nanmean(m) == pytest.approx(8 * 4 / 15)
    coalition = run.epsilon(of=3, seen_by={9, 10}).guarantee.loss
    assert coalition >= max(m[3, 9], m[3, 10])


def test_rounds_without_consensus_are_charged_one_but_for_the_last():
    """gossip:MUF-X2 limits: a round that lost a peer costs the full release; one cut short at the
    end, its view."""
    whole = losses(br.GossipSGD(mixing=3), butterfly(8), 6, (0,))
    cut = losses(br.GossipSGD(mixing=3), butterfly(8), 5, (0,))
    assert np.allclose(cut, whole / 2 + losses(br.Averaging(), butterfly(8), 2, (0,)))
    task = br.tasks.Mean(np.zeros((8, 1)))
    world = br.Events(churn=0.05)
    faulty = br.run(
        br.GossipSGD(mixing=3), butterfly(8), task, privacy=NOISE, steps=30, engine=world, seed=2
    )
    accountant = faulty.accountant()
    broken = np.unique(faulty.trace.faults.round // 3)
    assert 0 < len(broken) < 10
    expected = len(broken) + (10 - len(broken)) * np.array([1, 1, 0.5, 0.5, 0.25, 0.25, 0.25, 0.25])
    assert np.allclose(accountant.theorem()[0].losses(accountant.facts, (0,))[1:], expected[1:])


def test_gradient_descent_on_other_graphs_is_charged_in_full_but_for_the_last_round():
    run = rehearse(br.GossipSGD(mixing=2), ring(8), NOISE, 6)
    answer = run.epsilon(of=4, seen_by=0)
    assert answer.guarantee.loss == pytest.approx(
        2.0
    )  # two exchanges do not bring peer 4 to peer 0
    assert run.epsilon(of=2, seen_by=0).guarantee.loss == pytest.approx(3.0)
    assert "exact consensus" in answer.why()
    assert answer.guarantee.status == "proven"
