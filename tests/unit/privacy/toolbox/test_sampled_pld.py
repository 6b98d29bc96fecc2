"""Secret samples of records: the accountant against integration, and the worked numbers of
silo:SILO-2."""

import math
import time

import numpy as np
import pytest

from bruit.errors import PrivacyError
from bruit.privacy.composition import compose
from bruit.privacy.events import (
    BoundedEvent,
    DiscreteGaussianEvent,
    GaussianEvent,
    LaplaceEvent,
    SampledGaussianEvent,
    SelfComposed,
    record_event,
)
from bruit.privacy.ledger import Budget, Ledger
from bruit.privacy.profile import EventsProfile, GaussianProfile
from bruit.privacy.toolbox.pld import compose_delta, compose_epsilon, most_releases, renyi_of
from bruit.privacy.toolbox.rounding import allowance

BOTH = ("add-remove", "replace")
KINDS = [(0.05, 2.0), (0.3, 0.6), (0.9, 1.0), (0.01, 4.0)]


def sampled(rate, z, adjacency="replace", rounding=math.inf):
    return SampledGaussianEvent(
        noise_multiplier=z, rate=rate, adjacency=adjacency, rounding=rounding
    )


def laws(rate, z, adjacency, x):
    """The two laws of one release, in units of the clip."""

    def bell(middle):
        return np.exp(-((x - middle) ** 2) / (2 * z * z)) / (z * math.sqrt(2 * math.pi))

    with_it = (1 - rate) * bell(0) + rate * bell(1)
    other = bell(0) if adjacency == "add-remove" else (1 - rate) * bell(0) + rate * bell(-1)
    return with_it, other


def apart(p, q, epsilon, cell):
    """The larger of the two hockey-stick divergences."""
    scale = math.exp(epsilon)
    return max(
        float(np.maximum(p - scale * q, 0).sum() * cell),
        float(np.maximum(q - scale * p, 0).sum() * cell),
    )


@pytest.mark.parametrize("adjacency", BOTH)
@pytest.mark.parametrize(("rate", "z"), KINDS)
def test_one_release_is_what_integration_says(rate, z, adjacency):
    """silo:SILO-2: above the truth, by less than a thousandth in epsilon."""
    x = np.linspace(-1 - 12 * z, 1 + 12 * z, 200_001)
    p, q = laws(rate, z, adjacency, x)
    for epsilon in (0.0, 0.01, 0.1, 0.5):
        truth = apart(p, q, epsilon, x[1] - x[0])
        found = compose_delta([(sampled(rate, z, adjacency), 1)], epsilon)
        assert truth - 1e-9 <= found <= truth * 1.01 + 1e-5
        if truth > 1e-9:
            back = compose_epsilon([(sampled(rate, z, adjacency), 1)], truth)
            assert epsilon - 1e-6 <= back <= epsilon * 1.001 + 1e-4


@pytest.mark.parametrize("adjacency", BOTH)
@pytest.mark.parametrize(("rate", "z"), [(0.3, 1.0), (0.05, 2.0)])
def test_two_releases_are_what_integration_says(rate, z, adjacency):
    x = np.linspace(-1 - 8 * z, 1 + 8 * z, 1201)
    p, q = laws(rate, z, adjacency, x)
    first, second, cell = np.outer(p, p), np.outer(q, q), (x[1] - x[0]) ** 2
    for epsilon in (0.0, 0.05, 0.4):
        truth = apart(first, second, epsilon, cell)
        found = compose_delta([(sampled(rate, z, adjacency), 2)], epsilon)
        assert truth - 2e-6 <= found <= truth * 1.01 + 1e-5
        halved = compose_delta([(sampled(rate, 2 * z, adjacency), 2)], epsilon)
        assert halved < truth  # an accountant that is off by a factor two is found out


def test_two_kinds_together_are_what_integration_says():
    """A sampled release, then a plain one: in one direction together."""
    x = np.linspace(-13, 13, 1201)
    p, q = laws(0.3, 1.5, "replace", x)
    more = [np.exp(-((x - m) ** 2) / 8) / math.sqrt(8 * math.pi) for m in (0.5, -0.5)]
    cell = (x[1] - x[0]) ** 2
    events = [(sampled(0.3, 1.5), 1), (GaussianEvent(noise_multiplier=2.0), 1)]
    for epsilon in (0.0, 0.3, 1.0):
        truth = apart(np.outer(p, more[0]), np.outer(q, more[1]), epsilon, cell)
        assert truth - 2e-6 <= compose_delta(events, epsilon) <= truth * 1.01 + 1e-5


@pytest.mark.parametrize(
    ("z", "releases", "said"),
    [(2.0, 200, (1.7921, 3.3178)), (2.0, 220, (1.8803, 3.4976)), (2**0.5, 100, (2.1392, 3.4159))],
)
def test_worked_numbers(z, releases, said):
    """silo:SILO-2, SILO-5, at delta = 1e-6."""
    found = [compose_epsilon([(sampled(0.05, z, how), releases)], 1e-6) for how in BOTH]
    assert found == pytest.approx(said, rel=1e-3)
    assert all(ours > told - 1e-4 for ours, told in zip(found, said, strict=True))


