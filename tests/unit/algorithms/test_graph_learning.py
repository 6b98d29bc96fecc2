"""Graph learning: weights that both ends know alike, at the best graph for the models; private reads
through the door; what neighbors say may be anything."""

import numpy as np
import pytest

import bruit as br
from bruit.algorithms.door import Address
from bruit.algorithms.messages import Inbox, Links
from bruit.algorithms.task_door import TaskDoor
from bruit.errors import ConfigError, PrivacyError
from bruit.graphs import butterfly, complete, grid
from bruit.graphs.learn import Collaboration
from bruit.mechanisms.record_noise import RecordNoise
from bruit.personal import learn_graph
from bruit.privacy.ledger import Ledger
from bruit.randomness import Replay
from bruit.testing import small_task, task_for

MODELS = np.array([(1, 0), (0.9, 0.1), (-1, 0), (-0.8, 0.3)])
COSTS = np.array([0.2, 0.1, 0.3, 0.05])
TWO = np.array([[1.0, 0.1], [1.1, 0.0], [0.9, 0.0], [-1.0, 0.0], [-1.1, 0.1], [-0.9, 0.1]])


def test_the_best_weight_by_hand_and_by_the_optimum_of_the_source():
    """One weight after the other, again and again: the optimum of perso:PERSO-7's example."""
    aim, weights = Collaboration(1.0, 1.0, 0.5, 0.1), np.zeros((4, 4))
    pairs = np.array([(a, b) for a in range(4) for b in range(a + 1, 4)])
    before = np.inf
    for _ in range(60):
        for a, b in pairs:
            degrees = weights.sum(axis=1) - weights[a, b]
            asked = (
                COSTS[[a]] + COSTS[[b]],
                ((MODELS[[a]] - MODELS[[b]]) ** 2).sum(axis=1),
            )
            found = aim.best(*asked, degrees[[a]], degrees[[b]])
            assert found == aim.best(*asked, degrees[[b]], degrees[[a]])  # to the last bit
            weights[a, b] = weights[b, a] = found[0]
            now = aim.value(pairs, weights[pairs[:, 0], pairs[:, 1]], MODELS, COSTS)
            assert now <= before + 1e-12
            before = now
    assert weights[0, 1] == pytest.approx(1.213106131, abs=1e-8)
    assert weights[2, 3] == pytest.approx(1.165456869, abs=1e-8)
    assert before == pytest.approx(1.2590283181, abs=1e-8)
    assert np.count_nonzero(weights) == 4


def test_weights_are_those_of_the_best_graph_for_the_models():
    """Models that stand still: the same graph as from all models in one place."""
    algorithm = br.GraphLearning(look=1000, learn=1, updates=0, floor=0.1, confidences=(0.0,) * 6)
    run = br.run(algorithm, complete(6), br.tasks.Mean(TWO), steps=300, seed=1)
    found = algorithm.learned(run.state).toarray()
    wanted = learn_graph(
        algorithm.aim, TWO, np.zeros(6), wakes=6000, dice=Replay(1), sampled=5
    ).matrix(algorithm.least)
    assert np.abs(found - wanted.toarray()).max() < 2e-3
    assert np.array_equal(run.estimates, TWO)
    assert not found[:3, 3:].any()
    assert (found[:3, :3].sum(axis=1) > 0.1).all()


def test_both_ends_hold_the_same_weight_and_two_groups_find_themselves():
    """Values of two groups, each peer's off its group's mean: friends pull it back there."""
    algorithm = br.GraphLearning(look=20, learn=20, ceiling=10.0)
    run = br.run(algorithm, complete(6), br.tasks.Mean(TWO), steps=400, seed=2)
    slots = run.state.weight
    table = np.zeros((6, 6))
    table[np.repeat(np.arange(6), 5), slots.peers] = slots.rows[:, 0]
    assert np.array_equal(table, table.T)
    assert not table[:3, 3:].any()
    middle = np.repeat([TWO[:3].mean(axis=0), TWO[3:].mean(axis=0)], 3, axis=0)
    assert (
        np.linalg.norm(run.estimates - middle, axis=1) < 0.8 * np.linalg.norm(TWO - middle, axis=1)
    ).all()


