"""Sums of single records' clipped gradients in whole grains (silo:SILO-1), against exact integers.

A row of integers is never longer than unit * clip, and is a function of one record and the model:
nothing about it changes when other records are replaced, added, removed or moved."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bruit.errors import ConfigError
from bruit.tasks import Logistic, Mean, Ridge, Softmax, Statistic
from bruit.tasks.record_gradients import summed, summed_outer
from bruit.tasks.records import Records

KINDS = {"logistic": Logistic, "ridge": Ridge, "softmax": Softmax}
FLOATS = st.floats(width=64)  # of all sizes, nan and infinite ones too


def integer_norm(row):
    """|row|**2, exactly."""
    return sum(int(number) ** 2 for number in row)


def fits(row, clip, unit):
    return integer_norm(row) <= (Fraction(clip) * Fraction(unit)) ** 2


@settings(max_examples=300, deadline=None)
@given(
    rows=st.lists(FLOATS, min_size=1, max_size=9),
    clip=st.floats(1e-6, 1e6),
    exponent=st.integers(-10, 30),
)
def test_a_row_of_integers_is_never_longer_than_the_clip(rows, clip, exponent):
    unit = 2.0**exponent / clip
    one = np.array(rows)[None, None]
    with np.errstate(all="ignore"):
        found = summed(one, np.ones((1, 1), bool), clip, unit)[0]
    assert fits(found, clip, unit)


@settings(max_examples=500, deadline=None)
@given(
    slopes=st.lists(FLOATS, min_size=1, max_size=4),
    features=st.lists(FLOATS, min_size=1, max_size=6),
    clip=st.floats(1e-6, 1e6),
    exponent=st.integers(-5, 50),
)
def test_an_outer_product_is_never_longer_than_the_clip(slopes, features, clip, exponent):
    unit = 2.0**exponent / clip
    with np.errstate(all="ignore"):
        found = summed_outer(
            np.array(slopes)[None, None],
            np.array(features)[None, None],
            np.ones((1, 1), bool),
            clip,
            unit,
        )[0]
    assert fits(found, clip, unit)


def test_squares_that_underflow_do_not_lengthen_a_row():
    """1000 columns whose squares are 0 as floats, beside one whose square is not: a norm from
    squares alone would be fifteen times too short."""
    features = np.array([[[*[1.5e-162] * 1000, 3e-162]]])
    clip, unit = 1e-9, 2**40 / 1e-9
    for slope in (1e152, 1e153, 1e154):
        slopes = np.full((1, 1, 1), slope)
        found = summed_outer(slopes, features, np.ones((1, 1), bool), clip, unit)
        assert fits(found[0], clip, unit)


def test_quotients_that_underflow_do_not_lengthen_a_row():
    """clip / norm below 2^-1022 has few digits left."""
    for size in np.logspace(150, 154, 37):
        slope = np.full((1, 1, 1), size)
        features = np.full((1, 1, 1), size)
        found = summed_outer(slope, features, np.ones((1, 1), bool), 1e-6, 2**45 / 1e-6)
        assert fits(found[0], 1e-6, 2**45 / 1e-6)


def test_the_longest_rows_are_clipped_by_next_to_nothing():
    """The margin for roundings costs fewer than one part in 10^12, and a row inside is cut to
    whole grains only."""
    rng = np.random.default_rng(0)
    for width in (1, 3, 40):
        rows = rng.normal(size=(200, 1, width))
        unit = 2.0**45
        for row in rows:
            found = summed(row[None], np.ones((1, 1), bool), 0.5, unit)[0]
            norm = np.linalg.norm(row)
            if norm > 0.5:
                size = math.sqrt(integer_norm(found)) / unit
                assert 0.5 * (1 - 1e-12) - width / unit <= size <= 0.5
            else:
                assert np.array_equal(found, np.trunc(row[0] * unit).astype(np.int64))


def test_what_is_not_finite_counts_as_nothing():
    rows = np.array([[[np.nan, 1.0], [np.inf, 0.0], [-np.inf, np.nan], [1e200, 1e200], [0.25, 0]]])
    with np.errstate(all="ignore"):
        found = summed(rows, np.ones((1, 5), bool), 1.0, 2.0**20)
    assert found.tolist() == [[2**18, 0]]
    slopes = np.array([[[np.nan], [np.inf], [1.0], [0.0], [0.25]]])
    features = np.array([[[1.0], [1.0], [np.inf], [np.inf], [1.0]]])
    found = summed_outer(slopes, features, np.ones((1, 5), bool), 1.0, 2.0**20)
    assert found.tolist() == [[2**18]]


def records_of(kind, sizes, columns, seed=0, scale=1.0):
    """Raw rows of so many records each: features, targets, owners."""
    rng = np.random.default_rng(seed)
    many = sum(sizes)
    features = scale * rng.normal(size=(many, columns))
    targets = {
        "logistic": np.where(rng.random(many) < 0.5, -1.0, 1.0),
        "ridge": rng.normal(size=many),
        "softmax": rng.integers(0, 3, many).astype(float),
    }[kind]
    return features, targets, np.repeat(np.arange(len(sizes)), sizes)


def task_of(kind, features, targets, owners):
    classes = 3 if kind == "softmax" else None
    return KINDS[kind](Records.of(features, targets, owners, classes=classes), l2=0.5)


def integers(task, ids, x, coins=None, rate=1.0, clip=0.3, unit=2.0**34):
    return task.clipped_sum(np.asarray(ids), x, coins, rate, clip, unit)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("columns", [1, 3, 8, 33])
@pytest.mark.parametrize("sizes", [(1,), (2, 7), (5, 64, 3), (130, 1, 17)])
def test_a_sum_is_that_of_records_taken_one_by_one(kind, columns, sizes):
    """So a record's integers depend on it and the model alone, whoever is beside it, wherever it
    stands and however many there are."""
    features, targets, owners = records_of(kind, sizes, columns)
    task = task_of(kind, features, targets, owners)
    x = np.random.default_rng(1).normal(size=(len(sizes), task.dim))
    together = integers(task, np.arange(len(sizes)), x)
    alone = np.zeros_like(together)
    for row in range(len(owners)):
        peer = owners[row]
        single = task_of(kind, features[row : row + 1], targets[row : row + 1], np.zeros(1, int))
        found = integers(single, [0], x[peer : peer + 1])[0]
        assert fits(found, 0.3, 2.0**34)
        alone[peer] += found
    assert np.array_equal(together, alone)


@pytest.mark.parametrize("kind", KINDS)
def test_records_may_be_replaced_added_removed_and_moved(kind):
    """The sum moves by the integers of what was replaced, added or removed, and by no other."""
    features, targets, owners = records_of(kind, (37,), 5, seed=2)
    task = task_of(kind, features, targets, owners)
    x = np.random.default_rng(3).normal(size=(1, task.dim))
    whole = integers(task, [0], x)[0]
    rng = np.random.default_rng(4)
    limit = Fraction(0.3) * 2**34
    for place in rng.choice(37, 6, replace=False):
        one = integers(
            task_of(kind, features[[place]], targets[[place]], np.zeros(1, int)), [0], x
        )[0]
        kept = np.delete(np.arange(37), place)
        without = integers(task_of(kind, features[kept], targets[kept], owners[kept]), [0], x)[0]
        assert np.array_equal(whole - without, one)
        assert integer_norm(whole - without) <= limit**2
        order = np.r_[place, kept[::-1]]
        moved = integers(task_of(kind, features[order], targets[order], owners), [0], x)[0]
        assert np.array_equal(whole, moved)
        other = features.copy()
        other[place] = -1e6 * other[place]
        replaced = integers(task_of(kind, other, targets, owners), [0], x)[0]
        assert integer_norm(whole - replaced) <= (2 * limit) ** 2


def test_one_record_can_move_the_sum_by_twice_the_clip():
    """The bound is reached: opposite records far outside of the clip."""
    values = [Mean(np.array([[far]])) for far in (-1e9, 1e9)]
    left, right = (integers(task, [0], np.zeros((1, 1)))[0, 0] for task in values)
    assert abs(int(right) - int(left)) > 2 * 0.3 * 2**34 * (1 - 1e-12) - 2
    assert abs(int(right) - int(left)) <= 2 * Fraction(0.3) * 2**34


def test_coins_say_who_is_in_the_batch():
    features, targets, owners = records_of("logistic", (6, 3), 4)
    task = task_of("logistic", features, targets, owners)
    x = np.ones((2, 4))
    coins = np.full((2, 6), 0.9)
    assert not integers(task, [0, 1], x, coins, 0.5).any()  # nobody: an empty batch is a zero
    coins[0, 2] = coins[1, 1] = 0.1
    found = integers(task, [0, 1], x, coins, 0.5)
    for peer, row in ((0, 2), (1, 7)):
        single = task_of("logistic", features[[row]], targets[[row]], np.zeros(1, int))
        assert np.array_equal(found[peer], integers(single, [0], x[:1])[0])
    coins[1, 3:] = 0.0  # places where peer 1 holds no record
    assert np.array_equal(integers(task, [0, 1], x, coins, 0.5), found)


def test_a_peer_with_one_class_only_and_one_record():
    task = task_of("softmax", np.ones((1, 2)), np.zeros(1), np.zeros(1, int))
    found = integers(task, [0], np.zeros((1, task.dim)))
    assert found.shape == (1, 6)
    assert fits(found[0], 0.3, 2.0**34)


@pytest.mark.parametrize("kind", ["logistic", "ridge", "softmax"])
def test_a_model_that_overflows_is_no_abort(kind):
    """Scores, slopes or gradients that are not finite make a record count as 0."""
    features, targets, owners = records_of(kind, (4,), 3, scale=1e200)
    task = task_of(kind, features, targets, owners)
    for size in (1e200, np.inf, np.nan):
        with np.errstate(all="ignore"):
            found = integers(task, [0], np.full((1, task.dim), size))
        assert integer_norm(found[0]) <= (4 * Fraction(0.3) * 2**34) ** 2


def test_regularizers_are_told_apart():
    task = task_of("ridge", *records_of("ridge", (4,), 3))
    x = np.arange(3.0)[None]
    assert np.array_equal(task.penalty_gradient(x), 0.5 * x)
    whole = task.gradient(np.array([0]), x)
    wide = integers(task, [0], x, clip=1e6, unit=2.0**20) / 2.0**20 / 4
    assert wide + task.penalty_gradient(x) == pytest.approx(whole, abs=1e-5)


def test_tasks_without_gradients_of_records_refuse():
    task = Statistic.of(np.arange(3.0)[:, None], "gini")
    with pytest.raises(ConfigError, match='use level = "user"'):
        task.clipped_sum(np.arange(3), np.zeros((3, 1)), None, 1.0, 1.0, 1.0)
    with pytest.raises(ConfigError, match='use level = "user"'):
        task.record_counts()
