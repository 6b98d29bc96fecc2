"""Accounting against the worked numbers of gossip:DP-1, DP-2, DP-4, DP-5 and walk:F-1, mpmath,
dp_accounting."""

import math
import time

import dp_accounting
import numpy as np
import pytest
from dp_accounting.pld import PLDAccountant
from dp_accounting.rdp import RdpAccountant
from mpmath import exp, mp, mpf, ncdf

from bruit.errors import ConfigError, PrivacyError
from bruit.privacy.calibrate import ROOM, least
from bruit.privacy.events import (
    Composed,
    DiscreteGaussianEvent,
    Event,
    Exact,
    GaussianEvent,
    LaplaceEvent,
    Mask,
    SampledGaussianEvent,
    SelfComposed,
)
from bruit.privacy.toolbox.gaussian import (
    delta_of,
    epsilon_of,
    epsilons,
    mu_of,
    rdp_to_epsilon,
    zcdp_to_epsilon,
)
from bruit.privacy.toolbox.pld import compose_epsilon
from bruit.privacy.toolbox.pure import advanced, basic, compose


def true_delta(epsilon, mu):
    mp.dps = 60
    epsilon, mu = mpf(epsilon), mpf(mu)
    return ncdf(mu / 2 - epsilon / mu) - exp(epsilon) * ncdf(-mu / 2 - epsilon / mu)


def test_worked_deltas():
    """gossip:DP-1, walk:F-1."""
    assert delta_of(1, 1) == pytest.approx(0.126936738, abs=5e-10)
    assert delta_of(0.5, 0.5) == pytest.approx(0.0524403233, abs=5e-11)
    assert delta_of(1, 1) == pytest.approx(0.1269367375, abs=5e-11)


def test_worked_epsilons():
    """gossip:DP-2 (sigma / sensitivity = 4), walk:F-1."""
    assert epsilon_of(0.25, 1e-5) == pytest.approx(0.926341504, abs=5e-10)
    assert epsilon_of(0.2, 1e-6) == pytest.approx(0.834117549, abs=5e-10)
    assert epsilon_of(1, 1e-5) == pytest.approx(4.377178096, abs=5e-10)


def test_worked_calibration():
    """gossip:DP-4: the classical sigma for epsilon 0.5, delta 1e-5, its true delta, and the least
    sigma."""
    classical = math.sqrt(2 * math.log(1.25 / 1e-5)) / 0.5
    assert classical == pytest.approx(9.68961053, abs=5e-9)
    assert delta_of(0.5, 1 / classical) == pytest.approx(1.60785399e-08, rel=5e-9)
    assert 1 / mu_of(0.5, 1e-5) == pytest.approx(7.03182668, abs=5e-9)


def test_worked_renyi_conversions():
    """gossip:DP-2, walk:F-1."""
    assert rdp_to_epsilon(8, 0.5, 1e-5, tight=False) == pytest.approx(2.14470364, abs=5e-9)
    assert rdp_to_epsilon(8, 0.5, 1e-5) == pytest.approx(1.71410917, abs=5e-9)
    assert rdp_to_epsilon(10, 0.5, 1e-5, tight=False) == pytest.approx(1.779213941, abs=5e-10)
    assert rdp_to_epsilon(10, 0.5, 1e-5) == pytest.approx(1.418010637, abs=5e-10)
    assert rdp_to_epsilon(64, 0.02, 1e-6, tight=False) == pytest.approx(0.239293818, abs=5e-10)
    assert rdp_to_epsilon(64, 0.02, 1e-6) == pytest.approx(0.157531444, abs=5e-10)
    assert zcdp_to_epsilon(0.01, 1e-6, tight=False) == pytest.approx(0.753384438, abs=5e-10)
    assert rdp_to_epsilon(38.169221888, 0.38169221888, 1e-6, tight=False) == pytest.approx(
        0.753384438, abs=5e-10
    )
    assert zcdp_to_epsilon(1 / 32, 1e-5, tight=False) == pytest.approx(1.23088148, abs=5e-9)
    assert rdp_to_epsilon(20.1941036, 20.1941036 / 32, 1e-5, tight=False) == pytest.approx(
        1.23088148, abs=5e-9
    )
    assert rdp_to_epsilon(2, 0.0, 0.9) == 0.0


