"""Histograms carried by a token: gossip:RING-3, walk:RW-2; randomized response as a mechanism."""

import itertools
import math

import numpy as np
import pytest

import bruit as br
from bruit.algorithms.tokens.token_histogram import State, TokenHistogram
from bruit.mechanisms import RandomizedResponse, mechanism_from
from bruit.privacy.events import BoundedEvent, Exact
from bruit.privacy.formulas.shuffling import clones
from bruit.privacy.theorems.token_counts import TokenCounts
from bruit.privacy.toolbox.pld import compose_epsilon
from bruit.randomness import Replay

pytestmark = pytest.mark.slow


def one_hot(values, kinds):
    return np.eye(kinds)[np.asarray(values)]


def counted(algorithm, graph, values, kinds, steps, noise, seed=0):
    task = br.tasks.Mean(one_hot(values, kinds))
    return br.run(algorithm, graph, task, privacy=noise, steps=steps, seed=seed, evaluate_every=0)


def held(counts, reports, uniform, gamma):
    def number(x, kind):
        return np.array([x], kind)

    return State(
        np.array([counts], float),
        number(reports, np.int64),
        number(uniform, np.int64),
        number(gamma, float),
        number(0, np.int64),
    )


def test_debiasing():
    # gossip:RING-3: n = 1000, K = 1, L = 4, gamma = .2, 200 uniform elements at first
    ring = held([500, 380, 200, 320], 1000, 200, 0.2)
    assert 1000 * TokenHistogram().estimate(ring)[0] == pytest.approx([500, 350, 125, 275])
    # walk:RW-2: T = 1000, none
    walk = held([400, 300, 200, 100], 1000, 0, 0.2)
    assert 1000 * TokenHistogram().estimate(walk)[0] == pytest.approx([437.5, 312.5, 187.5, 62.5])


def test_gamma():
    assert RandomizedResponse.of(10, 0.5).gamma == pytest.approx(0.939079890, abs=1e-9)  # walk:RW-2
    assert RandomizedResponse.of(10, 0.5).epsilon == pytest.approx(0.5)
    assert RandomizedResponse.of(10, 0.5).event() == BoundedEvent(
        RandomizedResponse.of(10, 0.5).epsilon
    )
    assert RandomizedResponse(4).event() == Exact()


def test_randomized_response_tells_the_truth_as_often_as_it_says():
    """60,000 answers of each true value: every frequency within 6 standard deviations; false alarms
    below 2e-8."""
    lanes, noise = np.arange(60_000), RandomizedResponse(4, 0.3)
    for truth in range(4):
        rows = noise.release(one_hot(np.full(60_000, truth), 4), Replay(truth), lanes, 0, 0)
        assert np.array_equal(rows.sum(axis=1), np.ones(60_000))
        for value, share in enumerate(rows.mean(axis=0)):
            chance = 0.3 / 4 + (0.7 if value == truth else 0.0)
            assert abs(share - chance) < 6 * math.sqrt(chance * (1 - chance) / 60_000)
    silent = noise.noise(Replay(9), lanes, 0, 0, 4).mean(axis=0)
    assert np.abs(silent - 0.25).max() < 6 * math.sqrt(0.25 * 0.75 / 60_000)


def test_answers_do_not_depend_on_the_batch():
    noise, rows = RandomizedResponse(3, 0.5), one_hot([0, 1, 2, 0, 1], 3)
    together = noise.release(rows, Replay(1), np.arange(5), 7, 2)
    alone = [noise.release(rows[i : i + 1], Replay(1), np.array([i]), 7, 2)[0] for i in range(5)]
    assert np.array_equal(together, alone)
    assert mechanism_from(noise.describe()) == noise


