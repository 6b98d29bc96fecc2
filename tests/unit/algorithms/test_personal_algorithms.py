"""Personalized, model propagation, gossip ADMM and boosting: against plain loops, on both paths,
and bad input."""

from dataclasses import replace

import numpy as np
import pytest

import bruit as br
from bruit.algorithms.algorithm import algorithm_from, catalog
from bruit.algorithms.course import Course
from bruit.algorithms.gossip.gossip_admm import GossipADMM
from bruit.algorithms.personal.boosting import Boosting, pack, unpack
from bruit.algorithms.personal.model_propagation import ModelPropagation
from bruit.algorithms.personal.personalized import Personalized, State
from bruit.algorithms.task_door import TaskDoor
from bruit.errors import ConfigError
from bruit.graphs import ring
from bruit.graphs.learn import Collaboration
from bruit.graphs.similarity import similarity
from bruit.personal import bounded_records, gradient_noise
from bruit.personal.alternate import alternate
from bruit.privacy.ledger import Budget, Ledger
from bruit.randomness import Replay
from bruit.runs.engines.replay import lines
from bruit.tasks import Logistic, Mean, Records
from bruit.tasks.boosted import Boosted
from bruit.tasks.personal import Personal
from bruit.trace import Meetings, Trace

NAMES = {"personalized", "model-propagation", "gossip-admm", "boosting"}
CONFIDENCES = (1.0, 0.5, 0.25, 0.0, 0.9, 0.3)


def compiled(algorithm, state, graph, woken, door):
    """The state after these peers woke in this order, by the compiled path."""
    return algorithm.fused(
        state, Course(graph=graph, steps=0, public=None, door=door, dice=door.dice, acting=woken)
    )[0]


def weights(n=6):
    rng = np.random.default_rng(0)
    w = np.triu(rng.uniform(0.1, 1, (n, n)) * (rng.random((n, n)) < 0.7), 1)
    w[np.arange(n - 1), np.arange(1, n)] = 0.5
    return w + w.T


def people(n=6, dim=3, clip=None, make=Records.of):
    rng = np.random.default_rng(1)
    owners = np.repeat(np.arange(n), rng.integers(1, 30, n))
    records = make(
        rng.uniform(-1, 1, (len(owners), dim)), rng.choice([-1.0, 1.0], len(owners)), owners
    )
    return Personal(Logistic(records, 0.01, clip), rng.uniform(0, 1, n))


def test_the_catalog_has_them():
    assert set(catalog()) >= NAMES


@pytest.mark.parametrize("name", sorted(NAMES))
def test_descriptions_come_back(name):
    algorithm = catalog()[name](confidences=CONFIDENCES)
    assert algorithm_from(algorithm.describe()) == algorithm


MECHANISMS = [
    None,
    br.Gaussian(clip=0.3, sigma=0.1),
    br.Laplace(clip=0.5, scale=0.1),
    br.Gaussian(1.0, 0.2, arithmetic="ideal"),
    "laplace by record",
]


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=str)
@pytest.mark.parametrize(
    "algorithm",
    [Personalized(0.7, 1.5, CONFIDENCES), Personalized(2.0, 1.5, updates=(0, 1, 2, 3, 4, 5))],
    ids=["confidences", "updates"],
)
def test_the_compiled_path_equals_the_generic_one(algorithm, mechanism):
    """Same models up to rounding, same reads, same ledger lines."""
    task, graph = people(clip=0.6), similarity(weights())
    if mechanism == "laplace by record":
        task = people(clip=0.6, make=bounded_records)
        mechanism = replace(gradient_noise(task, "laplace"), noise_multiplier=0.5)
    generic = br.run(algorithm, graph, task, privacy=mechanism, steps=8, seed=4, evaluate_every=0)
    ledger, dice = Ledger(peers=6), Replay(4)
    door = TaskDoor(task=task, mechanism=mechanism, dice=generic.dice(task), ledger=ledger)
    begin = State(np.zeros((6, 3)), np.zeros(6, np.int64))
    fused = compiled(algorithm, begin, graph, algorithm.schedule.meetings(graph, 8, dice).a, door)
    assert fused.model == pytest.approx(generic.estimates, abs=1e-12)
    assert fused.spent.tolist() == generic.state.spent.tolist()
    assert lines(ledger) == lines(generic.ledger)
    engine = br.run(
        algorithm,
        graph,
        task,
        privacy=mechanism,
        steps=8,
        seed=4,
        evaluate_every=0,
        engine=br.Bulk(fused=True),
    )
    assert engine.estimates == pytest.approx(generic.estimates, abs=1e-12)
    assert lines(engine.ledger) == lines(generic.ledger)
    assert np.array_equal(engine.trace.meetings.a, generic.trace.meetings.a)


