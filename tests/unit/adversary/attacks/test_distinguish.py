"""The likelihood-ratio test: its ratio against normal densities, its error rate, and its
refusals."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from bruit.adversary.attacks.distinguish import distinguish, likelihood_weights
from bruit.adversary.attacks.views import own_dithers, starting_values
from bruit.algorithms.gossip.averaging import Averaging
from bruit.algorithms.gossip.gossip_sgd import GossipSGD
from bruit.algorithms.gossip.pair_averaging import PairAveraging
from bruit.algorithms.gossip.renoised import Renoised
from bruit.algorithms.tokens.walk_sgd import WalkSGD
from bruit.errors import ConfigError
from bruit.mechanisms import Gaussian
from bruit.runs.engines.forms import view_forms
from bruit.runs.run import run
from bruit.tasks import Mean

NOISE = Gaussian(clip=1.0, sigma=2.0)
LEFT, RIGHT = np.array([[0.3], [0.1], [-1.0]]), np.array([[0.3], [0.1], [1.0]])


def made(algorithm, values, where="path:3", steps=2, seed=0, noise=NOISE, watch=(0,)):
    return run(
        algorithm,
        where,
        Mean(values),
        privacy=noise,
        steps=steps,
        seed=seed,
        watch=watch,
        evaluate_every=0,
    )


def test_weights_against_densities():
    """<w, y - middle> is the log-ratio of two normal densities with full-rank covariance B B^T."""
    rng = np.random.default_rng(0)
    noise, shift, y = rng.normal(size=(3, 5)), rng.normal(size=3), rng.normal(size=3)
    found = likelihood_weights(noise, shift)
    law = stats.multivariate_normal(np.zeros(3), noise @ noise.T)
    assert found.w @ (y - shift / 2) == pytest.approx(law.logpdf(y - shift) - law.logpdf(y))
    assert found.mu**2 == pytest.approx(shift @ np.linalg.solve(noise @ noise.T, shift))


def test_what_the_noise_does_not_cover_is_seen_exactly():
    found = likelihood_weights(np.array([[1.0, 0.0], [1.0, 0.0]]), np.array([1.0, 0.0]))
    assert found.mu == math.inf
    assert found.w @ np.array([1.0, 1.0]) == pytest.approx(0.0)  # the noise cancels


def test_on_a_path_the_ratio_is_that_of_the_neighbors_neighbor():
    """After two rounds peer 0 knows the noisy value of peer 2 (gossip:MUF-2): ratio = 2 y_2
    (clip)/sigma^2."""
    for seed in range(5):
        one = made(Averaging(), RIGHT, seed=seed, noise=replace(NOISE, arithmetic="ideal"))
        noisy = starting_values(one, Mean(RIGHT))
        found = distinguish(one, one.view(0), LEFT, RIGHT, own=noisy[:1])
        assert found.mu == pytest.approx(1.0)
        assert found.ratio == pytest.approx(2.0 * noisy[2, 0] / 4.0, abs=1e-9)
        assert found.choice == ("right" if noisy[2, 0] > 0 else "left")
        assert found.error == pytest.approx(stats.norm.cdf(-0.5))


def test_dithers_blur_the_ratio_a_little():
    """The same view with dithers: y_2 comes out with the first dithers of peers 0 and 2 and three
    times the second one of peer 1, so that sigma^2 grows by 11 * 2^-20."""
    for seed in range(5):
        one = made(Averaging(), RIGHT, seed=seed)
        noisy, blur = starting_values(one, Mean(RIGHT)), math.sqrt(1 + 11 * 2.0**-20)
        found = distinguish(one, one.view(0), LEFT, RIGHT, own=noisy[:1])
        assert 1 / blur == pytest.approx(found.mu, abs=1e-9)
        off = found.ratio * 4.0 * blur**2 / 2.0 - noisy[2, 0]
        assert 0 < abs(off) < 6 * NOISE.sigma * math.sqrt(blur**2 - 1)  # false alarms 2e-9 each


@pytest.mark.parametrize(
    ("algorithm", "where"),
    [
        (Averaging(), "path:4"),
        (Averaging(), "butterfly:9"),
        (Averaging(), "butterfly:6"),
        (PairAveraging(), "ring:4"),
    ],
)
def test_forms_on_the_grid_are_what_is_sent(algorithm, where):
    """Every message is its form of releases and dithers, all of them drawn again, up to a few cells
    of the grid."""
    n = int(where.split(":")[1])
    values = np.linspace(-0.9, 0.9, 2 * n).reshape(n, 2)
    one = made(algorithm, values, where, steps=4, watch=(0,))
    released, dithers = starting_values(one, Mean(values)), own_dithers(one, Mean(values), range(n))
    forms, _ = view_forms(algorithm, one.graph, one.steps, (0,), one.seed, one.trace, on_grid=True)
    heard = np.concatenate([message.row for message in one.view(0).foreign])
    drawn = np.concatenate([released, *(row[None] for row in dithers.values())])
    scale = np.concatenate([np.ones(n), np.full(len(dithers), 2.0**10)])
    assert bool(dithers) == ("butterfly" not in where)
    expected = forms.B[len(forms.dithers) :] @ (drawn * scale[:, None])
    assert np.abs(heard - expected).max() < 32 * NOISE.sigma * 2.0**-40
    assert forms.dithers.sum() == sum(peer == 0 for _, peer in dithers)


@pytest.mark.slow
def test_error_rate():
    """400 views, error Phi(-1/2) = 0.3085: outside 0.3085 +- 0.115 has probability 6e-7; the seeds
    are fixed."""
    wrong = 0
    for seed in range(200):
        for values, name in ((LEFT, "left"), (RIGHT, "right")):
            one = made(Averaging(), values, seed=seed)
            own = starting_values(one, Mean(values))[:1]
            wrong += distinguish(one, one.view(0), LEFT, RIGHT, own=own).choice != name
    assert abs(wrong / 400 - stats.norm.cdf(-0.5)) < 0.115


@pytest.mark.parametrize(
    ("algorithm", "where", "steps"),
    [
        (PairAveraging(), "complete:3", 3),
        (Renoised(tau=0.5), "path:3", 3),
        (GossipSGD(), "path:3", 3),
    ],
)
def test_other_linear_algorithms_and_fewer_rows(algorithm, where, steps):
    """Without the observers' own rows less is known, never more."""
    one = made(algorithm, RIGHT, where, steps)
    assert 0 <= distinguish(one, one.view(0), LEFT, RIGHT).mu <= 1.0 * math.sqrt(steps) + 1e-9


