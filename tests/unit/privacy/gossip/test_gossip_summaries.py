"""Means, trust ladder and conversions (gossip:MUF-3, MUF-7, MUF-10, NDP-4, NDP-7, LG-1), and
refuted printed losses."""

import numpy as np
import pytest

from bruit.errors import ConfigError, PrivacyError
from bruit.graphs import butterfly, erdos_renyi, grid, hypercube, path, ring, star
from bruit.privacy.exact.krylov import leverage
from bruit.privacy.exact.rows import meeting_loss, meeting_rows, user_loss
from bruit.privacy.guarantee import gaussian
from bruit.privacy.theorems.published import published_losses, published_pairwise, published_walk
from bruit.privacy.toolbox.gaussian import zcdp_to_epsilon
from papers.theorems.mean_loss import (
    LABEL,
    descent_mean_bound,
    expected_mean_loss,
    mean_bound,
    mean_loss,
    meeting_rate,
    meetings_tail,
)
from papers.theorems.trust_ladder import trust_ladder


@pytest.mark.parametrize(
    ("graph", "observers", "steps", "bound", "exact"),
    [
        (ring(8), 0, 4, 1.0, 0.875),
        (star(6), 1, 3, 0.5, 0.333333333),
        (grid(3, 3), 0, 3, 0.666666667, 0.666666667),
        (path(6), [0, 3], 2, 1.0, 0.666666667),
    ],
)
def test_mean_losses(graph, observers, steps, bound, exact):
    """gossip:MUF-3, MUF-10 (C.7)."""
    found = mean_loss(graph, steps, observers)
    assert found.bound == pytest.approx(bound, rel=1e-8)
    assert found.mean == pytest.approx(exact, rel=1e-8)
    assert found.exact
    assert LABEL in str(found)
    assert found.worst == 1.0


def test_mean_on_a_butterfly():
    """gossip:MUF-X2: log2(n) / n."""
    found = mean_loss(butterfly(8), 3, 0)
    assert found.mean == pytest.approx(3 / 8)
    assert mean_bound(butterfly(8), 3, 0) == pytest.approx(3 / 8)


def test_randomized_mean():
    """gossip:MUF-7: ring(6) pi = 2/9; the sequence of MUF-1 has three messages for peer 0 and
    exposes everybody."""
    assert meeting_rate(ring(6), 0) == pytest.approx(0.222222222, rel=1e-8)
    assert expected_mean_loss(ring(6), 33, 0) == pytest.approx(33 * (1 - 1 / 3) * 2 / 36)
    a, b = np.array([0, 1, 0, 2, 1, 0]), np.array([1, 2, 1, 3, 2, 1])
    assert len(meeting_rows(4, a, b, [0]).messages) == 3
    np.testing.assert_allclose(meeting_loss(4, a, b, [0]).loss, 1.0)
    assert meetings_tail(50, 10) == pytest.approx(np.exp(-4))
    with pytest.raises(ConfigError, match="activations"):
        meetings_tail(0, 1)


def test_descent_mean():
    """gossip:MUF-9: (1/n) sum_s min(n, K (T - s + 1) d) <= K T (T + 1) d / 2n."""
    assert descent_mean_bound(100, 3, 4, 2) == pytest.approx(2 * 4 * 5 * 3 / 200)
    assert descent_mean_bound(6, 5, 3, 2) == 3.0
    with pytest.raises(PrivacyError, match="give >= 1"):
        descent_mean_bound(6, 5, 0, 2)


def test_trust_ladder():
    """gossip:NDP-7: hypercube(4), T = 4, peer 5: local, colluders {0, 3}, observer 0, curator."""
    rungs = trust_ladder(hypercube(4), 4, 5, 0, (0, 3))
    losses = [rung.loss for rung in rungs]
    assert [losses[k] for k in (0, 1, 2, 4)] == pytest.approx(
        [1, 0.75, 0.666666667, 0.0625], rel=1e-8
    )
    assert losses == sorted(losses, reverse=True)
    with pytest.raises(PrivacyError, match="not among the colluders"):
        trust_ladder(hypercube(4), 4, 5, 1, (0, 3))
    with pytest.raises(PrivacyError, match="nobody has secrets"):
        trust_ladder(hypercube(4), 4, 0, 0, (0, 3))


