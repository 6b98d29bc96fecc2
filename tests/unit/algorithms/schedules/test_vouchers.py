"""Vouchers: nobody ends or stops a walk alone, and honest walks with vouchers are what they were
without."""

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bruit as br
from bruit.algorithms.schedules import vouchers
from bruit.algorithms.schedules.machine import Done, Envelope, Missed, Send, WakeAt
from bruit.errors import RemoteProtocolError
from bruit.graphs import complete, path, ring, star
from bruit.testing import small_task
from tests.unit.algorithms.schedules.slow_network import SlowNetwork, ToySeals, machines

PATIENCE, STEPS = 1.0, 12
GRAPHS = st.sampled_from([complete(4), ring(5), star(4), path(3)])


class Lines(SlowNetwork):
    """As between real peers: everything is heard from a line."""

    def receive(self, machine, *message):
        return machine.hear(*message)


def walk(graph, steps, delays, away, algorithm=None):
    chance = iter(delays)
    peers = machines(
        algorithm or br.WalkSGD(), graph, small_task(graph.n), steps, PATIENCE, sealed=True
    )
    return Lines(peers, lambda *_: next(chance, 0.01), away=away).run(1e6)


def intervals(longest):
    return st.lists(
        st.tuples(st.floats(0, 30), st.floats(0.1, longest)).map(lambda x: (x[0], sum(x))),
        max_size=3,
    )


@settings(deadline=None, max_examples=25)
@given(
    GRAPHS,
    st.lists(st.floats(0, 1.2), max_size=80),
    st.dictionaries(st.integers(0, 2), intervals(1.2)),
)
def test_one_token_and_only_one_goes_on(graph, delays, away):
    network = walk(graph, STEPS, delays, away)
    assert network.passed == dict.fromkeys(range(STEPS - 1), 1)
    assert network.done == set(range(graph.n))


@settings(deadline=None, max_examples=40)
@given(
    GRAPHS,
    st.lists(st.floats(0, 6), max_size=80),
    st.dictionaries(st.integers(0, 2), intervals(15)),
)
def test_who_was_wrongly_held_dead_does_no_harm(graph, delays, away):
    network = walk(graph, STEPS, delays, away)
    assert max(network.passed.values()) == 1
    assert network.done == set(range(graph.n))


@settings(deadline=None, max_examples=25)
@given(
    st.lists(st.floats(0, 0.3), max_size=60),
    st.lists(st.tuples(st.integers(0, 4), st.floats(0, 12)), max_size=3),
)
def test_never_two_tokens_when_peers_die_for_good(delays, deaths):
    network = walk(complete(5), 60, delays, {peer: [(time, math.inf)] for peer, time in deaths})
    assert network.order == sorted(set(network.order))
    hops = [number % 60 for number in network.order]
    assert all(hop <= before + 1 for before, hop in pairwise(hops))


@settings(deadline=None, max_examples=25)
@given(
    st.sampled_from([complete(4), ring(5), ring(6)]),
    st.lists(st.floats(0, 0.3), max_size=60),
    st.integers(0, 3),
    st.floats(0.02, 6),
)
def test_the_walk_outlives_any_one_peer(graph, delays, dead, time):
    network = walk(graph, 60, [0.0, *delays], {dead: [(time, math.inf)]})
    assert network.done | {dead} == set(range(graph.n))
    assert network.order == sorted(set(network.order))


@pytest.mark.parametrize(
    ("algorithm", "graph"),
    [(br.RingSum(published=True), ring(5)), (br.WalkSum(published=True), complete(5))],
)
def test_a_published_token_reaches_everybody_with_its_proof(algorithm, graph):
    network = walk(graph, 10, [], {}, algorithm)
    assert network.done == set(range(5))
    assert len(np.unique(network.estimates(), axis=0)) == 1


# one that lies


def begun(graph=None, steps=5000, algorithm=None):
    """Machines that have begun; the token is on its way from peer 0 to somebody, who has it."""
    peers = machines(
        algorithm or br.WalkSGD(), graph or complete(5), small_task(5), steps, PATIENCE, sealed=True
    )
    effects = [effect for one in peers for effect in one.begin(0.0)]
    to = 0
    while to == 0:
        sent = [
            effect
            for effect in effects
            if isinstance(effect, Send) and effect.envelope.kind in ("vouch", "token")
        ]
        to = sent[-1].to
        effects = [effect for one in sent for effect in hear(peers[to], 0, one.envelope)]
    hear(peers[0], to, Envelope("ask", sent[-1].envelope.number))
    return peers, to, sent


def hear(machine, sender, envelope, now=0.0):
    row = machine.row_of(envelope.kind)
    assert (row is None) == (envelope.row is None)
    return machine.hear(now, sender, envelope)


def forged_end(liar, number, shown, name=bytes(32)):
    proof = vouchers.END.pack(
        liar, *shown, ToySeals(liar).sign(vouchers.ending(number, name)), name
    )
    return Envelope("end", number, vouchers.row(proof))


