"""Gossip over pairs of points: worked numbers of perso:PAIR-2 to PAIR-10, compiled paths, and what
is refused."""

import itertools
import math

import numpy as np
import pytest

import bruit as br
from bruit.algorithms.pairs.dual_averaging import DualAveraging
from bruit.algorithms.pairs.dual_averaging_rounds import DualAveragingRounds
from bruit.algorithms.pairs.dual_steps import DualStep, positive_part
from bruit.algorithms.pairs.gosta import Gosta
from bruit.algorithms.pairs.gosta_rounds import GostaRounds
from bruit.algorithms.pairs.passed_points import activity
from bruit.algorithms.pairs.u1_gossip import U1Gossip
from bruit.algorithms.pairs.u2_gossip import U2Gossip
from bruit.algorithms.task_door import TaskDoor
from bruit.errors import ConfigError
from bruit.graphs import butterfly, complete, graph, ring
from bruit.graphs.mixing import from_edges
from bruit.randomness import Replay
from bruit.runs.engines.replay import compare
from bruit.tasks.pairs import row_means
from bruit.tasks.pairs.kernels import gini
from bruit.tasks.pairs.pairwise import Pairwise
from bruit.tasks.pairs.statistic import Statistic
from bruit.trace import Meetings, Trace
from papers.theorems.pair_rates import (
    contraction,
    dual_averaging_bound,
    expected_estimates,
    gosta_bound,
)

X = np.array([1.0, 4.0, 2.0, 8.0])
EDGES = np.array([(0, 1), (1, 2), (2, 3), (0, 3), (0, 2)])
GRAPH = from_edges(4, EDGES)
FEATURES = np.array([[1, 0], [0, 1], [1, 1], [-1, 0.5]])
LABELS = np.array([1, -1, 1, -1])
SHORT = 3 / 4  # (n - 1) / n: from the classical form to the n^2 form of the spec


def fixed(monkeypatch, *columns):
    """Let the public draws choose these edges, one list a column."""
    names = [tuple(edge) for edge in GRAPH.edges().tolist()]
    chosen = np.array(
        [[(names.index(edge) + 0.5) / len(names) for edge in column] + [0.0] for column in columns]
    ).T
    monkeypatch.setattr(TaskDoor, "common", lambda door, clock, count: chosen[clock])


def met(*pairs):
    """A trace of these meetings."""
    a, b = np.array(pairs).T
    return Trace(
        peers=4, steps=len(pairs), meetings=Meetings(np.arange(len(pairs), dtype=float), a, b)
    )


def run(algorithm, task, steps, **options):
    return br.run(algorithm, GRAPH, task, steps=steps, evaluate_every=0, **options)


@pytest.mark.parametrize("engine", [br.Bulk(), br.Bulk(fused=True), br.Events()], ids=repr)
def test_synchronous_gosta_by_hand(monkeypatch, engine):
    """perso:PAIR-2."""
    fixed(monkeypatch, [(0, 1), (2, 3), (1, 2), (0, 3)])
    wanted = {1: (0, 0, 0, 0), 2: (1.5, 1.5, 0, 0), 3: (2, 2, 2, 2), 4: (2.625, 2.5, 1.75, 2.625)}
    for steps, z in wanted.items():
        found = run(GostaRounds(), Statistic.of(X, "gini"), steps, engine=engine)
        assert found.estimates[:, 0] * SHORT == pytest.approx(z)
    assert found.state.held.origin.tolist() == [2, 3, 0, 1]


def test_asynchronous_gosta_by_hand():
    """perso:PAIR-4: three and four meetings, and the activity of both laws."""
    edges = ((0, 1), (2, 3), (1, 2), (0, 3))
    three = run(Gosta(), Statistic.of(X, "gini"), 3, given=met(*edges[:3]))
    four = run(Gosta(), Statistic.of(X, "gini"), 4, given=met(*edges))
    assert three.estimates[:, 0] * SHORT == pytest.approx([0, 1.5, 3, 0])
    assert four.estimates[:, 0] * SHORT == pytest.approx([1.5, 1.5, 3, 3])
    assert activity(br.Pairs("edges"), GRAPH) == pytest.approx([0.6, 0.4, 0.6, 0.4])
    assert three.state.meetings / activity(br.Pairs("edges"), GRAPH) == pytest.approx(
        [5 / 3, 5, 10 / 3, 2.5]
    )
    clocks = [0.5833333333, 0.4166666667, 0.5833333333, 0.4166666667]
    assert activity(br.Pairs("clocks"), GRAPH) == pytest.approx(clocks)
    assert activity(br.Pairs("weights"), ring(6)) == pytest.approx(np.full(6, 1 / 3))


