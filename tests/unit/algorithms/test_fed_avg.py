"""Federated averaging: the numbers of perso:FL-1 and FL-2, who is drawn, what a lost answer does,
what is refused."""

from dataclasses import replace

import numpy as np
import pytest

import bruit as br
from bruit.algorithms.algorithm import algorithm_from
from bruit.algorithms.task_door import TaskDoor
from bruit.errors import PrivacyError
from bruit.graphs import butterfly, complete, grid, star
from bruit.personal import bounded_records, gradient_noise
from bruit.privacy.ledger import Ledger
from bruit.privacy.toolbox.gaussian import epsilon_of
from bruit.randomness import Replay
from bruit.runs.engines.engine import Job
from bruit.tasks import Logistic, Mean, Records, Ridge
from bruit.testing import check_algorithm

PAIR = Ridge(
    Records.of(
        np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [2.0, 1.0]]),
        np.array([1.0, 2.0, 2.0, -1.0]),
        np.array([0, 0, 0, 1]),
    )
)
NOISE = br.Gaussian(clip=1.0, sigma=4.0)


@pytest.mark.parametrize(
    ("local_steps", "rounds", "expected"),
    [
        (1, 1, (0.025, 0.075)),
        (1, 2, (0.040625, 0.1425)),
        (3, 1, (0.113361111, 0.229638889)),
        (3, 2, (0.156149934, 0.400237920)),
    ],
)
@pytest.mark.parametrize("engine", [br.Bulk(), br.Events()], ids=["bulk", "events"])
def test_the_example_of_the_lecture(local_steps, rounds, expected, engine):
    # perso:FL-1: three records and one, rate .1, full batches, shares m_u / m
    algorithm = br.FedAvg(rate=0.1, local_steps=local_steps, shares=(3.0, 1.0))
    run = br.run(algorithm, star(2), PAIR, steps=2 * rounds + 1, engine=engine)
    np.testing.assert_allclose(run.estimates, np.broadcast_to(expected, (2, 2)), atol=1e-9)


def test_one_step_is_gradient_descent_on_the_mean():
    task = Mean.normal(6, 2)
    run = br.run(br.FedAvg(rate=0.5), star(6), task, steps=21)
    x = np.zeros(2)
    for _ in range(10):
        x = x - 0.5 * task.gradient(np.arange(6), np.tile(x, (6, 1))).mean(axis=0)
    np.testing.assert_allclose(run.estimates[3], x, atol=1e-12)


def test_batches_are_drawn_from_the_own_records():
    twins = Ridge(
        Records.of(np.tile([[1.0, 2.0]], (6, 1)), np.full(6, 3.0), np.repeat(np.arange(3), 2))
    )
    kinds = (br.FedAvg(local_steps=3), br.FedAvg(local_steps=3, batch=1))
    whole, drawn = (br.run(kind, star(3), twins, steps=5).estimates for kind in kinds)
    np.testing.assert_allclose(drawn, whole, atol=1e-12)  # all records of a peer are the same


def test_only_participants_release():
    run = br.run(
        br.FedAvg(participants=3),
        star(8),
        Mean.normal(8, 2),
        steps=41,
        privacy=NOISE,
        evaluate_every=0,
    )
    assert run.ledger.counts().sum(axis=1).sum() == 20 * 3


def test_noise_of_the_average():
    # perso:FL-2: n clients make noise of std sigma / sqrt(n) in the mean; 4000 coordinates, 6
    # standard errors (false
    # alarm below 1e-8)
    task = Mean(np.zeros((16, 4000)))
    run = br.run(br.FedAvg(rate=1.0), star(16), task, steps=3, privacy=NOISE, evaluate_every=0)
    assert run.estimates[0].std() == pytest.approx(NOISE.sigma / 4, rel=6 / np.sqrt(8000))


class Unmasked(TaskDoor):
    """A door whose canceling noise is none."""

    def pair_noise_on(self, at, edges, sigma, width, on):
        return np.zeros((len(edges.peers), width))


