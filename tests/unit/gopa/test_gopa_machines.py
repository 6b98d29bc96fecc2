"""Participants and board in any order of messages, dropouts at any moment: exact sums, and never too much shown."""

import heapq
from itertools import count

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bruit.errors import ConfigError, LocalProtocolError, RemoteProtocolError
from bruit.gopa.board import Board
from bruit.gopa.messages import (
    Confirm,
    Dropped,
    Exposed,
    Failed,
    Key,
    Masked,
    Opened,
    Outcome,
    Post,
    Posted,
    Ready,
    Roster,
    Send,
    WakeAt,
    Withdrawn,
)
from bruit.gopa.participant import Participant
from bruit.gopa.seeds import KeyPair
from bruit.gopa.terms import Terms
from bruit.graphs import complete, k_out, ring
from bruit.randomness import Replay

WIDTH = 2


def terms_of(graph, **changes):
    return Terms(**{"number": 3, "peers": graph.n, "width": WIDTH, "clip": 2.0, "own_sigma": 0.5, "pair_sigma": 20.0,
                    "degree": graph.n - 1, "partners": 0, **changes})  # fmt: skip


class Village:
    """All participants and the board on a virtual clock; messages take the delays of a list, in turn.

    `leaving[u]` is how many messages u still handles before it falls silent for ever."""

    def __init__(self, graph, terms, delays, leaving=(), rollback=True):
        self.values = np.random.default_rng(1).uniform(-1, 1, (graph.n, WIDTH))
        self.dice = Replay(5)
        self.people = {u: Participant(u, graph.neighbors(u).tolist(), self.values[u], terms, 10.0, dice=self.dice)
                       for u in range(graph.n)}  # fmt: skip
        self.board = Board(terms, 20.0, rollback)
        self.terms, self.delays, self.left = terms, delays, dict(leaving)
        self.queue, self.order, self.results, self.posts, self.notes = [], count(), [], [], []

    def push(self, time, target, action):
        heapq.heappush(self.queue, (time, next(self.order), target, action))

    def carry_out(self, now, source, effects):
        for effect in effects:
            number = next(self.order)
            late = now + self.delays[number % len(self.delays)]
            if isinstance(effect, WakeAt):
                self.push(effect.time, source, ("wake", effect.alarm))
            elif isinstance(effect, Send):
                self.push(late, effect.to, ("say", None if source == "board" else source, effect.message))
                if number % 3 == 0:  # some messages arrive twice
                    self.push(late + 1, effect.to, ("say", None if source == "board" else source, effect.message))
            elif isinstance(effect, Post):
                self.posts.append((source, effect.message))
                self.push(late, "board", ("say", source, effect.message))
            elif isinstance(effect, Outcome | Failed):
                self.results.append(effect)
            else:
                self.notes.append((source, effect))

    def run(self):
        self.carry_out(0.0, "board", self.board.begin(0.0))
        for u, person in self.people.items():
            if self.left.get(u, 1) > 0:
                self.carry_out(0.0, u, person.begin(0.0))
        while self.queue:
            now, _, target, action = heapq.heappop(self.queue)
            machine = self.board if target == "board" else self.people[target]
            if target in self.left:
                if self.left[target] <= 0:
                    continue
                self.left[target] -= 1
            done = machine.wake(now, action[1]) if action[0] == "wake" else machine.receive(now, action[1], action[2])
            self.carry_out(now, target, done)
        assert len(self.results) == 1
        return self.results[0]

    def noisy_sum(self, peers):
        """x + own noise of these peers, in words, by hand."""
        field = self.terms.field
        total = np.zeros(WIDTH, np.uint64)
        for u in peers:
            own = self.dice.normal("noise", np.array([u]), self.terms.number, 0, WIDTH)[0]
            total = total + field.encode(self.values[u]) + field.noise(own, self.terms.own_sigma)
        return total


def never_both(village):
    """perso:GOPA-7, rule: nobody's accepted masked value and its exchanges are both public."""
    shown = set(village.board.masked)
    opened = {other for _, other in village.board.opened}
    assert not shown & opened
    for source, message in village.posts:
        if isinstance(message, Opened):
            assert not {other for other, _ in message.keys} & shown, source


DELAYS = st.lists(st.floats(0.01, 9.0), min_size=1, max_size=40)