def test_the_baselines_by_hand(monkeypatch):
    """perso:PAIR-5: U2 with e1 = 01, 23, 12 and e2 = 12, 03, 01; U1 swaps along e1 and follows its
    own row."""
    fixed(monkeypatch, [(0, 1), (2, 3), (1, 2)], [(1, 2), (0, 3), (0, 1)])
    wanted = {1: (3, 1, 2, 0), 2: (3.5, 1, 3, 0.5), 3: (3, 2 / 3, 3, 2 / 3)}
    for steps, z in wanted.items():
        for engine in (br.Bulk(fused=False), br.Bulk(fused=True)):
            found = run(U2Gossip(), Statistic.of(X, "gini"), steps, engine=engine)
            assert found.estimates[:, 0] * SHORT == pytest.approx(z)
    fixed(monkeypatch, [(0, 1), (2, 3), (1, 2)])
    found = run(U1Gossip(), Statistic.of(X, "gini"), 3)
    held = np.array(
        [(1, 0, 2, 3), (1, 0, 3, 2), (1, 3, 0, 2)]
    )  # who holds whose point after each swap
    assert found.estimates[:, 0] * SHORT == pytest.approx(np.abs(X - X[held]).mean(axis=0))


@pytest.mark.slow
def test_the_rate_of_gosta():
    """perso:PAIR-3: c, the bound at t = 100, exact expectations, and the mean of runs within five
    standard errors."""
    values = np.abs(X[:, None] - X[None, :])
    c = contraction(EDGES, 4)
    assert c == pytest.approx(0.2)
    assert gosta_bound(values, c, 100) == pytest.approx((43 / 16) ** 0.5 / 20 + 87**0.5 / 20)
    assert expected_estimates(values, EDGES, 2) == pytest.approx([1.04, 0.6, 0.92, 1.24])
    assert expected_estimates(values, EDGES, 3) == pytest.approx(
        [1.522666667, 1.016, 1.378666667, 1.869333333]
    )
    far = expected_estimates(values, EDGES, 100)
    assert far == pytest.approx([2.8246875, 2.7921875, 2.8171875, 2.8721875])
    assert np.linalg.norm(far - 2.875) < gosta_bound(values, c, 100)
    task, fast = Statistic.of(X, "gini"), br.Bulk(fused=True)
    found = SHORT * np.array(
        [run(GostaRounds(), task, 3, seed=k, engine=fast).estimates[:, 0] for k in range(200)]
    )
    error = found.std(axis=0) / math.sqrt(len(found))
    assert (np.abs(found.mean(axis=0) - expected_estimates(values, EDGES, 3)) < 5 * error).all()


def test_the_rate_holds_where_all_points_differ():
    """perso:PAIR-3: h = 1[x != y] on a complete graph of 50. H - h 1' has 49 singular values 1: a
    bound by the largest one, as printed, is too small by a factor 1.7."""
    n, edges = 50, np.array(list(itertools.combinations(range(50), 2)))
    values, c = 1 - np.eye(n), contraction(edges, n)
    for t in (1, 10, 50, 250, 1000):
        assert np.linalg.norm(expected_estimates(values, edges, t) - values.mean()) <= gosta_bound(
            values, c, t
        )
    printed = 2 / (c * 1000) * np.linalg.norm(values - values.mean(), 2)
    assert np.linalg.norm(expected_estimates(values, edges, 1000) - values.mean()) > 1.7 * printed


def test_dual_steps_by_hand():
    """perso:PAIR-6: gamma = 0.5 at t = 4."""
    z, t = np.array([[1.5, -0.3]]), np.array([4.0])
    assert DualStep()(z, t)[0] == pytest.approx([-0.75, 0.15])
    assert DualStep(l2=0.1)(z, t)[0] == pytest.approx([-0.535714286, 0.107142857])
    assert DualStep(l1=0.1)(z, t)[0] == pytest.approx([-0.55, 0])
    assert DualStep(ball=0.5)(z, t)[0] == pytest.approx([-0.490290338, 0.098058068])


