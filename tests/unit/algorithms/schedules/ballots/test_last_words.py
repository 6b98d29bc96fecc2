"""The end of a run by ballots: whoever was away when the others said that they hold the last base
is told again, and not for ever; promises after a sum go to the leader where there are many peers."""

from bruit.algorithms.schedules.ballots.standing import AGAIN
from bruit.algorithms.schedules.machine import Envelope
from tests.unit.algorithms.schedules.ballots.room import Room


def last_promises_to(room, peer):
    """Whether this message tells that peer of the last base."""
    steps = room.assembly.weather.steps

    def which(sender, to, word):
        return to == peer and word.kind == "ballot" and word.row.numbers[0, 1] == steps

    return which


def shows_the_end(peer):
    """Whether this message is the list in which the end is voted."""
    return lambda sender, to, word: (
        to == peer and word.kind == "list" and not word.row.members.any()
    )


def test_one_that_missed_the_others_last_promises_is_told_again():
    """It has not seen the list of the last ballot either, which shows them."""
    room = Room(peers=4, steps=2).begin()
    missed = last_promises_to(room, 3)
    lost = 0
    while room.talk(lambda *what: missed(*what) or shows_the_end(3)(*what)) is not None:
        lost += 1  # it was away just then
    assert lost == 4
    assert [machine.finished for machine in room.machines] == [True, True, True, False]
    assert room.machines[3].base == room.machines[0].base
    room.ring("again", peers=[3])
    room.talk()
    assert room.machines[3].finished


def test_the_list_of_the_end_tells_it_too():
    room = Room(peers=4, steps=2).begin()
    while room.talk(last_promises_to(room, 3)) is not None:
        pass
    assert all(machine.finished for machine in room.machines)


def test_those_who_have_ended_do_not_answer_each_other_for_ever():
    room = Room(peers=4, steps=2).begin()
    room.talk()
    assert all(machine.finished for machine in room.machines)
    mine = room.machines[0]._promises[0]
    before = len(room.heard)
    for _ in range(5 * AGAIN):
        room.hand(0, 1, Envelope("ballot", mine.ballot, mine.row()))
        room.talk()
    assert len(room.heard) - before <= 5 * AGAIN + 2 * AGAIN


def test_after_a_sum_only_the_leader_hears_of_it_among_many():
    few, many = (Room(peers=peers, steps=6).begin() for peers in (8, 9))
    for room in (few, many):
        room.talk()
        assert all(machine.finished and machine.base.round == 6 for machine in room.machines)
    assert len(few.words("ballot")) == 7 * 8 * 7  # of every ballot, the one after the end too
    # the first and the last promise go to all, the five between to the leader, by eight peers each
    assert len(many.words("ballot")) == 2 * 9 * 8 + 5 * 8
