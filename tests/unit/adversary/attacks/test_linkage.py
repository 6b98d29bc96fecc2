"""Linkage of repeated reports: against chance, against an exact posterior, and its refusals."""

import math

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment

from bruit.adversary.attacks.linkage import Responses, link
from bruit.errors import ConfigError
from bruit.mechanisms import Gaussian, Laplace
from bruit.privacy.formulas.randomized_response import probabilities
from bruit.randomness import Replay

USERS = 120


def responses(answers, noise, rng):
    truth, _ = probabilities(noise.values, noise.epsilon)
    other = (answers + rng.integers(1, noise.values, answers.shape)) % noise.values
    return np.where(rng.random(answers.shape) < truth, answers, other)


def batches(report, rng, answers):
    order = rng.permutation(len(answers))
    return report(answers), report(answers)[order], np.argsort(order)


@pytest.mark.parametrize(
    ("epsilon", "least", "most"), [(4.0, 0.8, 1.0), (1.0, 0.0, 0.6), (0.0, 0.0, 0.1)]
)
def test_randomized_response(epsilon, least, most):
    """12 attributes of 4 values: epsilon = 4 each gives users away, epsilon = 0 leaves chance
    (1/120; 12 or more right by chance has probability below 1e-8)."""
    rng, noise = np.random.default_rng(1), Responses(4, epsilon)
    first, second, truth = batches(
        lambda x: responses(x, noise, rng), rng, rng.integers(0, 4, (USERS, 12))
    )
    right, chance = link(first, second, noise).score(truth)
    assert chance == 1 / USERS
    assert least <= right <= most


def test_log_odds_are_those_of_the_exact_posterior():
    """Two values, uniform data: same answers have odds (p^2 + q^2) / (1/2), different ones 2 p q /
    (1/2)."""
    noise, rng = Responses(2, 1.0), np.random.default_rng(0)
    first = np.tile([0, 1], 500)[:, None]
    p, q = probabilities(2, 1.0)
    odds = link(first, rng.permutation(first), noise).odds
    assert odds.max() == pytest.approx(math.log(2 * (p * p + q * q)), abs=1e-9)
    assert odds.min() == pytest.approx(math.log(4 * p * q), abs=1e-9)


@pytest.mark.parametrize("mechanism", [Gaussian(clip=3.0, sigma=0.4), Laplace(clip=3.0, scale=0.3)])
def test_numbers(mechanism):
    """Rows of 16 numbers with noise of 0.4: most users are matched, at least as many as by least
    squares but for a few; noise of 40 leaves chance."""
    rng = np.random.default_rng(2)
    data = np.clip(rng.normal(size=(USERS, 16)), -1, 1)

    def report(step, dice):
        return data + mechanism.noise(dice, np.arange(USERS), step, 0, 16)

    order = rng.permutation(USERS)
    first, second = report(0, Replay(3)), report(1, Replay(3))[order]
    right = link(first, second, mechanism).score(np.argsort(order))[0]
    nearest = linear_sum_assignment(((first[:, None] - second[None]) ** 2).sum(axis=2))[1]
    assert right > 0.8
    assert right >= (nearest == np.argsort(order)).mean() - 0.05
    loud = Gaussian(clip=3.0, sigma=40.0)
    noisy = [data + loud.noise(Replay(4), np.arange(USERS), step, 0, 16) for step in (0, 1)]
    assert link(noisy[0], noisy[1][order], loud).score(np.argsort(order))[0] < 0.1


def test_data_that_changed_is_matched_less():
    """With keep = 0 reports say nothing about each other: all odds are even."""
    rng, noise = np.random.default_rng(1), Responses(4, 4.0)
    first, second, _ = batches(
        lambda x: responses(x, noise, rng), rng, rng.integers(0, 4, (USERS, 12))
    )
    assert np.abs(link(first, second, noise, keep=0.0).odds).max() == 0.0
    half = link(first, second, noise, keep=0.5).odds
    assert half.min() >= math.log(0.5) - 1e-12


def test_without_noise_reports_match_themselves():
    data = np.arange(10.0)[:, None]
    order = np.random.default_rng(0).permutation(10)
    assert link(data, data[order], Gaussian(clip=1.0, sigma=0.0)).score(np.argsort(order))[0] == 1.0


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: link(np.zeros((2, 1)), np.zeros((3, 1)), Gaussian()), "one shape"),
        (
            lambda: link(np.zeros((2, 1), int), np.full((2, 1), 7), Responses(3, 1.0)),
            r"whole numbers in 0\.\.2",
        ),
        (
            lambda: link(np.zeros((2, 1)), np.zeros((2, 1)), Gaussian(), keep=2.0),
            r"in \[0, 1\], found 2",
        ),
        (lambda: link(np.zeros((5000, 1)), np.zeros((5000, 1)), Gaussian()), "at most 4000"),
        (
            lambda: link(np.zeros((2, 1)), np.zeros((2, 1)), Gaussian()).score(np.zeros(5)),
            "for 2 reports",
        ),
    ],
)
def test_bad_input(call, words):
    with pytest.raises(ConfigError, match=words):
        call()