@pytest.mark.parametrize(
    "step",
    [
        DualStep(0.7, 0.05, 0.02),
        DualStep(1.3, 0.1, 0.0, 0.4),
        DualStep(1.0, 0.0, 0.3, 0.6),
    ],
)
def test_dual_steps_minimize(step):
    """perso:PAIR-6, against a general solver: nothing feasible nearby is better than the closed
    form."""
    rng = np.random.default_rng(0)
    z, t = rng.normal(size=4), 3.0

    def worth(x):
        psi = step.l1 * np.abs(x).sum(axis=-1) + step.l2 * (x * x).sum(axis=-1)
        return x @ z + (x * x).sum(axis=-1) * math.sqrt(t) / (2 * step.rate) + t * psi

    best = step(z[None], np.array([t]))[0]
    near = best + rng.normal(size=(4000, 4)) * rng.choice([1e-3, 1e-2, 0.3], (4000, 1))
    if step.ball is not None:
        assert np.linalg.norm(best) <= step.ball + 1e-12
        near *= np.minimum(1, step.ball / np.linalg.norm(near, axis=1))[:, None]
    assert (worth(near) >= worth(best) - 1e-12).all()


def test_the_positive_part_of_a_matrix():
    found = positive_part(np.array([[0.0, 2.0, 2.0, 0.0]])).reshape(2, 2)
    assert found == pytest.approx(np.ones((2, 2)))  # eigenvalues 2 and -2


@pytest.mark.parametrize("engine", [br.Bulk(fused=False), br.Bulk(fused=True)], ids=repr)
def test_synchronous_dual_averaging_by_hand(monkeypatch, engine):
    """perso:PAIR-7."""
    fixed(monkeypatch, [(0, 1), (2, 3), (1, 2)])
    task = Pairwise.of(FEATURES, LABELS)
    one, two, three = (
        run(DualAveragingRounds(), task, steps, engine=engine).estimates for steps in (1, 2, 3)
    )
    assert one[0] == pytest.approx([0.5, -0.5])
    assert task.objective(one[:1])[0] == pytest.approx(0.0891336724, rel=1e-8)
    assert two[0] == pytest.approx([0.521861847, -0.521861847])
    assert two[2] == pytest.approx([0.353553391, 0.088388348])
    assert three[0] == pytest.approx([0.544407268, -0.544407268])
    assert three[1:3].ravel() == pytest.approx(
        [0.096225045, 0.024056261, 0.331927305, 0.082981826], abs=1e-9
    )
    assert three[3] == pytest.approx([0, 0])
    assert task.objective(np.zeros((1, 2)))[0] == pytest.approx(0.1732867951, rel=1e-8)


def test_asynchronous_dual_averaging_by_hand():
    """perso:PAIR-9."""
    task, edges = Pairwise.of(FEATURES, LABELS), ((0, 1), (2, 3), (1, 2))
    one, two, three = (run(DualAveraging(), task, k, given=met(*edges[:k])) for k in (1, 2, 3))
    assert one.state.dual[0] == pytest.approx([-0.833333333, 0.833333333])
    assert one.estimates[0] == pytest.approx([0.645497224, -0.645497224])
    assert two.state.dual[2] == pytest.approx([-1.666666667, -0.416666667])
    assert two.estimates[2] == pytest.approx([1.290994449, 0.322748612])
    assert three.state.dual[1:3].ravel() == pytest.approx([-0.833333333, -0.208333333] * 2)
    assert three.estimates[1:3].ravel() == pytest.approx(
        [0.186338998, 0.046584750, 0.873714957, 0.218428739]
    )
    assert three.state.clock == pytest.approx([1.666666667, 5, 3.333333333, 2.5])


