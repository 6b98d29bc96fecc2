"""U-statistics: the spec's example, brute force over pairs, scipy and scikit-learn as second
opinions."""

import itertools

import numpy as np
import pytest
from scipy import stats
from sklearn.metrics import roc_auc_score

from bruit.errors import ConfigError
from bruit.tasks.pairs import (
    KERNELS,
    auc,
    concordance,
    gini,
    kendall_tau,
    peer_statistic,
    renyi_entropy,
    row_means,
    square_form,
    u_statistic,
)
from bruit.tasks.pairs.kernels import Kernel
from bruit.tasks.pairs.ranking import two_classes
from bruit.tasks.pairs.u_statistics import row_sums

RNG = np.random.default_rng(3)


def brute(points, kernel):
    rows = points[:, None] if points.ndim == 1 else points
    values = [
        float(kernel(rows[u], rows[v])) for u, v in itertools.combinations(range(len(rows)), 2)
    ]
    return sum(values) / len(values)


def test_the_example_of_the_spec():
    """perso:PAIR-1: x = (1, 4, 2, 8), Gini."""
    x = np.array([1.0, 4.0, 2.0, 8.0])
    assert square_form(x, gini()) == pytest.approx(2.875, rel=1e-12)
    assert u_statistic(x, gini()) == pytest.approx(3.833333333, rel=1e-9)
    assert row_means(x, gini()) == pytest.approx([2.75, 2.25, 2.25, 4.25], rel=1e-12)


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("n", [2, 3, 41])
def test_fast_sums_and_blocks_equal_brute_force(name, n):
    """perso:PAIR-1, with many ties."""
    kernel = KERNELS[name]()
    points = RNG.integers(-3, 4, (n, kernel.columns or 3)).astype(float)
    expected = brute(points, kernel)
    assert u_statistic(points, kernel) == pytest.approx(expected, rel=1e-12, abs=1e-12)
    slow = Kernel(name, kernel.function, columns=kernel.columns)
    assert u_statistic(points, slow) == pytest.approx(expected, rel=1e-12, abs=1e-12)


def test_blocks_join_across_their_borders(monkeypatch):
    monkeypatch.setattr("bruit.tasks.pairs.u_statistics.BLOCK", 7)
    x = RNG.normal(size=(40, 1))
    expected = np.abs(x - x.T).sum(axis=1)
    assert row_sums(x, gini()) == pytest.approx(expected, rel=1e-12)


def test_variance_is_the_unbiased_variance():
    x = 1e6 + RNG.normal(size=500)
    assert u_statistic(x, KERNELS["variance"]()) == pytest.approx(np.var(x, ddof=1), rel=1e-9)


def test_kendall_against_scipy_without_ties_and_concordance_with_them():
    x, y = RNG.normal(size=3000), RNG.normal(size=3000)
    assert kendall_tau(x, x + y) == pytest.approx(stats.kendalltau(x, x + y).statistic, rel=1e-12)
    a, b = RNG.integers(0, 9, 400), RNG.integers(0, 9, 400)
    signs = np.sign(a[:, None] - a) * np.sign(b[:, None] - b)
    assert concordance(a.astype(float), b.astype(float)) == (
        (signs > 0).sum() // 2,
        (signs < 0).sum() // 2,
    )


def test_auc_against_scikit_learn_and_the_spec():
    """perso:LDP-7: D+ = {1, 2, 3, 3}, D- = {0, 0, 1, 2}: 0.8125 strict, 0.875 with half ties;
    PAIR-1: from U."""
    scores, labels = np.array([1.0, 2, 3, 3, 0, 0, 1, 2]), np.array([1.0, 1, 1, 1, 0, 0, 0, 0])
    assert (auc(scores, labels, "zero"), auc(scores, labels)) == (0.8125, 0.875)
    points = np.stack((scores, labels), axis=1)
    assert 64 * square_form(points, KERNELS["auc"]()) / (2 * 16) == pytest.approx(0.8125, rel=1e-12)
    s, y = RNG.integers(0, 30, 5000).astype(float), RNG.integers(0, 2, 5000).astype(float)
    assert auc(s + y, y) == pytest.approx(roc_auc_score(y, s + y), rel=1e-12)


def test_renyi_entropy_of_a_known_sample():
    """Pairs of (0, 0, 1, 1): 2 of 6 are equal."""
    assert renyi_entropy(np.array([0.0, 0.0, 1.0, 1.0])) == pytest.approx(np.log(3))
    assert renyi_entropy(np.arange(3.0)) == float("inf")


def test_peers_with_several_points_count_once():
    """perso:PAIR-1: h becomes the average over D_u x D_v."""
    points, owners = RNG.normal(size=12), np.array([0, 0, 0, 5, 5, 2, 2, 2, 2, 2, 9, 9])
    sets = [points[owners == owner] for owner in (0, 5, 2, 9)]
    expected = np.mean([np.abs(a[:, None] - b).mean() for a, b in itertools.combinations(sets, 2)])
    assert peer_statistic(points, owners, gini()) == pytest.approx(expected, rel=1e-12)
    assert peer_statistic(points, np.arange(12), gini()) == pytest.approx(
        u_statistic(points, gini()), rel=1e-12
    )


def test_bad_owners():
    with pytest.raises(ConfigError, match="at least two owners, found 1"):
        peer_statistic(np.arange(3.0), np.zeros(3, dtype=np.int64), gini())
    with pytest.raises(ConfigError, match="found 2 owners for 3 points"):
        peer_statistic(np.arange(3.0), np.array([0, 1]), gini())


def test_bad_columns_of_kendall():
    with pytest.raises(ConfigError, match="two columns of at least two numbers"):
        kendall_tau(np.arange(3.0), np.arange(4.0))


@pytest.mark.parametrize(
    ("labels", "words"),
    [
        ([1, 1, 1], "all 3 users have label 1; an AUC compares two classes"),
        ([0, 0, 0], "all 3 users have label 0"),
        ([0, 1, 2], "the label of user 2 is 2"),
        ([0, 1], "one score and one label per user"),
    ],
)
def test_bad_labels(labels, words):
    with pytest.raises(ConfigError, match=words):
        two_classes(np.arange(3.0), np.array(labels))
