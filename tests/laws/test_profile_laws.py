"""Laws of profiles and of their composition: delta falls with epsilon, nothing composes to less
than the truth.

The truth is a closed form: for Gaussian pairs, public mixtures and randomized responses (the worst
pair of a pure statement) the privacy losses are independent, so delta(x) = sum over outcomes of
probability * delta_Gauss(x - loss).
"""

import itertools
import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.special import ndtr
from scipy.stats import binom

from bruit.errors import PrivacyError
from bruit.privacy.composition import Failing, compose, composed
from bruit.privacy.events import BoundedEvent, GaussianEvent, LaplaceEvent
from bruit.privacy.profile import (
    EventsProfile,
    GaussianProfile,
    MixtureProfile,
    RenyiProfile,
    StatementProfile,
    least_epsilon,
)

pytestmark = pytest.mark.slow

mus = st.floats(0.01, 5)
deltas = st.floats(1e-10, 0.3)
gaussians = mus.map(GaussianProfile)
statements = st.builds(StatementProfile, st.floats(0, 5), st.sampled_from([0.0, 1e-8, 1e-3]))
renyis = st.floats(1e-4, 2).map(
    lambda rho: RenyiProfile(lambda order: rho * order, (1.5, 2.0, 4.0, 8.0, 32.0, 128.0))
)


@st.composite
def mixture_profiles(draw, atoms=4):
    energies = draw(
        st.lists(st.one_of(st.just(0.0), st.floats(1e-3, 4)), min_size=1, max_size=atoms)
    )
    weights = np.array(
        draw(st.lists(st.floats(0.01, 1), min_size=len(energies), max_size=len(energies)))
    )
    return MixtureProfile(np.array(energies), weights / weights.sum() * draw(st.floats(0.1, 1)))


simple = st.one_of(gaussians, statements, renyis, mixture_profiles())
failing = st.builds(
    Failing, st.one_of(gaussians, mixture_profiles(), renyis), st.sampled_from([0.0, 1e-9, 1e-3])
)


def gauss_delta(x, energy):
    """Of N(0, 1) against N(sqrt(energy), 1) at any real x."""
    if energy == 0:
        return max(0.0, -math.expm1(x))
    mu = math.sqrt(energy)
    return ndtr(mu / 2 - x / mu) - math.exp(x) * ndtr(-mu / 2 - x / mu)


def true_delta(x, energies, responses=()):
    """Gaussian pairs of a law {energy: probability} after randomized responses of the given
    epsilons."""
    total = 0.0
    for signs in itertools.product((1, -1), repeat=len(responses)):
        loss = sum(s * e for s, e in zip(signs, responses, strict=True))
        chance = math.prod(
            1 / (1 + math.exp(-s * e)) for s, e in zip(signs, responses, strict=True)
        )
        total += chance * sum(w * gauss_delta(x - loss, energy) for energy, w in energies)
    return total


def law_of(profiles):
    """Energies of independent mixtures, by enumeration; missing mass is energy 0."""
    found = [(0.0, 1.0)]
    for profile in profiles:
        atoms = [
            *zip(profile.energies, profile.weights, strict=True),
            (0.0, 1 - profile.weights.sum()),
        ]
        found = [(x + y, v * w) for (x, v), (y, w) in itertools.product(found, atoms)]
    return found


@settings(deadline=None)
@given(st.one_of(simple, failing), st.floats(0, 10), st.floats(0, 10))
def test_delta_falls_with_epsilon(profile, one, other):
    low, high = sorted((one, other))
    assert 0 <= profile.delta(high) <= profile.delta(low) * (1 + 1e-9) <= 1 + 1e-9


@settings(deadline=None)
@given(st.one_of(simple, failing), deltas, deltas)
def test_epsilon_falls_with_delta(profile, one, other):
    low, high = sorted((one, other))
    assert profile.epsilon(low) >= profile.epsilon(high) * (1 - 1e-12)


