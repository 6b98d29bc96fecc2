"""Losses of all pairs of a walk on any graph, before it starts, against direct summation and
printed numbers."""

import math

import numpy as np
import pytest

from bruit.errors import ConfigError, PrivacyError
from bruit.graphs import Graph, complete, erdos_renyi, from_edges, path, ring, star
from bruit.privacy.ahead.exponential_sums import LARGEST, exponential_sum, values
from bruit.privacy.ahead.walk_ahead import contribution_divergence
from bruit.privacy.ahead.walk_pairs import (
    first_passage,
    orders_at,
    pair_guarantee,
    pair_law,
    pairwise_divergences,
    pairwise_epsilons,
    segments,
    summary,
)
from bruit.privacy.profile import GaussianProfile

pytestmark = pytest.mark.slow

RING, PATH, CLIQUE = ring(5), path(4, plus=0), complete(4)
ALONE = 10**9
"""A cool-down that never ends: only the observer can end a segment."""


def law_by_hand(w: np.ndarray, u: int, stop: list[int], cooldown: int, length: int) -> np.ndarray:
    """Pr[first visit to `stop`, or to u from the cool-down on, is at i]."""
    here, found = np.eye(len(w))[u], []
    for i in range(1, length + 1):
        here = here @ w
        ends = stop + ([u] if i >= cooldown else [])
        found.append(here[ends].sum())
        here[ends] = 0.0
    return np.array(found)


def lse(growth: float, order: float) -> float:
    return math.log1p(growth) / (order - 1)


@pytest.mark.parametrize(
    ("graph", "u", "v", "hitting", "one", "three", "lse_hitting", "lse_one", "lse_three"),
    [
        (RING, 0, 1, 0.475588813, 0.763215135, 0.515330495, 0.200536213, 0.301819934, 0.212024447),
        (RING, 0, 2, 0.192614534, 0.585583288, 0.283731605, 0.075049011, 0.233590861, 0.107962055),
        (PATH, 0, 1, 0.693147181, 1.0, 0.708333333, 0.273874315, 0.375, 0.277876803),
        (PATH, 1, 3, 0.216193366, 0.443147181, 0.308608208, 0.085544647, 0.167646811, 0.117781500),
        (
            CLIQUE,
            0,
            1,
            0.462098120,
            0.693147181,
            0.497081156,
            0.189955714,
            0.273874315,
            0.200411318,
        ),
    ],
)
def test_worked_table(graph, u, v, hitting, one, three, lse_hitting, lse_one, lse_three):
    """walk:RW-8: E[1/H], E[1/l] and the exact mixture bound at alpha = 3, z = 2."""
    growth = 3 * 2 / (2 * 4)
    at = np.array([0.0, growth])
    passage, either = first_passage(graph, at)[:, u, v], segments(graph, at)[:, u, v]
    assert passage[0] == pytest.approx(hitting, abs=2e-9)
    assert either[0] == pytest.approx(one, abs=2e-9)
    assert lse(passage[1], 3) == pytest.approx(lse_hitting, abs=2e-9)
    assert lse(either[1], 3) == pytest.approx(lse_one, abs=2e-9)
    assert pairwise_divergences(graph, 2.0, 3.0)[u, v] == pytest.approx(lse_hitting, abs=2e-9)
    assert pairwise_divergences(graph, 2.0, 3.0, cap=2)[u, v] == pytest.approx(
        2 * lse_one, abs=4e-9
    )
    for cooldown, mean, found in (
        (1, one, lse_one),
        (3, three, lse_three),
        (ALONE, hitting, lse_hitting),
    ):
        law = pair_law(graph, u, v, cooldown)
        assert law.mean_inverse == pytest.approx(mean, abs=2e-9)
        assert contribution_divergence(law, 3.0, 2.0) == pytest.approx(found, abs=2e-9)
    assert lse(segments(graph, at, 3)[1, u, v], 3) >= lse_three - 1e-9


def test_resolvent_numbers():
    """walk:RW-8, ring of 5."""
    at = np.array([0.3, 1.0])
    np.testing.assert_allclose(
        first_passage(RING, at)[:, 0, [1, 2]],
        [[0.16145921, 0.06042273], [0.74156126, 0.22476704]],
        atol=6e-9,
    )
    np.testing.assert_allclose(
        segments(RING, at)[:, 0, [1, 2]],
        [[0.26394864, 0.19735587], [1.26368119, 0.88791676]],
        atol=1.2e-8,
    )


