"""What graphs tolerate, against formulas and brute force over all sets of liars (gossip:LIE-2)."""

import itertools
import math

import numpy as np
import pytest

from bruit.graphs import graph
from bruit.graphs.tolerance import (
    connectivity,
    honest_connectivity,
    tolerated_liars,
    tolerated_weight,
    weight_of,
)


@pytest.mark.parametrize(
    ("name", "mu"),
    [
        ("complete:16", 1.0),
        ("ring:16", 2 / 3 * (1 - math.cos(2 * math.pi / 16))),
        ("hypercube:6", 2 / 7),
        ("star:12", 1 / 12),
        ("path:2", 1.0),
    ],
)
def test_what_known_graphs_tolerate(name, mu):
    found = graph(name)
    assert connectivity(found) == pytest.approx(mu, rel=1e-9)
    assert tolerated_weight(found, 2.0) == pytest.approx(mu / 5, rel=1e-9)
    assert honest_connectivity(found, ()) == pytest.approx(mu, rel=1e-9)


@pytest.mark.parametrize(
    ("name", "liars"),
    [("complete:15", 2), ("complete:16", 3), ("complete:26", 5), ("ring:16", 0), ("torus:4x4", 0)],
)
def test_how_many_liars_are_tolerated_by_clipping(name, liars):
    found = graph(name)
    assert tolerated_liars(found, tolerated_weight(found, 2.0)) == liars


@pytest.mark.parametrize("name", ["er:9,c=2,seed=1", "complete:7", "rook:3x3", "star:6"])
def test_whoever_lies_the_honest_are_as_connected_as_is_promised(name):
    found = graph(name)
    for count in (1, 2):
        for liars in itertools.combinations(range(found.n), count):
            b = weight_of(found, liars)
            assert honest_connectivity(found, liars) >= connectivity(found) - b - 1e-12


@pytest.mark.parametrize("name", ["er:9,c=2,seed=1", "rook:3x3", "complete:7"])
def test_any_so_many_peers_weigh_less(name):
    found = graph(name)
    for weight in (0.1, 0.26, 0.45):
        most = tolerated_liars(found, weight)
        heaviest = [
            max(weight_of(found, some) for some in itertools.combinations(range(found.n), count))
            for count in (most, min(most + 1, found.n - 2))
        ]
        assert heaviest[0] < weight
        assert heaviest[1] >= weight or most + 1 > found.n - 2


def test_the_weight_of_liars_is_that_at_the_peer_where_they_weigh_most():
    found = graph("ring:6")
    assert weight_of(found, (0, 2)) == pytest.approx(2 / 3)
    assert weight_of(found, ()) == 0.0
    assert honest_connectivity(found, (0, 3)) == 0.0  # two pairs that do not hear each other
    assert np.isclose(honest_connectivity(found, (0,)), (1 - math.cos(math.pi / 5)) * 2 / 3)
