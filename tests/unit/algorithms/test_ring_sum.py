"""Private sums on a ring: worked numbers of gossip:RING-1, RING-2, RING-4 and perso:NETDP-2, and
the exact oracle."""

import math
from dataclasses import replace

import numpy as np
import pytest

import bruit as br
from bruit.algorithms.tokens.ring_sum import RingSum
from bruit.graphs import complete, ring, star
from bruit.privacy.ahead.ring import (
    error_std,
    ring_losses,
    shared_noise,
    spaced_noise,
    with_last_noise,
)
from bruit.privacy.events import Exact, GaussianEvent, Mask
from bruit.privacy.theorems.token_sum import TokenSum
from bruit.randomness import Replay
from bruit.runs.engines.forms import exact_losses

NOISE = br.Gaussian(clip=1.0, sigma=1.5, arithmetic="ideal")
RINGS = [(5, 3), (4, 2), (7, 2), (6, 4)]


def going(algorithm, n, cycles, noise=NOISE, values=None, seed=3):
    task = br.tasks.Mean(np.zeros((n, 1)) if values is None else values)
    return br.run(
        algorithm, ring(n), task, privacy=noise, steps=cycles * n, seed=seed, evaluate_every=0
    )


def noisy_hops(run):
    kinds, clock = run.ledger.column("event"), run.ledger.column("clock")
    loud = [k for k, event in enumerate(run.ledger.events) if isinstance(event, GaussianEvent)]
    return sorted(clock[np.isin(kinds, loud)].tolist())


@pytest.mark.parametrize("graph", [ring(6), complete(6)], ids=lambda graph: graph.name)
def test_the_token_goes_round(graph):
    walk = br.Walk(first=4, order="ring")
    path = walk.path(graph, 9, Replay(0))
    assert path.tolist() == [4, 5, 0, 1, 2, 3, 4, 5, 0]
    assert [walk.next(graph, v, 0, Replay(0)) for v in path.tolist()[:-1]] == path.tolist()[1:]
    assert walk.goes_round(graph)
    assert walk.path(graph, 0, Replay(0)).tolist() == []


def test_a_graph_without_that_ring_leaves_peers_out_and_the_account_says_so():
    walk = br.Walk(order="ring")
    assert not walk.goes_round(star(5))
    assert not br.Walk().goes_round(ring(5))
    run = br.run(
        RingSum(),
        star(5),
        br.tasks.Mean(np.zeros((5, 1))),
        privacy=NOISE,
        steps=10,
        evaluate_every=0,
    )
    assert "never came to 3 of 5 peers" in run.epsilon(of=1, seen_by=0).why()


@pytest.mark.parametrize(
    ("n", "cycles", "hops"),
    [
        (5, 3, [0, 4, 8, 12]),
        (3, 1, [0, 2]),
        (5, 2, [0, 4, 8]),
        (4, 3, [0, 3, 6, 9]),
        (2, 2, [0, 1, 2, 3]),
    ],
)
def test_one_noise_every_n_minus_1_hops(n, cycles, hops):
    # gossip:RING-1 (steps 1, 5, 9, 13), perso:NETDP-2 (a ceiling, not a floor)
    assert noisy_hops(going(RingSum(), n, cycles)) == hops
    assert len(hops) == math.ceil(cycles * n / (n - 1))


def test_the_ledger_says_which_values_left_as_they_are():
    run = going(RingSum(), 5, 3)
    assert {type(event) for event in run.ledger.events} == {GaussianEvent, Exact}
    assert run.epsilon() == math.inf  # whoever sees every message sees values
    assert going(RingSum("shared"), 5, 3).epsilon() < math.inf


def test_losses_of_pairs():
    # gossip:RING-1, peers counted from 0
    m = going(RingSum(), 5, 3).losses()
    assert m[:, 2] == pytest.approx([3, 3, np.nan, 2, 2], nan_ok=True)
    assert m[:, 0] == pytest.approx([np.nan, 2, 2, 2, 2], nan_ok=True)