def test_what_the_compiled_path_cannot_do_it_refuses():
    graph, begin = ring(6), State(np.zeros((6, 3)), np.zeros(6, np.int64))
    wakes = np.arange(6)

    def door(task, **options):
        return TaskDoor(
            task=task, mechanism=None, dice=Replay(0), ledger=Ledger(peers=6), **options
        )

    with pytest.raises(ConfigError, match="logistic tasks"):
        compiled(Personalized(), begin, graph, wakes, door(Mean(np.ones((6, 3)))))
    with pytest.raises(ConfigError, match="budget"):
        compiled(Personalized(), begin, graph, wakes, door(people(), budget=Budget(1.0)))
    with pytest.raises(ConfigError, match="not finite"):
        compiled(
            Personalized(),
            State(np.full((6, 3), np.inf), begin.spent),
            graph,
            wakes,
            door(people()),
        )


@pytest.mark.slow
def test_confidence_zero_reads_nothing_and_takes_the_mean():
    task, graph = people(), similarity(weights())
    done = br.run(Personalized(1.0, 1.5, CONFIDENCES), graph, task, steps=200, evaluate_every=0)
    assert done.ledger.counts()[3].sum() == 0
    mean = weights()[3] @ done.estimates / weights()[3].sum()
    assert done.estimates[3] == pytest.approx(mean, abs=1e-6)
    warm = br.run(
        ModelPropagation(1.0, CONFIDENCES), graph, Mean(np.ones((6, 2))), steps=60, evaluate_every=0
    )
    assert warm.ledger.counts()[3].sum() == 0
    assert warm.estimates == pytest.approx(np.ones((6, 2)))
    admm = br.run(
        GossipADMM(coupling=1.0, rho=0.2, confidences=CONFIDENCES),
        graph,
        Mean(np.arange(6.0)[:, None]),
        steps=400,
        evaluate_every=0,
    )
    assert admm.estimates[3] == pytest.approx(
        weights()[3] @ admm.estimates / weights()[3].sum(), abs=1e-6
    )


@pytest.mark.slow
def test_all_three_agree_on_the_mean_task():
    """perso:PERSO-2, 4, 5 minimize the same objective when f_u = |x - v_u|^2 / 2: the closed form
    of PERSO-4."""
    values, w, trust = (
        np.random.default_rng(3).standard_normal((6, 2)),
        weights(),
        np.array(CONFIDENCES),
    )
    degrees = w.sum(axis=1)
    system = 0.6 * (np.diag(degrees) - w) + np.diag(degrees * trust)
    closed = np.linalg.solve(system, (degrees * trust)[:, None] * values)
    for algorithm in (
        Personalized(0.6, 1.0, CONFIDENCES),
        ModelPropagation(0.6, CONFIDENCES),
        GossipADMM(coupling=0.6, rho=0.2, confidences=CONFIDENCES),
        GossipADMM(coupling=0.6, rho=0.2, inner=10, confidences=CONFIDENCES),
    ):
        found = br.run(
            algorithm, similarity(w), Mean(values), steps=300, evaluate_every=0
        ).estimates
        assert found == pytest.approx(closed, abs=1e-6), algorithm.name()