@pytest.mark.slow
@pytest.mark.parametrize("adjacency", BOTH)
def test_more_records_less_noise_and_more_releases_cost_more(adjacency):
    def cost(rate, z, releases):
        return compose_epsilon([(sampled(rate, z, adjacency), releases)], 1e-6)

    for rising in (
        [cost(rate, 2.0, 20) for rate in (0.01, 0.05, 0.2, 0.7, 0.99)],
        [cost(0.05, z, 20) for z in (8.0, 3.0, 2.0, 1.0, 0.5)],
        [cost(0.05, 2.0, releases) for releases in (1, 2, 10, 100, 101)],
    ):
        assert rising == sorted(rising)
    whole = compose_epsilon([(record_event(2.0, 1.0, adjacency), 20)], 1e-6)
    assert cost(0.99, 2.0, 20) <= whole


@pytest.mark.parametrize("adjacency", BOTH)
def test_what_is_too_small_or_too_large_for_a_distribution_is_bounded_without_sampling(adjacency):
    event = sampled(0.3, 2.0, adjacency)
    whole = compose_epsilon([(record_event(2.0, 1.0, adjacency), 3)], 1e-14)
    assert compose_epsilon([(event, 3)], 1e-14) == whole < math.inf
    assert compose_epsilon([(sampled(0.5, 0.001, adjacency), 1000)], 1e-6) > 1e5
    assert compose_epsilon([(sampled(0.999999, 0.3, adjacency), 100)], 1e-6) > 400
    assert compose_epsilon([(sampled(0.5, math.inf, adjacency), 10)], 1e-3) == 0
    assert compose_epsilon([(event, 1)], 0.0) == math.inf
    assert compose_epsilon([(sampled(0.5, 0.0, adjacency), 1)], 1e-6) == math.inf
    assert compose_delta([(sampled(0.5, 0.0, adjacency), 1)], 3.0) == 1.0


@pytest.mark.parametrize("adjacency", BOTH)
def test_divergences_are_above_those_of_the_laws(adjacency):
    x = np.linspace(-24, 24, 20_001)
    p, q = laws(0.2, 2.0, adjacency, x)
    for order in (2.0, 5.0, 12.0):
        moments = [float((b * (a / b) ** order).sum()) for a, b in ((p, q), (q, p))]
        truth = max(math.log(moment * (x[1] - x[0])) / (order - 1) for moment in moments)
        found = renyi_of([(sampled(0.2, 2.0, adjacency), 3)], order)
        assert found >= 3 * truth * (1 - 1e-9)
        assert adjacency == "replace" or found == pytest.approx(3 * truth, rel=1e-6)


def test_the_two_adjacencies_are_never_added():
    mixed = [(sampled(0.1, 2.0, how), 1) for how in BOTH]
    for ask in (
        lambda: compose_epsilon(mixed, 1e-6),
        lambda: compose_delta(mixed, 1.0),
        lambda: compose([EventsProfile((one,)) for one in mixed]).epsilon(1e-6),
        lambda: compose_epsilon([(SelfComposed(one, 2), n) for one, n in mixed], 1e-6),
    ):
        with pytest.raises(PrivacyError, match="two accounts, which are never added up"):
            ask()


def test_rounding_is_added_up_and_converted_once():
    """fp:FP-0: R of all releases together, wherever they are composed."""
    rounded, real = sampled(0.1, 2.0, rounding=1e-18), sampled(0.1, 2.0)
    gamma, left = allowance(50 * 1e-18, 1e-6)
    expected = compose_epsilon([(real, 50)], left) + 2 * gamma
    assert compose_epsilon([(rounded, 50)], 1e-6) == pytest.approx(expected, rel=1e-12)
    parts = [EventsProfile(((rounded, 20),)), EventsProfile(((rounded, 30),))]
    assert compose(parts).epsilon(1e-6) == pytest.approx(expected, rel=1e-12)
    with_more = compose([*parts, GaussianProfile(0.0)])
    assert with_more.delta(1.0) == pytest.approx(compose_delta([(rounded, 50)], 1.0), rel=1e-9)


def test_other_noise_beside_a_sample():
    """Each part alone is less, and adding up is more."""
    event = (sampled(0.1, 2.0), 10)
    alone = compose_epsilon([event], 1e-6)
    for other in (LaplaceEvent(noise_multiplier=4.0), BoundedEvent(epsilon=0.2, delta=1e-9)):
        both = compose_epsilon([event, (other, 2)], 1e-6)
        pure = 2 * (0.25 if isinstance(other, LaplaceEvent) else 0.2)
        assert alone < both <= compose_epsilon([event], 1e-6 - 3e-9) + pure + 1e-3
    discrete = (DiscreteGaussianEvent(noise_multiplier=5.0), 2)
    plain = (GaussianEvent(noise_multiplier=5.0), 2)
    assert compose_epsilon([event, discrete], 1e-6) >= compose_epsilon([event, plain], 1e-6)
    assert compose_delta([event, discrete], 1.0) >= compose_delta([event, plain], 1.0)


def test_a_budget_that_is_asked_before_every_release_answers_at_once():
    ledger, budget, event = Ledger(peers=1), Budget(1.0, 1e-6), sampled(0.05, 2.0, rounding=1e-20)
    releases, started = 0, time.process_time()
    while budget.allows(ledger, 0, event):
        ledger.record(*(np.array([k]) for k in (0, releases, releases)), event)
        releases += 1
    assert time.process_time() - started < 10
    assert releases == most_releases(event, 1.0 + 1e-9, 1e-6)
    assert compose_epsilon([(event, releases)], 1e-6) <= 1.0 + 1e-9
    assert compose_epsilon([(event, releases + 1)], 1e-6) > 1.0
    assert budget.spent(ledger, 0) <= 1.0 + 1e-9
    assert not Budget(1.0, 0.0).allows(Ledger(peers=1), 0, event)
    assert not budget.allows(ledger, 0, GaussianEvent(noise_multiplier=1.0))