def test_conversions():
    """gossip:LG-1 example 2 and NDP-4."""
    assert gaussian(1 / 1024, 1.0).epsilon(1e-6) == pytest.approx(0.114466503, rel=1e-8)
    assert zcdp_to_epsilon(1 / 2048, 1e-6, tight=False) == pytest.approx(0.164754587, rel=1e-6)
    assert gaussian(1.0, 1.0).epsilon(1e-6) == pytest.approx(4.88655412, rel=1e-8)
    pair = gaussian(0.25, 4.0)
    assert pair.divergence(8.0) == pytest.approx(0.0625)
    assert pair.epsilon(1e-5) == pytest.approx(0.43441638, rel=1e-7)
    assert zcdp_to_epsilon(0.25 / 32, 1e-5, tight=False) == pytest.approx(0.607628239, rel=1e-6)
    by_distance = leverage(path(5), [0], 3).loss[1:]
    np.testing.assert_allclose(by_distance, [1, 1, 1, 0], atol=1e-12)
    assert mean_loss(path(5), 3, 0).mean == pytest.approx(0.6)


def test_several_scalars_by_brute_force():
    """gossip:LG-1: sum |Q| is above d^T Q d for every choice of signs, and reached when Q >= 0."""
    rng = np.random.default_rng(5)
    for _ in range(20):
        a, b = rng.standard_normal((4, 3)), rng.standard_normal((4, 6))
        q = a.T @ np.linalg.inv(b @ b.T) @ a
        found = user_loss(a, b, [0, 1, 2])
        signs = np.array([[x, y, z] for x in (1, -1) for y in (1, -1) for z in (1, -1)])
        assert np.einsum("ki,ij,kj->k", signs, q, signs).max() <= found + 1e-9
        both = user_loss(np.abs(a), np.eye(4), [0, 1, 2])
        assert both == pytest.approx(np.ones(3) @ np.abs(a).T @ np.abs(a) @ np.ones(3))


@pytest.mark.parametrize("steps", [2, 4])
def test_printed_losses_are_below_the_truth_somewhere(steps):
    """gossip:MUF-1, MUF-5, MUF-10: on grids, rings and paths the print says less than the exact
    loss."""
    for graph in (path(4), ring(8), grid(3, 3)):
        exact = leverage(graph, [0], steps).loss
        assert np.any(published_losses(lambda t, g=graph: g, graph.n, steps, [0]) < exact - 0.1)
    assert np.any(published_walk(ring(8), 0, 4) < leverage(ring(8), [0], 4).loss - 0.5)
    assert np.any(
        published_losses(lambda t: path(6), 6, 2, [0, 3]) < leverage(path(6), [0, 3], 2).loss - 0.5
    )


def test_the_printed_sum_of_all_pairs():
    """All pairs at once equal the rows one by one, and so does the translated form."""
    graph = erdos_renyi(120, c=1.5, seed=3)
    for steps in (1, 2, 3, 9):
        found = published_pairwise(graph, steps)
        for v in (0, 100, 119):
            rows = published_losses(lambda t: graph, graph.n, steps, [v])
            others = np.delete(np.arange(graph.n), v)
            np.testing.assert_allclose(found[others, v], rows[others], rtol=1e-12, atol=1e-30)
        assert np.isnan(np.diag(found)).all()
    cube = published_pairwise(hypercube(5), 4)
    expected = published_losses(lambda t: hypercube(5), 32, 4, [7])
    np.testing.assert_allclose(np.delete(cube[:, 7], 7), np.delete(expected, 7), rtol=1e-12)
