"""Sums, histograms and distances: the source's bounds, what is proven, what was realized
(walk:RWE-1, 2, 4, 5, 10, 13).

Expected numbers are those of the specification, computed there apart from this library.
"""

import math

import numpy as np
import pytest

import bruit as br
from bruit.graphs import complete, erdos_renyi, hypercube
from bruit.privacy.exact.krylov import leverage
from bruit.privacy.theorems.published import published_losses
from bruit.tasks import Mean
from papers.figures import token_counts, token_sums, walk_distance
from papers.figures.heterogeneity import snapshots
from papers.figures.walk_lengths import gossip_steps, walk_steps
from papers.printed.walk import visit_sums


def test_printed_bounds_of_a_sum():
    """walk:RWE-1: the four curves of Fig. 7.1(a) and where they cross."""
    assert token_sums.printed_bounds(20).local_random == pytest.approx(9.175762, abs=1e-6)
    assert token_sums.printed_bounds(20).local_fixed == pytest.approx(6.729402, abs=1e-6)
    for n, epsilon in ((20, 7.50751), (100, 3.04268), (10**4, 0.28207), (10**6, 0.02799)):
        assert token_sums.printed_bounds(n).network_random == pytest.approx(epsilon, abs=1e-5)
    assert token_sums.crossing("local_random", "network_random") == 15
    assert token_sums.crossing("local_fixed", "network_fixed") == 18
    assert token_sums.crossing("local_random", "network_numeric") == 2
    steep = (
        token_sums.printed_bounds(10**8).network_random
        / token_sums.printed_bounds(10**10).network_random
    )
    assert steep == pytest.approx(10, rel=0.01)  # 1 / sqrt(n)


@pytest.mark.slow
def test_proven_bounds_of_a_sum():
    """walk:RWE-1: whole cycles (heuristic) .2116, .0874, at most .0246; the exact account .1694 at
    n = 20."""
    assert token_sums.cycles_epsilon(20, 2.7e-5) == pytest.approx(0.2116, abs=5e-4)
    assert token_sums.cycles_epsilon(100, 2.7e-5) == pytest.approx(0.0874, abs=5e-4)
    assert token_sums.cycles_epsilon(1000, 2.7e-5) <= 0.0246
    assert token_sums.proven_epsilon(20, 2.7e-5, 0.002) == pytest.approx(0.1694, abs=5e-4)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n", "epsilon"),
    [(5, 0.376), (10, 0.258), (20, 0.177), (50, 0.107), (100, 0.0735), (200, 0.0502)],
)
def test_realized_losses_of_a_sum(n, epsilon):
    """walk:RWE-2, epsilon_0 = .1, within 7 %; energies within 3 % of 200/n. 10 walks, 4 of the
    largest."""
    found = token_sums.realized(n, walks=10 if n <= 50 else 4)
    assert found.mean == pytest.approx(epsilon, rel=0.07)
    assert found.energy == pytest.approx(200 / n, rel=0.03)
    assert found.local == pytest.approx(0.626, rel=0.01)
    assert found.least < found.mean < found.most < found.local
    assert token_sums.realized(n, 0.4, walks=1).most < token_sums.realized(n, 0.4, walks=1).local
    if n == 100:
        assert found.local / found.mean == pytest.approx(8.5, rel=0.07)


def test_realized_losses_are_those_of_a_run():
    """walk:RWE-2 by the run's own ledger: m[u, v] of a sum that was collected, z = sigma / (2
    clip)."""
    graph, z = complete(5), 57.1686
    run = br.run(
        br.WalkSum(),
        graph,
        Mean.uniform(5, seed=0),
        privacy=br.Gaussian(clip=1.0, sigma=2 * z),
        steps=500,
        seed=0,
        evaluate_every=0,
    )
    own = token_sums.walk_matrix(token_sums.visits(run.trace.meetings.b, 5, additive=True))
    np.testing.assert_allclose(run.losses(), own, rtol=1e-3)
    assert np.nanmean(own) == pytest.approx(40, rel=0.1)


@pytest.mark.slow
def test_realized_losses_of_a_histogram():
    """walk:RWE-4. Shuffling with subsampling, a heuristic, meets the criterion without more: below
    local DP from n = 50 on, and the ratio grows. The proven account of a known walk does not:
    windows with two reports of a peer cost twice eps0, and at n <= 200 nothing is gained. With a
    cool-down of 2 n hops, which makes them rare, it does too."""
    plain = {n: token_counts.histogram(n, walks=2, pairs=10) for n in (50, 100, 200)}
    gains = [found.local / found.heuristic for found in plain.values()]
    assert gains == sorted(gains)
    assert gains[0] > 2
    assert all(found.local / found.proven < 1.01 for found in plain.values())
    rested = [token_counts.histogram(n, rest=2 * n, walks=10) for n in (50, 100, 200)]
    gains = [found.local / found.proven for found in rested]
    assert gains == sorted(gains)
    assert gains[0] > 1.2
    assert all(found.most < found.local for found in rested)


