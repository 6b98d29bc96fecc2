"""Private counts and AUC by GOPA: against counting by hand, with exact accounts and intervals that
cover."""

import math

import numpy as np
import pytest

from bruit.errors import ConfigError, PrivacyError
from bruit.graphs import complete, k_out, ring, star
from bruit.privacy.ahead.gopa_k_out import own_noise
from bruit.privacy.theorems.gopa import thetas
from bruit.privacy.toolbox.gaussian import epsilon_of
from bruit.statistics.average.canceling.auc import auc_of_counts, interval, private_auc
from bruit.statistics.average.canceling.calibration import noises
from bruit.statistics.average.canceling.counts import PrivateCounts, private_histogram

GRAPH = k_out(200, 8, seed=1)


def brute_force_mu(graph, own, pair, of, observers):
    """mu^2 of a move by 1, from the covariance of what is published by all but the observers, by
    hand."""
    rest = [v for v in range(graph.n) if v not in observers]
    cov = own**2 * np.eye(graph.n)
    for a, b in graph.edges().tolist():
        if a in rest and b in rest:
            cov[a, a] += pair**2
            cov[b, b] += pair**2
            cov[a, b] -= pair**2
            cov[b, a] -= pair**2
    inverse = np.linalg.inv(cov[np.ix_(rest, rest)])
    return inverse[rest.index(of), rest.index(of)]


@pytest.mark.parametrize(
    ("graph", "colluders"),
    [
        (complete(12), [3]),
        (ring(14), [0]),
        (k_out(60, 5, seed=2), [1, 7, 30]),
        (star(9), [4]),
    ],
    ids=lambda case: getattr(case, "name", None),
)
def test_calibrated_noise_is_just_enough_on_any_graph(graph, colluders):
    """perso:GOPA-3: the worst honest peer has exactly (epsilon, delta), and own noise is nearly a
    curator's."""
    found = noises(graph, 0.7, 1e-5, 3.0, colluders)
    honest = [v for v in range(graph.n) if v not in colluders]
    worst = max(
        brute_force_mu(graph, found.own_sigma, found.pair_sigma, v, colluders) for v in honest
    )
    assert epsilon_of(3.0 * math.sqrt(worst), 1e-5) == pytest.approx(0.7, rel=1e-6)
    central = found.own_sigma * math.sqrt(len(honest)) / 3.0  # noise of the sum, in sensitivities
    assert epsilon_of(1 / central, 1e-5) == pytest.approx(0.7, rel=0.01)


def test_noise_of_a_large_graph_is_enough():
    """Above 300 peers by quadrature, which is never below the truth."""
    graph = k_out(500, 8, seed=1)
    found = noises(graph, 0.5, 1e-6, colluders=[0])
    worst = np.nanmax(thetas(graph, found.own_sigma, found.pair_sigma, range(1, 500)))
    assert 0.499 < epsilon_of(math.sqrt(worst), 1e-6) <= 0.5 * (1 + 1e-9)


def test_counts_are_right_to_the_stated_error():
    cells = np.random.default_rng(3).integers(0, 40, 200)
    truth = np.bincount(cells, minlength=40)
    found = private_histogram(cells, 40, GRAPH, 1.0, seen_by=[5], seed=2)
    z = (found.counts - truth) / found.sigma
    assert np.abs(z).max() < 4.5
    assert 0.6 < z.std() < 1.4  # forty normals: 3.5 standard errors
    low, high = found.interval(0.95)
    assert np.allclose((high - low) / 2, 1.959964 * found.sigma, rtol=1e-6)
    assert float(found.guarantee.epsilon(1e-6)) == pytest.approx(1.0, rel=1e-6)
    assert found.guarantee.status == "ideal"  # rounded normals on its fixed point
    local = math.sqrt(200) * own_noise(1, 0.99, 1e-6) * math.sqrt(2)
    assert (
        found.sigma < local / 10
    )  # sqrt(n) = 14 times less than with local noise of nearly the same budget


def test_dropouts_are_left_out_and_accounted_for():
    """Without the noise of those who left the others' epsilon is above the promise; planned for, it
    is not."""
    cells, gone = np.zeros(200, np.int64), range(100, 140)
    found = private_histogram(cells, 2, GRAPH, 1.0, seen_by=[5], dropped=gone)
    assert found.users == 160
    assert abs(found.counts[0] - 160) < 5 * found.sigma
    assert float(found.guarantee.epsilon(1e-6)) > 1.05
    planned = private_histogram(cells, 2, GRAPH, 1.0, seen_by=[5], dropped=gone, leaving=0.25)
    assert float(planned.guarantee.epsilon(1e-6)) < 1.0
    kept = private_histogram(cells, 2, GRAPH, 1.0, seen_by=[5], dropped=gone, rollback=False)
    assert kept.sigma > 5 * found.sigma


def counted(positive, negative, sigma):
    return PrivateCounts(np.concatenate((negative, positive)), sigma, 0, None, None)


