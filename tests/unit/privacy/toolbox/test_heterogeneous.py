"""Composition of different statements: perso:DP-2, DP-3, DP-4, against the optimum of Kairouz, Oh,
Viswanath."""

import itertools
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bruit.errors import PrivacyError
from bruit.privacy.formulas.heterogeneous import (
    branches,
    composed,
    optimal,
    published_branches,
    split_budget,
    statements,
)
from bruit.privacy.toolbox.pure import advanced, basic

FIRST = [0.05] * 40 + [0.1] * 20


def test_worked_simple_and_advanced():
    """perso:DP-2, DP-3."""
    assert basic(0.1, 1e-6, 100) == pytest.approx((10, 1e-4))
    assert advanced(0.1, 1e-6, 100, 1e-5) == pytest.approx((5.850235093, 1.1e-4), rel=1e-9)


@pytest.mark.parametrize(
    ("epsilons", "slack", "values", "branch"),
    [
        (FIRST, 1e-3, (4.0, 2.0957818946, 2.1857484632), "root with e"),
        ([0.1] * 100, 1e-5, (10, 5.298115327, 5.298109662), "root"),
        ([0.5, 0.3, 0.2, 0.1], 1e-3, (1.1, 2.433529139, 2.513271441), "sum"),
    ],
)
def test_worked_branches(epsilons, slack, values, branch):
    """perso:DP-4."""
    assert branches(epsilons, slack) == pytest.approx(values, rel=1e-9)
    found = composed(epsilons, slack)
    assert (found.epsilon, found.branch) == (pytest.approx(min(values), rel=1e-9), branch)
    assert found.delta == pytest.approx(0.0 if branch == "sum" else slack)


def test_worked_delta():
    """perso:DP-4: 1 - (1 - slack) prod (1 - delta_k)."""
    found = composed([0.5, 0.3, 0.2, 0.1], 1e-3, [1e-6] * 4)
    assert found.delta == pytest.approx(0.001003995994, rel=1e-9)


def test_the_printed_sum_outside_of_the_root_never_helps():
    """perso:DP-4: 14.36 instead of 2.096."""
    assert published_branches(FIRST, 1e-3) == pytest.approx((4.0, 14.360572, 15.017595), rel=1e-7)
    assert published_branches([], 1e-3) == (0.0, 0.0, 0.0)


@pytest.mark.parametrize(
    ("total", "slack", "count", "each"),
    [
        (1.05, math.exp(-5), 10, 0.1105641900),
        (1.05, math.exp(-5), 50, 0.0494438071),
        (0.15, math.exp(-5), 50, 0.0093047049),
        (2, 1e-5, 200, 0.0293459005),
        (1, 1e-3, 10, 0.1),
    ],
)
def test_worked_budgets(total, slack, count, each):
    """perso:DP-4, inversion."""
    found = split_budget(total, slack, count)
    assert found == pytest.approx(each, rel=1e-8)
    assert composed([found] * count, slack).epsilon <= total * (1 + 1e-14)


def brute_force(epsilons, delta):
    """The least epsilon of the composition of the worst pairs, by enumeration of the privacy
    losses."""
    losses = [(0.0, 1.0)]
    for e in epsilons:
        p = math.exp(e) / (1 + math.exp(e))
        losses = [
            (x + s * e, w * (p if s > 0 else 1 - p))
            for (x, w), s in itertools.product(losses, (1, -1))
        ]
    points = sorted({round(x, 12) for x, _ in losses if x >= 0} | {0.0})

    def at(epsilon):
        return sum(w * -math.expm1(epsilon - x) for x, w in losses if x > epsilon)

    for low, high in itertools.pairwise(points):
        if at(high) <= delta:
            if at(low) <= delta:
                return low
            total = sum(w for x, w in losses if x > low + 1e-11)
            mass = sum(w * math.exp(-x) for x, w in losses if x > low + 1e-11)
            return math.log((total - delta) / mass)
    return points[-1]


@pytest.mark.parametrize(
    ("epsilons", "delta"),
    [
        ([0.5, 0.3, 0.2, 0.1], 1e-3),
        ([0.1] * 10, 1e-2),
        ([1.0, 0.2, 0.2, 2.0, 0.7], 1e-4),
        ([0.3], 1e-6),
    ],
)
def test_optimal_is_the_optimum_rounded_up(epsilons, delta):
    exact = brute_force(epsilons, delta)
    assert exact * (1 - 1e-9) <= optimal(epsilons, delta) <= exact + 1e-3 * len(epsilons)
    assert exact <= composed(epsilons, delta).epsilon


@settings(deadline=None, max_examples=25)
@given(st.lists(st.floats(0.01, 1.5), min_size=1, max_size=8), st.floats(1e-6, 0.1))
def test_the_formula_is_above_the_optimum(epsilons, slack):
    assert brute_force(epsilons, slack) <= min(branches(epsilons, slack)) * (1 + 1e-9)


@given(st.floats(0.01, 5), st.floats(1e-9, 0.5), st.integers(1, 500))
def test_a_split_budget_is_spent_and_not_exceeded(total, slack, count):
    each = split_budget(total, slack, count)
    assert composed([each] * count, slack).epsilon <= total * (1 + 1e-12)
    assert composed([each * 1.0001] * count, slack).epsilon > total


def test_optimal_is_never_above_the_formulas():
    """perso:DP-3: always the minimum of DP-2, DP-3, DP-4."""
    for epsilons, deltas in [(FIRST, ()), ([0.1] * 100, [1e-6] * 100), ([0.01] * 1000, ())]:
        delta = 1.1e-4
        found = optimal(epsilons, delta, deltas)
        assert found <= min(
            math.fsum(epsilons), composed(epsilons, delta - math.fsum(deltas)).epsilon
        )
        guarantee = statements(epsilons, deltas)
        assert found <= guarantee.epsilon(delta)
        assert guarantee.status == "proven"


def test_corner_cases():
    assert composed([], 0.1).epsilon == composed([0.0, 0.0], 0.1).epsilon == 0.0
    assert composed([0.5, 0.5], 0.0) == composed([0.5, 0.5], 0.0, [0.0, 0.0])
    assert composed([0.5, 0.5], 0.0).epsilon == 1.0
    assert branches([0.5], 1.0)[2] == pytest.approx(0.5 * math.tanh(0.25))
    assert composed([0.5], 1.0).delta == 1.0
    assert branches([800.0], 0.1)[1] > 800  # tanh, no overflow
    assert optimal([0.5, 0.5], 1e-6, [1e-6, 1e-6]) == math.inf
    assert optimal([], 1e-6) == 0.0


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: branches([-0.1], 0.1), "epsilon to compose must be a number >= 0"),
        (lambda: composed([0.1], 0.1, [1.0]), r"must be in \[0, 1\), found 1"),
        (lambda: composed([0.1], 0.1, [0.1, 0.2]), "1 epsilons and 2 deltas"),
        (lambda: branches([0.1], 1.5), "slack of a composition must be between 0 and 1"),
        (lambda: split_budget(0.0, 0.1, 3), "epsilon > 0 for at least one mechanism, found 0"),
        (lambda: split_budget(1.0, 0.1, 0), "found 1.0 for 0"),
        (lambda: optimal([0.1], 1.0), "delta must lie strictly"),
    ],
)
def test_refusals(call, words):
    with pytest.raises(PrivacyError, match=words):
        call()
