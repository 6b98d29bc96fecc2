"""The best covariance of noise, against searches that know nothing of the formulas (gossip:COR-2)."""

import numpy as np
import pytest
from scipy.optimize import minimize

from benchmarks.networks.correlated import decor, free, kept, laplacian, searched
from bruit.graphs.names import fixed_graph

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
