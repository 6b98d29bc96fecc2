"""Participants and board one message at a time: what they answer, what they refuse, and what they
never show."""

import contextlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bruit.errors import ConfigError, LocalProtocolError, RemoteProtocolError
from bruit.graphs import complete, ring
from bruit.statistics.average.canceling.seeds import KeyPair
from bruit.statistics.average.canceling.terms import Terms
from papers.baselines.canceling.board import Board
from papers.baselines.canceling.messages import (
    Confirm,
    Dropped,
    Exposed,
    Failed,
    Key,
    Masked,
    Opened,
    Post,
    Posted,
    Ready,
    Roster,
    Send,
    WakeAt,
    Withdrawn,
)
from papers.baselines.canceling.participant import Participant

WIDTH = 2


def terms_of(graph, **changes):
    return Terms(
        **{
            "number": 3,
            "peers": graph.n,
            "width": WIDTH,
            "clip": 2.0,
            "own_sigma": 0.5,
            "pair_sigma": 20.0,
            "degree": graph.n - 1,
            "partners": 0,
            **changes,
        }
    )


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


@pytest.mark.parametrize(
    ("sender", "message", "words"),
    [
        (2, Key(bytes(32)), "peer 2 is not a neighbor"),
        (1, Roster((0,), ()), "peer 1 sent Roster"),
        (None, Key(bytes(32)), "the board sent Key"),
        (1, Key(bytes(32)), "no usable X25519"),
    ],
)
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
    for u, partners in enumerate(
        ((1, 2), (0, 2), (0,))
    ):  # 1 declared 2, but not the other way round
        said = board.receive(0.0, u, Ready(partners))
    return board, said


def test_only_exchanges_that_both_declared_count():
    _, said = listed()
    assert said[:3] == [
        Send(0, Roster((0, 1, 2), (1, 2))),
        Send(1, Roster((0, 1, 2), (0,))),
        Send(2, Roster((0, 1, 2), (0,))),
    ]


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


@pytest.mark.parametrize(
    ("message", "words"),
    [
        (Key(bytes(32)), "posted Key"),
        (Masked(np.zeros(WIDTH)), "posted float64"),
        (Masked(np.zeros(5, np.uint64)), "not 2 words"),
    ],
)
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
    for value, words in (
        (np.array([2.0, 1.0]), "peer 0 is out of range"),
        (np.zeros(3), r"shape \(3,\)"),
        (np.array([np.nan, 0.0]), "nan or infinite"),
    ):
        with pytest.raises(ConfigError, match=words):
            Participant(0, [1], value, terms)
    with pytest.raises(ConfigError, match="cannot exchange noise"):
        Participant(0, [0], np.zeros(WIDTH), terms)


def test_more_neighbors_than_there_is_room_for_are_refused():
    """Overflow of the fixed point is detected before it can happen."""
    tight = terms_of(ring(4), degree=2)
    with pytest.raises(ConfigError, match="sums could overflow; agree on degree = 3"):
        Participant(0, [1, 2, 3], np.zeros(WIDTH), tight)
    with pytest.raises(ConfigError, match="sums could overflow; agree on degree = 3"):
        Participant(0, [1], np.zeros(WIDTH), tight, open=True)


def test_a_wrong_key_costs_its_exchange_only():
    """The seed of peer 1 is another one; the exchange with peer 2 counts, and the round goes on."""
    terms = terms_of(complete(3))
    a, c = (
        Participant(0, [1, 2], np.zeros(WIDTH), terms, 10.0),
        Participant(2, [0], np.zeros(WIDTH), terms, 10.0),
    )
    to_c, from_c = a.begin(0.0)[1].message, c.begin(0.0)[0].message
    a.receive(0.0, 1, Key(KeyPair().public))
    with pytest.raises(RemoteProtocolError, match="nothing of the value was sent"):
        a.receive(0.0, 1, Confirm(bytes(32)))
    a.receive(0.0, 2, from_c)
    a.receive(0.0, 2, c.receive(0.0, 0, to_c)[0].message)
    assert a.wake(10.0) == [Post(Ready((2,)))]


def test_all_neighbors_gone_or_silent_and_the_participant_says_what_would_protect_it():
    """Nobody answered: with `partners` = 1 nothing is published, since only its own noise would
    hide the value."""
    a = Participant(0, [1, 2], np.zeros(WIDTH), terms_of(ring(3), partners=1), 10.0)
    a.begin(0.0)
    assert a.wake(10.0) == [Post(Ready(()))]
    (gone,) = a.receive(11.0, None, Roster((0, 1, 2), ()))
    assert isinstance(gone, Withdrawn)
    assert "little but its own noise would protect" in gone.reason


