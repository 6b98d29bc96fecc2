"""The worked examples of the specification, on both engines."""

import numpy as np
import pytest

import bruit as br
from bruit.algorithms.algorithm import algorithm_from, catalog
from bruit.algorithms.task_door import TaskDoor
from bruit.graphs import complete, hypercube, path, ring
from bruit.privacy.ledger import Ledger
from bruit.randomness import Dice
from bruit.runs.engines.engine import Job
from bruit.tasks import Mean
from bruit.trace import Meetings, Trace

ENGINES = [br.Bulk(), br.Events()]


def column(*values: float) -> Mean:
    return Mean(np.array(values, float)[:, None])


def result(algorithm, graph, task, steps, **options) -> list[float]:
    return (
        br.run(algorithm, graph, task, steps=steps, evaluate_every=0, **options)
        .estimates[:, 0]
        .tolist()
    )


def trace_of(graph, pairs: list[tuple[int, int]]) -> Trace:
    a, b = np.array(pairs, np.int64).T
    return Trace(
        peers=graph.n, steps=len(pairs), meetings=Meetings(np.arange(len(pairs), dtype=float), a, b)
    )


def visits_of(graph, visits: list[int]) -> Trace:
    return trace_of(graph, list(zip([visits[0], *visits[:-1]], visits, strict=True)))


@pytest.mark.parametrize("engine", ENGINES, ids=repr)
class TestGossip:
    def test_synchronous_gossip(self, engine):
        # gossip:GO-1
        found = result(br.Averaging(), path(4), column(1, 2, 3, 10), 3, engine=engine)
        assert found == pytest.approx([1.96296296, 3.07407407, 4.81481481, 6.14814815])
        found = result(br.Averaging(), ring(5), column(1, 0, 0, 0, 0), 4, engine=engine)
        assert found == pytest.approx(
            [0.234567901, 0.209876543, 0.172839506, 0.172839506, 0.209876543]
        )

    def test_one_step_on_a_complete_graph_is_exact(self, engine):
        # gossip:GO-1
        assert result(
            br.Averaging(), complete(5), column(1, 2, 3, 4, 10), 1, engine=engine
        ) == pytest.approx([4] * 5)

    def test_chebyshev_with_the_printed_gamma(self, engine):
        # gossip:GO-2
        found = result(br.Chebyshev(), ring(6), column(1, 2, 3, 4, 5, 6), 3, engine=engine)
        assert found == pytest.approx(
            [3.36866573, 3.47466292, 3.36866573, 3.63133427, 3.52533708, 3.63133427]
        )
        assert br.Chebyshev().prepare(ring(6), 3).gamma == pytest.approx(1.2880201)

    def test_chebyshev_keeps_the_consensus_of_a_complete_graph(self, engine):
        # gossip:GO-2, limits: with gap 1 the printed gamma would destroy what one step reached.
        assert result(
            br.Chebyshev(), complete(4), column(1, 2, 3, 10), 3, engine=engine
        ) == pytest.approx([4] * 4)

    def test_gossip_gradient_descent(self, engine):
        # gossip:DS-1
        found = result(br.GossipSGD(rate=0.5), path(3), column(0, 3, 6), 2, engine=engine)
        assert found == pytest.approx([0.916666667, 2.25, 3.58333333])


def test_randomized_gossip_on_a_given_sequence():
    # gossip:GO-3
    given = trace_of(path(4), [(0, 1), (1, 2), (2, 3)])
    found = result(br.PairAveraging(), path(4), column(1, 2, 3, 10), 3, given=given)
    assert found == pytest.approx([1.5, 2.25, 6.125, 6.125])


def test_random_walk_sgd_on_a_given_walk():
    # gossip:DS-2: c = (1, 2, 3, 10), visits 0, 1, 2, 1: 0.5, 1.25, 2.125, 2.0625
    given = visits_of(path(4), [0, 1, 2, 1])
    run = br.run(
        br.WalkSGD(rate=0.5), path(4), column(1, 2, 3, 10), steps=4, given=given, watch=range(4)
    )
    assert [float(message.row[0, 0]) for message in run.trace.received[1:]] == pytest.approx(
        [0.5, 1.25, 2.125]
    )
    assert run.estimates[1, 0] == pytest.approx(2.0625)


class Told(Dice):
    """Dice that fall as the example says: the normal of (peer, its own count)."""

    def __init__(self, normals: dict[tuple[int, int], float]) -> None:
        super().__init__()
        self.normals = normals

    def _secret(self) -> bytes:
        return b"0" * 16

    def normal(self, purpose, lanes, steps, use=0, count=1, run=0):
        assert purpose == "noise"
        return np.array(
            [[self.normals[int(peer), int(step)]] for peer, step in zip(lanes, steps, strict=True)]
        )


