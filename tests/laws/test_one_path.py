"""One path for all numbers: tables, summaries, pairs, groups and what is learned are read off the
same charge.

Over the whole catalog: as agreed, with a missed exchange, under churn, and with two sizes of noise.
"""

import ast
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

import bruit as br
from bruit.algorithms.algorithm import Algorithm, catalog
from bruit.errors import PrivacyError
from bruit.graphs import butterfly, complete, given, grid, path, ring, star
from bruit.privacy.theorems.arrived import Arrived
from bruit.privacy.theorems.consensus import ExactConsensus
from bruit.privacy.theorems.descent import FixedGradients
from bruit.privacy.theorems.gopa import complete_theta
from bruit.privacy.theorems.gossip import ExactGossip
from bruit.privacy.theorems.last_round import LastRound
from bruit.privacy.toolbox.gaussian import epsilon_of
from bruit.runs.run import rehearse
from bruit.show.report.story import tell
from bruit.tasks.task import Constants
from bruit.testing import small_task, suited

DELTA = 1e-6
NOISE, MORE = br.Gaussian(clip=2.0, sigma=3.0), br.Gaussian(clip=2.0, sigma=7.0)
WALKS = Constants(
    2.0, 1.0, 0.0, "declared"
)  # as of normalized rows, so that theorems on walks speak
STRAIGHT = Constants(2.0, 0.0, 0.0, "declared")  # gradients that do not react


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


def made(algorithm, graph, noise=NOISE, steps=5, **options):
    run = br.run(
        algorithm,
        graph,
        small_task(graph.n),
        privacy=noise,
        steps=steps,
        evaluate_every=0,
        **options,
    )
    run.constants = WALKS
    return run


def agreed(algorithm, graph):
    return made(algorithm, graph)


def missed(algorithm, graph):
    run = made(algorithm, graph)
    run.trace.missed = 1
    return run


def churned(algorithm, graph):
    return made(algorithm, graph, engine=br.Events(churn=0.3), seed=3)


def two_sizes(algorithm, graph):
    return made(algorithm, graph, MORE, 4, after=made(algorithm, graph), carry="nothing")


def same(first, second):
    return first == second or np.isclose(first, second, rtol=1e-7, atol=1e-9)


def check_one_path(run):
    """Every way of asking gives the same number."""
    accountant, story, n = run.accountant(), tell(run, DELTA), run.n
    m, summary, all_views = (
        accountant.losses(),
        accountant.summary(DELTA),
        accountant.charges(DELTA),
    )
    assert np.array_equal(story.losses, m, equal_nan=True)
    assert story.summary == summary
    shown = story.epsilons(m, story.rounding)
    assert np.all(~(story.epsilons(m) < shown))  # pairs that are joined count the largest rounding
    for v in range(n):
        charge, learned = accountant.charge(v, DELTA), accountant.learned(v, DELTA)
        assert np.isnan(learned[v])
        for u in (u for u in range(n) if u != v):
            pair = accountant.guarantee(u, v, DELTA)
            epsilon = float(pair.epsilon(DELTA))
            assert same(pair.loss, m[u, v])
            assert same(charge.loss[u], all_views.loss[u, v])
            assert same(learned[u], epsilon)
            assert same(shown[u, v], epsilon)
            assert summary.epsilons[0] >= epsilon * (1 - 1e-9)
            assert float(accountant.guarantee(u, None, DELTA).epsilon(DELTA)) >= epsilon * (
                1 - 1e-9
            )
    worst = accountant.guarantee(*story.worst, DELTA)
    assert same(summary.epsilons[0], float(worst.epsilon(DELTA)))
    assert (summary.theorem, summary.spec) == (worst.theorem, worst.spec)
    if np.isinf(m[~np.eye(n, dtype=bool)]).any():
        assert summary.epsilons[0] == summary.epsilons[2] == np.inf
    members = tuple(range(1, n))
    group = accountant.guarantee(members, 0, DELTA)
    assert all(
        group.epsilon(DELTA) >= accountant.guarantee(u, 0, DELTA).epsilon(DELTA) * (1 - 1e-9)
        for u in members
    )