@settings(max_examples=40, deadline=None)
@given(DELAYS, st.dictionaries(st.integers(0, 6), st.integers(0, 14), max_size=4))
def test_any_order_and_dropouts_at_any_moment(delays, leaving):
    """Whatever happens, the sum is that of the noisy values of who stayed, to the bit, or noise is counted as left."""
    graph = k_out(7, 2, seed=1)
    village = Village(graph, terms_of(graph), delays, leaving)
    found = village.run()
    never_both(village)
    if isinstance(found, Failed):
        assert len(leaving) >= 6
        return
    assert set(found.online) | set(found.dropped) <= set(range(7))
    assert found.variance == pytest.approx(0.25 / len(found.online) + found.residual * 400 / len(found.online) ** 2)
    if found.residual == 0:
        assert np.array_equal(found.total, village.noisy_sum(found.online))
        assert found.mean == pytest.approx(village.terms.field.decode(found.total) / len(found.online))


@settings(max_examples=15, deadline=None)
@given(DELAYS)
def test_nobody_leaves_and_messages_are_fast_enough(delays):
    graph = complete(5)
    village = Village(graph, terms_of(graph), [delay / 5 for delay in delays])
    found = village.run()
    assert found.online == tuple(range(5))
    assert found.residual == 0
    assert np.array_equal(found.total, village.noisy_sum(range(5)))


def test_who_leaves_after_the_roster_is_rolled_back():
    """It answered every exchange and fell silent before publishing."""
    graph = complete(5)
    leaving = {2: 2 * 4 + 3}
    for moment in range(4, 16):
        leaving[2] = moment
        village = Village(graph, terms_of(graph), [0.1], dict(leaving))
        found = village.run()
        never_both(village)
        assert found.residual == 0
        assert np.array_equal(found.total, village.noisy_sum(found.online))
        if found.dropped == (2,):
            break
    assert found.dropped == (2,)
    assert len(village.board.opened) == 4
    left = Village(graph, terms_of(graph), [0.1], {2: moment}, rollback=False)
    kept = left.run()
    assert kept.residual == 4
    assert kept.variance == pytest.approx(0.25 / 4 + 4 * 400 / 16)
    assert not left.board.opened


def exchanged(patience=10.0, **changes):
    """Two neighbors that agreed, both ready."""
    terms = terms_of(ring(3), peers=3, **changes)
    a, b = (Participant(u, [1 - u], np.zeros(WIDTH), terms, patience) for u in (0, 1))
    keys = {0: a.begin(0.0)[0].message, 1: b.begin(0.0)[0].message}
    tag = {0: a.receive(0.0, 1, keys[1])[0].message, 1: b.receive(0.0, 0, keys[0])[0].message}
    ready = (a.receive(0.0, 1, tag[1])[0].message, b.receive(0.0, 0, tag[0])[0].message)
    assert ready == (Ready((1,)), Ready((0,)))
    return a, b, terms


def test_a_listed_peer_never_publishes():
    a, _, _ = exchanged()
    told = a.receive(1.0, None, Dropped((0,)))
    assert isinstance(told[0], Withdrawn)
    assert a.receive(2.0, None, Roster((0, 1), (1,))) == []


def test_exchanges_of_who_has_published_are_never_opened():
    a, _, _ = exchanged(online=1)
    a.receive(1.0, None, Roster((0, 1), (1,)))
    a.receive(2.0, None, Posted(1))
    assert a.receive(3.0, None, Dropped((1,))) == []


def test_exchanges_are_opened_once_and_only_when_enough_stayed():
    a, b, _ = exchanged(online=1)
    a.receive(1.0, None, Roster((0, 1), (1,)))
    (opened,) = a.receive(3.0, None, Dropped((1,)))
    assert [other for other, _ in opened.message.keys] == [1]
    assert a.receive(4.0, None, Dropped((1,))) == []
    shy, _, _ = exchanged(online=2)
    shy.receive(1.0, None, Roster((0, 1), (1,)))
    assert shy.receive(3.0, None, Dropped((1,))) == []
    b.receive(1.0, None, Roster((0, 1), (0,)))
    assert isinstance(b.receive(3.0, None, Dropped((1,)))[0], Exposed)


def test_too_few_exchanges_and_it_withdraws():
    a, _, _ = exchanged(partners=2)
    (gone,) = a.receive(1.0, None, Roster((0, 1), (1,)))
    assert "own noise would protect" in gone.reason


def test_a_neighbor_that_never_answers_does_not_stop_the_round():
    terms = terms_of(ring(3))
    a = Participant(0, [1, 2], np.zeros(WIDTH), terms, 10.0)
    assert WakeAt(10.0, "exchange") in a.begin(0.0)
    assert a.wake(10.0) == [Post(Ready(()))]
    assert a.wake(11.0) == []


def test_wrong_keys_are_named_before_anything_is_sent():
    terms = terms_of(ring(3))
    a = Participant(0, [1], np.zeros(WIDTH), terms)
    a.begin(0.0)
    a.receive(0.0, 1, Key(KeyPair().public))
    with pytest.raises(RemoteProtocolError, match="peer 1 agreed on another seed"):
        a.receive(0.0, 1, Confirm(bytes(32)))