@pytest.mark.parametrize(("cap", "last"), [(None, -0.27216), (1, -0.0852)])
def test_private_walk_with_and_without_cap(cap, last):
    # walk:RW-7: y = (1, -1, .5), walk 0 2 1 1, normals .3 -.7 1.1 .2, gamma .1, Delta 2, z .5, g =
    # 2 (x - y).
    # A task whose gradient is x - y takes twice the step and half the noise.
    graph, dice = complete(3), Told({(0, 1): 0.3, (2, 1): -0.7, (1, 1): 1.1, (1, 2): 0.2})
    ledger = Ledger(peers=3)
    door = TaskDoor(
        task=column(1, -1, 0.5),
        mechanism=br.Gaussian(clip=50.0, sigma=0.5, arithmetic="ideal"),
        dice=dice,
        ledger=ledger,
    )
    given = visits_of(graph, [0, 2, 1, 1])
    job = Job(
        algorithm=br.WalkSGD(rate=0.2, cap=cap),
        graph=graph,
        door=door,
        dice=dice,
        steps=4,
        ledger=ledger,
        watch=frozenset(range(3)),
        given=given,
    )
    outcome = br.Bulk().execute(job)
    tokens = [float(message.row[0, 0]) for message in outcome.trace.received[1:]]
    assert tokens == pytest.approx([0.17, 0.306, -0.0652])
    assert outcome.state.token[1, 0] == pytest.approx(last)
    assert len(ledger) == 4
    assert ledger.counts()[1, ledger.is_data()].sum() == (2 if cap is None else 1)


def test_a_rest_makes_early_returns_silent():
    # walk:RW-7 cool-down: peer 1 returns after 1 hop with rest 2 and only adds noise, here none.
    given = visits_of(complete(3), [0, 2, 1, 1])
    run = br.run(
        br.WalkSGD(rate=0.2, rest=2), complete(3), column(1, -1, 0.5), steps=4, given=given
    )
    assert run.facts().releases().tolist() == [1, 1, 1]


@pytest.mark.parametrize(
    ("graph", "square", "steps"),
    [(hypercube(11), 1.0, 19), (ring(16), 1.0, 13), (hypercube(4), 0.5, 5)],
)
def test_the_horizon_of_muffliato(graph, square, steps):
    # gossip:MUF-4
    assert br.muffliato(graph, square**0.5, spread=0.25).steps == steps


def test_the_horizon_of_randomized_muffliato():
    # gossip:MUF-7, the correct one of the two
    preset = br.randomized_muffliato(ring(6), 1.0, spread=0.25)
    assert preset.algorithm.schedule.activations == 33


def test_butterfly_muffliato_is_exact():
    # gossip:MUF-X2
    graph = br.graphs.butterfly(8)
    preset = br.butterfly_muffliato(graph, 1.0)
    assert preset.steps == 3
    found = result(preset.algorithm, graph, column(*range(8)), preset.steps)
    assert found == pytest.approx([3.5] * 8, abs=1e-12)


@pytest.mark.slow
def test_mean_square_error_of_noisy_gossip():
    # gossip:MUF-4: ring(6), x = 1..6, sigma^2 = 0.25, T = 3: (1/2n) sum E|x_v - mean|^2 =
    # 0.0273250691 accelerated,
    # 0.112482853 plain. Mean of 600 runs, within 6 standard errors: a false alarm is rarer than
    # 1e-6.
    noise = br.Gaussian(clip=100.0, sigma=0.5)
    for algorithm, wanted in ((br.Chebyshev(), 0.0273250691), (br.Averaging(), 0.112482853)):
        runs = [
            br.run(
                algorithm,
                ring(6),
                column(1, 2, 3, 4, 5, 6),
                privacy=noise,
                steps=3,
                seed=seed,
                evaluate_every=0,
            ).estimates
            for seed in range(600)
        ]
        errors = ((np.array(runs) - 3.5) ** 2).sum(axis=(1, 2)) / 12
        assert abs(errors.mean() - wanted) < 6 * errors.std() / 600**0.5


@pytest.mark.parametrize(
    ("make", "word"),
    [
        (lambda: br.GossipSGD(mixing=0), "mixing >= 1"),
        (lambda: br.GossipSGD(rate=0.0), "rate > 0"),
        (lambda: br.WalkSGD(rest=0), "rest >= 1"),
        (lambda: br.WalkSGD(cap=0), "cap >= 1"),
        (lambda: br.muffliato(ring(6), 0.0), "sigma > 0"),
        (lambda: br.muffliato(ring(6, plus=0), 1.0), "gap"),
        (lambda: br.muffliato(br.graphs.butterfly(8), 1.0), "one fixed graph"),
        (lambda: br.butterfly_muffliato(ring(6), 1.0), "butterfly:64"),
        (lambda: br.Chebyshev().prepare(ring(6, plus=0), 3), "spectral gap"),
        (lambda: br.Chebyshev().prepare(br.graphs.butterfly(8), 3), "one fixed graph"),
        (lambda: algorithm_from({"name": "gossip-sdg"}), "did you mean 'gossip-sgd'"),
        (lambda: algorithm_from({"name": "gossip-sgd", "rat": 1}), "did you mean 'rate'"),
        (lambda: algorithm_from({"name": "gossip-sgd", "rate": "fast"}), "rate = 'fast'"),
        (lambda: algorithm_from({}), "no algorithm None"),
    ],
)
def test_impossible_algorithms(make, word):
    with pytest.raises(br.ConfigError, match=word):
        make()


@pytest.mark.parametrize("name", catalog())
def test_descriptions_read_back(name):
    made = catalog()[name]()
    assert algorithm_from(made.describe()) == made
