"""Places of peers: in the unit square, the same every time, neighbors nearer than others."""

import time

import numpy as np
import pytest

from bruit.dashboard.layout import places
from bruit.graphs import erdos_renyi, from_edges, geometric, grid, path, ring, torus


@pytest.mark.parametrize("graph", [path(1), path(2), ring(9), torus(6, 6), erdos_renyi(700, c=1.5, seed=1), ring(1500),
                                   from_edges(6, np.array([[0, 1], [2, 3]]))], ids=str)  # fmt: skip
def test_in_the_square_and_repeatable(graph):
    found = places(graph)
    assert found.shape == (graph.n, 2)
    assert found.min() >= 0
    assert found.max() <= 1
    assert np.array_equal(found, places(graph))


def test_neighbors_are_near():
    graph = grid(10, 10)
    found = places(graph)
    a, b = graph.edges().T
    near = np.linalg.norm(found[a] - found[b], axis=1).mean()
    everybody = np.linalg.norm(found[:, None] - found[None], axis=2).mean()
    assert near < everybody / 3


def test_given_places_are_kept():
    graph = geometric(50, 0.3, seed=2)
    moved = np.corrcoef(places(graph)[:, 0], graph.positions[:, 0])[0, 1]
    assert moved == pytest.approx(1.0)


def test_a_thousand_peers_take_seconds():
    begin = time.process_time()
    places(erdos_renyi(1000, c=1.5, seed=1))
    assert time.process_time() - begin < 20
