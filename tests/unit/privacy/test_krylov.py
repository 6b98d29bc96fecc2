"""The exact loss of linear gossip: closed forms, exact rational arithmetic, certificates, corner
cases."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bruit.errors import ConfigError, PrivacyError
from bruit.graphs import (
    Graph,
    complete,
    erdos_renyi,
    from_edges,
    geometric,
    grid,
    hypercube,
    k_out,
    path,
    ring,
    star,
    torus,
)
from bruit.graphs.names import graph as named
from bruit.privacy.exact.all_pairs import pairwise
from bruit.privacy.exact.blas import one_blas_thread
from bruit.privacy.exact.krylov import TOLERANCE, certified, group_loss, leverage
from bruit.privacy.exact.modular import Ranks, krylov_ranks
from bruit.privacy.exact.refined import refined_basis
from bruit.privacy.exact.span import KrylovSpan, krylov_span
from bruit.privacy.exact.twins import cells_of, graph_residues


def exact_loss(graph: Graph, observers: list[int], steps: int) -> tuple[list[Fraction], int]:
    """The squared projections on row(K_V) and its rank, by Gram-Schmidt in rational arithmetic."""
    n = graph.n
    weights = [[graph.fraction(i, j) for j in range(n)] for i in range(n)]
    heard = sorted({int(w) for v in observers for w in graph.neighbors(v)} - set(observers))
    rows = [[Fraction(int(i == v)) for i in range(n)] for v in observers]
    block = [[Fraction(int(i == w)) for i in range(n)] for w in heard]
    for _ in range(steps):
        rows += block
        block = [
            [sum((x[k] * weights[k][j] for k in range(n)), Fraction(0)) for j in range(n)]
            for x in block
        ]
    basis: list[list[Fraction]] = []
    squares: list[Fraction] = []
    for row in rows:
        for known, square in zip(basis, squares, strict=True):
            factor = sum((a * b for a, b in zip(row, known, strict=True)), Fraction(0)) / square
            row = [a - factor * b for a, b in zip(row, known, strict=True)]
        square = sum((a * a for a in row), Fraction(0))
        if square:
            basis.append(row)
            squares.append(square)
    loss = [
        sum((b[u] ** 2 / s for b, s in zip(basis, squares, strict=True)), Fraction(0))
        for u in range(n)
    ]
    return loss, len(basis)


SMALL = [
    path(5),
    ring(7),
    star(6),
    grid(3, 3),
    hypercube(3),
    complete(4),
    from_edges(8, [(0, 1), (1, 2), (1, 3), (2, 4), (3, 4), (4, 5), (5, 6), (5, 7)]),
    from_edges(6, [(0, 1), (1, 2), (0, 2), (3, 4)]),
    erdos_renyi(9, q=0.35, seed=3),
    erdos_renyi(10, q=0.3, seed=4),
    geometric(9, 0.5, seed=1),
    grid(2, 4, plus=0),
]


@pytest.mark.parametrize("graph", SMALL, ids=lambda graph: graph.name)
@pytest.mark.parametrize("steps", [1, 2, 4])
def test_rational_arithmetic_agrees(graph: Graph, steps: int) -> None:
    """gossip:MUF-2, MUF-10 against Gram-Schmidt over the rationals, one observer and two."""
    for observers in ([0], [1, graph.n - 1]):
        expected, rank = exact_loss(graph, observers, steps)
        found = leverage(graph, observers, steps)
        assert found.status == "exact"
        assert found.rank == rank
        np.testing.assert_allclose(found.loss, [float(x) for x in expected], atol=1e-12)


def test_twins_share_what_is_known_of_them() -> None:
    """Two peers with the same neighbors can be told apart by nobody else: 1/2 each, however long
    one listens."""
    graph = from_edges(6, [(0, 1), (1, 2), (2, 3), (2, 4), (3, 5), (4, 5)])
    for steps in (4, 20, 60):
        found = leverage(graph, [0], steps)
        np.testing.assert_allclose(found.loss[[3, 4]], 0.5, atol=1e-12)
        assert found.rank == 5
        assert set(found.certificate.modular) == {5}


@pytest.mark.parametrize(
    ("graph", "observer", "steps", "expected"),
    [
        (path(3), 0, 2, [1, 1, 1]),
        (path(5), 0, 3, [1, 1, 1, 1, 0]),
        (ring(8), 0, 4, [1] * 8),
        (star(6), 1, 3, [1, 1, 0.25, 0.25, 0.25, 0.25]),
        (
            grid(3, 3),
            0,
            3,
            [1, 1, 0.75707617, 1, 0.62043151, 0.93270808, 0.75707617, 0.93270808, 0],
        ),
        (from_edges(5, [(0, 1), (1, 2), (3, 4)]), 0, 5, [1, 1, 1, 0, 0]),
    ],
)
def test_worked_examples(graph: Graph, observer: int, steps: int, expected: list[float]) -> None:
    """gossip:MUF-2, the corners."""
    np.testing.assert_allclose(
        leverage(graph, [observer], steps).loss, expected, rtol=1e-6, atol=1e-15
    )


def test_own_noise_unknown() -> None:
    """gossip:MUF-2, the literal reading of (6.2)."""
    found = leverage(path(3), [0], 2, own_noise_known=False)
    np.testing.assert_allclose(found.loss, [0.5, 1, 0.5], atol=1e-12)


def test_colluders() -> None:
    """gossip:MUF-10."""
    np.testing.assert_allclose(leverage(path(6), [0, 3], 2).loss, 1.0)
    found = leverage(hypercube(4), [0, 3], 4)
    np.testing.assert_allclose(found.loss[[5, 6, 12, 15]], [0.75, 0.75, 1, 1], atol=1e-12)
    assert found.rank == 15
    np.testing.assert_array_equal(found.loss, leverage(hypercube(4), [3, 0, 3], 4).loss)


def test_secure_aggregation() -> None:
    """gossip:REC-3, MUF-X4."""
    found = leverage(ring(8), [0], 8, secure_aggregation=True)
    np.testing.assert_allclose(found.loss, [1, 0.5, 0.5, 0.5, 1, 0.5, 0.5, 0.5], atol=1e-12)
    assert found.rank == 5
    cube = leverage(hypercube(4), [0], 4, secure_aggregation=True)
    np.testing.assert_allclose(cube.loss[[0, 1, 3, 7, 15]], [1, 0.25, 1 / 6, 0.25, 1], atol=1e-12)
    assert cube.rank == 5
    nine = leverage(grid(3, 3), [0], 4, secure_aggregation=True)
    expected = [1, 0.5, 0.25829445, 0.5, 0.62233508, 0.43304555, 0.25829445, 0.43304555, 0.99498491]
    np.testing.assert_allclose(nine.loss, expected, rtol=1e-6)
    assert nine.rank == 5


def test_groups() -> None:
    """gossip:MUF-12: all members move together."""
    assert group_loss(star(6), [1], 3, [2, 3]) == pytest.approx(1.0, abs=1e-9)
    assert group_loss(star(6), [1], 3, [2, 3, 4, 5]) == pytest.approx(4.0, abs=1e-9)
    assert group_loss(hypercube(4), [0], 4, [3, 12]) == pytest.approx(2.0, abs=1e-9)
    assert group_loss(path(5), [0], 3, [1, 4]) == pytest.approx(1.0, abs=1e-9)
    assert group_loss(path(5), [0], 0, [1, 4]) == 0.0


@pytest.mark.parametrize("steps", [1, 3, 6, 9, 14])
def test_closed_forms(steps: int) -> None:
    """gossip:MUF-13: ring and path end 1 up to distance T; star leaf 1/(n-2); hypercube m /
    binomial(m, k)."""
    from math import comb

    distance = np.minimum(np.arange(15), 15 - np.arange(15))
    np.testing.assert_array_equal(leverage(ring(15), [0], steps).loss, distance <= steps)
    np.testing.assert_array_equal(leverage(path(12), [0], steps).loss, np.arange(12) <= steps)
    np.testing.assert_allclose(leverage(complete(9), [3], steps).loss, 1.0)
    np.testing.assert_allclose(leverage(star(9), [0], steps).loss, 1.0)
    leaf = leverage(star(9), [4], steps).loss
    np.testing.assert_allclose(np.delete(leaf, [0, 4]), 1 / 7 if steps >= 2 else 0.0, atol=1e-12)
    m = 7
    cube = leverage(hypercube(m), [0], steps)
    for u in range(1, 2**m):
        k = u.bit_count()
        expected = 0.0 if k > steps else 1.0 if k == m else m / comb(m, k)
        assert cube.loss[u] == pytest.approx(expected, abs=1e-10)
    assert cube.rank == (1 + m * steps if steps <= m - 1 else m * (m - 1) + 2)


def test_nothing_heard_is_no_loss() -> None:
    """Section 11: T = 0, isolated observers, n = 1, other components, and peers beyond T steps cost
    exactly 0."""
    np.testing.assert_array_equal(leverage(ring(6), [2], 0).loss, [0, 0, 1, 0, 0, 0])
    islands = from_edges(4, [(1, 2)])
    np.testing.assert_array_equal(leverage(islands, [0], 9).loss, [1, 0, 0, 0])
    assert leverage(islands, [0], 9).rank == 1
    assert leverage(from_edges(1, []), [0], 3).loss.tolist() == [1.0]
    np.testing.assert_array_equal(
        leverage(torus(8, 8), [0], 2).loss == 0.0, torus(8, 8).distances(0) > 2
    )
    everyone = leverage(path(4), [0, 1, 2, 3], 3)
    assert (everyone.rank, everyone.loss.tolist()) == (4, [1.0] * 4)


def test_one_step_shows_neighbors_only() -> None:
    """Section 11: T = 1 costs 1 for neighbors and 0 for all others."""
    graph = erdos_renyi(40, c=1.5, seed=2)
    found = leverage(graph, [7], 1).loss
    expected = np.zeros(40)
    expected[[7, *graph.neighbors(7)]] = 1.0
    np.testing.assert_array_equal(found, expected)


def test_parity_without_self_weights() -> None:
    """gossip:MUF-2: a message of a bipartite graph without self-weights holds half of the peers,
    but within T steps everybody is in some message, and has a loss above 0."""
    graph = ring(8, plus=0)
    expected, _ = exact_loss(graph, [0], 3)
    np.testing.assert_allclose(
        leverage(graph, [0], 3).loss, [float(x) for x in expected], atol=1e-12
    )
    for steps in range(5):
        np.testing.assert_array_equal(
            leverage(graph, [0], steps).loss > 0, graph.distances(0) <= steps
        )


random_graphs = st.builds(
    lambda n, q, seed: erdos_renyi(n, q=q, seed=seed, connected=False),
    st.integers(3, 24),
    st.floats(0.1, 0.6),
    st.integers(0, 10**6),
)


@given(graph=random_graphs, steps=st.integers(0, 12), data=st.data())
@settings(max_examples=40, deadline=None)
def test_laws(graph: Graph, steps: int, data: st.DataObject) -> None:
    """gossip:MUF-2 (i), (iii), (iv), (vi), MUF-3: within [0, 1], sum = rank <= 1 + T d, monotone in
    T and in V."""
    v, w = data.draw(st.integers(0, graph.n - 1)), data.draw(st.integers(0, graph.n - 1))
    now = leverage(graph, [v], steps)
    assert now.status == "exact"
    assert ((now.loss >= 0) & (now.loss <= 1)).all()
    assert now.loss.sum() == pytest.approx(now.rank, abs=1e-6)
    assert now.rank <= 1 + steps * graph.neighbors(v).size
    distance = graph.distances(v)
    np.testing.assert_array_equal(now.loss > 0, (distance >= 0) & (distance <= steps))
    assert (leverage(graph, [v], steps + 1).loss >= now.loss - 1e-6).all()
    assert (leverage(graph, [v, w], steps).loss >= now.loss - 1e-6).all()


def test_acceleration_changes_nothing() -> None:
    """gossip:MUF-2 (v): rows P_t(W)_{w,.} of Chebyshev polynomials span the same space."""
    from bruit.privacy.exact.rows import stacked_loss

    graph, gamma = grid(3, 4), 1.5
    w = graph.weights.toarray()
    polynomials = [np.eye(12), w]
    while len(polynomials) < 5:
        polynomials.append(gamma * w @ polynomials[-1] + (1 - gamma) * polynomials[-2])
    rows = np.concatenate([np.eye(12)[:1], *(p[graph.neighbors(0)] for p in polynomials)])
    plain = leverage(graph, [0], 5).loss
    np.testing.assert_allclose(plain[[1, 2, 11]], [1, 0.85281501, 0.9891179], rtol=1e-6)
    accelerated = stacked_loss(rows)
    assert accelerated.status == "exact"
    np.testing.assert_allclose(accelerated.loss, plain, atol=1e-8)


@pytest.mark.parametrize(
    ("graph", "steps", "lost"),
    [(torus(16, 16), 30, 0.2), (geometric(300, 0.12, seed=1), 30, 0.1)],
    ids=["torus 16x16", "geometric 300"],
)
def test_stacked_powers_lose_rank_and_ours_does_not(graph: Graph, steps: int, lost: float) -> None:
    """An SVD of stacked powers under-reports, by much; ranks modulo primes are the judge."""
    observer = int(np.argmin(graph.degrees))
    starts = graph.neighbors(observer)
    block = np.zeros((graph.n, starts.size))
    block[starts, np.arange(starts.size)] = 1.0
    blocks = [np.eye(graph.n)[:, [observer]]]
    for _ in range(steps):
        blocks.append(block)
        block = graph.weights @ block
    stacked = np.concatenate(blocks, axis=1)
    u, s, _ = np.linalg.svd(stacked, full_matrices=False)
    svd_rank = int((s > s[0] * max(stacked.shape) * np.finfo(float).eps).sum())
    naive = (u[:, :svd_rank] ** 2).sum(axis=1)

    found = leverage(graph, [observer], steps)
    assert found.status == "exact"
    span = krylov_span(graph, np.array([observer]), steps)
    assert span is not None
    assert krylov_ranks(graph, span).total + 1 == found.rank > svd_rank
    assert found.loss.sum() == pytest.approx(found.rank, abs=1e-4)
    assert (found.loss - naive).max() > lost


def sensitive() -> tuple[Graph, KrylovSpan, Ranks]:
    """A sparse graph of trees, where rounding in doubles decides some directions."""
    graph = k_out(400, 1, seed=1)
    span = krylov_span(graph, np.array([103]), 100)
    assert span is not None
    return graph, span, krylov_ranks(graph, span)


def test_thirty_digits_decide_what_doubles_cannot(monkeypatch: pytest.MonkeyPatch) -> None:
    graph, _, ranks = sensitive()
    found = leverage(graph, [103], 100)
    assert (found.status, found.rank) == ("exact", ranks.total + 1)
    assert found.loss.sum() == pytest.approx(found.rank, abs=1e-9)
    monkeypatch.setattr("bruit.privacy.exact.krylov.LARGEST", 0.0)
    bound = leverage(graph, [103], 100)
    assert bound.status == "upper bound"
    assert (bound.loss >= found.loss).all()
    assert "1 is charged to every reached peer, 399 of them (31 fewer for twins" in str(
        bound.certificate
    )
    members = np.flatnonzero(bound.loss == 1.0)[:3]
    assert group_loss(graph, [103], 100, members[members != 103][:2]) == 2.0


@pytest.mark.parametrize(
    ("text", "steps", "observer"),
    [
        ("geometric:120,radius=0.13,seed=230", 15, 0),
        ("kout:80,k=1,seed=580", 60, 47),
        ("torus:16x16", 30, 0),
        ("er:128,c=1.5", 12, 5),
        ("ba:150,m=1,seed=3", 60, 7),
        ("geometric:120,radius=0.15,seed=3", 9, 4),
    ],
)
def test_what_is_added_covers_the_error(text: str, steps: int, observer: int) -> None:
    """Against 30 digits: doubles are off by less than they say, and never below the truth."""
    found_graph = named(text)
    assert isinstance(found_graph, Graph)
    span = krylov_span(found_graph, np.array([observer]), steps)
    assert span is not None
    ranks, cells = krylov_ranks(found_graph, span), cells_of(span, graph_residues(found_graph))
    assert ranks.total < cells.count
    with one_blas_thread():
        truth = cells.spread(refined_basis(found_graph, span, cells, ranks.profile).values)
    found = certified(found_graph, span, ranks, cells, np.array([observer]), refine=False)
    assert found.status == "exact"
    off = np.delete(
        found.loss[span.peers] - truth, np.searchsorted(span.peers, span.peers[span.silent])
    )
    assert off.min() >= -1e-14
    assert off.max() / 2 <= found.certificate.error <= TOLERANCE  # half of it was added


def test_contradicting_primes_are_not_believed() -> None:
    graph, span, ranks = sensitive()
    profile = ranks.profile.copy()
    profile[1] -= 2
    contradicted = Ranks(profile, ranks.modular, False, ranks.starts)
    found = certified(
        graph, span, contradicted, cells_of(span, graph_residues(graph)), np.array([103])
    )
    assert found.status == "upper bound"
    assert "contradict" in found.certificate.note


def test_all_pairs_equal_single_observers() -> None:
    """m[u, v] = loss of u in the view of v; nan on the diagonal; gossip:MUF-3 for the mean."""
    seen: list[tuple[int, int]] = []
    for graph, steps in (
        (erdos_renyi(50, c=1.5, seed=1), 4),
        (star(6), 3),
        (ring(8), 4),
        (torus(4, 5), 3),
    ):
        found = pairwise(graph, steps, progress=lambda done, total: seen.append((done, total)))
        assert found.exact.all()
        for v in range(graph.n):
            one = leverage(graph, [v], steps)
            np.testing.assert_allclose(
                np.delete(found.m[:, v], v), np.delete(one.loss, v), atol=1e-9
            )
            assert found.rank[v] == one.rank
        assert np.isnan(np.diagonal(found.m)).all()
        assert seen[-1] == (graph.n, graph.n)


def test_mean_and_worst() -> None:
    """gossip:MUF-3: exact means ring(8) 0.875 at T = 4, star(6) from a leaf 1/3 at T = 3 (centre:
    5/6)."""
    assert pairwise(ring(8), 4).mean == pytest.approx(0.875)
    leaf = np.nansum(pairwise(star(6), 3).m[:, 1]) / 6
    assert leaf == pytest.approx(1 / 3)
    assert pairwise(star(6), 3).mean == pytest.approx(5 / 6)
    assert pairwise(star(6), 3).worst == 1.0
    lone = pairwise(from_edges(1, []), 3)
    assert (lone.worst, lone.mean) == (0.0, 0.0)


def test_components_stay_apart() -> None:
    graph = from_edges(7, [(0, 1), (1, 2), (3, 4), (4, 5)])
    m = pairwise(graph, 5).m
    part = graph.components()
    assert (m[part[:, None] != part[None, :]] == 0.0).all()


def test_large_transitive_graphs_take_one_observer() -> None:
    """gossip:MUF-13 on 2^17 peers."""
    found = leverage(hypercube(17), [0], 4)
    weight = np.array([1, 3, 7, 15, 31])
    np.testing.assert_allclose(
        found.loss[weight], [1, 17 / 136, 17 / 680, 17 / 2380, 0], atol=1e-10
    )


def test_refusals() -> None:
    with pytest.raises(ConfigError, match="no observer"):
        leverage(ring(5), [], 2)
    with pytest.raises(ConfigError, match=r"observer 5 is not a peer.*0\.\.4"):
        leverage(ring(5), [5], 2)
    with pytest.raises(ConfigError, match="-1; it must be 0 or more"):
        leverage(ring(5), [0], -1)
    with pytest.raises(ConfigError, match="secure aggregation"):
        leverage(ring(5), [0], 2, own_noise_known=False, secure_aggregation=True)
    with pytest.raises(PrivacyError, match="own view"):
        group_loss(ring(5), [0], 2, [0, 1])
    with pytest.raises(ConfigError, match="one observer at a time"):
        pairwise(path(20_001), 2)
    with pytest.raises(ConfigError, match="threads is 0"):
        pairwise(path(4), 2, threads=0)


@pytest.mark.slow
def test_two_thousand_peers_all_pairs() -> None:
    """All pairs of an Erdos-Renyi graph of 2048 peers, T = 22, every observer certified."""
    graph = erdos_renyi(2048, c=1.5, seed=0)
    found = pairwise(graph, 22)
    assert found.exact.all()
    assert found.error < TOLERANCE
    np.testing.assert_array_equal(found.rank, 1 + 22 * graph.degrees)
    np.testing.assert_allclose(np.nansum(found.m, axis=0), found.rank - 1, rtol=1e-6)
