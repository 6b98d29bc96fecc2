"""Gaps, mixing times, diameters, Chebyshev parameters: gossip:GRAPH-1, GM-3, GO-2, GO-4,
walk:F-5."""

import math

import networkx as nx
import numpy as np
import pytest

import bruit.graphs as graphs
from bruit.errors import ConfigError


def by_group_and_without(graph: graphs.Graph) -> list[graphs.Graph]:
    """A group graph, and the same weights without the shortcut."""
    return [
        graph,
        graphs.from_edges(graph.n, graph.edges(), plus=0 if "plus=0" in graph.name else 1),
    ]


@pytest.mark.parametrize(
    ("graph", "gap"),
    [
        *[(graphs.ring(n), 2 / 3 * (1 - math.cos(2 * math.pi / n))) for n in (4, 5, 9, 16)],
        *[(graphs.path(n), 2 / 3 * (1 - math.cos(math.pi / n))) for n in (3, 5, 8)],
        *[(graphs.hypercube(m), 2 / (m + 1)) for m in (1, 3, 4, 7)],
        *[(graphs.complete(n), 1.0) for n in (2, 7)],
        *[(graphs.star(n), 1 / n) for n in (3, 5, 12)],
        *[(graphs.torus(s, s), 2 / 5 * (1 - math.cos(2 * math.pi / s))) for s in (4, 6, 8)],
        (graphs.ring(16), 0.0507469783),
        (graphs.hypercube(4), 0.4),
        (graphs.path(8), 0.0507469783),
        (graphs.star(5), 0.2),
        (graphs.path(2, plus=0), 0.0),
        (graphs.ring(6, plus=0), 0.0),
        (graphs.hypercube(3, plus=0), 0.0),
        (graphs.ring(5, plus=0), 0.190983006),
        (graphs.complete(4, plus=0), 2 / 3),
    ],
)
def test_exact_gaps(graph: graphs.Graph, gap: float) -> None:
    """gossip:GRAPH-1 table and gossip:GM-3 examples, with the Fourier shortcut and without."""
    for one in by_group_and_without(graph):
        assert graphs.spectral_gap(one) == pytest.approx(gap, abs=1e-9)


def test_periodic_and_disconnected_gaps_are_exactly_zero() -> None:
    assert graphs.spectral_gap(graphs.ring(6, plus=0)) == 0
    assert graphs.spectral_gap(graphs.from_edges(4, [(0, 1), (2, 3)])) == 0
    assert graphs.second_eigenvalue(graphs.from_edges(4, [(0, 1), (2, 3)])) == 1


def test_one_peer_warns() -> None:
    with pytest.warns(UserWarning, match="single peer"):
        assert graphs.spectral_gap(graphs.path(1)) == 1
    with pytest.warns(UserWarning, match="single peer"):
        assert graphs.second_eigenvalue(graphs.path(1)) == 0


def test_second_eigenvalue_ignores_the_negative_end() -> None:
    """ring(5), plus = 0: eigenvalues cos(2 pi k / 5), so lambda_2 = 0.309 while the gap comes from
    -0.809."""
    graph = graphs.ring(5, plus=0)
    assert graphs.second_eigenvalue(graph) == pytest.approx(math.cos(2 * math.pi / 5))
    assert graphs.spectral_gap(graph) == pytest.approx(1 - abs(math.cos(4 * math.pi / 5)))


@pytest.mark.parametrize(
    "graph",
    [
        graphs.erdos_renyi(600, c=2),
        pytest.param(graphs.erdos_renyi(600, c=2, plus=0), marks=pytest.mark.slow),
        pytest.param(graphs.tree(700), marks=pytest.mark.slow),
        graphs.star(600),
        graphs.star(600, plus=0),
        graphs.regular(600, 3, plus=0),
    ],
    ids=lambda g: g.name,
)
def test_large_graphs_agree_with_the_dense_spectrum(graph: graphs.Graph) -> None:
    values = np.linalg.eigvalsh(graph.weights.toarray())
    assert graphs.spectral_gap(graph) == pytest.approx(
        1 - max(abs(values[0]), values[-2]), abs=1e-10
    )
    assert graphs.second_eigenvalue(graph) == pytest.approx(values[-2], abs=1e-10)


def test_large_thin_graphs_have_tiny_gaps() -> None:
    """The closed form of a path of 3000 peers, where Lanczos alone stalls."""
    gap = 2 / 3 * (1 - math.cos(math.pi / 3000))
    assert graphs.spectral_gap(graphs.path(3000)) == pytest.approx(gap, rel=1e-5)


@pytest.mark.parametrize(
    ("graph", "steps"),
    [
        (graphs.ring(8), 5),
        (graphs.path(4), 5),
        (graphs.hypercube(4), 3),
        (graphs.complete(16), 1),
        (graphs.ring(6, plus=0), math.inf),
        (graphs.from_edges(3, [(0, 1)]), math.inf),
        (graphs.path(1), 0),
    ],
)
def test_mixing_times(graph: graphs.Graph, steps: float) -> None:
    """gossip:GO-4 and walk:F-5 examples."""
    for one in by_group_and_without(graph):
        assert graphs.mixing_time(one) == steps


@pytest.mark.parametrize("iota", [0.01, 0.25, 0.6])
def test_mixing_time_by_brute_force(iota: float) -> None:
    graph = graphs.karate()
    W, power, t = graph.weights.toarray(), np.eye(34), 0
    while 0.5 * np.abs(power - 1 / 34).sum(axis=1).max() > iota:
        power, t = power @ W, t + 1
    assert graphs.mixing_time(graph, iota) == t


def test_mixing_time_of_large_graphs_walks_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = graphs.erdos_renyi(150, c=2)
    expected = graphs.mixing_time(graph)
    monkeypatch.setattr("bruit.graphs.spectrum.DENSE_MIXING", 10)
    assert graphs.mixing_time(graph) == expected


def test_mixing_time_refuses_a_bad_iota() -> None:
    with pytest.raises(ConfigError, match="iota between 0 and 1, found 0"):
        graphs.mixing_time(graphs.ring(5), 0)


@pytest.mark.parametrize(
    "text",
    [
        "er:120,c=1.2",
        "geometric:150,radius=0.15",
        "tree:60",
        "ws:80,k=2,p=0.1",
        "grid:4x7",
        "exponential:50",
        "women",
        "path:40",
        "ba:90,m=1",
    ],
)
def test_diameter_agrees_with_networkx(text: str) -> None:
    graph = graphs.graph(text)
    assert isinstance(graph, graphs.Graph)
    g = graph.to_networkx()
    assert graphs.diameter(graph) == nx.diameter(g)
    hops = nx.single_source_shortest_path_length(g, 3)
    assert graph.distances(3).tolist() == [hops[v] for v in range(graph.n)]


def test_diameter_of_a_disconnected_graph_is_infinite() -> None:
    assert graphs.diameter(graphs.from_edges(3, [(0, 1)])) == math.inf


def test_chebyshev_parameters() -> None:
    """gossip:GO-2 examples."""
    printed = [graphs.chebyshev_gamma(gap) for gap in (0.01, 0.25, 1)]
    np.testing.assert_allclose(printed, [1.81838858, 1.34759727, 1.07179677], rtol=1e-8)
    best = [graphs.chebyshev_gamma_star(gap) for gap in (0.01, 0.25, 1)]
    np.testing.assert_allclose(best, [1.7527449, 1.20377661, 1], rtol=1e-8)
    for rule in (graphs.chebyshev_gamma, graphs.chebyshev_gamma_star):
        with pytest.raises(ConfigError, match="spectral gap in"):
            rule(0.0)
