"""Averaging and descent among peers of whom some lie: what honest peers end with, beside what is
proven (gossip:LIE-2), and what is said of privacy."""

import numpy as np
import pytest

import bruit as br
from bruit.algorithms.gossip.lies import told
from bruit.algorithms.gossip.robust_gossip import distance_factor
from bruit.algorithms.gossip.robust_rules import robust_mix
from bruit.algorithms.messages import Inbox, Links
from bruit.errors import ConfigError, PrivacyError
from bruit.graphs.tolerance import ERROR, honest_connectivity, tolerated_weight, weight_of
from bruit.peers.engine import Network
from bruit.runs.build import build
from bruit.runs.engines.replay import compare
from bruit.runs.expected import expected
from bruit.runs.file import from_dict
from bruit.testing import check_algorithm

RULES = list(ERROR)
LIARS = (2, 7)
VALUES = np.random.default_rng(3).normal([5.0, -2.0, 1.0], 1.0, (30, 3))
TASK = br.tasks.Mean(VALUES)


def averaged(attack="dissensus", graph="complete:30", steps=25, **more):
    learner = br.RobustAveraging(**{"liars": LIARS, "attack": attack, "strength": 3.0, **more})
    return br.run(learner, graph, TASK, steps=steps, evaluate_every=0)


def distance(run, liars=LIARS):
    """The honest peers' mean squared distance from their first mean, in units of their first variance."""
    honest = np.setdiff1d(np.arange(run.n), liars)
    mean = VALUES[honest].mean(axis=0)
    first, last = (((x[honest] - mean) ** 2).sum(axis=1).mean() for x in (VALUES, run.estimates))
    return last / first


def test_what_tolerates_nothing_is_plain_averaging():
    plain = br.run(br.Averaging(), "torus:5x6", TASK, steps=12, evaluate_every=0).estimates
    for rule in RULES:
        run = averaged(graph="torus:5x6", steps=12, rule=rule, tolerate=0.0, liars=())
        assert run.estimates == pytest.approx(plain, abs=1e-12)


@pytest.mark.parametrize("rule", RULES)
def test_without_liars_it_is_within_the_bound(rule):
    for graph in ("complete:30", "regular:30,degree=10"):
        run = averaged(graph=graph, steps=200, rule=rule, liars=())
        assert distance(run, ()) < expected(run).bound
        assert np.ptp(run.estimates, axis=0) == pytest.approx(0.0, abs=1e-3)
        few = averaged(graph=graph, steps=3, rule=rule, liars=(), tolerate=0.01)
        assert distance(few, ()) < expected(few).bound < 1  # a bound that says something


@pytest.mark.parametrize("attack", ["sign-flip", "alie", "dissensus"])
@pytest.mark.parametrize("rule", RULES)
def test_under_attack_the_honest_stay_within_the_bound(rule, attack):
    """2 liars of 30; the same lies carry plain averaging five times as far, or without end. Nothing is
    drawn but values."""
    run = averaged(attack, rule=rule, tolerate=2 / 30)
    bound = expected(run).bound
    assert distance(run) < min(bound, 0.5)
    plain = averaged(attack, rule=rule, tolerate=0.0)
    assert distance(plain) > 5 * distance(run)
    assert "liars weigh up to 0.06667" in expected(plain)


