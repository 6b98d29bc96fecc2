"""Rules that cut what is far away: by hand, and against their error whatever liars say (gossip:LIE-1)."""

import numpy as np
import pytest

from bruit.algorithms.gossip.robust_rules import robust_mix
from bruit.algorithms.messages import Inbox, Links
from bruit.graphs.tolerance import ERROR

RULES = list(ERROR)


def mixed(rule, tolerate, weights, moves, floor=0.0):
    """What many peers at 0 make of what their neighbors say  # weights (peers, k), moves (peers, k, d)."""
    peers, count, dim = moves.shape
    copies = np.arange(peers * count)
    links = Links(
        ids=np.arange(peers),
        start=np.arange(peers + 1) * count,
        senders=copies,
        columns=copies,
        weights=weights.ravel(),
        own=1 - weights.sum(axis=1),
    )
    inbox = Inbox(links, moves.reshape(-1, dim), True, None)
    return robust_mix(rule, tolerate, inbox, np.zeros((peers, dim)), 1.0, floor)


def one(rule, tolerate, weights, numbers, floor=0.0):
    return mixed(
        rule, tolerate, np.array([weights]), np.array(numbers, float)[None, :, None], floor
    )[0, 0]


def test_rules_by_hand():
    weights, numbers = (0.2, 0.2, 0.2, 0.2), (1.0, -2.0, 3.0, 10.0)
    assert one("clip", 0.2, weights, numbers) == pytest.approx(0.2 * (1 - 2 + 3 + 3))
    assert one("clip", 0.3, weights, numbers) == pytest.approx(0.2 * (1 - 2 + 2 + 2))
    assert one("clip", 0.5, weights, numbers) == 0.0  # nobody is left to be believed
    assert one("trim", 0.2, weights, numbers) == pytest.approx(0.2 * (1 - 2 + 3))
    assert one("trim", 0.3, weights, numbers) == pytest.approx(0.2 * (1 - 2 + 1.5))
    limit = np.sqrt(0.2 * (1 + 4 + 9) / 0.2)
    assert one("mean-clip", 0.2, weights, numbers) == pytest.approx(0.2 * (1 - 2 + 3 + limit))
    for rule in RULES:
        assert one(rule, 0.0, weights, numbers) == pytest.approx(0.2 * 12)
        assert one(rule, 0.3, weights, numbers, floor=10.0) == pytest.approx(0.2 * 12)
    assert one("clip", 0.3, weights, numbers, floor=5.0) == pytest.approx(0.2 * (1 - 2 + 3 + 5))
    assert one("trim", 0.3, weights, numbers, floor=5.0) == pytest.approx(0.2 * (1 - 2 + 3))


@pytest.mark.parametrize("rule", RULES)
def test_far_away_or_not_a_liar_moves_as_little(rule):
    near, far = (one(rule, 0.2, [0.2] * 4, (1.0, -1.0, 2.0, lie)) for lie in (2.5, 1e150))
    assert abs(near) < 1
    assert abs(far) < 1


@pytest.mark.parametrize("rule", RULES)
def test_a_lane_does_not_feel_the_liar_of_another(rule):
    rng = np.random.default_rng(2)
    weights, moves = np.full((3, 4), 0.2), rng.normal(size=(3, 4, 2))
    before = mixed(rule, 0.2, weights, moves)
    moves[1, 2] = 1e150
    after = mixed(rule, 0.2, weights, moves)
    assert np.array_equal(after[[0, 2]], before[[0, 2]])


def trials(rng, peers=1500, count=6, dim=2):
    """Weights, tolerated weights, who lies, and what is said: liars at the distances of honest ones,
    among them, all on one side, or far away."""
    weights = rng.dirichlet(np.ones(count + 1), peers)[:, :count]
    lies = rng.random((peers, count)) < rng.uniform(0, 0.5, (peers, 1))
    tolerate = (weights * lies).sum(axis=1) * rng.choice([1.0, 1.0, 1.3], peers)
    sizes = rng.choice([0.0, 1e-3, 1.0, 1.0, 2.0], (peers, count))
    sides = rng.normal(size=(peers, count, dim)) * rng.choice([0.0, 0.3, 1.0], (peers, 1, 1))
    moves = sides + np.array([1.0] + [0.0] * (dim - 1))
    moves *= (sizes / np.linalg.norm(moves, axis=2))[..., None]
    pick = rng.integers(0, count, peers)
    edge = np.linalg.norm(moves, axis=2)[np.arange(peers), pick]
    reach = edge[:, None] * rng.choice([0.5, 0.999, 1.0, 1.001, 100.0], (peers, count))
    said = np.zeros_like(moves)
    said[..., 0] = reach * rng.choice([-1.0, 1.0], (peers, 1))
    return weights, tolerate, lies, np.where(lies[..., None], said, moves)


