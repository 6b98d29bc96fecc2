"""Laws of mechanisms: clipping stays in the ball, more noise never costs more, rows stand alone."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from bruit.mechanisms import DiscreteGaussian, Gaussian, Laplace, clip_rows
from bruit.mechanisms.mechanism import snap
from bruit.privacy.events import Composed, GaussianEvent, SelfComposed
from bruit.privacy.toolbox.gaussian import (
    delta_of,
    epsilon_of,
    mu_of,
    rdp_to_epsilon,
    zcdp_to_epsilon,
)
from bruit.privacy.toolbox.pld import compose_epsilon
from bruit.randomness import Replay, pair

pytestmark = pytest.mark.slow

matrices = arrays(
    np.float64,
    array_shapes(min_dims=2, max_dims=2, min_side=1, max_side=12),
    elements=st.floats(allow_nan=False, allow_infinity=False),
)
bounds = st.floats(1e-6, 1e6)
orders = st.sampled_from([1, 2])
deltas = st.floats(1e-12, 0.5)
multipliers = st.floats(0.05, 1e4)


def norm(row, order):
    """The norm without overflow and with correctly rounded sums."""
    size = float(np.abs(row).max(initial=0.0))
    if size == 0:
        return 0.0
    scaled = [abs(float(x)) / size for x in row]
    return size * (math.fsum(scaled) if order == 1 else math.sqrt(math.fsum(x * x for x in scaled)))


@given(matrices, bounds, orders)
def test_clipped_rows_stay_in_the_ball_and_never_grow(values, bound, order):
    clipped = clip_rows(values, bound, order)
    assert np.isfinite(clipped).all()
    assert (np.abs(clipped) <= np.abs(values)).all()
    assert (clipped * np.sign(values) >= 0).all()
    for row, before in zip(clipped, values, strict=True):
        assert norm(row, order) <= bound * (1 + 4e-16)
        if norm(before, order) < bound * (1 - 1e-14):
            assert (row == before).all()
        else:
            assert norm(row, order) >= bound * (1 - 1e-12)


@given(matrices, bounds, orders)
def test_clipping_twice_is_clipping_once_and_rows_stand_alone(values, bound, order):
    clipped = clip_rows(values, bound, order)
    assert (clip_rows(clipped, bound, order) == clipped).all()
    for i in range(len(values)):
        assert (clip_rows(values[i : i + 1], bound, order)[0] == clipped[i]).all()


@given(matrices, bounds, orders, st.integers(-40, 10))
def test_snapping_after_clipping_stays_in_the_ball(values, bound, order, power):
    clipped = clip_rows(values, bound, order)
    snapped = snap(clipped, 2.0**power)
    assert (np.abs(snapped) <= np.abs(clipped)).all()
    assert (np.abs(snapped - clipped) < 2.0**power).all()
    assert (np.mod(snapped, 2.0**power) == 0).all()


@given(st.floats(1e-3, 1e3), st.floats(1e-3, 1e3), deltas)
def test_more_noise_never_costs_more(mu, factor, delta):
    low, high = sorted((mu, mu * factor))
    assert epsilon_of(low, delta) <= epsilon_of(high, delta)
    assert zcdp_to_epsilon(low, delta) <= zcdp_to_epsilon(high, delta) * (1 + 1e-12)


@given(st.floats(1e-3, 50), deltas)
def test_epsilon_and_delta_invert_each_other(mu, delta):
    epsilon = epsilon_of(mu, delta)
    if epsilon > 1e-6:
        assert delta_of(epsilon, mu) <= delta * (1 + 1e-9)
        assert math.isclose(mu_of(epsilon, delta), mu, rel_tol=1e-8)


@given(multipliers, st.integers(1, 50), deltas)
def test_n_compositions_equal_times_n(multiplier, count, delta):
    event = GaussianEvent(multiplier)
    together = compose_epsilon([(SelfComposed(event, count), 1)], delta)
    assert together == compose_epsilon([(event, count)], delta)
    one_by_one = compose_epsilon([(Composed((event,) * count), 1)], delta)
    assert math.isclose(one_by_one, together, rel_tol=1e-9, abs_tol=1e-12)


@given(st.floats(1e-3, 20), st.floats(1.001, 500), deltas)
def test_exact_accounting_is_never_worse_than_renyi(mu, order, delta):
    exact, tight = epsilon_of(mu, delta), rdp_to_epsilon(order, order * mu * mu / 2, delta)
    assert exact <= tight * (1 + 1e-9)
    assert tight <= rdp_to_epsilon(order, order * mu * mu / 2, delta, tight=False)
    assert exact <= zcdp_to_epsilon(mu * mu / 2, delta) * (1 + 1e-9)


@settings(deadline=None)
@given(st.floats(0.05, 20), deltas, st.integers(1, 100), st.floats(0.1, 10))
def test_calibrated_noise_meets_its_target(epsilon, delta, releases, clip):
    mechanism = Gaussian(clip=clip).calibrate(epsilon, delta, releases)
    assert compose_epsilon([(mechanism.event(), releases)], delta) <= epsilon * (1 + 1e-12)
    laplace = Laplace(clip=clip).calibrate(epsilon, releases)
    assert releases / laplace.noise_multiplier <= epsilon


@settings(deadline=None, max_examples=30)
@given(
    st.lists(st.integers(0, 2**48 - 1), min_size=1, max_size=6),
    st.integers(0, 2**32 - 1),
    st.integers(0, 255),
    st.integers(1, 9),
    st.integers(0, 2**16 - 1),
    st.floats(0.2, 100),
)
def test_noise_of_a_lane_does_not_depend_on_its_batch(lanes, step, use, d, run, sigma):
    dice, lanes = Replay(0), np.array(lanes)
    for mechanism in (
        Gaussian(sigma=sigma),
        Laplace(scale=sigma),
        DiscreteGaussian(sigma=sigma, grid=0.125),
    ):
        together = mechanism.noise(dice, lanes, step, use, d, run)
        for i in range(len(lanes)):
            assert (
                mechanism.noise(dice, lanes[i : i + 1], step, use, d, run)[0] == together[i]
            ).all()


@given(*[st.lists(st.integers(0, 2**24 - 1), min_size=3, max_size=3)] * 2)
def test_lanes_of_pairs_are_symmetric_and_distinct(a, b):
    lanes = pair(np.array(a), np.array(b))
    assert (lanes == pair(np.array(b), np.array(a))).all()
    assert len(set(lanes.tolist())) == len({frozenset(ends) for ends in zip(a, b, strict=True)})