@pytest.mark.parametrize("rule", RULES)
def test_liars_that_see_everything_stay_within_the_bound(rule):
    """They hear what the honest say in the same round, and push each its own way, or all one way,
    as far as the farthest honest neighbor, beyond it, or a little: in every round and for every peer
    the lie that leaves the honest farthest from where they began, of twelve."""
    graph, liars = br.graphs.graph("complete:30"), np.array(LIARS)
    b, mu = weight_of(graph, LIARS), honest_connectivity(graph, LIARS)
    links, step = Links.of_graph(graph), 30 / 58
    lanes = np.repeat(np.arange(30), np.diff(links.start))
    lying, x = np.isin(links.senders, liars), VALUES.copy()
    honest = np.setdiff1d(np.arange(30), liars)
    mean = x[honest].mean(axis=0)
    spread = ((x[honest] - mean) ** 2).sum(axis=1).mean()
    for _ in range(20):
        best = None
        for away in (
            x - x[honest].mean(axis=0),
            x - mean,
            np.ones((30, 1)) * (x[honest[0]] - mean),
        ):
            for size in (0.2, 1.0, 2.0, 1e6):
                reach = np.sqrt(((x[honest] - x[honest].mean(axis=0)) ** 2).sum(axis=1).max())
                push = away / np.maximum(np.linalg.norm(away, axis=1, keepdims=True), 1e-12)
                said = np.where(lying[:, None], (x + size * reach * push)[lanes], x[links.senders])
                new = robust_mix(rule, b, Inbox(links, said, True, None), x, step)
                far = ((new[honest] - mean) ** 2).sum()
                if best is None or far > best[0]:
                    best = far, new
        x = best[1]
        x[liars] = x[honest].mean(axis=0)
    share = 2 * ERROR[rule] * b / mu
    bound = distance_factor(step * mu, share, 20)
    found = ((x[honest] - mean) ** 2).sum(axis=1).mean() / spread
    assert 1e-4 < found < bound


def test_what_liars_say():
    links = Links.of_graph(br.graphs.graph("complete:3"))
    heard = Inbox(links, np.array([[0.0], [2.0], [6.0]]), False, None).slots()
    said = np.array([[10.0], [20.0], [30.0]])

    def lies(attack, strength=2.0):
        return told(attack, strength, (0,), said, heard, links.edges).rows[:, 0].tolist()

    assert lies("sign-flip") == [-20.0, -20.0, 20.0, 20.0, 30.0, 30.0]
    assert lies("alie")[:2] == [4 - 2 * 2.0, 4 - 2 * 2.0]
    assert lies("dissensus")[:2] == [2 + 2 * (2 - 4.0), 6 + 2 * (6 - 4.0)]
    assert lies("label-flip") == [10.0, 10.0, 20.0, 20.0, 30.0, 30.0]


def labels(flipped=(), sizes=5):
    rng = np.random.default_rng(1)
    owners = np.repeat(np.arange(8), sizes)
    x = rng.normal(size=(8 * sizes, 3))
    y = np.where(x @ [1.0, -2.0, 0.5] + 0.3 * rng.normal(size=len(x)) > 0, 1.0, -1.0)
    y = np.where(np.isin(owners, flipped), -y, y)
    return br.tasks.Logistic(br.tasks.Records.of(x, y, owners), l2=0.1)


def test_flipped_labels_are_a_gradient_at_the_other_side():
    options = {"steps": 15, "evaluate_every": 0}
    lie = br.RobustSGD(rate=0.5, tolerate=0.0, liars=(1, 4), attack="label-flip")
    honest = br.RobustSGD(rate=0.5, tolerate=0.0)
    flipped = br.run(honest, "ring:8", labels((1, 4)), **options).estimates
    assert br.run(lie, "ring:8", labels(), **options).estimates == pytest.approx(flipped, abs=1e-12)
    assert np.abs(br.run(honest, "ring:8", labels(), **options).estimates - flipped).max() > 0.01


@pytest.mark.parametrize("rule", RULES)
def test_descent_goes_on_among_liars(rule):
    """1 liar of 8 in the complete graph, 60 rounds; plain descent is led away. Nothing is drawn but
    records."""
    where = {"graph": "complete:8", "task": labels(sizes=20), "steps": 60, "evaluate_every": 0}
    best = br.run(br.RobustSGD(rate=0.5, tolerate=0.0), **where).estimates[1:].mean(axis=0)
    for attack in ("dissensus", "sign-flip", "alie", "label-flip"):
        lie = {"rate": 0.5, "liars": (0,), "attack": attack, "strength": 20.0}
        robust, plain = (
            br.run(br.RobustSGD(rule=rule, tolerate=b, **lie), **where).estimates[1:]
            for b in (0.125, 0.0)
        )
        away = [np.sqrt(((x - best) ** 2).sum(axis=1).max()) for x in (robust, plain)]
        assert away[0] < 0.2 * np.linalg.norm(best)
        assert away[1] > 2 * away[0]


