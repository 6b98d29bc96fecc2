"""The printed losses of walks on graphs, to the digit, and where they are no bounds."""

import math

import numpy as np
import pytest

from bruit.errors import PrivacyError
from bruit.graphs import complete, from_edges, hypercube, path, ring, star
from bruit.privacy.ahead.walk_pairs import first_passage
from papers.printed.walk import (
    colluding,
    complete_sum,
    known_sender,
    largest_order,
    log_term,
    mean_epsilon,
    mean_sums,
    noise_for_mean,
    printed_sums,
    published_walk_guarantee,
    ring_limit,
    ring_sum,
    star_to_center,
    visit_sums,
)

PATH = path(4, plus=0)


@pytest.mark.parametrize(
    ("graph", "steps", "u", "v", "sums", "printed", "log"),
    [
        (ring(5), 50, 0, 1, 1.056266872, 0.938830405, 0.156425804),
        (ring(5), 50, 0, 2, 0.625857931, 0.508421464, -0.273983137),
        (PATH, 40, 0, 1, 1.381248369, 1.233832484, 0.311612620),
        (PATH, 40, 1, 3, 0.758023151, 0.610607243, -0.311612620),
        (complete(4), 30, 0, 1, 0.998746783, 0.850299345, 0.0),
    ],
)
def test_worked_table(graph, steps, u, v, sums, printed, log):
    """walk:RW-8."""
    assert visit_sums(graph, steps)[u, v] == pytest.approx(sums, abs=2e-9)
    assert printed_sums(graph, steps)[u, v] == pytest.approx(printed, abs=2e-9)
    assert log_term(graph)[u, v] == pytest.approx(log, abs=2e-9)
    powers, w = np.zeros_like(graph.weights.toarray()), graph.weights.toarray()
    for t in range(1, steps + 1):
        powers += np.linalg.matrix_power(w, t) / t
    np.testing.assert_allclose(visit_sums(graph, steps), powers, atol=1e-12)


def test_published_matrix():
    """walk:RW-8, Thm 7.7 on a ring of 5, alpha = 2, z = 4, T = 50."""
    found = [
        published_walk_guarantee(ring(5), 0, v, 4.0, 50).profile.divergence(2.0)
        for v in (1, 2, 3, 4)
    ]
    np.testing.assert_allclose(
        found, [1.173538006, 0.635526830, 0.635526830, 1.173538006], atol=1e-9
    )


def test_the_pendant_peer_refutes_it():
    """walk:RW-15: what is printed is below the exact divergence, which test_published_walks.py
    computes."""
    rows = ((21, 15, 120, 0.742359, 1.076539), (41, 30, 300, 0.885001, 2.705206))
    for m, contributions, steps, printed, exact in rows:
        graph = from_edges(m + 1, [(i, j) for i in range(m) for j in range(i)] + [(0, m)], plus=0)
        found = contributions * 2 / 4 * visit_sums(graph, steps)[m, 5]
        assert found == pytest.approx(printed, abs=1e-6)
        assert found < exact


def test_known_sender():
    """walk:RW-9, and the local loss when u is a neighbor."""
    assert known_sender(ring(5), 50, 0, 2) == pytest.approx(1.056266872, abs=1e-9)
    assert known_sender(star(5), 2, 1, 0) >= 0.5
    assert known_sender(path(2), 5, 0, 1) == 0.5


def test_collusion():
    """walk:RW-10; the printed sum is above the exact set hitting, and the guarantee adds up the
    same way."""
    assert colluding(ring(5), 50, 0, [2, 3]) == pytest.approx(1.251715861, abs=1e-9)
    alone = [published_walk_guarantee(ring(5), 0, v, 4.0, 50).loss for v in (2, 3)]
    assert published_walk_guarantee(ring(5), 0, (2, 3), 4.0, 50).loss == pytest.approx(sum(alone))