def forged_fence(liar, epoch, shown):
    proof = vouchers.FENCE.pack(*shown, ToySeals(liar).sign(vouchers.beginning(epoch, shown)))
    return Envelope("fence", epoch, vouchers.row(proof))


def given_to(holder, giver, number):
    return vouchers.Voucher(
        giver, number, 0, ToySeals(giver).sign(vouchers.handover(number, 0, holder))
    )


def test_a_neighbor_that_was_never_near_the_end_cannot_end_a_walk():
    peers, holder, _ = begun()
    liar = next(peer for peer in range(1, 5) if peer != holder)
    listener = next(peer for peer in range(1, 5) if peer not in (holder, liar))
    lies = [
        forged_end(liar, 4999, vouchers.FIRST),
        forged_end(liar, 4999, given_to(liar, liar, 4999)),
        forged_end(liar, 4999, given_to(liar, 0, 7)),
        forged_end(liar, 7, given_to(liar, 0, 7)),
        forged_end(0, 4999, vouchers.FIRST),
        forged_end(liar, 4999, given_to(liar, 0, 4999)._replace(seal=bytes(64))),
    ]
    for lie in lies:
        with pytest.raises(RemoteProtocolError, match="sent a message of kind end"):
            hear(peers[listener], liar, lie)
    assert not peers[listener]._ended


def vouched(giver, number, holder, shown):
    """The word with which a giver hands a token on."""
    seal = ToySeals(giver).sign(vouchers.handover(number, 0, holder))
    return Envelope("vouch", number, vouchers.row(vouchers.VOUCH.pack(0, seal, *shown)))


def test_nobody_hands_on_a_token_of_a_hop_that_the_walk_has_not_come_to():
    """An honest peer that took it would hand on the last hop, and end the walk for everybody."""
    peers, holder, _ = begun(ring(5))
    liar, listener = (holder + 1) % 5, (holder + 2) % 5
    for shown, why in (
        (vouchers.FIRST, "was given hop 0"),
        (given_to(liar, holder, 2), "was given hop 2"),
        (given_to(liar, liar, 4997), "never given"),
        (given_to(liar, listener, 4997)._replace(seal=bytes(64)), "never given"),
        (given_to(liar, (liar + 2) % 5, 4997), "never given"),  # no neighbor of the liar
    ):
        with pytest.raises(RemoteProtocolError, match=why):
            hear(peers[listener], liar, vouched(liar, 4998, listener, shown))
    token = Envelope("token", 4998, np.zeros((1, peers[0].example.shape[1])))
    with pytest.raises(RemoteProtocolError, match="without a voucher"):
        hear(peers[listener], liar, token)
    hear(peers[listener], liar, vouched(liar, 3, listener, given_to(liar, holder, 2)))


def test_the_last_holder_can_end_it_and_everybody_passes_it_on():
    peers, *_ = begun()
    effects = hear(peers[1], 2, forged_end(3, 4999, given_to(3, 4, 4999)))
    assert Done() in effects
    assert {effect.to for effect in effects if isinstance(effect, Send)} == {0, 2, 3, 4}


def test_a_result_that_its_last_holder_did_not_sign_is_refused():
    peers, *_ = begun(algorithm=br.WalkSum(published=True))
    one, width = peers[1], peers[1].example.shape[1]
    token = np.full((1, width), 2.5)
    with pytest.raises(RemoteProtocolError, match="before the word that the walk has ended"):
        hear(one, 2, Envelope("result", 4999, token))
    assert hear(one, 2, forged_end(3, 4999, given_to(3, 4, 4999), vouchers.digest(token))) == []
    with pytest.raises(RemoteProtocolError, match="not what its last holder signed"):
        hear(one, 2, Envelope("result", 4999, 2 * token))
    assert Done() in hear(one, 2, Envelope("result", 4999, token))
    with pytest.raises(RemoteProtocolError, match="but the last token is published"):
        hear(peers[2], 1, forged_end(3, 4999, given_to(3, 4, 4999)))


def test_an_epoch_that_nobody_could_begin_is_refused():
    peers, holder, sent = begun()
    liar = next(peer for peer in range(2, 5) if peer != holder)  # peer 1 is the deputy of peer 0
    listener = next(peer for peer in range(1, 5) if peer not in (holder, liar))
    largest = (2**24 - 5) // 5 * 5 + liar
    true = given_to(liar, 0, 1)
    for lie, why in (
        (forged_fence(liar, largest, true), "epochs ahead"),
        (forged_fence(liar, 5 + liar, vouchers.FIRST), "may not begin"),
        (forged_fence(liar, 5 + liar, given_to(liar, liar, 9)), "may not begin"),
        (forged_fence(liar, 5 + listener, true), "has not signed"),
    ):
        with pytest.raises(RemoteProtocolError, match=why):
            hear(peers[listener], liar, lie)
    assert peers[listener]._epoch == 0
    with pytest.raises(RemoteProtocolError, match="without a voucher"):
        hear(peers[listener], liar, sent[-1].envelope)


