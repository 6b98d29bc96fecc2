"""The terms of a mean among peers: coins against an enumeration, levels of protection, and what is
refused."""

from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("coincurve", reason="the extra 'verify' is not installed")

from bruit.errors import ConfigError, PrivacyError
from bruit.statistics.average.terms import MeanTerms

TERMS = MeanTerms(column="x", low=0.0, high=10.0, epsilon=2.0, rows=(30, 20, 40))


def test_coins_keep_the_budget_and_are_few():
    # Binomial(m h, 1/2) against its shift by 2, enumerated: delta at epsilon is at most 1e-6, and
    # more for 10 % less
    from scipy.stats import binom

    def delta(trials, epsilon):
        k = np.arange(-2, trials + 3)
        return np.maximum(
            binom.pmf(k, trials, 0.5) - np.exp(epsilon) * binom.pmf(k - 2, trials, 0.5), 0
        ).sum()

    coins = replace(TERMS, epsilon=1.0).coins(4)
    assert delta(coins * 3, 1.0) <= 1e-6 < delta(int(coins * 0.9) * 3, 1.0)


def test_levels_of_protection():
    user = MeanTerms(column="x", low=0.0, high=10.0, epsilon=2.0)
    assert (user.level, TERMS.level) == ("user", "record")
    assert user.value(np.array([1.0, 3.0]), 0) == pytest.approx([2.0])
    assert TERMS.value(np.full(20, 2.5), 1) == pytest.approx(
        [5.0]
    )  # 20 rows of a quarter of the range
    # std of the sum of 3 peers' coins in half rows, per 90 rows
    assert TERMS.error(3) == pytest.approx(10 / 2 * np.sqrt(3 * (TERMS.coins(3) + 1)) / 2 / 90)


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (
            lambda: MeanTerms(column="x", low=1.0, high=1.0, epsilon=1.0),
            ConfigError,
            "between --low and --high",
        ),
        (
            lambda: MeanTerms(column="x", low=0.0, high=1.0, epsilon=0.0),
            PrivacyError,
            "positive epsilon",
        ),
        (
            lambda: MeanTerms(column="x", low=0.0, high=1.0, epsilon=1.0, delta=0.0),
            PrivacyError,
            "positive epsilon",
        ),
        (
            lambda: MeanTerms(column="x", low=0.0, high=1.0, epsilon=1.0, rows=(3, 0)),
            ConfigError,
            "at least one row",
        ),
        (
            lambda: MeanTerms(column="x", low=0.0, high=1.0, epsilon=1.0, dropouts=-1),
            ConfigError,
            ">= 0",
        ),
        (
            lambda: MeanTerms(column="x", low=0.0, high=1.0, epsilon=1.0, dropouts=2).coins(3),
            PrivacyError,
            "nobody is left",
        ),
        (
            lambda: MeanTerms(column="x", low=0.0, high=1.0, epsilon=1e-3).coins(3),
            PrivacyError,
            "takes more than",
        ),
        (lambda: TERMS.value(np.zeros(3), 0), ConfigError, "holds 30 rows, and its table has 3"),
        (lambda: TERMS.value(np.full(30, 11.0), 0), ConfigError, "beyond 0..10"),
        (lambda: TERMS.value(np.full(30, np.nan), 0), ConfigError, "missing numbers"),
    ],
)
def test_bad_terms(make, error, words):
    with pytest.raises(error, match=words):
        make()
