"""Do the draws follow their laws? Seeded tests; each states its false-alarm probability and its
power.

Kolmogorov-Smirnov tests use the Dvoretzky-Kiefer-Wolfowitz bound P(sup |F_n - F| > t) <= 2 exp(-2 n
t**2), valid for every n: t is set for 1e-6, and a law at distance 2 t or more is caught with
probability >= 1 - 1e-6.
"""

import math

import numpy as np
import pytest
from scipy import stats

from bruit.mechanisms import DiscreteGaussian, Gaussian, Laplace
from bruit.mechanisms.discrete_laplace import Draws, discrete_laplace
from bruit.randomness import Replay, Secure

ALARM = 1e-6
DICE, LANES = Replay(20240), np.arange(20_000)
KINDS = {"uniform": stats.uniform, "normal": stats.norm}


def ks_rejects(sample, law):
    sample = np.sort(np.asarray(sample, dtype=np.float64).reshape(-1))
    n, cdf = sample.size, law.cdf(sample)
    distance = max(np.max(np.arange(1, n + 1) / n - cdf), np.max(cdf - np.arange(n) / n))
    return distance > math.sqrt(math.log(2 / ALARM) / (2 * n))


def correlation_rejects(x, y, tests=1):
    """|mean of x y| for independent standardized x, y: normal to first order at n = 10**6;
    two-sided ALARM / tests."""
    product = ((x - x.mean()) / x.std() * (y - y.mean()) / y.std()).reshape(-1)
    return abs(product.mean()) * math.sqrt(product.size) > stats.norm.isf(ALARM / tests / 2)


