"""Gossip gradient descent (gossip:MUF-9): worked numbers, reacting gradients by brute force,
refutations."""

from dataclasses import replace

import numpy as np
import pytest

import bruit as br
from bruit.errors import ConfigError, PrivacyError
from bruit.graphs import butterfly, erdos_renyi, from_edges, given, grid, path, ring, star
from bruit.privacy.account import Accountant
from bruit.privacy.exact.krylov import leverage
from bruit.privacy.theorems.descent import (
    FixedGradients,
    GossipDescent,
    fixed_statistics_guarantee,
    nonadaptive,
    nonadaptive_bound,
    quadratic_full_batch,
    quadratic_guarantee,
    quadratic_sampled,
    sampled_quadratic_guarantee,
)
from bruit.privacy.theorems.last_round import LastRound
from bruit.privacy.theorems.published_descent import PublishedDescent, source_6_6, source_c4
from bruit.runs.run import rehearse
from bruit.tasks.task import Constants
from papers.theorems.mean_loss import descent_mean_bound
from tests.unit.privacy.gossip import joint_gaussian

NOISE = br.Gaussian(clip=0.5, sigma=4.0)


def test_path_of_six():
    """v = 0, T = 3, K = 2, u = 1..5."""
    graph, descent = path(6), GossipDescent(path(6), 3, 2)
    exact = nonadaptive(descent, 0)[1:]
    np.testing.assert_allclose(
        exact, [2.9821403, 2.9225196, 0.16673873, 0.0468388, 0.0036330533], rtol=1e-6
    )
    np.testing.assert_allclose(source_6_6(graph, 3, 2, 0)[1:], [12, 3, 0, 0, 0], atol=1e-12)
    c4 = source_c4(graph, 6, 3, 2, 0)[1:]
    np.testing.assert_allclose(
        c4, [6.0990198, 2.0866229, 0.31340123, 0.036822686, 0.0032478944], rtol=1e-6
    )
    printed = source_c4(graph, 6, 3, 2, 0, between=1)[1:]
    np.testing.assert_allclose(
        printed, [6.1756582, 2.3768875, 0.1775552, 0.0052356021, 0], rtol=1e-6, atol=1e-12
    )
    np.testing.assert_allclose(nonadaptive_bound(graph, 3, 2, 0)[1:], [3, 3, 2, 2, 1], rtol=1e-9)


def test_star_of_six():
    """v = 1, T = 3, K = 2, u = 0, 2."""
    graph = star(6)
    np.testing.assert_allclose(source_6_6(graph, 3, 2, 1)[[0, 2]], [10.5, 1.5], rtol=1e-6)
    np.testing.assert_allclose(
        source_c4(lambda j: graph, 6, 3, 2, 1)[[0, 2]], [4.5, 1.5], rtol=1e-6
    )
    np.testing.assert_allclose(
        nonadaptive(GossipDescent(graph, 3, 2), 1)[[0, 2]], [3, 0.75], rtol=1e-6
    )


def test_quadratic_losses():
    """path(4), v = 0, T = 3, K = 2, rate 0.3, h = (1, 0.5, 2, 1); and rate h = 0."""
    reacting = GossipDescent(path(4), 3, 2, slopes=(0.3, 0.15, 0.6, 0.3))
    np.testing.assert_allclose(
        quadratic_full_batch(reacting, 0)[1:], [2.9748595, 2.9498929, 0.075247611], rtol=1e-6
    )
    still = GossipDescent(path(4), 3, 2, slopes=(0.0,) * 4)
    np.testing.assert_allclose(
        quadratic_full_batch(still, 0)[1:], [2.9651858, 2.6866721, 0.34814207], rtol=1e-6
    )
    assert np.all(quadratic_sampled(reacting, 0) >= quadratic_full_batch(reacting, 0) - 1e-9)
    np.testing.assert_allclose(
        quadratic_sampled(still, 0), nonadaptive(GossipDescent(path(4), 3, 2), 0), rtol=1e-9
    )


def test_the_printed_formulas_are_refuted():
    """(6.6) is 0 beyond distance K, and (C.4) is below the exact loss, even of gradients that do
    not react."""
    exact = nonadaptive(GossipDescent(path(6), 3, 2), 0)
    assert source_6_6(path(6), 3, 2, 0)[3] == 0.0 < exact[3]
    assert source_c4(path(6), 6, 3, 2, 0)[2] == pytest.approx(2.087, abs=1e-3)
    assert np.sum(source_c4(path(6), 6, 3, 2, 0) < exact - 1e-6) >= 3


