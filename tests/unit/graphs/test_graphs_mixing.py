"""Weights from edges, given weights, validity: gossip:GM-1, gossip:GM-2, and the corners."""

import gzip
import os
from fractions import Fraction
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
from numpy.typing import ArrayLike
from scipy.sparse import csr_array

import bruit.graphs as graphs
from bruit.errors import ConfigError
from bruit.graphs.names import weight_rule


def dense(graph: graphs.Graph) -> np.ndarray:
    return graph.weights.toarray()


@pytest.mark.parametrize(
    ("graph", "rows"),
    [
        (graphs.path(4), [[2 / 3, 1 / 3, 0, 0], [1 / 3, 1 / 3, 1 / 3, 0]]),
        (graphs.path(4, plus=0), [[0.5, 0.5, 0, 0], [0.5, 0, 0.5, 0]]),
        (graphs.path(4, kind="sum", plus=0), [[2 / 3, 1 / 3, 0, 0], [1 / 3, 5 / 12, 0.25, 0]]),
        (graphs.star(5), [[0.2] * 5, [0.2, 0.8, 0, 0, 0]]),
    ],
)
def test_rows_of_the_worked_examples(graph: graphs.Graph, rows: list[list[float]]) -> None:
    """gossip:GM-2, examples."""
    np.testing.assert_allclose(dense(graph)[:2], rows, rtol=0, atol=1e-15)


def test_laplacian_weights_are_identity_minus_scaled_laplacian() -> None:
    """gossip:GM-2: W = I - L / d_max with plus = 0."""
    graph = graphs.karate(kind="laplacian", plus=0)
    laplacian = nx.laplacian_matrix(nx.karate_club_graph(), weight=None).toarray()
    np.testing.assert_allclose(dense(graph), np.eye(34) - laplacian / 17, atol=1e-15)


def test_validity_of_rings_without_self_weights() -> None:
    """gossip:GM-1, examples: ring(6) fails only aperiodicity, ring(5) is valid."""
    even, odd = graphs.ring(6, plus=0).validity(), graphs.ring(5, plus=0).validity()
    assert not even.aperiodic
    assert even.ok_in_sequence
    assert even.irreducible
    assert not even.ok
    assert odd.ok


def test_asking_for_validity_changes_nothing() -> None:
    graph = graphs.ring(6, plus=0)
    before = graph.fingerprint()
    graph.validity()
    assert graph.fingerprint() == before
    assert graph.edge_count == 6


def test_two_peers_without_self_weight_are_periodic() -> None:
    """Section 11: n = 2, plus = 0."""
    assert not graphs.path(2, plus=0).validity().aperiodic


def test_zero_self_weights_are_exactly_zero() -> None:
    """1 - 49 * (1/49) is not zero in floats; a regular graph with plus = 0 has no self-weight at
    all."""
    graph = graphs.complete(50, plus=0)
    assert (graph.self_weights() == 0).all()
    assert graph.weights.nnz == 50 * 50
    assert graphs.southern_women(kind="laplacian", plus=0).validity().nonnegative


def test_disconnected_graph_and_isolated_peer() -> None:
    """Section 11: edges (0,1), (1,2), (3,4) and an isolated peer 5 with W = 1."""
    graph = graphs.from_edges(6, [(0, 1), (1, 2), (3, 4)])
    assert graph.components().tolist() == [0, 0, 0, 1, 1, 2]
    assert not graph.is_connected()
    assert not graph.validity().irreducible
    assert graph.self_weights()[5] == 1.0
    assert graph.distances(0).tolist() == [0, 1, 2, -1, -1, -1]


def test_self_loops_are_dropped_with_a_warning_and_repeats_merged() -> None:
    """Section 11, and the warning names the peer."""
    with pytest.warns(UserWarning, match="1 self-loop.*peer 2"):
        graph = graphs.from_edges(3, [(0, 1), (1, 0), (2, 2), (1, 2), (0, 1)])
    assert graph.edges().tolist() == [[0, 1], [1, 2]]
    assert graph.fingerprint() == graphs.path(3).fingerprint()