@pytest.mark.parametrize("how", [agreed, missed, churned, two_sizes], ids=lambda how: how.__name__)
@pytest.mark.parametrize(
    "algorithm", [*(kind() for kind in catalog().values()), TwoSizes()], ids=lambda a: a.name()
)
def test_all_ways_of_asking_give_the_same_number(algorithm, how):
    check_one_path(how(algorithm, suited(algorithm, grid(2, 2))))


@pytest.mark.parametrize(
    "run",
    [
        lambda: made(br.GossipSGD(mixing=3), butterfly(4), steps=7),
        lambda: made(br.GossipSGD(), complete(4)),
        lambda: made(br.GossipSGD(mixing=2), given([ring(4), complete(4)]), steps=5),
        lambda: made(br.Averaging(), butterfly(4), engine=br.Events(churn=0.3)),
        lambda: made(br.Renoised(tau=0.3), complete(4)),
        lambda: made(br.RingSum("shared"), ring(4), steps=9),
        lambda: made(br.FedAvg(ratio=3.0), complete(4)),
        lambda: made(br.FederatedADMM(noise="server"), star(4)),
        lambda: made(br.WalkSGD(cap=1), complete(4), steps=9),
        lambda: made(br.Averaging(), star(4), noise=None),
        lambda: made(br.Averaging(), star(4), br.Gaussian(clip=1.0, sigma=0.0)),
        lambda: made(br.Averaging(), star(4), after=made(br.GossipSGD(), star(4), MORE)),
    ],
    ids=range(12),
)
def test_so_do_special_matrices_and_runs_without_noise(run):
    check_one_path(run())


@pytest.mark.slow
def test_reports_in_a_token_cost_no_more_than_when_everybody_sees_them():
    noise, values = br.RandomizedResponse(4, 0.9), np.eye(4)[np.arange(6) % 4]
    walk = br.TokenHistogram(schedule=br.Walk())
    run = br.run(
        walk, complete(6), br.tasks.Mean(values), privacy=noise, steps=40, evaluate_every=0
    )
    accountant = run.accountant()
    learned, local = accountant.learned(0), accountant.learned(None)
    assert np.all(learned[1:] <= local[1:] * (1 + 1e-9))
    for u in (1, 2):
        assert same(float(accountant.guarantee(u, 0).epsilon(DELTA)), learned[u])
    assert run.summary().epsilons[0] >= learned[1:].max()


@pytest.mark.slow
def test_noise_that_is_not_gaussian_is_never_told_as_if_it_were():
    """One kind of noise: releases are counted. Several: there is no unit, and the table says what
    everybody sees."""
    laplace = br.Laplace(clip=2.0, scale=4.0)
    alone = made(br.Averaging(), ring(4), laplace)
    assert alone.guarantee(of=1, seen_by=0).loss == 1
    assert np.nanmax(alone.losses()) == 1
    mixed = made(
        br.Averaging(), ring(4), laplace, after=made(br.Averaging(), ring(4)), carry="nothing"
    )
    with pytest.raises(PrivacyError, match="ask for the epsilon of one pair"):
        mixed.losses()
    assert np.isnan(mixed.guarantee(of=1, seen_by=0).loss)
    pair = float(mixed.epsilon(of=1, seen_by=0))
    assert mixed.summary().epsilons[0] >= pair > 0
    assert np.allclose(mixed.accountant().learned(0)[1:], pair)


def test_a_missed_hop_of_a_ring_sum_is_infinite_in_the_table_too():
    """The values of most hops leave without noise of their own: 9.25 once stood in the table,
    proven."""
    run = rehearse(br.RingSum(), ring(5), br.Gaussian(clip=1.0, sigma=1.5), 15)
    assert np.isfinite(run.summary().epsilons[0])
    run.trace.missed = 1
    assert run.epsilon(of=1, seen_by=3) == np.inf
    assert run.summary().epsilons == (np.inf, np.inf, np.inf)
    assert np.isinf(run.losses()[~np.eye(5, dtype=bool)]).all()