@pytest.mark.parametrize(
    "algorithm",
    [
        TokenHistogram(),
        TokenHistogram(published=True),
        TokenHistogram(blanket=False, schedule=br.Walk()),
        TokenHistogram(rest=40, schedule=br.Walk()),
    ],
    ids=repr,
)
def test_the_estimate_is_unbiased(algorithm):
    """Mean of 30 runs against the values reported in them: within 6 standard errors for each of 4
    values, whose variance is at most 1/4 an element; false alarms below 1e-8. Subtracting gamma /
    L, as printed, misses by 0.5."""
    rng, n, gamma, total = np.random.default_rng(5), 40, 0.7, []
    values = rng.choice(4, n, p=[0.6, 0.3, 0.1, 0.0])
    elements = 0
    for seed in range(30):
        run = counted(algorithm, "complete:40", values, 4, 120, RandomizedResponse(4, gamma), seed)
        last = run.trace.meetings.b[-1]
        reported = run.ledger.column("peer")
        truth = one_hot(values[reported], 4).mean(axis=0)
        total.append(run.estimates[last] - truth)
        assert run.state.reports[last] == len(reported)
        assert run.state.counts[last].sum() == run.state.reports[last] + run.state.uniform[last]
        elements = max(elements, run.state.counts[last].sum() / ((1 - gamma) * len(reported)) ** 2)
    assert np.abs(np.mean(total, axis=0)).max() < 6 * math.sqrt(elements / 4 / 30)


def test_uniform_elements():
    noise = RandomizedResponse(4, 0.35)
    run = counted(TokenHistogram(published=True), "ring:10", np.zeros(10, int), 4, 30, noise)
    assert run.state.uniform[9] == 2 * math.ceil(3.5)
    assert run.state.reports[9] == 30
    assert np.array_equal(
        run.state.counts, np.round(run.state.counts)
    )  # whole numbers: no order in the rounding
    resting = counted(TokenHistogram(rest=11), "ring:10", np.zeros(10, int), 4, 30, noise)
    assert resting.facts().releases().tolist() == [2] * 10  # every second visit
    assert resting.state.uniform[9] == 4 + 10


def test_without_randomness_it_counts():
    run = counted(TokenHistogram(), "ring:5", [0, 1, 1, 2, 1], 3, 10, None)
    assert run.estimates[4] == pytest.approx([0.2, 0.6, 0.2])
    assert run.epsilon(of=0, seen_by=2) == math.inf


def test_the_account_of_a_ring():
    """gossip:RING-3, walk:RW-2 [V]: one report among m in every window, composed; m is rounded down
    a little."""
    n, cycles, local = 500, 4, 1.0
    run = counted(
        TokenHistogram(),
        f"ring:{n}",
        np.arange(n) % 4,
        4,
        cycles * n,
        RandomizedResponse.of(4, local),
    )
    claimed = run.guarantee(of=3, seen_by=100)
    blanket = math.ceil(2 / (math.e + 1) * n)
    each = 1e-6 / 2 / cycles
    best = [
        (BoundedEvent(clones(local, m, each), each), k)
        for m, k in ((100 + blanket, 1), (n - 1, cycles - 1))
    ]
    exact = compose_epsilon(best, 1e-6)
    assert exact - 1e-9 <= claimed.epsilon() <= 1.06 * exact
    assert claimed.epsilon() < 0.45 * run.epsilon(of=3)
    assert claimed.status == "proven"
    tenth = run.epsilon(of=3, seen_by=100, delta=1e-9)
    assert claimed.epsilon() < tenth < math.inf
    assert run.summary().epsilons[0] == pytest.approx(float(run.epsilon()))
    with pytest.raises(br.PrivacyError, match="counts are hidden by shuffling"):
        run.losses()


