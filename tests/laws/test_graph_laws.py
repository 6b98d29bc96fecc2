"""Laws of every graph: weights, exact fractions, residues, hops, names (gossip:GM-1, GM-2)."""

from fractions import Fraction

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bruit.graphs as graphs

pytestmark = pytest.mark.slow

PRIMES = st.sampled_from([2**31 - 1, 2**31 - 19, 1_000_003])


@st.composite
def edge_graphs(draw: st.DrawFn) -> graphs.Graph:
    n = draw(st.integers(1, 12))
    pairs = st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)).filter(
        lambda pair: pair[0] != pair[1]
    )
    edges = draw(st.lists(pairs, max_size=30)) if n > 1 else []
    return graphs.from_edges(
        n,
        np.array(edges, dtype=np.int64).reshape(-1, 2),
        kind=draw(st.sampled_from(["max", "sum", "laplacian"])),
        plus=draw(st.integers(0, 1)),
    )


@st.composite
def given_graphs(draw: st.DrawFn) -> graphs.Graph:
    """Weights a user might write: any nonnegative floats, scaled so that rows leave room for the
    diagonal."""
    n = draw(st.integers(1, 6))
    matrix = np.zeros((n, n))
    for i in range(n):
        for j in range(i):
            matrix[i, j] = matrix[j, i] = draw(st.floats(0, 1)) / n
    return graphs.from_matrix(matrix + np.diag(1 - matrix.sum(axis=1)))


ANY = st.one_of(edge_graphs(), given_graphs())


@given(ANY)
def test_weights_are_symmetric_and_stochastic(graph: graphs.Graph) -> None:
    facts = graph.validity()
    assert facts.ok_in_sequence
    W = graph.weights.toarray()
    np.testing.assert_array_equal(W, W.T)
    np.testing.assert_allclose(W.sum(axis=1), 1, atol=1e-14)
    assert (W >= 0).all()


@given(ANY)
def test_floats_are_the_rounded_fractions(graph: graphs.Graph) -> None:
    for a in range(graph.n):
        row = [graph.fraction(a, b) for b in range(graph.n)]
        assert sum(row) == 1
        np.testing.assert_allclose([float(x) for x in row], graph.weights.toarray()[a], atol=1e-14)


@given(edge_graphs())
def test_zero_self_weights_agree_with_the_fractions(graph: graphs.Graph) -> None:
    for v, weight in enumerate(graph.self_weights()):
        assert (weight == 0) == (graph.fraction(v, v) == 0)


@given(ANY, PRIMES)
def test_residues_are_the_fractions_mod_p(graph: graphs.Graph, p: int) -> None:
    residues = graph.residues(p)
    rows = np.repeat(np.arange(graph.n), np.diff(graph.weights.indptr))
    for a, b, found in zip(rows, graph.weights.indices, residues, strict=True):
        exact: Fraction = graph.fraction(int(a), int(b))
        assert found == exact.numerator * pow(exact.denominator, -1, p) % p


@given(edge_graphs())
def test_structure_agrees_with_networkx(graph: graphs.Graph) -> None:
    g = graph.to_networkx()
    assert graph.is_connected() == nx.is_connected(g)
    assert graph.degrees.tolist() == [g.degree[v] for v in range(graph.n)]
    hops = nx.single_source_shortest_path_length(g, 0)
    assert graph.distances(0).tolist() == [hops.get(v, -1) for v in range(graph.n)]
    assert graphs.diameter(graph) == (nx.diameter(g) if nx.is_connected(g) else float("inf"))
    facts = graph.validity()
    assert facts.aperiodic == (bool((graph.self_weights() > 0).any()) or not nx.is_bipartite(g))


@given(edge_graphs())
def test_gap_agrees_with_the_spectrum(graph: graphs.Graph) -> None:
    if graph.n == 1:
        return
    sizes = np.sort(np.abs(np.linalg.eigvalsh(graph.weights.toarray())))
    assert abs(graphs.spectral_gap(graph) - (1 - sizes[-2])) < 1e-12


@given(st.lists(st.integers(1, 5), min_size=1, max_size=3), st.integers(0, 1), st.data())
def test_torus_translations_are_automorphisms(
    sides: list[int], plus: int, data: st.DataObject
) -> None:
    graph = graphs.torus(*sides, plus=plus)
    p = graph.translate(data.draw(st.integers(0, graph.n - 1)))
    W = graph.weights.toarray()
    np.testing.assert_array_equal(W[np.ix_(p, p)], W)


@given(st.integers(1, 60), st.integers(0, 2**40))
def test_butterfly_reaches_the_average(n: int, seed: int) -> None:
    sequence = graphs.butterfly(n, relabel=seed)
    total = np.eye(n)
    for t in range(len(sequence.radices)):
        total = sequence.at(t).weights @ total
    np.testing.assert_allclose(total, 1 / n, atol=1e-14)


@settings(max_examples=50)
@given(st.integers(2, 24), st.integers(1, 12), st.integers(0, 1000))
def test_regular_graphs_are_regular(n: int, degree: int, seed: int) -> None:
    if degree >= n or n * degree % 2:
        return
    graph = graphs.regular(n, degree, seed, connected=False)
    assert (graph.degrees == degree).all()
    again = graphs.graph(graph.name)
    assert isinstance(again, graphs.Graph)
    assert again.fingerprint() == graph.fingerprint()