@settings(deadline=None)
@given(st.one_of(simple, failing), deltas)
def test_epsilon_and_delta_are_inverse(profile, delta):
    """delta(epsilon(d)) <= d, and epsilon(delta(x)) is x again where delta still falls."""
    epsilon = profile.epsilon(delta)
    if epsilon == math.inf:
        assert profile.delta(100.0) > delta
        return
    assert profile.delta(epsilon) <= delta * (1 + 1e-9)
    if epsilon > 1e-6:
        assert profile.delta(epsilon * (1 - 1e-6)) > delta * (1 - 1e-5)


@settings(deadline=None)
@given(st.one_of(gaussians, mixture_profiles()), st.floats(1, 10), deltas)
def test_more_noise_never_hurts(profile, factor, delta):
    assert profile.scaled(factor).epsilon(delta) <= profile.epsilon(delta) * (1 + 1e-9) + 1e-12


@settings(deadline=None)
@given(mixture_profiles(), st.floats(0, 5))
def test_a_mixture_is_the_mean_of_its_pairs(profile, epsilon):
    assert profile.delta(epsilon) == pytest.approx(
        true_delta(epsilon, law_of([profile])), rel=1e-9, abs=1e-12
    )


@given(mixture_profiles(), st.floats(1.1, 10))
def test_the_divergence_of_a_mixture_is_the_log_mean(profile, order):
    """walk:F-3, with the missing mass at 1."""
    moment = sum(w * math.exp(order * (order - 1) / 2 * x) for x, w in law_of([profile]))
    assert profile.divergence(order) == pytest.approx(
        math.log(moment) / (order - 1), rel=1e-7, abs=1e-9
    )


@settings(deadline=None)
@given(st.floats(0.01, 3), deltas)
def test_renyi_is_never_sharper_than_the_gaussian_itself(mu, delta):
    exact = GaussianProfile(mu)
    loose = RenyiProfile(exact.divergence)
    assert exact.epsilon(delta) <= loose.epsilon(delta)
    assert exact.delta(1.0) <= loose.delta(1.0)


@given(st.lists(mus, min_size=1, max_size=6))
def test_gaussians_compose_exactly(values):
    """mu**2 adds (walk:F-1): also the joint Gaussian, whose distance is the norm of the shifts."""
    whole = compose([GaussianProfile(mu) for mu in values])
    assert whole.mu == pytest.approx(float(np.linalg.norm(values)), rel=1e-12)


@settings(deadline=None)
@given(st.lists(mixture_profiles(3), min_size=1, max_size=3), mus, st.floats(0, 5))
def test_mixtures_compose_as_their_laws(profiles, mu, epsilon):
    whole = compose([*profiles, GaussianProfile(mu)])
    law = [(x + mu**2, w) for x, w in law_of(profiles)]
    assert whole.delta(epsilon) == pytest.approx(true_delta(epsilon, law), rel=1e-8, abs=1e-11)


def test_many_atoms_are_rounded_up_and_not_far():
    """Beyond the grid the law is rounded: above the truth, within a percent here."""
    rng = np.random.default_rng(5)
    parts = [MixtureProfile(rng.uniform(0, 0.1, 30), np.full(30, 1 / 30)) for _ in range(3)]
    exact = law_of(parts)
    whole = compose(parts)
    assert whole.energies.size < len(exact)
    energies, weights = np.array([x for x, _ in exact]), np.array([w for _, w in exact])
    true = MixtureProfile(energies, weights / max(1.0, weights.sum())).epsilon(1e-6)
    assert true * (1 - 1e-9) <= whole.epsilon(1e-6) <= true * 1.01


@settings(deadline=None, max_examples=8)
@given(
    st.floats(0.05, 2),
    st.sampled_from([0.0, 1e-7]),
    st.floats(0.05, 2),
    st.sampled_from([1e-6, 1e-4]),
)
def test_a_statement_and_a_gaussian(bound, failure, mu, delta):
    """Between the truth for (randomized response, Gaussian) and the sum of the parts
    (gossip:DP-5)."""
    found = compose([StatementProfile(bound, failure), GaussianProfile(mu)]).epsilon(delta)
    true = least_epsilon(
        lambda x: failure + (1 - failure) * true_delta(x, [(mu**2, 1.0)], (bound,)), delta
    )
    assert true * (1 - 1e-9) <= found
    assert found <= bound + GaussianProfile(mu).epsilon(delta - failure) + 2e-3
    assert found <= true + 2e-3