def test_reports_of_one_window_add_up():
    noise = RandomizedResponse.of(3, 0.7)
    run = counted(
        TokenHistogram(blanket=False, schedule=br.Walk()),
        "complete:4",
        [0, 1, 2, 0],
        3,
        12,
        noise,
        seed=6,
    )
    path = run.trace.meetings.b
    events, counts = TokenCounts(False, False).events(run.facts(), (1,), 1e-6)
    spent = counts @ np.array([event.epsilon for event in events])
    expected, window = np.zeros(4), np.zeros(4)
    for peer in path:
        if peer == 1:
            expected, window = expected + 0.7 * window, np.zeros(4)
        else:
            window[peer] += 1
    few = np.array([0, 2, 3])  # windows are too small for any amplification but that of delta
    assert spent[few] == pytest.approx(expected[few], rel=1e-5)


def hockey_stick(one, two, epsilon):
    return sum(max(0.0, p - math.exp(epsilon) * two.get(key, 0.0)) for key, p in one.items())


def law_of_counts(values, kinds, gamma, uniform):
    """The exact law of the counts of some reports and uniform elements."""
    told = [gamma / kinds + (1 - gamma) * np.eye(kinds)[x] for x in values] + [
        np.full(kinds, 1 / kinds)
    ] * uniform
    law = {}
    for answer in itertools.product(range(kinds), repeat=len(told)):
        key = tuple(np.bincount(answer, minlength=kinds))
        law[key] = law.get(key, 0.0) + math.prod(p[y] for p, y in zip(told, answer, strict=True))
    return law


@pytest.mark.parametrize("epsilon", [0.5, 1.5])
@pytest.mark.parametrize(("others", "uniform"), [(1, 0), (2, 1), (3, 2), (4, 1)])
def test_uniform_elements_count_as_reports(epsilon, others, uniform):
    """The bound of a window against the exact divergence of its counts, for all values of the
    others (L = 3)."""
    gamma, size = RandomizedResponse.of(3, epsilon).gamma, 1 + others + uniform
    for delta in (1e-3, 0.05):
        claimed = clones(epsilon, size, delta)
        for rest in itertools.combinations_with_replacement(range(3), others):
            left, right = (law_of_counts([x, *rest], 3, gamma, uniform) for x in (0, 1))
            assert hockey_stick(left, right, claimed) <= delta + 1e-12


def test_who_put_the_uniform_elements_in_is_not_hidden_by_them():
    run = counted(
        TokenHistogram(), "ring:400", np.zeros(400, int), 4, 400, RandomizedResponse.of(4, 1.0)
    )
    alone, helped = run.epsilon(of=5, seen_by=10), run.epsilon(of=5, seen_by={0, 10})
    assert alone < 0.8
    assert helped == pytest.approx(1.0, rel=1e-4)


@pytest.mark.parametrize(
    "noise", [br.Gaussian(clip=1.0, sigma=1.0), br.Laplace(clip=1.0, scale=1.0)], ids=repr
)
def test_other_noise_is_charged_as_local_dp(noise):
    run = counted(TokenHistogram(), "ring:5", np.zeros(5, int), 3, 10, noise)
    assert "need one randomized response" in run.epsilon(of=1, seen_by=3).why()
    assert float(run.epsilon(of=1, seen_by=3)) == pytest.approx(float(run.epsilon(of=1)))


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda: TokenHistogram(rest=0), "rest >= 1, .* found rest = 0"),
        (lambda: RandomizedResponse(1), "2 values or more, found 1"),
        (lambda: RandomizedResponse(3, 1.0), "found 1.0"),
        (lambda: RandomizedResponse(3, 0.5, "house"), "'user' or 'record', found 'house'"),
        (
            lambda: RandomizedResponse(3, 0.5).bare(np.array([[1.0, 1.0, 0.0]]), np.array([7])),
            "peer 7 does not name",
        ),
        (
            lambda: RandomizedResponse(3, 0.5).bare(np.eye(2), np.arange(2)),
            "2 numbers, but randomized response has 3",
        ),
        (
            lambda: RandomizedResponse(3, 0.5).scaled(0.5),
            "randomized_response noise cannot be shared out",
        ),
    ],
)
def test_refusals(act, message):
    with pytest.raises(br.ConfigError, match=message):
        act()
