"""The mean task."""

import json
from math import inf

import numpy as np
import pytest

from bruit.errors import ConfigError
from bruit.tasks import Mean


def test_three_questions_by_hand():
    task = Mean(np.array([[1.0, 2.0], [3.0, -2.0]]))
    ids, x = np.array([1, 0]), np.array([[0.0, 0.0], [1.0, 1.0]])
    assert (task.peers, task.dim) == (2, 2)
    np.testing.assert_array_equal(task.value(ids), [[3.0, -2.0], [1.0, 2.0]])
    np.testing.assert_array_equal(task.gradient(ids, x), [[-3.0, 2.0], [0.0, -1.0]])
    np.testing.assert_array_equal(
        task.gradient_sampled(ids, x, np.zeros((2, 3))), task.gradient(ids, x)
    )
    np.testing.assert_allclose(task.prox(ids, x, 3.0), [[2.25, -1.5], [1.0, 1.75]])


def test_evaluate_is_the_squared_distance_to_the_true_mean():
    task = Mean(np.array([[1.0, 2.0], [3.0, -2.0]]))
    assert task.evaluate(np.array([[2.0, 0.0], [2.0, 3.0]])) == {"mse": 4.5, "worst": 9.0}
    assert task.references() == {"alone": 5.0, "central": 0.0}


def test_generated_values_are_seeded_and_in_range():
    task = Mean.uniform(1000, 3, seed=5, low=0.0, high=2.0)
    assert task.values.shape == (1000, 3)
    assert task.values.min() >= 0
    assert task.values.max() <= 2
    np.testing.assert_array_equal(
        task.values, Mean.uniform(1000, 3, seed=5, low=0.0, high=2.0).values
    )
    assert not np.array_equal(Mean.normal(5, 1, seed=0).values, Mean.normal(5, 1, seed=1).values)
    facts = json.loads(json.dumps(task.describe()))
    assert facts["data"]["name"] == "uniform in [0, 2], seed 5"
    assert task.constants().lipschitz == inf
    assert task.metric == "mse"


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda: Mean(np.zeros(3)), r"values are \(3,\); give one row of numbers a peer"),
        (lambda: Mean(np.zeros((0, 3))), r"values are \(0, 3\)"),
        (lambda: Mean(np.array([[0.0], [np.nan]])), r"value of peer 1 is nan at coordinate 0"),
        (lambda: Mean.uniform(0, 3), r"0 peers with values of length 3"),
        (
            lambda: Mean.uniform(3).value(np.array([3])),
            r"peer 3 was asked for its value, but peers are 0..2",
        ),
        (
            lambda: Mean.uniform(3).gradient(np.array([0]), np.zeros((1, 2))),
            r"models are \(1, 2\) for 1 peers",
        ),
        (lambda: Mean.uniform(3).prox(np.array([0]), np.zeros((1, 1)), -1.0), r"rho is -1.0"),
        (lambda: Mean.uniform(3).evaluate(np.zeros(3)), r"models are \(3,\)"),
        (
            lambda: Mean.uniform(3).gradient_sampled(np.array([0]), np.zeros((1, 1)), np.zeros(1)),
            r"uniforms are \(1,\)",
        ),
    ],
)
def test_bad_inputs_are_refused(ask, message):
    with pytest.raises(ConfigError, match=message):
        ask()