@settings(deadline=None, max_examples=4)
@given(mixture_profiles(3), st.floats(0.1, 1), st.floats(0.1, 1), st.sampled_from([1e-6, 1e-4]))
def test_together_with_a_mixture(profile, bound, mu, delta):
    """Above the exact composition of (mixture, Gaussian, two randomized responses), below the sum
    of the parts."""
    two = [StatementProfile(bound, 0.0), StatementProfile(bound / 2, 0.0)]
    found = compose([profile, GaussianProfile(mu), *two]).epsilon(delta)
    law = [(x + mu**2, w) for x, w in law_of([profile])]
    true = least_epsilon(lambda x: true_delta(x, law, (bound, bound / 2)), delta)
    assert true * (1 - 1e-9) <= found <= 1.25 * true + 0.01


def test_together_never_forgets_a_failure():
    mixed = MixtureProfile(np.array([0.25]), np.array([0.5]))
    for failure in (1e-7, 9e-7):
        whole = compose([mixed, StatementProfile(0.2, failure), GaussianProfile(0.1)])
        clean = compose([mixed, StatementProfile(0.2, 0.0), GaussianProfile(0.1)])
        assert whole.epsilon(1e-6) == pytest.approx(clean.epsilon(1e-6 - failure), rel=1e-9)
        assert whole.epsilon(failure) == math.inf


@settings(deadline=None, max_examples=30)
@given(st.one_of(gaussians, mixture_profiles(2), renyis, failing), st.integers(0, 4), deltas)
def test_the_same_profile_many_times(profile, count, delta):
    assume(
        not isinstance(profile, RenyiProfile) or count
    )  # no curve at all is no release: tested below
    once, listed = composed(profile, count), compose([profile] * count)
    assert once.epsilon(delta) == pytest.approx(listed.epsilon(delta), rel=1e-9, abs=1e-12)


@pytest.mark.parametrize(
    "profile",
    [
        StatementProfile(0.3, 0.0),
        StatementProfile(0.3, 1e-8),
        EventsProfile(((LaplaceEvent(3.0), 2), (GaussianEvent(4.0), 1))),
        EventsProfile(((GaussianEvent(4.0), 3),)),
        EventsProfile(((BoundedEvent(0.1, 1e-8), 2),)),
        compose([StatementProfile(0.2, 1e-9), GaussianProfile(0.3)]),
    ],
)
@pytest.mark.parametrize("count", [1, 3])
def test_the_same_statement_many_times(profile, count):
    once, listed = composed(profile, count), compose([profile] * count)
    assert once.epsilon(1e-6) == pytest.approx(listed.epsilon(1e-6), rel=1e-6)


@pytest.mark.parametrize(
    "profile",
    [
        GaussianProfile(1.0),
        GaussianProfile(math.inf),
        StatementProfile(1.0, 1e-3),
        RenyiProfile(lambda order: order),
        MixtureProfile(np.ones(1), np.ones(1)),
        EventsProfile(((GaussianEvent(1.0), 1),)),
        Failing(GaussianProfile(1.0), 1e-3),
    ],
)
def test_nothing_released_is_nothing_learned(profile):
    assert composed(profile, 0).epsilon(1e-6) == compose([]).epsilon(1e-6) == 0.0


@settings(deadline=None)
@given(st.one_of(gaussians, mixture_profiles(), renyis), st.floats(0, 1e-2), deltas)
def test_a_failure_is_taken_from_delta(inner, failure, delta):
    profile = Failing(inner, failure)
    if delta > failure:
        assert profile.epsilon(delta) == inner.epsilon(delta - failure)
    else:
        assert profile.epsilon(delta) == math.inf
    assert profile.delta(1.0) == pytest.approx(min(1.0, inner.delta(1.0) + failure))
    assert profile.divergence(2.0) == (math.inf if failure else inner.divergence(2.0))