def boosters():
    rng = np.random.default_rng(2)
    owners = np.repeat(np.arange(6), 7)
    return Boosted(
        Records.of(rng.choice([-1.0, 1.0], (42, 5)), rng.choice([-1.0, 1.0], 42), owners)
    )


@pytest.mark.parametrize("memory", [1, 3, 64])
def test_boosting_against_a_plain_loop(memory):
    """perso:PERSO-6 with own counters; neighbors' models rebuilt from choices alone, if the memory
    is long."""
    task, w, trust = boosters(), weights(), np.array(CONFIDENCES)
    order = np.random.default_rng(5).integers(0, 6, 120)
    given = Trace(peers=6, steps=120, meetings=Meetings(np.arange(120.0), order, order))
    algorithm = Boosting(0.4, 1.5, memory, CONFIDENCES)
    done = br.run(algorithm, similarity(w), task, steps=1, given=given, evaluate_every=0)
    models, counts = np.zeros((6, 5)), np.zeros(6)
    for u in order:
        counts[u] += 1
        slope = trust[u] * task.gradient(np.array([u]), models[[u]])[0] + 0.4 * (
            models[u] - w[u] @ models / w[u].sum()
        )
        k, length = int(np.abs(slope).argmax()), 2 / (counts[u] + 2)
        models[u] *= 1 - length
        models[u, k] -= length * 1.5 * (1.0 if slope[k] > 0 else -1.0)
    assert np.abs(done.estimates).sum(axis=1).max() <= 1.5 + 1e-12
    if memory == 64:
        assert done.estimates == pytest.approx(models, abs=1e-12)


@pytest.mark.parametrize(
    ("memory", "width", "size"),
    [(1, 5, 8 + 1), (1, 500, 8 + 2), (4, 5, 8 + 2), (4, 500, 8 + 5), (4, 40_000, 8 + 9)],
)
def test_a_boosting_message_is_logarithmic_in_the_predictors(memory, width, size):
    """perso:PERSO-6: ceil(log2(2 K + 1)) bits a choice and eight bytes for the count, in the trace
    and in the view."""
    task = Mean(np.random.default_rng(0).standard_normal((6, width)))
    done = br.run(Boosting(memory=memory), "ring:6", task, steps=3, watch=[0], evaluate_every=0)
    row = done.trace.received[-1].row
    assert row.packed.nbytes + row.steps.nbytes == size
    assert done.trace.bytes == size * done.trace.messages
    full = br.run(Personalized(), "ring:6", task, steps=3, evaluate_every=0)
    assert full.trace.bytes == 8 * width * full.trace.messages


def test_whom_a_learned_graph_leaves_alone_keeps_the_model_fitted_alone():
    """perso:PERSO-1: a peer of degree zero is purely local; here no edge is worth its price."""
    rng = np.random.default_rng(0)
    answers = rng.choice([-1.0, 1.0], (24, 5))
    task = Boosted(Records.of(answers, rng.choice([-1.0, 1.0], 24), np.repeat(np.arange(6), 4)))
    aim = Collaboration(1.0, 1e-6, 0.5, 1.0)
    found = alternate(Boosting(1.0, 1.0), task, aim, rounds=2, steps=5, wakes=60)
    alone = br.run(Boosting(0.0, 1.0), "ring:6", task, steps=5, evaluate_every=0)
    assert not found.graph.degrees.any()
    assert np.array_equal(found.models, alone.estimates)
    assert np.abs(found.models).sum() > 0


