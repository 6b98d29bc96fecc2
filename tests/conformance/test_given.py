"""What a given trace says is followed or refused with a sentence: every algorithm of the catalog,
every fact, every engine, by discovery."""

import numpy as np
import pytest

import bruit as br
from bruit.algorithms.algorithm import catalog
from bruit.algorithms.schedules.pairs.schedule import Pairs
from bruit.algorithms.schedules.rounds.schedule import Rounds
from bruit.algorithms.schedules.wakes.schedule import Wakes
from bruit.algorithms.schedules.walk.schedule import Walk
from bruit.peers.engine import Network
from bruit.testing import small_task, suited
from bruit.trace import Faults, Meetings, Trace

ALGORITHMS = [kind() for kind in catalog().values()]
GRAPH, STEPS = br.graphs.complete(4), 4  # every algorithm runs on it


def meetings(a, b):
    return Meetings(np.arange(float(len(a))), np.array(a, np.int64), np.array(b, np.int64))


def down(number=1, a=1, b=2):
    return Faults(np.array([number]), np.array([a]), np.array([b]))


MET = meetings([2, 1, 0, 2], [3, 3, 1, 0])
WALKED = meetings([0, 0, 2, 3], [0, 2, 3, 3])
WOKEN = meetings([2, 2, 1, 0], [2, 2, 1, 0])
READ = [{0: 0, 1: 0, 3: 0}, {0: 0, 1: 0, 3: 0}, {0: 0, 2: 1, 3: 0}, {1: 1, 2: 2, 3: 0}]
FACTS = {
    "meetings": Trace(peers=4, steps=STEPS, meetings=MET),
    "walk": Trace(peers=4, steps=STEPS, meetings=WALKED),
    "wakes": Trace(peers=4, steps=STEPS, meetings=WOKEN),
    "reads": Trace(peers=4, steps=STEPS, meetings=WOKEN, reads=READ),
    "faults": Trace(peers=4, steps=STEPS, faults=down()),
    "meetings and faults": Trace(peers=4, steps=STEPS, meetings=MET, faults=down()),
    "walk and faults": Trace(peers=4, steps=STEPS, meetings=WALKED, faults=down()),
    "wakes and faults": Trace(peers=4, steps=STEPS, meetings=WOKEN, faults=down()),
    "peers": Trace(peers=5, steps=STEPS),
}
PLACE = {
    Rounds: {"faults"},
    Pairs: {"meetings"},
    Walk: {"walk"},
    Wakes: {"wakes", "reads"},
    br.Ballots: set(),
}


def run(algorithm, given=None, graph=GRAPH, **options):
    return br.run(
        algorithm,
        suited(algorithm, graph),
        small_task(graph.n),
        steps=STEPS,
        evaluate_every=0,
        given=given,
        watch=range(graph.n),
        **options,
    )


@pytest.mark.parametrize("fact", FACTS)
@pytest.mark.parametrize("algorithm", ALGORITHMS, ids=lambda one: one.name())
def test_a_given_fact_is_followed_or_refused(algorithm, fact):
    given = FACTS[fact]
    if fact not in PLACE[type(algorithm.schedule)]:
        with pytest.raises(br.ConfigError, match="given"):
            run(algorithm, given)
        return
    found = run(algorithm, given)
    if fact == "faults":
        heard = {
            (message.sender, message.receiver)
            for message in found.trace.received
            if message.clock == 1
        }
        assert heard
        assert not heard & {(1, 2), (2, 1)}
    assert np.array_equal(found.trace.meetings.a, given.meetings.a)
    assert np.array_equal(found.trace.meetings.b, given.meetings.b)
    assert found.trace.reads == given.reads
    assert np.array_equal(found.trace.faults.round, given.faults.round)