def test_nobody_is_cut_for_noise_alone():
    """Peers of equal data: with the floor all are believed, as in plain gossip, but for a chance of
    1e-6 for each of 560 distances."""
    task, noise = br.tasks.Mean(np.zeros((8, 3))), br.Gaussian(1.0, 1.0)
    options = {"privacy": noise, "steps": 10, "evaluate_every": 0, "rehearsal": True}
    runs = {}
    for floor, tolerate in ((1.0, 0.1), (0.0, 0.1), (1.0, 1e-9)):
        learner = br.RobustSGD(tolerate=tolerate, floor=floor, rate=1.0)
        runs[floor, tolerate] = br.run(learner, "complete:8", task, **options)
    plain = runs[1.0, 1e-9].estimates.std()
    assert runs[1.0, 0.1].estimates.std() < 1.5 * plain
    assert not np.array_equal(runs[0.0, 0.1].estimates, runs[1.0, 0.1].estimates)


@pytest.mark.parametrize(
    "learner",
    [
        br.RobustAveraging(rule="trim", liars=(1,)),
        br.RobustAveraging(rule="mean-clip", tolerate=0.1, liars=(1, 2), attack="alie"),
        br.RobustSGD(rule="trim", tolerate=0.2, liars=(3,), attack="sign-flip"),
        br.RobustSGD(liars=(0,), attack="label-flip"),
    ],
)
def test_liars_are_the_same_in_all_engines(learner):
    check_algorithm(learner, "complete:6")


@pytest.mark.slow
@pytest.mark.parametrize("learner", [br.RobustAveraging(liars=(1,)), br.RobustSGD(liars=(1,))])
def test_liars_among_real_peers_do_what_the_simulation_does(learner):
    task = br.tasks.Mean(VALUES[:6])
    options = {"privacy": br.Gaussian(10.0, 1.0), "steps": 6, "seed": 5, "evaluate_every": 0}
    real, bulk = (
        br.run(learner, "complete:6", task, engine=engine, **options, rehearsal=True)
        for engine in (Network(timeout=60.0, pace=0.1), br.Bulk())
    )
    compare(bulk, real)
    found = real.guarantee(of=3, seen_by=5)
    assert (found.spec, found.status) == ("gossip:DP-8", "proven")


@pytest.mark.parametrize("learner", [br.RobustAveraging(), br.RobustSGD(liars=(3,))])
def test_only_local_dp_is_claimed(learner):
    run = br.run(
        learner, "complete:8", br.tasks.Mean(VALUES[:8]), privacy=br.Gaussian(1, 2.0), steps=4
    )
    told = run.guarantee(of=3, seen_by=5)
    assert (told.spec, told.status) == ("gossip:DP-8", "proven")
    assert "no theorem on views is known for this algorithm" in " ".join(told.notes)
    assert run.epsilon(of=3, seen_by=5) == run.epsilon(of=3, seen_by="everybody")
    plain = br.run(
        br.Averaging(),
        "complete:8",
        br.tasks.Mean(VALUES[:8]),
        privacy=br.Gaussian(1, 2.0),
        steps=4,
    )
    for theorem in plain.algorithm.guarantees():
        with pytest.raises(PrivacyError, match="it is about averaging"):
            theorem.check(run.facts())


def experiment(**algorithm):
    return from_dict(
        {
            "graph": "complete:16",
            "steps": 3,
            "task": {"kind": "mean"},
            "algorithm": {"name": "robust-averaging", **algorithm},
            "privacy": {"sigma": 1.0},
        }
    )


