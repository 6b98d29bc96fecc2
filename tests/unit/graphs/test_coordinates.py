"""Pictures of graphs: every family by its own coordinates, the same every time, and never against
the graph's links."""

import time

import numpy as np
import pytest

from bruit.graphs import (
    butterfly,
    complete,
    erdos_renyi,
    exponential,
    from_edges,
    geometric,
    given,
    grid,
    hypercube,
    karate,
    path,
    ring,
    star,
    static,
    torus,
    tree,
    watts_strogatz,
)
from bruit.graphs.coordinates import MOST_LINKS, SENTENCES, coordinates, talking

EVERY = [
    path(1),
    path(2),
    path(9),
    path(60),
    ring(3),
    ring(9),
    star(7),
    complete(8),
    complete(200),
    grid(4, 5),
    torus(6, 6),
    torus(2, 5),
    torus(3, 4, 5),
    grid(2, 2, 2, 3),
    hypercube(2),
    hypercube(5),
    exponential(16),
    tree(15),
    tree(127),
    watts_strogatz(30, 4, 0.1),
    erdos_renyi(60, c=2.0),
    erdos_renyi(700, c=1.5, seed=1),
    ring(1500),
    geometric(50, 0.3, seed=2),
    karate(),
    from_edges(6, np.array([[0, 1], [2, 3]])),
    from_edges(3, np.zeros((0, 2), int)),
    erdos_renyi(1200, c=1.2, seed=1),
]


def squared(picture):
    """Places with both axes in the same unit."""
    return picture.places * [picture.aspect, 1.0]


def lengths(graph, picture):
    a, b = graph.edges().T
    where = squared(picture)
    return np.linalg.norm(where[a] - where[b], axis=1)


def shuffled(graph, seed=0):
    """The same graph with its peers renumbered, and no name that tells."""
    names = np.random.default_rng(seed).permutation(graph.n)
    return from_edges(graph.n, names[graph.edges()], name="mine"), names


@pytest.mark.parametrize("graph", EVERY, ids=str)
def test_in_the_square_and_repeatable(graph):
    found, again = coordinates(graph), coordinates(graph)
    assert found.places.shape == (graph.n, 2)
    assert np.isfinite(found.places).all()
    assert found.places.min() >= -1e-9
    assert found.places.max() <= 1 + 1e-9
    assert np.array_equal(found.places, again.places)
    assert found.kind in SENTENCES
    assert (
        len({tuple(place) for place in found.places.round(6).tolist()}) == graph.n
    )  # no peer on top of another
    assert {tuple(link) for link in found.links.tolist()} <= {
        tuple(link) for link in graph.edges().tolist()
    }


def test_a_grid_is_a_grid():
    graph = grid(4, 5)
    found = coordinates(graph)
    assert found.kind == "grid"
    assert np.ptp(lengths(graph, found)) < 1e-9
    assert found.aspect == pytest.approx(4 / 3)
    assert (
        np.diff(found.places[:5, 0]) > 0
    ).all()  # peers 0 to 4 are the first row, from left to right


def test_links_of_a_torus_have_grid_length_or_go_around():
    graph = torus(6, 7)
    found = coordinates(graph)
    assert found.kind == "torus"
    where, step = squared(found), lengths(graph, found).min()
    drawn = np.linalg.norm(where[found.links[:, 0]] - where[found.links[:, 1]], axis=1)
    assert np.allclose(drawn, step)
    assert len(found.links) + len(found.stubs) / 2 == graph.edge_count
    stubs = found.stubs * [found.aspect, 1.0]
    assert (np.linalg.norm(stubs[:, 1] - stubs[:, 0], axis=1) < step / 2).all()
    assert found.stubs.min() >= -1e-9
    inner = where.min(axis=0), where.max(axis=0)
    assert (
        ((stubs[:, 1] < inner[0] - 1e-9) | (stubs[:, 1] > inner[1] + 1e-9)).any(axis=1).all()
    )  # they point outwards


def test_a_name_is_not_believed():
    """Links that are not those of the family are drawn by springs."""
    wrong = from_edges(
        9,
        np.array([[0, 4], [4, 8], [1, 5], [5, 7], [2, 3], [3, 1], [0, 2], [6, 7], [6, 0]]),
        name="torus:3x3",
    )
    assert coordinates(wrong).kind == "springs"
    fewer = torus(4, 4).without_edges(np.array([0]), np.array([1]))
    assert coordinates(fewer).kind == "torus"  # a link that was down leaves the rest in place


@pytest.mark.parametrize("make", [lambda: ring(12), lambda: shuffled(ring(12))[0]])
def test_a_ring_is_a_circle(make):
    graph = make()
    found = coordinates(graph)
    assert found.kind == "circle"
    assert np.allclose(np.linalg.norm(found.places - 0.5, axis=1), 0.5)
    assert np.ptp(lengths(graph, found)) < 1e-9


def test_a_path_is_a_line_and_a_long_one_is_folded():
    graph, names = shuffled(path(9))
    found = coordinates(graph)
    assert found.kind == "line"
    assert np.allclose(found.places[:, 1], 0.5)
    along = found.places[names, 0]
    assert (np.diff(along) > 0).all() or (np.diff(along) < 0).all()
    folded = coordinates(path(100))
    assert folded.kind == "folded line"
    assert np.ptp(lengths(path(100), folded)) < 1e-9


