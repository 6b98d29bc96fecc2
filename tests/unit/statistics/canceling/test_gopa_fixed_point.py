"""Fixed point: exact sums, refusals before an overflow."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bruit.errors import ConfigError
from bruit.statistics.average.canceling.fixed_point import FixedPoint, finest_bits, reach_of
from bruit.statistics.average.canceling.terms import Terms

FIELD = FixedPoint(24)
NUMBERS = st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=20)


@given(NUMBERS)
def test_decoded_values_are_closer_to_zero_by_less_than_one_grid_point(values):
    row = np.array(values)
    back = FIELD.decode(FIELD.encode(row))
    assert np.all(np.abs(back) <= np.abs(row))
    assert np.all(np.abs(row - back) < FIELD.spacing)


@given(NUMBERS, st.randoms(use_true_random=False))
def test_masks_cancel_in_any_order(values, random):
    words = list(FIELD.encode(np.array(values)))
    masks = [np.uint64(random.getrandbits(64)) for _ in range(10)]
    terms = words + masks + [np.uint64(-int(mask) % 2**64) for mask in masks]
    random.shuffle(terms)
    assert np.array(terms).sum(dtype=np.uint64) == np.array(words).sum(dtype=np.uint64)


def test_noise_is_rounded_to_the_nearest_point():
    draws = np.random.default_rng(1).normal(size=1000)
    assert (
        np.abs(FIELD.decode(FIELD.noise(draws, 3.0)) - 3.0 * draws).max()
        <= FIELD.spacing / 2 * 1.001
    )


def test_bits_that_stay_exact_in_double_precision():
    bits = finest_bits(1000.0)
    assert 1000.0 * 2**bits < 2**53 <= 4 * 1000.0 * 2**bits


def terms(**changes):
    return Terms(
        **{
            "number": 0,
            "peers": 100,
            "width": 3,
            "clip": 1.0,
            "own_sigma": 0.5,
            "pair_sigma": 30.0,
            "degree": 20,
            **changes,
        }
    )


def test_room_is_ten_sigma_of_all_that_can_be_summed():
    assert reach_of(100, 1.0, 0.5, 30.0, 20) == pytest.approx(100 + 10 * (5 + 30 * 2000**0.5))
    assert terms().field == FixedPoint(24)
    assert terms().digest != terms(number=1).digest


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (lambda: FixedPoint(0), "1 to 52 bits"),
        (lambda: FIELD.encode(np.array([1.0, np.nan])), "nan or infinite"),
        (lambda: FIELD.encode(np.array([1e15])), "overflows the fixed point"),
        (lambda: terms(bits=52), "it would overflow; use at most 49 bits"),
        (lambda: terms(clip=1e12), "it would overflow"),
        (lambda: terms(own_sigma=1e-6), "too fine for 24 bits"),
        (lambda: terms(number=-1), "numbered 0"),
        (lambda: terms(peers=1), "two peers"),
        (lambda: terms(clip=0.0), "clip bounds the norm"),
        (lambda: terms(pair_sigma=0.0), "both noises are positive"),
        (lambda: terms(online=0), "online >= 1"),
    ],
)
def test_bad_input(wrong, words):
    with pytest.raises(ConfigError, match=words):
        wrong()


def test_the_number_of_bits_it_recommends_fits():
    terms(bits=49)
    with pytest.raises(ConfigError):
        terms(bits=50)