CUBE = [
    0.116585,
    0.015314,
    0.005444,
    0.003386,
    0.002715,
    0.002419,
    0.00226,
    0.00216,
    0.002092,
    0.002042,
    0.002003,
]
EXACT = [1, 0.2, 0.0667, 0.0333, 0.0238, 0.0238, 0.0333, 0.0667, 0.2, 1, 1]
PROVEN = {1: 0.146531, 2: 0.015351, 3: 0.005569, 5: 0.003206, 8: 0.002776, 11: 0.002661}


@pytest.mark.slow
def test_loss_against_distance_on_the_hypercube():
    """walk:RWE-5, 2048 peers: printed walk, proven walk (C = 50, the table of walk:RW-14), printed
    and exact gossip."""
    graph, all_of_them = hypercube(11), np.arange(1, 12)
    assert (walk_steps(graph, 1.0), gossip_steps(graph, 1.0)) == (1150, 19)
    printed = walk_distance.by_distance(
        graph, walk_distance.printed_walk(graph, 0, 1150), 0, all_of_them
    )
    assert printed == pytest.approx(CUBE, abs=1e-6)
    exact = walk_distance.by_distance(graph, leverage(graph, [0], 19).loss, 0, all_of_them)
    assert exact == pytest.approx(EXACT, abs=1e-4)
    sums = walk_distance.by_distance(
        graph, published_losses(lambda _: graph, 2048, 19, [0]), 0, all_of_them
    )
    assert [sums[0], sums[9], sums[10]] == pytest.approx([2.253, 0.0123, 0.00945], rel=3e-3)
    assert np.all(printed < 1)  # below local DP even next door
    far = np.array(list(PROVEN))
    proven = walk_distance.proven_walk(graph, 0, far)
    assert proven == pytest.approx(list(PROVEN.values()), rel=2e-3)
    assert np.all(
        exact[far - 1] > 6.8 * proven
    )  # walk:RWE-5: 7 to 375 times less than one gossip averaging
    assert exact[10] / proven[-1] == pytest.approx(375, rel=0.01)


@pytest.mark.slow
def test_loss_against_distance_without_self_loops():
    """walk:RWE-5, Hamilton weights without self-loop: T = 1050."""
    graph = hypercube(11, plus=0)
    assert walk_steps(graph, 1.0) == 1050
    found = walk_distance.by_distance(
        graph, walk_distance.printed_walk(graph, 0, 1050), 0, np.arange(1, 12)
    )
    assert found[[0, 1, 2, 4, 10]] == pytest.approx(
        [0.106445, 0.013981, 0.004968, 0.002477, 0.001827], abs=1e-6
    )


@pytest.mark.slow
def test_a_known_sender_costs_nothing_that_is_proven():
    """walk:RWE-10 on the 7-cube: the printed curve is above the anonymous one, with the same far
    end; the proven one reveals the whole walk already, so there is one curve only, and it takes no
    argument to say who is known."""
    graph = hypercube(7)
    steps, far = walk_steps(graph, 1.0), np.arange(1, 8)
    plain = walk_distance.by_distance(graph, walk_distance.printed_walk(graph, 0, steps), 0, far)
    known = walk_distance.by_distance(graph, walk_distance.known_senders(graph, 0, steps), 0, far)
    assert np.all(known >= plain)
    same = (
        2 * steps / graph.n * visit_sums(graph, steps)[:, 0]
    )  # the form with H_T, as for the known sender
    anonymous = walk_distance.by_distance(graph, np.minimum(1.0, same), 0, far)
    assert known[-1] / anonymous[-1] < 1.05 < 1.2 < known[2] / anonymous[2]


@pytest.mark.slow
def test_on_random_graphs_the_walk_is_below_exact_gossip():
    """walk:RWE-5, Erdos-Renyi, q = 1.2 log n / n: smaller here (512 peers, 2 draws) than in the
    source (2048, 5)."""
    for seed in range(2):
        graph = erdos_renyi(512, c=1.2, seed=seed)
        found = walk_distance.curves(graph, np.arange(1, 4))
        assert np.all(found.proven < found.gossip_exact)
        assert np.all(np.diff(found.printed) < 0)
        assert np.all(found.printed < 1)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_neighbors_who_are_alike(seed):
    """walk:RWE-13: the loss knows nothing of values; likeness of neighbors is gone within 1500
    hops."""
    found = snapshots(seed)
    assert np.array_equal(found.losses[0], found.losses[1])
    assert found.alike[0, 0] == pytest.approx(0.115, abs=0.01)
    assert 0.42 < found.shuffled[0, 0] < 0.5
    assert 0.15 < found.gaps[0] < 0.2
    assert found.gaps[0] >= 4 * found.gaps[-1]
    assert found.losses[0, 0] > 3 * found.losses[0, -1]
    assert math.isclose(found.alike[0].mean(), found.shuffled[0].mean(), rel_tol=0.05)
