"""Knowledge matrices: the examples of gossip:REC-1 and REC-3, and floats, residues and fractions of
the same rows."""

from fractions import Fraction

import numpy as np
import pytest

import bruit as br
from bruit.adversary.attacks import (
    accelerated_knowledge,
    decide,
    knowledge,
    meeting_knowledge,
    sequence_knowledge,
)
from bruit.errors import ConfigError
from bruit.graphs import erdos_renyi, fresh, from_edges, given, grid, hypercube, path, ring, static
from bruit.privacy.exact.krylov import leverage
from bruit.privacy.exact.modular import PRIMES, THREE
from bruit.privacy.exact.rational import from_residues, reduced_form, unit_columns
from bruit.runs.engines.forms import view_forms


def matches(found):
    """Floats, residues and fractions tell the same rows."""
    exact = found.rational()
    assert np.allclose(found.rows(), np.array(exact, dtype=float), atol=1e-14)
    for prime in PRIMES:
        residues = [
            [x.numerator * pow(x.denominator, -1, prime) % prime for x in row] for row in exact
        ]
        assert found.modulo(prime).tolist() == residues
    assert len(exact) == found.observers.size + len(found.keys)


def test_the_example_of_rec_1():
    """gossip:REC-1: path(4), attacker 0, T = 3."""
    found = knowledge(path(4), [0], 3)
    third = Fraction(1, 3)
    expected = [
        [1, 0, 0, 0],
        [0, 1, 0, 0],
        [third, third, third, 0],
        [third, third, Fraction(2, 9), Fraction(1, 9)],
    ]
    assert found.rational() == expected
    assert found.keys == ((0, 1), (1, 1), (2, 1))
    seen = [sum(w * x for w, x in zip(row, (1, 2, 3, 10), strict=True)) for row in found.rational()]
    assert seen == [1, 2, 2, Fraction(25, 9)]
    matches(found)


def test_a_coalition_hears_outsiders_only_and_is_a_set():
    found = knowledge(ring(6), [3, 0, 3], 2)
    assert found.observers.tolist() == [0, 3]
    assert found.keys == tuple((t, w) for t in range(2) for w in (1, 2, 4, 5))
    matches(found)


@pytest.mark.parametrize(
    "graph", [grid(3, 3), from_edges(5, [(0, 1), (1, 2), (3, 4)]), erdos_renyi(9, q=0.4, seed=2)]
)
def test_rows_in_three_arithmetics(graph):
    matches(knowledge(graph, [0], 4))
    matches(knowledge(graph, [0, 4], 3))
    matches(knowledge(graph, [0, 4], 3, "sums"))


def test_changing_graphs_and_dropouts():
    """gossip:REC-3: rows of M_t for the neighbors of that step."""
    whole = ring(6)
    faulty = whole.without_edges(np.array([0]), np.array([1]))
    found = knowledge(given([whole, faulty]), [0], 3)
    assert found.keys == ((0, 1), (0, 5), (1, 5), (2, 1), (2, 5))
    matches(found)
    same = sequence_knowledge(given([whole, faulty]).at, 6, 3, [0])
    assert np.array_equal(found.rows(), same.rows())
    drawn = fresh(lambda seed: erdos_renyi(7, q=0.5, seed=seed), seed=3)
    matches(knowledge(drawn, [2], 4))


def test_a_static_sequence_is_its_graph():
    assert knowledge(static(ring(5)), [0], 3).keys == knowledge(ring(5), [0], 3).keys
    sums = knowledge(static(ring(5)), [0], 3, "sums")
    assert sums.keys == ((1, 0), (2, 0), (3, 0))


def test_meetings():
    a, b = np.array([1, 0, 2, 1, 0]), np.array([2, 1, 3, 0, 3])
    found = meeting_knowledge(4, a, b, [0])
    assert found.keys == ((1, 1), (3, 1), (4, 3))
    assert found.receivers == (0, 0, 0)
    # (x1 + x2)/2; then that of 1 after meeting 0 is known to 0; then (x3 + (x1 + x2)/2)/2.
    half, quarter = Fraction(1, 2), Fraction(1, 4)
    assert found.rational()[1:] == [
        [0, half, half, 0],
        [half, quarter, quarter, 0],
        [0, quarter, quarter, half],
    ]
    matches(found)


