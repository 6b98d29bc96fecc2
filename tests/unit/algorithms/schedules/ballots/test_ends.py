"""A run by ballots that cannot go on ends, with one model: an end is voted in a ballot of its own,
like a sum, and nobody ends with a base that later ballots may leave (silo:SILO-5)."""

from dataclasses import replace

import numpy as np
import pytest

from benchmarks.reliability.assembly import Assembly, Stamps
from benchmarks.reliability.ballots import weather
from bruit.algorithms.schedules.ballots.rows import Base, Promise, Roll, Tally
from bruit.algorithms.schedules.ballots.terms import BallotTerms
from bruit.algorithms.schedules.machine import Envelope
from bruit.errors import RemoteProtocolError
from tests.unit.algorithms.schedules.ballots.room import Room, says

KEY = bytes(32)


def turns(room, most):
    """Let clocks run out until somebody has ended; how often."""
    for count in range(most):
        if any(machine.finished for machine in room.machines):
            return count
        room.ring("grace")
        room.talk()
        room.ring("ballot")
        room.talk()
    return most


def said_to(room, kind):
    return {(sender, to) for sender, to, word in room.heard if word.kind == kind}


def test_only_what_nothing_comes_after_is_final():
    """That too many have no attempt left ends nothing by itself: a sum may be under way."""
    terms = BallotTerms(peers=4, dropouts=1, colluders=1, steps=9, limit=5)
    for base, final in (
        (Base(6, 3, b"c"), False),
        (Base(6, 3, b"c", ended=True), True),
        (Base(6, 9, b"c"), True),
    ):
        said = {peer: Promise(9, base, 5, KEY) for peer in range(3)}
        assert terms.settled(base, said) == final
        assert not terms.settled(base, {0: said[0], 1: said[1]})


def test_a_run_without_attempts_votes_its_end():
    room = Room(peers=4, steps=3, spare=0, dropouts=1)
    for machine in room.machines[:2]:
        machine.charges = 3
    room.begin().talk()
    room.ring("again")
    room.talk()
    assert [machine.finished for machine in room.machines] == [True] * 4
    assert {(one.base, one.agreed) for one in room.machines} == {(room.machines[0].base, True)}
    assert room.machines[0].base.ended
    assert [machine.charges for machine in room.machines] == [3, 3, 0, 0]  # a vote costs nothing
    assert len(room.ledger) == 0
    assert {row for word in room.words("speak") for row in word.row.words.ravel()} == {0}


def test_those_who_can_make_no_list_end_after_a_turn_of_all_leaders():
    """One is gone, as planned, and one of the others has no attempt left: before, they went on for
    three turns and ten ballots, each longer than the last, and then gave up one by one."""
    room = Room(peers=4, steps=3, spare=0, dropouts=1)
    room.away = {3}
    room.machines[0].charges = 3
    room.begin().talk()
    assert turns(room, 9) <= 8
    assert [machine.finished and machine.agreed for machine in room.machines[:3]] == [True] * 3
    assert len({machine.base for machine in room.machines[:3]}) == 1


def test_one_who_gives_up_alone_says_so():
    room = Room(peers=4, steps=3, dropouts=1)
    room.away = {0, 1}
    room.begin().talk()
    machine = room.machines[3]
    machine._vain = 100
    room.take(3, machine.wake(1.0, "ballot", machine.ballot))
    assert machine.finished
    assert machine.told()["agreed"] is False


def signed(peer, promise):
    promise = replace(promise, seal=Stamps(peer).sign(promise.text()))
    return Envelope("ballot", promise.ballot, promise.row())


def test_an_end_that_nobody_voted_is_not_listed():
    room = Room(peers=4, steps=3, dropouts=1).begin()
    truth = room.talk(says("ballot", sender=3, to=0))[2]
    base = replace(Promise.of(0, truth.row).base, ended=True)
    room.hand(3, 0, signed(3, Promise(0, base, 0, KEY)))
    room.talk(says("ballot", sender=3, to=0))
    room.ring("grace")
    room.talk(lambda sender, to, word: sender == 3 and word.kind == "ballot")
    (first,) = {word.row.shown.tobytes() for word in room.words("list", sender=0)}
    assert first == bytes([1, 1, 1, 0])
    assert not room.machines[0].finished


def test_one_whose_charges_shrink_is_not_heard():
    """Its journal was set back: what it would be charged for now, it has been charged for before."""
    room = Room(peers=4, steps=3, spare=4, dropouts=1).begin()
    machine = room.machines[0]
    known = machine._promises[0].base
    room.hand(3, 0, signed(3, Promise(5, known, 4, KEY)))
    room.hand(3, 0, signed(3, Promise(5, known, 3, KEY)))  # overtaken by the one before
    assert machine._promises[3].charges == 4
    with pytest.raises(RemoteProtocolError, match="charged 2 times, and has signed 4 before"):
        room.hand(3, 0, signed(3, Promise(6, known, 2, KEY)))


def test_one_liar_that_claims_to_be_spent_ends_nothing():
    """It leads ballot 0, says that it has no attempt left, and shows two others: those three can make
    no list. Before, all others took its vouched end and stopped without a round."""
    room = Room(peers=4, steps=3, spare=2, dropouts=1).begin()
    room.talk(says("list"))
    liar, limit = room.machines[0], room.machines[0].terms.limit
    shown = {peer: room.machines[peer]._promises[peer] for peer in (1, 2)}
    spent = replace(liar._promises[0], charges=limit)
    shown[0] = replace(spent, seal=Stamps(0).sign(spent.text()))
    roll = Roll(0, (), tuple(sorted(shown.items())))
    tally = Tally.made(roll, np.zeros((1, liar.example.shape[1]), np.uint64), 0)
    tally = replace(tally, seal=Stamps(0).sign(tally.text()))
    for peer in (1, 2, 3):
        for word in (Envelope("list", 0, roll.row(4)), Envelope("sum", 0, tally.row(4))):
            with pytest.raises(RemoteProtocolError, match="ends a run that can go on"):
                room.hand(0, peer, word)
        assert not room.machines[peer].base.ended
    late = BallotTerms(peers=4, dropouts=1, colluders=1, steps=3, limit=limit)
    assert not late.wrong(replace(roll, ballot=4))  # after a turn of all leaders in vain


@pytest.mark.slow
@pytest.mark.parametrize(
    ("number", "spare"),
    [(6, 2), (33, 1), (39, 3)],
    ids=["one held a base that the others left", "two ends", "no list and no end"],
)
def test_runs_that_hung_or_ended_twice(number, spare):
    """With twenty times the usual kills; each was found by counting, and broken before."""
    here = replace(weather(number), kills=120.0, spare=spare, lies=("two lists",) * (number == 33))
    verdict = Assembly(here, number).run()
    assert not verdict.broken()
    assert verdict.ended
    assert not verdict.alone