@pytest.mark.parametrize(
    ("n", "d", "steps", "expected", "wrong"),
    [
        (5, 1, 50, 1.056266872, 0.241776318),
        (10, 1, 200, 1.019849903, 0.428642879),
        (10, 5, 200, 0.294683720, 0.0),
    ],
)
def test_ring_closed_forms(n, d, steps, expected, wrong):
    """walk:RW-12, corrected; the printed Thm 7.12 gives the wrong numbers."""
    assert ring_sum(n, d, steps) == pytest.approx(expected, abs=1e-9)
    assert ring_limit(n, d, steps) == pytest.approx(expected, abs=1e-9)
    assert ring_sum(n, d, steps) == pytest.approx(visit_sums(ring(n), steps)[0, d])
    assert abs(ring_sum(n, d, steps) - wrong) > 0.2


def test_other_closed_forms():
    """walk:RW-12."""
    assert ring_sum(6, 2, 100, 0.1) == pytest.approx(0.683531291, abs=1e-9)
    assert complete_sum(4, 30) == pytest.approx(0.998746783, abs=1e-9)
    found = first_passage(star(5, plus=0), np.zeros(1))[0] / 2
    assert found[1, 0] == pytest.approx(0.231049060, abs=1e-9)
    assert found[1, 2] == pytest.approx(0.060097248, abs=1e-9)
    assert found[0, 1] == pytest.approx(0.161611879, abs=1e-9)
    assert star_to_center(5) / 2 == pytest.approx(0.231049060, abs=1e-9)
    # Thm 7.11 prints 0.0205 for 50 peers, where a single contribution already costs 0.0405.
    assert star_to_center(50) / 2 == pytest.approx(0.0405, abs=1e-4)
    assert sum(0.5**p / p for p in range(2, 200, 2)) == pytest.approx(
        -0.5 * math.log(1 - 0.25), abs=1e-12
    )
    assert -0.5 * math.log(1 - 0.25) == pytest.approx(0.143841036, abs=1e-9)


def test_means():
    """walk:RW-13: the identity and its numbers, T = 100."""
    np.testing.assert_allclose(mean_sums(ring(5), 100), 0.782957470, atol=1e-9)
    np.testing.assert_allclose(
        mean_sums(PATH, 100), [0.851408431, 1.007214741, 1.007214741, 0.851408431], atol=1e-9
    )
    for graph in (PATH, star(7), hypercube(4)):
        sums = visit_sums(graph, 100)
        np.testing.assert_allclose(
            mean_sums(graph, 100), (sums.sum(axis=0) - np.diag(sums)) / graph.n
        )
        np.testing.assert_allclose(log_term(graph).sum(axis=0), 0.0, atol=1e-12)


def test_calibration_to_the_mean():
    """walk:RW-13: the least z whose mean loss converts to epsilon, orders within the condition."""
    graph = ring(5)
    z = noise_for_mean(graph, 100, 1.0)
    mean = 20 * 0.782957470
    orders = np.linspace(1.0001, largest_order(z), 200_000)
    best = np.min(orders * mean / z**2 + math.log(1e6) / (orders - 1))
    assert best == pytest.approx(1.0, rel=1e-6)
    assert mean_epsilon(mean, z, 1e-6) == pytest.approx(best, rel=1e-6)
    assert largest_order(2.0) * (largest_order(2.0) - 1) / 2 == pytest.approx(4.0)


def test_status_and_refutation_are_said():
    printed = published_walk_guarantee(ring(5), 0, 1, 4.0, 50)
    assert printed.status == "published"
    assert "2.705206" in printed.epsilon(1e-6).why()


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: visit_sums(ring(5), 0), "at least one step"),
        (lambda: printed_sums(from_edges(4, [(0, 1), (2, 3)]), 5), "connected"),
        (lambda: known_sender(ring(5), 5, 1, 1), "nobody has secrets"),
        (lambda: colluding(ring(5), 5, 1, [1, 2]), "nobody has secrets"),
        (lambda: published_walk_guarantee(ring(5), 0, 1, 0.0, 5), "above 0"),
        (lambda: ring_sum(2, 1, 5), "3 peers"),
        (lambda: ring_sum(5, 1, 5, 1.0), "self-weight"),
        (lambda: star_to_center(2), "3 peers"),
        (lambda: noise_for_mean(ring(5), 5, 1.0, 1.0), "strictly between"),
    ],
)
def test_refusals(call, said):
    with pytest.raises(PrivacyError, match=said):
        call()
