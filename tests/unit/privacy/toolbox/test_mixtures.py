"""Mixtures against the worked numbers of gossip:DP-10, walk:F-3, and against integrals."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import logsumexp

from bruit.errors import PrivacyError
from bruit.privacy.toolbox.mixtures import (
    geometric,
    geometric_profile,
    mean_inverse_length,
    mixture,
    published_geometric,
    weak_convexity,
)

# n, alpha, z, E[1/H], weak convexity with 1 + c, with 2, exact with p = 1/n, with p = 2/n
TABLE = [
    (100, 2, 2, 0.046516871, 1.453652205e-2, 2.325843528e-2, 1.209033473e-2, 2.079332392e-2),
    (2000, 8, 12, 0.003802352, 1.261582974e-4, 2.112418003e-4, 1.079065714e-4, 1.965841352e-4),
]


def test_worked_weak_convexity():
    """gossip:DP-10."""
    assert weak_convexity(2, [0.1, 0.2, 0.05], [0.5, 0.3, 0.2]) == pytest.approx(0.144)


@pytest.mark.parametrize(("n", "order", "z", "inverse", "sharp", "printed", "once", "twice"), TABLE)
def test_worked_geometric_laws(n, order, z, inverse, sharp, printed, once, twice):
    """walk:F-3."""
    assert mean_inverse_length(n) == pytest.approx(inverse, abs=5e-10)
    assert published_geometric(order, n, z, printed=False) == pytest.approx(sharp, rel=1e-9)
    assert published_geometric(order, n, z) == pytest.approx(printed, rel=1e-9)
    assert geometric(order, 1 / n, z) == pytest.approx(once, rel=1e-9)
    assert geometric(order, 2 / n, z) == pytest.approx(twice, rel=1e-9)
    i = np.arange(1, 60 * n)
    law, losses = (1 - 1 / n) ** (i - 1.0) / n, order / (2 * z**2 * i)
    assert weak_convexity(order, losses, law) == pytest.approx(sharp, rel=1e-7)
    assert mixture(order, losses, law) == pytest.approx(once, rel=1e-7)


def test_worked_decentralized_admm():
    """walk:ADMM-7: ten participations, n = 1000, alpha = 2, z = sigma / (4 L gamma) = 2."""
    assert 10 * geometric(2, 1 / 1000, 2.0) == pytest.approx(1.781601803e-2, rel=1e-9)
    assert 10 * geometric(2, 2 / 1000, 2.0) == pytest.approx(3.217086653e-2, rel=1e-9)


def test_where_the_lemma_does_not_apply_the_largest_is_taken():
    """gossip:DP-10: c = (alpha - 1) max > 1."""
    assert weak_convexity(4, [0.4, 0.1], [0.5, 0.5]) == 0.4
    assert weak_convexity(4, [0.3, 0.1], [0.0, 0.5]) == pytest.approx(0.1 * min(1, 1.3 * 0.5))
    with pytest.raises(PrivacyError, match=r"z\*\*2 >= alpha \(alpha - 1\) / 2"):
        published_geometric(8, 100, 2.0)


@pytest.mark.parametrize("order", [1.5, 2.0, 6.0])
def test_the_bound_is_an_equality_when_the_index_is_seen(order):
    """walk:F-3: the divergence of the pair (index, N(0, 1)) against (index, N(mu_i, 1)),
    integrated."""
    mu, law = np.array([0.3, 1.0, 2.0]), np.array([0.5, 0.3, 0.2])
    y = np.linspace(-60, 60, 100_001)
    moment = sum(
        w
        * np.sum(np.exp(-order * (y - m) ** 2 / 2 + (order - 1) * y**2 / 2))
        * (y[1] - y[0])
        / math.sqrt(2 * math.pi)
        for m, w in zip(mu, law, strict=True)
    )
    assert mixture(order, order * mu**2 / 2, law) == pytest.approx(
        math.log(moment) / (order - 1), rel=1e-9
    )


@pytest.mark.parametrize("order", [1.5, 2.0, 6.0])
def test_the_bound_is_above_a_hidden_index(order):
    mu, law = np.array([0.0, 0.5, 1.5]), np.array([0.6, 0.3, 0.1])
    y = np.linspace(-60, 60, 100_001)
    cell = (y[1] - y[0]) / math.sqrt(2 * math.pi)
    mixed = logsumexp(np.log(law)[:, None] - (y - mu[:, None]) ** 2 / 2, axis=0)
    exact = (logsumexp(order * mixed + (order - 1) * y**2 / 2) + math.log(cell)) / (order - 1)
    assert exact <= mixture(order, order * mu**2 / 2, law)


losses = st.lists(st.floats(0, 3), min_size=1, max_size=6)


@settings(deadline=None)
@given(losses, st.data(), st.floats(1.01, 50))
def test_exact_is_below_weak_convexity_and_the_largest(values, data, order):
    law = np.array(data.draw(st.lists(st.floats(0, 1), min_size=len(values), max_size=len(values))))
    law = law / max(1.0, law.sum())
    exact = mixture(order, values, law)
    assert exact <= weak_convexity(order, values, law) * (1 + 1e-9) + 1e-12
    assert law @ np.array(values) <= exact * (1 + 1e-9) + 1e-12  # Jensen
    larger = mixture(order, [x + 0.1 for x in values], law)
    assert larger >= exact * (1 - 1e-12)


def test_large_losses_do_not_overflow():
    assert mixture(100, [1e4, 1.0], [1e-3, 0.5]) == pytest.approx(
        1e4 + math.log(1e-3) / 99, rel=1e-12
    )
    assert mixture(2, [math.inf, 1.0], [0.0, 1.0]) == pytest.approx(1.0)
    assert mixture(2, [math.inf, 1.0], [0.1, 0.9]) == math.inf
    assert mixture(2, [0.0, 0.0], [0.5, 0.5]) == 0.0
    assert geometric(2, 1.0, 2.0) == pytest.approx(0.25)


def test_a_geometric_profile_keeps_all_mass():
    profile = geometric_profile(0.01, 2.0)
    assert profile.weights.sum() == pytest.approx(1.0, abs=1e-12)
    assert 0 < profile.epsilon(1e-6) < geometric_profile(1.0, 2.0).epsilon(1e-6)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: mixture(1.0, [1.0], [1.0]), "order must be a number above 1"),
        (lambda: mixture(2.0, [1.0], [0.5, 0.5]), "one weight for each divergence"),
        (lambda: mixture(2.0, [-1.0], [1.0]), "must be numbers >= 0"),
        (
            lambda: weak_convexity(2.0, [1.0, 1.0], [0.7, 0.7]),
            "sum to at most 1, found a sum of 1.4",
        ),
        (
            lambda: geometric(2.0, 0.0, 1.0),
            r"chance to be seen at a step must be in \(0, 1\], found 0",
        ),
        (lambda: geometric(2.0, 0.5, 0.0), "noise multiplier must be > 0"),
        (lambda: geometric(2.0, 1e-12, 1.0), "give at least 1e-6"),
        (lambda: mean_inverse_length(1), "at least 2 peers, found 1"),
        (lambda: published_geometric(1.0, 10, 1.0), "order above 1"),
    ],
)
def test_refusals(call, words):
    with pytest.raises(PrivacyError, match=words):
        call()
