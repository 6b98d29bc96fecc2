"""Every algorithm whose model walks, found by discovery, under latency, loss and churn: one token,
every hop once."""

import numpy as np
import pytest

import bruit as br
from bruit.algorithms.algorithm import catalog
from bruit.algorithms.schedules.machine import Envelope, Send
from bruit.algorithms.schedules.peer import Seat
from bruit.algorithms.schedules.walk.peer import TokenPeer
from bruit.algorithms.schedules.walk.schedule import Walk
from bruit.algorithms.task_door import TaskDoor
from bruit.errors import RemoteProtocolError
from bruit.privacy.ledger import Ledger
from bruit.randomness import Replay
from bruit.testing import small_task
from bruit.trace import Faults

TOKENS = [kind() for kind in catalog().values() if isinstance(kind().schedule, Walk)]
GRAPHS = ("ring:6", "complete:5", "star:5")
STORM = br.Events(latency=0.5, loss=0.2, churn=0.3)


def walked(algorithm, name, seed, steps=24):
    """One run in the storm; checks that the token was always in one place and went through every
    hop, once."""
    graph = br.graphs.graph(name)
    task = small_task(graph.n)
    run = br.run(
        algorithm,
        graph,
        task,
        privacy=br.Gaussian(clip=2.0, sigma=0.5),
        steps=steps,
        seed=seed,
        engine=STORM,
        evaluate_every=0,
    )
    path = run.trace.meetings
    assert len(path.b) == steps
    assert path.a[0] == path.b[0]
    assert np.array_equal(path.a[1:], path.b[:-1])
    assert (np.diff(path.time) >= 0).all()
    return run, task


def test_discovery_finds_all_tokens():
    assert {one.name() for one in TOKENS} >= {
        "walk-sum",
        "walk-sgd",
        "walk-admm",
        "ring-sum",
        "token-histogram",
    }


@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize("algorithm", TOKENS, ids=repr)
def test_no_token_dies_or_doubles_in_a_storm(algorithm, name):
    for seed in range(3):
        run, task = walked(algorithm, name, seed)
        br.replay(run, task)


def test_the_walk_that_died():
    """Peer 5 asked for token 3, was let go and went on; then a lost receipt brought its question a
    second time."""
    task = small_task(6)
    run = br.run(br.WalkSum(), "ring:6", task, steps=40, seed=0, engine=STORM, evaluate_every=0)
    calm = br.run(br.WalkSum(), "ring:6", task, steps=40, seed=0, evaluate_every=0)
    assert np.array_equal(run.trace.meetings.b, calm.trace.meetings.b)
    assert np.allclose(run.estimates, calm.estimates)


@pytest.mark.slow
@pytest.mark.parametrize("algorithm", TOKENS, ids=repr)
def test_no_token_dies_or_doubles_in_two_hundred_storms(algorithm):
    for seed in range(200):
        walked(algorithm, GRAPHS[seed % len(GRAPHS)], seed)


def holder(me=0):
    """Peer `me` of a ring of 3, which begins the walk, and what it says first."""
    graph, steps = br.graphs.ring(3), 9
    algorithm, dice = br.RingSum(), Replay(0)
    door = TaskDoor(task=small_task(3), mechanism=None, dice=dice, ledger=Ledger(peers=3))
    machine = TokenPeer(
        Seat(
            me=me,
            algorithm=algorithm,
            graph=graph,
            door=door,
            dice=dice,
            steps=steps,
            public=algorithm.prepare(graph, steps),
            faults=Faults.none(),
            calls=np.zeros(0),
            partners=np.zeros(0, np.int64),
        )
    )
    return machine, machine.begin(0.0)


def said(effects):
    return [(effect.to, effect.envelope.kind) for effect in effects if isinstance(effect, Send)]


def test_a_question_that_comes_again_changes_nothing():
    machine, first = holder()
    assert said(first) == [(1, "token")]
    ask, past = Envelope("ask", 1), Envelope("past", 1)
    assert said(machine.receive(1.0, 1, ask)) == [(1, "go")]
    assert said(machine.receive(1.1, 1, ask)) == [(1, "go")]  # the answer may have been lost
    assert not machine.receive(2.0, 1, past)
    assert not machine.receive(2.1, 1, past)
    assert not machine.receive(3.0, 1, ask)  # died here: "a token that it was never given"
    with pytest.raises(RemoteProtocolError, match="never given"):
        machine.receive(4.0, 1, Envelope("ask", 4))  # this one it was indeed never given
    with pytest.raises(RemoteProtocolError, match="never given"):
        machine.receive(4.0, 2, ask)  # nor was peer 2
