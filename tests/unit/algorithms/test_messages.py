"""Batches of messages: slots, links, inboxes; one peer's part is a row of everybody's."""

from typing import NamedTuple

import numpy as np
import pytest

from bruit.algorithms.messages import Edges, Inbox, Links, Slots, join, put, spans, take
from bruit.errors import ConfigError
from bruit.graphs import erdos_renyi, grid, path, star

GRAPHS = [grid(2, 3), star(5), path(4), erdos_renyi(20, 0.3, seed=2)]


def slots() -> Slots:
    """Lane 0 keeps rows for peers 2, 5, 7; lane 1 for none; lane 2 for 1, 5."""
    return Slots(np.array([0, 3, 3, 5]), np.array([2, 5, 7, 1, 5]), np.arange(10.0).reshape(5, 2))


def test_spans_are_the_entries_of_the_lanes_in_order():
    start = np.array([0, 3, 3, 5])
    assert spans(start, np.array([2, 0])).tolist() == [3, 4, 0, 1, 2]
    assert spans(start, np.array([1])).tolist() == []
    assert spans(start, np.zeros(0, np.int64)).tolist() == []


def test_sums():
    assert slots().sums().tolist() == [[0 + 2 + 4, 1 + 3 + 5], [0, 0], [6 + 8, 7 + 9]]


def test_find_one_neighbor_per_lane():
    assert slots().find(np.array([5, 5, 5])).tolist() == [1, -1, 4]
    assert slots().find(np.array([2, 2, 2])).tolist() == [0, -1, -1]


def test_on_other_edges_keeps_known_neighbors_and_starts_others_from_zero():
    edges = Edges(np.array([0, 1, 2]), np.array([0, 2, 3, 5]), np.array([5, 9, 4, 1, 7]))
    moved = slots().on(edges)
    assert moved.rows.tolist() == [[2, 3], [0, 0], [0, 0], [6, 7], [0, 0]]
    assert moved.peers.tolist() == edges.peers.tolist()
    same = Edges(np.array([0, 1, 2]), slots().start, slots().peers)
    assert np.array_equal(slots().on(same).rows, slots().rows)


def test_on_when_one_side_is_empty():
    nothing = Slots(np.zeros(3, np.int64), np.zeros(0, np.int64), np.zeros((0, 2)))
    edges = Edges(np.arange(2), np.array([0, 1, 2]), np.array([1, 0]))
    assert nothing.on(edges).rows.tolist() == [[0, 0], [0, 0]]
    assert slots().on(
        Edges(np.arange(3), np.zeros(4, np.int64), np.zeros(0, np.int64))
    ).rows.shape == (0, 2)


def test_take_and_put_slots():
    whole = slots()
    part = whole.take(np.array([2, 0]))
    assert part.start.tolist() == [0, 2, 5]
    assert part.peers.tolist() == [1, 5, 2, 5, 7]
    whole.put(np.array([2, 0]), part.replace(part.rows + 100))
    assert np.array_equal(whole.rows, slots().rows + 100)
    with pytest.raises(ConfigError, match="changed their neighbors"):
        whole.put(np.array([0]), whole.take(np.array([2])))


class State(NamedTuple):
    value: np.ndarray
    kept: Slots


def test_batches_of_one_join_to_the_whole():
    whole = State(np.arange(6.0).reshape(3, 2), slots())
    ones = [take(whole, np.array([lane])) for lane in range(3)]
    again = join(ones)
    assert np.array_equal(again.value, whole.value)
    for name in ("start", "peers", "rows"):
        assert np.array_equal(getattr(again.kept, name), getattr(whole.kept, name))
    changed = State(np.zeros((1, 2)), ones[2].kept.replace(np.zeros((2, 2))))
    put(whole, np.array([2]), changed)
    assert whole.value[2].tolist() == [0, 0]
    assert whole.kept.rows[3:].tolist() == [[0, 0], [0, 0]]
    assert whole.kept.rows[:3].tolist() == slots().rows[:3].tolist()


