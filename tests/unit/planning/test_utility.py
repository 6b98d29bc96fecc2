"""Utility of private averaging before a run (gossip:MUF-4, MUF-6, MUF-7, MUF-9, MUF-X1, MUF-X2,
MUF-X3, DP-8)."""

import math

import numpy as np
import pytest

from bruit.errors import ConfigError
from bruit.graphs import chebyshev_gamma, hypercube, ring, second_eigenvalue, spectral_gap, star
from bruit.planning.utility import (
    accelerated_error,
    accelerated_steps,
    averaging_error,
    butterfly_variance,
    central_error,
    descent_error_order,
    descent_mixing,
    error_at_mean_loss,
    local_error,
    masked_extra_variance,
    randomized_error,
    randomized_order,
    randomized_steps,
    renoised_extra_variance,
    renoised_variance,
    synchronous_order,
    taper,
    variance_at_mean_loss,
)


@pytest.mark.parametrize(
    ("graph", "square", "steps"),
    [(hypercube(11), 1.0, 19), (ring(16), 1.0, 13), (hypercube(4), 0.5, 5)],
)
def test_stopping_times(graph, square, steps):
    """gossip:MUF-4, spread 0.25."""
    assert accelerated_steps(spectral_gap(graph), graph.n, math.sqrt(square)) == steps


def test_exact_errors():
    """gossip:MUF-4: ring(6), x = 1..6, sigma^2 = 0.25, T = 3."""
    graph, values = ring(6), np.arange(1.0, 7)
    gamma = chebyshev_gamma(spectral_gap(graph))
    assert averaging_error(graph, values, 0.5, 3, gamma) == pytest.approx(0.0273250691, rel=1e-8)
    assert averaging_error(graph, values, 0.5, 3) == pytest.approx(0.112482853, rel=1e-8)


def test_bounds_are_above_the_exact_error():
    graph, values = ring(16), (np.arange(16) % 2).astype(float)
    gap, gamma = spectral_gap(graph), chebyshev_gamma(spectral_gap(graph))
    for steps in (0, 3, 13, 30):
        exact = averaging_error(graph, values, 1.0, steps, gamma)
        assert exact <= accelerated_error(gap, 16, 1.0, steps)
    steps = accelerated_steps(gap, 16, 1.0)
    assert accelerated_error(gap, 16, 1.0, steps) <= 3 / 16
    two = np.stack([values, values], axis=1)
    assert averaging_error(graph, two, 1.0, 3) == pytest.approx(
        2 * averaging_error(graph, values, 1.0, 3)
    )


def test_randomized():
    """gossip:MUF-7: ring(6), sigma^2 = 1, spread 0.25: correct 33, printed 17."""
    rate = (1 - second_eigenvalue(ring(6))) / 6
    assert randomized_steps(rate, 6, 1.0) == 33
    assert randomized_steps(2 * rate, 6, 1.0) == 17
    assert randomized_error(rate, 6, 1.0, 33) <= 2 / 6


def test_noise_at_fixed_mean_loss():
    """gossip:MUF-6: hypercube(10), alpha = 2, Delta = 1, epsilon = 0.1."""
    gap = spectral_gap(hypercube(10))
    steps = accelerated_steps(gap, 1024, 1.0, spread=0.25)
    assert steps == 17
    received = {"gossip": 10 * steps, "exact": 92 - 1, "butterfly": 10, "local": 1024, "central": 1}
    expected = [1.66015625, 0.888671875, 0.09765625, 10, 0.009765625]
    for count, variance in zip(received.values(), expected, strict=True):
        assert variance_at_mean_loss(0.1, 2, 1.0, 1024, count) == pytest.approx(variance, rel=1e-9)
    assert error_at_mean_loss(0.1, 2, 1.0, 1024, 170) == pytest.approx(0.00486373901, rel=1e-8)


def test_local_and_central():
    """gossip:DP-8."""
    assert local_error(2, 1.0, 100, 1.0) == pytest.approx(0.01)
    assert central_error(2, 1.0, 100, 1.0) == pytest.approx(0.0001)