def test_no_noise_is_never_wrong():
    for values, name in ((LEFT, "left"), (RIGHT, "right")):
        one = made(Averaging(), values, noise=None)
        found = distinguish(one, one.view(0), LEFT, RIGHT)
        assert (found.choice, found.mu, found.error) == (name, math.inf, 0.0)


def test_equal_data_cannot_be_told_apart():
    one = made(Averaging(), LEFT)
    assert distinguish(one, one.view(0), LEFT, LEFT).error == 0.5


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (
            lambda one: distinguish(one, one.view(0), LEFT[:2], RIGHT),
            "one row for each of the 3 peers",
        ),
        (
            lambda one: distinguish(one, one.view(0), LEFT, RIGHT, own=np.zeros((4, 1))),
            "found 4 rows",
        ),
        (
            lambda one: distinguish(one, made(Averaging(), LEFT, steps=9).view(0), LEFT, RIGHT),
            "take the view of this run",
        ),
        (
            lambda one: distinguish(made(WalkSGD(), LEFT), one.view(0), LEFT, RIGHT),
            "does not claim to be linear",
        ),
        (lambda one: likelihood_weights(np.zeros((2, 2)), np.zeros(3)), "one row per observation"),
    ],
)
def test_bad_input(call, words):
    with pytest.raises(ConfigError, match=words):
        call(made(Averaging(), LEFT))