def test_what_a_graph_does_not_tolerate_is_refused_before_the_run():
    build(experiment(tolerate=0.199))
    with pytest.raises(ConfigError, match=r"is proven to tolerate liars of weight 0.2 at a peer"):
        build(experiment(tolerate=0.2))
    with pytest.raises(ConfigError, match=r"of weight 0.1111 at a peer by rule 'trim'"):
        build(experiment(tolerate=0.15, rule="trim"))
    with pytest.raises(ConfigError, match=r"peer 16 is to lie, and the peers are 0\.\.15"):
        build(experiment(liars=[3, 16]))
    for learner in (br.RobustAveraging(), br.RobustSGD()):
        with pytest.raises(ConfigError, match="butterfly:16 changes"):
            br.run(learner, "butterfly:16", br.tasks.Mean(VALUES[:16]), steps=3)


def test_unknown_rules_and_attacks_are_refused():
    for wrong in ({"rule": "median"}, {"attack": "noise"}, {"attack": "label-flip", "liars": (1,)}):
        with pytest.raises(
            ConfigError, match=r"rule = 'clip'|attack = 'sign-flip'|no labels to flip"
        ):
            br.RobustAveraging(**wrong)


def test_the_bound_of_a_run_names_what_it_is_about():
    run = averaged(tolerate=0.05, liars=(1,))
    assert (expected(run).spec, expected(run).start) == ("gossip:LIE-2", 1.0)
    assert expected(run).facts["any liars"] == 1
    task, steps = br.tasks.Mean(VALUES), {"steps": 1, "evaluate_every": 0}
    learned = br.run(br.RobustSGD(tolerate=0.1), "complete:30", task, **steps)
    assert "liars may weigh 0.1 at a peer, as 3 peers at most do" in expected(learned)
    robust = br.RobustAveraging(tolerate=0.1)
    churned = br.run(robust, "complete:30", task, steps=3, engine=br.Events(churn=0.3))
    assert "some exchanges failed" in expected(churned)
    later = br.chain(br.run(robust, "complete:30", task, steps=2), task, steps=2)
    assert "an earlier phase" in expected(later)
    assert "plain mixing" in expected(averaged(tolerate=0.0, liars=()))  # may swing: no such bound
    beyond = averaged(tolerate=0.3)
    assert "is not proven to be tolerated" in expected(beyond)
    most = tolerated_weight(br.graphs.graph("complete:30"), 2.0)
    assert most == pytest.approx(0.2)
    assert br.RobustAveraging().prepare(run.graph, 25).tolerate == pytest.approx(most, rel=1e-5)


@pytest.mark.parametrize("graph", ["kneser:5x2", "regular:16,degree=9", "complete:12", "rook:4x4"])
@pytest.mark.parametrize("rule", RULES)
def test_the_bound_holds_where_walks_swing_most(rule, graph):
    """Values that alternate as the last eigenvector of the weights does: what a step that is too large
    would blow up."""
    found = br.graphs.graph(graph)
    vectors = np.linalg.eigh(found.weights.toarray())[1]
    task = br.tasks.Mean(vectors[:, [0, -2]])
    most = tolerated_weight(found, ERROR[rule])
    for tolerate in (0.2 * most, 0.9 * most):
        learner = br.RobustAveraging(rule=rule, tolerate=tolerate)
        run = br.run(learner, found, task, steps=6, evaluate_every=0)
        ends = ((run.estimates - vectors[:, [0, -2]].mean(axis=0)) ** 2).sum(axis=1).mean()
        assert ends <= expected(run).bound * vectors[:, [0, -2]].var(axis=0).sum()


def test_nothing_is_said_of_honest_peers_where_there_are_none():
    run = averaged(graph="complete:30", steps=3, liars=tuple(range(30)))
    assert "all peers lie" in expected(run)
