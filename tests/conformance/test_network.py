"""Rehearsals: between 12 real peers on loopback (TLS, sockets, journals) every algorithm does what
the simulator does.

Rounds and walks agree step by step with the bulk engine; meetings and wakes through the replay of
their trace. Exact for meetings, messages and ledger, 1e-9 for floats.
"""

import numpy as np
import pytest

import bruit as br
from benchmarks.reliability.assembly import SumOfWords
from bruit.algorithms.algorithm import catalog
from bruit.algorithms.schedules.ballots.schedule import Ballots
from bruit.algorithms.schedules.rounds.schedule import Rounds
from bruit.algorithms.schedules.wakes.schedule import Wakes
from bruit.algorithms.schedules.walk.schedule import Walk
from bruit.graphs import butterfly, regular, ring, torus
from bruit.peers.engine import Network
from bruit.runs.engines.replay import compare
from bruit.runs.replay import replay
from bruit.tasks.kinds.kind import kinds
from bruit.testing import small_task, suited, task_for
from tests.conformance.hard_cases import CancelingNoise, FrankWolfe, GossipADMM

FAST = ("averaging", "gossip-sgd", "walk-sgd", "pair-averaging")
CASES = [kind() for kind in catalog().values()] + [
    br.WalkSGD(cap=2, rest=3, schedule=br.Walk("uniform")),
    br.Renoised(tau=0.3, flat=2),
    br.GossipSGD(mixing=3, gamma=1.2),
    br.GossipSGD(batch=2),
    br.PairAveraging(br.Pairs("edges")),
    br.PairAveraging(br.Pairs("clocks")),
    br.PairAveraging(br.Pairs(activations=40)),
    br.Personalized(schedule=br.Wakes(activations=40)),
    GossipADMM(),
    FrankWolfe(),
    CancelingNoise(),
    br.FederatedADMM(noise="server"),
]
MARKED = [
    pytest.param(
        case,
        marks=()
        if case == catalog().get(case.name(), str)() and case.name() in FAST
        else pytest.mark.slow,
        id=repr(case),
    )
    for case in CASES
]


def noise_for(algorithm):
    if algorithm.counting:
        return br.RandomizedResponse(values=3, gamma=0.5)
    return br.Gaussian(clip=2.0, sigma=0.5)


def rehearse(algorithm, graph, task, steps, pace=0.1):
    noise = noise_for(algorithm)
    return br.run(
        algorithm,
        graph,
        task,
        privacy=noise,
        steps=steps,
        seed=5,
        evaluate_every=0,
        engine=Network(timeout=60.0, pace=pace),
    )


def check(algorithm, graph, steps=6):
    graph = suited(algorithm, graph)
    task = task_for(algorithm, graph.n)
    real = rehearse(algorithm, graph, task, steps)
    met = real.trace.meetings
    if isinstance(algorithm.schedule, Rounds | Walk | br.Ballots):
        bulk = br.run(
            algorithm,
            graph,
            task,
            privacy=noise_for(algorithm),
            steps=steps,
            seed=5,
            evaluate_every=0,
        )
        compare(bulk, real)
        if not isinstance(algorithm.schedule, br.Ballots):  # who is late is asked again there
            assert real.trace.messages == bulk.trace.messages
        assert np.array_equal(met.a, bulk.trace.meetings.a)
        assert np.array_equal(met.b, bulk.trace.meetings.b)
        return
    replay(real, task)
    assert len(met.a) > graph.n // 4  # some of the timetable took place, however busy the machine
    copies = int(
        graph.degrees[met.b].sum() + graph.degrees.sum()
    )  # everybody's first words, then those of each wake
    assert real.trace.messages == (
        copies if isinstance(algorithm.schedule, Wakes) else 2 * len(met.a)
    )


