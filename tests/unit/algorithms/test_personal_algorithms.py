"""Personalized, model propagation, gossip ADMM and boosting: against plain loops, on both paths, and bad input."""

import numpy as np
import pytest

import bruit as br
from bruit.algorithms.algorithm import algorithm_from, catalog
from bruit.algorithms.boosting import Boosting
from bruit.algorithms.gossip_admm import GossipADMM
from bruit.algorithms.home import TaskDoor
from bruit.algorithms.model_propagation import ModelPropagation
from bruit.algorithms.personalized import Personalized, State
from bruit.engines.replay import lines
from bruit.errors import ConfigError
from bruit.graphs import ring
from bruit.graphs.similarity import similarity
from bruit.mechanisms.record_noise import RecordNoise
from bruit.privacy.ledger import Budget, Ledger
from bruit.randomness import Replay
from bruit.tasks import Logistic, Mean, Records
from bruit.tasks.boosted import Boosted
from bruit.tasks.personal import Personal
from bruit.trace import Meetings, Trace

NAMES = {"personalized", "model-propagation", "gossip-admm", "boosting"}
CONFIDENCES = (1.0, 0.5, 0.25, 0.0, 0.9, 0.3)


def weights(n=6):
    rng = np.random.default_rng(0)
    w = np.triu(rng.uniform(0.1, 1, (n, n)) * (rng.random((n, n)) < 0.7), 1)
    w[np.arange(n - 1), np.arange(1, n)] = 0.5
    return w + w.T


def people(n=6, dim=3, clip=None):
    rng = np.random.default_rng(1)
    owners = np.repeat(np.arange(n), rng.integers(1, 30, n))
    records = Records.of(rng.uniform(-1, 1, (len(owners), dim)), rng.choice([-1.0, 1.0], len(owners)), owners)
    return Personal(Logistic(records, 0.01, clip), rng.uniform(0, 1, n))


def test_the_catalog_has_them():
    assert set(catalog()) >= NAMES


@pytest.mark.parametrize("name", sorted(NAMES))
def test_descriptions_come_back(name):
    algorithm = catalog()[name](confidences=CONFIDENCES)
    assert algorithm_from(algorithm.describe()) == algorithm


MECHANISMS = [None, br.Gaussian(clip=0.3, sigma=0.1), br.Laplace(clip=0.5, scale=0.1),
              br.Gaussian(1.0, 0.2, lattice=None),
              RecordNoise((0.1, 0.2, 0.3, 0.1, 0.2, 0.3), 3, 0.5, "laplace")]  # fmt: skip


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=str)
@pytest.mark.parametrize("algorithm", [
    Personalized(0.7, 1.5, CONFIDENCES), Personalized(2.0, 1.5, updates=(0, 1, 2, 3, 4, 5))],
    ids=["confidences", "updates"])  # fmt: skip
def test_the_compiled_path_equals_the_generic_one(algorithm, mechanism):
    """Same models up to rounding, same reads, same ledger lines."""
    task, graph = people(clip=0.6), similarity(weights())
    generic = br.run(algorithm, graph, task, privacy=mechanism, steps=8, seed=4, evaluate_every=0)
    ledger, dice = Ledger(6), Replay(4)
    door = TaskDoor(task, mechanism, dice, ledger)
    begin = State(np.zeros((6, 3)), np.zeros(6, np.int64))
    fused = algorithm.fused_wakes(begin, graph, algorithm.schedule.meetings(graph, 8, dice).a, door)
    assert fused.model == pytest.approx(generic.estimates, abs=1e-12)
    assert fused.spent.tolist() == generic.state.spent.tolist()
    assert lines(ledger) == lines(generic.ledger)
    engine = br.run(algorithm, graph, task, privacy=mechanism, steps=8, seed=4, evaluate_every=0,
                    engine=br.Bulk(fused=True))  # fmt: skip
    assert engine.estimates == pytest.approx(generic.estimates, abs=1e-12)
    assert lines(engine.ledger) == lines(generic.ledger)
    assert np.array_equal(engine.trace.meetings.a, generic.trace.meetings.a)


def test_what_the_compiled_path_cannot_do_it_refuses():
    graph, begin = ring(6), State(np.zeros((6, 3)), np.zeros(6, np.int64))
    wakes = np.arange(6)

    def door(task, **options):
        return TaskDoor(task, None, Replay(0), Ledger(6), **options)

    with pytest.raises(ConfigError, match="logistic tasks"):
        Personalized().fused_wakes(begin, graph, wakes, door(Mean(np.ones((6, 3)))))
    with pytest.raises(ConfigError, match="budget"):
        Personalized().fused_wakes(begin, graph, wakes, door(people(), budget=Budget(1.0)))
    with pytest.raises(ConfigError, match="not finite"):
        Personalized().fused_wakes(State(np.full((6, 3), np.inf), begin.spent), graph, wakes, door(people()))


def test_confidence_zero_reads_nothing_and_takes_the_mean():
    task, graph = people(), similarity(weights())
    done = br.run(Personalized(1.0, 1.5, CONFIDENCES), graph, task, steps=200, evaluate_every=0)
    assert done.ledger.counts()[3].sum() == 0
    mean = weights()[3] @ done.estimates / weights()[3].sum()
    assert done.estimates[3] == pytest.approx(mean, abs=1e-6)
    warm = br.run(ModelPropagation(1.0, CONFIDENCES), graph, Mean(np.ones((6, 2))), steps=60, evaluate_every=0)
    assert warm.ledger.counts()[3].sum() == 0
    assert warm.estimates == pytest.approx(np.ones((6, 2)))
    admm = br.run(GossipADMM(1.0, 0.2, confidences=CONFIDENCES), graph, Mean(np.arange(6.0)[:, None]), steps=400,
                  evaluate_every=0)  # fmt: skip
    assert admm.estimates[3] == pytest.approx(weights()[3] @ admm.estimates / weights()[3].sum(), abs=1e-6)