@pytest.mark.parametrize("graph", GRAPHS, ids=lambda graph: graph.name)
def test_links_of_one_peer_are_its_row_of_everybodys(graph):
    everybody, values = Links.of_graph(graph), np.random.default_rng(0).normal(size=(graph.n, 3))
    mixed = Inbox(everybody, values, False, values).mix()
    assert np.allclose(mixed, graph.weights.toarray() @ values)
    for peer in range(graph.n):
        alone = Links.of_peer(graph, peer)
        low, high = everybody.start[peer], everybody.start[peer + 1]
        assert alone.ids.tolist() == [peer]
        assert np.array_equal(alone.senders, everybody.senders[low:high])
        assert np.array_equal(alone.weights, everybody.weights[low:high])
        assert alone.own.tolist() == everybody.own[peer : peer + 1].tolist()
        around = np.sort(np.append(alone.senders, peer))
        inbox = Inbox(alone, values[around], False, values[peer : peer + 1])
        assert np.array_equal(inbox.mix()[0], mixed[peer])  # bit for bit: same order of additions
        assert np.allclose(inbox.mix(values[peer : peer + 1])[0], mixed[peer])
        assert np.array_equal(inbox.copies(), values[alone.senders])


@pytest.mark.parametrize("graph", GRAPHS, ids=lambda graph: graph.name)
def test_without_dead_links_mixing_stays_doubly_stochastic(graph):
    rng = np.random.default_rng(1)
    edges = graph.edges()
    dead = {frozenset(edge) for edge in edges[rng.random(len(edges)) < 0.5].tolist()}
    links = Links.of_graph(graph)
    receivers = np.repeat(links.ids, np.diff(links.start))
    lost = np.array(
        [
            frozenset((int(i), int(j))) in dead
            for i, j in zip(receivers, links.senders, strict=True)
        ],
        bool,
    )
    left = links.without(lost)
    dense = left.full.toarray()
    assert np.allclose(dense, dense.T)
    assert np.allclose(dense.sum(axis=1), 1)
    assert all(dense[tuple(edge)] == 0 for edge in map(sorted, dead))
    values = rng.normal(size=(graph.n, 2))
    for peer in range(graph.n):
        alone = Links.of_peer(graph, peer)
        mine = alone.without(
            np.array([frozenset((peer, int(j))) in dead for j in alone.senders], bool)
        )
        around = np.sort(np.append(alone.senders, peer))  # dead ones have a row too: it is not read
        rows = np.where(
            np.isin(around, np.append(mine.senders, peer))[:, None], values[around], np.nan
        )
        kept = np.nan_to_num(rows)
        assert np.allclose(
            Inbox(mine, kept, False, values[peer : peer + 1]).mix()[0], dense[peer] @ values
        )


@pytest.mark.parametrize("graph", GRAPHS, ids=lambda graph: graph.name)
def test_flip_finds_the_copy_that_was_meant_for_the_receiver(graph):
    links = Links.of_graph(graph)
    speakers = np.repeat(links.ids, np.diff(links.start))
    said = np.stack((speakers, links.senders), axis=1)  # copy k: from its speaker, to its target
    heard = said[links.flip]
    receivers = speakers
    assert np.array_equal(heard[:, 0], links.senders)
    assert np.array_equal(heard[:, 1], receivers)


def test_meetings_are_half_and_half():
    links = Links.of_meetings(np.array([3, 5]), np.array([5, 3]))
    values = np.array([[2.0], [6.0]])
    inbox = Inbox(links, values[::-1], False, values)
    assert inbox.mix(values).tolist() == [[4.0], [4.0]]
    assert inbox.only().tolist() == [[6.0], [2.0]]


def test_only_wants_exactly_one_message():
    links = Links.of_graph(star(4))
    with pytest.raises(ConfigError, match="exactly one message"):
        Inbox(links, np.zeros((4, 1)), False, np.zeros((4, 1))).only()


def test_edges_broadcast_expand_and_each():
    edges = Edges(np.arange(2), np.array([0, 2, 3]), np.array([1, 2, 0]))
    rows = np.array([[1.0], [2.0]])
    assert edges.broadcast(rows) == (rows, False)
    assert edges.expand(rows).rows.tolist() == [[1], [1], [2]]
    told = edges.each(edges.expand(rows))
    assert told.each
    assert told.rows.tolist() == [[1], [1], [2]]
    assert len(edges.none().peers) == 0
    assert np.diff(edges.none().start).tolist() == [0, 0]
