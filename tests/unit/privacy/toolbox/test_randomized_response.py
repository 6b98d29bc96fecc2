"""Randomized response against the worked numbers of gossip:DP-3 and perso:LDP-1..3."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bruit.errors import PrivacyError
from bruit.privacy.formulas.randomized_response import (
    answer,
    epsilon_of_gamma,
    error,
    estimate,
    gamma,
    probabilities,
    warner,
)


def test_worked_probabilities():
    """gossip:DP-3, perso:LDP-2."""
    assert probabilities(10, 2.0) == pytest.approx((0.45085306, 0.0610163266), rel=1e-7)
    assert gamma(10, 2.0) == pytest.approx(0.610163266, rel=1e-9)
    assert probabilities(4, 1.0) == pytest.approx((0.4753668864, 0.1748777045), rel=1e-9)
    assert gamma(4, 1.0) == pytest.approx(0.6995108181, rel=1e-9)
    assert 1 - gamma(4, 1.0) == pytest.approx(0.3004891819, rel=1e-9)
    assert gamma(36, 1.0) == pytest.approx(0.9544443239, rel=1e-9)
    assert gamma(10, 0.5) == pytest.approx(0.939079890, rel=1e-9)  # walk:RW-2


def test_worked_warner():
    """gossip:DP-3: fair coins are log 3; perso:LDP-1."""
    assert probabilities(2, math.log(3)) == pytest.approx((0.75, 0.25))
    assert warner(0.75) == pytest.approx(1.0986122887, rel=1e-10)
    assert epsilon_of_gamma(2, 0.5) == pytest.approx(1.09861229, rel=1e-8)
    assert estimate(np.array([4, 6]), math.log(3))[1] == pytest.approx(0.7)  # 2 * 0.6 - 1/2
    assert error(0.3, 2, math.log(3), 1) == pytest.approx(0.75)


def test_worked_histogram():
    """perso:LDP-3."""
    shares = estimate(np.array([120, 60, 15, 5]), 1.0)
    assert shares == pytest.approx([1.414767390, 0.416395341, -0.332383695, -0.498779036], rel=1e-8)
    assert error(0.6, 4, 1.0, 200) == pytest.approx(0.0114821971, rel=1e-8)
    assert error(0.0, 4, 1.0, 200) == pytest.approx(0.0079903368, rel=1e-8)


@given(st.integers(2, 50), st.floats(0, 20))
def test_the_law_is_a_law_and_exactly_epsilon(values, epsilon):
    truth, other = probabilities(values, epsilon)
    assert truth + (values - 1) * other == pytest.approx(1.0)
    assert math.log(truth / other) == pytest.approx(epsilon, abs=1e-9)
    uniform = gamma(values, epsilon)
    assert 1 - uniform + uniform / values == pytest.approx(truth)
    assert epsilon_of_gamma(values, uniform) == pytest.approx(epsilon, abs=1e-6)


@given(st.integers(2, 6), st.floats(0.2, 5), st.data())
def test_the_estimate_is_unbiased_and_its_error_exact(values, epsilon, data):
    """Expectation and variance of one answer, by enumeration."""
    true = data.draw(st.integers(0, values - 1))
    truth, other = probabilities(values, epsilon)
    law = [truth if y == true else other for y in range(values)]
    outcomes = [estimate(np.eye(values)[y], epsilon) for y in range(values)]
    mean = sum(w * x for w, x in zip(law, outcomes, strict=True))
    np.testing.assert_allclose(mean, np.eye(values)[true], atol=1e-9)
    for k in range(values):
        squared = sum(w * (x[k] - (k == true)) ** 2 for w, x in zip(law, outcomes, strict=True))
        assert squared == pytest.approx(
            error(float(k == true), values, epsilon, 1), rel=1e-7, abs=1e-12
        )


def test_corner_cases():
    """gossip:DP-3: one value is a constant, epsilon = 0 is uniform."""
    assert probabilities(1, 3.0)[0] == 1.0
    assert probabilities(5, 0.0) == pytest.approx((0.2, 0.2))
    assert estimate(np.array([7]), 0.0).tolist() == [1.0]
    assert epsilon_of_gamma(3, 0.0) == math.inf
    assert epsilon_of_gamma(3, 1.0) == epsilon_of_gamma(1, 0.0) == 0.0
    assert answer(3, 1.5).epsilon(1e-12) == pytest.approx(1.5)
    assert answer(1, 1.5).epsilon(1e-12) == 0.0
    assert probabilities(3, 800.0)[0] == 1.0


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: probabilities(0, 1.0), "at least one value, found 0"),
        (lambda: gamma(2, -1.0), "must be a number >= 0, found -1"),
        (lambda: warner(0.5), r"probability in \(1/2, 1\), found 0.5"),
        (lambda: epsilon_of_gamma(2, 1.5), "is a probability, found 1.5"),
        (lambda: estimate(np.array([1, 2]), 0.0), "pure chance"),
        (lambda: estimate(np.array([0, 0]), 1.0), "at least one answer"),
        (lambda: error(2.0, 2, 1.0, 5), r"share in \[0, 1\]"),
    ],
)
def test_refusals(call, words):
    with pytest.raises(PrivacyError, match=words):
        call()