def test_all_three_agree_on_the_mean_task():
    """perso:PERSO-2, 4, 5 minimize the same objective when f_u = |x - v_u|^2 / 2: the closed form of PERSO-4."""
    values, w, trust = np.random.default_rng(3).standard_normal((6, 2)), weights(), np.array(CONFIDENCES)
    degrees = w.sum(axis=1)
    system = 0.6 * (np.diag(degrees) - w) + np.diag(degrees * trust)
    closed = np.linalg.solve(system, (degrees * trust)[:, None] * values)
    for algorithm in (Personalized(0.6, 1.0, CONFIDENCES), ModelPropagation(0.6, CONFIDENCES),
                      GossipADMM(0.6, 0.2, confidences=CONFIDENCES),
                      GossipADMM(0.6, 0.2, 10, confidences=CONFIDENCES)):  # fmt: skip
        found = br.run(algorithm, similarity(w), Mean(values), steps=300, evaluate_every=0).estimates
        assert found == pytest.approx(closed, abs=1e-6), algorithm.name()


def boosters():
    rng = np.random.default_rng(2)
    owners = np.repeat(np.arange(6), 7)
    return Boosted(Records.of(rng.choice([-1.0, 1.0], (42, 5)), rng.choice([-1.0, 1.0], 42), owners))


@pytest.mark.parametrize("memory", [1, 3, 64])
def test_boosting_against_a_plain_loop(memory):
    """perso:PERSO-6 with own counters; neighbors' models rebuilt from choices alone, if the memory is long."""
    task, w, trust = boosters(), weights(), np.array(CONFIDENCES)
    order = np.random.default_rng(5).integers(0, 6, 120)
    given = Trace(6, 120, Meetings(np.arange(120.0), order, order))
    algorithm = Boosting(0.4, 1.5, memory, CONFIDENCES)
    done = br.run(algorithm, similarity(w), task, steps=1, given=given, evaluate_every=0)
    models, counts = np.zeros((6, 5)), np.zeros(6)
    for u in order:
        counts[u] += 1
        slope = trust[u] * task.gradient(np.array([u]), models[[u]])[0] + 0.4 * (models[u] - w[u] @ models / w[u].sum())
        k, length = int(np.abs(slope).argmax()), 2 / (counts[u] + 2)
        models[u] *= 1 - length
        models[u, k] -= length * 1.5 * (1.0 if slope[k] > 0 else -1.0)
    assert np.abs(done.estimates).sum(axis=1).max() <= 1.5 + 1e-12
    if memory == 64:
        assert done.estimates == pytest.approx(models, abs=1e-12)


def test_a_boosting_message_is_a_few_numbers():
    """perso:PERSO-6: the bytes of a message do not grow with the number of predictors."""
    sizes = []
    for width in (5, 500):
        task = Mean(np.random.default_rng(0).standard_normal((6, width)))
        done = br.run(Boosting(memory=4), "ring:6", task, steps=3, watch=[0], evaluate_every=0)
        row = done.trace.received[-1].row
        sizes.append(row.taken.nbytes + row.steps.nbytes)
    assert sizes == [40, 40]
    full = br.run(Personalized(), "ring:6", task, steps=3, watch=[0], evaluate_every=0)
    assert full.trace.received[-1].row.nbytes == 4000


def test_noise_protects_local_models_once():
    """perso:PERSO-13: any number of propagation steps costs one release."""
    noise = br.Gaussian(clip=1.0, sigma=2.0)
    task = Mean(np.ones((6, 2)))
    few, many = (br.run(ModelPropagation(), "ring:6", task, privacy=noise, steps=steps, evaluate_every=0)
                 for steps in (1, 50))  # fmt: skip
    assert few.epsilon() == many.epsilon()
    assert len(many.ledger) == 6


BAD = [
    (lambda: Personalized(coupling=0.0), "personalized needs a positive, finite coupling"),
    (lambda: ModelPropagation(coupling=-1.0), "model-propagation needs a positive"),
    (lambda: GossipADMM(rho=0.0), "rho > 0"),
    (lambda: GossipADMM(coupling=float("inf")), "gossip-admm needs a positive, finite"),
    (lambda: Boosting(radius=0.0), "radius > 0"),
    (lambda: Boosting(memory=0), "memory >= 1"),
    (lambda: Personalized(confidences=(1.0, 0.5)).prepare(ring(3), 1), "2 numbers for 3 peers"),
    (lambda: Personalized(confidences=(1.0, 0.5, 1.5)).prepare(ring(3), 1), "confidence of peer 2 is 1.5"),
    (lambda: Personalized(confidences=(1.0, -0.5, 1.0)).prepare(ring(3), 1), "confidence of peer 1 is -0.5"),
    (lambda: Personalized(smoothness=0.0).prepare(ring(3), 1), "smoothness of peer 0 is 0"),
    (lambda: Personalized(updates=-1).prepare(ring(3), 1), "cannot update -1 times"),
    (lambda: br.run(GossipADMM(), br.graphs.butterfly(4), Mean(np.ones((4, 1))), steps=1), "fixed"),
    (lambda: br.run(Boosting(), "ring:4", Mean(np.ones((4, 1))), steps=1,
                    after=br.run(ModelPropagation(), "ring:4", Mean(np.ones((4, 1))), steps=1)), "carry 'nothing'"),
]  # fmt: skip


@pytest.mark.parametrize(("wrong", "message"), BAD, ids=range(len(BAD)))
def test_bad_input_says_what_is_wrong(wrong, message):
    with pytest.raises(ConfigError, match=message):
        wrong()