def test_auc_of_exact_counts_is_that_of_all_pairs():
    rng = np.random.default_rng(1)
    positive, negative = (
        rng.integers(0, 50, 12).astype(float),
        rng.integers(0, 50, 12).astype(float),
    )
    pairs = [(a, b, positive[a] * negative[b]) for a in range(12) for b in range(12)]
    total = sum(weight for *_, weight in pairs)
    won, ties = (
        sum(w for a, b, w in pairs if test(a, b)) / total
        for test in (lambda a, b: a > b, lambda a, b: a == b)
    )
    found = auc_of_counts(counted(positive, negative, 1e-9))
    assert (found.low, found.value, found.high) == pytest.approx(
        (won, won + ties / 2, won + ties), abs=1e-7
    )


@pytest.mark.parametrize(("sigma", "scale"), [(5.0, 40.0), (20.0, 100.0), (8.0, 10.0)])
def test_the_interval_covers(sigma, scale):
    """At 90 % over 600 draws of noise: at least 86 % (three standard errors), from clear counts to
    drowning ones."""
    rng = np.random.default_rng(7)
    positive, negative = scale * np.linspace(1, 5, 8), scale * np.linspace(4, 1, 8)
    _, low, high = interval(positive, negative, 1e-9, 1.0)
    hits = 0
    for _ in range(600):
        seen = interval(
            positive + sigma * rng.normal(size=8),
            negative + sigma * rng.normal(size=8),
            sigma,
            1.6448536,
        )
        hits += seen[1] <= low and high <= seen[2]
    assert hits >= 0.86 * 600


def test_auc_of_private_scores():
    rng = np.random.default_rng(5)
    labels = rng.integers(0, 2, 200)
    scores = rng.normal(size=200) + 1.2 * labels
    won = np.mean([a > b for a in scores[labels == 1] for b in scores[labels == 0]])
    found = private_auc(
        scores, labels, np.linspace(-3, 4, 8), GRAPH, 4.0, seen_by=[5], confidence=0.99
    )
    assert found.low <= won <= found.high
    assert found.value == pytest.approx(won, abs=0.1)
    assert found.high - found.low < 0.5
    assert float(found.guarantee.epsilon(1e-6)) == pytest.approx(4.0, rel=1e-6)


def test_drowned_counts_say_nothing():
    value, low, high = interval(np.array([1.0, 2.0]), np.array([2.0, 1.0]), 50.0, 2.0)
    assert math.isnan(value)
    assert (low, high) == (0.0, 1.0)


CELLS = np.zeros(200, np.int64)
SCORES, LABELS = np.arange(200.0), np.arange(200) % 2


@pytest.mark.parametrize(
    ("wrong", "error", "words"),
    [
        (
            lambda: private_histogram(CELLS, 2, star(200), 1.0, seen_by=[0]),
            PrivacyError,
            "only its own noise protects it",
        ),
        (
            lambda: private_histogram(CELLS[:5], 2, GRAPH, 1.0, seen_by=[0]),
            ConfigError,
            "one whole number per user",
        ),
        (
            lambda: private_histogram(CELLS + 0.5, 2, GRAPH, 1.0, seen_by=[0]),
            ConfigError,
            "found float64",
        ),
        (
            lambda: private_histogram(CELLS + 7, 2, GRAPH, 1.0, seen_by=[0]),
            ConfigError,
            "user 0 holds 7",
        ),
        (
            lambda: private_histogram(CELLS, 2, GRAPH, 1.0, seen_by=[]),
            PrivacyError,
            "give at least one",
        ),
        (
            lambda: private_histogram(CELLS, 2, GRAPH, 1.0, seen_by=[0], dropped=range(1, 200)),
            PrivacyError,
            "nobody to",
        ),
        (lambda: noises(ring(400), 1.0, 1e-6), PrivacyError, "mixes too slowly; use kout"),
        (lambda: noises(GRAPH, 1.0, 1e-6, 0.0), PrivacyError, "positive number"),
        (lambda: noises(GRAPH, 1.0, 1e-6, leaving=1.0), PrivacyError, r"\[0, 1\)"),
        (
            lambda: private_auc(SCORES, LABELS, np.array([2.0, 1.0]), GRAPH, 1.0, seen_by=[0]),
            ConfigError,
            "ascending",
        ),
        (
            lambda: private_auc(SCORES * np.nan, LABELS, np.array([1.0]), GRAPH, 1.0, seen_by=[0]),
            ConfigError,
            "nan",
        ),
        (
            lambda: private_auc(SCORES, LABELS * 0, np.array([1.0]), GRAPH, 1.0, seen_by=[0]),
            ConfigError,
            "two classes",
        ),
        (
            lambda: auc_of_counts(counted(np.ones(2), np.ones(2), 1.0), 1.5),
            ConfigError,
            "confidence",
        ),
    ],
)
def test_bad_input(wrong, error, words):
    with pytest.raises(error, match=words):
        wrong()