def test_collusion():
    """walk:RW-10: F = {2, 3} on a ring of 5, first passage and with returns."""
    alone, together = pair_law(RING, 0, (2, 3), ALONE), pair_law(RING, 0, (2, 3))
    assert alone.mean_inverse == pytest.approx(0.257626916, abs=1e-9)
    assert together.mean_inverse == pytest.approx(0.621860432, abs=1e-9)
    assert contribution_divergence(alone, 3.0, 2.0) == pytest.approx(0.099930441, abs=1e-9)
    assert contribution_divergence(together, 3.0, 2.0) == pytest.approx(0.244443454, abs=1e-9)


def test_known_sender_costs_nothing():
    """walk:RW-9: the exact guarantee says so, and has no parameter for it."""
    assert any("senders" in note for note in pair_guarantee(RING, 0, 2, 2.0).notes)


@pytest.mark.parametrize(
    "graph", [path(7), star(9, plus=0), erdos_renyi(40, c=1.2, seed=3), PATH, ring(4, plus=0)]
)
def test_against_direct_sums(graph: Graph):
    """Never below the truth, and above it by no more than 1e-6 of it, for small and large
    lambda."""
    w, lambdas, length = graph.weights.toarray(), [0.0, 0.01, 1.0, 7.5, 30.0, 80.0], 2500
    weights = values(np.array(lambdas), np.arange(1.0, length + 1))
    for u, v in [(0, graph.n - 1), (1, 2)]:
        hit, both = law_by_hand(w, u, [v], ALONE, length), law_by_hand(w, u, [v], 1, length)
        back, cooled = law_by_hand(w, u, [], 4, length), law_by_hand(w, u, [v], 4, length)
        for lam, weight in zip(lambdas, weights, strict=True):
            at = np.array([lam])
            for law, found in ((hit, first_passage(graph, at)), (both, segments(graph, at))):
                low, tail = float(law @ weight), max(0.0, 1 - law.sum()) * weight[-1]
                assert low * (1 - 1e-12) <= found[0, u, v] <= (low + tail) * (1 + 2e-6) + 1e-9
            union = segments(graph, at, 4)[0, u, v]
            assert float(cooled @ weight) <= union * (1 + 1e-12)
            assert union == pytest.approx(
                min(float((hit + back) @ weight), float(both @ weight)), rel=2e-3
            )


def test_the_rule_is_above_the_function():
    for lam in (0.0, 0.5, 16.0, LARGEST):
        at = np.array([lam])
        rule = exponential_sum(at)
        late = np.append(np.arange(rule.head + 1.0, 500.0), [1e5 + 0.5, 1e9, 1e13])
        found = (rule.weights @ np.exp(-np.outer(rule.rates, late)))[0]
        assert np.all(found >= values(at, late)[0])
        assert found[:400] == pytest.approx(values(at, late)[0, :400], rel=2e-7)


def test_clique_with_a_pendant_peer():
    """walk:RW-15: above the exact divergence for C = 1, and the printed columns of the verified
    bounds."""
    rows = ((21, 15, 3.610592, 0.200825, 1.076539), (41, 30, 7.349905, 0.211904, 2.705206))
    for m, contributions, one, more, exact in rows:
        edges = [(i, j) for i in range(m) for j in range(i)] + [(0, m)]
        graph = from_edges(m + 1, edges, plus=0)
        found = contributions * contribution_divergence(pair_law(graph, m, 5), 2.0, 2.0)
        assert found == pytest.approx(one, rel=1e-6)
        assert found > exact
        assert pairwise_divergences(graph, 2.0, 2.0, contributions)[m, 5] == pytest.approx(
            one, rel=1e-6
        )
        cooled = contributions * contribution_divergence(pair_law(graph, m, 5, m), 2.0, 2.0)
        assert cooled == pytest.approx(more, rel=1e-5)
        assert pairwise_divergences(graph, 2.0, 2.0, contributions, m)[m, 5] >= more


def test_epsilons_of_all_pairs_against_one_pair():
    """All pairs at once are never below the exact pair, close to its Renyi route, and never above
    local DP."""
    graph = erdos_renyi(30, c=1.3, seed=1)
    found = pairwise_epsilons(graph, 3.0, 1e-6, cap=5)
    assert np.isnan(np.diag(found)).all()
    local = pairwise_epsilons(complete(2), 3.0, 1e-6, cap=5)[0, 1]
    assert np.nanmax(found) <= local
    for u, v in ((0, 1), (4, 20)):
        exact, renyi = (
            float(pair_guarantee(graph, u, v, 3.0, 5, route=r).epsilon(1e-6))
            for r in ("exact", "renyi")
        )
        assert exact <= found[u, v] * (1 + 1e-9)
        assert found[u, v] <= renyi * 1.02
    assert np.nanmax(pairwise_epsilons(graph, 3.0, 1e-6, 5, cooldown=20) - found) <= 1e-12


