"""Utility of noisy fixed points: walk:ADMM-3 and ADMM-8."""

from math import sqrt

import numpy as np
import pytest

from bruit.algorithms.admm.consensus_admm import Consensus
from bruit.algorithms.admm.contraction import affine_contraction, declared_contraction
from bruit.algorithms.admm.draws import AddressedDraws
from bruit.algorithms.admm.iteration import Iteration
from bruit.algorithms.admm.utility import Utility
from bruit.errors import ConfigError
from bruit.randomness import Replay


@pytest.mark.parametrize(
    ("case", "steps", "published", "whole", "half"),
    [
        (
            Utility(contraction=0.5, dim=5, sigma=1.0, distance=100.0),
            50,
            359.745016,
            6.666667,
            2.857143,
        ),
        (
            Utility(contraction=0.8, dim=10, sigma=0.6, distance=50.0, active=0.25),
            200,
            230588.361170,
            10.000000,
            4.739526,
        ),
    ],
)
def test_the_table(case, steps, published, whole, half):
    # walk:ADMM-3
    assert case.published(steps) == pytest.approx(published, abs=1e-6)
    assert case.direct(steps) == pytest.approx(whole, abs=1e-6)
    assert case.direct(steps, 0.5) == pytest.approx(half, abs=1e-6)


def test_the_stationary_value():
    # walk:ADMM-3: p sigma^2 / (1 - tau^2)
    assert Utility(contraction=0.6, dim=4, sigma=0.3, distance=7.0).direct(500) == pytest.approx(
        4 * 0.09 / (1 - 0.36)
    )


def test_simulated_iterates_stay_below_the_direct_bound():
    # walk:ADMM-3, acceptance: R = tau x rotation; the recursion is exact there, so the mean of 4000
    # runs must be
    # within 6 standard errors of it (a false alarm is rarer than 1e-8), blocks sampled or not.
    turn = np.linalg.qr(np.random.default_rng(0).normal(size=(5, 5)))[0]

    def operator(u):
        return 0.5 * (u.reshape(-1, 5) @ turn.T).reshape(u.shape)

    start = np.zeros((4000, 5, 1))
    start[:, 0] = 10.0
    for count in (None, 2):
        found = (
            Iteration(operator, 1.0, 1.0).run(start, 12, AddressedDraws(Replay(2), count)) ** 2
        ).sum(axis=(1, 2))
        bound = Utility(
            contraction=0.5, dim=5, sigma=1.0, distance=100.0, active=1.0 if count is None else 0.4
        ).direct(12)
        assert found.mean() <= bound + 6 * found.std() / sqrt(4000)
        assert found.mean() >= 0.5 * bound  # the bound is of use


def test_the_best_relaxation_is_no_worse_than_a_fine_grid():
    case = Utility(contraction=0.8, dim=10, sigma=0.6, distance=50.0, active=0.25, error=0.1)
    share, bound = case.best(100)
    grid = min(case.direct(100, float(value)) for value in np.linspace(0.01, 1, 400))
    assert bound <= grid * 1.0001
    assert case.direct(100, share) == pytest.approx(bound)
    quiet = Utility(contraction=0.5, dim=3, sigma=0.0, distance=9.0)
    assert quiet.best(5)[1] == pytest.approx(
        quiet.direct(5), rel=1e-4
    )  # without noise nothing beats a whole step


def test_the_non_asymptotic_form_of_the_corollary():
    # walk:ADMM-8: K = 40, tau .5, D 10, p 8, alpha 2, L 1, gamma .5, epsilon .1, n 1000: sigma .04,
    # bound 3.385966739
    sigma = sqrt(8 * 40 * 2 * 0.5**2 / (0.1 * 1000**2))
    assert sigma == pytest.approx(0.04)
    case = Utility(contraction=0.5, dim=8, sigma=sigma, distance=10.0)
    assert case.published(40) == pytest.approx(3.385966739, abs=1e-9)
    assert "outside its hypothesis sigma^2 > 1 - tau" in case.report(40)


def test_the_report_says_all_three():
    text = Utility(contraction=0.5, dim=5, sigma=1.0, distance=100.0).report(50)
    assert "359.745 published" in text
    assert "outside" not in text
    assert "6.66667 with relaxation 1" in text
    assert "best relaxation" in text


@pytest.mark.parametrize(
    ("make", "word"),
    [
        (
            lambda: Utility(contraction=1.0, dim=1, sigma=1.0, distance=1.0),
            r"contraction in \[0, 1\), found 1.0",
        ),
        (
            lambda: Utility(contraction=0.5, dim=1, sigma=1.0, distance=1.0, active=0.0),
            r"in \(0, 1\], found 0.0",
        ),
        (
            lambda: Utility(contraction=0.5, dim=1, sigma=-1.0, distance=1.0),
            "sigma must be a number >= 0, found -1.0",
        ),
        (
            lambda: Utility(contraction=0.5, dim=1, sigma=1.0, distance=float("inf")),
            "distance must be a number >= 0, found inf",
        ),
        (
            lambda: Utility(contraction=0.5, dim=1, sigma=1.0, distance=1.0).direct(3, 2.0),
            "relaxation",
        ),
    ],
)
def test_impossible_bounds(make, word):
    with pytest.raises(ConfigError, match=word):
        make()


def test_declared_contraction_of_consensus_admm_is_reached_and_never_passed():
    """Quadratics with curvatures from mu to L: the worst curvature decides, r = 0 and n = 1 reach
    it exactly."""
    for gamma in (0.1, 0.7, 3.0):
        declared = declared_contraction(gamma, 4.0, 0.5)
        exact = []
        for h in (np.array([0.5, 4.0]), np.array([0.5, 1.0]), np.array([2.0, 4.0])):
            consensus = Consensus(lambda w, length, h=h: w / (1 + length * h), gamma)
            exact.append(affine_contraction(consensus.operator, np.zeros((1, 2))))
            several = Consensus(lambda w, length, h=h: w / (1 + length * h[:, None]), gamma)
            assert affine_contraction(several.operator, np.zeros((2, 1))) <= declared + 1e-12
        assert max(exact) == pytest.approx(declared)
    with pytest.raises(ConfigError, match="ADMM contracts for smoothness >= strong convexity > 0"):
        declared_contraction(1.0, 1.0, 0.0)
