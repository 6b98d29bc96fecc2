"""Private sums by a random walk: worked numbers of walk:RW-1 and RW-6, and the exact oracle."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest

import bruit as br
from bruit.algorithms.tokens.walk_sum import WalkSum
from bruit.graphs import complete, erdos_renyi, star
from bruit.privacy.events import GaussianEvent
from bruit.privacy.ledger import Ledger
from bruit.privacy.theorem import Facts
from bruit.privacy.theorems.token_sum import TokenSum
from bruit.runs.engines.forms import exact_losses
from bruit.trace import Faults, Meetings, Trace

NOISE = br.Gaussian(clip=0.5, sigma=3.0, arithmetic="ideal")
WALK = [0, 2, 1, 3, 0, 0, 2, 3, 1, 2, 0, 3, 3, 2, 1, 0, 2]


def given(n, path):
    hops = np.array(path, np.int64)
    return Trace(
        peers=n,
        steps=len(path),
        meetings=Meetings(np.arange(len(path), dtype=float), np.append(hops[:1], hops[:-1]), hops),
    )


@pytest.mark.parametrize(
    ("of", "seen_by", "published", "loss"),
    [
        (0, 1, False, 1.5),
        (2, 1, False, 1.5),
        (0, 3, False, 2.0),
        (0, 1, True, 2.0),
    ],
)
def test_the_worked_walk(of, seen_by, published, loss):
    # walk:RW-6, column "additive X", z = 3
    ideal, sent = (
        br.run(
            WalkSum(published),
            complete(4),
            br.tasks.Mean(np.zeros((4, 1))),
            privacy=noise,
            steps=len(WALK),
            given=given(4, WALK),
            evaluate_every=0,
        ).guarantee(of=of, seen_by=seen_by)
        for noise in (NOISE, replace(NOISE, arithmetic="grid"))
    )
    assert ideal.loss == sent.loss == pytest.approx(loss)
    assert (ideal.status, sent.status) == ("ideal", "proven")
    assert ideal.profile.mu == sent.profile.inner.mu == pytest.approx(math.sqrt(loss) / 3)
    for delta in (1e-9, 1e-6, 1e-2):  # finite precision costs a little, and never less than nothing
        assert 0 < float(sent.epsilon(delta)) - float(ideal.epsilon(delta)) < 1e-9


@pytest.mark.parametrize(("published", "divergence"), [(True, 0.774356546), (False, 0.460932039)])
def test_averaged_over_all_walks(published, divergence):
    """walk:RW-1.5, enumeration of the 3^6 walks at alpha = 2, z = 1.5."""
    scale, total = 2 * 1 / (2 * 1.5**2), 0.0
    for path in itertools.product(range(3), repeat=6):
        hops, ledger = np.array(path), Ledger(peers=3)
        ledger.record(hops, np.zeros(6, np.int64), np.arange(6), GaussianEvent(1.5))
        facts = Facts(
            agreed=complete(3),
            steps=6,
            ledger=ledger,
            meetings=given(3, path).meetings,
            faults=Faults.none(),
            sigma=1.5,
            clip=0.5,
        )
        total += math.exp(scale * TokenSum(published).losses(facts, (1,))[0])
    assert math.log(total / 3**6) == pytest.approx(divergence, abs=1e-9)


@pytest.mark.parametrize(
    "graph", [complete(6), erdos_renyi(8, c=1.5, seed=1), star(5)], ids=lambda graph: graph.name
)
@pytest.mark.parametrize("observers", [(0,), (1, 3)])
def test_losses_equal_the_oracle(graph, observers):
    rest = np.setdiff1d(np.arange(graph.n), observers)
    run = br.run(
        WalkSum(),
        graph,
        br.tasks.Mean(np.zeros((graph.n, 1))),
        privacy=NOISE,
        steps=25,
        seed=4,
        evaluate_every=0,
    )
    truth = exact_losses(WalkSum(), graph, 25, observers, seed=4)[rest]
    assert run.accountant().theorem()[0].losses(run.facts(), observers)[rest] == pytest.approx(
        truth, rel=1e-9
    )


def test_the_sum_and_its_error():
    """walk:RW-1: unbiased, standard deviation sqrt(T) sigma. 4000 coordinates: 6 standard
    deviations, 2e-8."""
    run = br.run(
        WalkSum(),
        complete(5),
        br.tasks.Mean(np.zeros((5, 4000))),
        privacy=NOISE,
        steps=40,
        evaluate_every=0,
    )
    last = run.state.token[run.trace.meetings.b[-1]]
    assert float(np.mean(last**2)) == pytest.approx(40 * 9.0, rel=6 * math.sqrt(2 / 4000))
    values = np.arange(5.0)[:, None]
    plain = br.run(
        WalkSum(), complete(5), br.tasks.Mean(values), steps=40, seed=2, evaluate_every=0
    )
    path = plain.trace.meetings.b
    assert plain.estimates[path[-1], 0] == pytest.approx(values[path].mean())


def test_two_peers_are_no_crowd():
    """walk:RW-1, limits: n = 2, every step of others is u's: X = M, no amplification."""
    path = [0, 0, 0, 1, 0, 0, 1]
    run = br.run(
        WalkSum(),
        complete(2),
        br.tasks.Mean(np.zeros((2, 1))),
        privacy=NOISE,
        steps=7,
        given=given(2, path),
        evaluate_every=0,
    )
    assert run.losses()[0, 1] == pytest.approx(5)
