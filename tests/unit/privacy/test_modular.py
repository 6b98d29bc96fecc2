"""Ranks modulo primes: against exact integer linear algebra, and each fast path against the plain
one."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bruit.graphs import (
    Graph,
    erdos_renyi,
    from_edges,
    geometric,
    grid,
    hypercube,
    ring,
    star,
    torus,
)
from bruit.privacy.exact.modular import (
    PRIMES,
    Eliminated,
    by_products,
    by_rows,
    joint_ranks,
    krylov_ranks,
    shared_rows,
    shared_width,
    stacked,
)
from bruit.privacy.exact.span import KrylovSpan, krylov_span

GRAPHS = [
    ring(9),
    star(7),
    grid(3, 4),
    hypercube(4),
    torus(5, 5),
    erdos_renyi(40, c=1.5, seed=3),
    geometric(40, 0.3, seed=2),
    from_edges(6, [(0, 1), (1, 2), (3, 4)]),
]


def plain_profile(graph: Graph, observer: int, steps: int, prime: int) -> list[int]:
    """Ranks of e_v and all rows up to each power, by elimination over Python integers; e_v not
    counted."""
    n, residues = graph.n, [int(r) for r in graph.residues(prime)]
    indptr, indices = graph.weights.indptr, graph.weights.indices
    rows = [[int(i == observer) for i in range(n)]]
    block = [[int(i == w) for i in range(n)] for w in graph.neighbors(observer)]
    ranks = []
    for _ in range(steps):
        rows += block
        ranks.append(plain_rank(rows, prime) - 1)
        block = [
            [
                sum(residues[k] * x[indices[k]] for k in range(indptr[i], indptr[i + 1])) % prime
                for i in range(n)
            ]
            for x in block
        ]
    return ranks


def plain_rank(rows: list[list[int]], prime: int) -> int:
    pivots: dict[int, list[int]] = {}
    for row in rows:
        row = [x % prime for x in row]
        for column, pivot in pivots.items():
            if row[column]:
                factor = row[column]
                row = [(a - factor * b) % prime for a, b in zip(row, pivot, strict=True)]
        column = next((j for j, x in enumerate(row) if x), None)
        if column is not None:
            inverse = pow(row[column], -1, prime)
            pivots[column] = [x * inverse % prime for x in row]
    return len(pivots)


@pytest.mark.parametrize("graph", GRAPHS, ids=lambda graph: graph.name)
def test_every_path_gives_the_same_profile(graph: Graph) -> None:
    """Rows, Gram matrix and shared projection against plain elimination (gossip:REC-2 b)."""
    steps, observer = 5, 1
    span = krylov_span(graph, np.array([observer]), steps)
    assert span is not None
    expected = plain_profile(graph, observer, steps, PRIMES[0])[: span.powers]
    rows, products = by_rows(graph, span, PRIMES[0]), by_products(graph, span, PRIMES[0])
    shared = shared_rows(graph, steps, PRIMES[0]).eliminated(observer, span)
    for word in (rows, products, shared):
        assert word.profile.tolist() == expected
        assert word.exposed is not None
        np.testing.assert_array_equal(
            span.peers[word.exposed], exposed_peers(graph, observer, steps, span)
        )
    assert krylov_ranks(graph, span).total == expected[-1]


def exposed_peers(graph: Graph, observer: int, steps: int, span: KrylovSpan) -> list[int]:
    """The peers of the span whose unit rows change no rank: one elimination for each of them."""
    n, prime = graph.n, PRIMES[0]
    residues, (indptr, indices) = (
        graph.residues(prime),
        (graph.weights.indptr, graph.weights.indices),
    )
    dense = np.zeros((n, n), dtype=object)
    for i in range(n):
        for k in range(indptr[i], indptr[i + 1]):
            dense[i, indices[k]] = int(residues[k])
    rows = [[int(i == observer) for i in range(n)]]
    block = np.eye(n, dtype=np.int64)[graph.neighbors(observer)]
    for _ in range(steps):
        rows += [[int(x) % prime for x in row] for row in block]
        block = block.astype(object).dot(dense) % prime
    rank = plain_rank(rows, prime)
    heard = np.setdiff1d(span.peers, [observer])
    return [
        int(u) for u in heard if plain_rank([*rows, [int(i == u) for i in range(n)]], prime) == rank
    ]


def test_projection_is_used_when_rows_are_few() -> None:
    graph = erdos_renyi(300, c=1.2, seed=1)
    assert shared_width(graph, 3) < graph.n == shared_width(graph, 300)
    shared = shared_rows(graph, 3, PRIMES[1])
    for observer in range(0, 300, 25):
        span = krylov_span(graph, np.array([observer]), 3)
        assert span is not None
        found, plain = shared.eliminated(observer, span), by_rows(graph, span, PRIMES[1])
        np.testing.assert_array_equal(found.profile, plain.profile)
        np.testing.assert_array_equal(found.exposed, plain.exposed)


def test_flint_agrees() -> None:
    """Ranks of a whole block Krylov matrix and of random low-rank matrices, by python-flint."""
    flint = pytest.importorskip("flint")
    rng = np.random.default_rng(0)
    for k, n, r in ((50, 70, 20), (90, 40, 40), (64, 64, 63), (1, 5, 1), (33, 200, 33)):
        for prime in PRIMES:
            left, right = rng.integers(0, prime, (k, r)), rng.integers(0, prime, (r, n))
            product = np.array((left.astype(object) @ right.astype(object)) % prime, dtype=np.int64)
            expected = flint.nmod_mat(k, n, [int(x) for x in product.ravel()], prime).rank()
            assert stacked(product, prime, 32).profile[-1] == expected


@given(
    st.integers(1, 12).flatmap(
        lambda n: st.lists(
            st.lists(st.integers(-3, 3), min_size=n, max_size=n), min_size=1, max_size=40
        )
    )
)
@settings(max_examples=60, deadline=None)
def test_small_integer_matrices(rows: list[list[int]]) -> None:
    """Entries so small that no minor can be a multiple of the prime: the modular rank is the
    rank."""
    matrix = np.array(rows, dtype=np.int64)
    expected = plain_rank(rows, PRIMES[0])
    assert stacked(matrix % PRIMES[0], PRIMES[0], 5).profile[-1] == expected
    assert expected == np.linalg.matrix_rank(matrix.astype(float))


def test_primes_are_prime_and_sums_are_exact() -> None:
    """Residue products of 64 terms stay below 2^53."""
    for prime in PRIMES:
        assert all(prime % q for q in range(2, int(prime**0.5) + 1))
        assert 64 * (prime / 2 + 1) ** 2 < 2**53


def test_the_second_prime_is_asked_only_without_a_proof() -> None:
    asked: list[int] = []

    def profile(prime: int) -> Eliminated:
        asked.append(prime)
        return Eliminated(np.array([2, 4, 5 if prime == PRIMES[0] else 6]))

    unsettled = joint_ranks(profile, 8, 2)
    assert asked == list(PRIMES)
    assert (unsettled.total, unsettled.modular, unsettled.proven) == (6, (5, 6), False)
    asked.clear()
    settled = joint_ranks(profile, 5, 2)
    assert asked == [PRIMES[0]]
    assert (settled.total, settled.modular, settled.proven) == (5, (5,), True)


def test_gains_of_a_krylov_space_never_grow() -> None:
    assert joint_ranks(lambda _: Eliminated(np.array([3, 6, 8, 8])), 8, 3).consistent
    assert not joint_ranks(lambda _: Eliminated(np.array([3, 5, 8, 8])), 8, 3).consistent
    assert not joint_ranks(lambda _: Eliminated(np.array([3, 7, 8, 8])), 8, 3).consistent
    assert not joint_ranks(lambda _: Eliminated(np.array([2, 4, 6, 8])), 8, 3).consistent
