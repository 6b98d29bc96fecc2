"""From a file to things that run: what cannot mean anything is refused with one sentence and its line."""

import tomllib

import numpy as np
import pytest

import bruit as br
from bruit.build import build, build_task
from bruit.config import TaskSection, from_dict, parse
from bruit.entrance import check_schedule
from bruit.graphs import butterfly, complete, grid, path, ring, star
from bruit.listing import listing

TOKEN = """
graph = "ring:12"
steps = 12
[task]
kind = "histogram"
dim = 4
[algorithm]
name = "token-histogram"
[privacy]
mechanism = "randomized-response"
epsilon = 1.0
"""
WALK = """
graph = "ring:9"
steps = 900
[task]
kind = "logistic"
data = "breast_cancer"
l2 = 0.1
[algorithm]
name = "walk-sgd"
rate = "utility"
bound = 5.0
[privacy]
sigma = 1.0
clip = 1.5
"""


def built(text):
    return build(parse(text), text)


@pytest.mark.parametrize(("graph", "pair"), [(path(6), "5 and 0"), (star(6), "1 and 2"), (grid(2, 3), "2 and 3")])
def test_a_ring_order_needs_the_ring(graph, pair):
    # gossip:RING-1
    with pytest.raises(br.ConfigError, match=f"no link between peers {pair}; use a graph with the ring in it"):
        check_schedule(br.RingSum(), graph, 6)


def test_rings_that_are_there():
    for graph in (ring(6), complete(6), ring(6, plus=0)):  # a fixed order does not swing on a bipartite ring
        check_schedule(br.RingSum(), graph, 6)
    with pytest.raises(br.ConfigError, match="swings for ever"):
        check_schedule(br.WalkSum(), ring(6, plus=0), 6)


@pytest.mark.parametrize(("algorithm", "graph", "words"), [
    (br.WalkSGD(schedule=br.Walk(first=9)), ring(6), "the token starts at peer 9, but the peers are 0..5"),
    (br.WalkSum(), butterfly(8), "walk-sum needs one fixed graph for its walk"),
    (br.FederatedADMM(), ring(6), "3 of 6 peers are no neighbors of the server 0 in ring:6"),
    (br.WalkSum(), ring(6), "steps = 0"),
], ids=str)  # fmt: skip
def test_schedules_that_mean_nothing(algorithm, graph, words):
    with pytest.raises(br.ConfigError, match=words):
        check_schedule(algorithm, graph, 0 if "steps" in words else 8)


def test_randomized_response_from_a_file():
    found = built(TOKEN)
    assert found.privacy == br.RandomizedResponse.of(4, 1.0)  # one report each in one round
    assert found.run().guarantee().status == "proven"
    twice = built(TOKEN.replace("steps = 12", "steps = 24"))
    assert twice.privacy == br.RandomizedResponse.of(4, 0.5)
    assert twice.run().epsilon() <= 1.0 + 1e-9
    assert built(TOKEN.replace("epsilon = 1.0", "gamma = 0.25")).privacy.gamma == 0.25
    assert "randomized-response" in listing("mechanisms")
    assert "histogram" in listing("tasks")


@pytest.mark.parametrize(("old", "new", "words"), [
    ('mechanism = "randomized-response"', "", r"experiment:\d+: token-histogram counts answers given by randomized"),
    ('kind = "histogram"', 'kind = "mean"', "token-histogram counts values, found a mean task"),
    ("epsilon = 1.0", "sigma = 1.0", "by privacy.gamma or privacy.epsilon; found privacy.sigma"),
    ("epsilon = 1.0", "gamma = 1.0", "privacy.gamma = 1.0: input should be less than 1"),
    ("dim = 4", "dim = 1", "a histogram counts 2 values or more, found 1"),
    ("ring:12", "star:12", "no link between peers 1 and 2"),
])  # fmt: skip
def test_histograms_that_mean_nothing(old, new, words):
    with pytest.raises(br.ConfigError, match=words):
        built(TOKEN.replace(old, new))


def test_randomized_response_is_for_values():
    with pytest.raises(br.ConfigError, match="tells one of several values and nothing else, found a mean task"):
        built(TOKEN.replace('kind = "histogram"', 'kind = "mean"').replace("token-histogram", "walk-sum"))


def test_a_histogram_of_labels():
    section = TaskSection(kind="histogram", data="iris")
    task = build_task(section, 90, 3)
    assert task.dim == 3
    assert np.array_equal(task.values.sum(axis=1), np.ones(90))
    assert np.array_equal(task.values, build_task(section, 90, 3).values)
    with pytest.raises(br.ConfigError, match="has 150 records for 200 peers"):
        build_task(section, 200, 3)


def test_the_rate_of_the_utility_statement():
    # walk:RW-7: declared L = 1/4 + l2, mu = l2, G = 1: Lambda = log(T / (156 L tau))
    found = built(WALK)
    tau, smooth = br.graphs.mixing_time(ring(9)), 0.35
    gain = np.log(900 * 0.01 * 25.0 / (39 * smooth * tau * 4))  # D = bound^2 = 25 < (G / mu)^2
    assert found.algorithm.rate == pytest.approx(min(1 / smooth, gain / (900 * 0.1)) if gain > 0 else 1 / smooth)
    longer = built(WALK.replace("steps = 900", "steps = 90000"))
    assert longer.algorithm.rate < found.algorithm.rate


@pytest.mark.parametrize(("old", "new", "words"), [
    ("l2 = 0.1", "", r"experiment:10: the step of the utility statement needs a strongly convex objective"),
    ("l2 = 0.1", 'l2 = 0.1\nrows = "none"', "comes from declared constants only"),
    ("bound = 5.0", "decay = 0.5", "leave decay out"),
    ('"walk-sgd"', '"gossip-sgd"', "rate = 'utility' is not valid"),
])  # fmt: skip
def test_rates_that_cannot_be_chosen(old, new, words):
    with pytest.raises(br.ConfigError, match=words):
        built(WALK.replace(old, new))


def test_a_fused_engine_from_a_file():
    content = {**tomllib.loads(WALK), "engine": {"fused": True}, "references": False, "steps": 60}
    run = build(from_dict(content)).run()
    assert run.engine == {"name": "bulk", "fused": True}
    assert run.metrics.steps == [60]
    with pytest.raises(br.ConfigError, match="fused paths have no latency"):
        build(from_dict({**content, "engine": {"name": "events", "fused": True}}))
