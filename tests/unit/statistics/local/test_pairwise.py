"""Pairwise estimates: exact trees, pruning, quantized kernels, two-party pairs; refusals."""

import itertools
import math

import numpy as np
import pytest

from bruit.errors import ConfigError, PrivacyError
from bruit.privacy.events import BoundedEvent
from bruit.privacy.formulas.heterogeneous import composed
from bruit.randomness import Replay
from bruit.statistics.local import (
    HadamardTree,
    PairBudget,
    PrivateAuc,
    QuantizedStatistic,
    Reports,
    TwoParty,
    histograms,
    quantized,
)
from bruit.statistics.local.private_auc import (
    choose_levels,
    error_bound,
    predicted_error,
    sweep,
    users_needed,
)
from bruit.statistics.local.quantized import bins_of, choose_bins, midpoints, variance_bound
from bruit.statistics.local.quantized import error_bound as error_bound_of_statistic
from bruit.statistics.local.two_party import choose_rounds, mean_squared_error, pairings
from bruit.tasks.pairs import auc, gini, kendall, u_statistic
from bruit.tasks.pairs.kernels import Kernel
from papers.baselines.all_pairs import AllPairs

RNG = np.random.default_rng(11)
UNIT = Kernel("unit gini", lambda x, y: np.abs(x - y)[..., 0], low=0.0, high=1.0)


def test_exact_trees_give_the_exact_auc():
    """perso:LDP-7, against counting pairs."""
    scores, labels = RNG.integers(0, 32, 300), RNG.integers(0, 2, 300)
    up, down = (
        [level.astype(float) for level in histograms(scores[labels == sign], 5)] for sign in (1, 0)
    )
    found = sweep(up, down, 0.0, 0.0, 4.0)
    assert found.pairs / (up[0][0] * down[0][0]) == pytest.approx(
        auc(scores.astype(float), labels, "zero"), rel=1e-12
    )
    half = (found.pairs + found.ties / 2) / (up[0][0] * down[0][0])
    assert half == pytest.approx(auc(scores.astype(float), labels, "half"), rel=1e-12)


def test_a_tree_without_noise_in_its_bits_is_estimated_without_bias():
    """perso:LDP-8: over all questions (level, row) the estimate of one user's tree is its tree;
    here by enumeration."""
    tree, x = HadamardTree(3, 2.0), 5
    questions = [(level, row) for level in (1, 2, 3) for row in range(1 << level)]
    total = [np.zeros(1 << level) for level in range(4)]
    for level, row in questions:
        for sign, chance in ((1.0, math.e**2 / (1 + math.e**2)), (-1.0, 1 / (1 + math.e**2))):
            truth = (-1.0) ** bin(row & (x >> (3 - level))).count("1")
            found = tree.transform(
                np.array([truth * sign]), np.array([level]), np.array([row], dtype=np.uint64)
            )
            for l in range(4):
                total[l] += chance * found[l] / (3 * (1 << level))
    for l, expected in enumerate(histograms(np.array([x]), 3)):
        assert total[l] == pytest.approx(expected, abs=1e-12)


def test_questions_are_public_and_within_their_level():
    level, row = HadamardTree(6, 1.0, seed=3).questions(np.arange(5000))
    assert set(level.tolist()) == set(range(1, 7))
    assert np.all(row < (1 << level.astype(np.uint64)))
    again = HadamardTree(6, 9.0, seed=3).questions(np.arange(5000))
    assert np.array_equal(again[0], level)
    assert np.array_equal(again[1], row)


def test_private_auc_reports_one_sign_and_counts_bad_ones():
    asked = PrivateAuc(5, 4.0, ties="half")
    labels = np.arange(4000) % 2
    bins = np.where(labels == 1, 20, 10)
    signs = asked.report(bins, Replay(0))
    assert set(signs.tolist()) == {-1, 1}
    assert asked.event() == BoundedEvent(4.0)
    found = asked.estimate(signs, labels)
    assert found.low <= 1.0 <= found.high + 1e-12
    assert found.value <= 1.0
    broken = signs.copy()
    broken[:7] = 3
    assert asked.estimate(broken, labels).refused == 7


def test_reports_of_some_users_stand_alone():
    asked, bins = PrivateAuc(4, 1.0), RNG.integers(0, 16, 100)
    whole = asked.report(bins, Replay(0))
    assert np.array_equal(whole[60:], asked.report(bins[60:], Replay(0), users=np.arange(60, 100)))


