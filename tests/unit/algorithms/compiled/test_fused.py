"""Fused paths equal the generic engine: same states up to rounding, same meetings, same ledger
lines.

style: "a fused path is a named optional method with an equality test, returning the same ledger
columns".
"""

import numpy as np
import pytest

import bruit as br
from bruit.algorithms.gossip import pair_averaging
from bruit.algorithms.schedules.draws import SHEET
from bruit.algorithms.tokens import walk_sgd
from bruit.graphs import complete, grid, ring, star
from bruit.graphs import graph as named_graph
from bruit.graphs.mixing import from_edges
from bruit.randomness import Replay
from bruit.runs.engines.replay import compare
from bruit.tasks import Logistic, Mean, Records

FUSED = br.Bulk(fused=True)
NOISE = br.Gaussian(clip=0.3, sigma=0.5)
REAL = br.Gaussian(clip=0.3, sigma=0.5, arithmetic="ideal")


def both(algorithm, graph, task, steps, privacy=NOISE, **options):
    runs = [
        br.run(
            algorithm,
            graph,
            task,
            privacy=privacy,
            steps=steps,
            seed=3,
            evaluate_every=0,
            engine=engine,
            **options,
        )
        for engine in (br.Bulk(fused=False), FUSED)
    ]
    assert runs[0].trace.messages == runs[1].trace.messages
    for name in ("time", "a", "b"):
        assert np.array_equal(
            getattr(runs[0].trace.meetings, name), getattr(runs[1].trace.meetings, name)
        )
    return runs


def logistic(peers, sizes, columns, seed=0, **options):
    """Peers with the given numbers of records; rows of length up to 2, so that clipping at 0.3 is
    often active."""
    rng = np.random.default_rng(seed)
    owners = np.repeat(np.arange(peers), np.resize(sizes, peers))
    features = rng.normal(size=(len(owners), columns)) / np.sqrt(columns) * 2
    return Logistic(
        Records.of(features, np.where(rng.random(len(owners)) < 0.5, 1.0, -1.0), owners), **options
    )


@pytest.mark.parametrize("d", [1, 3, 10, 37])
@pytest.mark.parametrize("graph", ["er:60,c=2", "star:9", "torus:4x5"])
def test_averaging(graph, d):
    graph = named_graph(graph)
    compare(*both(br.Averaging(), graph, Mean.uniform(graph.n, d, 1), 9, REAL), tolerance=1e-12)


@pytest.mark.parametrize("d", [1, 3, 37])
@pytest.mark.parametrize("steps", [0, 1, 2, 20])
def test_chebyshev_in_single_precision(steps, d):
    graph = named_graph("er:60,c=2")
    compare(*both(br.Chebyshev(), graph, Mean.uniform(60, d, 1), steps, REAL), tolerance=1e-5)


def test_mixing_equals_powers_of_the_matrix():
    from bruit.algorithms.compiled.mixing import mix

    graph, rng = grid(3, 4), np.random.default_rng(0)
    dense, x = graph.weights.toarray(), rng.normal(size=(12, 5))
    last, before = mix(graph.weights, x, np.ones(4), np.zeros(4))
    assert np.allclose(last, np.linalg.matrix_power(dense, 4) @ x, atol=1e-14)
    assert np.allclose(before, np.linalg.matrix_power(dense, 3) @ x, atol=1e-14)


def test_two_threads_share_the_tiles():
    from bruit.algorithms.compiled.mixing import mix

    graph = named_graph("er:2048,c=1.5")
    x = np.random.default_rng(0).normal(size=(2048, 40))
    expected = graph.weights @ (graph.weights @ x)
    assert np.allclose(mix(graph.weights, x, np.ones(2), np.zeros(2))[0], expected, atol=1e-14)


@pytest.mark.parametrize("law", ["weights", "edges", "clocks"])
@pytest.mark.parametrize("activations", [None, 0, 1, SHEET, 5 * SHEET + 17])
@pytest.mark.parametrize("d", [1, 3])
def test_pair_averaging(law, activations, d, monkeypatch):
    monkeypatch.setattr(pair_averaging, "SHEETS", 2)  # several chunks
    graph = named_graph("er:60,c=2")
    runs = both(
        br.PairAveraging(br.Pairs(law, activations)), graph, Mean.uniform(60, d, 1), 9, REAL
    )
    compare(*runs, tolerance=1e-12)
    assert runs[1].trace.meetings.a.size == runs[1].trace.messages // 2


