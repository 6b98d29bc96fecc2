"""Binomial noise is accounted exactly: against exact fractions, brute force over views, and
Gaussian limits."""

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from scipy.stats import norm

from bruit.errors import PrivacyError
from bruit.graphs import complete, from_edges, path, star
from bruit.privacy.ahead.gopa_binomial import (
    calibrated_coins,
    gopa_binomial_guarantee,
    least_coins,
    worst_binomial_epsilon,
)
from bruit.privacy.binomial_profile import BinomialProfile
from bruit.privacy.composition import compose
from bruit.privacy.profile import GaussianProfile
from bruit.privacy.toolbox.binomial import binomial_delta, log_law, losses


def exact_delta(epsilon, trials, shift):
    """sum of max(0, P - e^epsilon Q) in fractions; e^epsilon is a fraction of 60 digits' worth of
    float."""
    grow = Fraction(math.exp(epsilon))
    law = [Fraction(math.comb(trials, s), 2**trials) for s in range(trials + 1)]
    return float(
        sum(
            max(Fraction(0), p - grow * (law[s - shift] if s >= shift else 0))
            for s, p in enumerate(law)
        )
    )


@pytest.mark.parametrize(
    ("trials", "shift"), [(1, 1), (2, 1), (7, 3), (20, 20), (20, 25), (100, 4), (601, 9)]
)
@pytest.mark.parametrize("epsilon", [0.0, 0.3, 1.5, 4.0])
def test_delta_against_fractions(trials, shift, epsilon):
    wanted, found = exact_delta(epsilon, trials, shift), binomial_delta(epsilon, trials, shift)
    assert wanted <= found * (1 + 1e-12) + 1e-300
    assert found <= min(1.0, wanted * (1 + 1e-8)) + 1e-15


def test_tiny_deltas_stay_exact():
    assert binomial_delta(1.5, 400, 3) == pytest.approx(exact_delta(1.5, 400, 3), rel=1e-8)
    assert exact_delta(1.5, 400, 3) < 1e-6


def test_both_directions_are_equal():
    """P against Q and Q against P: the binomial law is its own mirror image."""
    law = np.array([math.comb(30, s) for s in range(31)]) / 2.0**30
    p, q = np.concatenate((law, np.zeros(4))), np.concatenate((np.zeros(4), law))
    for epsilon in (0.1, 1.0):
        one, other = (
            float(np.maximum(0, a - math.exp(epsilon) * b).sum()) for a, b in ((p, q), (q, p))
        )
        assert (
            one == pytest.approx(other) == pytest.approx(binomial_delta(epsilon, 30, 4), rel=1e-8)
        )


def test_less_shift_and_more_coins_tell_less():
    shifts = [binomial_delta(0.7, 200, shift) for shift in range(12)]
    coins = [binomial_delta(0.7, trials, 5) for trials in range(20, 400, 20)]
    assert shifts[0] == 0
    assert shifts == sorted(shifts)
    assert coins == sorted(coins, reverse=True)


def test_a_gaussian_pair_beside_it():
    """The product of both pairs, by summing the exact Gaussian formula over all outcomes; mu = 0 is
    the limit."""
    trials, shift, mu, epsilon = 40, 3, 0.4, 0.8
    total = 0.0
    for s in range(trials + 1):
        p = math.comb(trials, s) / 2**trials
        left = (
            epsilon - math.log(p / (math.comb(trials, s - shift) / 2**trials))
            if s >= shift
            else -math.inf
        )
        total += p * (
            1.0
            if left == -math.inf
            else norm.cdf(mu / 2 - left / mu) - math.exp(left) * norm.cdf(-mu / 2 - left / mu)
        )
    assert binomial_delta(epsilon, trials, shift, mu) == pytest.approx(total, rel=1e-7)
    alone = binomial_delta(epsilon, trials, shift)
    assert binomial_delta(epsilon, trials, shift, 1e-9) == pytest.approx(alone, rel=1e-6)