def test_two_sizes_of_noise_convert_by_their_own_multipliers():
    """7.29 once stood in the table, 81.7 was said of the pair."""
    run = rehearse(TwoSizes(), ring(5), br.Gaussian(clip=1.0, sigma=0.5), 3)
    assert run.losses()[1, 3] == pytest.approx(5.0)  # 1 with all of the noise, 4 with half of it
    assert run.summary().epsilons[0] == pytest.approx(epsilon_of(np.sqrt(5) / 0.25, DELTA))
    assert run.summary().epsilons[0] == pytest.approx(81.7, abs=0.05)
    assert float(run.epsilon(of=1, seen_by=3)) == pytest.approx(run.summary().epsilons[0])


# Theorems see graphs as they were, and know whom they speak of.


@pytest.mark.parametrize("graph", [ring(8), given([ring(8), star(8)])], ids=["fixed", "sequence"])
def test_gopa_has_no_canceling_noise_on_links_that_were_down(graph):
    run = made(
        br.Gopa(), graph, br.Gaussian(clip=1.0, sigma=2.0), 3, engine=br.Events(churn=0.3), seed=0
    )
    down = set(zip(*(side.tolist() for side in run.trace.faults.in_round(0)), strict=True))
    assert {(1, 2), (2, 3), (3, 4)} <= down  # nobody shares noise with peers 2 and 3
    assert run.guarantee(of=3, seen_by=0).loss == pytest.approx(1.0)
    assert "all neighbors of peer 2" in run.epsilon(of=2, seen_by=0).why()


def test_gopa_of_no_rounds_hands_on_what_it_never_masked():
    first = rehearse(br.Gopa(), complete(5), NOISE, 0)
    assert first.epsilon(of=2, seen_by=0) == 0
    then = br.run(
        br.Gopa(), complete(5), br.tasks.Mean(np.zeros((5, 1))), privacy=NOISE, steps=3, after=first
    )
    assert float(then.epsilon(of=2, seen_by=0)) == pytest.approx(float(first.epsilon(of=2)))
    whole = rehearse(br.Gopa(), complete(5), NOISE, 1)
    after = br.run(
        br.Gopa(), complete(5), br.tasks.Mean(np.zeros((5, 1))), privacy=NOISE, steps=3, after=whole
    )
    assert after.guarantee(of=2, seen_by=0).loss == pytest.approx(complete_theta(4, 1.0, 10.0))


def test_theorems_reach_graphs_through_facts_only():
    """The agreed graph, with links in it that were down, is read in one file."""
    package = Path(br.__file__).parent / "privacy"
    found = {
        file.relative_to(package).as_posix()
        for file in package.rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.Attribute) and node.attr == "agreed"
    }
    assert found == {"theorem.py"}


def test_every_theorem_names_its_algorithms():
    for name, kind in catalog().items():
        for theorem in kind().guarantees():
            assert name in theorem.about
            assert set(theorem.about) <= set(catalog())


@pytest.mark.parametrize("name", [name for name, kind in catalog().items() if kind().guarantees()])
def test_theorems_refuse_other_algorithms_misses_and_unequal_noise(name):
    facts = made(catalog()[name](), suited(catalog()[name](), grid(2, 2))).facts()
    for theorem in catalog()[name]().guarantees():
        for other in (*sorted(set(catalog()) - set(theorem.about)), "mine", ""):
            with pytest.raises(PrivacyError, match="says nothing of another"):
                theorem.check(replace(facts, algorithm=other))
        if theorem.failures:
            theorem.check(replace(facts, missed=1))
        else:
            with pytest.raises(PrivacyError, match="1 exchanges were missed"):
                theorem.check(replace(facts, missed=1))
        with pytest.raises(PrivacyError, match="noise of different sizes"):
            theorem.check(replace(facts, unequal=True))


@dataclass(frozen=True)
class Twice(br.Averaging):
    """A child of averaging that says something else."""

    def absorb(self, state, inbox, home):
        twice = 2 * inbox.mix()
        return type(state)(twice, twice)


def test_a_child_of_an_algorithm_is_another_algorithm():
    told = made(Twice(), path(4), steps=2).epsilon(of=3, seen_by=0)
    assert told.guarantee.theorem.startswith("local DP")
    assert "about averaging, and this is twice" in told.why()


# Groups.


