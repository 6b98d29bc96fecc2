"""Proximal points of public penalties against their definition, by a fine search: walk:ADMM-10."""

from math import inf

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from bruit.algorithms.admm.regularizers import L1, L2, Box, ElasticNet, Free, penalty
from bruit.errors import ConfigError

ALL = [
    Free(),
    L1(0.7),
    L2(0.9),
    ElasticNet(0.4, 1.3),
    Box(-0.5, 1.0),
    Box(-0.2, 0.6, ElasticNet(0.4, 1.3)),
]


@pytest.mark.parametrize("regularizer", ALL, ids=repr)
@pytest.mark.parametrize("gamma", [0.1, 2.0])
def test_prox_minimizes(regularizer, gamma):
    points = np.array([-3.0, -0.8, -0.05, 0.0, 0.3, 1.1, 4.0])
    found = regularizer.prox(points[:, None], gamma)[:, 0]
    low, high = (regularizer.low, regularizer.high) if isinstance(regularizer, Box) else (-10, 10)
    for point, x in zip(points, found, strict=True):

        def total(z, point=point):
            return float(regularizer.value(np.array([z]))) + (z - point) ** 2 / (2 * gamma)

        best = minimize_scalar(
            total, bounds=(low, high), method="bounded", options={"xatol": 1e-10}
        )
        assert total(x) <= best.fun + 1e-9
        assert x == pytest.approx(best.x, abs=1e-4)


def test_worked_values():
    v = np.array([[3.0, -0.5], [0.2, -2.0]])
    np.testing.assert_allclose(
        L1(0.4).prox(v, 0.5), [[2.8, -0.3], [0.0, -1.8]]
    )  # soft threshold at .2
    np.testing.assert_allclose(L2(3.0).prox(v, 0.5), v / 2.5)
    np.testing.assert_allclose(
        ElasticNet(0.4, 3.0).prox(v, 0.5), np.array([[2.8, -0.3], [0.0, -1.8]]) / 2.5
    )
    np.testing.assert_allclose(Box(-1.0, 1.0).prox(v, 0.5), [[1.0, -0.5], [0.2, -1.0]])
    np.testing.assert_allclose(
        ElasticNet(0.4, 3.0).value(v), [0.4 * 3.5 + 1.5 * 9.25, 0.4 * 2.2 + 1.5 * 4.04]
    )
    assert Box(-1.0, 1.0).value(v).tolist() == [inf, inf]
    assert Free().value(v).tolist() == [0.0, 0.0]


def test_the_penalty_of_numbers():
    assert penalty() == Free()
    assert penalty(0.1) == ElasticNet(0.1, 0.0)
    assert penalty(0.1, 0.2, 3.0) == Box(-3.0, 3.0, ElasticNet(0.1, 0.2))
    v = np.array([[3.0, -0.05]])
    np.testing.assert_allclose(penalty(0.1).prox(v, 1.0), L1(0.1).prox(v, 1.0))
    np.testing.assert_allclose(penalty(0.0, 0.1).prox(v, 1.0), L2(0.1).prox(v, 1.0))


@pytest.mark.parametrize(
    ("make", "word"),
    [
        (lambda: L1(-1.0), "weight of L1 must be a number >= 0, found -1.0"),
        (lambda: L2(inf), "weight of L2 .* found inf"),
        (lambda: ElasticNet(0.1, -0.1), "L2 part of an elastic net"),
        (lambda: Box(1.0, 0.0), "low = 1.0 and high = 0.0"),
        (lambda: penalty(bound=-1.0), "low <= high"),
    ],
)
def test_impossible_penalties(make, word):
    with pytest.raises(ConfigError, match=word):
        make()
