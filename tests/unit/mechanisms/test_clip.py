"""Clipping by hand-computed cases; its laws are in tests/laws."""

import numpy as np
import pytest

from bruit.errors import ConfigError
from bruit.mechanisms import clip_rows


def test_rows_outside_are_scaled_and_rows_inside_are_untouched():
    rows = np.array([[3.0, 4.0], [0.3, 0.4], [0.0, 0.0], [-30.0, 40.0]])
    clipped = clip_rows(rows, 1.0)
    np.testing.assert_allclose(clipped[[0, 3]], [[0.6, 0.8], [-0.6, 0.8]], rtol=1e-12)
    assert (clipped[1:3] == rows[1:3]).all()
    np.testing.assert_allclose(clip_rows(rows, 1.0, order=1)[0], [3 / 7, 4 / 7], rtol=1e-12)


def test_the_input_is_not_changed():
    rows = np.array([[3.0, 4.0]])
    clip_rows(rows, 1.0)
    clip_rows(rows, 100.0)[0, 0] = 7.0
    assert (rows == [[3.0, 4.0]]).all()


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("size", [1e300, 1.7e308, 1e-310, 5e-324, 1e160, 1e-200])
def test_extreme_sizes_neither_overflow_nor_vanish(size, order):
    rows = np.array([[size, -size, 0.0]])
    clipped = clip_rows(rows, 1.0, order)
    if size < 1:
        assert (clipped == rows).all()
    else:
        np.testing.assert_allclose(
            clipped, [[2.0 ** (-1 / order), -(2.0 ** (-1 / order)), 0.0]], rtol=1e-12
        )


def test_a_tiny_bound_keeps_directions():
    clipped = clip_rows(np.array([[3e300, -4e300], [3e-290, 4e-290]]), 1e-300)
    np.testing.assert_allclose(clipped / 1e-300, [[0.6, -0.8], [0.6, 0.8]], rtol=1e-12)


def test_no_rows_and_no_columns():
    assert clip_rows(np.empty((0, 3)), 1.0).shape == (0, 3)
    assert clip_rows(np.empty((3, 0)), 1.0).shape == (3, 0)


@pytest.mark.parametrize(
    ("values", "bound", "order", "message"),
    [
        (np.ones((1, 2)), 0.0, 2, "clip bound must be a positive number, found 0.0"),
        (np.ones((1, 2)), -1.0, 2, "clip bound must be a positive number"),
        (np.ones((1, 2)), np.nan, 2, "clip bound must be a positive number"),
        (np.ones((1, 2)), 1.0, 3, "L1 or L2 norm, found order 3"),
        (np.ones(2), 1.0, 2, r"must be a matrix \(peers, dimension\), found shape \(2,\)"),
    ],
)
def test_bad_arguments_are_refused(values, bound, order, message):
    with pytest.raises(ConfigError, match=message):
        clip_rows(values, bound, order)
