"""Random families: sizes, laws, connectivity, refusals (gossip:GRAPH-1)."""

from collections.abc import Callable

import networkx as nx
import numpy as np
import pytest

import bruit.graphs as graphs
from bruit.errors import ConfigError

SAMPLES = [
    graphs.erdos_renyi(100, c=2),
    graphs.erdos_renyi(60, q=0.2, seed=3),
    graphs.geometric(80, 0.25),
    graphs.regular(50, 3),
    graphs.watts_strogatz(60, 4, 0.3),
    graphs.barabasi_albert(60, 3),
    graphs.stochastic_blocks([20, 30, 10], 0.5, 0.05),
    graphs.k_out(70, 3),
]


@pytest.mark.parametrize("graph", SAMPLES, ids=lambda g: g.name)
def test_draws_are_simple_connected_and_named(graph: graphs.Graph) -> None:
    assert nx.is_connected(graph.to_networkx())
    assert graph.validity().ok
    again = graphs.graph(graph.name)
    assert isinstance(again, graphs.Graph)
    assert (again.fingerprint(), again.name) == (graph.fingerprint(), graph.name)


def test_seeds_matter() -> None:
    draws = {graphs.regular(50, 3, seed=s).fingerprint() for s in range(5)}
    assert len(draws) == 5


@pytest.mark.parametrize(
    ("n", "degree"),
    [
        (8, 3),
        (10, 4),
        (10, 7),
        (7, 6),
        (9, 2),
        (500, 6),
        (40, 19),
        (6, 5),
        (200, 90),
        (5, 2),
        (4, 1),
    ],
)
def test_regular_graphs_have_exact_degrees(n: int, degree: int) -> None:
    for seed in range(5):
        assert (graphs.regular(n, degree, seed, connected=False).degrees == degree).all()


def test_regular_pairs_are_equally_likely() -> None:
    """800 draws of regular(8, 3): each of 28 pairs has chance 3/7, so |z| < 6 fails with chance
    below 1e-6."""
    draws = 800
    counts = np.zeros((8, 8))
    for seed in range(draws):
        a, b = graphs.regular(8, 3, seed, connected=False).edges().T
        counts[a, b] += 1
    chance = 3 / 7
    z = (counts[np.triu_indices(8, 1)] - draws * chance) / np.sqrt(draws * chance * (1 - chance))
    assert np.abs(z).max() < 6


def test_erdos_renyi_edges_are_independent_coins() -> None:
    """1200 draws of er(6, 0.3): every pair has the right frequency (|z| < 6), and the total the
    right variance."""
    draws, q = 1200, 0.3
    counts, totals = np.zeros((6, 6)), np.zeros(draws)
    for seed in range(draws):
        edges = graphs.erdos_renyi(6, q=q, seed=seed, connected=False).edges()
        counts[edges[:, 0], edges[:, 1]] += 1
        totals[seed] = len(edges)
    z = (counts[np.triu_indices(6, 1)] - draws * q) / np.sqrt(draws * q * (1 - q))
    assert np.abs(z).max() < 6
    assert totals.var() == pytest.approx(
        15 * q * (1 - q), rel=0.25
    )  # standard error 4.1 %, so 6 sigma


def test_erdos_renyi_extremes_and_rate() -> None:
    assert graphs.erdos_renyi(9, q=1.0).fingerprint() == graphs.complete(9).fingerprint()
    assert graphs.erdos_renyi(9, q=0.0, connected=False).edge_count == 0
    n = 3000
    expected = 2 * np.log(n) / n * n * (n - 1) / 2
    assert abs(graphs.erdos_renyi(n, c=2).edge_count - expected) < 6 * np.sqrt(expected)


def test_erdos_renyi_gap_is_in_the_measured_range() -> None:
    """gossip:GRAPH-1, limits: for n = 1024 the gap is about 0.18 to 0.24 with c = 2."""
    assert 0.17 < graphs.spectral_gap(graphs.erdos_renyi(1024, c=2)) < 0.25


def test_geometric_edges_are_the_near_pairs() -> None:
    graph = graphs.geometric(60, 0.3, seed=4)
    assert graph.positions is not None
    gaps = np.linalg.norm(graph.positions[:, None] - graph.positions[None], axis=2)
    near = np.argwhere(np.triu(gaps < 0.3, 1))
    assert graph.edges().tolist() == near.tolist()


