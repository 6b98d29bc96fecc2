"""Subsampling against the worked numbers of gossip:DP-6, DP-9, walk:ADMM-9, quadrature, and
dp_accounting."""

import math

import dp_accounting
import numpy as np
import pytest
from dp_accounting.rdp import RdpAccountant
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import logsumexp

from bruit.errors import PrivacyError
from bruit.privacy.formulas.subsampled import dp_sgd, sampled_epsilon
from bruit.privacy.toolbox.gaussian import epsilon_of, rdp_to_epsilon
from bruit.privacy.toolbox.sampled_renyi import fixed_size, poisson, unsampled
from papers.printed.subsampling import (
    closed_form,
    first_condition,
    holds,
    published_dp6,
    published_dp_sgd,
    published_e5,
    second_condition,
    small_order_limit,
)

pytestmark = pytest.mark.slow


def quadrature(order, first, second):
    """D of two mixtures [(weight, mean), ...] of unit Gaussians, by the trapezoid rule (spectrally
    exact)."""
    means = [mean for _, mean in (*first, *second)]
    y = np.linspace(
        min(means) * (order + 1) - max(means) * order - 45, max(means) * (order + 1) + 45, 60_001
    )
    log_first = logsumexp([math.log(w) - (y - m) ** 2 / 2 for w, m in first], axis=0)
    log_second = logsumexp([math.log(w) - (y - m) ** 2 / 2 for w, m in second], axis=0)
    cell = (y[1] - y[0]) / math.sqrt(2 * math.pi)
    terms = order * log_first + (1 - order) * log_second + math.log(cell)
    top = terms.max()
    ones = np.exp(log_second + math.log(cell))
    if top < 0:  # near 1: sum the difference, which keeps the digits of small divergences
        ratio = log_first - log_second
        # exp(a r) - a exp(r) + a - 1 integrates to the same excess over 1, without first-order
        # terms
        small = np.abs(ratio) < 1e-3
        excess = np.where(
            small,
            sum((order**k - order) * ratio**k / math.factorial(k) for k in range(2, 6)),
            np.expm1(order * np.minimum(ratio, 300 / order))
            - order * np.expm1(np.minimum(ratio, 300 / order)),
        )
        if not np.any(ratio > 300 / order):
            return math.log1p(float(ones @ excess)) / (order - 1)
    return float(logsumexp(terms)) / (order - 1)


WORKED = [
    (8, 0.01, 4.0, 2.5899123e-05),
    (82, 0.1, 4.0, 0.298655628),
    (83, 0.1, 4.0, 0.325597635),
    (149, 0.01, 4.0, 0.0300549104),
    (2, 0.01, 4.0, 6.449425094e-6),
    (8, 0.01, 4.0, 2.589912301e-5),
]


@pytest.mark.parametrize(("order", "rate", "z", "value"), WORKED)
def test_worked_poisson(order, rate, z, value):
    """gossip:DP-6, walk:ADMM-9."""
    assert poisson(order, rate, z) == pytest.approx(value, rel=1e-7)


def test_worked_federated_admm():
    """walk:ADMM-6: 200 rounds at q = 0.1 and z_eff = 100, alpha = 4 (a heuristic there; here only
    the number)."""
    assert 200 * poisson(4, 0.1, 100.0) == pytest.approx(4.000270017e-4, rel=1e-9)


@pytest.mark.parametrize(("order", "value"), [(2, 2.579745081e-5), (8, 1.227320901e-4)])
def test_worked_fixed_size(order, value):
    """walk:ADMM-9."""
    assert fixed_size(order, 0.01, 4.0) == pytest.approx(value, rel=1e-8)


@pytest.mark.parametrize(("order", "value"), [(2, 2.5e-5), (8, 1.0e-4)])
def test_worked_lemma_e5(order, value):
    """walk:ADMM-9: valid in both rows of the table."""
    assert published_e5(order, 0.01, 4.0) == pytest.approx(value)
    assert closed_form(order, 0.01, 4.0) == pytest.approx(value)
    assert holds(order, 0.01, 4.0)
    assert poisson(order, 0.01, 4.0) < value