def worst(rule, floor, seed=0):
    """The largest error over its bound with rho = 1, over peers and rounds of trials."""
    rng, ratios = np.random.default_rng(seed), []
    weights, tolerate, lies, moves = trials(rng)
    for k in np.flatnonzero(tolerate > 1e-6):
        b = tolerate[k]
        found = mixed(rule, b, weights[k : k + 1], moves[k : k + 1], floor)[0]
        honest = weights[k] * ~lies[k]
        error = np.sum((found - honest @ moves[k]) ** 2) - 2 * (b * floor) ** 2
        spread = b * float(honest @ np.sum(moves[k] ** 2, axis=1))
        ratios.append(error / max(spread, 1e-30) if error > 1e-12 else 0.0)
    return max(ratios)


@pytest.mark.parametrize("floor", [0.0, 0.7])
@pytest.mark.parametrize("rule", RULES)
def test_no_liars_pass_the_error_of_a_rule(rule, floor):
    """Sets of liars, many of them where a rule decides; the next test shows that it can fail."""
    assert worst(rule, floor) <= ERROR[rule] * (1 + 1e-6)


def test_liars_that_weigh_more_than_is_tolerated_pass_it():
    """The same trials with 0.6 of what the liars weigh."""
    for rule in RULES:
        ratio = 0.0
        weights, tolerate, lies, moves = trials(np.random.default_rng(0))
        for k in np.flatnonzero(tolerate > 1e-6):
            b = 0.6 * (weights[k] * lies[k]).sum()
            found = mixed(rule, b, weights[k : k + 1], moves[k : k + 1])[0]
            honest = weights[k] * ~lies[k]
            error = np.sum((found - honest @ moves[k]) ** 2)
            ratio = max(ratio, error / max(b * float(honest @ np.sum(moves[k] ** 2, 1)), 1e-12))
        assert ratio > 1.5 * ERROR[rule]


def test_the_error_of_clip_and_trim_is_nearly_reached():
    """Honest neighbors of weight 2 b far away and the rest here: clip believes none. Liars of weight b
    at the distance of as much honest weight, on the other side: trim believes the liars."""
    assert one("clip", 0.1, (0.19, 0.3, 0.3), (1.0, 0.0, 0.0)) ** 2 == 0.0
    assert pytest.approx(1.9) == 0.19**2 / (0.1 * 0.19)  # error of 0, in units of b s^2
    found = one("trim", 0.2, (0.2, 0.2, 0.4), (1.0, -0.999, 0.0))
    assert (found - 0.2) ** 2 / (0.2 * 0.2) == pytest.approx(4.0, rel=0.01)


@pytest.mark.parametrize("rule", RULES)
def test_nothing_of_tolerated_liars_is_kept_where_weights_are_small(rule):
    """500 of 5000 neighbors lie, b is what they weigh: parts of a weight had been rounded to the nearest,
    so that a ten-billionth of the liars stayed, at any distance."""
    numbers = np.concatenate([np.full(500, 1e30), np.linspace(-1, 1, 4500)])
    weights, honest = np.full(5000, 1 / 5000), numbers[500:] / 5000
    error = one(rule, 0.1, weights, numbers) - honest.sum()
    assert error**2 <= ERROR[rule] * 0.1 * (5000 * honest**2).sum()


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("lie", [1e160, 1e308, np.inf, -np.inf, np.nan])
def test_what_is_no_number_or_has_no_square_is_far_away(rule, lie):
    assert abs(one(rule, 0.2, [0.2] * 4, (1.0, -1.0, 2.0, lie))) < 1
