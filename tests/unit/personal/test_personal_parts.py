"""Parts of personal learning: sensitivities, plans, utility, published records, graphs, tasks; and
every bad input."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.sparse import csr_array

import bruit as br
from bruit.algorithms.personal.boosting import Boosting
from bruit.algorithms.personal.model_propagation import ModelPropagation
from bruit.algorithms.personal.personalized import Personalized
from bruit.errors import ConfigError, PrivacyError
from bruit.graphs.learn import Collaboration, degrees_of
from bruit.graphs.similarity import angular_weights, similarity, similarity_weights
from bruit.mechanisms.record_noise import RecordNoise
from bruit.personal.alternate import Noise, alternate
from bruit.personal.learn import learn_graph
from bruit.personal.noisy_records import publish
from bruit.personal.objective import Joint, confidences, wakes_for
from bruit.personal.private import (
    NoisePlan,
    gradient_noise,
    loss_noise,
    model_noise,
    private_descent,
)
from bruit.personal.sensitivity import (
    boosting_loss_sensitivities,
    bounded_records,
    gradient_sensitivities,
    loss_sensitivities,
    model_sensitivities,
)
from bruit.personal.utility import allocate, published_allocate
from bruit.privacy.events import LaplaceEvent
from bruit.randomness import Replay
from bruit.tasks import Logistic, Mean, Records
from bruit.tasks.boosted import Boosted
from bruit.tasks.personal import Personal
from bruit.tasks.stumps import Stumps
from papers.printed.classical import classical_multiplier


def small(peers=8, each=6, dim=3, order=2, seed=0, ridge=0.5):
    rng = np.random.default_rng(seed)
    owners = np.repeat(np.arange(peers), each)
    features, labels = rng.uniform(-1, 1, (len(owners), dim)), rng.choice([-1.0, 1.0], len(owners))
    return Personal(
        Logistic(bounded_records(features, labels, owners, order)), np.full(peers, ridge)
    )


def boosters(peers=6):
    rng = np.random.default_rng(1)
    owners = np.repeat(np.arange(peers), 5)
    features, labels = rng.uniform(-1, 1, (len(owners), 2)), rng.choice([-1.0, 1.0], len(owners))
    return Boosted(Boosted.of(features, labels, owners, Stumps.over(-np.ones(2), np.ones(2), 10)))


# Mechanisms and sensitivities


def test_laplace_scale_of_a_gradient():
    """perso:PERSO-9: L0 = 1, m = 50, epsilon = 0.1 gives scale 0.4."""
    noise = RecordNoise((2 / 50,), 3, law="laplace", lattice=None).calibrate(0.1, delta=0.0)
    assert noise.scales[0] == pytest.approx(0.4)
    assert noise.event().noise_multiplier == pytest.approx(10)


def test_gaussian_scale_of_a_gradient():
    """perso:PERSO-10: L0 = 1, m = 50, epsilon = 0.1, delta = 1e-5 gives 1.9379221050 by the
    classical formula."""
    classical = RecordNoise(
        (2 / 50,), 3, noise_multiplier=classical_multiplier(0.1, 1e-5), lattice=None
    )
    assert classical.scales[0] == pytest.approx(1.9379221050)
    assert (
        RecordNoise((2 / 50,), 3, lattice=None).calibrate(0.1, 1e-5).scales[0] < classical.scales[0]
    )


def test_gaussian_releases_compose_exactly():
    """perso:PERSO-10: mu_total = (2 L / m) sqrt(sum 1 / sigma^2)."""
    from bruit.privacy.toolbox.gaussian import epsilon_of

    noise = RecordNoise((0.04, 0.08), 2, law="gaussian").calibrate(2.0, 1e-5, releases=7)
    assert epsilon_of(math.sqrt(7) / noise.noise_multiplier, 1e-5) == pytest.approx(2.0, rel=1e-6)


@pytest.mark.parametrize(
    ("law", "moment"), [("laplace", 2.0), ("gaussian", 1.0), ("euclidean", 2.0)]
)
def test_noise_has_the_scale_of_each_peer(law, moment):
    """Second moments by coordinate; the scale of euclidean noise in 3 dimensions is sqrt(3) times
    as large."""
    noise = RecordNoise((0.1, 1.0), 3, noise_multiplier=2.0, law=law)
    drawn = noise.noise(Replay(0), np.tile([0, 1], 20_000), np.repeat(np.arange(20_000), 2), 0, 3)
    for peer, scale in enumerate(noise.scales):
        assert (drawn[peer::2] ** 2).mean() == pytest.approx(moment * scale**2, rel=0.05)
    assert noise.sigma == pytest.approx(math.sqrt(moment) * noise.scales.max())
    assert np.array_equal(drawn / noise.spacing, np.round(drawn / noise.spacing))


def test_euclidean_noise_is_pure_for_a_shift_in_any_direction():
    """A shift of L2 norm 1 has an L1 norm of up to sqrt(dim): noise of sqrt(dim) / epsilon hides it
    with no delta."""
    noise = RecordNoise((1.0,), 4, noise_multiplier=0.5, law="euclidean")
    assert noise.event() == LaplaceEvent(0.5)
    assert noise.scales[0] >= 0.5 * 2.0


def test_rounding_is_paid_for():
    """Two values one sensitivity apart round at most one spacing further apart a coordinate; three
    for the law."""
    noise = RecordNoise((1e-3,), 100, noise_multiplier=1.0, law="laplace", lattice=2.0**-4)
    assert noise.scales[0] == pytest.approx(1e-3 + 103 * noise.spacing)


def test_gradient_sensitivity_bounds_every_replacement():
    """perso:DP-7: brute force over replaced records, in L2 and in L1."""
    for order in (1, 2):
        rng, task = np.random.default_rng(3), small(1, 6, 3, order)
        bound = gradient_sensitivities(task, order)[0]
        assert bound == pytest.approx(2 / 6)
        block, far = task.shared.records.blocks[0], 0.0
        for _ in range(300):
            features, labels = block.features[0].copy(), block.targets[0].copy()
            fresh = rng.uniform(-1, 1, 3) * 50
            features[0], labels[0] = fresh / np.linalg.norm(fresh, order), rng.choice([-1.0, 1.0])
            other = replace(
                task, shared=Logistic(bounded_records(features, labels, np.zeros(6, int), order))
            )
            x = 5 * rng.standard_normal((1, 3))
            gap = task.gradient(np.array([0]), x) - other.gradient(np.array([0]), x)
            far = max(far, float(np.linalg.norm(gap[0], order)))
        assert 0 < far <= bound


def test_l1_sensitivity_of_l2_records_is_larger():
    assert gradient_sensitivities(small(order=2), 1)[0] == pytest.approx(math.sqrt(3) * 2 / 6)


def test_model_sensitivity_bounds_every_replacement():
    """perso:PERSO-13: L / (m lambda) with ridge = 2 lambda."""
    rng, task = np.random.default_rng(4), small(1, 6, 3, ridge=0.2)
    bound = model_sensitivities(task)[0]
    assert bound == pytest.approx(1 / (6 * 0.1), rel=1e-6)
    mine, block = task.value(np.array([0])), task.shared.records.blocks[0]
    for _ in range(50):
        features, labels = block.features[0].copy(), block.targets[0].copy()
        features[0], labels[0] = rng.standard_normal(3) * 9, rng.choice([-1.0, 1.0])
        other = replace(task, shared=Logistic(bounded_records(features, labels, np.zeros(6, int))))
        assert np.linalg.norm(mine - other.value(np.array([0]))) <= bound


def test_loss_sensitivities():
    """perso:PERSO-14: worked numbers of the boosting loss."""
    assert boosting_loss_sensitivities(np.array([10]), 1.0)[0] == pytest.approx(0.4940287080)
    assert boosting_loss_sensitivities(np.array([10]), 3.0)[0] == pytest.approx(3.7194784760)
    assert loss_sensitivities(np.array([4, 8]), 2.0) == pytest.approx((0.5, 0.25))


def test_loss_sensitivity_bounds_every_replacement():
    """perso:PERSO-14: losses are cut record by record; a cut of their mean would not do. Then the
    boosting loss."""
    rng, task, zero = np.random.default_rng(8), small(1, 6, 3), np.array([0])
    block, x, moved = task.shared.records.blocks[0], 40 * rng.standard_normal((1, 3)), []
    for _ in range(200):
        features, labels = block.features[0].copy(), block.targets[0].copy()
        features[0], labels[0] = rng.standard_normal(3) * 9, rng.choice([-1.0, 1.0])
        other = replace(task, shared=Logistic(bounded_records(features, labels, np.zeros(6, int))))
        moved.append(abs(task.losses(zero, x, 2.0) - other.losses(zero, x, 2.0))[0])
    assert max(moved) == pytest.approx(loss_sensitivities(task.sizes, 2.0)[0])
    answers, model = np.ones((10, 2)), np.array([[0.6, 0.4]])
    swapped = answers.copy()
    swapped[0] = -1.0
    one, two = (
        Boosted(Records.of(rows, np.ones(10), np.zeros(10, int))).losses(zero, model)[0]
        for rows in (answers, swapped)
    )
    assert abs(one - two) == pytest.approx(boosting_loss_sensitivities(np.array([10]), 1.0)[0])


# Private runs


def test_private_descent_costs_what_was_planned():
    """perso:PERSO-9, 12, 13: the ledger adds up to warm start plus updates; later updates get
    more."""
    task, graph = small(), br.graphs.ring(8)
    warm = model_noise(task).calibrate(1.0, delta=0.0)
    plan = NoisePlan.of(task, 3.0, 4, factor=0.97, warm=warm)
    shares = [1 / noise.noise_multiplier for noise in plan.updates]
    assert shares == sorted(shares)
    assert sum(shares) == pytest.approx(3.0)
    assert shares == pytest.approx(allocate(3.0, np.arange(4) * 8, 0.97, 25))
    done = private_descent(Personalized(smoothness=0.75), graph, task, plan, evaluate_every=0)
    assert done.epsilon(delta=1e-6) <= 4.0 + 1e-9
    assert done.ledger.counts().max() == 1  # every peer pays each mechanism once at most
    assert not done.ledger.has_exact()


def test_a_peer_that_is_done_stops():
    """perso:PERSO-9 (iv): after its planned updates a peer reads nothing and repeats itself."""
    task = small()
    noise = gradient_noise(task).calibrate(1.0, 1e-5, 2)
    planned = tuple([2] * 7 + [0])
    done = br.run(
        Personalized(smoothness=0.75, updates=planned),
        "ring:8",
        task,
        privacy=noise,
        steps=30,
        evaluate_every=0,
    )
    assert done.ledger.counts()[:, 0].tolist() == list(planned)
    assert done.epsilon(delta=1e-5) == pytest.approx(1.0, rel=1e-6)
    assert not done.estimates[7].any()


def test_private_alternation_pays_for_models_and_losses():
    """perso:PERSO-14: one line for the model fitted alone, `updates` a round, and one loss a
    graph."""
    task = small()
    graphs, epsilon = 3, 0.5
    told = loss_noise(task, 2.0).calibrate(0.1, 0.0)
    noise = Noise(
        model_noise(task).calibrate(1.0, delta=0.0),
        gradient_noise(task, "laplace").calibrate(epsilon, 0.0),
        told,
        2.0,
    )
    found = alternate(
        Personalized(smoothness=0.75, updates=2),
        task,
        Collaboration(floor=0.1),
        rounds=2,
        steps=12,
        wakes=80,
        noise=noise,
        sampled=3,
    )
    counts = found.run.ledger.counts()
    events = [type(event).__name__ for event in found.run.ledger.events]
    assert events == ["LaplaceEvent"] * 3
    assert counts[:, 0].tolist() == [1] * 8
    assert counts[:, 1].tolist() == [graphs] * 8
    assert counts[:, 2].max() == 4
    assert found.run.epsilon(delta=1e-9) <= 1.0 + graphs * 0.1 + 4 * epsilon + 1e-6
    assert found.graph.n == 8


@pytest.mark.parametrize("rounds", [0, 1])
def test_a_graph_that_was_learned_tells_everybody_of_all_models_and_losses(rounds, tmp_path):
    """No model had reached peer 0 over a message, and the graph that it knows is a function of all
    of them: epsilon 0 was told."""
    noise = Noise(*[br.Gaussian(1.0, 4.0)] * 3, 2.0)
    learner = Personalized(smoothness=0.75, updates=2)
    aim, more = Collaboration(floor=0.1), {"steps": 6, "wakes": 80, "noise": noise}
    made = alternate(learner, small(), aim, rounds=rounds, **more).run
    for run in (made, br.load(made.save(tmp_path / "run"))):
        for of in range(1, run.n):
            assert run.epsilon(of=of, seen_by=0) == run.epsilon(of=of) > 2
        assert "graph was learned" in " ".join(run.guarantee(of=3, seen_by=0).notes)


def test_noise_of_models_and_losses_never_meet():
    task = small()
    noise = Noise(None, None, replace(loss_noise(task, 2.0, "gaussian"), noise_multiplier=1.0), 2.0)
    one = alternate(
        Personalized(smoothness=0.75),
        task,
        Collaboration(floor=0.1),
        rounds=1,
        steps=3,
        wakes=8,
        noise=noise,
    )
    assert one.run.ledger.has_exact()
    assert math.isinf(one.run.epsilon())


def test_published_records():
    """perso:PERSO-15: Laplace of scale 2 p / epsilon_x, labels flipped with probability 1 / (1 +
    e^epsilon_y)."""
    features, labels = np.full((40_000, 2), 5.0), np.ones(40_000)
    noisy, said = publish(features, labels, 4.0, Replay(1))
    assert noisy.mean() == pytest.approx(1.0, abs=0.05)  # cut to [-1, 1] first
    assert noisy.var() == pytest.approx(2 * (2 * 2 / 2) ** 2, rel=0.05)
    assert (said < 0).mean() == pytest.approx(1 / (1 + math.exp(2)), abs=0.01)


@pytest.mark.parametrize("factor", [0.3, 0.9, 0.999])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_allocation_beats_even_beats_printed(factor, seed):
    """perso:PERSO-12, for every factor and schedule."""
    times = np.sort(np.random.default_rng(seed).choice(40, 7, replace=False))
    splits = (
        allocate(2.0, times, factor, 40),
        np.full(7, 2 / 7),
        published_allocate(2.0, times, factor, 40),
    )
    costs = [float((factor ** (39 - times) / split**2).sum()) for split in splits]
    assert costs[0] < costs[1] < costs[2]


# Learned graphs


def test_learning_step_by_step_against_a_dense_loop():
    """perso:PERSO-7: the compiled steps equal a plain dense loop on the same draws."""
    rng, n, sampled = np.random.default_rng(5), 12, 4
    models, costs, aim = (
        rng.standard_normal((n, 3)),
        rng.uniform(0, 1, n),
        Collaboration(0.7, 1.3, 0.4, 0.2),
    )
    learned = learn_graph(aim, models, costs, wakes=30, dice=Replay(2), sampled=sampled, rate=0.05)
    w, pairs = np.zeros((n, n)), np.array([(a, b) for a in range(n) for b in range(a + 1, n)])
    for t in range(30):
        draws = Replay(2).uniform("graph", np.array([t]), t // n, 0, sampled + 1)[0]
        u, chosen = int(draws[0] * n), []
        for k in range(sampled):
            most = n - 1 - sampled + k
            pick = int(draws[1 + k] * (most + 1))
            chosen.append(most if pick in chosen else pick)
        slopes = aim.slopes(pairs, w[pairs[:, 0], pairs[:, 1]], models, costs)
        by_pair = {tuple(pair): slope for pair, slope in zip(pairs.tolist(), slopes, strict=True)}
        others = [v + (v >= u) for v in chosen]
        assert len(set(others)) == sampled
        for v in others:
            w[u, v] = w[v, u] = max(0.0, w[u, v] - 0.05 * by_pair[min(u, v), max(u, v)])
    assert learned.matrix().toarray() == pytest.approx(w, abs=1e-12)
    assert degrees_of(learned.pairs, learned.weights, n) == pytest.approx(w.sum(axis=1))


def test_slopes_are_the_derivative():
    rng, aim = np.random.default_rng(6), Collaboration(0.7, 1.3, 0.4, 0.2)
    pairs, models, costs = (
        np.array([(0, 1), (1, 2), (0, 3)]),
        rng.standard_normal((4, 2)),
        rng.uniform(0, 1, 4),
    )
    weights = rng.uniform(0.1, 1, 3)
    for k, slope in enumerate(aim.slopes(pairs, weights, models, costs)):
        ahead, behind = weights.copy(), weights.copy()
        ahead[k] += 1e-6
        behind[k] -= 1e-6
        gap = aim.value(pairs, ahead, models, costs) - aim.value(pairs, behind, models, costs)
        assert gap / 2e-6 == pytest.approx(slope, rel=1e-6)


@pytest.mark.parametrize("seed", [14, 34, 37])
def test_a_step_too_long_and_one_back_is_not_the_end(seed):
    """perso:PERSO-7: three peers whose first steps overshoot and return to no weights at all, so
    that G is what it was. Nothing had been learned, and nobody was told."""
    rng = np.random.default_rng(seed)
    peers = int(rng.integers(3, 7))
    models, costs = rng.normal(size=(peers, 2)), rng.random(peers)
    aim = Collaboration(2.0, 0.5, 0.3, 0.05)
    learned = learn_graph(aim, models, costs, wakes=2000 * peers, dice=Replay(seed))
    apart = learn_graph(aim, models, costs, wakes=10_000 * peers, dice=Replay(0), rate="safe")
    assert learned.history[-1] == pytest.approx(apart.history[-1], rel=3e-3)
    assert learned.history[-1] < learned.history[0] - 0.1


def test_a_hundred_thousand_peers_learn_a_sparse_graph():
    """O(sampled) a wake-up: memory and time follow the pairs touched, not n^2."""
    n = 100_000
    models = np.random.default_rng(0).standard_normal((n, 2))
    learned = learn_graph(
        Collaboration(floor=0.1), models, np.zeros(n), wakes=n, dice=Replay(0), rate=0.02
    )
    assert 0 < len(learned.weights) <= 5 * n
    assert learned.graph().n == n


def test_far_peers_get_no_weight():
    """perso:PERSO-7: the heuristic of leaving the most distant models out."""
    models = np.array([[0.0], [0.1], [5.0], [5.1]])
    learned = learn_graph(
        Collaboration(coupling=0.0, floor=0.1),
        models,
        np.zeros(4),
        wakes=400,
        dice=Replay(0),
        sampled=2,
        farthest=1.0,
    )
    assert {tuple(pair) for pair in learned.pairs.tolist()} == {(0, 1), (2, 3)}


def test_the_learned_graph_is_a_communication_graph(tmp_path):
    task = small()
    found = alternate(
        Personalized(smoothness=0.75), task, Collaboration(floor=0.1), rounds=1, steps=5, wakes=80
    )
    done = br.run(br.Averaging(), found.graph, task, steps=2)
    done.save(tmp_path / "learned.run")
    assert br.load(tmp_path / "learned.run").graph.fingerprint() == found.graph.fingerprint()
    assert found.graph.to_networkx().number_of_nodes() == 8


def test_boosted_alternation_keeps_models_in_the_ball():
    found = alternate(
        Boosting(1.0, 2.0),
        boosters(),
        Collaboration(floor=0.1),
        rounds=2,
        steps=10,
        wakes=60,
        sampled=3,
    )
    assert np.abs(found.models).sum(axis=1).max() <= 2.0 + 1e-9


# Graphs and tasks


def test_similarity_keeps_the_ratios():
    weights = np.array([[0, 3, 1], [3, 0, 0], [1, 0, 0.0]])
    graph = similarity(weights)
    assert graph.weights.toarray()[0] == pytest.approx((0, 0.75, 0.25))
    assert graph.validity().row_stochastic
    assert similarity(csr_array(weights)).fingerprint() == graph.fingerprint()


def test_isolated_peers_stay_alone():
    """perso:PERSO-1: a peer without neighbors never wakes, and keeps the model it began with."""
    weights = np.zeros((4, 4))
    weights[0, 1] = weights[1, 0] = weights[0, 2] = weights[2, 0] = 1.0
    task, graph = small(4), similarity(weights)
    alone = br.run(ModelPropagation(), graph, task, steps=0, evaluate_every=0)
    done = br.run(
        Personalized(smoothness=0.75), graph, task, steps=20, after=alone, evaluate_every=0
    )
    assert done.estimates[3] == pytest.approx(task.value(np.array([3]))[0])
    assert not np.allclose(done.estimates[0], alone.estimates[0])


def test_angular_weights():
    models = np.array([[1.0, 0], [2.0, 0], [0, 1.0]])
    found = angular_weights(models, 0.5, 1e-4).toarray()
    assert found[0, 1] == pytest.approx(1.0)
    assert found[0, 2] == pytest.approx(math.exp(-2))
    assert angular_weights(models, 0.1, 1e-4).toarray()[0, 2] == 0


def test_personal_task_answers_with_its_own_regularizer():
    task = small(2, 5, 2)
    task = replace(task, ridge=np.array([0.3, 1.5]))
    ids, x = np.arange(2), np.array([[0.4, -0.2], [1.0, 0.7]])
    step = 1e-6
    for k in range(2):
        bump = np.zeros_like(x)
        bump[:, k] = step
        slope = (task.losses(ids, x + bump) - task.losses(ids, x - bump)) / (2 * step)
        assert task.gradient(ids, x)[:, k] == pytest.approx(slope, abs=1e-8)
    point = task.prox(ids, x, 0.7)
    assert task.gradient(ids, point) + (point - x) / 0.7 == pytest.approx(
        np.zeros((2, 2)), abs=1e-8
    )
    assert task.gradient(ids, task.value(ids)) == pytest.approx(np.zeros((2, 2)), abs=1e-8)
    assert set(task.evaluate(x)) == {"accuracy", "worst", "loss"}
    assert set(task.references()) == {"alone", "central"}
    assert task.constants().smoothness == pytest.approx(0.25 + 1.5)


def test_boosted_gradient_is_the_derivative_whatever_the_sizes():
    rng = np.random.default_rng(2)
    owners = np.repeat([0, 1, 2], [1, 4, 40])
    task = Boosted(Records.of(rng.standard_normal((45, 3)), rng.choice([-1.0, 1.0], 45), owners))
    ids, x = np.arange(3), 20 * rng.standard_normal((3, 3))
    for k in range(3):
        bump = np.zeros_like(x)
        bump[:, k] = 1e-6
        slope = (task.losses(ids, x + bump) - task.losses(ids, x - bump)) / 2e-6
        assert task.gradient(ids, x)[:, k] == pytest.approx(slope, abs=1e-5)
    assert set(task.references()) == {"alone", "central"}


def test_stumps():
    """perso:PERSO-6: thresholds low + (i + 1)(high - low) / q."""
    stumps = Stumps.over(np.array([0.0, -1.0]), np.array([1.0, 1.0]), 3)
    assert stumps.threshold == pytest.approx((0.5, 1.0, 0.0, 1.0))
    assert stumps(np.array([[0.6, -0.5]])).tolist() == [[-1, 1, 1, 1]]


def test_equal_labels_are_fine():
    """A peer whose labels are all equal has a finite model, thanks to its regularizer."""
    task = Personal(
        Logistic(bounded_records(np.eye(4), np.ones(4), np.array([0, 0, 1, 1]))), np.full(2, 0.1)
    )
    assert np.isfinite(task.value(np.arange(2))).all()
    done = br.run(Personalized(smoothness=0.35), "complete:2", task, steps=20)
    assert done.metrics.last("accuracy") == 1.0


BAD = [
    (lambda: similarity(np.array([[0, -1], [-1, 0.0]])), "peers 0 and 1 is -1.0"),
    (lambda: similarity(np.array([[0, 1], [2, 0.0]])), "different weights, 1 and 2"),
    (lambda: similarity_weights(np.ones((2, 3))), "square matrix"),
    (lambda: similarity(np.array([[0, np.nan], [np.nan, 0]])), "is nan"),
    (lambda: angular_weights(np.ones((2, 2)), 0.0), "width"),
    (lambda: confidences(np.zeros(3, int)), "at least one of them positive"),
    (lambda: Records.of(np.ones((2, 2)), np.ones(2), np.array([0, 2])), "peer 1 has no records"),
    (lambda: Collaboration(sparsity=0.0), "sparsity"),
    (lambda: Collaboration(coupling=-1.0), "coupling"),
    (lambda: Collaboration().check(np.ones((2, 2)), np.ones(3)), "one row and one number a peer"),
    (lambda: Collaboration().check(np.full((2, 2), np.nan), np.ones(2)), "not finite"),
    (
        lambda: learn_graph(
            Collaboration(), np.ones((3, 1)), np.ones(3), wakes=1, dice=Replay(0), sampled=3
        ),
        "sampled = 3",
    ),
    (
        lambda: learn_graph(Collaboration(), np.ones((9, 1)), np.ones(9), wakes=-1, dice=Replay(0)),
        "negative",
    ),
    (
        lambda: learn_graph(
            Collaboration(), np.ones((9, 1)), np.ones(9), wakes=1, dice=Replay(0), rate="fast"
        ),
        "'fast'",
    ),
    (lambda: allocate(0.0, np.array([0]), 0.5, 1), "epsilon = 0"),
    (lambda: allocate(1.0, np.array([3]), 0.5, 3), r"0\.\.2"),
    (lambda: allocate(1.0, np.array([0]), 1.0, 1), "found 1.0"),
    (lambda: NoisePlan.of(small(), 0.0, 3), "positive epsilon"),
    (lambda: NoisePlan.of(small(), 1.0, 0), "at least one update"),
    (lambda: model_noise(small(), "laplace"), "known in L2"),
    (lambda: RecordNoise((1.0, 0.0), 2), "peer 1 has sensitivity 0"),
    (lambda: RecordNoise((), 2), "found none"),
    (lambda: RecordNoise((1.0,), 2, law="cauchy"), "'cauchy'"),
    (lambda: RecordNoise((1.0,), 0), "dim = 0"),
    (lambda: RecordNoise((1.0,), 2).calibrate(0.0), "positive, finite epsilon"),
    (
        lambda: RecordNoise((1.0,), 2, noise_multiplier=1.0).noise(
            Replay(0), np.array([0]), 0, 0, 3
        ),
        "rows of 2 numbers, found 3",
    ),
    (lambda: loss_sensitivities(np.array([3]), math.inf), "ceiling"),
    (lambda: boosting_loss_sensitivities(np.array([3]), 0.0), "radius"),
    (lambda: gradient_sensitivities(small(), 3), "order 3"),
    (lambda: publish(np.ones((2, 2)), np.zeros(2), 1.0, Replay(0)), "labels -1 and 1"),
    (lambda: publish(np.ones((2, 2)), np.ones(2), 1.0, Replay(0), 1.0), "share"),
    (lambda: Joint(np.zeros((2, 2)), np.ones(3)), r"\(3,\) for 2 peers"),
    (lambda: Joint(np.zeros((2, 2)), np.ones(2), 0.0), "coupling"),
    (lambda: wakes_for(1.0, 1.0, 0.1), "not strongly convex"),
    (lambda: replace(small(), ridge=np.ones(3)), r"\(3,\) for 8 peers"),
    (lambda: replace(small(), ridge=-np.ones(8)), "found -1.0"),
    (lambda: replace(small(), held_out=small(3).shared.records), "3 peers"),
    (lambda: replace(small(), ridge=np.zeros(8)).value(np.arange(8)), "peer 0 has no regularizer"),
    (
        lambda: Boosted.of(np.ones((4, 2)), np.ones(4), np.zeros(4, int), lambda x: x[:, 0]),
        r"shape \(4,\) for 4 records",
    ),
    (
        lambda: Boosted(Records.of(np.ones((2, 2)), np.array([0.0, 1.0]), np.array([0, 1]))),
        "label 0",
    ),
    (
        lambda: replace(boosters(), held_out=Records.of(np.ones((6, 3)), np.ones(6), np.arange(6))),
        "3 base predictions",
    ),
    (lambda: boosters().value(np.arange(2)), "coupling 0"),
    (lambda: boosters().prox(np.arange(2), np.ones((2, 10)), 1.0), "no proximal"),
    (lambda: boosters().losses(np.arange(2), np.ones((2, 10)), 3.0), "cut at 3"),
    (lambda: Noise(ceiling=0.0), "positive ceiling"),
    (lambda: boosters().evaluate(np.ones((2, 2))), r"\(6, 10\)"),
    (lambda: small().evaluate(np.ones((2, 2))), r"\(8, 3\)"),
    (lambda: Stumps.over(np.ones(2), np.zeros(2), 3), "low <= high"),
    (lambda: Stumps.over(np.zeros(2), np.ones(2), 0), "at least one stump"),
    (lambda: Stumps.over(np.zeros(2), np.ones(2), 3)(np.ones((3, 1))), "feature 1"),
    (
        lambda: alternate(
            Personalized(), Mean(np.ones((4, 2))), Collaboration(), rounds=1, steps=1, wakes=1
        ),
        "Mean task",
    ),
    (
        lambda: alternate(Personalized(), small(2), Collaboration(), rounds=1, steps=1, wakes=1),
        "three peers or more",
    ),
    (
        lambda: alternate(Personalized(), small(), Collaboration(), rounds=-1, steps=1, wakes=1),
        "negative",
    ),
]


@pytest.mark.parametrize(("wrong", "message"), BAD, ids=range(len(BAD)))
def test_bad_input_says_what_is_wrong(wrong, message):
    with pytest.raises(ConfigError, match=message):
        wrong()


UNSAFE = [
    (
        lambda: gradient_sensitivities(Logistic(Records.of(np.eye(2), np.ones(2), np.arange(2)))),
        "no declared bound",
    ),
    (
        lambda: model_sensitivities(replace(small(), ridge=np.zeros(8))),
        "peer 0 fits its model without regularizer",
    ),
    (lambda: publish(np.ones((2, 2)), np.ones(2), 0.0, Replay(0)), "positive epsilon"),
    (
        lambda: alternate(
            Personalized(),
            small(),
            Collaboration(),
            rounds=1,
            steps=1,
            wakes=1,
            noise=Noise(losses=RecordNoise((1.0,) * 8, 1, noise_multiplier=1.0)),
        ),
        "give the ceiling",
    ),
]


@pytest.mark.parametrize(("wrong", "message"), UNSAFE, ids=range(len(UNSAFE)))
def test_unsafe_input_is_refused(wrong, message):
    with pytest.raises(PrivacyError, match=message):
        wrong()


@pytest.mark.parametrize("peers", [3, 4, 5, 6])
def test_a_graph_is_learned_among_few_peers_by_default(peers):
    """Five others are looked at, or all where there are fewer."""
    rows = np.random.default_rng(0).normal(size=(4 * peers, 2))
    records = br.tasks.Records.of(rows, np.sign(rows[:, 0]), np.repeat(np.arange(peers), 4))
    task = br.tasks.Personal(br.tasks.Logistic(records), ridge=np.full(peers, 0.1))
    aim = br.graphs.Collaboration()
    found = alternate(br.Personalized(), task, aim, rounds=1, steps=2, wakes=50)
    asked = alternate(
        br.Personalized(), task, aim, rounds=1, steps=2, wakes=50, sampled=min(5, peers - 1)
    )
    assert np.array_equal(found.weights.weights, asked.weights.weights)