def test_the_table():
    """gossip:MUF-6, Table 6.1; every entry capped by local DP."""
    n = 10_000
    assert synchronous_order("arbitrary", n, degree=4, gap=0.25) == pytest.approx(8 / n**2)
    assert randomized_order("arbitrary", n, gap=0.25) == pytest.approx(4 / n**2)
    assert synchronous_order("expander", n) == randomized_order("expander", n) == n**-2
    assert synchronous_order("torus", n, dimension=2) == pytest.approx(2 * n**-1.5)
    assert randomized_order("torus", n, dimension=4) == pytest.approx(n**-1.5)
    assert (synchronous_order("complete", n), randomized_order("complete", n)) == (1 / n, n**-2)
    assert synchronous_order("ring", n) == randomized_order("ring", n) == 1 / n
    assert randomized_order("torus", n, dimension=1) == 1 / n
    with pytest.raises(ConfigError, match="no family 'tree'"):
        synchronous_order("tree", n)
    with pytest.raises(ConfigError, match="gap lies in"):
        randomized_order("arbitrary", n, gap=0.0)


def test_message_noise():
    """gossip:MUF-X1: ring(8), hypercube(11), and the taper on hypercube(4)."""
    assert renoised_extra_variance(ring(8), [0.1] * 4) == pytest.approx(0.00888888889, rel=1e-8)
    assert renoised_extra_variance(hypercube(11), [0.1] * 19) == pytest.approx(
        0.0145138889, rel=1e-8
    )
    tau = taper(spectral_gap(hypercube(4)), 16, 0.2)
    np.testing.assert_allclose(tau, [0.2] * 4 + [0.2 * 0.6**j for j in range(1, 5)])
    assert renoised_variance(hypercube(4), tau) == pytest.approx(1.03473501, rel=1e-8)
    assert renoised_variance(hypercube(4), [0.0] * 4) == pytest.approx(1.0840064, rel=1e-7)
    assert masked_extra_variance(ring(8), 4, 0.1, 0.2) == pytest.approx(
        0.04 + 0.00888888889, rel=1e-8
    )


def test_renoised_variance_is_the_covariance_of_the_protocol():
    """Against linear forms over all noises, one source each, on a graph that is not regular."""
    graph, tau = star(5), [0.3, 0.2, 0.1]
    w = graph.weights.toarray()
    state = np.eye(5, 5 + 25 * 3)
    for t, level in enumerate(tau):
        new = w @ state
        for v in range(5):
            for u in graph.neighbors(v):
                new[v, 5 + 25 * t + 5 * v + u] += level * w[v, u]
        state = new
    assert renoised_variance(graph, tau) == pytest.approx((state**2).sum())
    mean = state.mean(axis=0)
    assert renoised_extra_variance(graph, tau) == pytest.approx(5 * (mean[5:] ** 2).sum())


def test_butterfly_and_descent():
    assert butterfly_variance(1024, 2.0) == 4 / 1024
    assert descent_mixing(0.25, 100) == math.ceil(2 * math.log(100))
    assert descent_mixing(1.0, 1) == 1
    early, late = (descent_error_order(100, rounds, 1.0, 0.1, 1.0, 1.0) for rounds in (10, 200))
    assert late < early
    assert descent_error_order(100, 10**4, 1.0, 0.1, 1.0, 1.0) == pytest.approx(
        1 / (100 * 0.1 * 10**4)
    )


@pytest.mark.parametrize(
    ("make", "word"),
    [
        (lambda: accelerated_steps(0.0, 10, 1.0), "never converges"),
        (lambda: accelerated_steps(0.5, 10, 0.0), "sigma > 0"),
        (lambda: accelerated_error(0.5, 0, 1.0, 3), "n >= 1"),
        (lambda: randomized_steps(2.0, 10, 1.0), r"in \(0, 1\]"),
        (lambda: variance_at_mean_loss(0.0, 2, 1.0, 10, 3), "mean loss is positive"),
        (lambda: butterfly_variance(0, 1.0), "n >= 1"),
        (lambda: descent_error_order(10, 10, 0.1, 1.0, 1.0, 1.0), "smoothness >= strong convexity"),
    ],
)
def test_refusals(make, word):
    with pytest.raises(ConfigError, match=word):
        make()
