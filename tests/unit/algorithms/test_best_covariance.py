"""The best covariance of noise, against searches that know nothing of the formulas (gossip:COR-2)."""

import numpy as np
import pytest
from scipy.optimize import minimize

import bruit as br
from benchmarks.networks.correlated import decor, free, kept, laplacian, searched
from bruit.algorithms.gossip.noise_over_time import designed, noise_kept
from bruit.errors import ConfigError
from bruit.graphs.names import fixed_graph
from bruit.privacy.exact import CorrelatedNoise, correlated_losses, edge_parts, tap_matrix

PLACES = ("path:4", "star:4", "ring:5")


@pytest.mark.parametrize("summed", [False, True])
@pytest.mark.parametrize("place", PLACES)
def test_the_closed_form_is_what_a_search_finds(place, summed):
    """Over all covariances C C', C lower triangular; over two rounds and all peers at once too."""
    weights = fixed_graph(place).weights.toarray()
    gram = kept(weights, 2 if summed else 6, summed)
    gram = gram + 0.01 * np.eye(len(gram))
    below = np.tril_indices(len(gram))

    def share(entries, power):
        factor = np.zeros_like(gram)
        factor[below] = entries
        inverse = np.linalg.inv(factor)
        losses = (inverse**2).sum(axis=0)
        most = losses.max() * ((losses / losses.max()) ** power).sum() ** (1 / power)
        return np.log(most * np.trace(gram @ factor @ factor.T) / np.trace(gram))

    found = np.eye(len(gram))[below]
    for power in (10, 100, 1000):
        found = minimize(share, found, (power,), "BFGS").x
    attained, bound = free(gram)
    assert bound <= attained * (1 + 1e-9)
    assert attained == pytest.approx(bound, rel=1e-4)
    assert np.exp(share(found, 1e6)) == pytest.approx(attained, rel=0.01)
    assert np.exp(share(found, 1e6)) >= bound * (1 - 1e-5)


def test_own_noise_tells_an_observer_nothing_of_dealt_noise():
    mixed = np.random.default_rng(0).normal(size=(6, 6))
    covariance = mixed @ mixed.T + np.eye(6)
    hidden, watching = np.arange(1, 6), [0]
    there, across = covariance[np.ix_(hidden, hidden)], covariance[np.ix_(hidden, watching)]
    given = there - across @ across.T / covariance[0, 0]
    assert np.linalg.inv(given) == pytest.approx(np.linalg.inv(covariance)[1:, 1:])


@pytest.mark.parametrize("place", ["ring:8", "torus:3x3", "grid:3x3", "er:12,c=3,seed=2"])
def test_one_ratio_is_best_where_all_edges_are_alike(place):
    """And elsewhere it is not, and parts by degree lie between."""
    graph = fixed_graph(place)
    gram = kept(graph.weights.toarray(), 50, summed=False)
    one, degree, best = (
        decor(graph, gram, False),
        decor(graph, gram, True),
        searched(graph, gram),
    )
    if graph.group is not None:
        assert (degree, best) == pytest.approx((one, one), rel=1e-4)
    else:
        assert best < degree < 0.98 * one
    assert free(gram)[1] < best


def test_what_is_left_in_the_models_is_what_runs_leave():
    """G of descent, against noise that is put in and mixed by hand."""
    weights = fixed_graph("path:3").weights.toarray()
    put, model, left = np.random.default_rng(1).normal(size=(4, 3)), np.zeros(3), 0.0
    for row in put:
        model = weights @ (model + row)
        left += model @ model
    assert put.ravel() @ kept(weights, 4, summed=True) @ put.ravel() == pytest.approx(left)
    sizes = np.array([1.0, 4.0])
    assert laplacian(fixed_graph("path:3"), sizes).tolist() == [[1, -1, 0], [-1, 5, -4], [0, -4, 4]]


@pytest.mark.parametrize("place", [*PLACES, "er:8,c=1.5,seed=1"])
@pytest.mark.parametrize(
    "noise",
    [
        CorrelatedNoise(),
        CorrelatedNoise(2.0, 0.0, (1.0, -0.5, -0.25)),
        CorrelatedNoise(2.0, 1.5, (1.0, -0.5), cycle=3),
        CorrelatedNoise(0.5, 3.0, (1.0, -1.0), by_degree=True),
    ],
)
def test_what_noise_leaves_follows_from_two_small_spectra(place, noise):
    """Against the whole matrix over rounds and peers."""
    graph, rounds = fixed_graph(place), 6
    weak = noise.by_degree
    parts = edge_parts(graph.degrees, graph.edges()) if weak else np.ones(graph.edge_count)
    used = tap_matrix(noise.taps, rounds)
    each = noise.own**2 * np.eye(graph.n) + noise.pair**2 * laplacian(graph, parts**2)
    covariance = np.eye(rounds * graph.n) + np.kron(used @ used.T, each)
    whole = np.sum(kept(graph.weights.toarray(), rounds, summed=True) * covariance)
    assert noise_kept(graph, noise, rounds) == pytest.approx(whole, rel=1e-12)


def test_the_noise_that_is_designed_leaves_what_it_says():
    """A search over both numbers of `back` alone finds hardly less."""
    graph, rounds, cycle = fixed_graph("ring:8"), 24, 4
    learner = br.Mafalda.designed("ring:8", rounds, cycle, parts=2)
    told = designed(graph, rounds, cycle, 2)
    assert (learner.own, learner.back, learner.cycle) == (told.own, told.back, cycle)
    plain = noise_kept(graph, CorrelatedNoise(), rounds) * 6

    def share(noise):
        loss = correlated_losses(graph, noise, rounds, (0,))[1]
        return loss * noise_kept(graph, noise, rounds) / plain

    noise = learner.guarantees()[0].noise
    assert share(noise) == pytest.approx(told.share, rel=1e-9)
    shares = [
        share(CorrelatedNoise(own, 0.0, (1.0, -first, -second), cycle))
        for own in np.geomspace(0.5, 30, 12)
        for first in np.linspace(0.1, 0.9, 9)
        for second in np.linspace(0.0, 0.5, 6)
    ]
    assert told.share < 0.6
    assert told.share < 1.001 * min(shares)


def test_where_every_round_reads_the_same_there_is_nothing_to_gain():
    """A search of tiny noise would have been told; so fine that the account of what is sent is void."""
    found = br.Mafalda.designed("ring:6", rounds=12)
    assert (found.own, found.back, found.cycle) == (0.0, (), 1)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (("er:5,c=2,fresh=1", 10), "for one graph"),
        (("ring:6", 0), "1 to 512 rounds"),
        (("ring:6", 513), "1 to 512 rounds"),
        (("ring:6", 10, 0), "a cycle"),
        (("ring:6", 10, 2, 0), "at least 1"),
        (("ring:2501", 10), "up to 2500 peers"),
    ],
)
def test_what_noise_is_not_designed_for(given, words):
    with pytest.raises(ConfigError, match=words):
        br.Mafalda.designed(*given)