def test_predictions_of_the_auc():
    assert choose_levels(10**6, 10**6, 1.0) > choose_levels(100, 100, 1.0)
    n = users_needed(0.5, 0.5, 0.1)
    levels = choose_levels(n / 2, n / 2, 0.5)
    assert predicted_error(n / 2, n / 2, levels, 0.5) <= 0.1
    with pytest.raises(ConfigError, match=r"levels <= sqrt\(n\), found 10 for 20 users"):
        error_bound(10, 10, 10, 1.0)


def test_one_class_only():
    with pytest.raises(ConfigError, match="all 5 users have label 1; an AUC compares two classes"):
        PrivateAuc(3, 1.0).estimate(np.ones(5), np.ones(5))


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: PrivateAuc(3, 1.0, prune=1.0), "must be above 1"),
        (lambda: HadamardTree(0, 1.0), "between 1 and 30 levels"),
        (lambda: HadamardTree(31, 1.0), "between 1 and 30 levels"),
        (
            lambda: HadamardTree(3, 1.0).report(np.array([8]), Replay(0)),
            "outside the declared domain 0..7",
        ),
        (lambda: bins_of(np.array([1.2]), 4), r"user 0 holds 1.2, outside the declared range 0..1"),
        (lambda: QuantizedStatistic(np.zeros((2, 3)), 1.0), "finite square matrix"),
        (lambda: choose_bins(1, 1.0), "bins are chosen for n >= 2"),
        (lambda: TwoParty(gini(), 1.0), "declares no bounds"),
        (lambda: TwoParty(UNIT, 1.0, rounds=0), "pairs >= 1"),
        (lambda: TwoParty(kendall(), 1.0, outcomes=(1.0,)), "at least two values"),
        (lambda: pairings(5, 1, Replay(0)), "must be even and at least 2, found 5"),
        (lambda: AllPairs(UNIT, 1.0, 0.0), "0 < delta < 1"),
        (
            lambda: TwoParty(UNIT, 1.0).answers(
                np.array([0.0] * 64 + [9.0] * 2), Replay(0), Replay(1)
            ),
            "outside its bounds",
        ),
        (
            lambda: TwoParty(kendall(), 1.0, outcomes=(-1.0, 0.5)).answers(
                RNG.normal(size=(4, 2)), Replay(0), Replay(1)
            ),
            "has values outside",
        ),
    ],
)
def test_bad_parameters(make, words):
    with pytest.raises(ConfigError, match=words):
        make()


def test_bins_and_middles():
    """perso:LDP-5: equal bins, middles, the upper end in the last bin."""
    assert bins_of(np.array([0.0, 0.333, 0.334, 1.0]), 3).tolist() == [0, 0, 1, 2]
    assert midpoints(3) == pytest.approx([1 / 6, 1 / 2, 5 / 6])
    assert bins_of(np.array([-5.0, 5.0]), 2, -5.0, 5.0).tolist() == [0, 1]


def test_the_debiased_kernel_undoes_the_noise_exactly():
    """perso:LDP-5: E A^[z, z'] = A[x, x'] over the exact law of two independent reports."""
    asked = quantized(gini(), 4, 0.8)
    truth, other = asked.protocol.chances()
    law = np.full((4, 4), other) + (truth - other) * np.eye(4)
    assert law @ asked.debiased() @ law.T == pytest.approx(asked.matrix, abs=1e-12)


def test_counts_give_what_all_pairs_give():
    asked = quantized(gini(), 5, 1.0)
    reports = asked.report(RNG.integers(0, 5, 60), Replay(2))
    z, kernel = reports.column("value"), asked.debiased()
    expected = np.mean([kernel[z[u], z[v]] for u, v in itertools.combinations(range(60), 2)])
    assert asked.estimate(reports).value == pytest.approx(expected, rel=1e-10)


def test_quantized_counts_malformed_reports_and_needs_two():
    asked = quantized(gini(), 3, 1.0)
    found = asked.estimate(Reports(asked.protocol.describe(), {"value": np.array([0, 7, 2, 1])}))
    assert (found.reports, found.refused) == (3, 1)
    with pytest.raises(ConfigError, match="needs at least two reports, found 1 and 1 refused"):
        asked.estimate(Reports(asked.protocol.describe(), {"value": np.array([0, 7])}))


def test_a_kernel_that_leaves_its_bounds_for_one_pair_only_is_refused():
    """The pair (40, 41) of 200 is not among the probes of the kernel; the noise of all pairs would
    not cover it."""

    def function(x, y):
        return 7.0 * ((x + y)[..., 0] == 81) * (np.abs(x - y)[..., 0] == 1)

    spike = Kernel("spike", function, low=0.0, high=1.0)
    with pytest.raises(
        ConfigError, match=r"the kernel spike takes values 0..7 outside its bounds 0..1"
    ):
        AllPairs(spike, 1.0).estimate(np.arange(200.0), Replay(0))