def test_groups_of_protocols_nobody_knows_cost_no_less_than_their_members():
    """Pair averaging once got 0, proven, from the rows of plain averaging."""
    for algorithm in (
        br.Gopa(),
        br.GossipSGD(),
        br.RingSum(),
        br.Renoised(),
        TwoSizes(),
        br.PairAveraging(),
    ):
        run = made(algorithm, star(6))
        told = run.guarantee([2, 3], 1)
        assert told.loss >= max(run.guarantee(u, 1).loss for u in (2, 3)) * (1 - 1e-9)
        assert float(told.epsilon(DELTA)) >= max(float(run.epsilon(u, 1, DELTA)) for u in (2, 3))
    for run in (missed(br.Averaging(), star(6)), churned(br.Chebyshev(), star(6))):
        told = run.guarantee([2, 3], 1)
        assert told.theorem.startswith("local DP")
        assert told.loss == 2.0


def test_groups_of_pair_averaging_are_those_of_its_meetings():
    run = rehearse(br.PairAveraging(br.Pairs(activations=40)), path(5), NOISE, 2, seed=1)
    assert run.guarantee([3, 4], 0).loss == pytest.approx(2.0)


@pytest.mark.parametrize(
    "algorithm",
    [br.Averaging(), br.Chebyshev(), br.PairAveraging(), br.Renoised(), br.Gopa()],
    ids=repr,
)
def test_a_group_costs_at_most_what_its_members_add_up_to(algorithm):
    run = rehearse(algorithm, grid(2, 3), NOISE, 3)
    one = [run.guarantee(u, 0).loss for u in (2, 4, 5)]
    group = run.guarantee([2, 4, 5], 0)
    assert max(one) - 1e-9 <= group.loss <= min(3.0, sum(np.sqrt(one)) ** 2) + 1e-6
    assert (group.of, group.status) == ("peers 2, 4, 5 together", "proven")
    assert run.guarantee([4], 0).loss == pytest.approx(one[1])
    assert run.guarantee([2, 4, 5]).loss == pytest.approx(3.0)  # everybody looks on: their releases


# The best theorem that applies.


def test_the_last_round_of_a_butterfly_is_charged_its_view():
    """Seven exchanges: two rounds of consensus, and one exchange that does not bring peer 7 to peer
    0. 1.5 before."""
    run = rehearse(br.GossipSGD(mixing=3), butterfly(8), NOISE, 7)
    assert run.guarantee(of=7, seen_by=0).loss == pytest.approx(0.5)
    assert run.losses()[7, 0] == pytest.approx(0.5)


def test_the_least_of_the_theorems_that_hold_is_taken():
    """With gradients that do not react all three theorems of gossip descent hold; none is the best
    everywhere."""
    run = made(br.GossipSGD(mixing=2), given([complete(5), path(5), ring(5)]), steps=9)
    run.constants = STRAIGHT
    accountant = run.accountant()
    found = accountant.applicable()[0]
    assert [type(theorem) for theorem, _ in found] == [ExactConsensus, FixedGradients, LastRound]
    each = np.stack([theorem.matrix(accountant.facts) for theorem, _ in found])
    m = accountant.losses()
    assert np.allclose(
        m, np.minimum(each.min(axis=0), accountant.facts.releases()[:, None]), equal_nan=True
    )
    assert len(np.unique(np.argmin(each[:, ~np.eye(5, dtype=bool)].round(9), axis=0))) > 1
    of, seen_by = np.unravel_index(np.nanargmin(m - each[0]), m.shape)
    told = accountant.guarantee(int(of), int(seen_by))
    assert told.loss < each[0, of, seen_by] - 1e-3
    assert told.theorem in (FixedGradients.title, LastRound.title)


def test_a_sharp_theorem_needs_no_other(monkeypatch):
    """Equalities are not compared with bounds, which would cost time and change nothing."""
    monkeypatch.setattr(LastRound, "losses", lambda *_: pytest.fail("was asked"))
    run = rehearse(br.GossipSGD(mixing=3), butterfly(8), NOISE, 6)
    assert run.guarantee(of=7, seen_by=0).loss == pytest.approx(0.5)
    assert ExactGossip().sharp(rehearse(br.Averaging(), ring(4), NOISE, 2).facts())
    assert not Arrived().sharp(rehearse(br.Personalized(), ring(4), NOISE, 2).facts())
