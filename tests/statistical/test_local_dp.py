"""Do local reports give what their formulas promise? Seeded; each test states its false-alarm
probability and power."""

import math

import numpy as np
import pytest
from scipy import stats

from bruit.randomness import Replay
from bruit.statistics.local import (
    BinaryResponse,
    GaussianMean,
    HadamardResponse,
    HadamardTree,
    KAry,
    LaplaceMean,
    LocalHashing,
    PrivateAuc,
    Reports,
    ScoreReports,
    TwoParty,
    UnaryEncoding,
    histograms,
    pool,
    quantized,
)
from bruit.statistics.local.quantized import bins_of
from bruit.statistics.local.two_party import mean_squared_error
from bruit.tasks.pairs import auc, kendall, u_statistic
from bruit.tasks.pairs.kernels import Kernel

pytestmark = pytest.mark.slow

ALARM = 1e-6
RNG = np.random.default_rng(41)
MAKERS = {
    "k-ary": lambda e: KAry(6, e),
    "hadamard": lambda e: HadamardResponse(6, e),
    "unary": lambda e: UnaryEncoding(6, e),
    "local-hashing": lambda e: LocalHashing(6, e),
    "randomized-response": BinaryResponse,
}
UNIT = Kernel("unit gini", lambda x, y: np.abs(x - y)[..., 0], low=0.0, high=1.0)


def deviations(protocol, reports, values):
    """Standardized errors of all shares; normal to first order at these n."""
    found = protocol.estimate(Reports(protocol.describe(), reports.columns))
    truth = np.bincount(values, minlength=protocol.k) / len(values)
    return (found.shares - truth) / np.sqrt(
        [protocol.variance(share, len(values)) for share in truth]
    )


@pytest.mark.parametrize("name", MAKERS)
def test_shares_are_unbiased_with_the_stated_variance(name):
    """Largest of k standardized errors against the normal law, false alarm 1e-6 (Bonferroni).
    Power: reports made at epsilon 1.3 and read at 1.0 inflate the common share of 0.6 by 40 %, tens
    of standard errors, as shown."""
    protocol, n = MAKERS[name](1.0), 200_000
    values = np.minimum(RNG.geometric(0.6, n) - 1, protocol.k - 1)
    limit = stats.norm.isf(ALARM / (2 * protocol.k))
    assert np.abs(deviations(protocol, protocol.report(values, Replay(1)), values)).max() < limit
    careless = MAKERS[name](1.3).report(values, Replay(1))
    if (
        name != "local-hashing"
    ):  # there the number of cells follows epsilon: other reports altogether
        assert np.abs(deviations(protocol, careless, values)).max() > limit


@pytest.mark.parametrize("n", [100, 1000, 10_000])
def test_the_error_of_a_histogram_is_the_corrected_one(n):
    """perso:EXP-10, LDP-3: mean squared error over R runs; the sum of R squared normals is
    chi-square to first order, false alarm 1e-6. Power: the printed formula (0.70 of the exact one
    at h = 0.6) is rejected, as shown."""
    runs, protocol = 4000 if n < 10_000 else 400, KAry(4, 1.0)
    values = np.repeat(np.arange(4), (np.array([0.6, 0.2, 0.1, 0.1]) * n).astype(int))
    sent = protocol.report(np.tile(values, runs), Replay(n)).column("value").reshape(runs, n)
    counts = np.stack([(sent == v).sum(axis=1) for v in range(4)], axis=1)
    p, q = protocol.chances()
    square = ((counts[:, 0] / n - q) / (p - q) - 0.6) ** 2
    low, high = stats.chi2.ppf(ALARM / 2, runs), stats.chi2.isf(ALARM / 2, runs)
    assert low < square.sum() / protocol.variance(0.6, n) < high
    if runs == 4000:
        assert square.sum() / ((2 + math.e) / (n * math.expm1(1.0) ** 2)) > high


