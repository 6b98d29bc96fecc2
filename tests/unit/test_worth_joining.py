"""Whether taking part was worth it: computed from the references, whichever way the metric goes."""

import math

import pytest

import bruit as br
from bruit.runs.verdict import verdict
from bruit.show.summary import advice
from bruit.testing import small_task


@pytest.mark.parametrize(
    ("metric", "together", "alone", "worse", "gain"),
    [
        ("accuracy", 0.9, 0.8, False, 0.1),
        ("accuracy", 0.7, 0.8, True, -0.1),
        ("rmse", 0.7, 0.8, False, 0.1),
        ("mse", 0.9, 0.8, True, -0.1),
        ("auc", 0.8, 0.8, False, 0.0),
    ],
)
def test_the_gain_is_positive_where_together_is_better(metric, together, alone, worse, gain):
    found = verdict(metric, together, {"alone": alone, "central": 1.0})
    assert found.worse is worse
    assert found.gain == pytest.approx(gain)
    assert found.describe()["in_words"].startswith(
        "worse" if worse else ("better" if gain else "as good")
    )


def test_a_model_that_is_no_number_is_worse():
    assert verdict("accuracy", math.nan, {"alone": 0.5}).worse


def test_nothing_is_said_where_nobody_knows():
    assert verdict("accuracy", 0.9, {}) is None
    assert verdict("contraction", 0.9, {"alone": 0.5}) is None


def test_advice_names_what_there_is_to_change():
    """A personalized model has no rate, and whoever gossips on a butterfly needs no advice to do
    so."""
    knobs = {
        br.Personalized(): "another coupling",
        br.GossipSGD(): "another rate",
        br.Averaging(): "another algorithm",
    }
    for algorithm, knob in knobs.items():
        assert knob in advice(br.run(algorithm, "ring:6", small_task(6), steps=2))[0]
    for graph, offered in (("butterfly:8", False), ("ring:8", True)):
        noisy = br.run(
            br.Averaging(), graph, small_task(8), privacy=br.Gaussian(clip=1.0, sigma=2.0), steps=2
        )
        assert ("a butterfly of exchanges" in noisy.epsilon(of=1, seen_by=0).why()) is offered
