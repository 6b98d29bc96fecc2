"""The classical calibration and the error of a mean: gossip:DP-4, DP-8, perso:DP-6, LDP-4, FL-2."""

import math

import numpy as np
import pytest

from bruit.errors import PrivacyError
from bruit.privacy.toolbox.gaussian import delta_of, mu_of, zcdp_to_epsilon
from papers.printed.classical import classical, classical_multiplier, mean_error


def test_worked_calibrations():
    """gossip:DP-4, perso:DP-6, FL-2."""
    assert classical_multiplier(0.5, 1e-5) == pytest.approx(9.68961053, rel=1e-9)
    assert delta_of(0.5, 1 / classical_multiplier(0.5, 1e-5)) == pytest.approx(
        1.60785399e-08, rel=1e-8
    )
    assert 1 / mu_of(0.5, 1e-5) == pytest.approx(7.03182668, rel=1e-9)
    assert 2 * classical_multiplier(0.5, 1e-5) == pytest.approx(19.37922105, rel=1e-9)
    assert 2 / mu_of(0.5, 1e-5) == pytest.approx(14.06365335, rel=1e-9)
    assert classical_multiplier(1, 1e-5) == pytest.approx(4.8448052626, rel=1e-10)
    assert 1 / mu_of(1, 1e-5) == pytest.approx(3.7306316348, rel=1e-10)
    assert 2 * classical_multiplier(1, 1e-5) == pytest.approx(9.6896105252, rel=1e-10)
    assert zcdp_to_epsilon(0.1, 1e-5, tight=False) == pytest.approx(2.2459660263, rel=1e-10)


def test_above_one_the_formula_is_false_and_refused():
    """perso:DP-6: at epsilon = 10 the printed 0.4844805263 has a true delta of 2.265374e-5."""
    printed = math.sqrt(2 * math.log(1.25 / 1e-5)) / 10
    assert printed == pytest.approx(0.4844805263, rel=1e-9)
    assert delta_of(10, 1 / printed) == pytest.approx(2.265374e-5, rel=1e-6)
    with pytest.raises(PrivacyError, match=r"0 < epsilon <= 1, found 10; use .*mu_of"):
        classical_multiplier(10, 1e-5)


@pytest.mark.parametrize("epsilon", [1e-3, 0.1, 0.5, 0.9, 1.0])
def test_up_to_one_it_holds(epsilon):
    for delta in np.geomspace(1e-12, 0.9, 40).tolist():
        assert delta_of(epsilon, 1 / classical_multiplier(epsilon, delta)) <= delta
        assert classical(epsilon, delta).epsilon(delta) <= epsilon


def test_worked_errors_of_the_mean():
    """gossip:DP-8; perso:LDP-4."""
    assert mean_error(100, 2, 1.0) == pytest.approx(0.01)
    assert mean_error(100, 2, 1.0, central=True) == pytest.approx(0.0001)
    assert mean_error(100, 2, 1.0, sensitivity=2.0, dimension=3) == pytest.approx(0.12)
    assert classical_multiplier(0.5, 1e-5) ** 2 / 1000 == pytest.approx(0.0938885521, rel=1e-8)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: classical_multiplier(0.0, 1e-5), "found 0"),
        (lambda: classical_multiplier(0.5, 1.0), "delta must lie strictly"),
        (lambda: mean_error(0, 2, 1.0), "found 0, 1, 2"),
        (lambda: mean_error(10, 1, 1.0), "an order above 1"),
        (lambda: mean_error(10, 2, 0.0), "a divergence > 0"),
    ],
)
def test_refusals(call, words):
    with pytest.raises(PrivacyError, match=words):
        call()
