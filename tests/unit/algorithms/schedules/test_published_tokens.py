"""A published token reaches everybody, in every engine and between real peers; one that is not
reaches nobody."""

import numpy as np
import pytest

import bruit as br
from bruit.algorithms.schedules.machine import Done, Envelope, Send
from bruit.algorithms.task_door import TaskDoor
from bruit.errors import RemoteProtocolError
from bruit.graphs import complete
from bruit.peers.engine import Network
from bruit.tasks.histogram import histogram
from bruit.testing import small_task
from tests.unit.algorithms.schedules.slow_network import SlowNetwork, machines

NOISE = br.Gaussian(clip=0.5, sigma=0.1)
WALKS = [
    (br.RingSum(published=True), "ring:5", 10),
    (br.RingSum(noise="shared", published=True), "ring:5", 7),
    (br.WalkSum(published=True), "complete:5", 12),
    (br.WalkSGD(published=True), "ring:5", 12),
    (br.WalkADMM(gamma=0.5, l1=0.01, published=True), "complete:5", 12),
]
ENGINES = {"bulk": br.Bulk(), "events": br.Events(), "late": br.Events(latency=0.3)}


def last_token(run):
    return run.estimates[run.trace.meetings.b[-1]]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(("algorithm", "graph", "steps"), WALKS)
def test_everybody_holds_the_last_token(algorithm, graph, steps, engine):
    task = br.tasks.Mean.uniform(5, seed=0)
    run = br.run(algorithm, graph, task, privacy=NOISE, steps=steps, seed=5, engine=ENGINES[engine])
    assert np.array_equal(run.estimates, np.tile(last_token(run), (5, 1)))
    bulk = br.run(algorithm, graph, task, privacy=NOISE, steps=steps, seed=5)
    assert np.array_equal(run.estimates, bulk.estimates)


def test_counts_are_published_with_all_that_corrects_them():
    task = histogram(5, 3)
    answers = br.RandomizedResponse.of(3, 2.0)
    for engine in (br.Bulk(), br.Events()):
        run = br.run(
            br.TokenHistogram(published=True),
            "ring:5",
            task,
            privacy=answers,
            steps=10,
            seed=5,
            engine=engine,
        )
        assert np.array_equal(run.estimates, np.tile(last_token(run), (5, 1)))
        assert run.estimates.sum(axis=1) == pytest.approx(np.ones(5))


def test_real_sockets_publish_too():
    task = br.tasks.Mean.uniform(4, seed=0)
    real = br.run(
        br.RingSum(published=True), "ring:4", task, privacy=NOISE, steps=8, seed=5, engine=Network()
    )
    assert np.array_equal(real.estimates, np.tile(last_token(real), (4, 1)))
    br.replay(real, task)


@pytest.mark.slow
def test_the_compiled_walk_publishes_too():
    task = br.tasks.Logistic.load("breast_cancer", peers=9, components=3, seed=0)
    runs = [
        br.run(
            br.WalkSGD(published=True),
            "torus:3x3",
            task,
            privacy=NOISE,
            steps=40,
            seed=5,
            evaluate_every=0,
            engine=br.Bulk(fused=fused),
        )
        for fused in (False, True)
    ]
    assert np.allclose(runs[0].estimates, runs[1].estimates, rtol=0, atol=1e-9)
    assert np.array_equal(runs[1].estimates, np.tile(last_token(runs[1]), (9, 1)))


@pytest.mark.parametrize("algorithm", [br.RingSum(), br.WalkSum(), br.WalkSGD(), br.WalkADMM()])
def test_without_published_nobody_is_told(algorithm):
    run = br.run(
        algorithm, "ring:5", br.tasks.Mean.uniform(5, seed=0), privacy=NOISE, steps=10, seed=5
    )
    assert len(np.unique(run.estimates)) > 1


def test_publishing_changes_no_account_but_by_its_theorem():
    """The ledger of every peer is the same with and without telling; the theorem has one window
    more."""
    task = br.tasks.Mean.uniform(5, seed=0)
    runs = [
        br.run(br.WalkSum(published=published), "complete:5", task, privacy=NOISE, steps=30, seed=5)
        for published in (False, True)
    ]
    columns = [
        [run.ledger.column(name).tolist() for name in ("peer", "step", "clock", "event")]
        for run in runs
    ]
    assert columns[0] == columns[1]
    quiet, loud = (
        max(float(run.epsilon(of=u, seen_by=4, delta=1e-6)) for u in range(4)) for run in runs
    )
    assert quiet <= loud


def test_a_told_token_of_proximal_steps_is_charged_as_all_of_them_told():
    """Everybody is told what depends on all releases: nobody's account is below local DP, and telling
    adds no release."""
    task = br.tasks.Mean.uniform(5, seed=0)
    quiet, loud = (
        br.run(
            br.WalkADMM(published=published), "complete:5", task, privacy=NOISE, steps=30, seed=5
        )
        for published in (False, True)
    )
    assert quiet.ledger.column("event").tolist() == loud.ledger.column("event").tolist()
    for peer in range(4):
        seen = float(loud.epsilon(of=peer, seen_by=4, delta=1e-6))
        local = float(loud.epsilon(of=peer, seen_by="everybody", delta=1e-6))
        assert seen == local == float(quiet.epsilon(of=peer, seen_by="everybody", delta=1e-6))


def test_a_late_peer_is_told_as_well():
    peers = machines(br.WalkSum(published=True), complete(4), small_task(4), 20, 1.0, noise=NOISE)
    network = SlowNetwork(peers, lambda *_: 0.01, away={3: [(0.0, 60.0)]}).run()
    assert network.done == {0, 1, 2, 3}
    assert len(np.unique(network.estimates(), axis=0)) == 1


def begun(published):
    one = machines(br.WalkSum(published=published), complete(4), small_task(4), 5, 1.0)[1]
    one.begin(0.0)
    assert isinstance(one.seat.door, TaskDoor)
    return one


def test_the_first_result_counts_and_is_passed_on_word_for_word():
    one = begun(True)
    row = np.full((1, one.example.shape[1]), 2.5)
    effects = one.receive(0.0, 2, Envelope("result", 4, row))
    assert {effect.to for effect in effects if isinstance(effect, Send)} == {0, 2, 3}
    assert all(effect.envelope.row is row for effect in effects if isinstance(effect, Send))
    assert Done() in effects
    assert one.receive(0.0, 3, Envelope("result", 4, 2 * row)) == []
    assert np.array_equal(one.seat.algorithm.estimate(one.state), row / 5)


def test_words_that_do_not_fit_what_was_agreed_are_refused():
    row = np.zeros((1, begun(True).example.shape[1]))
    with pytest.raises(RemoteProtocolError, match="but the last token is published"):
        begun(True).receive(0.0, 2, Envelope("end", 0))
    with pytest.raises(RemoteProtocolError, match="but the last token is not published"):
        begun(False).receive(0.0, 2, Envelope("result", 4, row))
    with pytest.raises(RemoteProtocolError, match="sent the token of hop 3 of 5 as the result"):
        begun(True).receive(0.0, 2, Envelope("result", 3, row))
    with pytest.raises(RemoteProtocolError, match="holds not one row"):
        begun(True).receive(0.0, 2, Envelope("result", 4, row[:, :0]))
