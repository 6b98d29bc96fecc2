"""Closed forms (gossip:MUF-13, MUF-X2) against certified block Lanczos and worked numbers."""

import numpy as np
import pytest

from bruit.errors import ConfigError, PrivacyError
from bruit.graphs import butterfly, complete, hypercube, path, ring, star
from bruit.privacy.exact.krylov import leverage
from bruit.privacy.exact.rows import sequence_loss
from papers.theorems.closed_forms import (
    butterfly_loss,
    butterfly_mean,
    closed_form_guarantee,
    hub_loss,
    hypercube_loss,
    hypercube_rank,
    line_loss,
    star_leaf_loss,
)


@pytest.mark.parametrize("steps", [0, 1, 2, 3, 5, 9])
def test_against_the_certified_loss(steps):
    for graph, v in ((ring(9), 0), (path(7), 0)):
        hops = graph.distances(v)
        expected = [line_loss(int(k), steps) for k in hops[1:]]
        np.testing.assert_allclose(leverage(graph, [v], steps).loss[1:], expected, atol=1e-9)
    np.testing.assert_allclose(
        leverage(complete(6), [0], steps).loss[1:], hub_loss(steps), atol=1e-9
    )
    np.testing.assert_allclose(leverage(star(6), [0], steps).loss[1:], hub_loss(steps), atol=1e-9)
    leaf = leverage(star(7), [3], steps).loss
    assert leaf[0] == pytest.approx(star_leaf_loss(7, 1, steps), abs=1e-9)
    assert leaf[1] == pytest.approx(star_leaf_loss(7, 2, steps), abs=1e-9)
    for m in (1, 2, 3, 4, 6):
        cube = leverage(hypercube(m), [0], steps)
        found = cube.loss[[2**k - 1 for k in range(1, m + 1)]]
        np.testing.assert_allclose(
            found, [hypercube_loss(m, k, steps) for k in range(1, m + 1)], atol=1e-9
        )
        assert cube.rank == hypercube_rank(m, steps)


def test_worked_hypercubes():
    """gossip:MUF-13 at m = 4, T = 4 and m = 11, T = 19."""
    assert [hypercube_loss(4, k, 4) for k in range(1, 5)] == pytest.approx([1, 0.66666667, 1, 1])
    eleven = [hypercube_loss(11, k, 19) for k in range(1, 12)]
    expected = [1, 0.2, 0.0666667, 0.0333333, 0.0238095, 0.0238095, 0.0333333, 0.0666667, 0.2, 1, 1]
    assert eleven == pytest.approx(expected, rel=3e-6)
    assert (hypercube_rank(11, 19) - 1) / 2048 == pytest.approx(0.0541992188, rel=1e-9)


def test_butterflies():
    """gossip:MUF-X2: examples, and the realized rows."""
    assert [butterfly_loss((2, 3), u, 0) for u in range(1, 6)] == [1, 0.5, 0.5, 0.5, 0.5]
    assert butterfly_mean((2,) * 11) == 0.00537109375
    for graph in (butterfly(8), butterfly(12), butterfly(6, radices=(2, 3))):
        found = sequence_loss(graph.at, graph.n, len(graph.radices), [1]).loss
        others = [u for u in range(graph.n) if u != 1]
        expected = [butterfly_loss(graph.radices, u, 1) for u in others]
        np.testing.assert_allclose(found[others], expected, atol=1e-9)
        assert sum(expected) / graph.n == pytest.approx(butterfly_mean(graph.radices))


def test_as_a_guarantee():
    """gossip:LG-1 example 2: m = 1, Delta = sigma, delta = 1e-6."""
    about = closed_form_guarantee("ring:16", 8, line_loss(8, 8), 1.0)
    assert about.epsilon(1e-6) == pytest.approx(4.88655412, rel=1e-8)
    assert closed_form_guarantee("ring:16", 8, line_loss(8, 7), 1.0).epsilon(1e-6) == 0.0


@pytest.mark.parametrize(
    ("make", "error", "word"),
    [
        (lambda: line_loss(0, 3), PrivacyError, "oneself"),
        (lambda: line_loss(1, -1), ConfigError, "0 or more"),
        (lambda: star_leaf_loss(6, 3, 2), ConfigError, "no peer at distance 3"),
        (lambda: hypercube_loss(4, 5, 2), ConfigError, "no pair at distance 5"),
        (lambda: hypercube_rank(0, 2), ConfigError, "at least 1 dimension"),
        (lambda: butterfly_loss((2, 1), 0, 1), ConfigError, "radices of at least 2"),
        (lambda: butterfly_loss((2, 2), 0, 4), ConfigError, r"0\.\.3"),
        (lambda: butterfly_loss((2, 2), 1, 1), PrivacyError, "its own view"),
    ],
)
def test_refusals(make, error, word):
    with pytest.raises(error, match=word):
        make()