@pytest.mark.parametrize(("sender", "message", "words"), [
    (2, Key(bytes(32)), "peer 2 is not a neighbor"),
    (1, Roster((0,), ()), "peer 1 sent Roster"),
    (None, Key(bytes(32)), "the board sent Key"),
    (1, Key(bytes(32)), "no usable X25519"),
])  # fmt: skip
def test_participants_refuse_strangers_and_nonsense(sender, message, words):
    a = Participant(0, [1], np.zeros(WIDTH), terms_of(ring(3)))
    a.begin(0.0)
    with pytest.raises(RemoteProtocolError, match=words):
        a.receive(0.0, sender, message)


def test_a_board_that_makes_up_exchanges_is_refused():
    a, _, _ = exchanged()
    with pytest.raises(RemoteProtocolError, match="which it never declared"):
        a.receive(1.0, None, Roster((0, 1, 2), (1, 2)))


def listed(rollback=True):
    board = Board(terms_of(ring(3)), 20.0, rollback)
    board.begin(0.0)
    for u, partners in enumerate(((1, 2), (0, 2), (0,))):  # 1 declared 2, but not the other way round
        said = board.receive(0.0, u, Ready(partners))
    return board, said


def test_only_exchanges_that_both_declared_count():
    _, said = listed()
    assert said[:3] == [Send(0, Roster((0, 1, 2), (1, 2))), Send(1, Roster((0, 1, 2), (0,))),
                        Send(2, Roster((0, 1, 2), (0,)))]  # fmt: skip


def test_the_board_refuses_late_values_for_ever():
    board, _ = listed()
    row = np.zeros(WIDTH, np.uint64)
    board.receive(0.0, 0, Masked(row))
    board.receive(0.0, 1, Masked(row))
    board.wake(20.0, "values")
    assert board.dropped == (2,)
    assert board.receive(21.0, 2, Masked(row)) == []
    assert 2 not in board.masked
    (result,) = board.wake(40.0, "openings")
    assert result.residual == 1


@pytest.mark.parametrize(("message", "words"), [
    (Key(bytes(32)), "posted Key"), (Masked(np.zeros(WIDTH)), "posted float64"),
    (Masked(np.zeros(5, np.uint64)), "not 2 words"),
])  # fmt: skip
def test_the_board_refuses_nonsense(message, words):
    board, _ = listed()
    with pytest.raises(RemoteProtocolError, match=words):
        board.receive(0.0, 1, message)


def test_the_board_refuses_openings_of_who_stayed():
    board, _ = listed()
    for u in (0, 1):
        board.receive(0.0, u, Masked(np.zeros(WIDTH, np.uint64)))
    board.wake(20.0, "values")
    with pytest.raises(RemoteProtocolError, match="which did not drop out"):
        board.receive(21.0, 0, Opened(((1, bytes(16)),)))
    with pytest.raises(RemoteProtocolError, match="key of 3 bytes"):
        board.receive(21.0, 0, Opened(((2, b"abc"),)))
    with pytest.raises(RemoteProtocolError, match="there is no peer 9"):
        board.receive(0.0, 9, Ready(()))


def test_impossible_declarations_and_empty_rounds():
    board = Board(terms_of(ring(3)))
    board.begin(0.0)
    with pytest.raises(RemoteProtocolError, match="which cannot be"):
        board.receive(0.0, 0, Ready((0,)))
    assert isinstance(board.wake(60.0, "ready")[0], Failed)
    silent, _ = listed()
    (nothing,) = silent.wake(20.0, "values")
    assert "nobody published" in nothing.reason


def test_values_out_of_range_are_refused():
    terms = terms_of(ring(3))
    for value, words in ((np.array([2.0, 1.0]), "peer 0 is out of range"), (np.zeros(3), r"shape \(3,\)"),
                         (np.array([np.nan, 0.0]), "nan or infinite")):  # fmt: skip
        with pytest.raises(ConfigError, match=words):
            Participant(0, [1], value, terms)
    with pytest.raises(ConfigError, match="cannot exchange noise"):
        Participant(0, [0], np.zeros(WIDTH), terms)


def test_machines_begin_once():
    a = Participant(0, [1], np.zeros(WIDTH), terms_of(ring(3)))
    with pytest.raises(LocalProtocolError, match="before it began"):
        a.receive(0.0, None, Posted(1))
    a.begin(0.0)
    with pytest.raises(LocalProtocolError, match="began twice"):
        a.begin(0.0)
    board = Board(terms_of(ring(3)))
    board.begin(0.0)
    with pytest.raises(LocalProtocolError, match="began twice"):
        board.begin(0.0)
