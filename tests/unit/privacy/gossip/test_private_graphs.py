"""Hidden random graphs (gossip:MUF-8, MUF-10, MUF-11): worked numbers, their average, and what does
not add up."""

import math

import numpy as np
import pytest
from scipy.integrate import trapezoid

from bruit.arrays import Array
from bruit.errors import ConfigError, PrivacyError
from bruit.graphs import erdos_renyi, from_edges
from bruit.privacy.ahead.private_graph import (
    HiddenRound,
    adjacency_probability,
    fresh_divergence,
    fresh_hidden_graphs,
    fresh_hidden_graphs_renyi,
    fresh_hidden_graphs_without_consensus,
    hidden_graph,
    hidden_graph_neighbor,
    hidden_graph_renyi,
    stranger_divergence,
    stranger_share,
)
from bruit.privacy.exact.krylov import leverage
from bruit.privacy.toolbox.gaussian import deltas
from papers.printed.private_graph import published_fresh_divergence, published_stranger_divergence


def test_worked_numbers_of_one_observer():
    """gossip:MUF-8: alpha = 2, Delta = 1, sigma = 2, T = 8, d = 10, n = 2000."""
    assert stranger_divergence(2.0, 2.0, stranger_share(2000, 10, 8)) == pytest.approx(
        0.0109979889, rel=1e-8
    )
    assert published_stranger_divergence(2.0, 2.0, 2000, 10, 8) == pytest.approx(
        0.0201005025, rel=1e-8
    )
    assert hidden_graph_neighbor(2000, 8, 2.0).profile.divergence(2.0) == pytest.approx(0.25)


def test_worked_numbers_of_colluders():
    """gossip:MUF-10 (C.14): d_V = 30, |V| = 3."""
    assert stranger_divergence(2.0, 2.0, stranger_share(2000, 30, 8, 3)) == pytest.approx(
        0.0333629893, rel=1e-8
    )
    assert published_stranger_divergence(2.0, 2.0, 2000, 30, 8) == pytest.approx(
        0.0609137056, rel=1e-8
    )
    assert adjacency_probability(2 * math.log(2000) / 2000, 3) == pytest.approx(
        0.0226298254, rel=1e-8
    )


def test_worked_numbers_of_fresh_graphs():
    """gossip:MUF-11: K = 8, |N_t| = 9, 11, 8, adjacent in the second round only."""
    rounds = [
        HiddenRound(False, stranger_share(2000, 9, 8)),
        HiddenRound(True, 1.0),
        HiddenRound(False, stranger_share(2000, 8, 8)),
    ]
    assert fresh_divergence(2.0, 2.0, rounds) == pytest.approx(0.268682769, rel=1e-8)
    printed = published_fresh_divergence(2.0, 2.0, 2000, 8, [9, 11, 8], [False, True, False])
    assert printed == pytest.approx(0.534145623, rel=1e-8)
    proven, guess = (
        fresh_hidden_graphs_renyi(rounds, 2.0),
        fresh_hidden_graphs_without_consensus(rounds, 2.0),
    )
    assert (proven.status, guess.status) == ("ideal", "heuristic")
    assert proven.profile.divergence(2.0) == pytest.approx(0.268682769, rel=1e-8)
    assert fresh_hidden_graphs(rounds, 2.0).epsilon(1e-6) < proven.epsilon(1e-6)
    assert any("exact consensus" in h.text for h in proven.hypotheses)
    assert any("not a guarantee" in note for note in guess.notes)


def test_strangers_share_what_messages_can_tell():
    """gossip:MUF-8: the average of m over non-neighbors is (T - 1) d / (n - 1 - d), never more
    (ER(64), T = 4)."""
    for seed in range(4):
        graph = erdos_renyi(64, c=2.0, seed=seed)
        found = leverage(graph, [0], 4)
        far = np.setdiff1d(np.arange(1, 64), graph.neighbors(0))
        share = stranger_share(64, int(graph.degrees[0]), 4)
        assert found.loss[far].mean() <= share + 1e-9
        assert found.loss[far].mean() == pytest.approx(share, rel=1e-4)


def exact_divergence(strangers: int, runs: int, z: float) -> float:
    """D_2 of `runs` runs on one hidden graph: the observer sees one of the strangers, the others
    far away."""
    sigma = z / math.sqrt(runs)
    far = 20 * sigma + 1

    def log_density(x: Array, shift: float) -> Array:
        near, away = -((x - shift) ** 2) / (2 * sigma**2), -((x - far) ** 2) / (2 * sigma**2)
        return np.logaddexp(near, away + math.log(strangers - 1)) - math.log(
            strangers * sigma * math.sqrt(2 * math.pi)
        )

    x = np.linspace(-20 * sigma, far + 20 * sigma, 400_001)
    return math.log(trapezoid(np.exp(2 * log_density(x, 1.0) - log_density(x, 0.0)), x))