def test_counter_examples_of_the_printed_bound_without_condition():
    """gossip:DP-6: false from alpha = 83 on at q = 0.1, and from 149 on at q = 0.01."""
    assert published_dp6(8, 0.01, 4.0) == pytest.approx(0.0003)
    assert published_dp6(82, 0.1, 4.0) == pytest.approx(0.3075)
    assert published_dp6(83, 0.1, 4.0) == pytest.approx(0.31125)
    assert published_dp6(149, 0.01, 4.0) == pytest.approx(0.0055875)
    assert poisson(82, 0.1, 4.0) < published_dp6(82, 0.1, 4.0)
    assert poisson(83, 0.1, 4.0) > published_dp6(83, 0.1, 4.0)
    assert poisson(148, 0.01, 4.0) < published_dp6(148, 0.01, 4.0)
    assert poisson(149, 0.01, 4.0) > published_dp6(149, 0.01, 4.0)
    assert not holds(83, 0.1, 4.0)
    assert not holds(149, 0.01, 4.0)


def test_lemma_e5_is_false_under_its_printed_condition_alone():
    """walk:ADMM-9 prints one of the two conditions; at q = 1e-4, z = 4, alpha = 300 it holds and
    the bound does not."""
    order, rate, z = 300, 1e-4, 4.0
    assert second_condition(order, rate, z)
    assert not first_condition(order, rate, z)
    exact = quadrature(order, [(1 - rate, 0.0), (rate, 1 / z)], [(1.0, 0.0)])
    assert exact == pytest.approx(poisson(order, rate, z), rel=1e-6)
    assert exact == pytest.approx(0.133933, rel=1e-5)
    assert published_e5(order, rate, z) == pytest.approx(3.75e-7)
    with pytest.raises(PrivacyError, match=r"order 300 exceeds z\*\*2 C / 2"):
        closed_form(order, rate, z)


@settings(deadline=None, max_examples=150)
@given(st.integers(2, 400), st.floats(1e-5, 0.199), st.floats(4, 80))
def test_the_printed_bounds_hold_under_both_conditions(order, rate, z):
    if holds(order, rate, z):
        assert (
            poisson(order, rate, z) <= closed_form(order, rate, z) <= published_dp6(order, rate, z)
        )


def test_the_small_order_limit_is_no_bound():
    """walk:ADMM-9: 6.25e-6 against 6.449425e-6."""
    assert small_order_limit(2, 0.01, 4.0) == pytest.approx(6.25e-6)
    assert poisson(2, 0.01, 4.0) > small_order_limit(2, 0.01, 4.0)


@pytest.mark.parametrize("order", [2, 3, 5, 8, 16])
@pytest.mark.parametrize(
    ("rate", "z"), [(0.001, 0.7), (0.01, 1.0), (0.1, 4.0), (0.5, 2.0), (0.9, 0.5), (0.3, 20.0)]
)
def test_poisson_is_the_divergence_of_the_mixture(order, rate, z):
    """gossip:DP-6: an equality in one direction, and the other direction is smaller."""
    sampled, plain = [(1 - rate, 0.0), (rate, 1 / z)], [(1.0, 0.0)]
    assert poisson(order, rate, z) == pytest.approx(quadrature(order, sampled, plain), rel=1e-6)
    assert quadrature(order, plain, sampled) <= poisson(order, rate, z) * (1 + 1e-9)


@pytest.mark.parametrize("order", [1.25, 1.5, 2.5, 7.3])
@pytest.mark.parametrize(("rate", "z"), [(0.01, 1.0), (0.1, 4.0), (0.5, 2.0)])
def test_between_integers_the_chord_is_a_bound(order, rate, z):
    exact = quadrature(order, [(1 - rate, 0.0), (rate, 1 / z)], [(1.0, 0.0)])
    assert exact * (1 - 1e-9) <= poisson(order, rate, z) <= unsampled(order, z)


