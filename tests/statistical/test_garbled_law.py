"""Do garbled circuits and the trusted pair have the same law? Seeded; each test states false alarm
and power."""

import math

import numpy as np
import pytest
from scipy import stats

from bruit.accounts.account import unrecorded
from bruit.randomness import Replay
from bruit.statistics.holders import NoisyBit, TablesQuestion, rows_of, trusted_pair
from bruit.statistics.holders.holder import Holder
from bruit.statistics.holders.machine import converse
from bruit.statistics.holders.noisy_bit import ordered
from bruit.statistics.holders.pair_machines import Evaluator, Garbler, PairJob
from bruit.statistics.local import TwoParty
from bruit.tasks.pairs import kendall

pytestmark = pytest.mark.slow

ALARM = 1e-6
LIMIT = stats.norm.isf(ALARM / 2)


def draw(seed):
    return np.random.default_rng(seed).bytes


def garbled(bit, x, y, seed):
    job = PairJob(bit, len(x), bytes(32))
    garbler, evaluator = Garbler(job, x, draw(seed)), Evaluator(job, y, draw(seed + 1))
    converse(garbler, evaluator)
    return garbler.bits


def apart(ones, others, count):
    """Standardized difference of two counts out of `count` each."""
    share = (ones + others) / (2 * count)
    return abs(ones - others) / math.sqrt(2 * count * share * (1 - share))


@pytest.mark.parametrize("case", ["above", "below", "tie"])
def test_a_garbled_bit_has_the_law_of_the_clear_one_and_of_the_formula(case):
    """6000 bits each; exact binomial test against P(1), and a normal one between the two, false
    alarm 1e-6 each. Power: noise made for epsilon 1.3 moves P by 0.055, 9 standard errors of one
    count: found with probability 0.9999.
    """
    bit, count = NoisyBit("auc", 1.0), 6000
    x = ordered(np.full((count, 1), {"above": 2.0, "below": 1.0, "tie": 1.5}[case]))
    y = ordered(np.full((count, 1), 1.5))
    wanted = {"above": 1 - bit.flip, "below": bit.flip, "tie": 0.5}[case]
    real, clear = garbled(bit, x, y, 3), bit.in_the_clear(x, y, draw(5))
    for bits in (real, clear):
        assert stats.binomtest(int(bits.sum()), count, wanted).pvalue > ALARM
    assert apart(real.sum(), clear.sum(), count) < LIMIT
    if case != "tie":
        careless = NoisyBit("auc", 1.3).in_the_clear(x, y, draw(7))
        assert stats.binomtest(int(careless.sum()), count, wanted).pvalue < ALARM


def test_neighboring_pairs_and_both_shares_show_no_pattern():
    """One party's share is all zeros in effect (fixed bytes): the noise is still fair, and bits of
    neighboring pairs are uncorrelated. 6000 bits, false alarm 1e-6 each; power: a correlation of
    0.12 is found with probability 0.999."""
    bit, count = NoisyBit("wilcoxon", 0.8), 6000
    job = PairJob(bit, count, bytes(32))
    x = ordered(np.ones((count, 1)))
    for garbler_draw, evaluator_draw in ((draw(1), bytes), (bytes, draw(2))):
        garbler = Garbler(job, x, garbler_draw)
        converse(garbler, Evaluator(job, ordered(-np.ones((count, 1))), evaluator_draw))
        bits = garbler.bits
        assert stats.binomtest(int(bits.sum()), count, 1 - bit.flip).pvalue > ALARM
        centered = bits - bits.mean()
        correlation = (centered[1:] * centered[:-1]).mean() / centered.var()
        assert abs(correlation) * math.sqrt(count) < LIMIT


def test_two_holders_have_the_law_of_the_simulated_protocol():
    """perso:LDP-10: Kendall's tau of 16,000 rows without ties at epsilon 1, by garbled circuits, by
    the trusted pair, and by the simulation with K-ary responses. Counts of 8000 answers, false
    alarm 1e-6 each; power: noise of epsilon 1.3 moves the share of ones by 0.02 at tau = 0.4, so
    that alone the tests above tell; here a missing unbiasing or a wrong orientation (share 0.4
    against 0.6) is found with certainty."""
    rng = np.random.default_rng(8)
    points = rng.multivariate_normal([0, 0], [[1, 0.6], [0.6, 1]], 16_000)
    question = TablesQuestion("kendall", 1.0)
    first, second = rows_of(question, points[:9000]), rows_of(question, points[9000:])
    garbler = Holder("garbler", question, first, unrecorded, draw(1))
    evaluator = Holder("evaluator", question, second, unrecorded, draw(2))
    converse(garbler, evaluator)
    law = TwoParty(kendall(), 1.0, 1, (-1.0, 1.0))
    simulated = law.answers(points, Replay(3), Replay(4))
    values = np.unique(simulated)
    assert np.allclose(values, question.bit.unbiased(np.array([False, True])), rtol=1e-5)
    counts = [
        int(garbler.bits.sum()),
        int(trusted_pair(question, first, second, 5, draw(6)).sum()),
        int((simulated > 0).sum()),
    ]
    assert garbler.crossing > 3000
    assert max(apart(a, b, 8000) for a in counts for b in counts) < LIMIT
    tau = 2 / math.pi * math.asin(0.6)
    found = question.estimate(garbler.bits)
    assert abs(found.value - tau) < LIMIT * found.error