def test_many_coins_are_a_gaussian():
    """sigma = sqrt(N) / 2: epsilon within 1 % of the Gaussian's for 40,000 coins."""
    wanted = GaussianProfile(20 / 100).epsilon(1e-6)
    assert BinomialProfile(40_000, 20).epsilon(1e-6) == pytest.approx(wanted, rel=1e-2)


def test_the_law_sums_to_one_and_matches_combinations():
    for trials in (1, 2, 9, 400):
        outcomes, logs = log_law(trials)
        wanted = [math.log(math.comb(trials, int(s))) - trials * math.log(2) for s in outcomes]
        assert logs == pytest.approx(wanted, abs=1e-11)
    assert np.exp(log_law(10**6)[1]).sum() == pytest.approx(1.0)
    assert losses(4, 0)[0].tolist() == [0.0] * 5


@pytest.mark.slow
def test_several_numbers_compose():
    """Two numbers, by brute force over pairs of outcomes: an upper bound, and close."""
    law = np.array([math.comb(60, s) for s in range(61)]) / 2.0**60
    p, q = np.concatenate((law, np.zeros(2))), np.concatenate((np.zeros(2), law))
    wanted = float(np.maximum(0, np.outer(p, p) - math.exp(1.0) * np.outer(q, q)).sum())
    found = BinomialProfile(60, 2, width=2).delta(1.0)
    assert wanted <= found <= wanted * 1.01
    assert BinomialProfile(60, 2, width=2, mu=1e-9).delta(1.0) == pytest.approx(found, rel=1e-4)
    assert BinomialProfile(3, 5, width=2).delta(1.0) == 1.0


def view_delta(graph_edges, n, m, pair_sigma, shift, v, epsilon):
    """Exact delta of all masked values when X_v moves by `shift`: coins and rounded pair noise
    enumerated."""
    reach = math.ceil(7 * pair_sigma) + 1
    values = np.arange(-reach, reach + 1)
    chances = norm.cdf((values + 0.5) / pair_sigma) - norm.cdf((values - 0.5) / pair_sigma)
    law = {(0,) * n: 1.0}
    for u, w in graph_edges:
        law = _spread(
            law,
            [(_moved(n, u, int(x), w, -int(x)), c) for x, c in zip(values, chances, strict=True)],
        )
    for u in range(n):
        law = _spread(law, [(_moved(n, u, k), math.comb(m, k) / 2**m) for k in range(m + 1)])
    step = _moved(n, v, shift)
    moved = {
        tuple(a + b for a, b in zip(key, step, strict=True)): chance for key, chance in law.items()
    }
    return sum(
        max(0.0, chance - math.exp(epsilon) * law.get(key, 0.0)) for key, chance in moved.items()
    )


def _moved(n, *pairs):
    found = [0] * n
    for place, size in zip(pairs[::2], pairs[1::2], strict=True):
        found[place] += size
    return tuple(found)


def _spread(law, moves):
    found = {}
    for (key, chance), (move, more) in product(law.items(), moves):
        place = tuple(a + b for a, b in zip(key, move, strict=True))
        found[place] = found.get(place, 0.0) + chance * more
    return found


@pytest.mark.parametrize(
    ("edges", "n", "m", "pair_sigma", "of"),
    [
        ([(0, 1)], 2, 6, 4.0, 0),
        ([(0, 1)], 2, 4, 1.5, 1),
        ([(0, 1), (1, 2)], 3, 2, 1.2, 0),
    ],
)
def test_the_theorem_bounds_the_exact_view(edges, n, m, pair_sigma, of):
    """perso:GOPA-3 with coins: the whole view of an outsider, enumerated, against the bound; both
    ways of moving."""
    graph = from_edges(
        n + 1, edges
    )  # the last peer is the observer, with nobody to exchange noise with
    told = gopa_binomial_guarantee(graph, 1, m, pair_sigma, of, n)
    for epsilon in (0.2, 1.0):
        exact = max(view_delta(edges, n, m, pair_sigma, sign, of, epsilon) for sign in (1, -1))
        sum_only = binomial_delta(epsilon, n * m, 1)
        assert sum_only * (1 - 1e-6) <= exact + 1e-9 <= told.delta(epsilon) + 1e-8