def test_every_read_is_in_the_ledger():
    """The model fitted alone and a loss at the start; then a loss a phase and a gradient each
    meeting of learning, `updates` at most."""
    algorithm = br.GraphLearning(look=2, learn=3, updates=4)
    noise = br.Gaussian(clip=1.0, sigma=2.0)
    run = br.run(algorithm, grid(2, 3), task_for(algorithm, 6), privacy=noise, steps=20, seed=1)
    meetings = run.state.meetings
    reads = 2 + meetings // 5 + run.state.spent
    assert np.array_equal(run.facts().releases(), reads)
    assert run.state.spent.max() == 4
    assert meetings.min() >= 5
    assert 0 < run.epsilon(of=0, seen_by=1) < np.inf


def test_how_often_a_peer_reads_does_not_follow_from_what_was_said():
    """Peers whose models are so far apart that no pair gets a weight pay as often as others: else
    the epsilon that is told would itself tell whose models are near."""
    algorithm = br.GraphLearning(look=2, learn=3, updates=4, floor=1.0)
    noise, counts = br.Gaussian(clip=1000.0, sigma=0.01), []
    for apart in (0.1, 500.0):
        task = br.tasks.Mean(np.linspace(0.0, apart, 6)[:, None])
        run = br.run(algorithm, complete(6), task, privacy=noise, steps=20, seed=1)
        counts.append(run.facts().releases().tolist())
        assert (run.state.weight.rows.max() == 0) == (apart > 1)
    assert counts[0] == counts[1]


def test_a_loss_is_released_within_its_range():
    """With hardly any noise the answer is the loss cut at the ceiling, and it costs one release."""
    task, ledger = br.tasks.Mean(np.array([[0.0], [3.0]])), Ledger(peers=2)
    ids, none = np.arange(2), np.zeros(2, np.int64)
    for noise in (br.Gaussian(clip=0.5, sigma=1e-9), None):
        door = TaskDoor(task=task, mechanism=noise, dice=Replay(1), ledger=ledger)
        told = door.loss(Address(ids, none, none, 0), np.ones((2, 1)), 1.5)
        assert told == pytest.approx([0.5, 1.5], abs=1e-7)
    assert len(ledger) == 4
    measured = RecordNoise((1.0, 1.0), 1, noise_multiplier=1.0, measures="gradient")
    with pytest.raises(PrivacyError, match="derives no bound"):
        TaskDoor(task=task, mechanism=measured, dice=Replay(1), ledger=ledger)
    sums = TaskDoor(
        task=task, mechanism=br.RecordSums(clip=1.0, sigma=1.0), dice=Replay(1), ledger=ledger
    )
    with pytest.raises(ConfigError, match="record by record"):
        sums.loss(Address(ids, none, none, 0), np.ones((2, 1)), 1.0)


@pytest.mark.parametrize("said", [1e150, -1e150, 0.0, -1.0])
def test_whatever_a_neighbor_says_weights_stay_finite_and_not_negative(said):
    algorithm, task = br.GraphLearning(), small_task(2)
    run = br.run(algorithm, complete(2), task, steps=0)
    links = Links.of_meetings(np.arange(2), np.array([1, 0]))
    rows = np.full((2, 3 + 4), said)
    home = Recorded(run, task)
    with np.errstate(over="ignore"):
        state = algorithm.absorb(run.state, Inbox(links, rows, True, rows), home)
    assert np.isfinite(state.weight.rows).all()
    assert (state.weight.rows >= 0).all()


class Recorded:
    """A home of two peers whose data say nothing."""

    def __init__(self, run, task):
        self.ids, self.dim = np.arange(2), task.dim
        self.public = br.GraphLearning().prepare(run.graph, 0)

    def gradient(self, x, where=None):
        return np.zeros_like(x)

    def loss(self, x, ceiling, where=None):
        return np.zeros(len(x))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"floor": 0.0}, "floor > 0"),
        ({"ceiling": -1.0}, "ceiling > 0"),
        ({"look": 0}, "look"),
        ({"least": -1.0}, "least >= 0"),
        ({"confidences": (2.0,)}, "confidences"),
    ],
)
def test_bad_parameters(change, words):
    with pytest.raises(ConfigError, match=words):
        br.GraphLearning(**change)


def test_what_has_no_losses_or_no_fixed_neighbors():
    with pytest.raises(ConfigError, match="a statistic task does not answer"):
        br.run(br.GraphLearning(), "ring:4", task_for(br.Gosta(), 4), steps=2)
    with pytest.raises(ConfigError, match="keeps weights for fixed neighbors"):
        br.GraphLearning().prepare(butterfly(4), 1)
    with pytest.raises(ConfigError, match="tells no losses of records"):
        task_for(br.Gosta(), 4).cut_losses(np.arange(1), np.zeros((1, 1)), 1.0)