@settings(deadline=None, max_examples=60)
@given(
    st.lists(st.one_of(gaussians, mixture_profiles(2), renyis, failing), min_size=2, max_size=4),
    st.data(),
)
def test_grouping_does_not_matter(profiles, data):
    """compose([a, compose([b, c])]) is compose([a, b, c]), failures included; order does not matter
    either."""
    cut = data.draw(st.integers(1, len(profiles) - 1))
    flat = compose(profiles).epsilon(0.05)
    assert compose([*profiles[:cut], compose(profiles[cut:])]).epsilon(0.05) == pytest.approx(
        flat, rel=1e-9
    )
    assert compose(profiles[::-1]).epsilon(0.05) == pytest.approx(flat, rel=1e-9)


@settings(deadline=None, max_examples=60)
@given(
    st.lists(st.one_of(gaussians, statements, renyis, mixture_profiles(2)), min_size=1, max_size=3),
    renyis,
)
def test_more_releases_never_help(profiles, renyi):
    """Next to a Renyi curve divergences add and deltas are given up: never below the curve
    alone."""
    assert compose([*profiles, renyi]).epsilon(0.05) >= renyi.epsilon(0.05) * (1 - 1e-12)
    assert compose([*profiles, renyi]).delta(1.0) >= renyi.delta(1.0) * (1 - 1e-12)


def test_failures_survive_nested_composition():
    """A statement's delta next to a Renyi curve is a failure too: composing the result again must
    keep both."""
    renyi = RenyiProfile(lambda order: 0.01 * order)
    inner = compose([Failing(renyi, 1e-7), StatementProfile(0.1, 2e-7)])
    whole = compose([inner, GaussianProfile(0.1)])
    assert whole.epsilon(2.9e-7) == math.inf
    assert whole.delta(0.0) >= 3e-7
    flat = compose([Failing(renyi, 1e-7), StatementProfile(0.1, 2e-7), GaussianProfile(0.1)])
    assert whole.epsilon(1e-6) == pytest.approx(flat.epsilon(1e-6), rel=1e-9)


def test_a_repeated_statement_composes_with_a_renyi_curve():
    renyi, one = RenyiProfile(lambda order: 0.01 * order), StatementProfile(0.1, 1e-8)
    assert compose([renyi, composed(one, 3)]).epsilon(1e-6) == pytest.approx(
        compose([renyi, one, one, one]).epsilon(1e-6), rel=1e-9
    )


def test_tiny_energies_cost_nothing_and_say_nothing():
    """Far tails underflow to 0 without a warning."""
    profile = MixtureProfile(np.array([1e-18, 1e-30]), np.array([0.5, 0.5]))
    assert profile.delta(1.0) == profile.epsilon(1e-6) == GaussianProfile(1e-9).delta(1.0) == 0.0


def test_energies_that_are_no_numbers_are_refused():
    with pytest.raises(PrivacyError):
        MixtureProfile(np.array([np.nan]), np.ones(1))
    with pytest.raises(PrivacyError):
        MixtureProfile(np.ones(1), np.array([np.nan]))


def test_a_mixture_that_may_reveal_everything():
    """An infinite energy is a failure of its weight, and an energy of weight 0 is nothing."""
    open_ = MixtureProfile(np.array([1.0, math.inf]), np.array([0.9, 0.01]))
    closed = Failing(MixtureProfile(np.array([1.0]), np.array([0.9])), 0.01)
    assert open_.epsilon(0.05) == pytest.approx(closed.epsilon(0.05), rel=1e-9)
    assert open_.epsilon(0.005) == math.inf
    assert compose([open_, StatementProfile(0.1, 0.0)]).epsilon(0.05) >= open_.epsilon(0.05)
    never = MixtureProfile(np.array([1.0, 1e6]), np.array([1.0, 0.0]))
    assert never.divergence(10.0) == pytest.approx(5.0)


def test_a_long_composition_of_mixtures_stays_near_the_truth():
    """Half of 300 releases are seen: the number seen is binomial."""
    count = np.arange(301)
    true = MixtureProfile(0.01 * count, binom.pmf(count, 300, 0.5) * (1 - 1e-12)).epsilon(1e-6)
    found = composed(MixtureProfile(np.array([0.01]), np.array([0.5])), 300).epsilon(1e-6)
    assert true * (1 - 1e-6) <= found <= 1.15 * true
