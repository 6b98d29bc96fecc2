"""What the proofs of fp:FP-0 to FP-3 ask of the code, where the code once did not keep it: weights,
ranges, faults."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import bruit as br
from bruit.adversary.audits.worlds import Neighbors
from bruit.algorithms.compiled.admm import _release
from bruit.algorithms.compiled.walk import logistic_steps
from bruit.algorithms.door import OnGrid
from bruit.algorithms.gossip.exchange import exchange_of
from bruit.algorithms.schedules.pairs.schedule import Pairs
from bruit.algorithms.task_door import TaskDoor
from bruit.errors import ConfigError
from bruit.graphs import butterfly, from_edges, from_matrix, given, graph, path, ring, star
from bruit.mechanisms import Gaussian
from bruit.mechanisms.gaussian import SURE
from bruit.privacy.ledger import Ledger
from bruit.privacy.theorems.meetings import ExactMeetings
from bruit.privacy.toolbox.gaussian import epsilon_of
from bruit.privacy.toolbox.rounding import (
    ASIDE,
    FARTHEST,
    allowance,
    rounded_delta,
    rounded_epsilon,
)
from bruit.randomness import Replay
from bruit.runs.engines.bulk import Bulk
from bruit.runs.engines.engine import Job
from bruit.tasks import Mean
from bruit.trace import Faults, Trace

NOISE = Gaussian(1.0, 5.0)
UNIT = 2.0**-53


def lost(n, steps, *links):
    """A trace in which these links (round, a, b) were down."""
    return Trace(
        peers=n,
        steps=steps,
        faults=Faults(*(np.array(column) for column in zip(*links, strict=True))),
    )


# weights


def given_weights(error, excess):
    """A mixing matrix whose rows add up to 1 + excess, the diagonal off by `error`."""
    share = (1 + excess) / 3
    return from_matrix(np.where(np.eye(4) > 0, error, share))


@pytest.mark.parametrize(
    "mixing",
    [
        graph("er:30,c=2,seed=1"),
        graph("er:40,c=3,seed=2,kind=sum"),
        star(9),
        ring(5),
        given_weights(5e-13, 0.0),
        given_weights(0.0, 5e-10),
        from_matrix(np.full((10, 10), 0.1)),
    ],
    ids=lambda one: one.name,
)
def test_float_weights_are_near_the_exact_ones(mixing):
    """Rounded float weights and sums are within (3 degree + 6) 2^-53 of the exact weights, rows
    that add up to 1. A given diagonal was kept when it was 1e-12 off, and rows could add up to 1 +
    1e-9 without one."""
    floats = mixing.weights
    for v in range(mixing.n):
        places = range(floats.indptr[v], floats.indptr[v + 1])
        exact = [mixing.fraction(v, int(floats.indices[k])) for k in places]
        off = sum(
            abs(Fraction(float(floats.data[k])) - weight)
            for k, weight in zip(places, exact, strict=True)
        )
        degree = int(mixing.degrees[v])
        assert sum(exact) == 1
        assert min(exact) >= -degree * UNIT
        assert (
            off <= (2 * degree + 2) * UNIT
        )  # the sum of degree + 1 products adds as many units and one more


# ranges


@pytest.mark.parametrize("sizes", [(1e-300, 1e-300), (1e-310, 1e-310), (1e308, 1e308)])
def test_a_grid_that_floats_cannot_hold_is_refused(sizes):
    """At clip = sigma = 1e-300 all messages were infinite, with the sign of the data, and epsilon
    11 was printed."""
    with pytest.raises(ConfigError, match="other units"):
        br.run(
            br.Averaging(),
            path(3),
            Mean(np.full((3, 1), sizes[0] / 4)),
            privacy=Gaussian(*sizes),
            steps=1,
        )


@pytest.mark.parametrize(
    "sizes", [(1.0, 1e-12), (1.0, 1e-170), (1e-200, 1.0), (1e250, 1e250), (1e-250, 1e-250)]
)
def test_odd_sizes_of_clip_and_noise(sizes):
    task = Mean(np.full((3, 1), sizes[0] / 4))
    run = br.run(br.Averaging(), path(3), task, privacy=Gaussian(*sizes), steps=1, evaluate_every=0)
    assert np.isfinite(run.estimates).all()
    assert run.epsilon(of=2, seen_by=1) >= epsilon_of(sizes[0] / sizes[1], 1e-6)


def test_no_number_leaves_its_range():
    """The chance of 64 deviations, times exp(epsilon) of the largest epsilon that is said and 1e15
    numbers, is far below what is set aside of the smallest delta of a float."""
    assert (
        2 * np.exp(-(SURE**2) / 2 + FARTHEST + np.log(1e15), dtype=np.longdouble) < 1e-300 * ASIDE
    )


def test_nothing_is_said_beyond_the_farthest_epsilon():
    assert rounded_epsilon(lambda left: epsilon_of(30.0, left), 1e-20, 1e-6) == pytest.approx(
        epsilon_of(30.0, 1e-6)
    )
    assert rounded_epsilon(lambda left: epsilon_of(60.0, left), 1e-20, 1e-6) == np.inf
    assert rounded_delta(
        lambda epsilon: 0.0 if epsilon > 1500 else 0.5, 1e-20, 2000.0
    ) == pytest.approx(0.5)


@pytest.mark.parametrize("delta", [1e-2, 1e-6, 1e-12, 1e-100])
@pytest.mark.parametrize("epsilon", [60.0, 200.0, 999.0])
@pytest.mark.parametrize("rounding", [1e-25, 1e-8, 1e-3, 0.0008, 0.02])
def test_beta_is_paid_by_what_is_set_aside(delta, epsilon, rounding):
    """exp(gamma) left + (1 + exp(epsilon + gamma)) beta <= delta wherever gamma <= 2, beta read off
    gamma."""
    gamma, left = allowance(rounding, delta, epsilon)
    if gamma > 2:
        return
    log_beta = -((gamma - rounding / 2) ** 2) / (2 * rounding)
    paid = np.exp(log_beta) + np.exp(epsilon + gamma + log_beta)
    assert paid <= delta * ASIDE
    assert np.exp(gamma) * left + paid <= delta


def powers(mixing, gamma, steps):
    """The matrices P_t(W), and those by which a dither of message 0 comes into states 1, 2, ..."""
    w, eye = mixing.weights.toarray(), np.eye(mixing.n)
    first, later = [eye, w], [eye, gamma * w]
    for _ in range(steps - 1):
        first.append(gamma * w @ first[-1] + (1 - gamma) * first[-2])
        later.append(gamma * w @ later[-1] + (1 - gamma) * later[-2])
    return first, later


@pytest.mark.parametrize("gamma", [0.6, 1.3, 1.9, 1.99, 2.0])
@pytest.mark.parametrize("algorithm", ["chebyshev", "gossip-sgd"])
def test_accelerated_numbers_stay_in_their_range(algorithm, gamma):
    """Rows of accelerated mixing add up to more than 1 in size, and dithers come back larger: the
    grid and rho know. For descent nothing was allowed for."""
    mixing, steps = ring(24), 30
    first, later = powers(mixing, gamma, steps)
    if algorithm == "chebyshev":
        facts = br.Chebyshev(gamma=gamma).prepare(mixing, steps).exchange
    else:
        facts = br.GossipSGD(mixing=steps, gamma=gamma).prepare(mixing, steps)
    assert max(np.abs(rows).sum(axis=1).max() for rows in first) <= facts.data
    dithers = sum((rows**2).sum(axis=1).max() for rows in later)
    assert max((rows**2).sum(axis=1).max() for rows in first) <= 1 + 1e-9
    assert np.sqrt(1 + facts.dither**2 * dithers) <= facts.noise
    if gamma > 1.5:
        assert (
            max(np.abs(rows).sum(axis=1).max() for rows in first) > exchange_of(mixing, steps).data
        )


def test_acceleration_without_bound_is_left_to_local_dp():
    """Beyond gamma = 2, and where the graph changes, numbers grow without end."""
    wild = br.rehearse(br.Chebyshev(gamma=2.5), ring(6), NOISE, steps=3)
    assert "local DP" in wild.guarantee(of=3, seen_by=0).theorem
    changing = given([ring(6), star(6)])
    task = Neighbors(np.zeros((6, 1)), np.zeros((6, 1)))
    run = br.run(
        br.GossipSGD(mixing=2, gamma=1.5), changing, task, privacy=NOISE, steps=4, evaluate_every=0
    )
    assert "local DP" in run.guarantee(of=3, seen_by=0).theorem


def test_more_meetings_than_the_grid_allows_for():
    """A peer may meet others far more often than there are units of time; each time its number
    takes a dither in."""
    facts = br.rehearse(br.PairAveraging(), star(5), NOISE, steps=3).facts()
    assert ExactMeetings().rounding(facts) < 1e-9
    few = facts.public._replace(noise=1.0 + 1e-6)  # some two meetings
    assert ExactMeetings().rounding(replace(facts, public=few)) == np.inf
    often = br.PairAveraging(schedule=Pairs(activations=10**8)).prepare(star(5), 3)
    assert often.noise**2 == pytest.approx(1 + 10**8 * often.dither**2)


# faults


def test_renoised_gossip_with_failed_links_is_charged_for_all_rounds():
    """A peer that hears nobody keeps its own state, and its roundings: 1 / (1 - w) is a fact of
    complete rounds."""
    mixing, steps = ring(6), 12
    whole = br.run(br.Renoised(), mixing, Mean(np.zeros((6, 1))), privacy=NOISE, steps=steps)
    trace = lost(6, steps, (3, 0, 1), (4, 0, 1))
    some = br.run(
        br.Renoised(), mixing, Mean(np.zeros((6, 1))), privacy=NOISE, steps=steps, given=trace
    )
    theorem = br.Renoised().guarantees()[0]
    memory = br.Renoised().prepare(mixing, steps).memory
    assert memory == pytest.approx(1.5)
    assert theorem.rounding(some.facts()) >= (steps / memory) ** 2 * theorem.rounding(
        whole.facts()
    ) * (1 - 1e-9)


def test_a_last_butterfly_round_with_a_failed_link_is_revealed():
    """Sums with a missing part have unequal coefficients and no dithers: of them nothing is proven
    (fp:FP-2)."""
    graph, algorithm = butterfly(4), br.GossipSGD(mixing=2)
    task = Neighbors(np.zeros((4, 1)), np.zeros((4, 1)))
    trace = lost(4, 4, (3, 0, 2))
    ideal = Gaussian(1.0, 5.0, arithmetic="ideal")
    real, sent = (
        br.run(algorithm, graph, task, privacy=noise, steps=4, given=trace, evaluate_every=0)
        for noise in (ideal, NOISE)
    )
    theorem = algorithm.guarantees()[0]
    assert theorem.losses(real.facts(), (0,))[3] == pytest.approx(0.5)  # of the first round
    assert (
        theorem.losses(sent.facts(), (0,))[3]
        == theorem.matrix(sent.facts())[3, 0]
        == pytest.approx(1.5)
    )
    assert not theorem.sharp(sent.facts())
    complete = br.run(algorithm, graph, task, privacy=NOISE, steps=4, evaluate_every=0)
    assert theorem.losses(complete.facts(), (0,))[3] == pytest.approx(1.0)


def test_a_butterfly_that_is_carried_on_begins_with_means():
    """It mixed the sum of four as if it were a mean: 2.0 instead of 0.5."""
    task, quiet = Mean(np.full((8, 1), 0.5)), Gaussian(1.0, 1e-3)
    first = br.run(br.Averaging(), butterfly(8), task, privacy=quiet, steps=2)
    with pytest.warns(UserWarning, match="every phase starts with the first graph of butterfly:8"):
        second = br.run(
            br.Averaging(), butterfly(8), task, privacy=quiet, steps=3, after=first, carry="state"
        )
    assert second.estimates == pytest.approx(np.full((8, 1), 0.5), abs=0.01)


# walks and servers


def test_projections_are_charged():
    """In a ball far larger than a step: projections are off by units of the last place of the
    radius, not the step."""

    def slack(bound):
        walk = br.WalkSGD(rate=1e-6, bound=bound)
        return walk.form(10**6, 100, NOISE.fine_grid, NOISE.reach).slack

    assert (
        slack(100.0) - slack(1e-12) > 100 * UNIT * min(100.0, NOISE.reach(1e-6, 1e6, 1e3)) / 10 / 2
    )


@pytest.mark.parametrize("d", [3, 300, 4000])
def test_compiled_rows_stay_in_their_ball(d):
    """Sums of squares one after the other are off by up to d / 2 units; proximal steps were
    measured against the whole clip. Rows at the edge are cut to surely inside, in exact
    arithmetic."""
    clip = 1.0
    for seed in range(0, 20, 4):
        row = np.random.default_rng(seed).standard_normal(d)
        row *= (1 + (seed - 10) * 2.0**-53) / np.linalg.norm(row)
        _release(row, clip, 0.0)
        assert sum(Fraction(float(x)) ** 2 for x in row) <= 1
    if d == 3:
        edge = np.array([1.0, 2.0**-27, 0.0])  # its float norm is 1
        _release(edge, clip, 0.0)
        assert sum(Fraction(float(x)) ** 2 for x in edge) <= 1


def test_a_compiled_walk_sends_one_zero():
    """A token of -0.3 cells became -0.0, which tells its sign."""
    token, x = np.zeros((1, 1)), np.array([-0.3])
    logistic_steps(
        path=np.array([0]),
        may=np.array([False]),
        noise=np.zeros((1, 1)),
        start=np.array([0, 0]),
        sizes=np.array([1]),
        records=np.zeros((0, 1, 8)),
        token=token,
        x=x,
        rates=np.array([1.0]),
        radius=np.inf,
        l2=0.0,
        bound=np.inf,
        clip=1.0,
        spacing=1.0,
        lattice=0.0,
        trail=np.zeros((0, 1)),
    )
    assert x[0] == 0
    assert not np.signbit(x[0])


def test_means_of_duals_stay_in_their_range():
    """Sixty members pulled one way for 100 iterations, little noise: the models were up to 2^54
    cells large."""
    mixing = from_edges(60, [(0, k) for k in range(1, 60)])
    algorithm, noise = br.FederatedADMM(noise="server"), Gaussian(1.0, 0.01)
    task = Neighbors(np.ones((60, 1)), np.ones((60, 1)))
    ledger = Ledger(peers=60)
    job = Job(
        algorithm=algorithm,
        graph=mixing,
        door=TaskDoor(task=task, mechanism=noise, dice=Replay(1), ledger=ledger),
        dice=Replay(1),
        steps=200,
        ledger=ledger,
    )
    model = Bulk().execute(job).state.model
    mask = next(event for event in ledger.events if event.kind == "mask")
    cell = noise.fine_grid(mask.sigma / noise.sigma, 2 * 101 * noise.sigma / mask.sigma, 202.0)
    assert 40 < np.abs(model).max() <= 2.0**51 * cell
    assert (np.mod(model, cell) == 0).all()
    assert mask.rounding == pytest.approx(
        OnGrid(cell, slack=cell / 2 + (60 + 808) * UNIT * 202 * (1 + SURE * mask.sigma)).rounding(
            1, mask.sigma
        )
    )