SMALL = [path(4), ring(5), star(5), erdos_renyi(6, q=0.5, seed=2)]


@pytest.mark.parametrize("graph", SMALL, ids=lambda graph: graph.name)
@pytest.mark.parametrize("observers", [[0], [1, 3]])
def test_nonadaptive_is_above_the_joint_gaussian(graph, observers):
    w = graph.weights.toarray()
    truth = joint_gaussian.losses(joint_gaussian.Setting([[w, w]] * 3), observers)
    rest = np.setdiff1d(np.arange(graph.n), observers)
    found = nonadaptive(GossipDescent(graph, 3, 2), observers)[rest]
    assert np.all(found >= truth[rest] - 1e-7)
    assert np.all(nonadaptive_bound(graph, 3, 2, observers)[rest] >= truth[rest] - 1e-7)
    assert found.sum() / graph.n <= sum(
        len(observers) * descent_mean_bound(graph.n, 4, 3, 2) for _ in range(3)
    )


@pytest.mark.parametrize("graph", SMALL, ids=lambda graph: graph.name)
def test_quadratic_is_the_joint_gaussian(graph):
    """All shifts alike, gradients reacting with slopes -rate h: an equality."""
    slopes = np.linspace(0.1, 0.7, graph.n)
    w = graph.weights.toarray()
    shifts, noise = joint_gaussian.view(joint_gaussian.Setting([[w, w]] * 2, slopes=-slopes), [0])
    white = np.linalg.pinv(noise @ noise.T, rcond=1e-11, hermitian=True)
    found = quadratic_full_batch(GossipDescent(graph, 2, 2, slopes=tuple(slopes)), 0)
    for u in range(1, graph.n):
        column = shifts[:, u :: graph.n].sum(axis=1)
        assert found[u] == pytest.approx(column @ white @ column, abs=1e-6)


def test_accelerated_rounds_use_polynomials():
    """One round spans the same space; over several rounds P_K(W) matters."""
    graph = grid(2, 3)
    np.testing.assert_allclose(
        nonadaptive(GossipDescent(graph, 1, 3, gamma=1.3), 0),
        leverage(graph, [0], 3).loss,
        atol=1e-8,
    )
    plain, fast = (
        nonadaptive(GossipDescent(path(6), 3, 2, gamma=gamma), 0) for gamma in (1.0, 1.3)
    )
    assert np.abs(plain - fast).max() > 1e-3


def charged(algorithm, graph, steps, theorem):
    run = rehearse(algorithm, graph, NOISE, steps)
    return Accountant(run.facts(), (theorem,)), theorem


@pytest.mark.parametrize("graph", SMALL, ids=lambda graph: graph.name)
def test_last_round_covers_reacting_gradients(graph):
    """(T - 1) + m_ex is above the joint Gaussian for any slopes, where the averaging loss of each
    round is not."""
    w = graph.weights.toarray()
    rng = np.random.default_rng(1)
    accountant, theorem = charged(br.GossipSGD(mixing=2), graph, 6, LastRound(2, True))
    theorem.check(accountant.facts)
    for observers in ([0], [1, 2]):
        rest = np.setdiff1d(np.arange(graph.n), observers)
        bound = theorem.losses(accountant.facts, tuple(observers))[rest]
        for _ in range(4):
            slopes = rng.uniform(-3, 3, graph.n)
            truth = joint_gaussian.losses(
                joint_gaussian.Setting([[w, w]] * 3, slopes=slopes), observers
            )
            assert np.all(bound >= truth[rest] - 1e-6)
    np.testing.assert_allclose(bound, 2 + leverage(graph, [1, 2], 2).loss[rest])


def test_last_round_of_a_run():
    accountant, _ = charged(br.GossipSGD(mixing=2), ring(8), 6, LastRound(2, True))
    found = accountant.guarantee(of=4, seen_by=0)
    assert found.loss == pytest.approx(2.0)  # out of reach within the last round
    assert accountant.guarantee(of=1, seen_by=0).loss == pytest.approx(3.0)
    m = accountant.losses()
    assert m[4, 0] == pytest.approx(2.0)
    assert m[1, 0] == pytest.approx(3.0)
    cut, _ = charged(br.GossipSGD(mixing=3), ring(8), 4, LastRound(3, True))
    assert cut.guarantee(of=2, seen_by=0).loss == pytest.approx(1.0)
    changing, _ = charged(br.GossipSGD(mixing=1), given([ring(8), star(8)]), 2, LastRound(1, True))
    assert changing.guarantee(of=4, seen_by=1).loss == pytest.approx(1.0)
    with pytest.raises(PrivacyError, match="accelerated gossip"):
        LastRound(1, False).check(changing.facts)


