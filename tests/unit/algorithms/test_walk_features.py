"""Walks with projection, burn-in, flush, falling steps, published ends, several tokens
(walk:RW-3..7)."""

import math

import numpy as np
import pytest

import bruit as br
from bruit.algorithms.task_door import TaskDoor
from bruit.graphs import complete, ring
from bruit.peers.engine import Network
from bruit.privacy.events import Mask
from bruit.privacy.ledger import Ledger
from bruit.privacy.theorems.walk import RealizedWalk
from bruit.privacy.theorems.walk_realized import visits, walk_losses
from bruit.randomness import Dice
from bruit.runs.engines.engine import Job
from bruit.runs.engines.replay import compare
from bruit.runs.run import last_tokens, several_tokens
from bruit.tasks import Logistic, Mean, Records
from bruit.testing import check_algorithm, task_for
from bruit.trace import Meetings, Trace

NOISE = br.Gaussian(clip=1.0, sigma=1.5, arithmetic="ideal")
FEATURES = [
    br.WalkSGD(decay=0.5),
    br.WalkSGD(bound=0.3),
    br.WalkSGD(burn_in=3),
    br.WalkSGD(flush=2),
    br.WalkSGD(rate=1.0, cap=2, rest=2, decay=0.7, bound=0.5, burn_in=2, flush=2, published=True),
    br.WalkSGD(schedule=br.Walk(order="ring")),
]


def normalized(peers, seed=0):
    """Logistic records with rows of length one: the walk theorem's constants are declared."""
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(3 * peers, 4))
    owners = np.repeat(np.arange(peers), 3)
    labels = np.where(rng.random(3 * peers) < 0.5, 1.0, -1.0)
    return Logistic(Records.of(features, labels, owners, rows="unit"))


def given(n, path):
    hops = np.array(path, np.int64)
    return Trace(
        peers=n,
        steps=len(path),
        meetings=Meetings(np.arange(len(path), dtype=float), np.append(hops[:1], hops[:-1]), hops),
    )


def walked(algorithm, path, n, seed=1):
    """The run of an algorithm along a path of a complete graph."""
    return br.run(
        algorithm,
        complete(n),
        normalized(n),
        privacy=NOISE,
        steps=len(path),
        given=given(n, path),
        seed=seed,
        evaluate_every=0,
    )


class Told(Dice):
    """Dice that always fall the same way."""

    def __init__(self, row):
        super().__init__()
        self.row = row

    def _secret(self):
        return b"0" * 16

    def normal(self, purpose, lanes, steps, use=0, count=1, run=0):
        return np.array([self.row] * len(lanes))


@pytest.mark.parametrize("algorithm", FEATURES, ids=repr)
def test_engines_agree(algorithm):
    check_algorithm(algorithm)
    check_algorithm(algorithm, ring(6), steps=11)


@pytest.mark.parametrize("algorithm", FEATURES, ids=repr)
def test_the_compiled_walk_agrees(algorithm):
    runs = [
        br.run(
            algorithm,
            "er:12,c=2,seed=1",
            normalized(12),
            privacy=br.Gaussian(clip=0.3, sigma=0.5),
            steps=200,
            seed=3,
            evaluate_every=0,
            engine=engine,
        )
        for engine in (br.Bulk(fused=False), br.Bulk(fused=True))
    ]
    compare(*runs, tolerance=1e-9)
    assert np.array_equal(runs[0].trace.meetings.b, runs[1].trace.meetings.b)


def test_runs_are_reproduced_bit_for_bit():
    # walk:RW-16: from the walk, the flags and the seed of the noise
    first = br.run(
        FEATURES[4], complete(6), normalized(6), privacy=NOISE, steps=30, seed=8, watch=range(6)
    )
    again = br.run(
        FEATURES[4],
        complete(6),
        normalized(6),
        privacy=NOISE,
        steps=30,
        seed=8,
        watch=range(6),
        given=first.trace,
    )
    assert np.array_equal(first.state.token, again.state.token)
    for one, two in zip(first.trace.received, again.trace.received, strict=True):
        assert np.array_equal(one.row, two.row)