def test_the_bias_of_a_smooth_density():
    """perso:LDP-6: 4 L^2 / k^2 + 4 L^4 / k^4; the bias of a jumping kernel on a triangular density
    (L = 2) is below."""
    assert error_bound_of_statistic(100, 10, 1.0, 2.0, "density") - variance_bound(
        100, 10, 1.0
    ) == pytest.approx(4 * 4 / 100 + 4 * 16 / 10_000, rel=1e-12)
    rng = np.random.default_rng(0)
    points = np.sqrt(rng.random(20_000))  # density 2 x
    middles = midpoints(10)[bins_of(points, 10)]
    positive = Kernel("above", lambda x, y: 1.0 * ((x + y)[..., 0] > 1.05), low=0.0, high=1.0)
    bias = u_statistic(middles[:2000], positive) - u_statistic(points[:2000], positive)
    assert bias**2 < 4 * 4 / 100 + 4 * 16 / 10_000
    with pytest.raises(ConfigError, match="either the kernel or the density is Lipschitz"):
        error_bound_of_statistic(100, 10, 1.0, 2.0, "points")


def test_each_user_is_in_exactly_p_pairs():
    """perso:LDP-10."""
    pairs = pairings(40, 3, Replay(5))
    assert pairs.shape == (3, 20, 2)
    for round_ in pairs:
        assert sorted(round_.reshape(-1).tolist()) == list(range(40))
    assert not np.array_equal(pairs[0], pairs[1])


def test_the_next_execution_is_refused():
    """perso:LDP-10: the (P + 1)-th execution of a user is refused, whatever became of the
    others."""
    budget = PairBudget(4, 2)
    budget.spend(np.array([[0, 1], [2, 3]]))
    budget.spend(np.array([[0, 2]]))
    with pytest.raises(
        PrivacyError, match="user 0 already took part in 2 pairs and its budget is for 2"
    ):
        budget.spend(np.array([[0, 3], [1, 2]]))
    assert budget.spent.tolist() == [2, 1, 2, 1]
    asked, points = TwoParty(UNIT, 1.0), RNG.random(10)
    spent = PairBudget(10, 1)
    asked.answers(points, Replay(0), Replay(1), spent)
    with pytest.raises(PrivacyError, match="another one would cost more"):
        asked.answers(points, Replay(0), Replay(1), spent, run=1)


def test_little_noise_gives_the_statistic():
    points = RNG.random(2000)
    for asked in (
        TwoParty(UNIT, 40.0, rounds=4),
        TwoParty(kendall(), 40.0, outcomes=(-1.0, 0.0, 1.0)),
    ):
        rows = (
            points
            if asked.kernel is UNIT
            else np.stack((points, points + RNG.normal(size=2000) / 9), axis=1)
        )
        found = asked.estimate(asked.answers(rows, Replay(0), Replay(1)))
        assert abs(found.value - u_statistic(rows, asked.kernel)) < 5 * found.error
        assert found.low < found.value < found.high
        assert asked.event() == BoundedEvent(40.0)


def test_the_best_number_of_rounds_is_the_least_error_of_many():
    """perso:LDP-10: choose_P is the integer argmin."""
    for zeta_1, zeta_2, n, epsilon in itertools.product(
        (0.0, 0.02, 0.05), (0.1, 0.25), (10, 1000), (0.5, 5.0, 30.0)
    ):
        errors = {
            rounds: mean_squared_error(n, rounds, epsilon, zeta_1, zeta_2)
            for rounds in range(1, 200)
        }
        assert mean_squared_error(
            n, choose_rounds(zeta_1, zeta_2, n, epsilon), epsilon, zeta_1, zeta_2
        ) == (pytest.approx(min(errors.values()), rel=1e-12))


def test_all_pairs_spend_their_budget_and_no_more():
    """perso:LDP-12: n - 1 pairs of epsilon_0 compose to the target."""
    asked = AllPairs(UNIT, 1.0, 1e-5)
    one = asked.pair_epsilon(101)
    assert composed([one] * 100, 1e-5).epsilon == pytest.approx(1.0, rel=1e-6)
    assert asked.noise_variance(101) == pytest.approx(2 / one**2 * 2 / (101 * 100), rel=1e-12)
    points = RNG.random(101)
    found = asked.estimate(points, Replay(0))
    assert abs(found.value - u_statistic(points, UNIT)) < 6 * found.error
    assert asked.event() == BoundedEvent(1.0, 1e-5)