@pytest.mark.parametrize(
    ("edges", "message"),
    [
        ([(0, 7)], r"edge \(0, 7\) names a peer outside 0\.\.2"),
        ([(-1, 2)], r"edge \(-1, 2\)"),
        ([(0.5, 1.0)], "pairs of integers"),
        ([(0, 1, 2)], "pairs of integers"),
    ],
)
def test_bad_edges_are_refused(edges: list[tuple[float, ...]], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        graphs.from_edges(3, edges)


def test_bad_weight_rules_are_refused() -> None:
    with pytest.raises(ConfigError, match="'max', 'sum' or 'laplacian', found 'best'"):
        graphs.ring(4, kind="best")
    with pytest.raises(ConfigError, match="plus must be 0 or 1, found 2"):
        graphs.ring(4, plus=2)
    with pytest.raises(ConfigError, match="at least one peer"):
        graphs.from_edges(0, [])


def broken(*changes: tuple[int, int, float]) -> np.ndarray:
    matrix = dense(graphs.ring(8))
    for i, j, value in changes:
        matrix[i, j] = value
    return matrix


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        (broken((3, 7, -0.25), (7, 3, -0.25)), r"negative weight -0.25 at \(3, 7\)"),
        (broken((5, 5, 1 / 3 - 0.07)), "row 5 sums to 0.93;"),
        (broken((1, 2, 0.2)), r"not symmetric at \(1, 2\): 0.2 against 0.333"),
        (broken((4, 4, np.nan)), r"weight nan at \(4, 4\)"),
        (broken((4, 4, np.inf)), r"weight inf at \(4, 4\)"),
        ([[1.0], [0.5, 0.5]], "not a matrix of numbers"),
        (np.ones((2, 3)), r"square.*\(2, 3\)"),
        (np.zeros((0, 0)), "at least one peer"),
    ],
)
def test_given_weights_are_refused_with_the_place(matrix: ArrayLike, message: str) -> None:
    """gossip:GM-1."""
    with pytest.raises(ConfigError, match=message):
        graphs.from_matrix(matrix)


def test_given_weights_off_the_allowed_edges_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"weight 0.333.* at \(0, 7\), not an edge"):
        graphs.from_matrix(dense(graphs.ring(8)), edges=graphs.path(8).edges())
    assert graphs.from_matrix(dense(graphs.ring(8)), edges=graphs.ring(8).edges()).edge_count == 8


def test_given_floats_are_exact_dyadic_rationals() -> None:
    """conventions: the floats are the weights, the diagonal is 1 - sum exactly."""
    matrix = np.array([[0.7, 0.1, 0.2], [0.1, 0.9, 0.0], [0.2, 0.0, 0.8]])
    graph = graphs.from_matrix(csr_array(matrix))
    assert graph.fraction(0, 1) == Fraction(0.1)
    assert graph.fraction(0, 0) == 1 - Fraction(0.1) - Fraction(0.2)
    assert graph.edge_count == 2
    np.testing.assert_array_equal(dense(graph), matrix)
    tiny = graphs.from_matrix([[1 - 2.0**-60, 2.0**-60], [2.0**-60, 1 - 2.0**-60]])
    assert tiny.fraction(1, 0) == Fraction(1, 2**60)
    p = 2**31 - 1
    assert tiny.residues(p).tolist() == [
        (1 - pow(2, -60, p)) % p,
        pow(2, -60, p),
        pow(2, -60, p),
        (1 - pow(2, -60, p)) % p,
    ]


def test_given_weights_symmetric_up_to_rounding_are_made_symmetric() -> None:
    graph = graphs.from_matrix([[0.5, 0.5 + 1e-11], [0.5, 0.5]])
    assert graph.fraction(0, 1) == graph.fraction(1, 0)
    np.testing.assert_allclose(dense(graph).sum(axis=1), 1, atol=1e-15)