def test_masks_cancel_in_the_sum_and_hide_from_the_server():
    task = Mean.uniform(8, dim=2, seed=0)
    plain = br.run(br.FedAvg(rate=0.5), complete(8), task, steps=11, privacy=NOISE)
    masked = br.run(br.FedAvg(rate=0.5, ratio=50.0), complete(8), task, steps=11, privacy=NOISE)
    door = Unmasked(
        task=task, mechanism=NOISE, dice=masked.dice(task), ledger=Ledger(peers=8)
    )  # the same noise on the answers, and no masks
    bare = (
        br.Bulk()
        .execute(
            Job(
                algorithm=masked.algorithm,
                graph=complete(8),
                door=door,
                dice=Replay(0),
                steps=11,
                ledger=door.ledger,
            )
        )
        .state
    )
    assert np.array_equal(masked.estimates, masked.algorithm.estimate(bare))  # to the bit
    z = NOISE.sigma / 2
    assert float(plain.epsilon(of=3, seen_by=0)) == pytest.approx(
        epsilon_of(np.sqrt(5) / z, 1e-6), rel=1e-7
    )
    assert float(plain.epsilon(of=3, seen_by=2)) == pytest.approx(
        epsilon_of(np.sqrt(5 / 7) / z, 1e-6), rel=1e-7
    )
    theta = 1 / 7 + (6 / 7) / (
        1 + 7 * 50.0**2
    )  # perso:GOPA-3 on the complete graph of the 7 others
    more = float(masked.epsilon(of=3, seen_by=0)) - epsilon_of(np.sqrt(5 * theta) / z, 1e-6)
    assert 0 < more < 1e-7  # finite precision, on the coarser grid that large masks need


def test_shares_weigh_noise_too():
    # four peers, shares 1, 2, 1, 2: of 3 (share 2) in the view of 1: 4 / (1 + 1 + 4) a round, two
    # rounds
    algorithm = br.FedAvg(shares=(1.0, 2.0, 1.0, 2.0))
    real = replace(NOISE, arithmetic="ideal")
    run = br.run(algorithm, star(4), Mean.normal(4, 1), steps=5, privacy=real)
    found = run.epsilon(of=3, seen_by=1)
    assert float(found) == pytest.approx(epsilon_of(np.sqrt(2 * 4 / 6) / 2, 1e-6), rel=1e-9)
    assert found.guarantee.status == "ideal"
    # weighted sums are not proven for what is sent: every release counts in full
    sent = br.run(algorithm, star(4), Mean.normal(4, 1), steps=5, privacy=NOISE).epsilon(
        of=3, seen_by=1
    )
    assert float(sent) == pytest.approx(epsilon_of(np.sqrt(2) / 2, 1e-6), rel=1e-9)
    assert sent.guarantee.status == "proven"
    assert "local DP" in sent.why()


def test_a_lost_answer_leaves_local_dp():
    faulty = br.run(
        br.FedAvg(ratio=5.0),
        complete(5),
        Mean.normal(5, 2),
        steps=9,
        privacy=NOISE,
        seed=1,
        engine=br.Events(churn=0.2),
    )
    found = faulty.epsilon(of=2, seen_by=1)
    assert "local DP" in found.why()
    assert (
        np.abs(faulty.estimates).max() < 50
    )  # no canceling noise (sigma 20) is left over in a model


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"rate": 0.0}, "rate > 0"),
        ({"local_steps": 0}, "local_steps >= 1"),
        ({"batch": 0}, "batch >= 1"),
        ({"participants": 0}, "participants >= 1"),
        ({"shares": (1.0, -1.0)}, r"found shares\[1\] = -1.0"),
        ({"ratio": -1.0}, "ratio >= 0"),
        ({"ratio": 1.0, "participants": 2}, "all take part equally"),
    ],
)
def test_bad_parameters(parameters, words):
    with pytest.raises(br.ConfigError, match=words):
        algorithm_from({"name": "fed-avg", **parameters})


@pytest.mark.parametrize(
    ("algorithm", "graph", "words"),
    [
        (br.FedAvg(), butterfly(4), "one fixed graph"),
        (br.FedAvg(server=9), star(4), "peers 0..3"),
        (br.FedAvg(participants=9), star(4), "are 4 peers"),
        (br.FedAvg(shares=(1.0, 1.0)), star(4), "name 2 peers"),
        (br.FedAvg(ratio=2.0), grid(2, 3), "must reach the server"),
    ],
)
def test_graphs_that_do_not_fit(algorithm, graph, words):
    with pytest.raises(br.ConfigError, match=words):
        br.run(algorithm, graph, Mean.normal(graph.n, 1), steps=3)


def test_conforms():
    check_algorithm(br.FedAvg(rate=0.2, local_steps=2, participants=3), star(5))


