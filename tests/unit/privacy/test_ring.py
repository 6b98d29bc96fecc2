"""Private sum and histogram on a ring: worked numbers, and a brute-force oracle of linear Gaussian
views."""

import math

import numpy as np
import pytest

from bruit.errors import PrivacyError
from bruit.privacy.ahead.ring import (
    additive_guarantee,
    advanced_composition,
    error_std,
    ring_losses,
    ring_sum_guarantee,
    shared_noise,
    spaced_noise,
    with_last_noise,
)
from bruit.privacy.ahead.ring_histogram import (
    RingHistogram,
    conditional_guarantee,
    gamma_b1,
    gamma_tight,
    histogram_guarantee,
)
from bruit.privacy.exact.rows import user_loss
from bruit.privacy.formulas import randomized_response as rr
from bruit.privacy.formulas.shuffling import bound_b1, bound_d3, closed
from bruit.privacy.toolbox.gaussian import mu_of
from papers.printed.ring import published_debiased, published_gamma, published_shared_noise


def oracle(
    n: int, variances: np.ndarray, observers: list[int], published: bool = False
) -> list[float]:
    """gossip:LG-1 on the token itself: every value an observer receives, its own values and noises
    taken out."""
    hops = len(variances)
    honest = np.array([hop for hop in range(hops) if hop % n not in observers])
    seen = [hop for hop in range(hops) if hop % n in observers and hop > 0] + (
        [hops] if published else []
    )
    rows = np.array(
        [[1.0 if hop < arrival else 0.0 for hop in honest] for arrival in seen]
    ).reshape(len(seen), -1)
    noise = rows * np.sqrt(variances[honest])
    found = []
    for u in range(n):
        columns = np.flatnonzero(honest % n == u)
        found.append(
            math.nan if u in observers else user_loss(rows, noise, columns) if len(seen) else 0.0
        )
    return found


@pytest.mark.parametrize(("n", "cycles"), [(3, 2), (5, 3), (4, 2), (7, 2), (6, 4), (2, 3)])
@pytest.mark.parametrize("published", [False, True])
@pytest.mark.parametrize("make", [spaced_noise, shared_noise])
@pytest.mark.parametrize("last", [False, True])
def test_against_the_oracle(n, cycles, published, make, last):
    """Every observer, and two colluders, exactly (gossip:RING-1, RING-2, RING-4, LG-1)."""
    noise = with_last_noise(make(n, cycles)) if last else make(n, cycles)
    sets = [[v] for v in range(n)] + ([[0, 2], [n - 2, n - 1]] if n > 3 else [])
    for observers in sets:
        found = ring_losses(n, noise, observers, published)
        np.testing.assert_allclose(found, oracle(n, noise, observers, published), rtol=1e-9)


def test_worked_sums():
    """gossip:RING-1, n = 5, K = 3 (peers counted from 0), and the closed form for every pair."""
    assert (np.flatnonzero(spaced_noise(5, 3)) + 1).tolist() == [1, 5, 9, 13]
    np.testing.assert_array_equal(ring_losses(5, spaced_noise(5, 3), 2), [3, 3, np.nan, 2, 2])
    np.testing.assert_array_equal(ring_losses(5, spaced_noise(5, 3), 0), [np.nan, 2, 2, 2, 2])
    for n, cycles in ((3, 1), (9, 4)):
        for v in range(n):
            expected = [cycles if u < v else cycles - 1 for u in range(n)]
            found = ring_losses(n, spaced_noise(n, cycles), v)
            np.testing.assert_array_equal(np.delete(found, v), np.delete(expected, v))


def test_noise_counts():
    """gossip:RING-1, perso:NETDP-2: ceil(K n / (n - 1)) noises."""
    assert int(spaced_noise(100, 10).sum()) == 11
    assert error_std(spaced_noise(100, 10)) * 4 == pytest.approx(13.2664991614, rel=1e-9)
    assert math.sqrt(1000) * 4 == pytest.approx(126.4911064067)
    for n, cycles, places in ((3, 1, [0, 2]), (5, 2, [0, 4, 8]), (4, 3, [0, 3, 6, 9])):
        assert np.flatnonzero(spaced_noise(n, cycles)).tolist() == places
    assert shared_noise(5, 3).sum() == pytest.approx(1 + 14 / 4)


def test_exact_against_advanced_composition():
    """gossip:RING-1: n = 100, K = 10, per-visit target (0.1, 1e-6)."""
    z = 1 / mu_of(0.1, 1e-6)
    assert z == pytest.approx(36.3046904, rel=1e-8)
    about = ring_sum_guarantee(100, spaced_noise(100, 10), 3, 50, z)
    assert about.loss == 10.0
    assert about.epsilon(2e-5) == pytest.approx(0.276917963, rel=1e-8)
    assert advanced_composition(10, 0.1, 1e-6, 1e-5) == pytest.approx((1.62259805, 2e-5), rel=1e-8)
    assert advanced_composition(10, 0.3, 1e-7, 1e-6) == pytest.approx(
        (6.0363508315, 2e-6), rel=1e-9
    )