def test_activations_follow_their_laws():
    graph = star(5)  # center 0 with four leaves; weights 1/5 each
    for law, chance in (
        ("weights", 0.2 * 2 / 5),
        ("edges", 1 / 4),
        ("clocks", 1 / 5 * 1 / 4 + 1 / 5),
    ):
        drawn = br.Pairs(law, 40_000).meetings(graph, 0, Replay(4))
        met = np.bincount(np.maximum(drawn.a, drawn.b), minlength=5)[1:]
        spread = np.sqrt(40_000 * chance * (1 - chance))
        assert np.all(np.abs(met - 40_000 * chance) < 5 * spread), law


def test_meetings_of_a_graph_without_edges_are_idle():
    lonely = from_edges(3, np.zeros((0, 2), np.int64))
    for law in ("weights", "edges", "clocks"):
        assert len(br.Pairs(law, 50).meetings(lonely, 0, Replay(4)).a) == 0


def test_the_accountant_of_a_fused_run_sees_its_meetings():
    graph, task = ring(6), Mean.uniform(6, 1, 1)
    generic, fused = (
        run.facts() for run in both(br.PairAveraging(br.Pairs("edges", 20)), graph, task, 1, REAL)
    )
    assert len(fused.meetings.a) == len(generic.meetings.a) == 20


@pytest.mark.parametrize(
    "algorithm",
    [
        br.WalkSGD(),
        br.WalkSGD(cap=2),
        br.WalkSGD(rest=4),
        br.WalkSGD(cap=3, rest=3, rate=0.5),
    ],
    ids=repr,
)
@pytest.mark.parametrize(
    "privacy",
    [
        None,
        NOISE,
        br.Gaussian(clip=100.0, sigma=0.5),
        br.Gaussian(clip=0.3, sigma=0.5, arithmetic="ideal"),
        br.Gaussian(clip=0.3),
        br.DiscreteGaussian(clip=0.3, sigma=0.5),
    ],
    ids=repr,
)
def test_walk(algorithm, privacy):
    """On a grid the tokens have the same bits: gradients differ in their last digits, and are
    rounded."""
    task = logistic(12, [1, 5, 8, 9, 20], 7)
    generic, fused = both(algorithm, named_graph("er:12,c=2,seed=1"), task, 300, privacy)
    compare(generic, fused, tolerance=1e-9)
    if privacy is not None and privacy.fine_grid():
        assert np.array_equal(generic.estimates, fused.estimates)


@pytest.mark.parametrize(("l2", "slope"), [(0.1, None), (0.0, 0.2), (0.1, 0.4)])
@pytest.mark.parametrize("columns", [1, 3, 8, 31])
def test_walk_on_other_logistic_tasks(columns, l2, slope):
    task = logistic(12, [3, 8, 200], columns, l2=l2, derivative_clip=slope)
    compare(*both(br.WalkSGD(rest=2), ring(12), task, 200), tolerance=1e-9)


def test_walk_goes_on_after_another_phase():
    options = {
        "graph": ring(12),
        "task": logistic(12, [4], 3),
        "privacy": NOISE,
        "steps": 30,
        "evaluate_every": 0,
    }
    runs = []
    for engine in (br.Bulk(fused=False), FUSED):
        first = br.run(br.WalkSGD(), seed=1, **options)
        runs.append(
            br.run(br.WalkSGD(), seed=2, after=first, carry="model", engine=engine, **options)
        )
    compare(*runs)
    with pytest.raises(br.ConfigError, match="a fused path starts anew"):
        br.run(br.WalkSGD(), seed=2, after=first, engine=FUSED, **options)


def test_long_walk_crosses_chunks(monkeypatch):
    monkeypatch.setattr(walk_sgd, "CHUNK", 300)
    generic, fused = both(br.WalkSGD(cap=40, rest=2), ring(12), logistic(12, [4], 3), 700)
    compare(generic, fused)
    assert fused.epsilon(of=0, seen_by=6) == generic.epsilon(of=0, seen_by=6)


