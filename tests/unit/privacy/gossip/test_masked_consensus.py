"""Masked consensus (gossip:MUF-X3) and secure sums (gossip:MUF-X4): worked numbers, joint Gaussians
of runs."""

import numpy as np
import pytest

from bruit.errors import PrivacyError
from bruit.graphs import (
    butterfly,
    erdos_renyi,
    from_edges,
    given,
    grid,
    hypercube,
    path,
    ring,
    star,
)
from bruit.privacy.ahead.masked_consensus import masked_guarantee
from bruit.privacy.ahead.secure_sums import (
    noisy_secure_sum_guarantee,
    noisy_secure_sum_losses,
    secure_sum_guarantee,
    secure_sum_losses,
)
from bruit.privacy.exact import MaskedRound, masked_losses
from tests.unit.privacy.gossip import joint_gaussian

SMALL = [path(4), ring(5), star(5), grid(2, 3), erdos_renyi(6, q=0.5, seed=2)]


def test_worked_numbers():
    """gossip:MUF-X3: (tau, omega) = (0.2, 0.1)."""
    cube = masked_losses(hypercube(4), [MaskedRound(12, 0.2, 0.1)], 0)[[1, 3, 7, 15]]
    np.testing.assert_allclose(cube, [0.96223823, 0.4954228, 0.31727861, 0.35301885], rtol=1e-6)
    circle = masked_losses(ring(8), [MaskedRound(40, 0.2, 0.1)], 0)[1:5]
    np.testing.assert_allclose(circle, [0.9627209, 0.7872499, 0.47558041, 0.36593317], rtol=1e-6)


@pytest.mark.parametrize("graph", SMALL, ids=lambda graph: graph.name)
@pytest.mark.parametrize("observers", [[0], [1, 3]])
def test_above_the_joint_gaussian_of_reacting_runs(graph, observers):
    """Three rounds, slopes in [-3, 3], one observer or two: never violated."""
    rng = np.random.default_rng(len(observers))
    w = graph.weights.toarray()
    rest = np.setdiff1d(np.arange(graph.n), observers)
    bound = masked_losses(graph, [MaskedRound(2, 0.3, 0.5)] * 3, observers)[rest]
    for _ in range(3):
        slopes = rng.uniform(-3, 3, graph.n)
        setting = joint_gaussian.Setting(
            [[w, w]] * 3, slopes=slopes, tau=0.3, omega=0.5, reveal=True
        )
        assert np.all(bound >= joint_gaussian.losses(setting, observers)[rest] - 1e-7)


def test_close_for_one_round_and_additive():
    graph, each = ring(5), MaskedRound(1, 0.3, 0.5)
    w = graph.weights.toarray()
    truth = joint_gaussian.losses(
        joint_gaussian.Setting([[w]], tau=0.3, omega=0.5, reveal=True), [0]
    )
    bound = masked_losses(graph, [each], 0)
    assert np.all(bound[1:] >= truth[1:] - 1e-9)
    assert np.all(bound[1:] <= 1.35 * truth[1:])
    np.testing.assert_allclose(masked_losses(graph, [each] * 4, 0), 4 * bound)


def test_changing_graphs():
    graphs = given([ring(5), star(5)])
    rounds = [MaskedRound(1, 0.3, 0.5), MaskedRound(1, 0.3, 0.5, first=1)]
    found = masked_losses(graphs, rounds, 0)
    parts = [masked_losses(graph, rounds[:1], 0) for graph in (ring(5), star(5))]
    np.testing.assert_allclose(found, parts[0] + parts[1])


def test_masked_guarantee_and_refusals():
    about = masked_guarantee(ring(8), [MaskedRound(40, 0.2, 0.1)] * 2, 4, 0, 3.0)
    assert about.loss == pytest.approx(2 * 0.36593317, rel=1e-6)
    assert about.profile.mu == pytest.approx((2 * 0.36593317) ** 0.5 / 3)
    assert about.status == "ideal"
    for tau, omega in ((0.0, 0.1), (0.1, 0.0)):
        with pytest.raises(PrivacyError, match="noise in every message and in every mask"):
            masked_losses(ring(8), [MaskedRound(2, tau, omega)], 0)
    with pytest.raises(PrivacyError, match="nobody has secrets"):
        masked_guarantee(ring(8), [MaskedRound(2, 0.1, 0.1)], 0, [0, 1], 3.0)


def test_secure_sums_of_a_grid():
    """gossip:MUF-X4: grid(3, 3), v = 0, T = 4; and REC-3."""
    expected = [1, 0.5, 0.25829445, 0.5, 0.62233508, 0.43304555, 0.25829445, 0.43304555, 0.99498491]
    np.testing.assert_allclose(secure_sum_losses(grid(3, 3), 4, 0), expected, rtol=1e-6)
    cube = secure_sum_losses(hypercube(4), 4, 0)
    np.testing.assert_allclose(cube[[1, 3, 7, 15]], [0.25, 0.1666667, 0.25, 1], rtol=1e-6)


@pytest.mark.parametrize("graph", SMALL, ids=lambda graph: graph.name)
@pytest.mark.parametrize("observers", [[0], [1, 3]])
def test_secure_sums_are_the_joint_gaussian(graph, observers):
    w = graph.weights.toarray()
    truth = joint_gaussian.losses(joint_gaussian.Setting([[w] * 3], sums_only=True), observers)
    rest = np.setdiff1d(np.arange(graph.n), observers)
    np.testing.assert_allclose(secure_sum_losses(graph, 3, observers)[rest], truth[rest], atol=1e-7)


@pytest.mark.parametrize("graph", SMALL, ids=lambda graph: graph.name)
@pytest.mark.parametrize("tau", [0.1, 0.5])
def test_noisy_secure_sums_are_above_the_joint_gaussian(graph, tau):
    w = graph.weights.toarray()
    truth = joint_gaussian.losses(joint_gaussian.Setting([[w] * 3], tau=tau, sums_only=True), [0])
    found = noisy_secure_sum_losses(graph, [tau] * 3, 0)
    assert np.all(found[1:] >= truth[1:] - 1e-9)
    assert np.all(found[1:] <= secure_sum_losses(graph, 3, 0)[1:] + 1e-9)


def test_secure_guarantees_and_refusals():
    about = secure_sum_guarantee(grid(3, 3), 4, 8, 0, 2.0)
    assert about.loss == pytest.approx(0.99498491, rel=1e-6)
    assert any("ideal" in h.text for h in about.hypotheses)
    assert noisy_secure_sum_guarantee(grid(3, 3), [0.3] * 4, 8, 0, 2.0).loss < about.loss
    assert secure_sum_guarantee(butterfly(4).at(0), 1, 2, 0, 2.0).loss == 0.0
    alone = noisy_secure_sum_losses(from_edges(3, [(1, 2)]), [0.1], 0)
    np.testing.assert_array_equal(alone, [1, 0, 0])
    with pytest.raises(PrivacyError, match="noise in every step"):
        noisy_secure_sum_losses(ring(5), [0.1, 0.0], 0)
    with pytest.raises(PrivacyError, match="nobody has secrets"):
        secure_sum_guarantee(ring(5), 2, 1, [0, 1], 2.0)