def test_projection_after_the_noise():
    # walk:RW-3, RW-16: unit ball, tau = (.9, .1), eta = .5, g = (-1, .2), Z = (.3, -.4)
    dice, ledger = Told([0.3, -0.4]), Ledger(peers=2)
    task = Mean(np.array([[1.9, -0.1], [0.0, 0.0]]))  # g = x - y
    noise, start = br.Gaussian(clip=9.0, sigma=1.0, arithmetic="ideal"), np.full((2, 2), [0.9, 0.1])
    door = TaskDoor(task=task, mechanism=noise, dice=dice, ledger=ledger, models=start)
    job = Job(
        algorithm=br.WalkSGD(rate=0.5, bound=1.0),
        graph=complete(2),
        door=door,
        dice=dice,
        steps=1,
        ledger=ledger,
        given=given(2, [0]),
    )
    assert br.Bulk().execute(job).state.token[0] == pytest.approx(
        [0.987440632, 0.157990501], abs=1e-9
    )


def test_a_point_inside_the_ball_stays():
    inside, unbounded = (
        br.run(algorithm, ring(6), normalized(6), steps=20, evaluate_every=0)  # without noise
        for algorithm in (br.WalkSGD(bound=1e6), br.WalkSGD())
    )
    assert np.array_equal(inside.state.token, unbounded.state.token)
    free = br.run(br.WalkSGD(), ring(6), normalized(6), privacy=NOISE, steps=20, evaluate_every=0)
    small = br.run(
        br.WalkSGD(bound=0.01), ring(6), normalized(6), privacy=NOISE, steps=20, evaluate_every=0
    )
    assert np.linalg.norm(small.estimates, axis=1).max() <= 0.01 * (1 + 1e-12)
    assert np.array_equal(small.losses(), free.losses(), equal_nan=True)


def test_averaging_is_a_special_case():
    # walk:RW-7: f_v = |x - y_v|^2 / 2 and steps 1/t give the mean of the visited values
    values = np.random.default_rng(0).normal(size=(7, 2))
    run = br.run(
        br.WalkSGD(rate=1.0, decay=1.0),
        complete(7),
        Mean(values),
        steps=50,
        seed=2,
        evaluate_every=0,
    )
    path = run.trace.meetings.b
    assert run.estimates[path[-1]] == pytest.approx(values[path].mean(axis=0))


def test_burn_in_leaves_the_token_alone():
    # walk:RW-7: no update, no noise, no observation value
    run = walked(br.WalkSGD(burn_in=3), [0, 1, 2, 3, 0, 1, 2], 4)
    assert run.ledger.column("clock").min() == 3
    assert len(run.ledger) == 4
    short = walked(br.WalkSGD(), [3, 0, 1, 2], 4)
    assert np.array_equal(run.losses(), short.losses(), equal_nan=True)
    early = walked(br.WalkSGD(burn_in=3), [0, 1, 2, 3], 4)
    assert not early.state.token[:3].any()


def test_flush_is_silent():
    run = walked(br.WalkSGD(flush=3), [0, 1, 2, 3, 0, 1, 2], 4)
    data = run.facts().data_lines()
    assert sorted(run.ledger.column("clock")[data].tolist()) == [0, 1, 2, 3]
    assert [event for event in run.ledger.events if isinstance(event, Mask)] == [Mask(1.5)]
    assert len(run.ledger) == 7


def test_a_flush_makes_publication_cheap():
    """walk:RW-14, item 4: the last contribution of a peer is seen after B silent steps, energy at
    most k^2 / B."""
    path = [0, 1, 2, 3, 4, 0, 5, 6, 7, 4, 5, 6, 7, 4, 5, 6]
    hidden = walked(br.WalkSGD(flush=8), path, 8).losses()
    told = walked(br.WalkSGD(flush=8, published=True), path, 8).losses()
    at_once = walked(br.WalkSGD(published=True), path[:8], 8).losses()
    rows, others = np.arange(4), np.arange(4)
    more = (told - hidden)[np.ix_(rows, others)]
    off = ~np.eye(4, dtype=bool)
    assert more[off].max() <= 1 / 8 + 1e-12
    assert at_once[6, 0] == pytest.approx(1.0)  # the last holder, seen at once


