"""Bounds from guesses about many records at once: enumeration, the published listing, randomized
response."""

import math

import numpy as np
import pytest
from scipy.stats import binom

from bruit.adversary.audits.guesses import (
    IMPOSSIBLE,
    best_guesses,
    chance_of,
    guessing_bound,
    needed_guesses,
)
from bruit.errors import ConfigError


def test_without_delta_it_is_a_binomial_tail():
    """arXiv:2305.08846, theorem 5.2: with delta = 0 each guess is right with e^eps / (1 + e^eps) at
    most."""
    p = math.exp(1.2) / (1 + math.exp(1.2))
    for right in range(8):
        tail = sum(math.comb(7, k) * p**k * (1 - p) ** (7 - k) for k in range(right, 8))
        assert chance_of(right, 7, 20, 1.2, 0.0) == pytest.approx(tail, rel=1e-12)


def published(m, r, v, eps, delta):
    """The listing of the paper's appendix, with its loop."""
    q = 1 / (1 + math.exp(-eps))
    beta = binom.sf(v - 1, r, q)
    alpha = total = 0
    for i in range(1, v + 1):
        total += binom.pmf(v - i, r, q)
        alpha = max(alpha, total / i)
    return min(beta + alpha * delta * 2 * m, 1)


@pytest.mark.parametrize(
    ("records", "guesses", "right"), [(100, 40, 35), (1000, 1000, 700), (50, 10, 0), (9, 9, 9)]
)
def test_the_published_listing(records, guesses, right):
    for epsilon in (0.0, 0.7, 3.0):
        expected = published(records, guesses, right, epsilon, 1e-4)
        assert chance_of(right, guesses, records, epsilon, 1e-4) == pytest.approx(
            expected, rel=1e-9
        )


def test_randomized_response_is_found_and_not_refuted():
    """epsilon = 1 on 4000 coins: the tight case of the theorem; a false alarm has probability
    1e-6."""
    rng = np.random.default_rng(0)
    truth = rng.random(4000) < 0.5
    told = np.where(rng.random(4000) < math.e / (1 + math.e), truth, ~truth)
    found = best_guesses([np.where(told, 1.0, -1.0)], [truth], 1e-9, 1 - 1e-6)
    assert 0.75 < found.epsilon <= 1.0
    assert found.trials == 4000


def test_sure_guesses_count_alone():
    """Nothing is known about most records and a sixteenth is told openly: the smallest share sees
    it."""
    rng = np.random.default_rng(1)
    truth = rng.random(1600) < 0.5
    odds = rng.normal(size=1600) * 1e-3
    odds[:100] = np.where(truth[:100], 5.0, -5.0)
    assert (
        best_guesses([odds[:800], odds[800:]], [truth[:800], truth[800:]], 1e-6, 0.95).epsilon > 2.5
    )


@pytest.mark.parametrize("epsilon", [0.0, 1.0, 3.0])
def test_needed_guesses_are_the_least(epsilon):
    each = 1 - 0.05 / 3
    count = needed_guesses(epsilon, 1e-9, 0.95)
    assert guessing_bound(count, count, count, 1e-9, each).epsilon >= epsilon
    assert chance_of(count - 1, count - 1, count - 1, epsilon, 1e-9) > 0.05 / 3


def test_what_no_number_of_guesses_shows():
    assert needed_guesses(math.inf, 1e-6, 0.95) == IMPOSSIBLE
    assert needed_guesses(1.0, 0.4, 0.999999) == IMPOSSIBLE
    assert guessing_bound(5, 10, 10, 1e-6, 0.95).epsilon == 0.0


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: chance_of(5, 4, 10, 1.0, 0.0), "found 5, 4 and 10"),
        (lambda: guessing_bound(1, 1, 1, 1e-6, 0.2), "confidence"),
        (lambda: needed_guesses(-1.0, 1e-6, 0.95), "epsilon >= 0, found -1"),
    ],
)
def test_bad_input(call, words):
    with pytest.raises(ConfigError, match=words):
        call()