def test_who_hides_whom():
    """The honest component counts, and the distances in it; observers and dropped peers hide
    nobody."""

    def about(graph, of, seen_by, **more):
        profile = gopa_binomial_guarantee(graph, 2, 10, 100.0, of, seen_by, **more).profile
        assert 0 < profile.rounding < 1e-22
        return profile.inner

    assert about(complete(6), 0, 5) == BinomialProfile(50, 2, 1, 2 / 100)
    assert about(complete(6), 0, [4, 5], dropped=[3]) == BinomialProfile(30, 2, 1, 2 / 100)
    assert about(path(6), 0, 5) == BinomialProfile(50, 2, 1, 2 * 2 / 100)
    assert about(path(6), 0, 5, width=4) == BinomialProfile(50, 2, 4, 2 * 4 / 100)
    assert about(star(6), 1, 0) == BinomialProfile(10, 2, 1, 0.0)
    assert "only its own coins" in gopa_binomial_guarantee(star(6), 2, 10, 100.0, 1, 0).notes[1]
    worst = worst_binomial_epsilon(path(6), 2, 10, 100.0, range(6))
    assert worst >= max(
        float(gopa_binomial_guarantee(path(6), 2, 10, 100.0, of, seen).epsilon(1e-6))
        for of in range(6)
        for seen in range(6)
        if of != seen
    )


def test_coins_are_calibrated():
    levels, coins = calibrated_coins(1.0, 1e-6, 10)
    assert coins >= 50
    assert BinomialProfile(10 * coins, levels).epsilon(1e-6) <= 1.0
    assert BinomialProfile(10 * (coins - 2), levels).epsilon(1e-6) > 1.0
    assert least_coins(1.0, 1e-6, 10, levels) == coins
    assert calibrated_coins(1.0, 1e-6, 1)[0] == 1


def test_what_is_refused():
    with pytest.raises(PrivacyError, match="1 to 2\\*\\*26 coins, found 0"):
        BinomialProfile(0, 1)
    with pytest.raises(PrivacyError, match="levels >= 0, found -1"):
        BinomialProfile(5, -1)
    with pytest.raises(PrivacyError, match="epsilon and mu"):
        binomial_delta(-1.0, 5, 1)
    with pytest.raises(PrivacyError, match="use a larger epsilon"):
        least_coins(1e-4, 1e-6, 2**16, 8)
    with pytest.raises(PrivacyError, match="honest peers >= 1"):
        least_coins(1.0, 1e-6, 0, 8)
    with pytest.raises(PrivacyError, match="between 0 and 1, found 2"):
        calibrated_coins(1.0, 1e-6, 5, rounding=2)
    with pytest.raises(PrivacyError, match="are positive, found 0"):
        gopa_binomial_guarantee(complete(3), 1, 4, 0.0, 0, 1)
    with pytest.raises(PrivacyError, match="dropped out"):
        gopa_binomial_guarantee(complete(3), 1, 4, 1.0, 0, 1, dropped=[0])
    assert BinomialProfile(5, 1).divergence(2.0) == math.inf


def test_composition_with_other_kinds_is_basic():
    coins, gauss = BinomialProfile(400, 2), GaussianProfile(0.3)
    both = compose([coins, gauss, GaussianProfile(0.4)])
    assert both.epsilon(1e-6) == pytest.approx(
        coins.epsilon(5e-7) + GaussianProfile(0.5).epsilon(5e-7)
    )
    assert both.delta(both.epsilon(1e-6)) == pytest.approx(1e-6, rel=1e-4)
    assert both.delta(both.epsilon(1e-6)) >= 1e-6 * (1 - 1e-12)
    assert both.divergence(2.0) == math.inf