def test_choices_come_back_from_their_bits():
    """All choices of every width, and bits that no honest peer sends."""
    for predictors in (1, 2, 3, 127, 128, 1000):
        taken = np.arange(-predictors, predictors + 1)[:, None] * np.array([1, -1, 1])
        packed = pack(taken, predictors)
        assert packed.shape[1] == -(-3 * (2 * predictors).bit_length() // 8)
        assert np.array_equal(unpack(packed, predictors, 3), taken)
    assert unpack(np.full((1, 2), 255, np.uint8), 5, 4).tolist() == [[5, 5, 5, 5]]


BYTES = [
    (Boosting(memory=2), Mean(np.eye(6))),
    (Personalized(), Mean(np.eye(6))),
    (GossipADMM(), Mean(np.eye(6))),
    (br.GossipSGD(0.1), Mean(np.eye(6))),
    (br.WalkSGD(rate=0.1), Mean(np.eye(6))),
]


@pytest.mark.parametrize(("algorithm", "task"), BYTES, ids=[a.name() for a, _ in BYTES])
def test_engines_count_the_same_bytes(algorithm, task):
    """A payload has one size in every engine; offers and refusals have none."""
    runs = [
        br.run(algorithm, "ring:6", task, steps=4, seed=1, engine=engine, evaluate_every=0)
        for engine in (br.Bulk(), br.Events())
    ]
    assert runs[0].trace.bytes > 0
    if isinstance(
        algorithm.schedule, br.Wakes
    ):  # a peer also says once, before anybody wakes, how it begins
        first = 12 * runs[0].trace.bytes // runs[0].trace.messages
        assert runs[1].trace.bytes in (runs[0].trace.bytes, runs[0].trace.bytes + first)
    else:
        assert runs[1].trace.bytes == runs[0].trace.bytes


def test_the_compiled_path_counts_the_same_bytes():
    slow, fast = (
        br.run(
            Personalized(),
            similarity(weights()),
            people(),
            steps=5,
            evaluate_every=0,
            engine=br.Bulk(fused=fused),
        )
        for fused in (False, True)
    )
    assert fast.trace.bytes == slow.trace.bytes > 0


def test_noise_protects_local_models_once():
    """perso:PERSO-13: any number of propagation steps costs one release."""
    noise = br.Gaussian(clip=1.0, sigma=2.0)
    task = Mean(np.ones((6, 2)))
    few, many = (
        br.run(ModelPropagation(), "ring:6", task, privacy=noise, steps=steps, evaluate_every=0)
        for steps in (1, 50)
    )
    assert few.epsilon() == many.epsilon()
    assert len(many.ledger) == 6


BAD = [
    (lambda: Personalized(coupling=0.0), "personalized needs coupling > 0"),
    (lambda: ModelPropagation(coupling=-1.0), "model-propagation needs coupling > 0"),
    (lambda: GossipADMM(rho=0.0), "rho > 0"),
    (lambda: GossipADMM(coupling=float("inf")), "gossip-admm needs coupling > 0"),
    (lambda: Boosting(radius=0.0), "radius > 0"),
    (lambda: Boosting(memory=0), "memory >= 1"),
    (lambda: Personalized(confidences=(1.0, 0.5)).prepare(ring(3), 1), "2 numbers for 3 peers"),
    (
        lambda: Personalized(confidences=(1.0, 0.5, 1.5)),
        r"confidences in \[0, 1\], found confidences\[2\] = 1.5",
    ),
    (lambda: Personalized(confidences=(1.0, -0.5, 1.0)), r"found confidences\[1\] = -0.5"),
    (lambda: Personalized(smoothness=0.0), "smoothness > 0"),
    (lambda: Personalized(updates=-1), "updates >= 0"),
    (lambda: br.run(GossipADMM(), br.graphs.butterfly(4), Mean(np.ones((4, 1))), steps=1), "fixed"),
    (
        lambda: br.run(
            Boosting(),
            "ring:4",
            Mean(np.ones((4, 1))),
            steps=1,
            after=br.run(ModelPropagation(), "ring:4", Mean(np.ones((4, 1))), steps=1),
        ),
        "carry 'nothing'",
    ),
]


@pytest.mark.parametrize(("wrong", "message"), BAD, ids=range(len(BAD)))
def test_bad_input_says_what_is_wrong(wrong, message):
    with pytest.raises(ConfigError, match=message):
        wrong()
