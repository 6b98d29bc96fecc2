"""Circuits in the clear: comparisons against Python's, noise by counting all words
(perso:LDP-11)."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from bruit.errors import ConfigError, PrivacyError
from bruit.statistics.holders.circuits import Builder, below, equal, evaluate, greater
from bruit.statistics.holders.comparisons import COMPARISONS, DISTANCES, RANGE_BITS, farther
from bruit.statistics.holders.noisy_bit import NoisyBit, ordered


def spelled(values, bits):
    return (np.asarray(values)[:, None] >> np.arange(bits) & 1).astype(bool)


@pytest.mark.parametrize("tie", [None, 0, 1])
def test_greater_on_all_four_bit_numbers(tie):
    make = Builder(4 + (tie is not None), 4)
    start = 4 + (tie is not None)
    circuit = make.circuit(
        greater(make, range(4), range(start, start + 4), None if tie is None else 4)
    )
    x, y = (np.array(part) for part in zip(*itertools.product(range(16), repeat=2), strict=True))
    left = (
        spelled(x, 4)
        if tie is None
        else np.concatenate((spelled(x, 4), np.full((256, 1), tie, dtype=bool)), axis=1)
    )
    assert (evaluate(circuit, left, spelled(y, 4))[:, 0] == (x >= y if tie else x > y)).all()
    assert circuit.ands == 4


def test_equal_and_below_on_all_small_numbers():
    make = Builder(5, 5)
    circuit = make.circuit(equal(make, range(5), range(5, 10)))
    x, y = (np.array(part) for part in zip(*itertools.product(range(32), repeat=2), strict=True))
    assert (evaluate(circuit, spelled(x, 5), spelled(y, 5))[:, 0] == (x == y)).all()
    for threshold in range(1, 32):
        make = Builder(5, 0)
        circuit = make.circuit(below(make, range(5), threshold))
        words = np.arange(32)
        assert (
            evaluate(circuit, spelled(words, 5), np.zeros((32, 0), bool))[:, 0]
            == (words < threshold)
        ).all()
        assert circuit.ands <= 4


def test_farther_on_all_four_bit_numbers_and_words():
    """[|x - y| > w], and for two words both; counted over words it is |x - y| of 16, and its
    square of 256."""
    for words in (1, 2):
        make = Builder(4, 4 + 4 * words)
        drawn = [range(start, start + 4) for start in range(8, 8 + 4 * words, 4)]
        circuit = make.circuit(farther(make, range(4), range(4, 8), *drawn))
        x, y, *w = (
            np.array(part)
            for part in zip(*itertools.product(range(16), repeat=2 + words), strict=True)
        )
        right = np.concatenate([spelled(part, 4) for part in (y, *w)], axis=1)
        found = evaluate(circuit, spelled(x, 4), right)[:, 0]
        assert (found == np.all([np.abs(x - y) > part for part in w], axis=0)).all()
        counted = found.reshape(256, -1).sum(axis=1)
        assert (counted == np.abs(x - y).reshape(256, -1)[:, 0] ** words).all()
        assert circuit.ands == 4 + 5 * words - 1


@pytest.mark.parametrize("statistic", sorted(DISTANCES))
def test_what_a_distance_costs_and_what_its_bits_stand_for(statistic):
    bit = NoisyBit(statistic, 1.2, within=(10.0, 14.0))
    assert bit.exact_epsilon == NoisyBit("auc", 1.2).exact_epsilon
    power = 2 if statistic == "variance" else 1
    top = (4.0 * 2**RANGE_BITS / (2**RANGE_BITS - 1)) ** power / power
    assert bit.values == (0.0, top)
    ends = bit.numbers(np.array([[10.0, 0.0], [14.0, 0.0]])[:, : bit.comparison.columns])
    assert ends[:, 0].tolist() == [0, 2**RANGE_BITS - 1]


@pytest.mark.parametrize("threshold", [0, 32, -1])
def test_a_threshold_outside_the_words_is_refused(threshold):
    with pytest.raises(ConfigError, match=r"1\.\.31"):
        below(Builder(5, 0), range(5), threshold)


def test_inputs_of_another_size_are_refused():
    make = Builder(2, 1)
    with pytest.raises(ConfigError, match="takes 2 and 1 bits, found 1 and 1"):
        evaluate(make.circuit(make.xor(0, 2)), np.zeros((1, 1), bool), np.zeros((1, 1), bool))


def test_published_thresholds_and_epsilons():
    """The examples of perso:LDP-11."""
    assert (NoisyBit("auc", 1.0, 8).threshold, NoisyBit("auc", 1.0, 16).threshold) == (69, 17626)
    assert NoisyBit("auc", 1.0, 8).flip == 0.26953125
    assert NoisyBit("auc", 1.0, 8).exact_epsilon == pytest.approx(0.9970021123, abs=1e-10)
    assert NoisyBit("auc", 1.0, 16).exact_epsilon == pytest.approx(0.9999491662, abs=1e-10)


@pytest.mark.parametrize("statistic", sorted(COMPARISONS))
def test_the_law_of_the_bit_is_exact_whatever_the_other_party_contributes(statistic):
    """All 2^(coins + noise) words of one party, against several fixed ones of the other: the counts
    are exact."""
    bit = NoisyBit(statistic, 1.2, 8)
    shared = bit.shared_bits
    words = spelled(np.arange(1 << shared), shared)
    rng = np.random.default_rng(3)
    cases = [
        ((1.0, 5.0), (2.0, 7.0)),
        ((3.0, 1.0), (2.0, 2.0)),
        ((4.0, 4.0), (4.0, 4.0)),
        ((-1.0, 2.0), (0.5, 2.0)),
    ]
    for x, y in cases:
        x, y = np.array([x[: bit.comparison.columns]]), np.array([y[: bit.comparison.columns]])
        second = -y if bit.comparison.mirrored else y
        law = expected(statistic, x[0], y[0], Fraction(bit.threshold, 1 << 8))
        for fixed in rng.random((3, shared)) < 0.5:
            mine, theirs = (numbers_only(bit, ordered(side)) for side in (x, second))
            left = np.concatenate((np.repeat(mine, len(words), 0), words), axis=1)
            right = np.concatenate(
                (np.repeat(theirs, len(words), 0), np.repeat(fixed[None], len(words), 0)), axis=1
            )
            ones = evaluate(bit.circuit, left, right).sum()
            assert Fraction(int(ones), len(words)) == law


def numbers_only(bit, numbers):
    return bit.bits_of(numbers, lambda size: bytes(size))[:, : 32 * bit.comparison.columns]


def expected(statistic, x, y, flip):
    """P(bit = 1) by hand: the truth flipped with probability p; ties by a fair coin."""
    signs = np.sign(x - y)
    truth = {
        "auc": Fraction(int(signs[0]) + 1, 2),
        "kendall": Fraction(int(np.prod(signs)) + 1, 2),
        "wilcoxon": Fraction(int(x[0] + y[0] > 0)),
        "duplicates": Fraction(int(x[0] == y[0])),
    }[statistic]
    return truth * (1 - flip) + (1 - truth) * flip


def test_the_promise_is_kept_exactly():
    for epsilon in (0.01, 0.3, 1.0, 4.0, 12.0, 30.0):
        for bits in (12, 24, 40, 63):
            bit = NoisyBit("kendall", epsilon, bits)
            ratio = Fraction((1 << bits) - bit.threshold, bit.threshold)
            assert ratio <= Fraction(math.exp(epsilon)) * (1 + Fraction(1, 2**50))
            if bit.threshold > 1:  # one word less would break it
                assert Fraction((1 << bits) - bit.threshold + 1, bit.threshold - 1) > Fraction(
                    math.exp(epsilon)
                ) * (1 - Fraction(1, 2**12))


def test_unbiased_answers_have_the_kernels_mean_and_the_predicted_variance():
    for statistic, (low, high) in (("auc", (0, 1)), ("kendall", (-1, 1))):
        bit = NoisyBit(statistic, 0.7)
        down, up = bit.unbiased(np.array([False, True]))
        mean = bit.flip * down + (1 - bit.flip) * up
        assert mean == pytest.approx(high, abs=1e-12)
        assert bit.flip * up + (1 - bit.flip) * down == pytest.approx(low, abs=1e-12)
        assert bit.answer_variance == pytest.approx(
            bit.flip * down**2 + (1 - bit.flip) * up**2 - mean**2, rel=1e-9
        )


def test_ordered_keeps_the_order_of_single_precision():
    rng = np.random.default_rng(0)
    values = np.concatenate(
        (rng.normal(size=500) * 10.0 ** rng.integers(-40, 38, 500), [0.0, -0.0, 3.4e38, -3.4e38])
    )
    x, y = values[:, None], values[None, :]
    with np.errstate(under="ignore"):
        single_x, single_y = x.astype(np.float32), y.astype(np.float32)
    codes = ordered(values).astype(np.int64)
    assert (
        np.sign(codes[:, None] - codes[None, :])
        == np.sign(single_x.astype(float) - single_y.astype(float))
    ).all()


@pytest.mark.parametrize("bad", [np.nan, np.inf, 1e39])
def test_numbers_that_cannot_be_ordered_are_refused(bad):
    with pytest.raises(ConfigError, match="not a single-precision number"):
        ordered(np.array([1.0, bad]))


@pytest.mark.parametrize(
    ("arguments", "kind", "message"),
    [
        (("entropy", 1.0), ConfigError, "no circuit compares rows for 'entropy'"),
        (("auc", 1.0, 3), ConfigError, "4 to 63 bits"),
        (("auc", 0.0), PrivacyError, "between 1e-09 and 40"),
        (("auc", 1e-8, 16), PrivacyError, "below what 16 bits of noise can show"),
    ],
)
def test_refusals(arguments, kind, message):
    with pytest.raises(kind, match=message):
        NoisyBit(*arguments)