def test_star_and_complete():
    graph, names = shuffled(star(8))
    found = coordinates(graph)
    assert found.kind == "star"
    assert np.ptp(lengths(graph, found)) < 1e-9
    assert np.linalg.norm(found.places[names[0]] - found.places.mean(axis=0)) < 1e-9
    every = coordinates(complete(9))
    assert every.kind == "complete"
    assert np.allclose(
        np.linalg.norm(every.places - every.places.mean(axis=0), axis=1),
        np.linalg.norm(every.places[0] - every.places.mean(axis=0)),
    )


def test_children_are_below_their_parents():
    found = coordinates(tree(15))
    child = np.arange(1, 15)
    assert found.kind == "tree"
    assert (found.places[child, 1] > found.places[(child - 1) // 2, 1]).all()
    round_ = coordinates(tree(127))
    from_root = np.linalg.norm(squared(round_) - squared(round_)[0], axis=1)
    assert round_.kind == "round tree"
    child = np.arange(1, 127)
    assert (from_root[child] > from_root[(child - 1) // 2]).all()


def test_a_hypercube_stands_in_columns_one_bit_apart():
    graph = hypercube(6)
    found = coordinates(graph)
    ones = np.array([peer.bit_count() for peer in range(64)])
    assert found.kind == "levels"
    columns = [np.unique(found.places[ones == k, 0].round(9)) for k in range(7)]
    assert all(len(column) == 1 for column in columns)
    assert (np.diff(np.concatenate(columns)) > 0).all()
    a, b = graph.edges().T
    assert (np.abs(ones[a] - ones[b]) == 1).all()


def test_a_butterfly_has_its_rounds_as_stages():
    sequence = butterfly(12)  # radices 2, 2, 3
    found = coordinates(sequence, steps=30)
    assert found.kind == "digits"
    assert [len(links) for links in found.stages.links] == [6, 6, 12]
    rows = found.stages.rows
    for stride, links in zip((1, 2, 4), found.stages.links, strict=True):
        assert set((np.abs(rows[links[:, 0]] - rows[links[:, 1]]) % stride).tolist()) == {0}
        assert (
            rows[links[:, 0]] // (stride * (3 if stride == 4 else 2))
            == rows[links[:, 1]] // (stride * (3 if stride == 4 else 2))
        ).all()
    known = found.stages.spread(5)
    assert [len(peers) for peers in known] == [
        1,
        2,
        4,
        12,
    ]  # after the last round everybody has heard
    assert len(coordinates(sequence, steps=2).stages.links) == 2


def test_relabelled_butterflies_are_sorted_by_their_positions():
    sequence = butterfly(16, relabel=3)
    found = coordinates(sequence, steps=16)
    assert np.array_equal(found.stages.rows, sequence.labels(0))
    for stride, links in zip((1, 2, 4, 8), found.stages.links, strict=True):
        assert (np.abs(np.diff(found.stages.rows[links], axis=1)) == stride).all()


def test_other_sequences_have_stages_too():
    sequence = given([ring(6), star(6)])
    found = coordinates(sequence)
    assert [len(links) for links in found.stages.links] == [6, 5]
    assert found.total == talking(sequence).edge_count == 9
    assert coordinates(static(ring(6))).kind == "circle"
    assert coordinates(static(ring(6))).stages is None


def test_given_places_are_kept():
    graph = geometric(50, 0.3, seed=2)
    found = coordinates(graph)
    assert found.kind == "given"
    apart = np.linalg.norm(graph.positions[:, None] - graph.positions[None], axis=2)
    drawn = np.linalg.norm(squared(found)[:, None] - squared(found)[None], axis=2)
    assert np.allclose(drawn / drawn.max(), apart / apart.max())


def test_springs_pull_neighbors_together():
    graph = shuffled(grid(8, 8))[0]
    found = coordinates(graph)
    assert found.kind == "springs"
    where = squared(found)
    everybody = np.linalg.norm(where[:, None] - where[None], axis=2).mean()
    assert lengths(graph, found).mean() < everybody / 3


def test_parts_without_links_between_them_do_not_overlap():
    graph = from_edges(24, np.concatenate([ring(12).edges(), 12 + ring(12).edges()]))
    where = coordinates(graph).places
    (first, second) = where[:12], where[12:]
    assert first[:, 0].max() < second[:, 0].min() or first[:, 1].max() < second[:, 1].min()


def test_very_many_links_are_sampled_and_it_is_said():
    graph = complete(200)
    found = coordinates(graph)
    assert len(found.links) <= MOST_LINKS < graph.edge_count
    assert f"of its {graph.edge_count:,} links are drawn" in found.sentence()
    assert "links are drawn" not in coordinates(complete(12)).sentence()
    plain = found.plain()
    assert plain["links"] == graph.edge_count
    assert len(plain["places"]) == 200


def test_a_thousand_peers_take_seconds():
    graph = erdos_renyi(1000, c=1.5, seed=1)
    begin = time.process_time()
    coordinates(graph)
    assert time.process_time() - begin < 5