def test_worked_compositions():
    """gossip:DP-5."""
    assert advanced(0.1, 1e-6, 20, 1e-6)[0] == pytest.approx(2.56112984, abs=5e-9)
    assert advanced(0.5, 0.0, 3, 1e-5)[0] == pytest.approx(5.12872725, abs=5e-9)
    assert basic(0.1, 1e-6, 20) == pytest.approx((2.0, 2e-5))
    assert compose(0.1, 1e-6, 20, 1e-6) == pytest.approx((2.0, 2e-5))
    assert compose(0.01, 0.0, 10_000, 1e-6) == advanced(0.01, 0.0, 10_000, 1e-6)
    assert basic(0.1, 0.0, 0) == (0.0, 0.0)
    assert advanced(1e4, 0.0, 2, 1e-6)[0] == math.inf


@pytest.mark.parametrize("mu", [1e-12, 1e-7, 9.99e-6, 1e-5, 1e-3, 0.1, 1.0, 10.0, 300.0])
@pytest.mark.parametrize("ratio", [0.0, 0.3, 2.0, 6.0])
def test_delta_agrees_with_sixty_digits_and_is_rounded_up(mu, ratio):
    epsilon = mu * mu / 2 + ratio * mu if ratio else 0.0
    truth = true_delta(epsilon, mu)
    assert abs(delta_of(epsilon, mu) / truth - 1) < 1e-9
    if ratio:  # at epsilon = 0 and large mu, delta is 1 to the last digits
        assert delta_of(epsilon, mu) >= truth


@pytest.mark.parametrize("delta", [1e-12, 1e-6, 0.01, 0.6])
@pytest.mark.parametrize("mu", [3e-6, 1e-3, 0.2, 1.0, 8.0, 100.0])
def test_epsilon_is_the_smallest_that_holds(mu, delta):
    epsilon = epsilon_of(mu, delta)
    assert true_delta(epsilon, mu) <= delta
    if epsilon > 0:
        assert true_delta(epsilon * (1 - 1e-7), mu) > delta


@pytest.mark.parametrize(
    ("epsilon", "delta"), [(0.0, 1e-6), (1e-3, 1e-6), (1.0, 1e-10), (40.0, 1e-5), (1e4, 0.2)]
)
def test_mu_is_the_exact_inverse(epsilon, delta):
    mu = mu_of(epsilon, delta)
    assert true_delta(epsilon, mu) <= delta
    assert true_delta(epsilon, mu * (1 + 1e-8)) > delta


def test_limits():
    assert delta_of(1.0, 0.0) == 0.0
    assert delta_of(math.inf, 3.0) == 0.0
    assert delta_of(1.0, math.inf) == 1.0
    assert delta_of(0.0, 80.0) == pytest.approx(1.0)
    assert epsilon_of(0.0, 1e-6) == 0.0
    assert epsilon_of(1e-9, 1e-6) == 0.0  # delta(0) is below 1e-6 already
    assert epsilon_of(math.inf, 1e-6) == math.inf
    assert epsilon_of(1e200, 1e-6) == math.inf
    assert mu_of(math.inf, 1e-6) == math.inf
    assert zcdp_to_epsilon(0.0, 1e-6) == 0.0
    assert zcdp_to_epsilon(math.inf, 1e-6) == math.inf


def test_many_epsilons_equal_one_by_one_and_are_fast():
    mu = np.random.default_rng(0).lognormal(-1, 2, 300_000)
    mu[:4] = 0.0, np.inf, np.nan, 1e-9
    start = time.process_time()
    table = epsilons(mu.reshape(1000, 300), 1e-6)
    assert time.process_time() - start < 3.0  # some 0.15 s on a quiet machine
    assert table.shape == (1000, 300)
    flat = table.reshape(-1)
    assert flat[0] == 0.0
    assert flat[1] == np.inf
    assert np.isnan(flat[2])
    assert flat[3] == 0.0
    for i in range(4, 300_000, 1999):
        assert flat[i] == pytest.approx(epsilon_of(mu[i], 1e-6), rel=1e-11)
        assert true_delta(flat[i], mu[i]) <= 1e-6 * (1 + 1e-12)


