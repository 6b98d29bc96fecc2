"""Laws of local protocols, without sampling: the words of the dice are enumerated with their exact
masses.

A report is a function of 64-bit words that matter only by the side of a threshold they lie on, or
by a residue. Running the real client on one word of each kind, and weighing by how many words there
are of it, gives the exact law.
"""

import itertools
from collections import defaultdict
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bruit.privacy.events import LaplaceEvent
from bruit.randomness import Dice
from bruit.statistics.local import (
    BinaryResponse,
    HadamardResponse,
    HadamardTree,
    KAry,
    LaplaceMean,
    LocalHashing,
    Reports,
    UnaryEncoding,
    histograms,
    quantized,
)
from bruit.statistics.local.coins import WORDS, flip_threshold, uniform_threshold
from bruit.statistics.local.private_auc import sweep
from bruit.tasks.pairs import auc, concordance, gini, square_form, u_statistic

pytestmark = pytest.mark.slow

EPSILONS = st.floats(0.01, 8.0)
SIZES = st.integers(2, 5)


class Scripted(Dice):
    """Dice whose words are written in advance, one row a user."""

    def __init__(self, rows):
        super().__init__()
        self.rows = np.array(rows, dtype=np.uint64)

    def _secret(self):
        return bytes(16)

    def words(self, purpose, lanes, steps, use, count, run=0):
        assert count == self.rows.shape[1]
        return self.rows[lanes]


def sides(*thresholds):
    """The last and the first word of each zone, which must act alike, with the zone's mass."""
    edges = [0, *thresholds, WORDS]
    return [
        ((low, high - 1), Fraction(high - low, WORDS)) for low, high in itertools.pairwise(edges)
    ]