def test_networkx_graphs_keep_labels_and_refuse_directions() -> None:
    graph = graphs.from_networkx(nx.Graph([("ann", "bob"), ("bob", "cid")]))
    assert graph.labels == ("ann", "bob", "cid")
    assert graph.edges().tolist() == [[0, 1], [1, 2]]
    assert graphs.from_networkx(nx.MultiGraph([(0, 1), (0, 1)])).edge_count == 1
    with pytest.raises(ConfigError, match="directed"):
        graphs.from_networkx(nx.DiGraph([(0, 1)]))
    back = graph.to_networkx()
    assert back.nodes[2]["label"] == "cid"
    assert back.edges[0, 1]["weight"] == pytest.approx(1 / 3)


def test_edge_lists_plain_and_gzipped(tmp_path: Path) -> None:
    text = "# friends\n10 9\n\n9 100  # twice\n100, 9\n"
    plain, packed = tmp_path / "edges.txt", tmp_path / "edges.txt.gz"
    plain.write_text(text)
    packed.write_bytes(gzip.compress(text.encode()))
    for path in (plain, packed):
        graph = graphs.from_edge_list(path)
        assert graph.labels == ("9", "10", "100")  # sorted as numbers
        assert graph.edges().tolist() == [[0, 1], [0, 2]]
    plain.write_text("bob ann\n")
    assert graphs.from_edge_list(plain).labels == ("ann", "bob")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"0 1\n1\n", r"line 2: 1 column in '1'"),
        (b"0 1 0.5 2\n", r"line 1: 4 columns"),
        (b"0 1 0.5\n1 2\n", "line 2: 2 columns, but line 1 has 3"),
        (b"0 1 0.5\n1 2 -3\n", "line 2: the weight '-3' is not a number >= 0"),
        (b"0 1 near\n", "line 1: the weight 'near'"),
        (b"0 1 0.5\n1 0 0.4\n", "two weights, 0.5 and 0.4"),
        (b"# nothing\n", "holds no edge"),
        (b"\xff\xfe\x00", "not a text file"),
    ],
)
def test_bad_edge_lists_name_the_line(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "edges.txt"
    path.write_bytes(content)
    with pytest.raises(ConfigError, match=message):
        graphs.from_edge_list(path)


def test_missing_and_damaged_edge_lists(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"no edge list at .*none\.txt"):
        graphs.from_edge_list(tmp_path / "none.txt")
    (tmp_path / "bad.gz").write_bytes(b"no gzip")
    with pytest.raises(ConfigError, match="cannot read"):
        graphs.from_edge_list(tmp_path / "bad.gz")


def test_ego_takes_the_giant_component(tmp_path: Path) -> None:
    folder = tmp_path / "ego_facebook"
    folder.mkdir()
    (folder / "7.edges").write_text("30 20\n20 30\n20 4\n1 2\n")
    graph = graphs.from_ego(7, tmp_path)
    assert graph.labels == ("4", "20", "30")
    assert graph.edges().tolist() == [[0, 1], [1, 2]]
    with pytest.raises(
        ConfigError, match=r"no edges of ego 8: looked in .*ego_facebook; the egos there are 7"
    ):
        graphs.from_ego(8, tmp_path)


def test_ego_says_where_it_looked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BRUIT_DATA", str(tmp_path))
    with pytest.raises(ConfigError, match=f"looked in {tmp_path}.*set BRUIT_DATA"):
        graphs.from_ego(414)


def test_ego_414() -> None:
    """conventions: 148 peers; 1692 edges and diameter 7 checked with networkx."""
    root = Path(
        os.environ.get("BRUIT_DATA", Path(__file__).resolve().parents[4] / "shared" / "data")
    )
    if not (root / "ego_facebook" / "414.edges.gz").is_file():
        pytest.skip(f"the ego-Facebook data are not in {root}")
    graph = graphs.from_ego(414)
    assert (graph.n, graph.edge_count, graphs.diameter(graph)) == (148, 1692, 7)
    assert graph.labels is not None
    assert list(map(int, graph.labels)) == sorted(map(int, graph.labels))
    with gzip.open(root / "ego_facebook" / "414.edges.gz", "rt") as file:
        whole = nx.read_edgelist(file)
    giant = whole.subgraph(max(nx.connected_components(whole), key=len))
    assert set(giant) == set(graph.labels)
    assert nx.diameter(giant) == 7


def test_without_edges_moves_the_weight_to_both_ends_exactly():
    whole = graphs.ring(5)
    broken = whole.without_edges(np.array([1]), np.array([0]))
    matrix = dense(broken)
    assert np.allclose(matrix.sum(axis=0), 1)
    assert np.allclose(matrix, matrix.T)
    assert matrix[0, 1] == 0
    assert broken.fraction(0, 0) == Fraction(2, 3)
    assert broken.fraction(2, 2) == Fraction(1, 3)


def test_networkx_nodes_that_are_numbers_stay_who_they_are() -> None:
    """barbell_graph(4, 1) lists its bridge, node 4, last: it was peer 8, in silence."""
    plain = nx.barbell_graph(4, 1)
    assert list(plain) != sorted(plain)
    graph = graphs.from_networkx(plain)
    assert graph.labels is None
    assert graph.degrees.tolist() == [plain.degree[node] for node in range(9)]
    assert {tuple(edge) for edge in graph.edges().tolist()} == {
        tuple(sorted(edge)) for edge in plain.edges
    }
    assert graph.degrees[4] == 2


@pytest.mark.parametrize(
    "plain",
    [
        nx.barbell_graph(3, 2),
        nx.lollipop_graph(3, 4),
        nx.random_regular_graph(3, 10, seed=1),
        nx.ladder_graph(5),
        nx.Graph([(3, 1), (0, 2), (2, 1)]),
        nx.Graph([(np.int64(1), np.int64(0))]),
    ],
    ids=lambda plain: f"{plain}",
)
def test_numbered_graphs_come_back_from_networkx_unchanged(plain: nx.Graph) -> None:
    graph = graphs.from_networkx(plain)
    assert graph.labels is None
    assert {tuple(edge) for edge in graph.edges().tolist()} == {
        tuple(sorted(map(int, e))) for e in plain.edges
    }


def test_other_numbers_are_sorted_and_names_stay_in_order() -> None:
    graph = graphs.from_networkx(nx.Graph([(30, 7), (7, 100)]))
    assert graph.labels == ("7", "30", "100")
    assert graph.edges().tolist() == [[0, 1], [0, 2]]
    assert graphs.from_networkx(nx.Graph([("zoe", "ann")])).labels == ("zoe", "ann")
    assert graphs.from_networkx(nx.Graph([(True, "x")])).labels == ("True", "x")


@pytest.mark.parametrize(
    ("name", "words"),
    [
        (
            "karate,kind=laplacian,plus=0",
            "kind=laplacian, plus=0: 1 / (largest degree of all), that is I - L / d_max;"
            " as printed",
        ),
        (
            "karate,kind=laplacian",
            "kind=laplacian, plus=1: 1 / (1 + largest degree of all), that is I - L / (1 + d_max);"
            " the printed rule is plus=0",
        ),
        ("ring:5", "kind=max, plus=1: 1 / (1 + larger degree); the printed rule is plus=0"),
        ("ring:5,kind=sum,plus=0", "kind=sum, plus=0: 1 / (sum of degrees); as printed"),
    ],
)
def test_a_graph_says_by_which_rule_it_was_weighted(name: str, words: str) -> None:
    assert weight_rule(graphs.fixed_graph(name)) == words
    assert weight_rule(graphs.from_matrix([[0.5, 0.5], [0.5, 0.5]])) == "given, entry by entry"


def test_the_rule_said_is_the_rule_used() -> None:
    """I - L / d_max is what the sources print; the default adds one to the degree."""
    L = nx.laplacian_matrix(nx.karate_club_graph(), weight=None).toarray()
    for plus in (0, 1):
        W = graphs.fixed_graph(f"karate,kind=laplacian,plus={plus}")
        np.testing.assert_allclose(dense(W), np.eye(34) - L / (plus + 17), atol=1e-15)
