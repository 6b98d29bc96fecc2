"""Routes: the words of a list come to one sum by each of them, nobody is told more than on another,
and whoever fails on the way costs an attempt and nothing else (silo:SILO-4, Routes; SILO-5)."""

from itertools import combinations

import numpy as np
import pytest

from benchmarks.reliability.assembly import Assembly, Weather
from bruit.algorithms.masks import mask_edges
from bruit.algorithms.schedules.ballots.routes import passed, way
from tests.unit.algorithms.schedules.ballots.room import Room, says

KINDS = ("all", "leader", "tree", "butterfly")


@pytest.mark.parametrize("kind", KINDS)
def test_all_words_come_to_one_sum(kind):
    """Once each, wherever a sum is made; of a leader that is on the list or is not."""
    for n in range(1, 18):
        everybody = tuple(range(3, 3 + 2 * n, 2))
        for leader in {everybody[0], everybody[-1], 4}:
            told = list(passed(kind, everybody, leader))
            assert len({(one.sender, one.receiver) for one in told}) == len(told)
            sums = 0
            for peer in {*everybody, leader}:
                here = way(kind, everybody, leader, peer)
                heard = [one for one in told if one.receiver == peer]
                assert here.awaited == {one.sender for one in heard}
                if here.whole is None:
                    continue
                sums += 1
                words = [v for one in heard if one.sender in here.whole for v in one.of]
                assert sorted([*words, *([peer] if peer in everybody else [])]) == list(everybody)
            assert sums == (n if kind in ("all", "butterfly") else 1)


def test_what_each_route_sends():
    found = [[len(list(passed(kind, tuple(range(n)), 0))) for kind in KINDS] for n in (4, 7, 16)]
    assert found == [[12, 3, 3, 8], [42, 6, 6, 14], [240, 15, 15, 64]]
    inbox = [one.receiver for one in passed("tree", tuple(range(16)), 5)]
    assert max(inbox.count(peer) for peer in range(16)) == 2


def bare(seen, masks, honest):
    """A basis of what a coalition can make of the sums it saw in which no mask of two honest peers
    is left, as combinations of the honest peers' words  # (any, honest)."""
    place = {peer: at for at, peer in enumerate(honest)}
    columns = np.zeros((len(honest), len(masks)))
    for at, (low, high) in enumerate(masks):
        columns[place[low], at], columns[place[high], at] = 1.0, -1.0
    _, sizes, rows = np.linalg.svd((seen @ columns).T)
    found = rows[np.sum(sizes > 1e-9) :] @ seen
    return found[np.abs(found).max(axis=1, initial=0.0) > 1e-9]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("colluders", [1, 2])
def test_a_coalition_on_any_route_has_the_sum_of_all_others_at_most(kind, colluders):
    """Every coalition of lists of up to nine, with the masks that real peers use. Whatever else it
    makes of what it was told holds a mask that it does not know."""
    for n in range(colluders + 2, 10):
        everybody = tuple(range(n))
        low, high = mask_edges(np.arange(n), colluders)
        for together in combinations(everybody, colluders):
            honest = [v for v in everybody if v not in together]
            unknown = [
                pair
                for pair in zip(low.tolist(), high.tolist(), strict=True)
                if not set(pair) & set(together)
            ]
            told = [one.of for one in passed(kind, everybody, n // 2) if one.receiver in together]
            told.append(frozenset(everybody))  # the sum itself, which everybody has in the end
            seen = np.array([[float(v in of) for v in honest] for of in told])
            found = bare(seen, unknown, honest)
            assert np.linalg.matrix_rank(found, tol=1e-9) == 1
            assert np.allclose(found, found[:, :1])


def test_secrets_along_the_route_would_tell():
    """The same with masks between neighbors of the tree only: one colluder has a branch alone."""
    everybody, honest = tuple(range(7)), [1, 2, 3, 4, 5, 6]
    pairs = [(one.receiver, one.sender) for one in passed("tree", everybody, 0)]
    unknown = [tuple(sorted(pair)) for pair in pairs if 0 not in pair]
    told = [one.of for one in passed("tree", everybody, 0) if one.receiver == 0]
    seen = np.array([[float(v in of) for v in honest] for of in told])
    assert np.linalg.matrix_rank(bare(seen, unknown, honest)) == 2  # both branches, one by one


@pytest.mark.parametrize("route", ["tree", "butterfly"])
@pytest.mark.parametrize(
    "weather",
    [
        Weather(5, 60.0, steps=8, spare=12),
        Weather(9, 60.0, steps=8, spare=16, dropouts=2, deaths=2),
        Weather(7, 60.0, steps=8, spare=40, dropouts=2, lies=("silent", "two lists", "two sums")),
    ],
    ids=["five", "nine, two die", "a liar"],
)
def test_failures_on_a_route_cost_attempts(weather, route):
    more = 0
    for seed in range(2):
        verdict = Assembly(Weather(**{**vars(weather), "route": route}), seed).run()
        assert not verdict.broken()
        assert not verdict.alone
        assert not verdict.ended
        more += verdict.attempts
    assert more > 0


def test_after_an_attempt_in_vain_the_leader_hears_who_is_silent():
    """Peer 3 of the tree 0 > 1 > 3 says nothing; 0 hears of 1 only that it is silent. The next
    leader asks everybody straight."""
    room = Room(5, route="tree").begin()
    while (
        said := room.talk(until=lambda who, to, word: word.kind == "speak" and who == 3)
    ) and said[2].number == 0:
        pass
    assert room.machines[0].ballot == 0
    assert room.machines[0]._silent() == [1]
    assert room.machines[1]._silent() == [3]
    room.ring("ballot")
    room.talk(until=says("speak", sender=3))
    heard = {to for who, to, word in room.heard if word.kind == "speak" and word.number == 1}
    assert heard == set(range(5))  # five are few: straight to everybody
    room.talk()
    assert {machine.base.round for machine in room.machines} == {3}


@pytest.mark.parametrize("route", ["tree", "butterfly"])
def test_words_of_another_attempt_are_not_passed_on(route):
    """Words that name another attempt are part of no sum of this one."""
    room = Room(5, route=route).begin()
    sender, to, word = room.talk(until=lambda who, to, word: word.kind == "speak")
    other = word.row._replace(binding=word.row.binding ^ np.uint8(1))
    room.hand(sender, to, type(word)(word.kind, word.number, other))
    room.talk()
    told = way(route, tuple(range(5)), 0, to)
    due = [part for part in told.parts if sender in part.of]
    assert sender in told.awaited
    said = [word for word in room.words("speak", sender=to) if word.number == 0]
    assert len(said) <= len(told.parts) - len(due)
    room.ring("ballot")
    room.talk()
    assert {machine.base.round for machine in room.machines} == {
        3
    }  # in another ballot, if not here