def residues(k):
    return [
        ((r, r + k * ((WORDS - 1 - r) // k)), Fraction((WORDS - 1 - r) // k + 1, WORDS))
        for r in range(k)
    ]


def kinds(protocol):
    """For each word of a report: its kinds, each with two words of it and its mass."""
    if isinstance(protocol, BinaryResponse):
        return [sides(flip_threshold(protocol.epsilon))]
    if isinstance(protocol, KAry):
        return [sides(uniform_threshold(protocol.k, protocol.epsilon)), residues(protocol.k)]
    if isinstance(protocol, HadamardResponse):
        return [sides(flip_threshold(protocol.epsilon)), residues(protocol.size)]
    if isinstance(protocol, UnaryEncoding):
        return [sides(flip_threshold(protocol.epsilon), WORDS // 2)] * protocol.k
    return [
        sides(uniform_threshold(protocol.cells, protocol.epsilon)),
        residues(protocol.cells),
        residues(protocol.prime),
        residues(protocol.prime),
    ]


def law(protocol, value):
    """The exact probability of every report: a dict from the report's columns to fractions."""
    cases = list(itertools.product(*kinds(protocol)))
    for end in (0, 1):
        rows = [[pair[end] for pair, _ in case] for case in cases]
        reports = protocol.report(np.full(len(cases), value), Scripted(rows))
        found = defaultdict(Fraction)
        for i, case in enumerate(cases):
            mass = Fraction(1)
            for _, part in case:
                mass *= part
            found[
                tuple(np.atleast_1d(column[i]).tobytes() for column in reports.columns.values())
            ] += mass
        if end == 0:
            first = found
    assert first == found, "words on one side of a threshold act differently"
    return first, reports


def within(ratio, epsilon):
    with localcontext() as context:
        context.prec = 60
        return Decimal(ratio.numerator) / Decimal(ratio.denominator) <= Decimal(epsilon).exp()


def protocols(k, epsilon):
    small = [
        KAry(k, epsilon),
        HadamardResponse(k, epsilon),
        LocalHashing(k, epsilon, prime=5),
        BinaryResponse(epsilon),
    ]
    return small + ([UnaryEncoding(k, epsilon)] if k <= 4 else [])


@given(k=SIZES, epsilon=EPSILONS)
@settings(max_examples=25, deadline=None)
def test_the_ratio_of_probabilities_never_exceeds_exp_epsilon(k, epsilon):
    """perso:LDP-1, LDP-2: exactly, in rational numbers, for every protocol, pair of values and
    report."""
    for protocol in protocols(k, epsilon):
        laws = [law(protocol, value)[0] for value in range(protocol.k)]
        assert all(sum(found.values()) == 1 for found in laws)
        for first, second in itertools.permutations(laws, 2):
            assert set(first) == set(second)
            assert all(within(first[report] / second[report], epsilon) for report in first)
        most = max(
            float(first[report] / second[report])
            for first, second in itertools.permutations(laws, 2)
            for report in first
        )
        assert most == pytest.approx(
            np.exp(epsilon), rel=1e-9
        )  # and nothing of the budget is wasted


@given(k=SIZES, epsilon=EPSILONS)
@settings(max_examples=8, deadline=None)
def test_estimates_are_unbiased_and_their_variance_is_exact(k, epsilon):
    """perso:LDP-3: mean and variance of one report's estimate, over its exact law."""
    for protocol in protocols(k, epsilon):
        p, q = protocol.chances()
        for value in range(protocol.k):
            masses, reports = law(protocol, value)
            cases = list(itertools.product(*kinds(protocol)))
            weights = np.array(
                [float(np.prod([float(mass) for _, mass in case])) for case in cases]
            )
            single = [
                Reports(
                    reports.protocol,
                    {name: column[i : i + 1] for name, column in reports.columns.items()},
                )
                for i in range(len(cases))
            ]
            shares = np.stack([protocol.estimate(one).shares for one in single])
            truth = np.eye(protocol.k)[value]
            scale = 1 / (p - q)
            assert weights @ shares == pytest.approx(truth, abs=1e-10 * scale)
            expected = [protocol.variance(share, 1) for share in truth]
            assert weights @ (shares - truth) ** 2 == pytest.approx(expected, rel=1e-8)
            assert sum(masses.values()) == 1


@given(levels=st.integers(1, 6), epsilon=EPSILONS, data=st.data())
@settings(max_examples=25, deadline=None)
def test_the_bit_of_a_tree_flips_with_the_promised_chance(levels, epsilon, data):
    """perso:LDP-8: one bit; whatever the value, both signs have the two masses t and 2^64 - t."""
    tree, t = HadamardTree(levels, epsilon), flip_threshold(epsilon)
    values = np.array(data.draw(st.lists(st.integers(0, 2**levels - 1), min_size=1, max_size=8)))
    kept, turned = (tree.report(values, Scripted([[word]] * len(values))) for word in (t, t - 1))
    assert np.array_equal(kept, -turned)
    assert within(Fraction(WORDS - t, t), epsilon)


@given(low=st.floats(-5, 5), width=st.floats(0.01, 100), epsilon=EPSILONS)
def test_laplace_noise_covers_the_range(low, width, epsilon):
    """perso:DP-5: the density ratio is exp(range / scale) at most, and the scale is (high - low) /
    epsilon."""
    protocol = LaplaceMean(low, low + width, epsilon)
    event = protocol.event()
    assert isinstance(event, LaplaceEvent)
    assert 1 / event.noise_multiplier <= epsilon
    assert protocol.mechanism.sensitivity >= (protocol.high - protocol.low) * (1 - 1e-15)


@given(
    k=st.integers(2, 6),
    epsilon=EPSILONS,
    values=st.lists(st.integers(0, 5), min_size=2, max_size=3),
)
@settings(max_examples=40, deadline=None)
def test_quantized_statistics_are_unbiased(k, epsilon, values):
    """perso:LDP-5: the mean over all reports of all users is the statistic of the quantized
    points."""
    asked = quantized(gini(), k, epsilon)
    bins = np.array(values) % k
    truth, other = asked.protocol.chances()
    mean = 0.0
    for reports in itertools.product(range(k), repeat=len(bins)):
        mass = np.prod([truth if z == x else other for z, x in zip(reports, bins, strict=True)])
        mean += (
            mass
            * asked.estimate(Reports(asked.protocol.describe(), {"value": np.array(reports)})).value
        )
    expected = u_statistic((bins + 0.5) / k, gini())
    assert mean == pytest.approx(expected, abs=1e-9 / (truth - other) ** 2)


@given(scores=st.lists(st.integers(0, 15), min_size=2, max_size=40), data=st.data())
def test_exact_trees_count_pairs(scores, data):
    """perso:LDP-7: the tree's AUC is the share of won pairs, for any multiset."""
    rest = len(scores) - 2
    labels = np.array([0, 1, *data.draw(st.lists(st.integers(0, 1), min_size=rest, max_size=rest))])
    values = np.array(scores)
    up, down = (
        [level.astype(float) for level in histograms(values[labels == sign], 4)] for sign in (1, 0)
    )
    found = sweep(up, down, 0.0, 0.0, 4.0)
    assert found.pairs / (up[0][0] * down[0][0]) == pytest.approx(
        auc(values.astype(float), labels, "zero"), abs=1e-12
    )


@given(points=st.lists(st.tuples(st.integers(-3, 3), st.integers(-3, 3)), min_size=2, max_size=30))
def test_pairs_are_counted_and_forms_agree(points):
    """perso:PAIR-1: U = (n - 1) / n U_cl; concordant and discordant pairs by brute force."""
    x, y = np.array(points, dtype=float).T
    signs = np.sign(x[:, None] - x) * np.sign(y[:, None] - y)
    assert concordance(x, y) == ((signs > 0).sum() // 2, (signs < 0).sum() // 2)
    n = len(x)
    assert square_form(x, gini()) == pytest.approx(np.abs(x[:, None] - x).sum() / n**2, abs=1e-12)
    assert square_form(x, gini()) == pytest.approx((n - 1) / n * u_statistic(x, gini()), abs=1e-12)