@pytest.mark.parametrize("order", [2, 3, 4, 8])
@pytest.mark.parametrize(
    ("rate", "z"), [(0.01, 0.5), (0.01, 4.0), (0.1, 1.0), (0.5, 1.0), (0.5, 0.25), (0.9, 2.0)]
)
@pytest.mark.parametrize(
    ("old", "new"), [(1, -1), (1, 0), (0, 1), (1, -0.5), (-0.5, 1), (1, 0.5), (0.5, 1)]
)
def test_replacing_a_contribution_is_covered(order, rate, z, old, new):
    """Contributions of norm at most `clip`, z = sigma / (2 clip): Poisson with replacement, and
    fixed size."""
    clip = 1 / (2 * z)
    exact = quadrature(
        order, [(1 - rate, 0.0), (rate, old * clip)], [(1 - rate, 0.0), (rate, new * clip)]
    )
    assert exact <= poisson(order, rate, z, "replace") * (1 + 1e-9)
    assert exact <= fixed_size(order, rate, z) * (1 + 1e-9)


@pytest.mark.parametrize("order", [2, 3, 8])
@pytest.mark.parametrize("other", [-1.0, 0.0, 0.5, 1.0])
def test_fixed_size_samples_are_covered(order, other):
    """walk:ADMM-9 by enumeration: one record out of two, n = 2, m = 1; the other record stays."""
    z, clip = 1.0, 0.5
    first, second = [(0.5, other * clip), (0.5, clip)], [(0.5, other * clip), (0.5, -clip)]
    assert quadrature(order, first, second) <= fixed_size(order, 0.5, z) * (1 + 1e-9)


def test_a_difference_is_no_norm():
    """walk:ADMM-9: contributions 40 and 41 with z = sigma / difference = 4."""
    rate, sigma = 0.01, 4.0
    exact = quadrature(
        2, [(1 - rate, 0.0), (rate, 40 / sigma)], [(1 - rate, 0.0), (rate, 41 / sigma)]
    )
    assert exact == pytest.approx(6.447e-4, rel=1e-4)
    assert exact > 90 * poisson(2, rate, sigma)
    assert exact < poisson(2, rate, sigma / 82, "replace")


@pytest.mark.parametrize(
    ("rate", "z"), [(0.001, 0.8), (0.01, 1.1), (0.05, 4.0), (0.2, 2.0), (1.0, 3.0)]
)
def test_poisson_against_dp_accounting(rate, z):
    orders = [2, 3, 5, 8, 16, 32, 64, 128]
    theirs = RdpAccountant(orders)
    theirs.compose(dp_accounting.PoissonSampledDpEvent(rate, dp_accounting.GaussianDpEvent(z)), 50)
    mine = [50 * poisson(order, rate, z) for order in orders]
    np.testing.assert_allclose(mine, theirs._rdp, rtol=1e-6)
    assert min(
        rdp_to_epsilon(o, d, 1e-6) for o, d in zip(orders, mine, strict=True)
    ) == pytest.approx(theirs.get_epsilon(1e-6), rel=1e-6)


def test_worked_dp_sgd():
    """gossip:DP-9: N = 1000, B = 50, sigma = 4, T = 100, alpha = 8; and the printed formula, which
    is wrong."""
    run = dp_sgd(1000, 50, 4.0, 100)
    assert run.profile.divergence(8.0) == pytest.approx(0.0657269319, rel=1e-9)
    published = rdp_to_epsilon(8, run.profile.divergence(8.0), 1e-5, tight=False)
    assert published == pytest.approx(1.71043057, rel=1e-8)
    assert run.epsilon(1e-5) <= published
    assert published_dp_sgd(8, 1000, 4.0, 100) == pytest.approx(2.5e-5)
    full = dp_sgd(1000, 1000, 4.0, 100)
    assert full.profile.divergence(8.0) == pytest.approx(25.0)
    assert full.profile.divergence(8.0) > 1e5 * published_dp_sgd(8, 1000, 4.0, 100)
    assert (run.status, run.level, run.noise_multiplier) == ("ideal", "record", 4.0)