def test_a_round_without_consensus_costs_one():
    """gossip:MUF-X2 limits: four peers, pair {2, 3} idle at step 0 of the first of three rounds, v
    = 0, u = 3.

    The averaging loss of the rounds adds up to 0 + 1/2 + 1/2 = 1; with reacting gradients the truth
    approaches 2.
    """
    whole = [butterfly(4).at(t).weights.toarray() for t in range(2)]
    idle = from_edges(4, [(0, 1)]).weights.toarray()
    first = leverage_of([idle, whole[1]])
    assert first == pytest.approx(0.0, abs=1e-12)
    assert leverage_of(whole) == pytest.approx(0.5)
    worst = 0.0
    for slope in (0.0, 1.0, 30.0):
        setting = joint_gaussian.Setting(
            [[idle, whole[1]], whole, whole], slopes=np.array([0.0, slope, 0.0, 0.0])
        )
        worst = max(worst, joint_gaussian.losses(setting, [0])[3])
    assert 1.9 < worst <= 2.0 + 1e-9


def leverage_of(matrices):
    """Loss of peer 3 in the view of peer 0 after one round, by brute force."""
    return joint_gaussian.losses(joint_gaussian.Setting([matrices]), [0])[3]


def test_fixed_gradients_need_smoothness_zero():
    accountant, theorem = charged(br.GossipSGD(mixing=2), path(6), 6, FixedGradients(2))
    with pytest.raises(PrivacyError, match="declared smoothness of 0"):
        theorem.check(accountant.facts)
    linear = replace(accountant.facts, constants=Constants(1.0, 0.0, 0.0, "declared"))
    theorem.check(linear)
    np.testing.assert_allclose(
        theorem.losses(linear, (0,)), nonadaptive(GossipDescent(path(6), 3, 2), 0), rtol=1e-9
    )
    read_off = replace(accountant.facts, constants=Constants(1.0, 0.0, 0.0, "records"))
    with pytest.raises(PrivacyError, match="records"):
        theorem.check(read_off)


def test_published_loss_of_a_run():
    accountant, _ = charged(br.GossipSGD(mixing=2), path(6), 6, PublishedDescent(2))
    found = accountant.guarantee(of=2, seen_by=0, status="published")
    assert found.loss == pytest.approx(2.0866229, rel=1e-6)
    assert found.status == "published"
    assert "not a guarantee" in found.notes[0]


def test_as_guarantees():
    fixed = fixed_statistics_guarantee(GossipDescent(path(6), 3, 2), 3, 0, 2.0)
    assert fixed.loss == pytest.approx(0.16673873, rel=1e-6)
    assert any(
        "do not depend on this peer's data" in h.text and not h.checked for h in fixed.hypotheses
    )
    slopes = (0.3, 0.15, 0.6, 0.3)
    full = quadratic_guarantee(GossipDescent(path(4), 3, 2, slopes=slopes), 3, 0, 2.0)
    drawn = sampled_quadratic_guarantee(GossipDescent(path(4), 3, 2, slopes=slopes), 3, 0, 2.0)
    assert full.epsilon(1e-6) <= drawn.epsilon(1e-6)
    assert any("no gradient is clipped" in h.text for h in full.hypotheses)


def test_corner_cases_and_refusals():
    np.testing.assert_array_equal(nonadaptive(GossipDescent(path(3), 0, 2), 0), 0.0)
    with pytest.raises(ConfigError, match="rounds of 0 exchanges"):
        GossipDescent(path(3), 2, 0)
    with pytest.raises(ConfigError, match="2 slopes for 3 peers"):
        GossipDescent(path(3), 2, 1, slopes=(0.1, 0.1))
    with pytest.raises(PrivacyError, match="needs the public slopes"):
        quadratic_full_batch(GossipDescent(path(3), 2, 1), 0)
    with pytest.raises(PrivacyError, match="react to the models"):
        nonadaptive(GossipDescent(path(3), 2, 1, slopes=(0.1,) * 3), 0)
    with pytest.raises(ConfigError, match="nonadaptive_bound"):
        nonadaptive(GossipDescent(ring(4000), 10, 1), 0)
    with pytest.raises(PrivacyError, match="nobody has secrets"):
        fixed_statistics_guarantee(GossipDescent(path(3), 1, 1), 0, 0, 1.0)
    with pytest.raises(ConfigError, match="rounds of 0 exchanges"):
        source_6_6(path(3), 2, 0, 0)
