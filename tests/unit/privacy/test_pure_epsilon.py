"""epsilon(delta=0): what bounded privacy losses have, and Gaussian noise has not."""

import math

import numpy as np
import pytest

import bruit as br
from bruit.algorithms.tokens.token_histogram import TokenHistogram
from bruit.errors import PrivacyError
from bruit.mechanisms import RandomizedResponse
from bruit.privacy.binomial_profile import BinomialProfile
from bruit.privacy.composition import Separately, compose
from bruit.privacy.events import (
    BoundedEvent,
    DiscreteGaussianEvent,
    Exact,
    GaussianEvent,
    LaplaceEvent,
    Mask,
)
from bruit.privacy.ledger import Budget
from bruit.privacy.profile import (
    EventsProfile,
    Failing,
    GaussianProfile,
    MixtureProfile,
    Profile,
    RenyiProfile,
    Rounded,
    StatementProfile,
)

LAPLACE = EventsProfile(((LaplaceEvent(2.0), 3), (BoundedEvent(0.25), 2)))
PURE: list[tuple[Profile, float]] = [
    (LAPLACE, 2.0),
    (EventsProfile(((Mask(1.0), 5),)), 0.0),
    (EventsProfile(((Exact(), 1),)), math.inf),
    (EventsProfile(((GaussianEvent(9.0, 1e-20), 1), (LaplaceEvent(1.0), 1))), math.inf),
    (EventsProfile(((DiscreteGaussianEvent(9.0), 1),)), math.inf),
    (EventsProfile(((BoundedEvent(1.0, 1e-9), 1),)), math.inf),
    (GaussianProfile(0.0), 0.0),
    (GaussianProfile(1e-3), math.inf),
    (MixtureProfile(np.array([0.0, 1.0]), np.array([1.0, 0.0])), 0.0),
    (MixtureProfile(np.array([0.0, 1.0]), np.array([0.9, 0.1])), math.inf),
    (RenyiProfile(lambda order: 0.0), math.inf),
    (RenyiProfile(lambda order: order / 100), math.inf),
    (StatementProfile(1.5, 0.0), 1.5),
    (StatementProfile(1.5, 1e-12), math.inf),
    (Failing(LAPLACE, 0.0), 2.0),
    (Failing(LAPLACE, 1e-9), math.inf),
    (Rounded(LAPLACE, 0.0), 2.0),
    (Rounded(GaussianProfile(1.0), 1e-20), math.inf),
    (BinomialProfile(100, 2), math.inf),
    (Separately((StatementProfile(1.0, 0.0), LAPLACE)), 3.0),
    (compose([LAPLACE, StatementProfile(1.0, 0.0)]), 3.0),
    (compose([LAPLACE, GaussianProfile(0.1)]), math.inf),
]


@pytest.mark.parametrize(("profile", "epsilon"), PURE)
def test_a_pure_epsilon_is_the_largest_loss_or_infinite(profile, epsilon):
    assert profile.epsilon(0.0) == profile.pure() == pytest.approx(epsilon)
    assert profile.epsilon(1e-6) <= epsilon  # more delta never costs more
    if 0 < epsilon < math.inf:
        assert profile.delta(epsilon) <= 1e-12


def mean_run(noise):
    return br.run(
        br.Averaging(),
        br.graphs.ring(6),
        br.tasks.Mean.uniform(6, 1, 0),
        privacy=noise,
        steps=3,
        seed=0,
    )


def test_a_run_with_pure_noise_has_a_pure_epsilon():
    done = mean_run(br.Laplace(clip=1.0, scale=2.0))
    assert (
        done.epsilon(delta=0) == done.epsilon(of=0, seen_by=1, delta=0) == 1.0
    )  # 2 clip / scale, one release each
    assert done.summary(0.0).epsilons == (1.0, 1.0, 1.0)
    assert "epsilon = 1 at delta = 0" in done.epsilon(delta=0).why()


def test_gaussian_noise_has_none_and_says_why():
    done = mean_run(br.Gaussian(clip=1.0, sigma=2.0))
    assert done.epsilon(delta=0) == done.summary(0.0).epsilons[0] == math.inf
    assert (
        "has no pure epsilon; ask at a positive delta"
        in done.epsilon(of=0, seen_by=1, delta=0).why()
    )
    assert (
        "has no pure epsilon" not in mean_run(None).epsilon(delta=0).why()
    )  # no noise: infinite at every delta


def test_shuffled_counts_fall_back_to_the_reports_themselves():
    """Amplification by shuffling costs a delta, so at delta = 0 each of two reports costs its own
    epsilon."""
    task = br.tasks.Mean(np.eye(3)[np.arange(8) % 3])
    noise = RandomizedResponse.of(3, 1.0)
    done = br.run(TokenHistogram(), br.graphs.ring(8), task, privacy=noise, steps=16, seed=0)
    assert done.epsilon(of=0, seen_by=4, delta=0) == pytest.approx(2.0)
    assert done.epsilon(of=0, seen_by=4) <= 2.0 + 1e-9


def test_a_budget_may_be_pure():
    done = mean_run(br.Laplace(clip=1.0, scale=2.0))
    assert Budget(1.0, 0.0).spent(done.ledger, 0) == 1.0
    assert not Budget(1.0, 0.0).allows(done.ledger, 0, LaplaceEvent(1.0))
    assert Budget(2.0, 0.0).allows(done.ledger, 0, LaplaceEvent(1.0))
    assert not Budget(9.0, 0.0).allows(done.ledger, 0, GaussianEvent(100.0, 1e-20))


@pytest.mark.parametrize("delta", [-1e-9, 1.0, math.nan, math.inf])
def test_what_is_no_delta_is_refused(delta):
    with pytest.raises(PrivacyError, match="0 asks for a pure epsilon"):
        mean_run(br.Laplace(clip=1.0, scale=2.0)).epsilon(delta=delta)