@pytest.mark.parametrize("algorithm", [kind() for kind in catalog().values()], ids=repr)
def test_each_is_tried_with_a_task_that_it_is_for(algorithm):
    """By discovery: what is asked is answered, and by a kind of task for that question."""
    task = task_for(algorithm, 4)
    answered = next(kind.task.answers for kind in kinds().values() if kind.task is type(task))
    assert algorithm.asks is None or algorithm.asks in answered
    only_mean = {one.name for one in kinds().values() if algorithm.asks in one.task.answers} <= {
        "mean",
        "histogram",
    }
    assert not isinstance(task, br.tasks.Mean) or algorithm.asks in (None, "a value to average")
    assert only_mean is False or algorithm.asks is None


@pytest.mark.parametrize("algorithm", MARKED)
def test_real_peers_do_what_the_simulator_does(algorithm):
    check(algorithm, torus(3, 4))


@pytest.mark.slow
@pytest.mark.parametrize("law", ["euclidean", "gaussian"])
def test_noise_by_how_many_records_a_peer_holds(law):
    """A warm start and updates of more and more of the budget, on models of one's own; the lines of
    every peer cost what was planned."""
    algorithm = br.PrivateDescent(updates=3, growth=1.5, warm=1)
    task = task_for(algorithm, 5)
    noise = br.NoiseBySize(
        task.dim, records=task.sizes, lipschitz=1.0, ridge=1.0, law=law, noise_multiplier=2.0
    )
    real = br.run(
        algorithm,
        "complete:5",
        task,
        privacy=noise,
        steps=25,
        seed=5,
        evaluate_every=0,
        engine=Network(timeout=60.0, pace=0.02),
    )
    replay(real, task)
    costs = np.array([event.noise_multiplier for event in real.ledger.events])
    for peer in real.ledger.counts():
        found = np.sort(np.repeat(costs, peer))
        assert found == pytest.approx([2 / 1.5**2, 2 / 1.5, 2, 2])


@pytest.mark.slow
@pytest.mark.parametrize(
    "algorithm", [br.Averaging(), br.GossipSGD(), br.PairAveraging(), br.WalkSGD()], ids=repr
)
def test_on_an_irregular_graph_of_more_peers(algorithm):
    check(algorithm, regular(24, 3, seed=2))


@pytest.mark.slow
def test_on_a_graph_that_changes_more_often_than_any_peer_can_see_ahead():
    """Relabelled every few rounds: lines to neighbors of later rounds are laid when they are
    needed."""
    check(br.Averaging(), butterfly(8, relabel=3), steps=75)


@pytest.mark.parametrize(
    ("peers", "route"), [(4, "complete"), (9, "complete"), (9, "tree"), (6, "butterfly")]
)
def test_ballots_make_the_same_sums(peers, route):
    """Up to eight peers everybody hears all words, then the leader sums, or a route does: the same
    integers, states and ledger lines as in bulk, nobody was missed, and the same messages, but for
    words that a butterfly says again."""
    case, noise = SumOfWords(Ballots(spare=2, route=route)), br.Gaussian(clip=2.0, sigma=0.5)
    bulk, real = (
        br.run(
            case,
            f"complete:{peers}",
            small_task(peers),
            privacy=noise,
            steps=5,
            seed=5,
            evaluate_every=0,
            engine=engine,
        )  # a quarter of the timeout later words are said again: no machine is that busy
        for engine in (br.Bulk(), Network(timeout=1200.0))
    )
    assert compare(bulk, real).lines == 5 * peers
    assert np.array_equal(bulk.state.sums, real.state.sums)
    assert bulk.state.sums.any()
    said, expected = ((one.trace.messages, one.trace.bytes) for one in (real, bulk))
    if route == "butterfly":  # a list that comes again has words said again, word for word
        assert expected[0] <= said[0] < 1.5 * expected[0]
        assert said[1] * expected[0] == expected[1] * said[0]
    else:
        assert said == expected
    assert real.trace.missed == 0


def test_no_steps_end_at_once():
    for algorithm in (br.Averaging(), br.PairAveraging(), br.WalkSGD(), FrankWolfe()):
        task = small_task(3)
        real = rehearse(algorithm, ring(3), task, 0)
        assert len(real.trace.meetings.a) == 0


def test_a_rehearsal_says_what_it_was():
    result = rehearse(br.Averaging(), ring(3), small_task(3), 2)
    assert result.engine == {"name": "network", "timeout": 60.0, "pace": 0.1}