def test_runs_on_one_hidden_graph_do_not_add_up():
    """gossip:MUF-8: ten runs lose 1.886, ten bounds add up to 1.5625; one run is within its
    bound."""
    graph = from_edges(4, [(0, 1), (1, 2)])
    assert leverage(graph, [0], 2).loss.tolist() == [
        1,
        1,
        1,
        0,
    ]  # the joined stranger is seen, the other is not
    one = stranger_divergence(2.0, 2.0, stranger_share(4, 1, 2))
    assert 10 * one == pytest.approx(1.5625)
    assert exact_divergence(2, 10, 2.0) == pytest.approx(1.886, abs=5e-4)
    assert exact_divergence(2, 1, 2.0) <= one
    with pytest.raises(PrivacyError, match="c = runs alpha"):
        stranger_divergence(2.0, 2.0, 0.5, runs=10)
    for make in (hidden_graph, hidden_graph_renyi):
        assert exact_divergence(2, 10, 2.0) <= make(4, 1, 2, 2.0, runs=10).profile.divergence(2.0)
    assert exact_divergence(2, 3, 2.0) <= stranger_divergence(2.0, 2.0, 0.5, runs=3)


def test_the_printed_sum_over_runs_is_refuted():
    """One of ten strangers, twenty runs: exact log(0.9 + 0.1 e^5), printed 20 * 0.0909."""
    printed = 20 * published_stranger_divergence(2.0, 2.0, 12, 1, 2)
    exact = exact_divergence(10, 20, 2.0)
    assert exact == pytest.approx(math.log(0.9 + 0.1 * math.exp(5)), rel=1e-6)
    assert printed == pytest.approx(1.818, abs=1e-3)
    assert printed < exact


@pytest.mark.parametrize("make", [hidden_graph, hidden_graph_renyi])
def test_profiles_are_monotone(make):
    about = make(2000, 10, 8, 6.0)
    assert make(2000, 10, 8, 12.0).epsilon(1e-5) < about.epsilon(1e-5)
    assert make(2000, 20, 8, 6.0).epsilon(1e-5) >= about.epsilon(1e-5)
    assert make(2000, 10, 8, 6.0, runs=2).epsilon(1e-5) > about.epsilon(1e-5)
    assert make(2000, 10, 1, 6.0).epsilon(1e-6) == 0.0
    assert make(2000, 0, 8, 6.0).profile.divergence(2.0) == 0.0
    assert make(2000, 10, 8, 0.0).epsilon(1e-6) == math.inf


def test_a_stranger_is_safer_than_a_neighbor():
    for delta in (1e-4, 1e-6, 1e-9):
        assert hidden_graph(2000, 10, 8, 2.0).epsilon(delta) < hidden_graph_neighbor(
            2000, 8, 2.0
        ).epsilon(delta)


@pytest.mark.parametrize("seed", range(3))
def test_above_every_law_of_losses_with_that_mean(seed):
    """walk:F-3 with Markov: E over graphs of delta(m) never exceeds the profile, for any law of m
    in [0, 1]."""
    rng = np.random.default_rng(seed)
    about = hidden_graph(60, 3, 5, 1.5, runs=2)
    share = stranger_share(60, 3, 5)
    for _ in range(30):
        m = rng.beta(rng.uniform(0.05, 2), rng.uniform(0.05, 5), 50)
        m = np.clip(m * share / m.mean(), 1e-6, 1.0)
        for epsilon in (0.0, 0.1, 0.5, 1.0, 3.0):
            mean = float(deltas(epsilon, np.sqrt(2 * m) / 1.5).mean())
            assert mean <= about.delta(epsilon) * (1 + 1e-9)


@pytest.mark.parametrize(
    ("make", "error", "word"),
    [
        (lambda: stranger_share(10, 9, 2), PrivacyError, "nobody is left to hide among"),
        (lambda: stranger_share(10, -1, 2), PrivacyError, "give >= 1"),
        (lambda: stranger_divergence(1.0, 2.0, 0.1), PrivacyError, "above 1"),
        (lambda: stranger_divergence(9.0, 2.0, 0.1), PrivacyError, "raise the noise multiplier"),
        (lambda: hidden_graph(10, 2, 2, -1.0), PrivacyError, "noise is >= 0"),
        (lambda: hidden_graph(10, 2, 2, 1.0, runs=0), PrivacyError, "runs are at least 1"),
        (lambda: adjacency_probability(1.5), PrivacyError, "a probability"),
        (lambda: fresh_hidden_graphs([], 1.0), PrivacyError, "no round"),
        (lambda: fresh_hidden_graphs([HiddenRound(False, 1.5)], 1.0), PrivacyError, "share 1.5"),
        (lambda: published_stranger_divergence(2.0, 0.0, 10, 2, 2), ConfigError, "needs noise"),
        (lambda: published_fresh_divergence(2.0, 1.0, 10, 2, [1], []), ConfigError, "one of each"),
    ],
)
def test_refusals(make, error, word):
    with pytest.raises(error, match=word):
        make()