def test_a_deputy_may_begin_the_walk_in_an_epoch_of_its_own_only():
    """Peer 1 may begin if peer 0 is dead; in the epoch of peer 0 it was never given a token."""
    peers, *_ = begun()
    with pytest.raises(RemoteProtocolError, match="was never given that token"):
        hear(peers[2], 1, vouched(1, 1, 2, vouchers.FIRST))
    with pytest.raises(RemoteProtocolError, match="was never given that token"):
        hear(peers[2], 1, vouched(1, 5 * 5000 + 1, 2, vouchers.FIRST))
    hear(peers[2], 1, forged_fence(1, 5 + 1, vouchers.FIRST))
    assert peers[2]._epoch == 6
    hear(peers[2], 1, vouched(1, 6 * 5000 + 1, 2, vouchers.FIRST))
    with pytest.raises(RemoteProtocolError, match="may not begin"):
        hear(peers[2], 3, forged_fence(3, 10 + 3, vouchers.FIRST))


def test_a_token_of_an_epoch_nobody_has_begun_is_refused():
    peers, *_ = begun()
    word = vouched(2, 5 * 5000 + 7, 1, given_to(2, 3, 6))
    hear(peers[1], 2, word)
    with pytest.raises(RemoteProtocolError, match="of an epoch that nobody has begun"):
        hear(peers[1], 2, Envelope("token", 5 * 5000 + 7, np.zeros((1, peers[1].example.shape[1]))))
    with pytest.raises(RemoteProtocolError, match="which it has not signed"):
        hear(peers[1], 3, word)


def test_who_has_the_token_objects_to_an_epoch_of_one_who_had_it_before():
    """A false alarm costs the time in which words settle, and the walk goes on from where it
    was."""
    peers, holder, _ = begun()
    liar = next(peer for peer in range(1, 5) if peer != holder)
    lie = forged_fence(
        liar, 5 + liar, given_to(liar, 0, 0)
    )  # it was visited before, or at least at the same hop
    answer = hear(peers[holder], liar, lie)
    words = [effect.envelope for effect in answer if isinstance(effect, Send)]
    assert {word.kind for word in words} == {"fence"}
    assert words[0].number > 5 + liar
    assert words[0].number % 5 == holder
    assert not any(isinstance(effect, Missed) for effect in answer)
    settled = next(effect for effect in answer if isinstance(effect, WakeAt))
    assert (settled.alarm, settled.time) == ("settled", 2 * PATIENCE)
    assert hear(peers[liar], holder, words[0]) is not None
    gone_on = peers[holder].wake(settled.time, "settled", settled.number)
    assert (
        next(e for e in gone_on if isinstance(e, Send)).envelope.number // 5000 == words[0].number
    )


def test_the_same_voucher_begins_a_few_epochs_and_no_more():
    peers, holder, _ = begun()
    liar = next(peer for peer in range(1, 5) if peer != holder)
    listener = next(peer for peer in range(1, 5) if peer not in (holder, liar))
    shown = given_to(liar, 0, 0)
    epochs = []
    for k in range(1, 12):
        hear(peers[listener], liar, forged_fence(liar, 5 * k + liar, shown))
        epochs.append(peers[listener]._epoch)
    assert len(set(epochs)) == 4


def test_a_holder_that_begins_an_epoch_and_is_silent_is_still_watched():
    peers, holder, sent = begun()
    voucher = peers[holder]._voucher
    effects = hear(peers[0], holder, forged_fence(holder, 5 + holder, voucher))
    watch = next(effect for effect in effects if isinstance(effect, WakeAt))
    assert (watch.alarm, watch.time) == ("gone", 10 * PATIENCE)
    again = peers[0].wake(watch.time, "gone", watch.number)
    assert Missed(holder, sent[-1].envelope.number) in again
    assert any(isinstance(effect, Send) and effect.envelope.kind == "fence" for effect in again)


def test_many_alarms_do_not_silence_who_has_the_token():
    """One who was visited twice has two vouchers, so eight alarms: the holder answers each of them
    with the same one, and everybody follows the holder."""
    peers, holder, _ = begun()
    liar = next(peer for peer in range(1, 5) if peer != holder)
    listener = next(peer for peer in range(1, 5) if peer not in (holder, liar))
    for attempt in (0, 1):
        seal = ToySeals(0).sign(vouchers.handover(0, attempt, liar))
        shown = vouchers.Voucher(0, 0, attempt, seal)
        for _ in range(4):
            lie = forged_fence(liar, (peers[holder]._epoch // 5 + 1) * 5 + liar, shown)
            hear(peers[listener], liar, lie)
            assert peers[listener]._epoch == lie.number
            answer = hear(peers[holder], liar, lie)
            word = next(effect for effect in answer if isinstance(effect, Send)).envelope
            hear(peers[listener], holder, word)
            assert peers[listener]._epoch == peers[holder]._epoch == word.number


def test_the_first_holder_cannot_make_a_new_voucher_for_every_alarm():
    peers, *_ = begun()
    for attempt in range(1, 8):
        shown = vouchers.FIRST._replace(attempt=attempt)
        with pytest.raises(RemoteProtocolError, match="may not begin"):
            hear(peers[1], 0, forged_fence(0, 5 * attempt, shown))
    assert peers[1]._epoch == 0
