"""What a promise about one record says of a person with k of them (silo:SILO-12), by sums over all
outcomes that use none of the package's laws."""

from __future__ import annotations

import math

import numpy as np
import pytest

from bruit.errors import PrivacyError
from bruit.privacy.as_a_whole import as_a_whole
from bruit.privacy.events import (
    BoundedEvent,
    DiscreteGaussianEvent,
    Exact,
    GaussianEvent,
    LaplaceEvent,
    MaskedEvent,
    SampledGaussianEvent,
)
from bruit.privacy.formulas.group import group_epsilon, scaled_events, scaled_profile
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

GRID = np.arange(-4000, 4001)


def on_the_grid(center: int, sigma: float) -> np.ndarray:
    """The discrete Gaussian around a whole number."""
    found = np.exp(-((GRID - center) ** 2) / (2 * sigma**2))
    return found / found.sum()


def told_apart(first: np.ndarray, other: np.ndarray, epsilon: float) -> float:
    """The larger hockey-stick divergence of both orders."""
    factor = math.exp(epsilon)
    return max(
        float(np.maximum(first - factor * other, 0).sum()),
        float(np.maximum(other - factor * first, 0).sum()),
    )


@pytest.mark.parametrize("k", [1, 2, 5, 9])
@pytest.mark.parametrize("sigma", [16.0, 40.0])
def test_on_the_bits_the_rounding_of_one_record_serves_k(k, sigma):
    """Values between the points of a grid are rounded and get discrete noise: R = 1 / (4 sigma^2), that
    of one release, holds whatever moved. Every distance up to k steps of 7.3, and every place in a cell."""
    step, rounding = 7.3, 1 / (4 * sigma**2)
    bound = scaled_profile(Rounded(GaussianProfile(step / sigma), rounding), k)
    assert isinstance(bound, Rounded)
    assert bound.rounding == rounding
    for place in (0.0, 0.26, 0.5, 0.99):
        for moved in (k * step, k * step * 0.7):
            first = on_the_grid(math.floor(place + 0.5), sigma)
            other = on_the_grid(math.floor(place + moved + 0.5), sigma)
            for epsilon in (0.0, 0.5, 2.0, 6.0):
                assert told_apart(first, other, epsilon) <= bound.delta(epsilon)


def test_rounding_stays_in_every_kind_of_event():
    events = [
        (GaussianEvent(4.0, 1e-9), 2),
        (SampledGaussianEvent(4.0, 0.1, "replace", 1e-9), 3),
        (MaskedEvent(GaussianEvent(4.0, 1e-9), GaussianEvent(2.0, 1e-9)), 1),
    ]
    scaled = scaled_events(events, 3)
    assert [(event.rounding, count) for event, count in scaled] == [(1e-9, 2), (1e-9, 3), (1e-9, 1)]
    assert [event.noise_multiplier for event, _ in scaled] == [4 / 3, 2 / 3, 2 / 3]


@pytest.mark.parametrize("k", [2, 20, 100, 1000])
@pytest.mark.parametrize("mu", [0.3, 1.0, 4.0])
def test_no_law_is_below_the_exact_one_however_many_records(k, mu):
    """What a float calls 0 was stepped as 0: 100 records at mu = 1 were told as 3889, and it is 5474."""
    exact = GaussianProfile(k * mu).epsilon(1e-6)
    assert group_epsilon(GaussianProfile(mu), k, 1e-6) >= exact * (1 - 1e-12)
    for hidden in (
        Failing(GaussianProfile(mu), 0.0),  # the same profile, whose kind nobody scales
        RenyiProfile(lambda order: order * mu**2 / 2),
        EventsProfile(((SampledGaussianEvent(1 / mu, 1 - 1e-9, "add-remove"), 1),)),
    ):
        assert group_epsilon(hidden, k, 1e-6) >= exact * (1 - 1e-6)


@pytest.mark.parametrize("k", [2, 7, 60])
def test_discrete_noise_holds_at_every_whole_shift(k):
    sigma = 30.0
    bound = EventsProfile(tuple(scaled_events([(DiscreteGaussianEvent(sigma / 3), 1)], k)))
    for shift in {1, k, 2 * k + 1, 3 * k}:
        first, other = on_the_grid(0, sigma), on_the_grid(shift, sigma)
        for epsilon in (0.1, 1.0, 5.0):
            assert told_apart(first, other, epsilon) <= bound.delta(epsilon) + 1e-12


@pytest.mark.parametrize("moved", [(6.0, 0.0), (3.0, 3.0), (5.0, -1.0)])
def test_laplace_noise_of_vectors_holds_however_the_records_move_it(moved):
    """Three records that each move a vector by 2 in l1, scale 5: by integration over the plane."""
    x = np.linspace(-120, 120, 1601)
    cell = x[1] - x[0]

    def law(center: tuple[float, float]) -> np.ndarray:
        one, two = (np.exp(-np.abs(x - c) / 5.0) / 10.0 for c in center)
        return np.outer(one, two) * cell**2

    first, other = law((0.0, 0.0)), law(moved)
    bound = EventsProfile(tuple(scaled_events([(LaplaceEvent(2.5), 1)], 3)))
    for epsilon in (0.0, 0.3, 0.9, 1.2):
        assert told_apart(first, other, epsilon) <= bound.delta(epsilon) + 2e-4


def test_statements_are_stepped_with_deltas_and_without():
    once = BoundedEvent(0.1, 1e-9)
    ((event, count),) = scaled_events([(once, 4)], 3)
    steps = 1 + math.exp(0.1) + math.exp(0.2)
    assert (event, count) == (BoundedEvent(3 * 0.1, 1e-9 * steps), 4)
    ((pure, _),) = scaled_events([(BoundedEvent(0.5), 1)], 5000)  # 0 times infinity is 0 here
    assert pure == BoundedEvent(2500.0, 0.0)
    assert group_epsilon(StatementProfile(0.5, 0.0), 5000, 1e-6) <= 2500.0
    assert group_epsilon(EventsProfile(((Exact(), 1),)), 2, 1e-6) == math.inf


def test_a_public_index_is_scaled_pair_by_pair():
    seen = MixtureProfile(np.array([1.0, 0.25]), np.array([0.2, 0.5]))
    scaled = scaled_profile(seen, 4)
    assert isinstance(scaled, Profile)
    expected = 0.2 * GaussianProfile(4.0).delta(3.0) + 0.5 * GaussianProfile(2.0).delta(3.0)
    assert scaled.delta(3.0) == pytest.approx(expected)


def test_one_law_for_all_that_a_peer_holds_and_for_some_of_it():
    events = [(SampledGaussianEvent(40.0, 0.1), 3), (LaplaceEvent(50.0), 1)]
    assert as_a_whole(events, 6, 1e-6) >= group_epsilon(EventsProfile(tuple(events)), 6, 1e-6)
    for wrong in (0, 1.5, True):
        with pytest.raises(PrivacyError):
            as_a_whole(events, wrong)  # type: ignore[arg-type]
