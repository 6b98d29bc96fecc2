"""A machine that goes on from its memory in another process does exactly what it would have
done."""

import json
import random
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import pytest

import bruit as br
from bruit.algorithms.algorithm import catalog
from bruit.algorithms.messages import Slots
from bruit.algorithms.schedules.machine import Envelope, Missed
from bruit.errors import LocalProtocolError
from bruit.graphs import complete
from bruit.peers.journal.snapshots import freeze, thaw
from bruit.testing import small_task
from tests.conformance.hard_cases import CancelingNoise, FrankWolfe, GossipADMM
from tests.unit.algorithms.schedules.slow_network import SlowNetwork, machines

CASES = [kind() for kind in catalog().values()] + [
    br.WalkSGD(cap=2, rest=3),
    br.Renoised(tau=0.3, flat=2),
    GossipADMM(),
    FrankWolfe(),
    CancelingNoise(),
]


class Forgetful(SlowNetwork):
    """Now and then a peer is replaced by a fresh machine that has only the bytes of its memory."""

    def __init__(self, peers, spare, chance, **options):
        super().__init__(peers, **options)
        self.spare, self.chance, self.replaced = spare, chance, 0

    def carry_out(self, peer, effects):
        super().carry_out(peer, effects)
        if self.chance.random() < 0.2 and peer not in self.done and self.spare:
            old, fresh = self.peers[peer], self.spare.pop()[peer]
            fresh.resume(thaw(freeze(old.memory()), {type(old.seat.algorithm).__module__}))
            self.peers[peer], self.replaced = fresh, self.replaced + 1


@pytest.mark.parametrize("algorithm", CASES, ids=repr)
def test_every_machine_goes_on_from_its_memory(algorithm):
    graph, steps = complete(5), 8

    def fresh():
        return machines(algorithm, graph, small_task(5), steps, 1.0)

    delays = [random.Random(4) for _ in range(2)]
    plain = SlowNetwork(fresh(), lambda *_: 3 * delays[0].random() ** 6).run()
    forgetful = Forgetful(
        fresh(),
        [fresh() for _ in range(12)],
        random.Random(1),
        delay=lambda *_: 3 * delays[1].random() ** 6,
    ).run()
    assert forgetful.replaced > 3
    assert forgetful.met == plain.met
    assert forgetful.missed == plain.missed
    assert np.array_equal(forgetful.estimates(), plain.estimates())


class Elsewhere(NamedTuple):
    x: int


@dataclass(frozen=True, kw_only=True)
class ByName:
    x: int
    twice: int = field(init=False)

    def __post_init__(self):
        object.__setattr__(self, "twice", 2 * self.x)


def test_records_whose_fields_are_given_by_name_or_not_at_all_come_back():
    """A peer whose memory held one could not start again after a snapshot."""
    memory = ByName(x=3)
    object.__setattr__(memory, "twice", 7)  # as it was, not as it would be made
    again = thaw(freeze({"tally": [memory]}), {__name__})["tally"][0]
    assert (type(again), again.x, again.twice) == (ByName, 3, 7)


@pytest.mark.parametrize("record", ["Elsewhere", "ByName"])
def test_a_record_of_another_version_is_named(record):
    tree = json.dumps({"record": [__name__, record, [1, 2, 3]]}).encode()
    with pytest.raises(LocalProtocolError, match=f"a {record} of 3 parts where . are due; use the"):
        thaw(len(tree).to_bytes(8, "little") + tree, {__name__})


def test_memories_of_all_kinds_come_back():
    memory = {
        "plain": [None, True, 3, -0.0, float("inf"), "é"],
        (1, 2): {3, 4},
        5: (Missed(1, 2), Envelope("ask", 7)),
        "arrays": [np.arange(6).reshape(2, 3), np.zeros((0, 2)), np.float64(0.1), np.array([True])],
        "slots": Slots(np.array([0, 1]), np.array([4]), np.array([[0.5]])),
    }
    again = thaw(freeze(memory))
    assert list(again) == list(memory)
    assert again["plain"] == memory["plain"]
    assert (again[1, 2], again[5]) == (memory[1, 2], memory[5])
    for one, other in zip(again["arrays"], memory["arrays"], strict=True):
        assert type(one) is type(other)
        assert np.array_equal(one, other)
        assert (one.dtype, one.shape) == (other.dtype, other.shape)
    assert again["slots"].rows.tolist() == [[0.5]]
    again["arrays"][0][0, 0] = 9  # a copy one may write to


def test_what_cannot_be_kept_is_named():
    with pytest.raises(LocalProtocolError, match="holds a Random, which no snapshot can keep"):
        freeze({"x": random.Random()})


def test_only_records_of_this_run_are_made():
    kept = freeze(Elsewhere(1))
    assert thaw(kept, {__name__}) == Elsewhere(1)
    with pytest.raises(LocalProtocolError, match="none of this run's"):
        thaw(kept)
    tree = json.dumps({"record": ["bruit.peers.journal.snapshots", "freeze", [1]]}).encode()
    with pytest.raises(LocalProtocolError, match="which is no record"):
        thaw(len(tree).to_bytes(8, "little") + tree)


def test_the_memory_of_another_machine_is_refused():
    rounds, walk = (
        machines(kind, complete(3), small_task(3), 4, 1.0)[0]
        for kind in (br.Averaging(), br.WalkSGD())
    )
    with pytest.raises(LocalProtocolError, match="another kind of machine"):
        rounds.resume(walk.memory())