def test_scores_at_the_end_only():
    graph, task = ring(6), Mean.uniform(6, 1, 1)
    run = br.run(br.Averaging(), graph, task, steps=5, evaluate_every=5, engine=FUSED)
    assert run.metrics.steps == [5]
    assert run.engine == {"name": "bulk", "fused": True}


@pytest.mark.parametrize(
    ("algorithm", "graph", "options", "reason"),
    [
        (br.Averaging(), ring(6), {"watch": [2]}, "peer 2 cannot be watched"),
        (
            br.Averaging(),
            ring(6),
            {"evaluate_every": 2},
            "evaluate_every = 2; make it 0 or at least 5",
        ),
        (br.PairAveraging(), ring(6), {"evaluate_every": 5}, "make it 0"),
        (
            br.PairAveraging(br.Pairs("edges", 9)),
            ring(6),
            {"evaluate_every": 5},
            "make it 0 or at least 9",
        ),
        (br.GossipSGD(), ring(6), {}, "gossip-sgd has no fused path"),
        (br.WalkSGD(), ring(6), {}, "compiled for logistic tasks"),
        (br.Averaging(), named_graph("butterfly:8"), {}, "one fixed graph"),
        *(
            (algorithm, ring(6), {"privacy": NOISE}, "noise is on a grid.*arithmetic = 'ideal'")
            for algorithm in (br.Averaging(), br.Chebyshev(), br.PairAveraging())
        ),
    ],
    ids=str,
)
def test_refusals_say_why(algorithm, graph, options, reason):
    task = Mean.uniform(graph.n, 1, 1)
    with pytest.raises(br.ConfigError, match=reason):
        br.run(algorithm, graph, task, steps=5, engine=FUSED, **{"evaluate_every": 0, **options})


@pytest.mark.parametrize(
    ("algorithm", "privacy", "reason"),
    [
        (br.WalkSGD(batch=2), NOISE, "found batch = 2"),
        (br.WalkSGD(), br.Laplace(clip=1.0, scale=1.0), "found the laplace mechanism"),
    ],
    ids=str,
)
def test_walks_that_are_not_compiled(algorithm, privacy, reason):
    with pytest.raises(br.ConfigError, match=reason):
        br.run(
            algorithm,
            ring(6),
            logistic(6, [4], 3),
            privacy=privacy,
            steps=5,
            evaluate_every=0,
            engine=FUSED,
        )


def test_replays_are_not_fused():
    graph, task = ring(6), Mean.uniform(6, 1, 1)
    first = br.run(
        br.Averaging(), graph, task, steps=3, evaluate_every=0, engine=br.Events(loss=0.3)
    )
    with pytest.raises(br.ConfigError, match="replay a trace with Bulk"):
        br.run(
            br.Averaging(), graph, task, steps=3, evaluate_every=0, engine=FUSED, given=first.trace
        )


def test_the_memory_of_a_walk_is_that_of_the_peers_not_of_the_pairs():
    """On the complete graph of 1000 peers one number a pair would be 8 MB; graph and task are there
    before."""
    import tracemalloc

    graph, task = complete(1000), logistic(1000, [2], 3)
    options = {"privacy": NOISE, "steps": 2000, "evaluate_every": 0, "engine": FUSED}
    br.run(br.WalkSGD(), graph, task, **options)
    tracemalloc.start()
    br.run(br.WalkSGD(), graph, task, **options)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 3e6


def test_on_the_complete_graph_a_walk_needs_no_weights():
    """Drawn without looking at the matrix, the path is the one that searching the rows gives."""
    graph, dice = complete(37), Replay(3)
    found, law = br.Walk().path(graph, 20_000, dice), np.cumsum(graph.weights.toarray()[0])
    uniform = dice.uniform("hop", np.arange(19_999), 0)[:, 0]
    assert np.array_equal(found[1:], np.minimum(np.searchsorted(law, uniform), 36))
    walk = br.Walk()
    assert all(walk.next(graph, int(found[t]), t, dice) == found[t + 1] for t in range(50))
