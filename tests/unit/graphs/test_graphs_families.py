"""Families and the Graph record: gossip:GRAPH-1."""

from collections.abc import Callable

import networkx as nx
import numpy as np
import pytest

import bruit.graphs as graphs
from bruit.errors import ConfigError

GROUP_GRAPHS = [
    graphs.ring(7),
    graphs.ring(2),
    graphs.complete(5),
    graphs.torus(3, 4),
    graphs.torus(2, 3, 5),
    graphs.torus(1, 4),
    graphs.hypercube(4),
    graphs.exponential(12),
    graphs.hypercube(0),
]


@pytest.mark.parametrize(
    ("graph", "n", "edges", "diameter", "degree"),
    [
        (graphs.hypercube(4), 16, 32, 4, 4),
        (graphs.grid(3, 4), 12, 17, 5, 4),
        (graphs.florentine(), 15, 20, 5, 6),
        (graphs.karate(), 34, 78, 5, 17),
        (graphs.southern_women(), 32, 89, 4, 14),
        (graphs.star(6), 6, 5, 2, 5),
        (graphs.tree(7), 7, 6, 4, 3),
        (graphs.torus(4, 5), 20, 40, 4, 4),
        (graphs.exponential(8), 8, 20, 2, 5),
    ],
)
def test_known_sizes(graph: graphs.Graph, n: int, edges: int, diameter: int, degree: int) -> None:
    """gossip:GRAPH-1 gives the hypercube, the grid and the size of the Florentine graph; the rest
    is well known."""
    assert (graph.n, graph.edge_count, graph.degrees.max()) == (n, edges, degree)
    assert graphs.diameter(graph) == diameter
    assert graph.validity().ok


def edge_set(g: "nx.Graph[object]", nodes: list[object]) -> set[frozenset[int]]:
    index = {node: i for i, node in enumerate(nodes)}
    return {frozenset((index[a], index[b])) for a, b in g.edges}


@pytest.mark.parametrize(
    ("graph", "reference"),
    [
        (graphs.path(9), nx.path_graph(9)),
        (graphs.ring(9), nx.cycle_graph(9)),
        (graphs.star(9), nx.star_graph(8)),
        (graphs.complete(9), nx.complete_graph(9)),
        (graphs.tree(13), nx.full_rary_tree(2, 13)),
        (graphs.grid(3, 5), nx.grid_graph((5, 3))),
        (graphs.grid(2, 3, 4), nx.grid_graph((4, 3, 2))),
        (graphs.torus(3, 5), nx.grid_graph((5, 3), periodic=True)),
        (graphs.torus(3, 4, 5), nx.grid_graph((5, 4, 3), periodic=True)),
        (graphs.hypercube(5), nx.hypercube_graph(5)),
        (graphs.exponential(20), nx.circulant_graph(20, [1, 2, 4, 8, 16])),
    ],
)
def test_same_edges_as_networkx(graph: graphs.Graph, reference: "nx.Graph[object]") -> None:
    """Tuples of networkx sort as our mixed-radix indices do."""
    assert {frozenset(edge) for edge in graph.edges().tolist()} == edge_set(
        reference, sorted(reference.nodes)
    )


@pytest.mark.parametrize("graph", GROUP_GRAPHS, ids=lambda g: g.name)
def test_translations_are_automorphisms_of_the_weights(graph: graphs.Graph) -> None:
    W = graph.weights.toarray()
    for v in range(graph.n):
        p = graph.translate(v)
        assert p[v] == 0
        np.testing.assert_array_equal(W[np.ix_(p, p)], W)


def test_torus_translation_by_hand() -> None:
    """Peer (i, j) of torus(3, 4) is 4 i + j; (0, 1) - (1, 2) = (2, 3)."""
    assert graphs.torus(3, 4).translate(6)[1] == 11
    assert graphs.hypercube(3).translate(5)[3] == 6
    with pytest.raises(ConfigError, match="path:4 has no translation group"):
        graphs.path(4).translate(1)


@pytest.mark.parametrize(
    "graph",
    [
        graphs.path(1),
        graphs.ring(1),
        graphs.star(1),
        graphs.complete(1),
        graphs.grid(1, 1),
        graphs.torus(1),
        graphs.hypercube(0),
        graphs.exponential(1),
        graphs.tree(1),
        graphs.erdos_renyi(1, q=0.5),
        graphs.regular(1, 0),
        graphs.k_out(1, 0),
    ],
    ids=lambda g: g.name,
)
def test_one_peer(graph: graphs.Graph) -> None:
    """Section 11: n = 1 is one peer, no edge, W = [1]."""
    assert graph.weights.toarray().tolist() == [[1.0]]
    assert graph.edge_count == 0
    assert graphs.diameter(graph) == 0


def test_records_answer_simple_questions() -> None:
    graph = graphs.path(4)
    assert repr(graph) == "Graph(path:4: 4 peers, 3 edges)"
    assert graph.neighbors(1).tolist() == [0, 2]
    assert graph.has_edge(1, 2)
    assert not graph.has_edge(1, 1)
    assert not graph.has_edge(0, 3)
    assert graph.weights.indices.dtype == np.int32
    assert graph.distances(3).tolist() == [3, 2, 1, 0]
    with pytest.raises(ConfigError, match="path:4 has peers 0 to 3, found 4"):
        graph.neighbors(4)


def test_reweighted_keeps_what_is_not_weight() -> None:
    graph = graphs.torus(3, 4, plus=0)
    again = graph.reweighted(kind="sum")
    assert graph.name == "torus:3x4,plus=0"
    assert again.name == "torus:3x4,kind=sum"
    assert again.group == (3, 4)
    assert (
        again.fingerprint() == graphs.torus(3, 4, kind="sum").fingerprint() != graph.fingerprint()
    )
    assert again.reweighted().fingerprint() == graphs.torus(3, 4).fingerprint()


def test_residues_refuse_bad_primes() -> None:
    with pytest.raises(ConfigError, match="divides the denominator 3"):
        graphs.ring(5).residues(3)
    with pytest.raises(ConfigError, match="prime between 2 and 2"):
        graphs.ring(5).residues(2**61 - 1)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: graphs.path(0), "path needs at least one peer, found n = 0"),
        (lambda: graphs.grid(3, 0), "grid:3x0: every side"),
        (lambda: graphs.torus(), "every side must be at least 1"),
        (lambda: graphs.complete(30_000), "complete:30000 has 449,985,000 links"),
        (lambda: graphs.hypercube(-1), "m between 0 and 26, found m = -1"),
    ],
)
def test_impossible_sizes(make: Callable[[], graphs.Graph], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        make()