def test_a_published_end_is_one_more_observation():
    # walk:RW-6: (0, 1) 1.75, with the final token published 2.25
    path = [0, 2, 1, 3, 0, 0, 2, 3, 1, 2, 0, 3, 3, 2, 1, 0, 2]
    assert walked(br.WalkSGD(), path, 4).losses()[0, 1] == pytest.approx(1.75)
    told = walked(br.WalkSGD(published=True), path, 4)
    assert told.losses()[0, 1] == pytest.approx(2.25)
    assert "only the last token is published" in told.epsilon(of=0, seen_by=1).why()


def test_falling_steps_are_charged_by_the_weighted_energy():
    # walk:RW-3: eta_t = 1 / sqrt(t), contribution at t = 1 seen after 50 steps: 0.2223, not 0.02
    path = list(range(51))
    loss = walked(br.WalkSGD(decay=0.5), path, 51).losses()[0, 50]
    assert loss == pytest.approx(1 / sum(1 / t for t in range(1, 51)))
    assert loss == pytest.approx(0.2223, abs=1e-4)
    assert walked(br.WalkSGD(), path, 51).losses()[0, 50] == pytest.approx(0.02)


def test_losses_are_those_of_the_walk_accountant():
    path = np.random.default_rng(3).integers(0, 5, 60).tolist()
    run = walked(br.WalkSGD(decay=0.4, cap=4, published=True), path, 5)
    sizes = (1.0 + np.arange(60)) ** -0.4
    expected = walk_losses(visits(path, 5, cap=4, published=True, steps=sizes), [2])
    assert run.losses()[:, 2] == pytest.approx(expected, nan_ok=True)
    why = run.epsilon(of=1, seen_by=2).why()
    assert "steps falling as t^-0.4 from 0.1 <= 2/beta" in why


@pytest.mark.parametrize("decay", [0.0, 0.5])
def test_finite_precision_is_charged_also_with_falling_steps(decay):
    """fp:FP-0: losses are those of real numbers, epsilons a little above; the smaller the last
    step, the more."""
    sent, real = (
        br.run(
            br.WalkSGD(decay=decay),
            ring(6),
            normalized(6),
            privacy=noise,
            steps=40,
            evaluate_every=0,
        )
        for noise in (br.Gaussian(1.0, 1.5), NOISE)
    )
    theorem = RealizedWalk(rate=0.1, decay=decay)
    assert np.array_equal(
        theorem.matrix(sent.facts()), theorem.matrix(real.facts()), equal_nan=True
    )
    for of, seen_by in ((0, 3), (4, 1)):
        for delta in (1e-9, 1e-6):
            more = float(sent.epsilon(of, seen_by, delta)) - float(real.epsilon(of, seen_by, delta))
            assert 0 < more < 1e-3
        assert sent.guarantee(of, seen_by).status == "proven"
        assert real.guarantee(of, seen_by).status == "ideal"


def test_noise_that_is_missing_is_noticed():
    """A burn-in that the algorithm did not have, or noise in it, is refused: local DP."""
    facts = walked(br.WalkSGD(), [0, 1, 2, 3, 0, 1, 2], 4).facts()
    with pytest.raises(br.PrivacyError, match="made 4 visits but only 7"):
        RealizedWalk(rate=0.1, burn_in=3).check(facts)


