"""The least noise for releases about one record (silo:SILO-2)."""

import math

import pytest

from bruit.errors import ConfigError, PrivacyError
from bruit.privacy.calibrate import least_noise_multiplier
from bruit.privacy.events import record_event
from bruit.privacy.toolbox.gaussian import mu_of
from bruit.privacy.toolbox.pld import compose_epsilon


@pytest.mark.parametrize(("adjacency", "moved"), [("replace", 2), ("add-remove", 1)])
def test_without_a_sample_it_is_the_gaussian_formula(adjacency, moved):
    found = least_noise_multiplier(0.7, 1e-5, 9, 1.0, adjacency)
    assert found == pytest.approx(3 * moved / mu_of(0.7, 1e-5), rel=1e-9)
    more = least_noise_multiplier(0.7, 1e-5, 9, 1.0, adjacency, rounding=1e-9)
    assert more > found * (1 + 1e-6)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("adjacency", "epsilon", "z"), [("add-remove", 1.7921, 2.0), ("replace", 3.3178, 2.0)]
)
def test_the_worked_numbers_backwards(adjacency, epsilon, z):
    """silo:SILO-2: q = 0.05, 200 releases, delta = 1e-6."""
    found = least_noise_multiplier(epsilon, 1e-6, 200, 0.05, adjacency)
    assert found == pytest.approx(z, rel=1e-3)


@pytest.mark.parametrize("adjacency", ["replace", "add-remove"])
def test_what_is_returned_meets_the_target_and_a_little_less_does_not(adjacency):
    found = least_noise_multiplier(0.5, 1e-5, 12, 0.2, adjacency, rounding=1e-20)

    def cost(z):
        return compose_epsilon([(record_event(z, 0.2, adjacency, 1e-20), 12)], 1e-5)

    assert cost(found) <= 0.5 < cost(found * 0.999)


def test_what_makes_no_sense_is_refused():
    with pytest.raises(ConfigError, match="1 or more releases, found 0"):
        least_noise_multiplier(1.0, 1e-5, 0)
    with pytest.raises(PrivacyError, match="a chance between 0 and 1, found 0"):
        least_noise_multiplier(1.0, 1e-5, 1, 0.0)
    with pytest.raises(PrivacyError, match="found 'user'"):
        least_noise_multiplier(1.0, 1e-5, 1, 0.5, "user")
    with pytest.raises(PrivacyError, match="no amount of noise"):
        least_noise_multiplier(0.5, 1e-5, 1, 0.5, rounding=10.0)
    with pytest.raises(ConfigError, match="a privacy target must be a number >= 0"):
        least_noise_multiplier(math.nan, 1e-5, 1)
