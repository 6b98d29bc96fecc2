"""The default engine takes a compiled path where it is equal, says so, and takes the general one
for all the rest."""

from dataclasses import replace

import numpy as np
import pytest

import bruit as br
from bruit.algorithms.algorithm import Algorithm, catalog
from bruit.algorithms.course import Stops
from bruit.algorithms.gossip.gopa import Gopa
from bruit.algorithms.pairs.dual_averaging_rounds import DualAveragingRounds
from bruit.algorithms.pairs.gosta import Gosta
from bruit.algorithms.pairs.gosta_rounds import GostaRounds
from bruit.algorithms.pairs.u1_gossip import U1Gossip
from bruit.algorithms.pairs.u2_gossip import U2Gossip
from bruit.algorithms.schedules.schedule import schedules
from bruit.algorithms.task_door import TaskDoor
from bruit.algorithms.tokens import walk_compiled
from bruit.algorithms.tokens.walk_sum import WalkSum
from bruit.graphs import complete, ring
from bruit.graphs import graph as named_graph
from bruit.runs.engines.replay import compare
from bruit.tasks import Logistic, Mean, Records, Statistic
from bruit.tasks.pairs.pairwise import Pairwise
from bruit.testing import small_task

GENERAL = br.Bulk(fused=False)
NOISE = br.Gaussian(clip=0.3, sigma=0.5)
REAL = replace(NOISE, arithmetic="ideal")


def logistic(peers, seed=0, columns=3):
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(5 * peers, columns))
    return Logistic(
        Records.of(features, np.sign(rng.normal(size=5 * peers)), np.repeat(np.arange(peers), 5))
    )


def pairs(peers):
    return Statistic.of(np.random.default_rng(0).normal(size=peers), "gini")


def points(peers):
    rng = np.random.default_rng(0)
    return Pairwise.of(rng.normal(size=(peers, 2)), np.arange(peers) % 2 * 2 - 1)


CASES = [  # algorithm, task, noise, whether the compiled path is taken by itself
    (br.Averaging(), small_task, REAL, True),
    (br.Averaging(), small_task, None, True),
    (br.Averaging(), small_task, NOISE, False),  # on a grid: rounds are mixed in floats
    (br.Chebyshev(), small_task, REAL, False),  # single precision
    (br.PairAveraging(br.Pairs("edges", 300)), small_task, REAL, True),
    (br.PairAveraging(br.Pairs("edges", 300)), small_task, NOISE, False),
    (Gopa(), small_task, REAL, True),
    (br.WalkSGD(), logistic, NOISE, True),
    (br.WalkSGD(cap=3, rest=4, burn_in=5, flush=7, bound=2.0), logistic, NOISE, True),
    (br.WalkSGD(cap=2, burn_in=3), logistic, REAL, True),
    (br.WalkSGD(rest=5), logistic, None, True),
    (br.WalkSGD(decay=0.5), logistic, NOISE, False),  # watched one by one
    (br.WalkSGD(batch=2), logistic, NOISE, False),
    (br.WalkSGD(), small_task, NOISE, False),  # no logistic task
    (br.WalkADMM(), logistic, NOISE, False),  # equal to 1e-5 only
    (br.RingSum(), small_task, NOISE, True),
    (br.RingSum(noise="shared", published=True), small_task, NOISE, True),
    (br.RingSum(published=True), small_task, REAL, True),
    (br.RingSum(), small_task, None, True),
    (WalkSum(), small_task, NOISE, True),
    (WalkSum(), small_task, REAL, True),
    (br.Personalized(0.7, 1.5), logistic, NOISE, False),  # reads records past the door
    (
        Gosta(br.Pairs("edges", 200)),
        pairs,
        None,
        False,
    ),  # likewise, for the five that pass points on
    (GostaRounds(), pairs, None, False),
    (U1Gossip(), pairs, None, False),
    (U2Gossip(), pairs, None, False),
    (DualAveragingRounds(), points, None, False),
]


def test_the_cases_are_all_algorithms_with_a_compiled_path():
    offered = {name for name, kind in catalog().items() if kind.fused is not Algorithm.fused}
    assert offered == {algorithm.name() for algorithm, *_ in CASES}


@pytest.fixture
def anything_goes(monkeypatch):
    """However little there is to do, and in parts that do not end where anybody looks."""
    for kind in schedules().values():
        monkeypatch.setattr(kind, "worth", 0)
    monkeypatch.setattr(walk_compiled, "CHUNK", 0)


@pytest.mark.usefixtures("anything_goes")
@pytest.mark.parametrize(
    ("algorithm", "make", "noise", "fused"),
    CASES,
    ids=lambda one: getattr(one, "__name__", str(one)),
)
def test_the_default_is_the_general_path(algorithm, make, noise, fused):
    """States, scores, ledger, trace, what is known of the door, and epsilons."""
    graph = complete(12) if not isinstance(algorithm, br.RingSum) else ring(12)
    timed = isinstance(algorithm.schedule, br.Pairs | br.Wakes)
    steps = 150 if isinstance(algorithm.schedule, br.Walk) else 6
    every = 30 if isinstance(algorithm.schedule, br.Walk) else 0 if timed else steps
    task = make(12)
    options = {"privacy": noise, "steps": steps, "seed": 3, "evaluate_every": every}
    slow, fast = (
        br.run(algorithm, graph, task, engine=engine, **options) for engine in (GENERAL, br.Bulk())
    )
    assert slow.engine == {"name": "bulk", "fused": False}
    assert fast.engine == {"name": "bulk", "fused": fused}
    compare(slow, fast)
    assert fast.metrics.steps == slow.metrics.steps
    for name in slow.metrics.names():
        assert fast.metrics.column(name) == pytest.approx(
            slow.metrics.column(name), rel=1e-9, abs=1e-9
        )
    for name in ("time", "a", "b"):
        assert np.array_equal(
            getattr(slow.trace.meetings, name), getattr(fast.trace.meetings, name)
        )
    assert (fast.trace.messages, fast.trace.bytes) == (slow.trace.messages, slow.trace.bytes)
    assert type(fast.trace) is type(slow.trace)
    assert fast.unwatched == slow.unwatched == ""
    if noise is not None:
        assert fast.epsilon(of=1, seen_by=4) == slow.epsilon(of=1, seen_by=4)
        assert (
            fast.guarantee(of=1, seen_by=4).hypotheses == slow.guarantee(of=1, seen_by=4).hypotheses
        )