def test_several_tokens_add_up():
    options = {"privacy": NOISE, "steps": 40, "seed": 5, "evaluate_every": 0}
    runs = several_tokens(br.WalkSGD(rate=0.5), complete(8), normalized(8), tokens=3, **options)
    assert [one.trace.meetings.b[0] for one in runs] == [0, 2, 5]
    paths = [one.trace.meetings.b for one in runs]
    assert not np.array_equal(paths[0][1:], paths[1][1:])
    alone = sum(walk_losses(visits(path, 8), [3]) for path in paths)
    assert runs[-1].losses()[:, 3] == pytest.approx(alone, nan_ok=True)
    found = runs[-1].guarantee(of=1, seen_by=3)
    assert found.loss == pytest.approx(alone[1])
    assert found.status == "ideal"
    assert float(runs[-1].epsilon(of=1)) > float(runs[0].epsilon(of=1))
    assert last_tokens(runs).shape == (3, 4)


def test_tokens_have_noise_of_their_own():
    """The same walk twice: what differs is the noise alone."""
    runs = several_tokens(
        br.WalkSGD(schedule=br.Walk(order="ring")),
        complete(4),
        Mean(np.zeros((4, 1))),
        tokens=2,
        privacy=NOISE,
        steps=4,
        evaluate_every=0,
    )
    assert np.abs(runs[0].estimates - np.roll(runs[1].estimates, 2, axis=0)).min() > 1e-9


def test_several_tokens_on_the_event_engine():
    options = {"privacy": NOISE, "steps": 15, "seed": 5, "evaluate_every": 0, "tokens": 2}
    bulk = several_tokens(br.WalkSGD(), ring(6), normalized(6), **options)
    events = several_tokens(
        br.WalkSGD(), ring(6), normalized(6), engine=br.Events(latency=0.3), **options
    )
    for one, two in zip(bulk, events, strict=True):
        compare(one, two)
    assert last_tokens(bulk) == pytest.approx(last_tokens(events))
    assert math.isclose(bulk[-1].epsilon(of=1, seen_by=4), events[-1].epsilon(of=1, seen_by=4))


@pytest.mark.slow
def test_several_tokens_between_real_peers():
    """One run of real sockets and journals for each token: the same hops, states, lines and losses
    as in bulk."""
    task = task_for(br.WalkSGD(), 6)
    options = {"privacy": NOISE, "steps": 15, "seed": 5, "evaluate_every": 0, "tokens": 2}
    bulk = several_tokens(br.WalkSGD(), ring(6), task, **options)
    real = several_tokens(br.WalkSGD(), ring(6), task, engine=Network(timeout=60.0), **options)
    for one, two in zip(bulk, real, strict=True):
        compare(one, two)
        assert np.array_equal(one.trace.meetings.b, two.trace.meetings.b)
    assert last_tokens(bulk) == pytest.approx(last_tokens(real), abs=1e-9)
    losses = [runs[-1].epsilon(of=1, seen_by=4) for runs in (bulk, real)]
    assert losses[0] == losses[1] > 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"algorithm": br.Averaging()}, "tokens are for walks, but averaging follows rounds"),
        ({"tokens": 0}, "at least one token walks, found tokens = 0"),
    ],
)
def test_tokens_that_cannot_walk(options, message):
    with pytest.raises(br.ConfigError, match=message):
        several_tokens(
            **{
                "algorithm": br.WalkSGD(),
                "graph": ring(4),
                "task": Mean(np.zeros((4, 1))),
                "tokens": 2,
                "steps": 3,
                **options,
            }
        )


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda: br.WalkSGD(bound=0.0), "bound > 0 .* found bound = 0.0"),
        (lambda: br.WalkSGD(flush=-1), "flush = -1"),
        (lambda: br.WalkSGD(burn_in=-2), "burn_in = -2"),
        (lambda: br.WalkSGD(decay=-0.5), "decay = -0.5"),
        (
            lambda: br.WalkSGD(burn_in=4, flush=3).prepare(ring(4), 7),
            "nobody would contribute: burn_in = 4 and flush = 3",
        ),
    ],
)
def test_refusals(act, message):
    with pytest.raises(br.ConfigError, match=message):
        act()