def test_the_rate_of_dual_averaging():
    """perso:PAIR-8: C1 + C2 written out for T = 3, and O(1 / sqrt T)."""
    steps = 0.5 * (1 + 1 / math.sqrt(2))
    first = 4 / (2 * 3 * 0.5 / math.sqrt(3)) + 9 / 6 * steps
    second = 3 * 9 / (3 * (1 - math.sqrt(1 - 0.2))) * steps
    assert dual_averaging_bound(2.0, 3.0, 0.2, 0.5, 3) == pytest.approx(first + second)
    ratio = dual_averaging_bound(1, 1, 0.1, 1, 4 * 10**4) / dual_averaging_bound(
        1, 1, 0.1, 1, 10**4
    )
    assert ratio == pytest.approx(0.5, abs=0.01)


def labeled(n, seed=1, features=3):
    rng = np.random.default_rng(seed)
    labels = np.where(np.arange(n) % 3 == 0, 1.0, -1.0)
    return rng.normal(size=(n, features)) + 0.8 * (labels[:, None] > 0), labels


FUSED = [
    (Gosta(), "statistic"),
    (Gosta(br.Pairs("clocks", 200)), "coded"),
    (GostaRounds(), "several"),
    (GostaRounds(), "coded"),
    (U1Gossip(), "statistic"),
    (U2Gossip(), "several"),
    (DualAveragingRounds(), "auc"),
    (DualAveragingRounds(l1=0.01, l2=0.02, ball=0.7, rate=0.5), "ranking"),
]


@pytest.mark.parametrize(
    ("algorithm", "what"), FUSED, ids=lambda case: case if isinstance(case, str) else case.name()
)
def test_compiled_paths_are_the_generic_ones(algorithm, what):
    features, labels = labeled(24)
    values = features[:, 0]
    tasks = {
        "statistic": lambda: Statistic.of(values, "variance"),
        "coded": lambda: Statistic.of(values, "gini", codebook=np.linspace(-2, 3, 5)[:, None]),
        "several": lambda: Statistic.of(
            np.concatenate((values, values[:9] + 1)),
            "gini",
            np.concatenate((np.arange(24), np.arange(9))),
        ),
        "auc": lambda: Pairwise.of(features, labels),
        "ranking": lambda: Pairwise.of(features, labels, "ranking"),
    }
    noise = br.RandomizedResponse.of(5, 2.0) if what == "coded" else None
    slow, fast = (
        br.run(
            algorithm,
            "torus:4x6",
            tasks[what](),
            privacy=noise,
            steps=30,
            seed=3,
            evaluate_every=0,
            engine=engine,
        )
        for engine in (br.Bulk(fused=False), br.Bulk(fused=True))
    )
    compare(slow, fast, 1e-9)
    assert np.abs(fast.estimates).max() > 0
    assert fast.trace.messages == slow.trace.messages


def test_compiled_dual_averaging_refuses_what_it_does_not_compile():
    features, labels = labeled(8)
    fast = {"steps": 2, "engine": br.Bulk(fused=True), "evaluate_every": 0}
    with pytest.raises(ConfigError, match="losses of two scores"):
        br.run(DualAveragingRounds(), ring(8), Pairwise.of(features, labels, "metric"), **fast)
    task = Pairwise.of(features, labels, codebook=np.array([[0, 0, 0, 1.0], [1, 1, 1, -1]]))
    with pytest.raises(ConfigError, match="one point a peer"):
        br.run(DualAveragingRounds(), ring(8), task, **fast)


def test_several_points_a_peer_converge_to_the_statistic_of_peers():
    """perso:PAIR-1, PAIR-2: h of two peers is the average over their points; U1 finds the rows."""
    rng = np.random.default_rng(2)
    owners = np.concatenate((np.arange(10), rng.integers(0, 10, 15)))
    task = Statistic.of(rng.normal(size=25), "variance", owners)
    found = br.run(
        Gosta(br.Pairs("edges", 40_000)),
        complete(10),
        task,
        steps=1,
        engine=br.Bulk(fused=True),
        evaluate_every=0,
    )
    assert found.estimates.mean() == pytest.approx(task.truth, rel=0.03)
    single = Statistic.of(X, "gini")
    rows = run(U1Gossip(), single, 60_000, engine=br.Bulk(fused=True)).estimates[:, 0]
    assert rows * SHORT == pytest.approx(row_means(X, gini()), rel=0.05)


