"""Whether taking part was worth it: computed from the references, whichever way the metric goes."""

import math

import pytest

from bruit.verdict import verdict


@pytest.mark.parametrize(("metric", "together", "alone", "worse", "gain"), [
    ("accuracy", 0.9, 0.8, False, 0.1), ("accuracy", 0.7, 0.8, True, -0.1), ("rmse", 0.7, 0.8, False, 0.1),
    ("mse", 0.9, 0.8, True, -0.1), ("auc", 0.8, 0.8, False, 0.0),
])  # fmt: skip
def test_the_gain_is_positive_where_together_is_better(metric, together, alone, worse, gain):
    found = verdict(metric, together, {"alone": alone, "central": 1.0})
    assert found.worse is worse
    assert found.gain == pytest.approx(gain)
    assert found.describe()["in_words"].startswith("worse" if worse else ("better" if gain else "as good"))


def test_a_model_that_is_no_number_is_worse():
    assert verdict("accuracy", math.nan, {"alone": 0.5}).worse


def test_nothing_is_said_where_nobody_knows():
    assert verdict("accuracy", 0.9, {}) is None
    assert verdict("contraction", 0.9, {"alone": 0.5}) is None
