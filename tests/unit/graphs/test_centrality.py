"""Communicability and centralities, against series, networkx and the worked numbers
(walk:RW-11)."""

import math

import networkx as nx
import numpy as np
import pytest

from bruit.errors import ConfigError
from bruit.graphs import erdos_renyi, from_edges, karate, ring, star
from bruit.graphs.centrality import (
    communicability,
    eigenvector_centrality,
    katz_centrality,
    katz_communicability,
)


def test_ring_numbers():
    np.testing.assert_allclose(
        communicability(ring(5))[0, [1, 2]], [0.492268589, 0.089302838], atol=1e-9
    )
    np.testing.assert_allclose(
        katz_communicability(ring(5))[0, [1, 2]], [0.035801048, 0.001278609], atol=1e-9
    )
    np.testing.assert_allclose(katz_centrality(ring(5)), 1.25)


def test_series():
    graph = erdos_renyi(30, c=1.5, seed=2)
    w = graph.weights.toarray()
    power, exponential, geometric = np.eye(30), np.zeros((30, 30)), np.zeros((30, 30))
    for i in range(1, 40):
        power = power @ w
        exponential += power / math.factorial(i)
        geometric += 0.3**i * power
    off = ~np.eye(30, dtype=bool)
    np.testing.assert_allclose(communicability(graph)[off], exponential[off], atol=1e-12)
    np.testing.assert_array_equal(np.diag(communicability(graph)), 0.0)
    np.testing.assert_allclose(katz_communicability(graph, 0.3), geometric, atol=1e-12)


def test_against_networkx():
    graph = karate()
    plain = nx.Graph(graph.edges().tolist())
    katz = nx.katz_centrality_numpy(plain, alpha=0.1, normalized=False)
    np.testing.assert_allclose(katz_centrality(graph), [katz[v] for v in range(34)], rtol=1e-9)
    eigen = nx.eigenvector_centrality_numpy(plain)
    np.testing.assert_allclose(
        eigenvector_centrality(graph), [eigen[v] for v in range(34)], atol=1e-9
    )


def test_refusals():
    with pytest.raises(ConfigError, match="lower the decay"):
        katz_centrality(star(200), 0.1)
    with pytest.raises(ConfigError, match="0 < a < 1"):
        katz_communicability(ring(5), 1.0)
    with pytest.raises(ConfigError, match="connected"):
        eigenvector_centrality(from_edges(4, [(0, 1), (2, 3)]))
