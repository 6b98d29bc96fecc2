"""Calls of a peer's own clock that lead to nothing are reported, whatever the reason; none is
forgotten."""

import math

import numpy as np
import pytest

import bruit as br
from bruit.algorithms.schedules.machine import Envelope, Met, Missed, Send, Skipped, WakeAt
from bruit.graphs import complete, ring
from bruit.testing import small_task
from tests.conformance.hard_cases import FrankWolfe
from tests.unit.algorithms.schedules.slow_network import SlowNetwork, machines

PATIENCE = 1.0


def calls(effects):
    return [effect for effect in effects if isinstance(effect, WakeAt) and effect.alarm == "call"]


def test_a_wake_before_all_neighbors_have_spoken_is_skipped_and_says_for_whom():
    peers = machines(FrankWolfe(), ring(4), small_task(4), 20, PATIENCE)
    first = [one.begin(0.0) for one in peers]
    word = next(effect for effect in first[1] if isinstance(effect, Send) and effect.to == 0)
    assert peers[0].unheard() == (1, 3)
    peers[0].receive(0.0, 1, word.envelope)
    effects = peers[0].wake(0.1)
    assert Skipped(0, (3,)) in effects
    assert not any(isinstance(effect, Met) for effect in effects)
    assert len(calls(effects)) == 1
    assert peers[0].called


@pytest.mark.parametrize(
    "algorithm", [FrankWolfe(), br.Personalized(), br.ModelPropagation(), br.Boosting()], ids=repr
)
def test_every_call_of_a_wake_clock_is_met_or_skipped(algorithm):
    """A neighbor that never came stopped those beside it for good."""
    peers = machines(algorithm, ring(6), small_task(6), 20, PATIENCE)
    network = Counting(peers, lambda *_: 0.01, away={2: [(0.0, math.inf)]}).run()
    for peer in (1, 3):  # the neighbors of the one that never comes
        early = int((peers[peer].seat.calls < PATIENCE).sum())
        assert network.skipped[peer] == [Skipped(k, (2,)) for k in range(early)]
        assert peers[peer].count == len(peers[peer].seat.calls) - early > 0
        assert [miss.number for miss in network.missed[peer]] == list(
            range(early, len(peers[peer].seat.calls))
        )
        assert {miss.other for miss in network.missed[peer]} == {2}
    for peer in (0, 4, 5):
        assert peers[peer].count + len(network.skipped[peer]) == len(peers[peer].seat.calls)
        assert peers[peer].calls_left == 0
        assert network.missed[peer] == []


@pytest.mark.parametrize(
    "algorithm", [FrankWolfe(), br.ModelPropagation(), br.Boosting()], ids=repr
)
def test_who_starts_late_is_read_from_its_first_word_on(algorithm):
    peers = machines(algorithm, ring(6), small_task(6), 20, PATIENCE)
    network = Counting(peers, lambda *_: 0.01, away={2: [(0.0, 8.0)]}).run()
    for peer in (1, 3):
        calls = peers[peer].seat.calls
        without = {miss.number for miss in network.missed[peer]}
        assert without == set(np.flatnonzero((calls >= PATIENCE) & (calls < 8.0)))
        assert peers[peer]._latest[2][0] == peers[2].count > 0
    assert np.isfinite(network.estimates()).all()


def test_without_a_word_of_anybody_all_calls_are_in_vain():
    peers = machines(FrankWolfe(), ring(4), small_task(4), 20, PATIENCE)
    gone = {peer: [(0.0, math.inf)] for peer in (1, 2, 3)}
    network = Counting(peers, lambda *_: 0.01, away=gone).run()
    assert network.skipped[0] == [Skipped(k, (1, 3)) for k in range(len(peers[0].seat.calls))]
    assert (peers[0].count, network.missed[0]) == (0, [])


def test_every_call_of_a_meeting_clock_is_met_missed_or_skipped():
    peers = machines(br.PairAveraging(), complete(5), small_task(5), 30, PATIENCE)
    network = Counting(peers, lambda *_: 0.05, away={4: [(10.0, math.inf)]}).run()
    for peer in range(4):
        met = {number for caller, _, number in network.met if caller == peer}
        lost = {miss.number for miss in network.missed[peer] if miss.other == 4} & network.offered[
            peer
        ]
        skipped = {call.number for call in network.skipped[peer]}
        assert met | lost | skipped == set(range(len(peers[peer].seat.calls)))
        assert skipped  # messages take time, so somebody was busy
        assert not met & skipped


def test_who_is_bound_does_not_call_and_who_is_declined_has_not_met():
    caller, callee, third = machines(br.PairAveraging(), complete(3), small_task(3), 30, PATIENCE)
    for one in (caller, callee, third):
        one.begin(0.0)
    offer = next(effect for effect in caller.wake(0.1) if isinstance(effect, Send))
    assert Skipped(1) in caller.wake(0.2)  # it still waits for the answer to its first call
    number = offer.envelope.number
    assert caller.receive(0.3, offer.to, Envelope("busy", number)) == [Skipped(number)]
    assert caller.receive(0.4, offer.to, Envelope("busy", number)) == []  # once


def test_a_late_refusal_settles_a_call_that_was_given_up():
    caller, *_ = machines(br.PairAveraging(), complete(3), small_task(3), 30, PATIENCE)
    caller.begin(0.0)
    offer = next(effect for effect in caller.wake(0.1) if isinstance(effect, Send))
    assert caller.wake(2.0, "offer", offer.envelope.number) == [
        Missed(offer.to, offer.envelope.number)
    ]
    late = caller.receive(3.0, offer.to, Envelope("busy", offer.envelope.number))
    assert late == [
        Missed(offer.to, offer.envelope.number, late=True),
        Skipped(offer.envelope.number),
    ]


class Counting(SlowNetwork):
    """A slow network that keeps what was skipped, and which calls were offered."""

    def __init__(self, peers, *words, **options):
        super().__init__(peers, *words, **options)
        self.skipped, self.offered = [[] for _ in peers], [set() for _ in peers]

    def carry_out(self, peer, effects):
        self.skipped[peer] += [effect for effect in effects if isinstance(effect, Skipped)]
        self.offered[peer] |= {
            effect.envelope.number
            for effect in effects
            if isinstance(effect, Send) and effect.envelope.kind == "offer"
        }
        super().carry_out(peer, effects)


@pytest.mark.parametrize("algorithm", [br.PairAveraging(), FrankWolfe()])
def test_nothing_is_skipped_when_messages_take_no_time(algorithm):
    peers = machines(algorithm, complete(4), small_task(4), 20, PATIENCE)
    network = Counting(peers).run()
    assert network.skipped == [[], [], [], []]
