"""Walk ADMM: the trace of walk:ADMM-7 on every engine, what passes the door, and the optimum it
reaches."""

import numpy as np
import pytest
from scipy.optimize import minimize

import bruit as br
from bruit.algorithms.algorithm import algorithm_from
from bruit.algorithms.door import Address
from bruit.algorithms.task_door import TaskDoor
from bruit.algorithms.tokens.walk_admm import WalkADMM
from bruit.errors import LocalProtocolError
from bruit.graphs import complete, ring
from bruit.privacy.ledger import Ledger
from bruit.randomness import Dice, Replay
from bruit.runs.engines.engine import Job
from bruit.runs.engines.forms import SourceDoor
from bruit.tasks import Logistic, Mean, Records, Ridge
from bruit.testing import check_algorithm
from bruit.trace import Meetings, Trace

TRACED = Ridge(
    Records.of(
        np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]), np.array([1.0, -1.0, 0.5]), np.arange(3)
    )
)


class Told(Dice):
    """Dice that fall as the example says: the normals of (peer, its own count)."""

    def __init__(self, normals):
        super().__init__()
        self.normals = normals

    def _secret(self) -> bytes:
        return b"0" * 16

    def normal(self, purpose, lanes, steps, use=0, count=1, run=0):
        assert purpose == "noise"
        return np.array(
            [self.normals[int(peer), int(step)] for peer, step in zip(lanes, steps, strict=True)]
        )


def visits(graph, path):
    a, b = np.array([path[0], *path[:-1]]), np.array(path)
    return Trace(
        peers=graph.n, steps=len(path), meetings=Meetings(np.arange(len(path), dtype=float), a, b)
    )


def test_the_trace():
    # walk:ADMM-7: path 2, 0, normals (-.4, .5) then (0, .6), l .5, gamma .7, sigma .5. The door
    # noises the slope, and
    # x = 2 z - u - gamma slope: noise s on it is eta sigma / 2 in x for s = sigma / (2 gamma) and
    # the opposite normals.
    dice = Told({(2, 1): (0.4, -0.5), (0, 1): (-0.0, -0.6)})
    ledger, graph = Ledger(peers=3), complete(3)
    door = TaskDoor(
        task=TRACED,
        mechanism=br.Gaussian(clip=50.0, sigma=0.5 / 1.4, arithmetic="ideal"),
        dice=dice,
        ledger=ledger,
    )
    algorithm = WalkADMM(gamma=0.7, relaxation=0.5, l1=0.1)
    job = Job(
        algorithm=algorithm,
        graph=graph,
        door=door,
        dice=dice,
        steps=2,
        ledger=ledger,
        watch=frozenset(range(3)),
        given=visits(graph, [2, 0]),
    )
    state = br.Bulk().execute(job).state
    assert state.token[0] == pytest.approx([0.152532680, 0.147037037], abs=1e-9)
    assert algorithm.estimate(state)[0] == pytest.approx([0.082532680, 0.077037037], abs=1e-9)
    assert len(ledger) == 2


def test_the_token_is_the_mean_of_the_duals():
    run = br.run(
        WalkADMM(gamma=2.0, l1=0.05),
        "complete:6",
        Mean.normal(6, 3),
        steps=40,
        seed=3,
        privacy=br.Gaussian(clip=1.0, sigma=0.3),
        evaluate_every=0,
    )
    holder = run.trace.meetings.b[-1]
    np.testing.assert_allclose(run.state.token[holder], run.state.dual.mean(axis=0), atol=1e-12)


def test_the_ledger_line_is_the_local_bound():
    # walk:ADMM-7 local: 8 alpha K_i L^2 gamma^2 / sigma^2 per K_i contributions, sigma = 2 gamma s
    # for noise s at the
    # door; in GDP, mu^2 = 16 K_i L^2 gamma^2 / sigma^2 = 4 K_i L^2 / s^2, whatever gamma and l are.
    from bruit.privacy.toolbox.gaussian import epsilon_of

    gamma, clip, noise = 0.5, 1.0, 4.0
    task = Mean.normal(5, 2)
    run = br.run(
        WalkADMM(gamma=gamma, relaxation=0.3),
        "complete:5",
        task,
        steps=30,
        seed=1,
        privacy=br.Gaussian(clip=clip, sigma=noise),
        evaluate_every=0,
    )
    visits_of = np.bincount(run.trace.meetings.b, minlength=5)
    mu = 4 * np.sqrt(visits_of.max()) * clip * gamma / (2 * gamma * noise)
    assert run.epsilon() == pytest.approx(epsilon_of(mu, 1e-6), rel=1e-9)
    pair = run.epsilon(of=int(visits_of.argmax()), seen_by=int(visits_of.argmin()))
    assert float(pair) == pytest.approx(run.epsilon(), rel=1e-9)  # no network theorem is claimed