def test_dp_sgd_is_above_privacy_loss_distributions():
    """Renyi never beats the numeric composition; a full batch is plain Gaussian noise."""
    for records, batch, z, steps in [
        (1000, 50, 4.0, 100),
        (1000, 10, 1.0, 200),
        (100, 100, 5.0, 4),
    ]:
        sharp = sampled_epsilon(batch / records, z, steps, 1e-5)
        if batch < records:
            assert sharp <= dp_sgd(records, batch, z, steps).epsilon(1e-5)
        else:
            assert (
                epsilon_of(math.sqrt(steps) / z, 1e-5)
                <= sharp
                <= epsilon_of(math.sqrt(steps) / z, 1e-5) + 1e-3
            )


def test_corner_cases():
    """gossip:DP-6 limits: q = 1, q = 0, no noise, endless noise; tiny losses keep their digits."""
    assert poisson(8, 1.0, 4.0) == unsampled(8, 4.0) == 0.25
    assert poisson(8, 0.0, 4.0) == fixed_size(8, 0.0, 0.0) == 0.0
    assert poisson(2, 0.5, 0.0) == fixed_size(2, 0.5, 0.0) == math.inf
    assert poisson(2, 0.5, math.inf) == 0.0
    assert poisson(2, 1e-9, 100.0) == pytest.approx(1e-18 * math.expm1(1e-4), rel=1e-9)
    assert sampled_epsilon(0.0, 1.0, 5, 1e-6) == sampled_epsilon(0.1, 1.0, 0, 1e-6) == 0.0
    assert sampled_epsilon(0.1, 0.0, 5, 1e-6) == math.inf
    assert dp_sgd(10, 5, 1.0, 0).epsilon(1e-6) == 0.0
    assert fixed_size(64, 0.5, 20.0) == unsampled(64, 20.0)  # loose: the unsampled loss is taken


@settings(deadline=None, max_examples=80)
@given(st.integers(2, 60), st.floats(0, 1), st.floats(0.2, 100), st.floats(1, 3))
def test_more_noise_smaller_samples_and_smaller_orders_never_hurt(order, rate, z, factor):
    for cost in (poisson, fixed_size, lambda a, q, s: poisson(a, q, s, "replace")):
        value = cost(order, rate, z)
        slack = 1 + 1e-11
        assert cost(order, rate, z * factor) <= value * slack
        assert cost(order, rate / factor, z) <= value * slack
        assert value <= unsampled(order, z)
    assert poisson(order, rate, z) <= poisson(order + 1, rate, z) * (1 + 1e-11)
    assert poisson(order, rate, z) <= poisson(order, rate, z, "replace")


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: poisson(1, 0.1, 1.0), "Renyi order must be a number above 1, found 1"),
        (lambda: poisson(2, 1.1, 1.0), "sampling rate is a probability, found 1.1"),
        (lambda: fixed_size(2, 0.1, -1.0), "noise multiplier must be a number >= 0, found -1"),
        (lambda: poisson(2, 0.1, 1.0, "swap"), "'add-remove' or 'replace', found 'swap'"),
        (lambda: dp_sgd(10, 11, 1.0, 1), "batch of 11 out of 10 records"),
        (lambda: dp_sgd(10, 1, 1.0, -1), "whole number of steps >= 0, found -1"),
        (lambda: dp_sgd(10, 1, math.nan, 1), "noise multiplier must be a number >= 0, found nan"),
        (lambda: sampled_epsilon(0.1, 1.0, 1, 1.0), "delta must lie strictly between 0 and 1"),
        (lambda: published_e5(2, 0.3, 4.0), r"a rate in \(0, 1/5\)"),
        (lambda: published_dp6(2, 0.1, 3.0), "noise multiplier of at least 4"),
        (lambda: published_e5(200, 0.1, 4.0), "smaller order than 200"),
    ],
)
def test_refusals(call, words):
    with pytest.raises(PrivacyError, match=words):
        call()
