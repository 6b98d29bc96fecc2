"""Membership: exposed without noise, hidden with it, and never better than what differential
privacy allows."""

import math

import numpy as np
import pytest

from bruit.adversary.attacks.membership import Membership, advantage, membership
from bruit.algorithms.gossip.gossip_sgd import GossipSGD
from bruit.algorithms.tokens.walk_sgd import WalkSGD
from bruit.errors import ConfigError
from bruit.graphs import graph
from bruit.mechanisms import Gaussian
from bruit.randomness import Replay
from bruit.runs.run import run
from bruit.tasks import Logistic, Records

PEERS, EACH, DIM = 4, 12, 60


def world(seed=0):
    """Labels at random: only memory can tell a member."""
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(PEERS * EACH, DIM))
    features /= np.linalg.norm(features, axis=1, keepdims=True)
    return features, np.where(rng.random(len(features)) < 0.5, 1.0, -1.0)


def learner(algorithm, where, steps, noise):
    features, labels = world()
    owners = np.repeat(np.arange(PEERS), EACH)

    def learn(inside, seed):
        chosen = inside.copy()
        chosen[::EACH] = True  # every peer keeps a record that everybody knows
        records = Records.of(features[chosen], labels[chosen], owners[chosen], rows="unit")
        task = Logistic(records)
        return run(
            algorithm, where, task, privacy=noise, steps=steps, seed=seed, evaluate_every=0
        ).estimates

    def margin(models):
        return labels * (features @ models.mean(axis=0))

    return learn, margin


@pytest.mark.parametrize(
    ("algorithm", "steps"), [(GossipSGD(rate=4.0), 40), (WalkSGD(rate=1.0), 200)]
)
def test_without_noise_members_are_found(algorithm, steps):
    learn, margin = learner(algorithm, graph("complete:4"), steps, None)
    truth = Replay(9).words("truth", np.arange(1), 0, 0, PEERS * EACH)[0] & np.uint64(1) > 0
    truth[::EACH] = True
    found = membership(learn(truth, 77), learn, margin, PEERS * EACH, shadows=24)
    private = np.arange(PEERS * EACH) % EACH != 0
    score = Membership(found.odds[private]).score(truth[private])
    assert score.auc > 0.9
    assert score.accuracy > 0.75


def test_noise_hides_members():
    """sigma = 20 on gradients of norm 1: 44 records, AUC within 0.5 +- 0.4 (5 sd)."""
    learn, margin = learner(
        GossipSGD(rate=4.0), graph("complete:4"), 40, Gaussian(clip=1.0, sigma=20.0)
    )
    truth = Replay(9).words("truth", np.arange(1), 0, 0, PEERS * EACH)[0] & np.uint64(1) > 0
    found = membership(learn(truth, 77), learn, margin, PEERS * EACH, shadows=24)
    assert abs(found.score(truth).auc - 0.5) < 0.4


def test_odds_of_known_normal_laws():
    """A margin N(1, 1) inside and N(-1, 1) outside has log-odds 2 t; 4000 shadows fit it to a few
    percent."""
    rng = np.random.default_rng(0)

    def learn(inside, seed):
        return (np.where(inside, 1.0, -1.0) + rng.normal(size=3))[None]

    found = membership(np.array([[1.5, 0.0, -0.5]]), learn, lambda model: model[0], 3, shadows=4000)
    np.testing.assert_allclose(found.odds, [3.0, 0.0, -1.0], atol=0.35)


def test_score():
    score = Membership(np.array([3.0, 1.0, -1.0, -2.0])).score(np.array([True, True, False, False]))
    assert score == (1.0, 1.0, 1.0, 1.0)
    assert Membership(np.zeros(4)).score(np.array([True, True, False, False])).auc == 0.5


def test_advantage():
    """Kairouz et al.: hits minus false alarms is at most (e^eps - 1 + 2 delta) / (e^eps + 1)."""
    assert advantage(0.0) == 0.0
    assert advantage(math.log(3)) == pytest.approx(0.5)
    assert advantage(1e4) == 1.0
    assert advantage(0.0, 1.0) == 1.0


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (
            lambda: membership(
                np.zeros((1, 2)), lambda i, s: np.zeros((1, 2)), lambda m: m[0], 2, shadows=3
            ),
            "at least 4",
        ),
        (
            lambda: membership(np.zeros((1, 2)), lambda i, s: np.zeros((1, 2)), lambda m: m[0], 0),
            "nothing to attack",
        ),
        (
            lambda: membership(np.zeros((1, 2)), lambda i, s: np.zeros((1, 2)), lambda m: m[0], 5),
            "each of 5 candidates",
        ),
        (lambda: Membership(np.zeros(3)).score(np.zeros(3, bool)), "some inside and some outside"),
    ],
)
def test_bad_input(call, words):
    with pytest.raises(ConfigError, match=words):
        call()
