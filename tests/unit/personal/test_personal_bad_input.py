"""What users get wrong with personal models: a clear error, or the fallback that the docstrings
promise."""

import math
from dataclasses import replace

import numpy as np
import pytest

import bruit as br
from bruit.errors import ConfigError, PrivacyError
from bruit.mechanisms.record_noise import RecordNoise
from bruit.personal import (
    Joint,
    Noise,
    NoisePlan,
    allocate,
    alternate,
    bounded_records,
    confidences,
    gradient_noise,
    loss_noise,
    model_noise,
)
from bruit.tasks import Boosted, Logistic, Mean, Personal, Records

OWNERS = np.array([0, 0, 1, 1, 2, 2])
ROWS = np.array([[1.0, 0], [0, 1], [1, 1], [-1, 0], [0, -1], [1, -1]])
LABELS = np.array([1.0, -1, 1, -1, 1, -1])


def personal(ridge=0.5):
    return Personal(Logistic(bounded_records(ROWS, LABELS, OWNERS)), np.full(3, ridge))


def boosted(answers):
    return Boosted.of(ROWS, LABELS, OWNERS, lambda rows: answers)


BAD = {
    "a peer without records": (
        lambda: Records.of(ROWS, LABELS, OWNERS * 2),
        "peer 1 has no records",
    ),
    "a graph with more peers": (
        lambda: br.run(br.Personalized(), "ring:4", personal(), steps=1),
        "4 peers .* has 3",
    ),
    "no peer with a record": (
        lambda: confidences(np.zeros(3, np.int64)),
        "at least one of them positive",
    ),
    "negative confidence": (
        lambda: Joint(np.zeros((2, 2)), np.array([1.0, -0.5])),
        "confidence of peer 1 is -0.5",
    ),
    "confidence above one": (
        lambda: Joint(np.zeros((2, 2)), np.array([1.5, 1.0])),
        "confidence of peer 0 is 1.5",
    ),
    "confidence nan": (
        lambda: Joint(np.zeros((2, 2)), np.array([np.nan, 1.0])),
        "confidence of peer 0 is nan",
    ),
    "negative weights": (lambda: Joint(-np.ones((2, 2)), np.ones(2)), "not negative"),
    "asymmetric weights": (
        lambda: Joint(np.triu(np.ones((2, 2))), np.ones(2)),
        "similarity is mutual",
    ),
    "negative mixing": (lambda: br.graphs.from_matrix([[2, -1], [-1, 2]]), "negative weight -1"),
    "predictors of one row": (lambda: boosted(np.ones(6)), r"shape \(6,\) for 6 records"),
    "too few answers": (lambda: boosted(np.ones((5, 3))), r"shape \(5, 3\) for 6 records"),
    "no predictors": (lambda: boosted(np.ones((6, 0))), r"shape \(6, 0\) for 6 records"),
    "predictors with words": (lambda: boosted([["yes"]] * 6), "no table of numbers"),
    "predictors with nan": (lambda: boosted(np.full((6, 2), np.nan)), "no finite number at row 0"),
    "budget zero": (lambda: NoisePlan.of(personal(), 0.0, 3), "positive epsilon"),
    "budget nan": (lambda: NoisePlan.of(personal(), math.nan, 3), "positive epsilon"),
    "budget infinite": (lambda: allocate(math.inf, np.array([0]), 0.5, 1), "positive"),
    "fewer than no updates": (lambda: br.Personalized(updates=-1), "updates >= 0"),
}


@pytest.mark.parametrize(("wrong", "message"), BAD.values(), ids=BAD)
def test_it_says_what_is_wrong(wrong, message):
    with pytest.raises(ConfigError, match=message):
        wrong()


def test_private_boosting_losses_need_bounded_predictors():
    """perso:PERSO-14: the sensitivity of the boosting loss is that of predictions in [-1, 1]."""
    with pytest.raises(PrivacyError, match=r"base predictions as large as 3"):
        alternate(
            br.Boosting(1.0, 2.0),
            Boosted(boosted(np.full((6, 2), 3.0))),
            br.graphs.Collaboration(),
            rounds=1,
            steps=1,
            wakes=1,
            noise=Noise(losses=RecordNoise((1.0,) * 3, 1, noise_multiplier=1.0)),
        )


def test_a_peer_without_updates_reads_nothing_and_costs_nothing():
    """perso:PERSO-9: a budget of zero reads is allowed; that peer repeats the model it began
    with."""
    noise = br.Gaussian(clip=1.0, sigma=1.0)
    done = br.run(
        br.Personalized(updates=(0, 2, 2)), "ring:3", personal(), privacy=noise, steps=10, seed=1
    )
    assert done.facts().releases().tolist() == [0, 2, 2]
    assert done.epsilon(of=0) == 0
    assert (done.estimates[0] == 0).all()


def test_a_peer_of_confidence_zero_takes_the_mean_of_its_neighbors():
    """perso:PERSO-1 with c_0 = 0: x_0 = sum_v (w_0v / d_0) x_v, and its data is never read."""
    algorithm = br.Personalized(confidences=(0.0, 1.0, 1.0), smoothness=1.0)
    done = br.run(
        algorithm, "complete:3", Mean(np.array([[50.0], [1.0], [3.0]])), steps=200, seed=0
    )
    assert done.facts().releases().tolist()[0] == 0
    assert done.estimates[0] == pytest.approx(done.estimates[1:].mean(axis=0), abs=1e-6)


def test_equal_labels_everywhere_give_a_finite_model():
    task = Personal(Logistic(bounded_records(ROWS, np.ones(6), OWNERS)), np.full(3, 0.1))
    done = br.run(br.Personalized(smoothness=0.35), "complete:3", task, steps=20, evaluate_every=0)
    assert np.isfinite(done.estimates).all()


@pytest.mark.parametrize(
    ("noise", "algorithm", "message"),
    [
        (gradient_noise, br.Averaging(), "says nothing of values"),
        (model_noise, br.GossipSGD(), "says nothing of gradients"),
        (gradient_noise, br.FederatedADMM(), "says nothing of a proximal step"),
        (
            lambda task: loss_noise(task, 2.0),
            br.GossipSGD(),
            "noise was measured for rows of 1 numbers",
        ),
    ],
)
def test_noise_measured_for_one_answer_protects_no_other(noise, algorithm, message):
    """A gradient's noise on fitted models, a model's on gradients, either on proximal steps: no
    epsilon is true."""
    with pytest.raises(br.PrivacyError, match=message):
        br.run(
            algorithm,
            "complete:3",
            personal(),
            privacy=replace(noise(personal()), noise_multiplier=1.0),
            steps=3,
        )


def test_noise_of_two_levels_does_not_add_up():
    """A loss hidden for one record is not hidden for all of a peer's: no user-level epsilon may
    count it."""
    with pytest.raises(PrivacyError, match="different levels"):
        Noise(
            models=br.Gaussian(clip=1.0, sigma=1.0), losses=loss_noise(personal(), 2.0), ceiling=2.0
        )
