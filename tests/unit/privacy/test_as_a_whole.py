"""What one record's guarantee leaves of all that a peer holds (silo:SILO-6)."""

import math

import numpy as np
import pytest
from scipy.stats import binom, norm

from bruit.errors import PrivacyError
from bruit.privacy.as_a_whole import as_a_whole
from bruit.privacy.events import (
    BoundedEvent,
    Composed,
    DiscreteGaussianEvent,
    Exact,
    GaussianEvent,
    LaplaceEvent,
    Mask,
    SampledGaussianEvent,
    record_event,
)
from bruit.privacy.toolbox.gaussian import delta_of, epsilon_of
from bruit.privacy.toolbox.pld import compose_epsilon


def sampled(z, rate=0.1, adjacency="replace"):
    return SampledGaussianEvent(noise_multiplier=z, rate=rate, adjacency=adjacency)


@pytest.mark.parametrize("adjacency", ["replace", "add-remove"])
@pytest.mark.parametrize("rate", [0.1, 0.5, 0.95])
def test_all_records_at_once_are_told_apart_no_better(adjacency, rate):
    """Integration: three records of 1 become three of -1, or go, in one sampled release."""
    z, m, x = 2.0, 3, np.linspace(-25, 25, 50_001)
    chances = binom.pmf(range(m + 1), m, rate)
    first = sum(chance * norm.pdf(x, k, z) for k, chance in enumerate(chances))
    other = norm.pdf(x, 0, z)
    if adjacency == "replace":
        other = sum(chance * norm.pdf(x, -k, z) for k, chance in enumerate(chances))
    mu = m * (2 if adjacency == "replace" else 1) / z
    for epsilon in (0.0, 0.5, 2.0):
        for p, q in ((first, other), (other, first)):
            told_apart = float(np.maximum(p - math.exp(epsilon) * q, 0).sum() * (x[1] - x[0]))
            assert told_apart <= delta_of(epsilon, mu) + 1e-9
    whole = as_a_whole([(sampled(z, rate, adjacency), 1)], m)
    assert whole == pytest.approx(epsilon_of(mu, 1e-6))


def test_worked_number():
    """silo:SILO-6: z = 200, 25 releases, 20 records: mu = 1."""
    assert as_a_whole([(sampled(200.0), 25)], 20) == pytest.approx(epsilon_of(1.0, 1e-6))
    assert as_a_whole([(record_event(200.0, 1.0), 25)], 20) == pytest.approx(epsilon_of(1.0, 1e-6))


def test_one_record_as_a_whole_is_never_less_than_one_record():
    event = sampled(3.0, 0.2)
    assert as_a_whole([(event, 7)], 1) >= compose_epsilon([(event, 7)], 1e-6)
    grown = [as_a_whole([(event, 7)], m) for m in (1, 2, 300)]
    assert grown == sorted(grown)
    assert grown[-1] > 1000


def test_every_kind_of_release():
    plain = GaussianEvent(noise_multiplier=10.0)
    assert as_a_whole([(Composed((plain, Mask(1.0))), 4)], 5) == pytest.approx(
        epsilon_of(1.0, 1e-6)
    )
    pure = [(LaplaceEvent(noise_multiplier=20.0), 1), (BoundedEvent(epsilon=0.1), 1)]
    assert as_a_whole(pure, 5, 0.0) == pytest.approx(0.75)
    discrete = as_a_whole([(DiscreteGaussianEvent(noise_multiplier=10.0), 1)], 5)
    assert discrete >= as_a_whole([(plain, 1)], 5)
    assert as_a_whole([(Exact(), 1)], 5) == math.inf


def test_a_statement_is_stepped():
    """silo:SILO-12: five steps of (0.1, 1e-9)."""
    assert as_a_whole([(BoundedEvent(epsilon=0.1, delta=1e-9), 1)], 5) == pytest.approx(
        0.5, abs=1e-3
    )
    assert as_a_whole([(BoundedEvent(epsilon=0.1, delta=1e-9), 1)], 200) == math.inf


def test_what_is_no_number_of_records_is_refused():
    for records in (0, -1, 2.5, True):
        with pytest.raises(PrivacyError, match="holds 1 or more records"):
            as_a_whole([(sampled(1.0), 1)], records)