@pytest.mark.parametrize(
    ("algorithm", "found"),
    [
        (br.FedAvg(rate=1.0, local_steps=20), "local steps"),
        (br.GossipSGD(0.1, batch=1), "sampled records"),
    ],
)
def test_noise_for_one_record_of_a_whole_gradient_is_refused_elsewhere(algorithm, found):
    """perso:DP-7: 2 L / m bounds a full gradient; twenty steps, or one sampled record of m, move
    further."""
    rng = np.random.default_rng(0)
    records = bounded_records(
        rng.normal(size=(40, 3)), np.repeat([1.0, -1.0], 20), np.repeat(np.arange(4), 10)
    )
    task = Logistic(records, 0.0)
    noise = gradient_noise(task).calibrate(1.0, 1e-6, 5)
    with pytest.raises(PrivacyError, match=f"clips nothing, and says nothing of .*{found}"):
        br.run(algorithm, "star:4", task, privacy=noise, steps=2, evaluate_every=0)


TURNS = ((0, 1), (2, 3, 4), (5,), (1, 2))


def participants(run):
    """Who released in each iteration, read off the ledger."""
    data = run.ledger.is_data()[run.ledger.column("event")]
    clock, peer = run.ledger.column("clock")[data], run.ledger.column("peer")[data]
    return tuple(tuple(sorted(peer[clock == number].tolist())) for number in np.unique(clock))


@pytest.mark.parametrize("engine", [br.Bulk(), br.Events()], ids=["bulk", "events"])
def test_participants_may_be_given(engine):
    task, algorithm = Mean.normal(6, 2), br.FedAvg(rate=0.5, chosen=TURNS)
    run = br.run(algorithm, star(6), task, steps=9, privacy=NOISE, engine=engine, evaluate_every=0)
    assert participants(run) == TURNS
    quiet = br.run(algorithm, star(6), task, steps=9, engine=engine, evaluate_every=0)
    x = np.zeros(2)
    for peers in TURNS:
        x = x - 0.5 * task.gradient(np.array(peers), np.tile(x, (len(peers), 1))).mean(axis=0)
    np.testing.assert_allclose(quiet.estimates, np.tile(x, (6, 1)), atol=1e-12)


def test_given_participants_hide_each_other_in_their_own_iterations_only():
    run = br.run(
        br.FedAvg(chosen=TURNS),
        star(6),
        Mean.normal(6, 2),
        steps=9,
        privacy=NOISE,
        evaluate_every=0,
    )
    # perso:FL-2: 1 / (participants that do not look on) an iteration, in the view of peer 3; peer 5
    # was alone once.
    losses = [run.guarantee(of=peer, seen_by=3).loss for peer in (0, 1, 2, 4, 5)]
    assert losses == pytest.approx([1 / 2, 1 / 2 + 1 / 2, 1 / 2 + 1 / 2, 1 / 2, 1.0])
    assert run.guarantee(of=5, seen_by=0).loss == pytest.approx(1.0)


def test_given_participants_conform_and_survive_their_description():
    algorithm = br.FedAvg(chosen=TURNS)
    check_algorithm(algorithm, star(6))
    assert algorithm_from(algorithm.describe()) == algorithm
    assert algorithm_from({"name": "fed-avg", "chosen": [[0, 1], [2]]}) == br.FedAvg(
        chosen=((0, 1), (2,))
    )


def test_given_participants_go_on_in_the_next_phase():
    task = Mean.normal(6, 2)
    first = br.run(br.FedAvg(chosen=TURNS), star(6), task, steps=4, evaluate_every=0)
    second = br.chain(first, task, steps=4, evaluate_every=0)
    whole = br.run(br.FedAvg(chosen=TURNS), star(6), task, steps=8, evaluate_every=0)
    np.testing.assert_allclose(second.estimates, whole.estimates, atol=1e-12)
    with pytest.raises(
        br.ConfigError, match="4 iterations, and this is number 4; name those of all phases"
    ):
        br.chain(second, task, steps=2, evaluate_every=0)


@pytest.mark.parametrize(
    ("make", "word"),
    [
        (lambda: br.FedAvg(chosen=((0,), ())), "names nobody for iteration 1"),
        (lambda: br.FedAvg(chosen=((0, 0),)), "names a peer twice for iteration 0"),
        (lambda: br.FedAvg(chosen=((0,),), participants=2), "drawn or chosen, not both"),
        (lambda: br.FedAvg(chosen=((0,),), ratio=2.0), "leave participants, chosen and shares out"),
        (lambda: br.FedAvg(chosen=((0, 9),)).prepare(star(6), 3), "names peer 9 for iteration 0"),
        (
            lambda: br.FedAvg(chosen=((0, 3),), server=1).prepare(star(6), 3),
            "names peer 3 for iteration 0",
        ),
        (
            lambda: br.FedAvg(chosen=((0,),)).prepare(star(6), 6),
            "of 1 iterations, and 6 rounds are 3",
        ),
    ],
)
def test_bad_lists_of_participants(make, word):
    with pytest.raises(br.ConfigError, match=word):
        make()