def test_a_private_pair_by_hand():
    """perso:PAIR-10: k = 3, epsilon = 1: bins 0 and 2 of two peers contribute 2.733811780, one's
    own point 0."""
    codebook = np.array([[1 / 6], [1 / 2], [5 / 6]])
    task, noise = (
        Statistic.of(np.array([0.1, 0.9, 0.5]), "gini", codebook=codebook),
        br.RandomizedResponse.of(3, 1.0),
    )
    one = np.eye(3)
    assert task.pair_value(one[[0]], one[[2]], noise.gamma)[0, 0] == pytest.approx(
        2.733811780, rel=1e-8
    )
    found = br.run(Gosta(), complete(3), task, privacy=noise, steps=0, evaluate_every=0)
    assert found.epsilon() == pytest.approx(1.0)
    assert (found.estimates == 0).all()


@pytest.mark.slow
def test_private_estimates_are_unbiased_and_cost_one_report():
    """perso:PAIR-10: epsilon stays that of one report; the mean over runs is the statistic of the
    rounded points."""
    rng = np.random.default_rng(4)
    values, bins = rng.random(30), 3
    codebook = (np.arange(bins) + 0.5)[:, None] / bins
    task, noise = (
        Statistic.of(values, "gini", codebook=codebook),
        br.RandomizedResponse.of(bins, 2.0),
    )
    fast = {"engine": br.Bulk(fused=True), "evaluate_every": 0}
    runs = [
        br.run(
            Gosta(br.Pairs("edges", 3000)),
            complete(30),
            task,
            privacy=noise,
            steps=1,
            seed=seed,
            **fast,
        )
        for seed in range(60)
    ]
    assert runs[0].epsilon() == pytest.approx(2.0)
    assert len(runs[0].ledger) == 30
    found = np.array([one.estimates.mean() for one in runs])
    rounded = Statistic.of(codebook[task.points.codes(), 0], "gini").truth
    assert abs(found.mean() - rounded) < 5 * found.std() / math.sqrt(len(found))


def test_private_gradients_are_unbiased():
    """perso:PAIR-10: over all reports of two peers, the corrected gradient is that of the rounded
    points."""
    features, labels = labeled(6)
    codebook = np.column_stack((np.random.default_rng(0).normal(size=(4, 3)), [1, 1, -1, -1.0]))
    coded, plain = (Pairwise.of(features, labels, codebook=book) for book in (codebook, None))
    noise, one, model = br.RandomizedResponse.of(4, 1.0), np.eye(4), np.array([[0.3, -0.2, 0.5]])
    chance = (1 - noise.gamma) * one + noise.gamma / 4
    mean = sum(
        chance[0, i] * chance[3, j] * coded.pair_gradient(model, one[[i]], one[[j]], noise.gamma)
        for i in range(4)
        for j in range(4)
    )
    assert mean == pytest.approx(plain.pair_gradient(model, codebook[[0]], codebook[[3]], 0.0))


def test_additive_noise_on_a_codebook_cancels():
    """Rows that name a codeword enter h linearly, so that noise of mean 0 does not bias it: 5
    standard errors."""
    codebook = np.array([[0.0], [1.0], [3.0]])
    task, noise = (
        Statistic.of(np.array([0.0, 3.0]), "gini", codebook=codebook),
        br.Gaussian(clip=1.0, sigma=0.7),
    )
    lanes = np.arange(20_000)
    x, y = (
        noise.release(np.tile(task.value(np.array([u])), (len(lanes), 1)), Replay(1), lanes, 0, u)
        for u in (0, 1)
    )
    found = task.pair_value(x, y, 0.0)[:, 0]
    assert abs(found.mean() - 3.0) < 5 * found.std() / math.sqrt(len(lanes))


def test_rates_need_a_connected_graph():
    with pytest.raises(ConfigError, match="connected graph of at least two edges"):
        contraction(np.array([(0, 1), (2, 3)]), 4)
    with pytest.raises(ConfigError, match="connected graph of at least two edges"):
        contraction(np.array([(0, 1)]), 2)