def test_additive_mechanisms():
    """gossip:RING-1: composition of any additive noise, never above advanced composition."""
    about = additive_guarantee(100, 10, 0.1, 1e-6)
    assert about.epsilon(2e-5) <= 1.62259805
    assert about.epsilon(2e-5) <= 1.0 + 1e-3  # basic composition
    assert any("not randomized response" in str(h) for h in about.hypotheses)


def test_randomized_response_does_not_protect_the_others():
    """gossip:RING-1: three peers, RR(x_0) + x_1: the value 2 has probability 0 unless x_1 = 1."""
    truth, other = rr.probabilities(2, 1.0)
    of = {x1: {y0 + x1: truth if y0 == 1 else other for y0 in (0, 1)} for x1 in (0, 1)}  # x_0 = 1
    assert of[1][2] > 0
    assert 2 not in of[0]


def test_adaptive_contributions_lose_more():
    """gossip:RING-1: a peer that adds g times the token between u and the noise makes u lose (1 +
    g)^2."""
    for g in (0.5, 2.0):
        assert user_loss(np.array([[1.0 + g]]), np.array([[1.0]]), [0]) == pytest.approx(
            (1 + g) ** 2
        )


def test_shared_noise():
    """gossip:RING-2: the printed share is too small; colluders {0, 2} around peer 1."""
    printed, right = published_shared_noise(5, 3), shared_noise(5, 3)
    worst = [
        max(np.nanmax(ring_losses(5, noise, v)) for v in range(5)) for noise in (printed, right)
    ]
    assert worst == pytest.approx([3.5, 3.0])
    assert ring_losses(5, right, [0, 2])[1] == pytest.approx(12.0)


@pytest.mark.parametrize(
    ("observers", "of", "expected"), [((0, 2), 1, 12.0), ((0, 3), 1, 6.0), ((0, 4), 2, 4.0)]
)
def test_colluders(observers, of, expected):
    """gossip:RING-4: K (n - 1) / h with shares; nothing hides without."""
    assert ring_losses(5, shared_noise(5, 3), observers)[of] == pytest.approx(expected)


def test_spaced_noise_has_no_collusion_bound():
    """gossip:RING-4, NDP-2: infinite between two colluders unless the step is noisy."""
    about = ring_sum_guarantee(5, spaced_noise(5, 3), 2, (1, 3), 4.0)
    assert about.loss == math.inf
    assert about.epsilon(1e-6) == math.inf
    assert "colluding" in about.notes[0]


@pytest.mark.parametrize(("n", "cycles"), [(5, 3), (4, 2), (7, 2), (6, 4)])
def test_publishing(n, cycles):
    """gossip:RING-4: infinite as it is, at most K with one more noise; shares alone are finite but
    weak."""
    assert (
        max(np.nanmax(ring_losses(n, spaced_noise(n, cycles), v, True)) for v in range(n))
        == math.inf
    )
    fixed = with_last_noise(spaced_noise(n, cycles))
    assert max(np.nanmax(ring_losses(n, fixed, v, True)) for v in range(n)) <= cycles + 1e-12
    weak = max(np.nanmax(ring_losses(n, shared_noise(n, cycles), v, True)) for v in range(n))
    assert weak == pytest.approx(cycles - 1 + n - 1)


def test_published_view():
    """gossip:RING-4, n = 5, K = 3, v = 3."""
    np.testing.assert_array_equal(
        ring_losses(5, spaced_noise(5, 3), 2, True), [3, 3, np.nan, np.inf, np.inf]
    )


def test_histogram_calibration():
    """gossip:RING-3, perso:NETDP-3: corrected, and as printed."""
    assert gamma_b1(0.2, 1e-6, 10_000, 10) == pytest.approx(0.946449475, rel=1e-9)
    assert gamma_b1(0.2, 1e-6, 10_000, 4) == pytest.approx(0.8760778336, rel=1e-9)
    assert rr.epsilon_of_gamma(10, gamma_b1(0.2, 1e-6, 10_000, 10)) == pytest.approx(
        0.448399666, rel=1e-8
    )
    assert published_gamma(0.2, 1e-6, 10_000, 10) == pytest.approx(0.990755655, rel=1e-9)
    assert published_gamma(0.2, 1e-6, 10_000, 4) == pytest.approx(0.9772052226, rel=1e-9)
    assert rr.gamma(4, 0.2) == pytest.approx(0.9475523254, rel=1e-9)
    assert published_gamma(0.2, 1e-6, 10_000, 4) > rr.gamma(4, 0.2) > gamma_b1(0.2, 1e-6, 10_000, 4)
    assert gamma_tight(0.2, 1e-6, 10_000, 10) < gamma_b1(0.2, 1e-6, 10_000, 10)