def test_watts_strogatz_keeps_the_number_of_edges() -> None:
    assert (
        graphs.watts_strogatz(30, 4, 0.0).fingerprint()
        == graphs.from_networkx(nx.watts_strogatz_graph(30, 4, 0.0)).fingerprint()
    )
    for seed in range(5):
        assert graphs.watts_strogatz(30, 4, 1.0, seed).edge_count == 60
    assert graphs.watts_strogatz(5, 4, 0.5).edge_count == 10


def test_barabasi_albert_counts() -> None:
    """m edges of the first star and m for each newcomer, so every newcomer has degree at least
    m."""
    graph = graphs.barabasi_albert(200, 4)
    assert graph.edge_count == 4 + 195 * 4
    assert graph.degrees[5:].min() >= 4
    assert graph.degrees.max() > 20


def test_stochastic_blocks_follow_their_probabilities() -> None:
    whole = graphs.stochastic_blocks([3, 4], 1.0, 0.0, connected=False)
    assert whole.components().tolist() == [0, 0, 0, 1, 1, 1, 1]
    assert whole.edge_count == 3 + 6
    assert graphs.stochastic_blocks([3, 4], 0.0, 1.0).edge_count == 12
    block = np.repeat([0, 1], [200, 300])
    edges = graphs.stochastic_blocks([200, 300], 0.1, 0.02).edges()
    inside = int((block[edges[:, 0]] == block[edges[:, 1]]).sum())
    assert abs(inside - 0.1 * (19900 + 44850)) < 6 * np.sqrt(6475)
    assert abs(len(edges) - inside - 0.02 * 60000) < 6 * np.sqrt(1200)


def test_k_out_lets_everybody_pick_k() -> None:
    graph = graphs.k_out(40, 5)
    assert graph.degrees.min() >= 5
    assert 100 <= graph.edge_count <= 200
    assert graphs.k_out(6, 5).fingerprint() == graphs.complete(6).fingerprint()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: graphs.erdos_renyi(10), "exactly one of q"),
        (lambda: graphs.erdos_renyi(10, q=0.1, c=1), "exactly one of q"),
        (lambda: graphs.erdos_renyi(10, q=1.5), "q between 0 and 1, found 1.5"),
        (lambda: graphs.erdos_renyi(10, c=float("nan")), "c >= 0, found nan"),
        (
            lambda: graphs.erdos_renyi(500, q=0.001),
            "none of 200 draws is connected; ask for more edges",
        ),
        (lambda: graphs.geometric(10, 0.0), "radius > 0, found 0.0"),
        (lambda: graphs.regular(5, 3), r"n \* degree even, found 5 \* 3 = 15"),
        (lambda: graphs.regular(5, 5), "degree between 0 and n - 1 = 4, found 5"),
        (lambda: graphs.regular(6, 1), "cannot be connected"),
        (lambda: graphs.watts_strogatz(10, 3, 0.1), "even k"),
        (lambda: graphs.watts_strogatz(10, 4, -0.1), "p between 0 and 1"),
        (lambda: graphs.watts_strogatz(60, 58, 1.0), "ws:60,k=58,p=1: too dense to rewire"),
        (lambda: graphs.barabasi_albert(4, 4), "m between 1 and n - 1 = 3, found 4"),
        (lambda: graphs.stochastic_blocks([3, 0], 0.1, 0.1), "blocks of at least one peer"),
        (lambda: graphs.stochastic_blocks([3], 2, 0.1), "p_in between 0 and 1, found 2"),
        (lambda: graphs.k_out(4, 4), "k between 0 and n - 1 = 3, found 4"),
        (lambda: graphs.k_out(0, 0), "at least one peer"),
        (lambda: graphs.k_out(9, 2, seed=-1), "a seed must be >= 0, found -1"),
    ],
)
def test_impossible_draws(make: Callable[[], graphs.Graph], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        make()


@pytest.mark.slow
def test_a_million_peers_of_degree_six() -> None:
    graph = graphs.regular(10**6, 6)
    assert (graph.degrees == 6).all()
    assert graph.is_connected()
