"""Federated ADMM: the trace of walk:ADMM-6, who is drawn, what a lost message does, and the optimum
it reaches."""

import numpy as np
import pytest

import bruit as br
from bruit.algorithms.algorithm import algorithm_from
from bruit.algorithms.server.federated_admm import FederatedADMM
from bruit.algorithms.task_door import TaskDoor
from bruit.graphs import butterfly, complete, grid, star
from bruit.privacy.ledger import Ledger
from bruit.randomness import Dice, Replay
from bruit.runs.engines.engine import Job
from bruit.tasks import Mean, Records, Ridge
from bruit.testing import check_algorithm

TRACED = Ridge(
    Records.of(
        np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]), np.array([1.0, -1.0, 0.5]), np.arange(3)
    )
)
NORMALS = np.array([[[0.1, -0.2], [0.3, 0.0], [-0.4, 0.5]], [[0.0, 0.6], [-0.1, 0.2], [0.2, -0.3]]])
SETS = [[0, 1], [1, 2]]


class Told(Dice):
    """Dice that fall as the example says: normals of (iteration, peer), and draws that choose the
    given sets."""

    def _secret(self) -> bytes:
        return b"0" * 16

    def normal(self, purpose, lanes, steps, use=0, count=1, run=0):
        assert purpose == "noise"
        return np.array(
            [-NORMALS[int(step) // 2, int(peer)] for peer, step in zip(lanes, steps, strict=True)]
        )

    def uniform(self, purpose, lanes, steps, use=0, count=1, run=0):
        assert purpose == "public"
        rows = np.ones((len(lanes), count))
        for row, clock in zip(rows, lanes, strict=True):
            row[SETS[min(int(clock) // 2, 1)]] = [0.1, 0.2]
        return rows


@pytest.mark.parametrize("graph", [star(3), complete(3)], ids=lambda graph: graph.name)
def test_the_trace(graph):
    # walk:ADMM-6: rounds {0, 1}, {1, 2}, l .5, gamma .7, sigma .5; the door noises the slope with
    # sigma / (2 gamma).
    dice, ledger = Told(), Ledger(peers=3)
    door = TaskDoor(
        task=TRACED,
        mechanism=br.Gaussian(clip=50.0, sigma=0.5 / 1.4, arithmetic="ideal"),
        dice=dice,
        ledger=ledger,
    )
    algorithm = FederatedADMM(gamma=0.7, relaxation=0.5, participants=2, l1=0.1)
    job = Job(
        algorithm=algorithm,
        graph=graph,
        door=door,
        dice=dice,
        steps=4,
        ledger=ledger,
        watch=frozenset(),
    )
    state = br.Bulk().execute(job).state
    assert state.dual.mean(axis=0) == pytest.approx([0.266350763, -0.206311675], abs=1e-9)
    assert state.model[0] == pytest.approx([0.196350763, -0.136311675], abs=1e-9)
    assert ledger.counts().sum(axis=1).tolist() == [1, 2, 1]


class Consensus(Told):
    """The normals of the variant: one row for each mean, drawn by the server in rounds 2, 4."""

    def normal(self, purpose, lanes, steps, use=0, count=1, run=0):
        assert lanes.tolist() == [0]
        return np.array([[[1.0, 0.0], [-0.3, 0.2]][int(steps[0]) // 2 - 1]])


@pytest.mark.parametrize("graph", [star(3), complete(3)], ids=lambda graph: graph.name)
def test_the_trace_with_noise_on_the_mean(graph):
    # walk:ADMM-5, variant: sigma_z .1; the first z is prox(.1 (.5, -.5)) = 0, as here without noise
    dice, ledger = Consensus(), Ledger(peers=3)
    door = TaskDoor(
        task=TRACED,
        mechanism=br.Gaussian(clip=50.0, sigma=0.1 * 3 / 0.7, arithmetic="ideal"),
        dice=dice,
        ledger=ledger,
    )
    algorithm = FederatedADMM(gamma=0.7, relaxation=0.5, l1=0.1, noise="server")
    models = []
    for steps in (2, 4):
        job = Job(
            algorithm=algorithm,
            graph=graph,
            door=door,
            dice=dice,
            steps=steps,
            ledger=ledger,
            watch=frozenset(),
        )
        models.append(br.Bulk().execute(job).state.model[0])
    assert models[0] == pytest.approx([0.215866013, -0.018643791], abs=1e-9)
    assert models[1] == pytest.approx([0.288999130, -0.078678687], abs=1e-9)
    assert {type(event).__name__ for event in ledger.events} == {"Exact", "Mask"}


def test_answers_without_noise_are_clipped_and_never_grow_apart():
    """What the theorem on models asks of a step: the clipped (x - prox(x)) is non-expansive, and at
    most clip."""
    from bruit.algorithms.door import Address

    rng, ledger = np.random.default_rng(3), Ledger(peers=3)
    door = TaskDoor(
        task=TRACED,
        mechanism=br.Gaussian(clip=0.4, sigma=1.0, arithmetic="ideal"),
        dice=Replay(0),
        ledger=ledger,
    )
    at, rho = (
        Address(np.arange(3), np.zeros(3, np.int64), np.zeros(3, np.int64), 0),
        np.full(3, 0.7),
    )
    for _ in range(40):
        x, y = rng.normal(0, 1, (2, 3, 2))
        a, b = (door.envelope_gradient(at, point, rho, 0.0) for point in (x, y))
        assert np.all(np.linalg.norm(a, axis=1) <= 0.4 * (1 + 1e-12))
        assert np.all(
            0.7 * np.linalg.norm(a - b, axis=1) <= np.linalg.norm(x - y, axis=1) * (1 + 1e-9)
        )
    assert [str(event) for event in ledger.events] == ["Exact()"]


def test_noise_at_the_server_reaches_the_optimum_without_noise_and_comes_closer_with_it():
    task = Mean.normal(20, 3)
    plain = br.run(FederatedADMM(noise="server"), star(20), task, steps=101, evaluate_every=0)
    assert plain.estimates[0] == pytest.approx(task.values.mean(axis=0), abs=1e-8)
    noise = br.Gaussian(clip=5.0, sigma=2.0)
    errors = [
        br.run(FederatedADMM(noise=who), star(20), task, steps=41, privacy=noise).metrics.last(
            "mse"
        )
        for who in ("peers", "server")
    ]
    assert errors[1] < errors[0]


def test_exactly_so_many_take_part_in_each_iteration():
    run = br.run(
        FederatedADMM(participants=3),
        star(8),
        Mean.normal(8, 2),
        steps=41,
        seed=2,
        evaluate_every=0,
        privacy=br.Gaussian(clip=1.0, sigma=1.0),
    )
    counts = run.ledger.counts().sum(axis=1)
    assert counts.sum() == 20 * 3  # 41 rounds: 20 iterations, then the server tells the last model
    assert counts.min() < counts.max()
    np.testing.assert_allclose(run.estimates, np.broadcast_to(run.estimates[0], (8, 2)))


def test_draws_are_uniform():
    # 400 iterations, 2 of 5: each takes part 160 times, standard deviation 9.8; 6 of them is a
    # false alarm below 1e-8
    run = br.run(
        FederatedADMM(participants=2),
        star(5),
        Mean.normal(5, 1),
        steps=800,
        evaluate_every=0,
        privacy=br.Gaussian(clip=1.0, sigma=1.0),
    )
    assert np.abs(run.ledger.counts().sum(axis=1) - 160).max() < 60


def test_the_ledger_is_the_local_bound():
    # walk:ADMM-6 local: 8 alpha K_i L^2 gamma^2 / sigma^2, sigma = 2 gamma s: mu^2 = 4 K_i L^2 /
    # s^2
    from bruit.privacy.toolbox.gaussian import epsilon_of

    run = br.run(
        FederatedADMM(gamma=0.2),
        star(6),
        Mean.normal(6, 2),
        steps=20,
        evaluate_every=0,
        privacy=br.Gaussian(clip=0.7, sigma=3.0),
    )
    assert run.epsilon() == pytest.approx(epsilon_of(2 * np.sqrt(10) * 0.7 / 3.0, 1e-6), rel=1e-9)
    assert float(run.epsilon(of=2, seen_by=0)) == pytest.approx(run.epsilon(), rel=1e-9)


def test_the_server_sees_duals_and_the_others_only_the_model():
    task = Mean.normal(4, 2)
    run = br.run(FederatedADMM(), star(4), task, steps=6, watch=range(4), evaluate_every=0)
    senders = {(message.sender, message.receiver) for message in run.trace.received}
    assert senders == {(0, 1), (0, 2), (0, 3), (1, 0), (2, 0), (3, 0)}
    around = br.run(FederatedADMM(), complete(4), task, steps=6, watch=range(4), evaluate_every=0)
    silent = [
        message.row
        for message in around.trace.received
        if 0 not in (message.sender, message.receiver)
    ]
    assert not np.any(silent)
    np.testing.assert_allclose(around.estimates, run.estimates)


def test_without_noise_it_reaches_the_optimum_despite_lost_messages():
    task = Mean.normal(6, 3)
    wanted = task.values.mean(axis=0) / 1.5  # (1/n) sum |x - v_i|^2 / 2 + .25 |x|^2
    for engine in (br.Bulk(), br.Events(latency=0.2, loss=0.2, timeout=0.5)):
        run = br.run(
            FederatedADMM(participants=3, l2=0.5),
            star(6),
            task,
            steps=201,
            engine=engine,
            evaluate_every=0,
        )
        assert run.estimates[0] == pytest.approx(wanted, abs=1e-8)


def test_the_federation_is_the_server_and_its_neighbors():
    task = Mean.normal(6, 2)
    run = br.run(FederatedADMM(server=1), grid(2, 3), task, steps=201, evaluate_every=0)
    assert run.estimates[1] == pytest.approx(task.values[[0, 1, 2, 4]].mean(axis=0), abs=1e-8)
    assert not run.estimates[[3, 5]].any()


def test_common_draws_are_shared_by_all_and_cost_one_row():
    from bruit.algorithms.home import Home
    from bruit.algorithms.messages import Links

    edges = Links.of_graph(star(5)).edges
    door = TaskDoor(task=Mean.normal(5, 2), mechanism=None, dice=Replay(4), ledger=Ledger(peers=5))
    clock = np.full(5, 3)
    shared = Home(door, np.arange(5), clock, clock, np.zeros(5, bool), edges, None).common(7)
    assert shared.strides[0] == 0
    for peer in range(5):
        one = Home(
            door, np.array([peer]), clock[:1], clock[:1], np.zeros(1, bool), edges, None
        ).common(7)
        assert np.array_equal(one[0], shared[peer])
    mixed = np.array([1, 2, 3, 3, 3])
    apart = Home(door, np.arange(5), mixed, mixed, np.zeros(5, bool), edges, None).common(7)
    assert np.array_equal(apart[2], shared[0])
    assert not np.array_equal(apart[0], apart[1])


def test_other_parameters_conform():
    check_algorithm(
        FederatedADMM(gamma=0.4, relaxation=0.8, participants=2, l1=0.1, bound=2.0), star(6)
    )
    check_algorithm(FederatedADMM(participants=2, server=4))
    check_algorithm(FederatedADMM(relaxation=0.8, participants=3, l1=0.1, server=1, noise="server"))
    made = FederatedADMM(participants=2, l1=0.1, bound=2.0, server=1)
    assert algorithm_from(made.describe()) == made


def test_going_on_keeps_the_duals():
    task = Mean.normal(6, 2)
    first = br.run(FederatedADMM(), star(6), task, steps=20, evaluate_every=0)
    twice = br.chain(first, task, steps=20, evaluate_every=0)
    whole = br.run(FederatedADMM(), star(6), task, steps=40, evaluate_every=0)
    np.testing.assert_allclose(twice.estimates, whole.estimates, atol=1e-12)
    with pytest.raises(br.ConfigError, match="federated-admm begins with all duals"):
        br.run(FederatedADMM(), star(6), task, steps=3, after=first, carry="model")


@pytest.mark.parametrize(
    ("make", "word"),
    [
        (lambda: FederatedADMM(gamma=-1.0), "gamma > 0"),
        (lambda: FederatedADMM(relaxation=0.0), r"in \(0, 1\]"),
        (lambda: FederatedADMM(participants=0), "participants >= 1, .* found participants = 0"),
        (lambda: FederatedADMM(l2=-1.0), "l2 >= 0"),
        (
            lambda: FederatedADMM(noise="both"),
            "by the 'peers' or by the 'server', found noise = 'both'",
        ),
        (
            lambda: FederatedADMM(relaxation=1.0, noise="server"),
            "no noise at the server hides one; lower it",
        ),
        (
            lambda: FederatedADMM(participants=5).prepare(star(4), 3),
            "5 participants cannot be drawn: .* are 4 peers",
        ),
        (
            lambda: FederatedADMM(server=4).prepare(star(4), 3),
            r"server is peer 4, but the graph has peers 0\.\.3",
        ),
        (lambda: FederatedADMM().prepare(butterfly(8), 3), "one fixed graph around its server"),
    ],
)
def test_impossible_parameters(make, word):
    with pytest.raises(br.ConfigError, match=word):
        make()
