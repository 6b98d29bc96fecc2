"""The exact sampler: interval arithmetic against mpmath, and three ways to the same numbers."""

import numpy as np
import pytest
from mpmath import exp, mp, mpf

from bruit.kernels import noise
from bruit.mechanisms import DiscreteGaussian
from bruit.mechanisms.discrete_gaussian import _coin, _compiled, _stream, exp_interval, sample
from bruit.randomness import Replay

ADDRESS = (np.array([3]), np.array([2]), 1, np.array([0]))


@pytest.mark.parametrize("bits", [64, 128, 256])
@pytest.mark.parametrize(("numerator", "denominator"), [
    (0, 1), (1, 1), (3, 7), (500, 3), (10**30 + 1, 3 * 10**29), (1, 10**40), (123456, 7),
])
def test_the_interval_holds_the_exponential(numerator, denominator, bits):
    mp.prec = 1000
    low, high = exp_interval(numerator, denominator, bits)
    assert low <= exp(-mpf(numerator) / denominator) * mpf(2) ** bits <= high
    assert high - low <= 2


def test_the_compiled_coin_of_one_over_e():
    mp.prec = 300
    assert int(noise.EXP_LOW) + 4 == int(noise.EXP_HIGH) - 4 == int(mpf(2) ** 64 / exp(1))


@pytest.mark.parametrize("s", [0.3, 1.0, 2.7, 50.0, 2.0**20 + 0.1, 2.0**39])
def test_float_exact_and_compiled_decisions_agree(s):
    dice = Replay(8)
    compiled = DiscreteGaussian(clip=1.0, sigma=s, grid=1.0).noise(dice, np.arange(5), 2, 1, 40)
    floats, exact = _stream(dice, ADDRESS, 64), _stream(dice, ADDRESS, 1000)
    assert [sample(floats, s) for _ in range(40)] == compiled[3].tolist()
    assert [sample(exact, s, band=2.0) for _ in range(40)] == compiled[3].tolist()


def test_rows_short_of_words_start_again_and_give_the_same_numbers():
    out = np.empty((1, 30), dtype=np.int64)
    assert _compiled(Replay(8), ADDRESS, out, 5.0, count=8).size == 0
    stream = _stream(Replay(8), ADDRESS, 64)
    assert [sample(stream, 5.0) for _ in range(30)] == out[0].tolist()


def test_a_word_too_close_to_call_is_left_to_the_exact_path():
    words = np.zeros(64, dtype=np.uint64)  # u = 0, a sure coin, then a geometric coin on the edge of 1/e
    words[2] = noise.EXP_LOW
    assert noise.discrete_row(words, np.empty(1, dtype=np.int64), 5.0) == noise.UNSURE
    words[2], words[4] = np.uint64(2**64 - 1), np.uint64(int(2**64 * np.exp(-((25 / 6) ** 2) / 50)))
    assert noise.discrete_row(words, np.empty(1, dtype=np.int64), 5.0) == noise.UNSURE


@pytest.mark.parametrize(("second", "heads"), [(0, True), (2**64 - 1, False)])
def test_an_undecided_coin_reads_more_words(second, heads):
    """The first word is floor(2**64 / e), so it cannot decide the coin of 1 / e: the next word does."""
    words = iter([int(noise.EXP_LOW) + 4, second, 77])
    assert _coin(words, 1, 1, 1e-12) is heads
    assert next(words) == 77