def test_the_bias_of_held_points_by_hand():
    """perso:PAIR-8: at the model 0 the gradient of a pair is -(x_u - x_v) / 2 where u is to be
    above v."""
    task, held = Pairwise.of(FEATURES, LABELS), np.array([1, 0, 3, 2])
    slopes = [
        [
            -(FEATURES[u] - FEATURES[v]) / 2 if LABELS[u] > LABELS[v] else np.zeros(2)
            for v in range(4)
        ]
        for u in range(4)
    ]
    wanted = np.mean([slopes[u][held[u]] - np.mean(slopes[u], axis=0) for u in range(4)], axis=0)
    assert task.held_bias(np.zeros((4, 2)), held) == pytest.approx(wanted)
    several = Pairwise.of(FEATURES, LABELS, owners=np.array([0, 0, 1, 2]))
    with pytest.raises(ConfigError, match="one point a peer"):
        several.held_bias(np.zeros((3, 2)), np.array([1, 2, 0]))


def test_without_noise_nothing_is_promised():
    """Raw points travel: the run says that epsilon is infinite, against everybody."""
    found = run(Gosta(), Statistic.of(X, "gini"), 5, watch=[0])
    assert math.isinf(found.epsilon())
    assert math.isinf(found.epsilon(of=3, seen_by=0))
    assert found.view(0).messages[0].row[0, 1] in X


def test_gosta_of_the_mean_task_is_the_mean():
    """The middle of two values, over all pairs, is the mean: what conformance tests run on."""
    task = br.tasks.Mean.uniform(12, 2)
    found = br.run(
        Gosta(br.Pairs("edges", 30_000)),
        complete(12),
        task,
        steps=1,
        engine=br.Bulk(fused=True),
        evaluate_every=0,
    )
    assert found.estimates.mean(axis=0) == pytest.approx(task.values.mean(axis=0), abs=0.01)


@pytest.mark.parametrize(
    "algorithm",
    [Gosta(), GostaRounds(), U1Gossip(), U2Gossip(), DualAveraging(), DualAveragingRounds()],
    ids=lambda one: one.name(),
)
def test_graphs_on_which_points_get_nowhere_are_refused(algorithm):
    with pytest.raises(ConfigError, match=r"at least two edges, found .* with 1 edge"):
        br.run(algorithm, graph("path:2"), br.tasks.Mean.uniform(2), steps=3)
    apart = from_edges(4, np.array([(0, 1), (2, 3)]))
    with pytest.raises(ConfigError, match="parts that never meet"):
        br.run(algorithm, apart, br.tasks.Mean.uniform(4), steps=3)
    with pytest.raises(ConfigError, match="one fixed graph"):
        br.run(algorithm, butterfly(4), br.tasks.Mean.uniform(4), steps=3)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"rate": 0.0}, "needs rate > 0 .* found rate = 0"),
        ({"l1": -1.0}, "needs l1 >= 0 .* found l1 = -1"),
        ({"l2": math.nan}, "needs l2 >= 0 .* found l2 = nan"),
        ({"ball": 0.0}, "ball > 0 .* found ball = 0"),
        ({"l1": 0.1, "semidefinite": True}, "l1 or semidefinite, not both"),
    ],
)
def test_impossible_parameters_are_refused(parameters, message):
    for kind in (DualAveraging, DualAveragingRounds):
        with pytest.raises(ConfigError, match=message):
            kind(**parameters)


def test_models_that_are_no_matrices_are_not_semidefinite():
    features, labels = labeled(6)
    with pytest.raises(ConfigError, match="no square matrices"):
        br.run(DualAveraging(semidefinite=True), ring(6), Pairwise.of(features, labels), steps=2)


def test_tasks_without_pairs_say_so():
    records = br.tasks.Records.of(np.eye(4), np.array([1.0, -1, 1, -1]), np.arange(4))
    logistic = br.tasks.Logistic(records, l2=0.1)
    with pytest.raises(
        ConfigError, match="a function of two points, which a logistic task does not answer"
    ):
        br.run(Gosta(), ring(4), logistic, steps=2)
    with pytest.raises(
        ConfigError, match="a loss of two points, which a statistic task does not answer"
    ):
        br.run(DualAveraging(), ring(4), Statistic.of(X, "gini"), steps=2)
    with pytest.raises(ConfigError, match="gradients, which a statistic task does not answer"):
        br.run(br.GossipSGD(), ring(4), Statistic.of(X, "gini"), steps=2)
