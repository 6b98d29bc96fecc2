"""Proximal steps against scipy's minimizer and the worked numbers of walk:ADMM-10."""

import numpy as np
import pytest
from scipy.optimize import minimize

from bruit.errors import ConfigError
from bruit.tasks import Logistic, Records, Ridge, Softmax
from bruit.tasks.newton import minimize as newton
from tests.unit.tasks.task_samples import PEERS, TASKS, make_task, objective

ONE = np.zeros(1, dtype=np.int64)


def test_worked_numbers_of_the_specification():
    """walk:ADMM-10 examples: logistic and Huber, one record each."""
    one = Records.of(np.array([[0.6, 0.8]]), np.array([1.0]), ONE)
    np.testing.assert_allclose(
        Logistic(one).prox(ONE, np.array([[0.2, -0.4]]), 0.5)[0],
        [0.346667154, -0.204443794],
        atol=1e-9,
    )
    huber = Ridge(one, derivative_clip=0.5)
    np.testing.assert_allclose(
        huber.prox(ONE, np.array([[3.0, 1.0]]), 2.0)[0], [2.4, 0.2], atol=1e-9
    )
    np.testing.assert_allclose(
        huber.prox(ONE, np.array([[1.0, 1.0]]), 2.0)[0], [0.84, 0.786666667], atol=1e-9
    )


def test_ridge_of_one_record_is_the_closed_form():
    """walk:ADMM-10: w - gamma a (a.w - b) / (1 + gamma ||a||^2)."""
    a, b, w, gamma = np.array([1.0, -2.0, 0.5]), 0.7, np.array([0.3, 0.1, -1.0]), 1.7
    task = Ridge(Records.of(a[None], np.array([b]), ONE))
    expected = w - gamma * a * (a @ w - b) / (1 + gamma * a @ a)
    np.testing.assert_allclose(task.prox(ONE, w[None], gamma)[0], expected, atol=1e-14)


@pytest.mark.parametrize(("kind", "clip", "l2"), TASKS)
@pytest.mark.parametrize("rho", [0.05, 3.0])
def test_prox_minimizes_as_scipy_does(kind, clip, l2, rho):
    task = make_task(kind, clip, l2)
    x = 2 * np.random.default_rng(1).normal(size=(PEERS, task.dim))
    got = task.prox(np.arange(PEERS), x, rho)
    for peer in (0, 3):

        def total(z, peer=peer):
            return objective(task, peer, z) + ((z - x[peer]) ** 2).sum() / (2 * rho)

        best = minimize(total, x[peer], method="BFGS", options={"gtol": 1e-7})
        np.testing.assert_allclose(got[peer], best.x, atol=2e-4)
        assert total(got[peer]) <= best.fun + 1e-12


@pytest.mark.parametrize(("kind", "clip", "l2"), TASKS)
@pytest.mark.parametrize("rho", [1e-6, 0.1, 10.0, 1e4])
@pytest.mark.parametrize("rows", ["unit", "none"])
def test_prox_reaches_its_stated_tolerance(kind, clip, l2, rho, rows):
    """Optimality: gradient f(z) + (z - x)/rho has norm at most 1e-10 max(1, a max(1, ||x||)), a = l2 + 1/rho."""
    task = make_task(kind, clip, l2, rows=rows)
    x = 5 * np.random.default_rng(2).normal(size=(PEERS, task.dim))
    z = task.prox(np.arange(PEERS), x, rho)
    left = np.linalg.norm(task.gradient(np.arange(PEERS), z) + (z - x) / rho, axis=1)
    allowed = 1e-10 * np.maximum(1, (l2 + 1 / rho) * np.maximum(1, np.linalg.norm(x, axis=1)))
    assert (left <= 1.1 * allowed).all()


@pytest.mark.parametrize(("kind", "clip", "l2"), TASKS)
def test_prox_is_firmly_non_expansive(kind, clip, l2):
    """A proximal operator of a convex function satisfies ||Px - Py||^2 <= (Px - Py).(x - y)."""
    task = make_task(kind, clip, l2)
    rng = np.random.default_rng(3)
    x, y = 4 * rng.normal(size=(2, PEERS, task.dim))
    p, q = task.prox(np.arange(PEERS), x, 2.0), task.prox(np.arange(PEERS), y, 2.0)
    assert (((p - q) ** 2).sum(axis=1) <= ((p - q) * (x - y)).sum(axis=1) + 1e-8).all()


def test_ridge_solves_both_systems_alike():
    """Few records (records system) and many (features system), against numpy's least squares."""
    rng = np.random.default_rng(4)
    for records, columns in ((3, 8), (30, 4)):
        features, targets = rng.normal(size=(records, columns)), rng.normal(size=records)
        task = Ridge(Records.of(features, targets, np.zeros(records, dtype=np.int64)), l2=0.3)
        x, rho = rng.normal(size=(1, columns)), 0.8
        eye = np.eye(columns)
        stacked = np.vstack([features / np.sqrt(records), np.sqrt(0.3) * eye, eye / np.sqrt(rho)])
        right = np.concatenate([targets / np.sqrt(records), np.zeros(columns), x[0] / np.sqrt(rho)])
        best = np.linalg.lstsq(stacked, right, rcond=None)[0]
        np.testing.assert_allclose(task.prox(ONE, x, rho)[0], best, atol=1e-12)


def test_an_unreachable_accuracy_is_said():
    task = make_task(Softmax, None, 0.0)
    part = next(task.records.parts(np.arange(2), task.dim))
    with pytest.raises(
        ConfigError, match=r"row 0 of the batch did not reach gradient norm .* in 200 Newton steps"
    ):
        newton(task.loss, part, np.ones((2, 3, 5)), np.ones(2), tolerance=0.0)
