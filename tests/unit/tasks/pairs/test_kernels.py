"""Kernels: values by hand, bounds, and refusals of what no guarantee could cover."""

import numpy as np
import pytest

from bruit.errors import ConfigError
from bruit.tasks.pairs import kernels
from bruit.tasks.pairs.kernels import KERNELS, Kernel, as_points, check_kernel


def pair(kernel, x, y):
    return float(
        kernel(np.atleast_1d(np.array(x, dtype=float)), np.atleast_1d(np.array(y, dtype=float)))
    )


@pytest.mark.parametrize(
    ("name", "x", "y", "value"),
    [
        ("variance", 1, 4, 4.5),
        ("gini", 1, 4, 3.0),
        ("wilcoxon", -1, 2, 1.0),
        ("wilcoxon", -2, 1, 0.0),
        ("kendall", (1, 5), (2, 7), 1.0),
        ("kendall", (1, 5), (2, 3), -1.0),
        ("kendall", (1, 5), (1, 3), 0.0),
        ("auc", (0.9, 1), (0.1, 0), 1.0),
        ("auc", (0.1, 1), (0.9, 0), 0.0),
        ("auc", (0.5, 1), (0.5, 0), 0.0),
        ("scatter", (0, 0, 7), (3, 4, 7), 5.0),
        ("scatter", (0, 0, 7), (3, 4, 8), 0.0),
        ("duplicates", (1, 2), (1, 2), 1.0),
        ("duplicates", (1, 2), (1, 3), 0.0),
    ],
)
def test_values_by_hand(name, x, y, value):
    """perso:PAIR-1: the kernels to ship."""
    assert pair(KERNELS[name](), x, y) == value
    assert pair(KERNELS[name](), y, x) == value


@pytest.mark.parametrize("name", KERNELS)
def test_every_kernel_passes_its_own_check(name):
    points = (
        np.random.default_rng(0).integers(0, 4, (50, KERNELS[name]().columns or 3)).astype(float)
    )
    check_kernel(KERNELS[name](), points)


def test_a_kernel_that_is_not_symmetric_is_refused():
    bad = Kernel("first", lambda x, y: x[..., 0] + 0 * y[..., 0])
    with pytest.raises(
        ConfigError,
        match=r"first is not symmetric: h\(x, y\) = .* use \(h\(x, y\) \+ h\(y, x\)\) / 2",
    ):
        check_kernel(bad, np.arange(4.0))


def test_a_kernel_that_is_not_vectorized_is_refused():
    with pytest.raises(ConfigError, match=r"gave shape \(\) for blocks of 4 x 4 pairs"):
        check_kernel(
            Kernel("whole", lambda x, y: np.float64(np.sum(x) + np.sum(y))), np.arange(4.0)
        )


def test_a_kernel_outside_its_bounds_is_refused():
    with pytest.raises(
        ConfigError, match=r"takes values 1..3 outside its bounds 0..1; declare wider ones"
    ):
        check_kernel(
            Kernel("gap", lambda x, y: np.abs(x - y)[..., 0], low=0, high=1), np.arange(4.0)
        )


def test_a_kernel_that_is_not_finite_is_refused():
    with pytest.raises(ConfigError, match="not finite"):
        check_kernel(Kernel("bad", lambda x, y: (x + y)[..., 0] * np.inf), np.arange(1.0, 4.0))


def test_the_span_needs_bounds():
    assert kernels.kendall().span == 2.0
    with pytest.raises(ConfigError, match="declares no bounds, but a guarantee needs them"):
        _ = kernels.gini().span


@pytest.mark.parametrize(
    ("points", "words"),
    [
        (np.array([1.0]), "at least two points"),
        (np.zeros((3, 2)), "takes points of 1 numbers, found 2"),
        (np.array([1.0, np.nan]), r"point 1 is \[nan\]"),
    ],
)
def test_bad_points(points, words):
    with pytest.raises(ConfigError, match=words):
        as_points(points, kernels.gini())
