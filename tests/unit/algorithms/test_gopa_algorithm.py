"""GOPA as an algorithm: noise cancels to the bit on any graph, hides values, and the mean has a
curator's error."""

import math
from dataclasses import replace

import numpy as np
import pytest

import bruit as br
from bruit.algorithms.gossip import gopa
from bruit.algorithms.gossip.gopa import Gopa
from bruit.algorithms.home import Home
from bruit.algorithms.messages import Links
from bruit.algorithms.task_door import TaskDoor
from bruit.errors import ConfigError
from bruit.graphs import butterfly, complete, grid, k_out, ring, star
from bruit.privacy.ledger import Ledger
from bruit.randomness import Replay
from bruit.runs.engines.engine import Job

GRAPHS = [grid(2, 4), star(7), ring(9), k_out(40, 5, seed=1), complete(6)]
NOISE = br.Gaussian(clip=2.0, sigma=0.3)


def values_of(n, d=3):
    return br.tasks.Mean(np.random.default_rng(1).uniform(-1, 1, (n, d)))


def told(result):
    """What every peer said in the first round."""
    rows = np.zeros((result.graph.n, result.estimates.shape[1]))
    for message in reversed(result.trace.received):
        rows[message.sender] = message.row[0]
    return rows


class Uncovered(TaskDoor):
    """A door whose canceling noise is none."""

    def pair_noise_on(self, at, edges, sigma, width, on):
        return np.zeros((len(edges.peers), width))


def uncovered(run, task):
    """The same run without canceling noise: the same values with the same noise of one's own, on
    the same grid."""
    door = Uncovered(
        task=task, mechanism=run.privacy, dice=run.dice(task), ledger=Ledger(peers=run.n)
    )
    watched = frozenset(range(run.n))
    outcome = br.Bulk().execute(
        Job(
            algorithm=run.algorithm,
            graph=run.graph,
            door=door,
            dice=Replay(run.seed),
            steps=run.steps,
            ledger=door.ledger,
            watch=watched,
        )
    )
    return replace(run, trace=outcome.trace, estimates=outcome.state.value)


@pytest.mark.parametrize("graph", GRAPHS, ids=lambda graph: graph.name)
def test_pair_noise_adds_up_to_zero_in_any_order(graph):
    """fp:FP-3: at the door, the noises of all peers are whole multiples of a grid, opposite at the
    two ends."""
    door = TaskDoor(
        task=values_of(graph.n), mechanism=NOISE, dice=Replay(5), ledger=Ledger(peers=graph.n)
    )
    zero, links = np.zeros(graph.n, np.int64), Links.of_graph(graph)
    rows = (
        Home(door, np.arange(graph.n), zero, zero, zero > 0, links.edges, None)
        .pair_noise(9.0, 3, 2.0**-30)
        .rows
    )
    assert np.array_equal(rows * 2.0**30, np.rint(rows * 2.0**30))
    assert np.array_equal(rows[links.flip], -rows)
    for order in (np.arange(len(rows)), np.random.default_rng(2).permutation(len(rows))):
        assert np.array_equal(rows[order].sum(axis=0), np.zeros(3))
    assert np.abs(rows).min() > 0


@pytest.mark.parametrize("graph", GRAPHS, ids=lambda graph: graph.name)
def test_sums_cancel_to_the_bit(graph):
    """perso:GOPA-1: what all say adds up to the noisy values before they were covered, in any order
    of summation."""
    task = values_of(graph.n)
    covered = br.run(
        Gopa(ratio=30.0), graph, task, privacy=NOISE, steps=1, watch=range(graph.n), seed=3
    )
    plain = uncovered(covered, task)
    said, bare = told(covered), told(plain)
    order = np.random.default_rng(2).permutation(graph.n)
    assert np.array_equal(said[order].sum(axis=0), bare.sum(axis=0))
    assert np.abs(said - bare).max() > 10 * NOISE.sigma


def test_masked_values_have_the_stated_covariance():
    """perso:GOPA-3: own^2 I + pair^2 L, over columns that are independent."""
    graph, d = grid(2, 3), 60_000
    result = br.run(
        Gopa(ratio=4.0),
        graph,
        br.tasks.Mean(np.zeros((6, d))),
        privacy=br.Gaussian(clip=1.0, sigma=0.5),
        steps=1,
        watch=range(6),
        evaluate_every=0,
    )
    laplacian = np.diag(graph.degrees.astype(float))
    for a, b in graph.edges():
        laplacian[a, b] = laplacian[b, a] = -1
    wanted = 0.25 * np.eye(6) + 4.0 * laplacian
    assert np.cov(told(result)) == pytest.approx(wanted, abs=0.02 * wanted.max())


def test_mean_has_the_error_of_a_curator():
    """perso:GOPA-1: variance own^2 / n of the average, here over 4000 independent columns (standard
    error 1.1 %)."""
    graph = k_out(100, 6, seed=2)
    result = br.run(
        Gopa(ratio=20.0),
        graph,
        br.tasks.Mean(np.zeros((100, 4000))),
        privacy=NOISE,
        steps=60,
        evaluate_every=0,
    )
    assert result.estimates[0].std() == pytest.approx(NOISE.sigma / 10, rel=0.05)


def test_on_a_changing_graph_the_first_one_shares_the_noise():
    graph = butterfly(8)
    task = values_of(8)
    covered = br.run(Gopa(), graph, task, privacy=NOISE, steps=3, seed=1)
    plain = uncovered(covered, task)
    assert np.allclose(covered.estimates, plain.estimates, atol=1e-12)


def test_wide_values_are_covered_in_parts(monkeypatch):
    """Noise too large to hold at once is drawn in several uses; both ends still agree."""
    monkeypatch.setattr(gopa, "NUMBERS", 64)
    graph = ring(9)
    task = values_of(9, 20)
    covered = br.run(Gopa(), graph, task, privacy=NOISE, steps=1, watch=range(9), seed=1)
    plain = uncovered(covered, task)
    assert np.array_equal(told(covered).sum(axis=0), told(plain).sum(axis=0))
    assert math.isfinite(covered.epsilon(of=3, seen_by=0))


def test_fused_rounds_agree():
    graph, task = k_out(40, 5, seed=1), values_of(40)
    slow = br.run(Gopa(), graph, task, privacy=NOISE, steps=9, seed=1)
    fast = br.run(
        Gopa(),
        graph,
        task,
        privacy=NOISE,
        steps=9,
        seed=1,
        evaluate_every=0,
        engine=br.Bulk(fused=True),
    )
    assert np.allclose(slow.estimates, fast.estimates, atol=1e-9)


def test_without_mechanism_nothing_protects_and_the_ledger_says_so():
    result = br.run(Gopa(), ring(5), values_of(5), steps=2)
    assert result.epsilon(of=1, seen_by=0) == math.inf


@pytest.mark.parametrize("ratio", [0.0, -1.0, math.inf, math.nan])
def test_a_ratio_that_means_nothing_is_refused(ratio):
    with pytest.raises(ConfigError, match="gopa needs ratio > 0"):
        Gopa(ratio)


def test_overflow_is_refused_before_anything_is_sent():
    with pytest.raises(ConfigError, match="cancel to the bit; use a smaller ratio"):
        br.run(Gopa(ratio=1e12), ring(5), values_of(5), privacy=NOISE, steps=2)
