"""Models judged on their peers' own test records: by hand, and the references beside them."""

import numpy as np
import pytest

from bruit.errors import ConfigError
from bruit.tasks import Logistic, Records, Ridge, Softmax

OWNERS = np.array([0, 0, 1, 1, 1, 1])
X = np.array([[1.0], [-1.0], [1.0], [1.0], [-1.0], [2.0]])
Y = np.array([1.0, 1.0, 1.0, 1.0, -1.0, -1.0])


@pytest.fixture
def task():
    test = Records.of(X, Y, OWNERS)
    return Logistic(Records.of(X, Y, OWNERS), judged=test)


def test_scores_by_hand(task):
    """Model 1 is right on 1 of 2 and 3 of 4 records, model -1 on 1 of 2 and 1 of 4."""
    found = task.evaluate(np.array([[1.0], [-1.0]]))
    assert found["accuracy"] == pytest.approx((1 / 2 + 1 / 4) / 2)
    assert found["worst"] == 1 / 4
    assert found["everybody"] == pytest.approx((1 / 2 + 3 / 4 + 1 / 2 + 1 / 4) / 4)
    one = task.evaluate(np.array([[1.0]]))
    assert one["accuracy"] == one["everybody"] == pytest.approx((1 / 2 + 3 / 4) / 2)
    assert task.judge(np.array([[1.0], [-1.0]]), 1) == (1 / 4, False)
    with pytest.raises(ConfigError, match="give one row a peer"):
        task.evaluate(np.zeros((3, 1)))


def test_one_answer_for_all(task):
    """Always yes: all of peer 0, half of peer 1."""
    assert task.references()["one_answer"] == pytest.approx((1 + 1 / 2) / 2)
    three = Records.of(X, [0, 0, 1, 2, 2, 2], OWNERS, classes=3)
    assert Softmax(three, judged=three).references()["one_answer"] == pytest.approx(1 / 2)
    flat = Records.of(X, np.full(6, 2.0), OWNERS)
    assert Ridge(flat, judged=flat).references()["one_answer"] == 2.0


def test_records_for_judging_are_not_learned_from():
    task = Logistic.load("breast_cancer", peers=5, test=0.0, standardize="none", own_test=0.25)
    assert task.judged is not None
    assert int(task.records.sizes.sum() + task.judged.sizes.sum()) == 569
    assert task.describe()["judged_on"] == "own test records"
    other = Logistic.load(
        "breast_cancer", peers=5, test=0.0, standardize="none", own_test=0.25, seed=1
    )
    assert other.judged is not None
    assert other.judged.together().features.sum() != task.judged.together().features.sum()
    with pytest.raises(ConfigError, match="test records are of 2 peers"):
        Logistic(task.records, judged=Records.of(X, Y, OWNERS))