@pytest.mark.parametrize("algorithm", [br.Averaging(), br.Chebyshev()])
@pytest.mark.parametrize("observers", [(0,), (0, 4)])
def test_rows_are_those_the_algorithm_says(algorithm, observers):
    """Against the forms found by running the algorithm on symbols (each message once: a coalition
    hears some twice)."""
    graph, steps = grid(3, 3), 5
    forms, _ = view_forms(algorithm, graph, steps, observers)
    if isinstance(algorithm, br.Chebyshev):
        found = accelerated_knowledge(
            graph, observers, steps, algorithm.prepare(graph, steps).gamma
        )
    else:
        found = knowledge(graph, observers, steps)
    spoken = np.unique(np.round(forms.A, 9), axis=0)
    assert np.allclose(spoken, np.unique(np.round(found.rows(), 9), axis=0), atol=1e-8)


@pytest.mark.parametrize(
    "graph", [path(5), ring(6), grid(3, 3), hypercube(3)], ids=lambda graph: graph.name
)
def test_acceleration_changes_rows_but_not_the_space(graph):
    """gossip:REC-3: rows of P_t(W), deg P_t = t, in rational arithmetic with gamma = 5/3."""
    n, steps, gamma = graph.n, 4, Fraction(5, 3)
    weights = np.array([[graph.fraction(u, v) for v in range(n)] for u in range(n)], dtype=object)
    forms = [np.array([[Fraction(int(u == v)) for u in range(n)] for v in range(n)], dtype=object)]
    forms.append(weights.dot(forms[0]))
    while len(forms) < steps:
        forms.append(gamma * weights.dot(forms[-1]) + (1 - gamma) * forms[-2])
    rows = [list(forms[0][0])] + [
        list(form[w]) for form in forms[:steps] for w in graph.neighbors(0)
    ]
    plain = knowledge(graph, [0], steps)
    assert reduced_form(rows) == reduced_form(plain.rational())
    accelerated = accelerated_knowledge(graph, [0], steps, float(gamma))
    assert np.allclose(accelerated.rows(), np.array(rows, dtype=float))
    assert decide(accelerated).peers.tolist() == unit_columns(reduced_form(rows))


def test_secure_aggregation_examples_of_rec_3():
    """Exact losses under sums: ring(8) and hypercube(4); the exposed are those of loss 1."""
    eight = leverage(ring(8), [0], 8, secure_aggregation=True)
    assert np.allclose(eight.loss, [1, 0.5, 0.5, 0.5, 1, 0.5, 0.5, 0.5], rtol=1e-6)
    found = decide(knowledge(ring(8), [0], 8, "sums"))
    assert (found.peers.tolist(), found.rank) == ([0, 4], 5)
    cube = leverage(hypercube(4), [0], 8, secure_aggregation=True)
    distances = np.array([bin(u).count("1") for u in range(16)])
    expected = np.array([1, 0.25, 0.1666667, 0.25, 1])
    assert np.allclose(cube.loss, expected[distances], rtol=1e-6)
    found = decide(knowledge(hypercube(4), [0], 8, "sums"))
    assert (found.peers.tolist(), found.rank) == ([0, 15], 5)


def test_fractions_from_residues():
    for wanted in (
        Fraction(0),
        Fraction(1),
        Fraction(-7, 3),
        Fraction(1 << 20, 999_983),
        Fraction(-1, 1 << 20),
    ):
        residues = [wanted.numerator * pow(wanted.denominator, -1, p) % p for p in THREE]
        assert from_residues(residues, THREE) == wanted
    large = Fraction(3**30, 2**40)
    assert (
        from_residues([large.numerator * pow(large.denominator, -1, p) % p for p in THREE], THREE)
        is None
    )


def test_primes_are_three_different_primes():
    assert len(set(THREE)) == 3
    assert all(p % q for p in THREE for q in range(2, int(p**0.5) + 1))
    assert max(THREE) < 2**24


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: knowledge(path(4), [4], 2),
            r"observer 4 is not a peer of this graph, whose peers are 0\.\.3",
        ),
        (lambda: knowledge(path(4), [-1], 2), r"observer -1 is not a peer"),
        (lambda: knowledge(path(4), [], 2), "no observer was given"),
        (lambda: knowledge(path(4), [0], -1), "the number of gossip steps is -1"),
        (
            lambda: knowledge(path(4), [0], 2, "sum"),
            "aggregation is 'sum'; observers see 'messages'",
        ),
        (
            lambda: knowledge(br.graphs.butterfly(4), [0], 2, "sums"),
            "one fixed graph only, found the sequence butterfly:4",
        ),
        (
            lambda: meeting_knowledge(3, np.array([0]), np.array([3]), [0]),
            "a meeting names a peer outside 0..2",
        ),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(ConfigError, match=message):
        call()