@pytest.mark.usefixtures("anything_goes")
@pytest.mark.parametrize("options", [{"watch": [2]}, {"given": True}], ids=str)
def test_what_a_compiled_path_lacks_takes_the_general_one(options):
    task, asked = logistic(12), {"privacy": NOISE, "steps": 40, "evaluate_every": 0}
    if "given" in options:
        options = {"given": br.run(br.WalkSGD(), complete(12), task, engine=GENERAL, **asked).trace}
    run = br.run(br.WalkSGD(), complete(12), task, **asked, **options)
    assert run.engine["fused"] is False


@pytest.mark.usefixtures("anything_goes")
def test_a_run_goes_on_from_states():
    """A later phase begins with the state that a compiled one left, contributions and rests
    included; it walks on from the last holder, on the general path."""
    task, runs = logistic(12), []
    for engine in (GENERAL, br.Bulk()):
        options = {"privacy": NOISE, "steps": 50, "evaluate_every": 0, "engine": engine}
        first = br.run(br.WalkSGD(cap=5, rest=6), complete(12), task, seed=1, **options)
        runs.append(
            br.run(br.WalkSGD(cap=5, rest=6), complete(12), task, seed=2, after=first, **options)
        )
    assert [run.before.engine["fused"] for run in runs] == [False, True]
    assert [run.engine["fused"] for run in runs] == [False, False]
    compare(*runs)


def test_little_work_compiles_nothing():
    assert (
        br.run(br.WalkSGD(), complete(12), logistic(12), privacy=NOISE, steps=30).engine["fused"]
        is False
    )
    assert (
        br.run(br.RingSum(), ring(12), Mean.uniform(12, 1, 0), privacy=NOISE, steps=2_000).engine[
            "fused"
        ]
        is True
    )


@pytest.mark.usefixtures("anything_goes")
def test_a_compiled_walk_that_is_off_is_refused(monkeypatch):
    """A default run gives every token to `absorb`: one that is off, here by noise of another size,
    ends it."""
    drawn = walk_compiled.noise_of
    monkeypatch.setattr(walk_compiled, "noise_of", lambda *asked: drawn(*asked) * (1 + 1e-6))
    with pytest.raises(br.ConformanceError, match="away from the general one at hop 0"):
        br.run(br.WalkSGD(), complete(12), logistic(12), privacy=NOISE, steps=30, evaluate_every=0)


@pytest.mark.usefixtures("anything_goes")
def test_a_door_of_its_own_is_asked_at_every_hop(monkeypatch):
    asked = []
    monkeypatch.setattr(
        TaskDoor,
        "gradient_on",
        lambda door, at, *rest: asked.append(len(at.ids)) or _given(door, at, *rest),
    )
    br.run(br.WalkSGD(), complete(12), logistic(12), privacy=NOISE, steps=150, evaluate_every=0)
    assert sum(asked) == 150
    assert len(asked) < 10


_given = TaskDoor.gradient_on


def test_files_ask_for_either_or_leave_it_open():
    from bruit.runs.build import build_engine
    from bruit.runs.file import from_dict

    content = {
        "graph": "ring:6",
        "steps": 3,
        "task": {"kind": "mean"},
        "algorithm": {"name": "averaging"},
    }
    for asked, found in ((None, "auto"), (True, True), (False, False)):
        engine = {} if asked is None else {"engine": {"fused": asked}}
        assert build_engine(from_dict({**content, **engine})).fused == found
    with pytest.raises(br.ConfigError, match="fused is True, False or 'auto'"):
        br.Bulk(fused="maybe")


def test_stops_end_where_somebody_looks():
    found = [(part.start, part.stop) for part in Stops(every=5).parts(12, 3)]
    assert found == [(0, 3), (3, 5), (5, 8), (8, 10), (10, 12)]
    assert [part.stop for part in Stops().parts(7, 4)] == [4, 7]
    assert list(Stops().parts(0, 4)) == []


@pytest.mark.parametrize("graph", ["ring:7", "path:5", "er:30,c=1,seed=2", "complete:6", "star:9"])
def test_ring_order_of_all_peers_at_once(graph):
    from bruit.algorithms.schedules.walk.schedule import _successor, _successors

    graph = named_graph(graph)
    assert _successors(graph).tolist() == [_successor(graph, v) for v in range(graph.n)]


@pytest.mark.usefixtures("anything_goes")
def test_a_default_run_is_replayed_as_strictly_as_before():
    """To 1e-9, though it was fused; and an audit watches it, which takes the general path."""
    task = logistic(12)
    run = br.run(br.WalkSGD(), complete(12), task, privacy=NOISE, steps=60, evaluate_every=0)
    assert run.engine["fused"] is True
    assert br.replay(run, task).difference < 1e-9
    run.state.token[0] += 1e-7
    with pytest.raises(br.ConformanceError, match="final states differ"):
        br.replay(run, task)
    watched = br.run(
        br.WalkSGD(), complete(12), task, privacy=NOISE, steps=60, evaluate_every=0, watch=[3]
    )
    assert watched.engine["fused"] is False