def test_a_single_contribution_is_seen_once():
    """walk:RW-8: for N = 1 the returns to u do not count; two contributions cost more than twice
    that."""
    one, two = (pair_guarantee(RING, 0, 2, 2.0, cap) for cap in (1, 2))
    hit = law_by_hand(RING.weights.toarray(), 0, [2], ALONE, 3000)
    delta = float(hit @ [GaussianProfile(0.5 / math.sqrt(i)).delta(0.1) for i in range(1, 3001)])
    assert delta <= one.delta(0.1) <= delta * 1.01
    assert two.delta(0.1) > 2 * one.delta(0.1)
    assert pairwise_epsilons(RING, 2.0, 1e-6)[0, 2] >= float(one.epsilon(1e-6))


def test_summary_agrees_with_the_matrices():
    """walk:RW-13: worst and mean of the same numbers; the least noise was checked."""
    graph = path(6)
    told = summary(graph, cooldown=3)
    z = 2.0
    for k in (5, 20):
        order = float(orders_at(told.lambdas, z)[k])
        matrix = pairwise_divergences(graph, z, order, cap=4, cooldown=3)
        assert 4 * told.worst[k] / (order - 1) == pytest.approx(np.nanmax(matrix), rel=1e-6)
        mean = np.nansum(matrix, axis=0) / 6
        assert 4 * told.mean[k] / (order - 1) == pytest.approx(mean, rel=1e-6)
    assert told.worst_epsilon(z, 1e-6, 4) == pytest.approx(
        np.nanmax(pairwise_epsilons(graph, z, 1e-6, 4, 3)), rel=1e-9
    )
    assert float(told.guarantee(z, 4).epsilon(1e-6)) >= told.worst_epsilon(z, 1e-6, 4)
    least = told.least_noise(1.0, 1e-6, 4)
    assert told.worst_epsilon(least, 1e-6, 4) <= 1.0 < told.worst_epsilon(0.999 * least, 1e-6, 4)
    mean = told.least_noise_for_mean(1.0, 1e-6, 4)
    assert told.mean_epsilon(mean, 1e-6, 4) <= 1.0 < told.mean_epsilon(0.99 * mean, 1e-6, 4)


def test_components_never_hear_of_each_other():
    graph = from_edges(6, [(0, 1), (1, 2), (3, 4)])
    found = pairwise_epsilons(graph, 1.0, 1e-6, 3)
    assert found[0, 3] == found[4, 2] == found[5, 0] == found[1, 5] == 0.0
    assert found[0, 1] > 0.0
    assert found[3, 4] > 0.0
    assert pair_guarantee(graph, 0, 3, 1.0, 3).epsilon(1e-6) == 0.0
    assert pairwise_divergences(graph, 0.05, 2.0)[0, [2, 3]] == pytest.approx([400.0, 0.0])


@pytest.mark.parametrize(
    ("call", "error", "said"),
    [
        (lambda: pair_guarantee(RING, 0, 0, 1.0), PrivacyError, "nobody has secrets from oneself"),
        (lambda: pair_guarantee(RING, 0, (1, 0), 1.0), PrivacyError, "nobody has secrets"),
        (lambda: pair_guarantee(RING, 0, (), 1.0), PrivacyError, "names no peer"),
        (lambda: pair_guarantee(RING, 0, 9, 1.0), PrivacyError, "peers are 0..4"),
        (lambda: pair_guarantee(RING, 0, 1, 0.0), PrivacyError, "above 0"),
        (lambda: pair_guarantee(RING, 0, 1, 1.0, 0), PrivacyError, "at least one contribution"),
        (lambda: pair_guarantee(RING, 0, 1, 1.0, 1, 0), ConfigError, "cool-down"),
        (lambda: pairwise_epsilons(RING, 1.0, 1.0), PrivacyError, "strictly between 0 and 1"),
        (lambda: pairwise_epsilons(RING, -1.0), PrivacyError, "above 0"),
        (lambda: pairwise_divergences(RING, 1.0, 1.0), PrivacyError, "above 1"),
        (
            lambda: first_passage(RING, np.array([100.0])),
            PrivacyError,
            "raise the noise multiplier",
        ),
        (lambda: segments(RING, np.array([-1.0])), PrivacyError, "lambda"),
        (lambda: segments(RING, np.array([1.0]), 0), ConfigError, "cool-down"),
        (lambda: summary(RING).worst_epsilon(1.0, 0.0), PrivacyError, "strictly between 0 and 1"),
    ],
)
def test_refusals(call, error, said):
    with pytest.raises(error, match=said):
        call()
