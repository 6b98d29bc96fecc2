"""Both engines run an algorithm on ballots to the same integers; what cannot be is refused."""

import json
from dataclasses import dataclass

import numpy as np
import pytest

import bruit as br
from benchmarks.reliability.assembly import SumOfWords, Sums
from bruit.algorithms.algorithm import Algorithm
from bruit.algorithms.schedules.ballots.attempt import Attempt, Summed
from bruit.algorithms.schedules.ballots.chain import NO_KEY, binding, extended, root
from bruit.algorithms.schedules.ballots.schedule import Ballots
from bruit.algorithms.schedules.schedule import Schedule
from bruit.algorithms.task_door import TaskDoor
from bruit.errors import LocalProtocolError
from bruit.graphs import graph as named
from bruit.privacy.ledger import Ledger
from bruit.randomness import Replay
from bruit.runs.engines.engine import Job
from bruit.runs.engines.replay import compare

STEPS = 5
NOISE = br.Gaussian(clip=1.0, sigma=0.5)


def run(peers, engine, route="complete", **options):
    task = br.tasks.Mean(np.random.default_rng(1).normal(size=(peers, 2)))
    algorithm = SumOfWords(Ballots(spare=2, route=route))
    return br.run(
        algorithm,
        f"complete:{peers}",
        task,
        privacy=NOISE,
        steps=STEPS,
        seed=4,
        engine=engine,
        **options,
    )


@pytest.mark.parametrize(
    ("peers", "route"),
    [(2, "complete"), (4, "complete"), (9, "complete")]
    + [(peers, route) for peers in (2, 5, 9) for route in ("tree", "butterfly")],
)
def test_all_engines_make_the_same_sums(peers, route):
    """Straight nine peers tell their words to a leader, four to everybody."""
    bulk, events = (run(peers, one, route, watch=[1]) for one in (br.Bulk(), br.Events()))
    compare(bulk, events)
    late = run(peers, br.Events(latency=0.7, loss=0.2, churn=0.2), route)
    assert bulk.state.sums.any()
    for other in (events, late):
        assert np.array_equal(bulk.state.sums, other.state.sums)
        assert len(other.ledger) == len(bulk.ledger) == peers * STEPS
    heard = [
        {(one.clock, one.sender, one.row.tobytes()) for one in ran.trace.received}
        for ran in (bulk, events)
    ]
    assert heard[0] == heard[1]
    assert len({row.tobytes() for row in bulk.state.sums}) == 1


def test_sums_wrap():
    bulk = run(4, br.Bulk(), watch=[0])
    rounds = [[one.row[0] for one in bulk.trace.received if one.clock == t] for t in range(STEPS)]
    assert max(int(word) for said in rounds for row in said for word in row) > 2**62


def test_copies_are_lanes_of_their_own():
    values = np.random.default_rng(1).normal(size=(4, 2))

    def sums(copies):
        door = TaskDoor(
            task=br.tasks.Mean(np.tile(values, (copies, 1))),
            mechanism=NOISE,
            dice=Replay(4),
            ledger=Ledger(peers=4 * copies),
        )
        job = Job(
            algorithm=SumOfWords(Ballots()),
            graph=named("complete:4"),
            door=door,
            dice=Replay(4),
            steps=STEPS,
            ledger=Ledger(peers=4),
        )
        return br.Bulk(copies=copies).execute(job).state.sums

    assert np.array_equal(sums(3)[:4], sums(1))
    assert not np.array_equal(sums(3)[4:8], sums(1))


@dataclass(frozen=True)
class Asked(Algorithm[Sums]):
    """Notes how it is asked."""

    schedule: Schedule = Ballots()

    def start(self, home):
        assert home.attempt is None
        return SumOfWords.start(self, home)

    def emit(self, state, edges):
        return edges.broadcast(state.words)

    def absorb(self, state, inbox, home):
        LOG.append((home.attempt, int(home.clock[0]), int(home.step[0]), bool(home.last[0])))
        assert [len(home.edges.peers) > 0] == [bool(home.attempt.members)]
        return SumOfWords.absorb(self, state, inbox, home)

    def estimate(self, state):
        return SumOfWords.estimate(self, state)