def open_pair():
    """Peer 0 picked nobody yet; peer 1 picked it."""
    terms = terms_of(complete(4))
    return (
        Participant(0, [], np.zeros(WIDTH), terms, 10.0, open=True),
        Participant(1, [0], np.zeros(WIDTH), terms, 10.0, open=True),
    )


def test_who_picks_me_is_answered_with_a_key_and_becomes_a_neighbor():
    a, b = open_pair()
    assert a.begin(0.0) == [WakeAt(10.0, "exchange")]
    key, tag = a.receive(0.1, 1, b.begin(0.0)[0].message)
    assert (key.to, tag.to) == (1, 1)
    (answer,) = b.receive(0.2, 0, key.message)
    assert b.receive(0.2, 0, tag.message) == []
    assert a.receive(0.3, 1, answer.message) == []
    assert a.neighbors == (1,)
    assert (
        a.receive(0.3, 1, Key(KeyPair().public)) == []
    )  # a second key of the same peer changes nothing
    assert (a.wake(10.0), b.wake(10.0)) == ([Post(Ready((1,)))], [Post(Ready((0,)))])


def test_a_pick_that_comes_too_late_counts_for_nobody():
    a, b = open_pair()
    a.begin(0.0)
    a.wake(10.0)
    assert a.receive(10.1, 1, b.begin(0.0)[0].message) == []
    assert a.neighbors == ()


@pytest.mark.parametrize(
    ("sender", "message", "words"),
    [
        (2, Confirm(bytes(32)), "peer 2 is not a neighbor"),
        (9, Key(bytes(32)), "peer 9 is not a neighbor"),
        (0, Key(bytes(32)), "peer 0 is not a neighbor"),
        (2, Key(b"short"), "no usable X25519"),
    ],
)
def test_strangers_that_make_no_sense_are_refused_and_never_neighbors(sender, message, words):
    a, _ = open_pair()
    a.begin(0.0)
    with pytest.raises(RemoteProtocolError, match=words):
        a.receive(0.0, sender, message)
    assert a.neighbors == ()
    assert a.wake(10.0) == [Post(Ready(()))]


HOSTILE = st.sampled_from(
    [
        (1, Key(bytes(32))),
        (1, Key(KeyPair().public)),
        (2, Key(KeyPair().public)),
        (3, Key(KeyPair().public)),
        (1, Confirm(bytes(32))),
        (3, Confirm(bytes(32))),
        (None, Roster((0, 1, 2, 3), ())),
        (None, Roster((0, 1), (1,))),
        (None, Roster((1, 2), ())),
        (None, Dropped((1, 2, 3))),
        (None, Dropped((1,))),
        (None, Dropped((0,))),
        (None, Posted(1)),
        (None, Opened(())),
        (2, Masked(np.zeros(WIDTH, np.uint64))),
        "wake",
        "honest",
    ]
)


@settings(max_examples=60, deadline=None)
@given(st.lists(HOSTILE, max_size=14), st.booleans())
def test_whatever_it_is_sent_it_publishes_once_and_never_opens_who_has_published(script, open):
    """A hostile board and hostile neighbors; peer 1 is honest and speaks at the moments called
    "honest"."""
    terms = terms_of(complete(4), online=1)
    a = Participant(0, [1], np.zeros(WIDTH), terms, 10.0, open=open)
    b = Participant(1, [0], np.zeros(WIDTH), terms, 10.0)
    to_b, from_b = a.begin(0.0)[0].message, b.begin(0.0)[0].message
    honest = [(1, from_b), (1, b.receive(0.0, 0, to_b)[0].message)]
    posted, seen = [], set()
    for step in script:
        if step == "honest" and not honest:
            continue
        source, message = (
            honest.pop(0) if step == "honest" else (None, None) if step == "wake" else step
        )
        seen |= {message.peer} if isinstance(message, Posted) else set()
        said = []
        with contextlib.suppress(RemoteProtocolError):
            said = a.wake(10.0) if step == "wake" else a.receive(1.0, source, message)
        told = [effect.message for effect in said if isinstance(effect, Post)]
        assert not seen & {
            v for message in told if isinstance(message, Opened) for v, _ in message.keys
        }
        posted += told
    assert sum(isinstance(message, Masked) for message in posted) <= 1
    assert sum(isinstance(message, Ready) for message in posted) <= 1
    kinds = [type(message) for message in posted]
    assert Opened not in kinds or Masked in kinds[: kinds.index(Opened)]


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
    with pytest.raises(LocalProtocolError, match="there is no graph"):
        board.graph()