@pytest.mark.parametrize("name", MAKERS)
def test_intervals_of_shares_cover(name):
    """2000 intervals of 95 % at n = 500, for a share of 0.1: at least 1838 must cover. False alarm
    1e-6 even if the normal law costs half a percent, P(Bin(2000, 0.945) < 1838). Power: intervals
    half as wide cover 67 %."""
    protocol, n, runs = MAKERS[name](1.0), 500, 2000
    values = np.zeros(n, dtype=np.int64)
    values[: n // 10] = 1
    reports = protocol.report(np.tile(values, runs), Replay(77))
    covered = 0
    for run in range(runs):
        part = {key: column[run * n : (run + 1) * n] for key, column in reports.columns.items()}
        found = protocol.estimate(Reports(protocol.describe(), part))
        covered += bool(found.low[1] <= 0.1 <= found.high[1])
    assert covered >= 1838


@pytest.mark.parametrize(
    "protocol", [LaplaceMean(0.0, 1.0, 1.0), GaussianMean(0.0, 1.0, 1.0, 1e-5)]
)
@pytest.mark.parametrize("n", [1, 3, 50])
def test_intervals_of_means_cover_exactly(protocol, n):
    """Exact binomial test of 40000 intervals before cutting to [0, 1], false alarm 1e-6. Power: a
    coverage off by 0.007 (the normal interval of one Laplace covers 0.9374) is caught, as shown."""
    runs = 40_000
    noisy = protocol.report(np.full(runs * n, 0.25), Replay(n)).column("value").reshape(runs, n)
    errors = np.abs(noisy.mean(axis=1) + protocol.middle - 0.25)
    law = stats.binom(runs, 0.95)
    covered = int((errors <= protocol.half_width(n, 0.95)).sum())
    assert law.ppf(ALARM / 2) <= covered <= law.isf(ALARM / 2)
    if isinstance(protocol, LaplaceMean) and n == 1:
        normal = int((errors <= 1.959964 * protocol.sigma()).sum())
        assert normal < law.ppf(ALARM / 2)


def test_nodes_of_a_tree_have_the_stated_variance():
    """perso:LDP-8: Var = n alpha c^2 - H. 400 runs of 500 users, 14 nodes; a chi-square bound for
    each node, false alarm 1e-6 in all. Power: a variance wrong by 50 % (alpha forgotten: 67 %) is
    far outside."""
    runs, n, tree = 400, 500, HadamardTree(3, 1.0)
    values = RNG.integers(0, 8, n)
    nodes = []
    for run in range(runs):
        asked = HadamardTree(3, 1.0, seed=run)
        nodes.append(np.concatenate(asked.estimate(asked.report(values, Replay(10_000 + run)))[1:]))
    exact = np.concatenate(histograms(values, 3)[1:])
    variance = n * 3 * tree.scale**2 - exact
    squares = ((np.array(nodes) - exact) ** 2).sum(axis=0) / variance
    assert np.all(squares > stats.chi2.ppf(ALARM / 28, runs))
    assert np.all(squares < stats.chi2.isf(ALARM / 28, runs))
    shift = (np.mean(nodes, axis=0) - exact) / np.sqrt(variance / runs)
    assert np.abs(shift).max() < stats.norm.isf(ALARM / 28)


def test_intervals_of_the_private_auc_cover():
    """perso:LDP-9: 120 intervals of 95 % (they allow for pruning, so they cover more). False alarm
    P(Bin(120, 0.95) < 100) = 5e-7. Power: intervals half as wide cover about 75 %, i.e. 90."""
    covered, runs = 0, 120
    for run in range(runs):
        labels = (np.arange(1500) % 3 == 0).astype(int)
        scores = np.clip(RNG.normal(0.45 + 0.17 * labels, 0.12), 0, 1)
        asked = PrivateAuc(5, 2.0, ties="half", seed=run)
        found = asked.estimate(asked.report(bins_of(scores, 32), Replay(run)), labels)
        covered += found.low <= auc(scores, labels) <= found.high
    assert covered >= 100


def test_pooled_files_have_the_law_of_the_joined_table():
    """Three holders (one of them with one class only) against one table of all rows, 400 runs each:
    the raw estimates by the two-sample Kolmogorov-Smirnov test, false alarm 1e-6; their means
    within 6 standard errors of each other. Power: files of which all but the first are read with
    other questions than they answer are told apart."""
    runs, agreed = 400, ScoreReports(4, 2.0)
    labels = np.concatenate([np.arange(300) % 2, np.ones(100), np.arange(300) % 3 == 0]).astype(int)
    scores = np.clip(RNG.normal(0.45 + 0.17 * labels, 0.12), 0, 1)
    cuts = [slice(0, 300), slice(300, 400), slice(400, 700)]
    joined, pooled, careless = np.empty(runs), np.empty(runs), np.empty(runs)
    for run in range(runs):
        parts = [
            agreed.report(scores[cut], labels[cut], Replay(10 * run + place))
            for place, cut in enumerate(cuts)
        ]
        pooled[run] = pool(parts).estimate().raw
        whole = PrivateAuc(4, 2.0, ties="half", seed=run)
        joined[run] = whole.estimate(
            whole.report(bins_of(scores, 16), Replay(9000 + run)), labels
        ).raw
        wrong = [
            Reports({**part.protocol, "questions": 3 * run + place}, part.columns)
            for place, part in enumerate(parts[1:])
        ]
        careless[run] = pool([parts[0], *wrong]).estimate().raw
    assert stats.ks_2samp(pooled, joined).pvalue > ALARM
    assert abs(pooled.mean() - joined.mean()) < 6 * math.sqrt((pooled.var() + joined.var()) / runs)
    assert stats.ks_2samp(careless, joined).pvalue < ALARM


@pytest.mark.slow
def test_the_error_of_two_party_pairs():
    """perso:LDP-10, corrected: n = 6, 5000 runs; the mean squared error within 15 %. Errors are
    means of three or six Laplaces and little else, with a kurtosis of at most 4: 15 % is 6.1
    standard deviations of the mean of their squares, false alarm below 1e-6. Power: the printed
    term (half of the noise) is rejected, as shown."""
    for rounds in (1, 2):
        asked, runs = TwoParty(UNIT, 1.0, rounds), 5000
        points = RNG.random((runs, 6))
        found = np.array(
            [
                asked.answers(points[run], Replay(2), Replay(3), run=run).mean()
                for run in range(runs)
            ]
        )
        # uniform points: E|X - Y| = 1/3, zeta_1 = Var((1 - 2x + 2x^2) / 2) = 1/180, zeta_2 = 1/6 -
        # 1/9
        expected = mean_squared_error(6, rounds, 1.0, 1 / 180, 1 / 18)
        assert np.mean((found - 1 / 3) ** 2) == pytest.approx(expected, rel=0.15)
        printed = expected - 2 * rounds / 6
        assert abs(np.mean((found - 1 / 3) ** 2) / printed - 1) > 0.15


def test_discrete_answers_are_unbiased():
    """Kendall's tau by ternary response, n = 20000 pairs a round, 3 rounds: within 6.1 estimated
    standard errors, false alarm 1e-9 by the normal law. Power: a bias of 0.1 is 6 standard
    errors."""
    x = RNG.normal(size=(40_000, 2))
    x[:, 1] += x[:, 0]
    asked = TwoParty(kendall(), 2.0, rounds=3, outcomes=(-1.0, 0.0, 1.0))
    found = asked.estimate(asked.answers(x, Replay(0), Replay(1)))
    assert abs(found.value - u_statistic(x, kendall())) < 6.1 * found.error < 0.11


def test_intervals_of_quantized_statistics_cover():
    """perso:LDP-5: 400 intervals of 95 %; at least 345 must cover. False alarm 7e-7 even if the
    plug-in variance costs 2 %, P(Bin(400, 0.93) < 345). Power: half the width covers 67 %."""
    asked, covered = quantized(UNIT, 4, 1.5), 0
    bins = RNG.integers(0, 4, 800)
    truth = u_statistic((bins + 0.5) / 4, UNIT)
    for run in range(400):
        found = asked.estimate(asked.report(bins, Replay(run)))
        covered += found.low <= truth <= found.high
    assert covered >= 345