def chi_square_rejects(sample, weight, reach):
    """Pearson's test against the exact probabilities weight(k) / sum over -reach..reach, cells of
    expectation >= 20."""
    n, support = sample.size, np.arange(-reach, reach + 1)
    probability = weight(support)
    probability /= probability.sum()
    body = support[n * probability >= 20]
    counts = np.array([np.sum(sample == k) for k in body])
    expected = n * probability[np.isin(support, body)]
    counts, expected = np.append(counts, n - counts.sum()), np.append(expected, n - expected.sum())
    if expected[-1] < 20:  # fold a thin rest into the center cell
        counts[len(body) // 2] += counts[-1]
        expected[len(body) // 2] += expected[-1]
        counts, expected = counts[:-1], expected[:-1]
    return np.sum((counts - expected) ** 2 / expected) > stats.chi2.isf(ALARM, len(counts) - 1)


@pytest.mark.parametrize("kind", KINDS)
def test_laws(kind):
    """False alarm 1e-6. Power: n = 10**6, distance 5.4e-3 (a scale wrong by 2.5 %) is caught, as
    shown."""
    draws = getattr(DICE, kind)("noise", LANES, 1, 0, 50)
    assert not ks_rejects(draws, KINDS[kind])
    assert ks_rejects(draws * 1.025, KINDS[kind])


def test_law_of_secure_dice():
    """False alarm 1e-6 on each run (fresh key). Power as above."""
    assert not ks_rejects(Secure().normal("noise", LANES, 1, 0, 50), stats.norm)


def test_law_of_single_precision_normals():
    """False alarm 1e-6. Power: distance 5.4e-3 at n = 10**6."""
    draws = DICE.normal32("noise", LANES, 1, 0, 50)
    assert not ks_rejects(draws, stats.norm)
    assert ks_rejects(draws * np.float32(1.025), stats.norm)


@pytest.mark.parametrize("axis", ["lanes", "steps", "uses", "runs"])
def test_law_across_each_part_of_the_address(axis):
    """False alarm 1e-6. Power: distance 1.2e-2 at n = 2 * 10**5, e.g. 1.2 % of repeated values."""
    n = 200_000
    if axis == "lanes":
        draws = DICE.normal("a", np.arange(n) << 20, 0)
    elif axis == "steps":
        draws = DICE.normal("a", np.zeros(n, dtype=np.int64), np.arange(n))
    elif axis == "uses":
        draws = np.stack([DICE.normal("a", np.arange(n // 250), 0, use) for use in range(250)])
    else:
        draws = DICE.normal("a", np.zeros(n // 4, dtype=np.int64), 0, 0, 4, run=np.arange(n // 4))
    assert not ks_rejects(draws, stats.norm)
    assert np.unique(draws).size == n


def test_moments_of_normals():
    """False alarm 1e-6 in all (three two-sided tests). Power: n = 4 * 10**6; a mean off by 0.005,
    or a variance or a fourth moment wrong by 1 %, is more than twice the threshold."""
    x = DICE.normal("noise", np.arange(4000), 2, 0, 1000).reshape(-1)
    z, n = stats.norm.isf(ALARM / 6), x.size
    assert abs(x.mean()) < z / math.sqrt(n)
    assert abs((x**2).mean() - 1) < z * math.sqrt(2 / n)
    assert abs((x**4).mean() - 3) < z * math.sqrt(96 / n)
    assert abs((1.005 * x) ** 2).mean() - 1 > z * math.sqrt(2 / n)


@pytest.mark.parametrize("threshold", [3.0, 4.0, 4.5])
def test_tails_of_normals(threshold):
    """Exact binomial test on n = 4 * 10**6 draws, false alarm 1e-6. Power: at 4.0 (253 expected), a
    tail twice too heavy or half too light is caught with probability > 0.999."""
    x = DICE.normal("noise", np.arange(4000), 2, 0, 1000)
    for tail in (x > threshold, x < -threshold):
        law = stats.binom(x.size, stats.norm.sf(threshold))
        assert law.ppf(ALARM / 4) <= tail.sum() <= law.isf(ALARM / 4)


def test_tails_of_laplace_noise():
    """Exact binomial test at 10 scales, 4 * 10**6 draws, 91 expected a side, false alarm 1e-6.
    Power: a factor 2."""
    x = Laplace(clip=1.0, scale=1.0).noise(DICE, np.arange(4000), 2, 0, 1000)
    law = stats.binom(x.size, math.exp(-10) / 2)
    for tail in (x > 10, x < -10):
        assert law.ppf(ALARM / 4) <= tail.sum() <= law.isf(ALARM / 4)


def test_box_muller_partners_and_neighbors_are_uncorrelated():
    """False alarm 1e-6 in all (8 tests, n >= 10**6). Power: a correlation of 0.011 is twice the
    threshold."""
    x = DICE.normal("noise", LANES, 3, 0, 100)
    pairs = [
        (x[:, 0::2], x[:, 1::2]),
        (x[:, 1:-1:2], x[:, 2::2]),
        (x[:-1], x[1:]),
        (x, DICE.normal("noise", LANES, 4, 0, 100)),
    ]
    for a, b in pairs:
        assert not correlation_rejects(a, b, 8)
        assert not correlation_rejects(a**2, b**2, 8)
    assert correlation_rejects(x[:, 0::2], x[:, 1::2] + 0.012 * x[:, 0::2])


def test_every_bit_of_a_word_is_fair():
    """64 exact binomial tests on 10**6 words, false alarm 1e-6 in all. Power: a bias of 0.6 % is
    twice the limit."""
    words = DICE.words("noise", LANES, 5, 0, 50)
    law = stats.binom(words.size, 0.5)
    for bit in range(64):
        ones = int(((words >> np.uint64(bit)) & np.uint64(1)).sum())
        assert law.ppf(ALARM / 128) <= ones <= law.isf(ALARM / 128)


@pytest.mark.parametrize("s", [0.3, 1.0, 2.7, 20.0])
def test_discrete_gaussian_probabilities(s):
    """Chi-square on 4 * 10**5 draws, false alarm 1e-6 (asymptotic law). Power: a parameter wrong by
    3 % is caught with probability > 0.999 (noncentrality 330 at s = 0.3, 720 above 1, against
    thresholds of 28 to 280), as shown."""

    def draw(parameter):
        mechanism = DiscreteGaussian(clip=1.0, sigma=parameter, grid=1.0)
        return mechanism.noise(DICE, np.arange(400), 0, 0, 1000).astype(np.int64)

    def weight(k):
        return np.exp(-(k**2) / (2 * s * s))

    assert not chi_square_rejects(draw(s), weight, math.ceil(12 * s) + 2)
    assert chi_square_rejects(draw(s * 1.03), weight, math.ceil(12 * s) + 2)


def test_discrete_gaussian_of_large_parameter_is_close_to_normal():
    """KS at n = 4 * 10**5: false alarm 1e-6 (the law differs from the normal one by less than 1e-6
    at s = 10**6). Power: distance 8.5e-3."""
    noise = DiscreteGaussian(clip=1.0, sigma=1e6, grid=1.0).noise(DICE, np.arange(400), 1, 0, 1000)
    assert not ks_rejects(noise / 1e6, stats.norm)
    assert ks_rejects(noise / 1.04e6, stats.norm)


@pytest.mark.parametrize("s", [1.0, 2.7, 20.0])
def test_discrete_laplace_probabilities(s):
    """Chi-square on 4 * 10**5 draws, false alarm 1e-6 (asymptotic law). Power: a scale wrong by 3 %
    is caught with probability > 0.999 (noncentrality above 150 against thresholds of 45 to 250), as
    shown."""

    def draw(scale):
        return discrete_laplace(Draws(DICE, "noise", np.arange(400), 0), scale, 1000)

    assert not chi_square_rejects(draw(s), lambda k: np.exp(-np.abs(k) / s), math.ceil(40 * s))
    assert chi_square_rejects(draw(s * 1.03), lambda k: np.exp(-np.abs(k) / s), math.ceil(40 * s))


@pytest.mark.parametrize(
    ("mechanism", "law"),
    [
        (Gaussian(clip=1.0, sigma=0.7), stats.norm(scale=0.7)),
        (Gaussian(clip=1.0, sigma=0.7, arithmetic="ideal"), stats.norm(scale=0.7)),
        (Laplace(clip=1.0, scale=0.7), stats.laplace(scale=0.7)),
    ],
)
def test_releases_are_centered_on_the_clipped_value(mechanism, law):
    """KS at n = 4 * 10**5, false alarm 1e-6 each (the lattice moves the law by less than 1e-6).
    Power: distance 8.5e-3, e.g. a shift by 0.03 sigma, as shown."""
    values = np.zeros((4000, 100))
    values[:, 0] = 0.5  # inside the ball: the release is centered on it
    noise = mechanism.release(values, DICE, np.arange(4000), 7, 0) - values
    assert not ks_rejects(noise, law)
    assert ks_rejects(noise + 0.03 * mechanism.sigma, law)