def test_shuffle_bounds():
    """gossip:RING-3 at 0.5, 10^4 reports, 1e-6; the limit of B.1 is excluded."""
    assert bound_b1(0.5 - 1e-12, 10_000, 1e-6) == pytest.approx(0.223015331, rel=1e-8)
    assert bound_d3(0.5, 10_000, 1e-6) == pytest.approx(0.0938681619, rel=1e-8)


def test_debiasing():
    """gossip:RING-3, perso:NETDP-3; counts sum to n K."""
    found = RingHistogram(1000, 1, 4, 0.2).debiased(np.array([500, 380, 200, 320]))
    np.testing.assert_allclose(found, [500, 350, 125, 275])
    other = RingHistogram(10, 2, 2, 0.4)
    np.testing.assert_allclose(other.debiased(np.array([15, 9])), [15, 5])
    np.testing.assert_allclose(
        published_debiased(np.array([15, 9]), 0.4), [24.666667, 14.666667], rtol=1e-6
    )
    assert other.expected_random() == pytest.approx(0.4 * 10 * 3)


def test_debiasing_is_unbiased():
    """By the expected token of a known histogram, with fresh elements before publishing."""
    histogram = RingHistogram(50, 2, 5, 0.3)
    truth = np.array([40.0, 30.0, 20.0, 10.0, 0.0])
    expected = 0.7 * truth + 0.3 * 50 * 3 / 5
    np.testing.assert_allclose(histogram.debiased(expected), truth, atol=1e-9)
    np.testing.assert_allclose(histogram.debiased(expected + 15 / 5, fresh=15.0), truth, atol=1e-9)


def test_histogram_guarantees():
    """gossip:RING-3: the first passage is not covered by a shuffle theorem, so it costs a whole
    report."""
    histogram = RingHistogram(10_001, 4, 10, gamma_b1(0.2, 1e-6, 10_000, 10))
    proven, claimed = histogram_guarantee(histogram, 1e-7), conditional_guarantee(histogram, 1e-7)
    assert (proven.status, claimed.status) == ("proven", "heuristic")
    local, one = histogram.local_epsilon, closed(histogram.local_epsilon, 10_000, 1e-7)[0]
    assert claimed.epsilon(1e-6) <= 4 * one + 1e-3
    assert claimed.epsilon(1e-6) < proven.epsilon(1e-6) <= local + 3 * one + 1e-3
    assert proven.epsilon(1e-6) >= local
    assert histogram_guarantee(histogram, 1e-7, published=True).epsilon(1e-6) > proven.epsilon(1e-6)
    assert conditional_guarantee(histogram, 1e-7, published=True).epsilon(1e-6) > claimed.epsilon(
        1e-6
    )
    once = RingHistogram(10_001, 1, 10, histogram.gamma)
    assert histogram_guarantee(once).epsilon(1e-6) == pytest.approx(local, rel=1e-3)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: spaced_noise(1, 3), "3 peers or more"),
        (lambda: shared_noise(5, 0), "at least once"),
        (lambda: ring_losses(5, np.ones(7), 0), "whole cycles"),
        (lambda: ring_losses(5, -np.ones(5), 0), ">= 0"),
        (lambda: ring_losses(3, np.ones(3), (0, 1, 2)), "all 3 peers are observers"),
        (lambda: ring_losses(5, np.ones(5), 9), "peers are 0..4"),
        (lambda: ring_sum_guarantee(5, np.ones(5), 1, (1, 2), 1.0), "nobody has secrets"),
        (lambda: ring_sum_guarantee(5, np.ones(5), 1, 2, -1.0), ">= 0"),
        (lambda: additive_guarantee(1, 3, 0.1), "3 peers or more"),
        (lambda: additive_guarantee(5, 3, -0.1), "epsilon >= 0"),
        (lambda: RingHistogram(2, 1, 2, 0.5), "3 peers"),
        (lambda: RingHistogram(5, 1, 2, 1.0), "gamma"),
        (
            lambda: RingHistogram(5, 1, 3, 0.5).debiased(np.ones(2)),
            "one count for each of 3 values",
        ),
        (lambda: gamma_b1(0.5, 1e-6, 10_000, 10), "B.1 needs"),
        (lambda: gamma_b1(0.01, 1e-6, 999, 10), "B.1 needs"),
        (lambda: gamma_b1(0.2, 1.0, 10_000, 10), "strictly between 0 and 1"),
        (lambda: published_gamma(0.0, 1e-6, 100, 2), "positive"),
    ],
)
def test_refusals(call, said):
    with pytest.raises(PrivacyError, match=said):
        call()