@pytest.mark.parametrize(
    "engine", [br.Bulk(fused=True), br.Events(), Network()], ids=lambda one: repr(one)[:18]
)
@pytest.mark.parametrize(
    "algorithm",
    [one for one in ALGORITHMS if PLACE[type(one.schedule)]],
    ids=lambda one: one.name(),
)
def test_engines_that_replay_nothing_say_so(algorithm, engine):
    fact = sorted(PLACE[type(algorithm.schedule)])[0]
    with pytest.raises(br.ConfigError, match=r"replay a trace with Bulk\(\)"):
        br.run(
            algorithm,
            suited(algorithm, GRAPH),
            small_task(4),
            steps=STEPS,
            evaluate_every=0,
            given=FACTS[fact],
            engine=engine,
        )


def test_edges_for_synchronous_gosta_are_refused():
    """It draws its edges itself: given ones changed nothing, in silence."""
    with pytest.raises(
        br.ConfigError, match="who met whom, 4 times, and gosta-rounds follows rounds"
    ):
        run(br.GostaRounds(), FACTS["meetings"])


PATH = br.graphs.path(4)


@pytest.mark.parametrize(
    ("algorithm", "given", "sentence"),
    [
        (
            br.PairAveraging(),
            Trace(peers=4, steps=1, meetings=meetings([0], [2])),
            "peers 0 and 2 meet .number 0., and they are no neighbors",
        ),
        (
            br.PairAveraging(),
            Trace(peers=4, steps=1, meetings=meetings([1], [1])),
            "peers 1 and 1 meet",
        ),
        (br.PairAveraging(), Trace(peers=4, steps=1, meetings=meetings([0], [7])), "names peer 7"),
        (
            br.PairAveraging(),
            Trace(
                peers=4,
                steps=2,
                meetings=Meetings(np.array([2.0, 1.0]), np.array([0, 1]), np.array([1, 2])),
            ),
            "in order",
        ),
        (
            br.WalkSGD(),
            Trace(peers=4, steps=3, meetings=meetings([0, 0, 1], [0, 1, 2])),
            "3 hops and the run 4 steps",
        ),
        (
            br.WalkSGD(),
            Trace(peers=4, steps=4, meetings=meetings([0, 1, 2, 3], [1, 2, 3, 3])),
            "starts with a hop from peer 0 to 1",
        ),
        (
            br.WalkSGD(),
            Trace(peers=4, steps=4, meetings=meetings([0, 0, 2, 3], [0, 1, 3, 3])),
            "hop 2 of the given walk leaves peer 2",
        ),
        (
            br.WalkSGD(),
            Trace(peers=4, steps=4, meetings=meetings([0, 0, 3, 3], [0, 3, 3, 3])),
            "0 and 3 hand over the token .number 1.",
        ),
        (
            br.Averaging(),
            Trace(peers=4, steps=4, faults=down(4)),
            "down in round 4, and this run has 4",
        ),
        (
            br.Averaging(),
            Trace(peers=4, steps=4, faults=down(1, 0, 3)),
            "link of peers 0 and 3 was down in round 1",
        ),
        (br.Averaging(), Trace(peers=4, steps=4, missed=2), "counts 2 exchanges"),
        (
            br.ModelPropagation(),
            Trace(peers=4, steps=4, meetings=meetings([0], [1])),
            "meets peer 1",
        ),
        (
            br.ModelPropagation(),
            Trace(peers=4, steps=4, meetings=meetings([0, 3], [0, 3]), reads=[{1: 0}]),
            "2 wakes and says for 1",
        ),
        (
            br.ModelPropagation(),
            Trace(peers=4, steps=4, meetings=meetings([0], [0]), reads=[{}]),
            "leaves out peer 1",
        ),
        (
            br.ModelPropagation(),
            Trace(peers=4, steps=4, meetings=meetings([0], [0]), reads=[{1: 0, 2: 0}]),
            "names peer 2",
        ),
        (
            br.ModelPropagation(),
            Trace(peers=4, steps=4, meetings=meetings([0], [0]), reads=[{1: 5}]),
            "read word 5 of peer 1",
        ),
    ],
)
def test_facts_that_cannot_be_are_refused(algorithm, given, sentence):
    with pytest.raises(br.ConfigError, match=sentence):
        run(algorithm, given, PATH)
