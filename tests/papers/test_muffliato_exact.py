"""Muffliato's printed pairwise loss against the exact one: where the printed one is below the
truth."""

import numpy as np
import pytest

from bruit.graphs import erdos_renyi, hypercube, path, ring, torus
from bruit.privacy.exact.all_pairs import pairwise
from bruit.privacy.exact.krylov import leverage
from bruit.privacy.theorems.published import published_losses, published_pairwise


def test_smallest_counter_example() -> None:
    """Path 0-1-2, T = 2: z_2 = 3 y - z_0 - z_1 is computed by peer 0; printed 1/3, true 1."""
    printed = published_pairwise(path(3), 2)
    exact = pairwise(path(3), 2).m
    assert printed[2, 0] == pytest.approx(1 / 3)
    assert exact[2, 0] == 1.0


def test_antipode_of_a_ring() -> None:
    """Ring of 16, T = 8: printed 3.25e-6 for the antipode, true 1."""
    assert published_pairwise(ring(16), 8)[8, 0] == pytest.approx(3.25e-6, rel=2e-3)
    assert leverage(ring(16), [0], 8).loss[8] == 1.0


def test_distance_five_on_a_torus() -> None:
    """16 x 16 torus after five steps, peers at distance five: the printed loss is far below the
    exact one."""
    graph = torus(16, 16)
    far = np.flatnonzero(graph.distances(0) == 5)
    printed = published_pairwise(graph, 5)[far, 0]
    exact = leverage(graph, [0], 5).loss[far]
    assert (exact > printed).all()
    assert (exact / printed).max() > 100


def test_hypercube_of_figure_6() -> None:
    """gossip:MUF-13, EXP-12: hypercube of 2048 peers, T = 19, by distance; and the means."""
    found = leverage(hypercube(11), [0], 19)
    first = (1 << np.arange(1, 12)) - 1
    exact = [1, 0.2, 0.0666667, 0.0333333, 0.0238095, 0.0238095, 0.0333333, 0.0666667, 0.2, 1, 1]
    np.testing.assert_allclose(found.loss[first], exact, rtol=3e-6)
    assert (found.loss.sum() - 1) / 2048 == pytest.approx(0.0541992188, rel=1e-8)
    printed = published_losses(lambda t: hypercube(11), 2048, 19, [0])
    source = [
        2.25292,
        0.633731,
        0.238521,
        0.118082,
        0.0699521,
        0.0453587,
        0.0317215,
        0.022548,
        0.0168242,
        0.0123197,
        0.00945399,
    ]
    np.testing.assert_allclose(printed[first], source, rtol=1e-5)
    assert np.minimum(printed[1:], 1).sum() / 2048 == pytest.approx(0.0940969196, rel=1e-8)


def test_mean_survives() -> None:
    """gossip:MUF-3: sum of exact losses = rank - 1 <= T d_v, the number the mean formula of the
    paper uses."""
    graph = erdos_renyi(120, c=1.5, seed=2)
    found = pairwise(graph, 6)
    sums = np.nansum(found.m, axis=0)
    np.testing.assert_allclose(sums, found.rank - 1, atol=1e-6)
    assert (sums <= 6 * graph.degrees + 1e-6).all()


def test_printed_loss_is_no_bound_on_random_graphs() -> None:
    """Most pairs of an Erdos-Renyi graph lose more than printed, while neighbors are charged more
    than local DP."""
    graph = erdos_renyi(200, c=1.5, seed=0)
    exact, printed = pairwise(graph, 6).m, published_pairwise(graph, 6)
    off = ~np.eye(200, dtype=bool)
    assert np.mean(exact[off] > printed[off]) > 0.3
    assert np.nanmax(printed) > 1.0
    assert np.nanmax(exact) <= 1.0