LOG: list[tuple[Attempt, int, int, bool]] = []


@pytest.mark.parametrize("engine", [br.Bulk(), br.Events()], ids=["bulk", "events"])
def test_what_an_algorithm_is_told(engine):
    LOG.clear()
    task = br.tasks.Mean(np.ones((3, 1)))
    br.run(Asked(), "complete:3", task, steps=2, engine=engine)
    attempts = [entry[0] for entry in LOG if 0 in (entry[0].members or (0,))]
    told = {(one.ballot, one.round, one.members, one.keys, one.sums) for one in attempts}
    all_of_them = (0, 1, 2)
    assert told == {
        (0, 0, all_of_them, (NO_KEY,) * 3, ()),
        (1, 1, all_of_them, (NO_KEY,) * 3, (Summed(0, 0, all_of_them),)),
        (2, 2, (), (), (Summed(1, 1, all_of_them),)),
    }
    assert {(entry[1], entry[2], entry[3]) for entry in LOG} == {
        (0, 1, False),
        (1, 2, False),
        (2, 2, True),
    }
    begin = root(Asked(), 3, 2)
    first = binding(begin, 0, 0, all_of_them, (NO_KEY,) * 3)
    assert {one.binding for one in attempts if one.ballot == 0} == {first}
    assert len({one.binding for one in attempts}) == 3


def test_the_hash_depends_on_everything():
    begin = root(SumOfWords(), 4, 3)
    assert begin != root(SumOfWords(), 4, 2) != root(SumOfWords(Ballots(1)), 4, 2)
    keys = (NO_KEY, NO_KEY)
    made = {
        binding(begin, 1, 0, (0, 1), keys),
        binding(begin, 0, 1, (0, 1), keys),
        binding(begin, 0, 0, (0, 2), keys),
        binding(begin, 0, 0, (0, 1), (NO_KEY, bytes([1]) * 32)),
        binding(bytes(32), 0, 0, (0, 1), keys),
    }
    assert len(made) == 5
    words = np.ones((1, 2), np.uint64)
    assert extended(begin, words) != extended(begin, words * np.uint64(2))
    with pytest.raises(LocalProtocolError, match="2 copies of a run have a hash each"):
        _ = Attempt(ballot=0, round=0, members=(0, 1), bindings=(b"a", b"b")).binding


@pytest.mark.parametrize(
    ("graph", "ballots", "why"),
    [
        ("ring:5", Ballots(), "all peers are neighbors of each other"),
        ("complete:4", Ballots(dropouts=1, colluders=3), "nobody is left to hide among"),
        ("complete:4", Ballots(dropouts=2, colluders=1), "no peer in common"),
        ("tree:7", Ballots(route="tree"), "all peers are neighbors of each other"),
    ],
)
def test_what_cannot_be_is_refused(graph, ballots, why):
    peers = named(graph).n
    task = br.tasks.Mean(np.ones((peers, 1)))
    for engine in (br.Bulk(), br.Events()):
        with pytest.raises(br.ConfigError, match=why):
            br.run(SumOfWords(ballots), graph, task, steps=2, engine=engine)


def test_only_words_are_said():
    class Real(SumOfWords):
        def emit(self, state, edges):
            return edges.broadcast(state.words.astype(np.float64))

    for engine in (br.Bulk(), br.Events()):
        with pytest.raises(LocalProtocolError, match="64-bit words"):
            br.run(Real(), "complete:3", br.tasks.Mean(np.ones((3, 1))), steps=2, engine=engine)


def test_no_rounds_and_replays():
    task = br.tasks.Mean(np.ones((3, 1)))
    for engine in (br.Bulk(), br.Events()):
        assert not br.run(SumOfWords(), "complete:3", task, steps=0, engine=engine).state.sums.any()
    whole = br.run(SumOfWords(), "complete:3", task, steps=3)
    br.replay(whole, task)
    assert json.dumps(SumOfWords(Ballots(1)).describe())
    assert Schedule.from_description({"name": "ballots", "dropouts": 1}) == Ballots(1)
