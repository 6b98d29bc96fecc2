"""Lower bounds against exact laws: binomial tails, normal samples, and a perfect test."""

import math

import numpy as np
import pytest
from scipy import stats

from bruit.adversary.audits.bounds import (
    clopper_pearson,
    count_bound,
    gaussian_fit,
    mu_bound,
    needed_for_fit,
    needed_trials,
)
from bruit.errors import ConfigError, PrivacyError
from bruit.privacy.toolbox.gaussian import epsilon_of


def test_counts_against_the_exact_binomial_interval():
    """scipy's own Clopper-Pearson interval, one-sided at (1 - confidence) / 2."""
    hits, alarms, trials, confidence = 830, 40, 1000, 0.99
    low = stats.binomtest(hits, trials, alternative="greater").proportion_ci(1 - 0.005, "exact").low
    high = (
        stats.binomtest(alarms, trials, alternative="less").proportion_ci(1 - 0.005, "exact").high
    )
    found = count_bound(np.array([hits]), trials, np.array([alarms]), trials, 1e-3, confidence)[0]
    assert found == pytest.approx(math.log((low - 1e-3) / high), rel=1e-9)


def test_counts_at_the_edges():
    """No hit proves nothing; always right proves log((a^(1/N) - delta) / (1 - a^(1/N)))."""
    root = 0.005 ** (1 / 50)
    found = count_bound(np.array([0, 50]), 50, np.array([50, 0]), 50, 1e-3, 0.99)
    assert found[0] == 0
    assert found[1] == pytest.approx(math.log((root - 1e-3) / (1 - root)), rel=1e-6)


@pytest.mark.parametrize(("epsilon", "confidence"), [(0.0, 0.9), (1.0, 0.95), (4.0, 1 - 1e-6)])
def test_needed_trials_is_the_least_number(epsilon, confidence):
    """A perfect test of half as many judged trials shows more than epsilon, one fewer does not."""
    judged = needed_trials(epsilon, 1e-6, confidence) // 2
    reach = [
        count_bound(np.array([n]), n, np.array([0]), n, 1e-6, confidence)[0]
        for n in (judged, judged - 1)
    ]
    assert reach[0] > epsilon >= reach[1] - 1e-12


def test_needed_for_a_fit_grows_with_confidence_and_is_small_for_large_epsilon():
    assert needed_for_fit(1.0, 1e-6, 0.9) < needed_for_fit(1.0, 1e-6, 1 - 1e-6)
    assert needed_for_fit(20.0, 1e-6, 1 - 1e-6) < needed_trials(20.0, 1e-6, 1 - 1e-6)


def test_clopper_pearson_covers():
    """Two-point views of an exact epsilon = 1 (randomized response): 400 audits at confidence 0.9
    err at most 10 %; more than 64 errors have probability 3e-4 (binomial), and the seed is
    fixed."""
    rng, truth = np.random.default_rng(3), math.e / (1 + math.e)
    wrong = 0
    for _ in range(400):
        left, right = (
            (rng.random(400) < 1 - truth).astype(float),
            (rng.random(400) < truth).astype(float),
        )
        bound = clopper_pearson((left[:200], right[:200]), (left[200:], right[200:]), 1e-9, 0.9)
        wrong += bound.epsilon > 1.0
    assert wrong <= 64


def test_clopper_pearson_sees_both_directions():
    rng = np.random.default_rng(5)
    low, high = rng.normal(0, 1, 4000), rng.normal(3, 1, 4000)
    up = clopper_pearson((low[:2000], high[:2000]), (low[2000:], high[2000:]), 1e-6, 0.99)
    down = clopper_pearson((high[:2000], low[:2000]), (high[2000:], low[2000:]), 1e-6, 0.99)
    assert min(up.epsilon, down.epsilon) > 2


def test_gaussian_fit_covers_and_is_close():
    """mu = 1, 500 pairs, confidence 0.9: 1000 fits err at most 10 % (more than 130 errors:
    probability 1e-3), and the bound of 10^5 pairs is within 3 % of epsilon(1, 1e-6)."""
    rng, truth = np.random.default_rng(7), epsilon_of(1.0, 1e-6)
    wrong = sum(
        gaussian_fit(rng.normal(0, 2, 500), rng.normal(2, 2, 500), 1e-6, 0.9).epsilon > truth
        for _ in range(1000)
    )
    assert wrong <= 130
    close = gaussian_fit(rng.normal(0, 2, 10**5), rng.normal(2, 2, 10**5), 1e-6, 0.9).epsilon
    assert 0.97 * truth < close <= truth


def test_gaussian_fit_of_noise_free_and_of_equal_scores():
    one = np.zeros(10)
    assert gaussian_fit(one, one + 1, 1e-6, 0.9).epsilon == math.inf
    assert gaussian_fit(one + 3, one + 3, 1e-6, 0.9).epsilon == 0


def test_mu_bound_is_below_the_measured_ratio():
    assert mu_bound(1.0, 1000, 0.99) < mu_bound(1.0, 10_000, 0.99) < 1.0


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: needed_trials(-1.0, 1e-6, 0.9), "epsilon >= 0"),
        (lambda: needed_trials(1.0, 1e-6, 1.0), "between 0.5 and 1"),
        (
            lambda: clopper_pearson(
                (np.zeros(9), np.ones(9)), (np.zeros(9), np.ones(9)), 1e-6, 1 - 1e-6
            ),
            "18 paired trials cannot show anything at confidence 0.999999; at least 42 are needed",
        ),
        (lambda: gaussian_fit(np.zeros(2), np.ones(2), 1e-6, 0.9), "at least 4 paired trials"),
        (lambda: gaussian_fit(np.full(5, np.nan), np.ones(5), 1e-6, 0.9), "finite numbers"),
    ],
)
def test_bad_input(call, words):
    with pytest.raises(ConfigError, match=words):
        call()


def test_bad_delta():
    with pytest.raises(PrivacyError, match="strictly between 0 and 1"):
        needed_trials(1.0, 0.0, 0.9)