def test_gaussian_composition_is_exact_and_agrees_with_dp_accounting():
    events = [(GaussianEvent(4.0), 3), (SelfComposed(GaussianEvent(2.0), 2), 2)]
    mu = math.sqrt(3 / 16 + 4 / 4)
    assert compose_epsilon(events, 1e-6) == epsilon_of(mu, 1e-6)
    accountant = PLDAccountant().compose(
        Composed(tuple(SelfComposed(e, k) for e, k in events)).to_dp_accounting()
    )
    second = accountant.get_epsilon(1e-6)
    assert compose_epsilon(events, 1e-6) <= second <= compose_epsilon(events, 1e-6) + 1e-3


def test_laplace_composition():
    assert compose_epsilon([(LaplaceEvent(2.0), 1)], 1e-12) == pytest.approx(0.5, abs=1e-9)
    many = compose_epsilon([(LaplaceEvent(10.0), 100)], 1e-6)
    second = PLDAccountant().compose(dp_accounting.LaplaceDpEvent(10.0), 100).get_epsilon(1e-6)
    assert many == pytest.approx(second, abs=1e-3)
    assert many < 10.0  # basic composition
    # One Laplace release has delta(epsilon) = 1 - exp((epsilon - 1 / z) / 2), in closed form.
    assert compose_epsilon([(LaplaceEvent(1.0), 1)], 0.1) == pytest.approx(
        1 + 2 * math.log(0.9), abs=2e-4
    )


def test_mixed_composition_lies_between_its_bounds():
    events = [(LaplaceEvent(5.0), 10), (GaussianEvent(3.0), 4)]
    mixed = compose_epsilon(events, 1e-6)
    assert max(compose_epsilon(events[:1], 1e-6), compose_epsilon(events[1:], 1e-6)) < mixed
    assert mixed < 2.0 + compose_epsilon(events[1:], 1e-6) + 1e-9
    accountant = RdpAccountant()
    accountant.compose(events[0][0].to_dp_accounting(), 10).compose(
        events[1][0].to_dp_accounting(), 4
    )
    assert mixed < accountant.get_epsilon(1e-6)


def test_discrete_gaussian_composition():
    """zCDP adds and is converted by gossip:DP-2; dp_accounting, on a grid of orders, cannot do
    better."""
    events = [(DiscreteGaussianEvent(4.0), 5), (GaussianEvent(3.0), 2)]
    rho = 5 / 32 + 2 / 18
    ours = compose_epsilon(events, 1e-6)
    assert ours == zcdp_to_epsilon(rho, 1e-6)
    second = RdpAccountant().compose(dp_accounting.ZCDpEvent(rho)).get_epsilon(1e-6)
    assert second * 0.99 < ours <= second
    with_laplace = compose_epsilon([*events, (LaplaceEvent(8.0), 3)], 1e-6)
    accountant = (
        RdpAccountant()
        .compose(dp_accounting.ZCDpEvent(rho))
        .compose(dp_accounting.LaplaceDpEvent(8.0), 3)
    )
    assert with_laplace == pytest.approx(accountant.get_epsilon(1e-6), rel=0.01)
    assert with_laplace <= accountant.get_epsilon(1e-6)


@pytest.mark.parametrize("a", [0.1, 0.7, 2.0, 5.0])
@pytest.mark.parametrize("b", [0.05, 0.7, 3.0])
def test_moving_two_coordinates_tells_less_than_moving_one(a, b):
    """The dominating pair of vector Laplace noise, by quadrature of E[delta_a(x - l)] over the law
    of the loss l."""

    def delta(x, shift):
        return np.where(
            x > shift,
            0.0,
            np.where(x < -shift, 1 - np.exp(np.minimum(x, 0)), 1 - np.exp((x - shift) / 2)),
        )

    edges = np.linspace(-b, b, 40_001)
    middle, width = (edges[1:] + edges[:-1]) / 2, edges[1] - edges[0]
    for x in np.linspace(-a - b, a + b, 41):
        two = delta(x - b, a) / 2 + delta(x + b, a) * math.exp(-b) / 2
        two += np.sum(delta(x - middle, a) * np.exp((middle - b) / 2) / 4) * width
        assert two <= float(delta(np.array(x), a + b)) + 1e-8


@pytest.mark.parametrize("z", [5e-324, 1e-200, 1e-100, 1e-20])
def test_noise_that_is_next_to_nothing_is_charged_as_none(z):
    """Its square is no float any more: an account with such a line could not be read."""
    kinds = (
        GaussianEvent(z),
        LaplaceEvent(z),
        DiscreteGaussianEvent(z),
        SampledGaussianEvent(z, 0.1),
    )
    for event in kinds:
        assert compose_epsilon([(event, 1)], 1e-6) == math.inf