def test_what_passes_the_door_is_short():
    """walk:ADMM-10: x - w is cut to norm gamma L before the noise, although the quadratic loss has
    no such bound."""
    task, ledger = Mean(np.array([[1e6, 0.0], [0.3, -0.4]])), Ledger(peers=2)
    door = TaskDoor(
        task=task,
        mechanism=br.Gaussian(clip=2.0, sigma=0.0, arithmetic="ideal"),
        dice=Replay(0),
        ledger=ledger,
    )
    at = Address(np.arange(2), np.zeros(2, np.int64), np.zeros(2, np.int64), 0)
    released = door.envelope_gradient(at, np.zeros((2, 2)), np.array([0.5, 0.5]))
    assert np.linalg.norm(released[0]) == pytest.approx(2.0)
    x = task.prox(np.arange(2), np.zeros((2, 2)), 0.5)
    assert released[1] == pytest.approx(
        task.gradient(np.arange(2), x)[1]
    )  # the gradient at the proximal point
    with pytest.raises(LocalProtocolError, match="no proximal questions"):
        SourceDoor(width=3).envelope_gradient(at, np.zeros((2, 2)), np.ones(2))


def optimum(features, labels, l2):
    def total(x):
        return np.logaddexp(0, -labels * (features @ x)).mean() + l2 / 2 * x @ x

    return minimize(total, np.zeros(features.shape[1]), method="BFGS", options={"gtol": 1e-10}).x


@pytest.mark.parametrize(
    ("graph", "steps"), [(complete(8), 1000), (ring(8), 2000)], ids=["complete", "ring"]
)
def test_without_noise_it_reaches_the_optimum(graph, steps):
    rng = np.random.default_rng(0)
    features, labels = rng.normal(size=(8, 3)), rng.choice([-1.0, 1.0], 8)
    task = Logistic(Records.of(features, labels, np.arange(8)))
    run = br.run(WalkADMM(gamma=4.0, l2=0.2), graph, task, steps=steps, evaluate_every=0)
    last = run.estimates[run.trace.meetings.b[-1]]
    assert last == pytest.approx(optimum(features, labels, 0.2), abs=1e-6)


def test_a_box_keeps_every_model_inside():
    run = br.run(
        WalkADMM(gamma=0.5, bound=0.1), "complete:6", Mean.normal(6, 3), steps=300, evaluate_every=0
    )
    assert np.abs(run.estimates).max() <= 0.1
    mean = Mean.normal(6, 3).values.mean(axis=0)
    assert run.estimates[run.trace.meetings.b[-1]] == pytest.approx(
        np.clip(mean, -0.1, 0.1), abs=1e-9
    )


def test_other_parameters_conform():
    check_algorithm(WalkADMM(gamma=0.3, relaxation=0.9, l1=0.1, l2=0.2, bound=1.0))
    made = WalkADMM(gamma=0.3, l1=0.1, bound=1.0)
    assert algorithm_from(made.describe()) == made


def test_going_on_keeps_the_duals():
    task = Mean.normal(6, 2)
    first = br.run(WalkADMM(), "complete:6", task, steps=10, evaluate_every=0)
    assert br.chain(first, task, steps=10, evaluate_every=0).state.dual.any()
    with pytest.raises(br.ConfigError, match="walk-admm begins with all duals"):
        br.run(WalkADMM(), "complete:6", task, steps=3, after=first, carry="model")


@pytest.mark.parametrize(
    ("make", "word"),
    [
        (lambda: WalkADMM(gamma=0.0), "gamma > 0"),
        (lambda: WalkADMM(relaxation=1.2), r"in \(0, 1\]"),
        (lambda: WalkADMM(l1=-0.1), "l1 >= 0"),
        (lambda: WalkADMM(bound=-1.0), "bound > 0"),
    ],
)
def test_impossible_parameters(make, word):
    with pytest.raises(br.ConfigError, match=word):
        make()
