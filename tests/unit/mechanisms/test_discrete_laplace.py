"""Discrete Laplace noise: the law by enumeration of all coins, pure epsilon for what is sent, paths
that agree."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from bruit.errors import ConfigError
from bruit.mechanisms import Laplace, RandomizedResponse, RecordNoise, discrete_laplace
from bruit.mechanisms.discrete_laplace import FARTHEST, Draws, fractions, sample
from bruit.mechanisms.discrete_laplace import discrete_laplace as draw
from bruit.randomness import Dice, Replay
from bruit.statistics.local import LaplaceMean, TwoParty
from bruit.tasks.pairs.kernels import kendall

LAST = 2**64 - 1


class Scripted(Dice):
    """Dice whose first words are given; after them come zeros."""

    def __init__(self, words):
        super().__init__()
        self.given = np.array(words, dtype=np.uint64)

    def _secret(self):
        return bytes(16)

    def words(self, purpose, lanes, steps, use, count, run=0):
        row = np.resize(
            np.array([0, 0, LAST, 0], dtype=np.uint64), count
        )  # u = 0, kept, no turn, plus: a zero
        row[: min(count, len(self.given))] = self.given[:count]
        return np.tile(row, (len(lanes), 1))


def far(turns, negative=False):
    """The words of one number of `turns` scales."""
    return [0, 0, *[0] * turns, LAST, int(negative)]


class Branch(Exception):
    """A decision that the script does not know yet."""


def law(monkeypatch, top, shift, least=1e-9):
    """Probabilities of all numbers by walking every branch of the sampler: words of u and sign, and
    coins."""
    found, todo = {}, [((), 1.0)]
    while todo:
        script, chance = todo.pop()
        if chance < least:
            continue
        given = iter(script)

        def word(options, given=given):
            answer = next(given, None)
            if answer is None:
                raise Branch(options)
            return answer

        class Words:
            asked = 0

            def __iter__(self):
                return self

            def __next__(self):
                self.asked += 1
                return word(
                    [(u, 1 / top) for u in range(top)] if self.asked % 2 else [(0, 0.5), (1, 0.5)]
                )

        def coin(words, numerator, denominator, band=0.0):
            yes = math.exp(-numerator / denominator)
            answer = word([(True, yes), (False, 1 - yes)])
            if not answer and denominator == top and (numerator, denominator) != (1, 1):
                raise StopIteration  # the number is drawn anew: conditioning on not being here
            return answer

        monkeypatch.setattr(discrete_laplace, "coin", coin)
        try:
            value = sample(Words(), top, shift)
            found[value] = found.get(value, 0.0) + chance
        except Branch as branch:
            todo += [((*script, answer), chance * part) for answer, part in branch.args[0]]
        except StopIteration:
            continue
    total = sum(found.values())
    return {k: p / total for k, p in found.items()}


def pmf(s, k):
    a = math.exp(-1 / s)
    return (1 - a) / (1 + a) * a ** abs(k)


@pytest.mark.parametrize(("top", "shift"), [(2, 0), (5, 1), (3, 0)])
def test_all_branches_together_have_the_law_of_the_formula(monkeypatch, top, shift):
    """A minus zero starts over inside the same call, so its branches are followed too, down to 1e-9
    each."""
    found = law(monkeypatch, top, shift)
    for k in range(-6, 7):
        assert found[k] == pytest.approx(pmf(top / 2**shift, k), rel=2e-5)


@pytest.mark.parametrize("s", [1.0, 1.3, 3.7, 2.0**40 * 1.234, 2.0**52.9])
def test_compiled_plain_and_exact_paths_give_the_same_numbers(s):
    at = Draws(Replay(1), "noise", np.arange(40), 0)
    top, shift = (int(part[0]) for part in fractions(np.array([s])))
    assert Fraction(top, 2**shift) == Fraction(s)
    compiled = draw(at, s, 20)
    for row in range(40):
        one = at.rows(np.array([row]))
        assert [sample(discrete_laplace._stream(one, 64), top, shift, band=1.0)] == compiled[
            row, :1
        ].tolist()
        alone = discrete_laplace._stream(one, 64)
        assert [sample(alone, top, shift) for _ in range(20)] == compiled[row].tolist()


def test_undecided_coins_and_huge_numbers_are_left_to_whole_numbers():
    """A coin within 2**-60 of its chance, and a number of 1500 scales: the compiled path gives both
    up."""
    close = 6786177901268885274  # 2**64 / e
    for words in ([0, 0, close, LAST, 0], far(1500)):
        at = Draws(Scripted(words), "noise", np.arange(600), 0)
        plain = sample(discrete_laplace._stream(at.rows(np.array([0])), 4096), *_fraction(2.0**30))
        assert draw(at, 2.0**30, 1)[0, 0] == plain
    assert plain == 1500 * 2**30


def _fraction(s):
    return tuple(int(part[0]) for part in fractions(np.array([s])))


@pytest.mark.parametrize(
    "make",
    [
        lambda dice: Laplace(clip=1.0, scale=2.0).noise(dice, np.arange(1), 0, 0, 1)[0, 0] / 2.0,
        lambda dice: (
            RecordNoise((1.0,), 1, noise_multiplier=2.0, law="laplace").noise(
                dice, np.arange(1), 0, 0, 1
            )[0, 0]
            / 2.0
        ),
        lambda dice: (
            RecordNoise((1.0,), 1, noise_multiplier=2.0, law="euclidean").noise(
                dice, np.arange(1), 0, 0, 1
            )[0, 0]
            / 2.0
        ),
        lambda dice: (
            LaplaceMean(0.0, 1.0, 0.5).report(np.array([0.5]), dice).column("value")[0] / 2.0
        ),
        lambda dice: TwoParty(kendall(), 1.0).answers(np.eye(2), dice, Replay(0))[0, 0] / 2.0,
    ],
)
def test_noise_has_no_end(make):
    """Noise from 52-bit uniforms ended at 36.7 scales: what lay beyond told on which side of it the
    value was."""
    assert make(Scripted(far(200))) == pytest.approx(200, abs=2)
    assert make(Scripted(far(200, negative=True))) == pytest.approx(-200, abs=2)


def test_a_release_beyond_the_range_is_the_same_whatever_the_data():
    """Cutting the sum is a function of the sum: both neighbors give the end of the range, never one
    step less."""
    mechanism = Laplace(clip=1.0, scale=2.0)
    for sign in (1, -1):
        dice = Scripted(far(5000, negative=sign < 0))
        ends = [
            mechanism.release(np.array([[x]]), dice, np.arange(1), 0, 0)[0, 0]
            for x in (-1.0, 0.3, 1.0)
        ]
        assert ends == [sign * mechanism.farthest] * 3
    records = RecordNoise((1.0,), 1, noise_multiplier=1.0, law="laplace", lattice=2.0**-40)
    ends = [
        records.release(np.array([[x]]), Scripted(far(9000)), np.arange(1), 0, 0)[0, 0]
        for x in (-1e30, 0.0, 1e30)
    ]
    assert ends == [records.farthest] * 3


@pytest.mark.parametrize("d", [1, 7, 1000])
@pytest.mark.parametrize("scale", [2.0, 1e-9, 3e7])
def test_rows_are_never_farther_apart_than_the_proof_says(d, scale):
    """Rows of L1 norm just around clip, taken as whole numbers of the grid: at most clip / g - 2
    steps from zero."""
    mechanism = Laplace(clip=0.7, scale=scale)
    rows = (
        np.random.default_rng(d).dirichlet(np.ones(d), 200)
        * np.linspace(1 - 1e-15, 1 + 1e-15, 200)[:, None]
        * 0.7
    )
    steps = mechanism.bare(rows, np.arange(200)) / mechanism.spacing
    assert (steps == np.round(steps)).all()
    longest = max(sum(abs(int(step)) for step in row) for row in steps.tolist())
    assert longest <= Fraction(0.7) / Fraction(mechanism.spacing) - 2
    assert longest > 0.99 * 0.7 / mechanism.spacing - d


def masses(m, a, reach):
    """P and Q of one number moved by m steps, on -reach..reach + m."""
    k = np.arange(-reach, reach + m + 1)
    weight = (1 - a) / (1 + a)
    return weight * a ** np.abs(k), weight * a ** np.abs(k - m)


def hockey(p, q, x):
    return float(np.maximum(p - math.exp(x) * q, 0.0).sum())


def real_laplace(shift, x):
    """delta(x) of real-valued Laplace noise of scale 1 moved by `shift`."""
    return 0.0 if x >= shift else 1 - math.exp(x) if x <= -shift else 1 - math.exp((x - shift) / 2)


@pytest.mark.parametrize(("m", "t"), [(1, 0.7), (4, 0.25), (9, 0.1)])
def test_discrete_noise_is_pure_and_no_worse_than_real_noise_two_steps_on(m, t):
    """Steps 2 and 3 of the proof, on numbers: delta(m t) = 0, delta = 1 - a**j at the points, below
    the bound between; and real noise moved by exactly m t would not have been a bound."""
    p, q = masses(m, math.exp(-t), 400)
    assert hockey(p, q, m * t + 1e-12) == pytest.approx(0.0, abs=1e-13)
    for j in range(m + 1):
        assert hockey(p, q, (m - 2 * j) * t) == pytest.approx(1 - math.exp(-j * t), abs=1e-12)
    xs = np.linspace(-1.5 * m * t, 1.5 * m * t, 200)
    gaps = np.array([hockey(p, q, x) - real_laplace((m + 2) * t, x) for x in xs])
    assert gaps.max() <= 1e-12
    assert max(hockey(p, q, x) - real_laplace(m * t, x) for x in xs) > 1e-4


@pytest.mark.parametrize(("b", "c", "t"), [(1, 1, 0.5), (1, 4, 0.3), (3, 5, 0.2)])
def test_two_numbers_tell_no_more_than_one_moved_by_the_sum(b, c, t):
    """Step 4 of the proof."""
    a = math.exp(-t)
    one = masses(b + c, a, 150)
    (p1, q1), (p2, q2) = masses(b, a, 150), masses(c, a, 150)
    both = np.outer(p1, p2).reshape(-1), np.outer(q1, q2).reshape(-1)
    for x in np.linspace(-(b + c) * t, (b + c) * t, 41):
        assert hockey(*both, x) <= hockey(*one, x) + 1e-12


def test_float_uniforms_would_leave_holes():
    """The sampler that was here: numbers -log((i + 1/2) 2**-52) rounded to 2**-20; more than 1e-10
    of the mass of one row lies on points the row one step on never reaches, so that no epsilon does
    without a delta."""
    steps = np.rint(-np.log((np.arange(1 << 21) + 0.5) * 2.0**-52) * 2**20).astype(np.int64)
    lost = int((~np.isin(steps - 1, steps)).sum())
    assert 2 * lost * 2.0**-53 > 1e-10


def test_randomized_answers_are_at_least_as_uniform_as_they_say():
    """The coin as a fraction: e**epsilon is kept with the rarest and the most frequent uniform
    value."""
    for values, gamma in itertools.product((2, 10, 1000), (1e-18, 1e-9, 0.3, 1 - 1e-12)):
        mechanism = RandomizedResponse(values, gamma)
        coin = Fraction(mechanism._threshold(), 2**64)
        often, rare = (
            Fraction(1, values) * (1 + sign * Fraction(3 * values, 2**52)) for sign in (1, -1)
        )
        claimed = 1 + values * (1 - Fraction(gamma)) / Fraction(gamma)
        assert coin == 1 or (1 - coin + coin * often) / (coin * rare) <= claimed
        assert coin >= Fraction(gamma)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Laplace(clip=1.0, scale=1e-20), "hides nothing"),
        (lambda: Laplace(clip=1.0, scale=1e300), "change the unit"),
        (lambda: draw(Draws(Replay(0), "noise", np.arange(2), 0), 0.5, 1), "1 to 2\\*\\*53"),
    ],
)
def test_refusals(make, message):
    with pytest.raises(ConfigError, match=message):
        make()


def test_the_range_leaves_room():
    assert 2 * FARTHEST + FARTHEST < 2**53
