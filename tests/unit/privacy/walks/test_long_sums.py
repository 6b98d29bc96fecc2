"""Sums of long walks: the renewal recursion by Fourier transforms, rounded up (walk:RW-1)."""

import math

import numpy as np
import pytest

from bruit.errors import ConfigError
from bruit.privacy.ahead.walk_sum import sum_divergence, summation
from bruit.privacy.toolbox import renewal
from bruit.privacy.toolbox.renewal import UniformWalk, walk_moment


@pytest.mark.parametrize(
    ("n", "steps", "scale"),
    [
        (20, 300, 0.5),
        (1000, 900, 0.05),
        (1000, 900, 2.0),
        (50, 700, 1.0),
        (3, 500, 0.2),
        (2, 300, 0.1),
        (7, 400, 1.9),
    ],
)
@pytest.mark.parametrize("published", [True, False])
@pytest.mark.parametrize("begins", [True, False])
def test_long_walks_are_rounded_up_and_little(n, steps, scale, published, begins, monkeypatch):
    """By Fourier transforms: never below the recursion, but for its own 1e-13 a step, and not 1e-8
    above."""
    walk = UniformWalk(n, 1, begins)
    direct = walk_moment(walk, scale, steps, published)
    monkeypatch.setattr(renewal, "LONG", 0)
    fast = walk_moment(walk, scale, steps, published)
    assert direct - 1e-13 * steps * max(1.0, direct) <= fast <= direct + 1e-8 * max(1.0, direct)


def test_the_error_that_is_added_covers_that_of_the_transforms(monkeypatch):
    """With noise of the size the bound allows in every transform, the answer is still not below the
    true one."""
    import scipy.fft

    walk, honest, rng = UniformWalk(200), scipy.fft.fft, np.random.default_rng(0)
    direct = walk_moment(walk, 0.4, 1500, True)

    def noisy(rows, points):
        found, most = (
            honest(rows, points),
            8 * (points.bit_length() - 1) * 2.0**-53 * np.abs(rows).sum(),
        )
        return found + most * np.exp(2j * np.pi * rng.random(points))

    monkeypatch.setattr(renewal, "LONG", 0)
    monkeypatch.setattr(scipy.fft, "fft", noisy)
    assert all(walk_moment(walk, 0.4, 1500, True) >= direct for _ in range(10))


def test_a_long_walk_is_not_a_square_of_steps(monkeypatch):
    """n = 1000, T = 10^5: the recursion makes T^2 / 2 products for each of 41 orders, and for each
    tilt of a law."""
    asked = []
    monkeypatch.setattr(
        renewal, "moments", lambda scale, chance, length, begins=False: np.ones(length + 1)
    )
    monkeypatch.setattr(renewal, "_renewed_fast", lambda *given: asked.append(given) or 0.1)
    assert sum_divergence(1000, 100_000, 2.0, 20.0) == 0.1
    assert len(asked) == 1


def test_moments_that_overflow_are_not_computed(monkeypatch):
    """n = 1000, T = 10^5 did not end: of large orders all T^2 / 2 pairs (j, k) were added up, to
    infinity."""
    monkeypatch.setattr(renewal, "moments", lambda *_, **__: pytest.fail("computed"))
    assert walk_moment(UniformWalk(1000), 20.0, 100_000, True) == math.inf


def test_walks_too_long_for_the_exact_law_take_orders():
    said = summation(1000, 100_000, 20.0)
    assert "100000 steps, renyi route" in said.notes
    assert "6 steps, exact route" in summation(3, 6, 1.5).notes
    with pytest.raises(ConfigError, match="too long to compute"):
        summation(1000, 100_000, 20.0, route="exact")


@pytest.mark.slow
def test_a_thousand_peers_and_a_hundred_thousand_steps(monkeypatch):
    """By transforms, and by the plain recursion of T^2 / 2 products."""
    fast = sum_divergence(1000, 100_000, 8.0, 20.0)
    monkeypatch.setattr(renewal, "LONG", 100_000)
    direct = sum_divergence(1000, 100_000, 8.0, 20.0)
    assert direct - 1e-12 <= fast <= direct + 1e-8
