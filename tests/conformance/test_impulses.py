"""Claims against the impulse oracle: unit data and unit noises through the code that runs
(gossip:LG-1).

Deterministic: no claim may be below what some data really lose, tolerance 1e-9. What the oracle can
see is tested too: claims that are wrong are found.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pytest

import bruit as br
from bruit.adversary.audits.oracle import broken_claims, impulse_losses
from bruit.algorithms.algorithm import Algorithm, catalog
from bruit.graphs import butterfly, erdos_renyi, given, grid, path, ring, star
from bruit.runs.engines.forms import exact_losses
from bruit.tasks import Mean
from bruit.tasks.task import Constants
from bruit.testing import suited
from bruit.trace import Faults

NOISE = br.Gaussian(clip=1.0, sigma=1.5)
POINTS = {
    "dual-averaging",
    "dual-averaging-rounds",
    "gosta",
    "gosta-rounds",
    "u1-gossip",
    "u2-gossip",
}
BENT = {
    "boosting",  # an index and a sign: no message of it is linear
    "graph-learning",  # a weight is a minimum, and models are mixed by weights
    "masked-sgd",  # words modulo 2^64: impulses are hidden by masks, and sums are tested by themselves
}
PUSHED = [kind() for name, kind in catalog().items() if name not in POINTS | BENT]
MORE = [
    br.GossipSGD(mixing=2),
    br.GossipSGD(mixing=3, gamma=1.2),
    br.Renoised(tau=0.4, flat=2),
    br.FedAvg(ratio=4.0),
    br.FedAvg(participants=3),
    br.FederatedADMM(participants=2, noise="server"),
    br.FederatedADMM(noise="server"),
    br.RingSum("shared", published=True),
    br.WalkSum(published=True),
    br.WalkSGD(cap=2, rest=2),
    br.WalkSGD(decay=0.5, published=True),
    br.PairAveraging(br.Pairs("edges")),
    br.Gopa(ratio=2.0),
]
CHURN, LATE = br.Events(churn=0.3), br.Events(latency=0.3, loss=0.2, churn=0.2)


def ran(algorithm, graph, steps=4, engine=None, seed=0):
    task = Mean(np.zeros((graph.n, 1)))
    run = br.run(
        algorithm,
        graph,
        task,
        privacy=NOISE,
        steps=steps,
        seed=seed,
        engine=engine,
        evaluate_every=0,
    )
    run.constants = Constants(
        1.0, 1.0, 0.0, "declared"
    )  # as of normalized rows: the theorems on walks speak
    return run


def holds(run, engine=None):
    assert broken_claims(run, [(0,), (1, run.n - 1)], engine) == []


def around(algorithm):
    """A graph on which it runs and means something."""
    return (
        star(5) if getattr(algorithm, "ratio", 0) and algorithm.name() == "fed-avg" else grid(2, 3)
    )


@pytest.mark.parametrize("algorithm", PUSHED + MORE, ids=repr)
def test_no_claim_is_below_what_impulses_reach(algorithm):
    holds(ran(algorithm, around(algorithm)))


@pytest.mark.parametrize("algorithm", PUSHED, ids=repr)
def test_nor_under_churn(algorithm):
    holds(ran(algorithm, around(algorithm), 3, CHURN, seed=1), CHURN)


@pytest.mark.slow
@pytest.mark.parametrize(
    "graph", [path(5), erdos_renyi(7, c=1.5, seed=1)], ids=lambda graph: graph.name
)
@pytest.mark.parametrize("algorithm", PUSHED + MORE, ids=repr)
def test_nor_anywhere_else(algorithm, graph):
    if (
        algorithm.name() == "fed-avg"
        and algorithm.ratio
        and not set(range(1, graph.n)) <= set(graph.neighbors(0))
    ):
        graph = star(graph.n)
    if algorithm.name() == "fed-avg" and algorithm.participants and graph.name.startswith("path"):
        graph = star(graph.n)
    for engine, seed in ((None, 1), (CHURN, 2), (LATE, 3)):
        holds(ran(algorithm, graph, 5, engine, seed), engine)


@pytest.mark.parametrize(
    "sequence",
    [butterfly(4), butterfly(8, relabel=2), given([ring(6), star(6), path(6)])],
    ids=lambda sequence: sequence.name,
)
@pytest.mark.parametrize(
    "algorithm", [br.Averaging(), br.Renoised(tau=0.3), br.GossipSGD(mixing=2), br.Gopa()], ids=repr
)
def test_nor_on_graphs_that_change(algorithm, sequence):
    holds(ran(algorithm, sequence))
    holds(ran(algorithm, sequence, 4, CHURN, seed=2), CHURN)


@pytest.mark.parametrize("steps", [5, 6, 7])
def test_rounds_of_consensus_and_what_follows_the_last_are_exact(steps):
    run = ran(br.GossipSGD(rate=1.0, mixing=3), butterfly(8), steps)
    truth = impulse_losses(run.algorithm, run.graph, steps, (0,))
    assert np.allclose(run.accountant().charge(0).loss[1:], truth[1:], atol=1e-9)


def test_a_trace_can_be_replayed():
    run = ran(br.Averaging(), grid(2, 3), 3, CHURN, seed=1)
    live = impulse_losses(run.algorithm, run.graph, 3, (0,), engine=CHURN, seed=1)
    assert np.allclose(
        live, impulse_losses(run.algorithm, run.graph, 3, (0,), given=run.trace), equal_nan=True
    )
    holds(run)


def test_it_agrees_with_the_forms():
    for algorithm in (
        br.Averaging(),
        br.Renoised(tau=0.3),
        br.PairAveraging(),
        br.GossipSGD(mixing=2),
    ):
        truth = exact_losses(algorithm, grid(2, 3), 4, (0, 4), 3)
        found = impulse_losses(algorithm, grid(2, 3), 4, (0, 4), seed=3)
        assert np.allclose(found[[1, 2, 3, 5]], truth[[1, 2, 3, 5]], atol=1e-7)


class Value(NamedTuple):
    value: np.ndarray


@dataclass(frozen=True)
class TwoSizes(Algorithm):
    """Reads its value twice, the second time with half the noise."""

    def start(self, home):
        return Value(home.value() + home.value(noise=0.5))

    def emit(self, state, edges):
        return edges.broadcast(state.value)

    def absorb(self, state, inbox, home):
        return Value(inbox.mix())

    def estimate(self, state):
        return state.value


def test_two_sizes_of_noise():
    # a sum of both: shift 2, variance 1 + 1/4; the ledger charges 1 + 4
    run = ran(TwoSizes(), path(3), 1)
    assert impulse_losses(run.algorithm, run.graph, 1, (0,))[1] == pytest.approx(4 / 1.25)
    assert run.guarantee(of=1, seen_by=0).loss == pytest.approx(5.0)
    holds(run)


# What the oracle sees.


def test_canceling_noise_on_links_that_were_down_is_seen():
    """The claim of GOPA as if no link had failed in round 0: what was once printed."""
    run = ran(br.Gopa(), ring(8), 3, CHURN, seed=0)
    assert len(run.trace.faults.in_round(0)[0])
    holds(run, CHURN)
    run.trace.faults = Faults.none()
    found = broken_claims(run, [(0,)], CHURN)
    assert found
    assert all(claim.claimed < claim.reached for claim in found)


def test_a_round_not_counted_is_seen():
    charged = ran(br.Averaging(), path(4), 2).accountant().charge(0).loss
    reached = impulse_losses(br.Averaging(), path(4), 3, (0,))
    assert charged[3] == 0
    assert reached[3] == pytest.approx(1.0)


@pytest.mark.parametrize(
    "algorithm",
    [br.GossipSGD(mixing=2), br.RingSum(), br.WalkSum(), br.Renoised(tau=0.4)],
    ids=repr,
)
def test_a_claim_of_less_noise_is_seen(algorithm):
    run = ran(algorithm, grid(2, 3), 6)
    run.privacy = br.Gaussian(clip=1.0, sigma=1.4)  # noise smaller than what the ledger says
    assert broken_claims(run, [(0,), (1, 5)])


@pytest.mark.parametrize("name", sorted(BENT))
def test_what_is_not_linear_is_refused(name):
    with pytest.raises(br.BruitError, match=r"not linear|makes no masked answers"):
        impulse_losses(catalog()[name](), suited(catalog()[name](), grid(2, 3)), 3, (0,))


def test_every_linear_algorithm_of_the_catalog_is_pushed():
    assert {name for name, kind in catalog().items() if kind.linear} <= {
        algorithm.name() for algorithm in PUSHED
    }