def test_the_epsilon_of_a_hundred_peers():
    # gossip:RING-1: n = 100, K = 10, sigma / Delta = 36.3046904, exact epsilon at delta = 2e-5
    noise = br.Gaussian(clip=0.5, sigma=36.3046904)
    ideal = going(RingSum(), 100, 10, replace(noise, arithmetic="ideal")).epsilon(
        of=3, seen_by=60, delta=2e-5
    )
    assert ideal == pytest.approx(0.276917963, rel=1e-7)
    assert ideal.guarantee.status == "ideal"
    sent = going(RingSum(), 100, 10, noise).epsilon(of=3, seen_by=60, delta=2e-5)
    assert 0 < float(sent) - float(ideal) < 1e-9
    assert sent.guarantee.status == "proven"


def test_shares_of_noise():
    # gossip:RING-2, RING-4: worst pair 3; colluders with h = 1, 2, 3 honest peers between them 12,
    # 6, 4
    run = going(RingSum("shared"), 5, 3)
    assert np.nanmax(run.losses()) == pytest.approx(3)
    for observers, of, loss in (({0, 2}, 1, 12), ({1, 4}, 2, 6), ({0, 4}, 2, 4)):
        assert run.guarantee(of=of, seen_by=observers).loss == pytest.approx(loss)


def test_colluders_see_bare_values():
    # gossip:RING-4
    run = going(RingSum(), 5, 3)
    assert run.epsilon(of=1, seen_by={0, 2}) == math.inf
    assert "holds no noise" in run.epsilon(of=1, seen_by={0, 2}).why()
    assert run.guarantee(of=1, seen_by={0, 2}).loss == math.inf


def test_publishing_needs_one_noise_more():
    # gossip:RING-4: [3, 3, -, inf, inf] without it
    run = going(RingSum(), 5, 3)
    published = TokenSum(published=True).losses(run.facts(), (2,))
    assert np.delete(published, 2).tolist() == [3, 3, math.inf, math.inf]
    weak = TokenSum(published=True).matrix(going(RingSum("shared"), 5, 3).facts())
    assert np.nanmax(weak) == pytest.approx(3 - 1 + 5 - 1)


@pytest.mark.parametrize(("n", "cycles"), RINGS)
@pytest.mark.parametrize("noise", ["spaced", "shared"])
def test_with_it_a_published_token_costs_no_more_than_k(n, cycles, noise):
    # gossip:RING-4
    run = going(RingSum(noise, published=True), n, cycles)
    assert np.nanmax(run.losses()) <= cycles + 1e-9
    assert sum(isinstance(event, Mask) for event in run.ledger.events) == 1
    assert "the last token is published" in run.epsilon(of=0, seen_by=1).why()


@pytest.mark.parametrize("published", [False, True])
@pytest.mark.parametrize(("n", "cycles"), RINGS)
@pytest.mark.parametrize(
    ("noise", "variances"), [("spaced", spaced_noise), ("shared", shared_noise)]
)
def test_the_ledger_gives_what_the_formula_gives(noise, variances, n, cycles, published):
    placed = with_last_noise(variances(n, cycles)) if published else variances(n, cycles)
    facts = going(RingSum(noise, published), n, cycles).facts()
    for observers in ((0,), (n - 1,), (1, 3), (0, 2)):
        rest = np.setdiff1d(np.arange(n), observers)
        expected = ring_losses(n, placed, set(observers), published)[rest]
        assert TokenSum(published).losses(facts, observers)[rest] == pytest.approx(expected)