def test_exact_reads_masks_and_nothing():
    assert compose_epsilon([(Exact(), 1), (GaussianEvent(100.0), 1)], 1e-6) == math.inf
    assert compose_epsilon([(GaussianEvent(0.0), 1)], 1e-6) == math.inf
    assert compose_epsilon([(GaussianEvent(1e200), 1)], 1e-6) == 0  # its square is no float
    assert compose_epsilon([(Exact(), 0), (Mask(1.0), 9)], 1e-6) == 0.0
    assert compose_epsilon([], 1e-6) == 0.0
    assert compose_epsilon([(GaussianEvent(2.0), 1), (Mask(1.0), 9)], 1e-6) == epsilon_of(0.5, 1e-6)


def test_tiny_noise_costs_more_than_can_be_tabulated_but_stays_bounded():
    epsilon = compose_epsilon([(LaplaceEvent(1e-6), 1), (GaussianEvent(1.0), 1)], 1e-6)
    assert epsilon == pytest.approx(1e6 + epsilon_of(1.0, 1e-6))


class Coin(Event):
    kind = "coin"

    def key(self):
        return ("coin",)

    def describe(self):
        return {"kind": "coin"}

    def to_dp_accounting(self):
        return None

    def __repr__(self):
        return "Coin()"


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: compose_epsilon([(Coin(), 1)], 1e-6), r"no accountant knows the event Coin\(\)"),
        (
            lambda: compose_epsilon([(SelfComposed(Coin(), 2), 1)], 1e-6),
            r"Coin\(\) \(inside SelfComposed",
        ),
        (lambda: compose_epsilon([("coin", 1)], 1e-6), "unknown event 'coin'"),
        (lambda: compose_epsilon([(Exact(), -1)], 1e-6), "whole number of times"),
        (lambda: compose_epsilon([], -0.1), "delta must be at least 0 and below 1, found -0.1"),
        (lambda: epsilon_of(1.0, 1.0), "delta must be between 0 and 1"),
        (lambda: epsilon_of(-1.0, 1e-6), "mu = sensitivity / sigma must be >= 0, found -1.0"),
        (lambda: delta_of(-1.0, 1.0), "epsilon must be a number >= 0"),
        (lambda: delta_of(1.0, math.nan), "mu = sensitivity / sigma must be >= 0"),
        (lambda: mu_of(-1.0, 1e-6), "epsilon must be a number >= 0"),
        (lambda: rdp_to_epsilon(1.0, 0.1, 1e-6), "Renyi order must be above 1, found 1.0"),
        (lambda: rdp_to_epsilon(2.0, -0.1, 1e-6), "Renyi divergence must be a number >= 0"),
        (lambda: zcdp_to_epsilon(-1.0, 1e-6), "rho must be a number >= 0"),
        (lambda: basic(-1.0, 0.0, 1), "epsilon must be a number >= 0"),
        (lambda: basic(1.0, 2.0, 1), "delta must be between 0 and 1"),
        (lambda: basic(1.0, 0.0, -1), "whole number of times"),
        (lambda: advanced(1.0, 0.0, 1, 0.0), "slack of advanced composition"),
    ],
)
def test_statements_that_mean_nothing_are_refused(call, message):
    with pytest.raises(PrivacyError, match=message):
        call()


def test_least_returns_the_safe_end():
    for target in (1e-9, 0.3, 1.0, 7e8):
        root = least(lambda p: 1 / p, target)
        assert 1 / root <= target
        assert 1 / (root / ROOM * (1 - 1e-15)) > target
    assert least(lambda p: 0.0 if p >= 3.5 else 1.0, 0.5) == 3.5 * ROOM


@pytest.mark.parametrize(
    ("cost", "target", "error", "message"),
    [
        (lambda p: 1.0, 0.5, PrivacyError, "no amount of noise reaches the target 0.5"),
        (lambda p: 0.0, 0.5, ConfigError, "the target 0.5 is met without noise"),
        (lambda p: 1 / p, -1.0, ConfigError, "target must be a number >= 0"),
    ],
)
def test_searches_that_cannot_end_are_refused(cost, target, error, message):
    with pytest.raises(error, match=message):
        least(cost, target)
    with pytest.raises(ConfigError, match="must start at a positive number"):
        least(lambda p: 1 / p, 1.0, start=0.0)