@pytest.mark.parametrize(
    "algorithm", [RingSum(), RingSum("shared"), RingSum("spaced", True)], ids=repr
)
@pytest.mark.parametrize("observers", [(2,), (0,), (5,), (0, 2), (1, 4)])
def test_losses_equal_the_oracle(algorithm, observers):
    """gossip:LG-1 on the linear forms of the algorithm itself; the oracle knows nothing of a
    published end."""
    rest = np.setdiff1d(np.arange(6), observers)
    truth = exact_losses(algorithm, ring(6), 15, observers)[rest]
    run = br.run(
        algorithm,
        ring(6),
        br.tasks.Mean(np.zeros((6, 1))),
        privacy=NOISE,
        steps=15,
        evaluate_every=0,
    )
    assert TokenSum().losses(run.facts(), observers)[rest] == pytest.approx(truth, rel=1e-9)


@pytest.mark.parametrize(
    "algorithm", [RingSum(), RingSum("shared"), RingSum("shared", published=True)], ids=repr
)
def test_finite_precision_costs_next_to_nothing_and_never_less(algorithm):
    """fp:FP-2: losses are those of real numbers, and every epsilon a little above them."""
    sent, real = (going(algorithm, 5, 3, noise) for noise in (br.Gaussian(1.0, 1.5), NOISE))
    assert np.array_equal(sent.losses(), real.losses(), equal_nan=True)
    for of, seen_by in ((0, 1), (3, 2), (4, 0)):
        for delta in (1e-9, 1e-6, 1e-2):
            more = float(sent.epsilon(of, seen_by, delta)) - float(real.epsilon(of, seen_by, delta))
            assert 0 < more < 1e-9
        assert sent.guarantee(of, seen_by).status == "proven"


def test_the_sum_is_the_sum():
    values = np.random.default_rng(1).uniform(-1, 1, (6, 3))
    run = going(RingSum(), 6, 4, None, values)
    assert run.estimates[5] == pytest.approx(values.mean(axis=0))
    assert run.state.token[5] == pytest.approx(4 * values.sum(axis=0))
    assert run.estimates[0] == pytest.approx((values.sum(axis=0) * 3 + values[0]) / 19)


@pytest.mark.parametrize(
    ("noise", "variances"), [("spaced", spaced_noise), ("shared", shared_noise)]
)
def test_the_error_has_the_announced_size(noise, variances):
    """gossip:RING-2 total variance. 4000 coordinates: the mean square leaves 6 standard deviations
    (14 %) with probability below 2e-8."""
    run = going(RingSum(noise), 5, 3, values=np.zeros((5, 4000)))
    size = float(np.mean(run.state.token[4] ** 2))
    assert size == pytest.approx(
        1.5**2 * error_std(variances(5, 3)) ** 2, rel=6 * math.sqrt(2 / 4000)
    )
    if noise == "shared":
        assert error_std(shared_noise(5, 3)) ** 2 == pytest.approx(1 + 14 / 4)


def test_noise_of_other_kinds():
    spaced = going(RingSum(), 5, 1, br.Laplace(clip=1.0, scale=1.0))
    assert spaced.epsilon(of=1, seen_by=3) == math.inf  # no theorem, and values left as they are
    assert "accounted for Gaussian noise" in spaced.epsilon(of=1, seen_by=3).why()
    with pytest.raises(br.ConfigError, match="laplace noise cannot be shared out"):
        going(RingSum("shared"), 5, 1, br.Laplace(clip=1.0, scale=1.0))


def test_without_noise_nothing_is_hidden():
    assert going(RingSum(), 5, 1, None).epsilon(of=1, seen_by=3) == math.inf


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: RingSum("everywhere"), "'spaced' or 'shared', found noise = 'everywhere'"),
        (lambda: RingSum(schedule=br.Walk()), "needs the order of the ring"),
        (lambda: br.Walk(order="spiral"), "unknown order of a walk 'spiral'"),
        (lambda: br.Walk(token=-1), "walk needs token >= 0, .* found token = -1"),
    ],
)
def test_refusals(make, message):
    with pytest.raises(br.ConfigError, match=message):
        make()
