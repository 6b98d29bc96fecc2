"""Plans hold for what is sent: the run that was planned, with the noise that was planned, is within
the budget.

Each plan is run on blank data, and the accountant of the run is asked about the worst pair, finite
precision included.
"""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest

import bruit as br
from bruit.algorithms.algorithm import algorithm_from
from bruit.errors import PrivacyError
from bruit.graphs import butterfly, complete, path, ring, star, torus
from bruit.graphs import graph as named
from bruit.planning.noise import Planned
from bruit.planning.option import rounded_up
from bruit.planning.plan import plan, protocols
from bruit.planning.question import Question
from bruit.privacy.ahead.walk_pairs import pair_guarantee
from bruit.privacy.profile import Rounded
from bruit.privacy.toolbox.gaussian import epsilon_of
from bruit.privacy.toolbox.rounding import rounded_epsilon
from bruit.runs.asking import BlankProtocol
from bruit.runs.run import rehearse

TORUS = torus(3, 3)


def ratio_of(option):
    return float(option.notes[0].split()[-1])


# How a plan is run: protocol, job, colluders -> algorithm and graph, for 9 peers.
RUN = {
    ("local-dp", "mean"): lambda option: (br.Averaging(), complete(9)),
    ("local-dp", "learning"): lambda option: (br.GossipSGD(rate=0.3), complete(9)),
    ("gossip", "mean"): lambda option: (br.Chebyshev(), TORUS),
    ("gossip", "learning"): lambda option: (br.GossipSGD(rate=0.3), TORUS),
    ("butterfly", "mean"): lambda option: (br.Averaging(), butterfly(9)),
    ("butterfly", "learning"): lambda option: (
        br.GossipSGD(rate=5.0, mixing=2),
        butterfly(9, relabel=0),
    ),
    ("renoised", "mean"): lambda option: (br.Renoised(0.1), TORUS),
    ("ring", "mean"): lambda option: (br.RingSum(published=True), ring(9)),
    ("gopa", "mean"): lambda option: (br.Gopa(ratio_of(option)), complete(9)),
    ("masked-consensus", "learning"): lambda option: (
        algorithm_from(option.algorithm or {}),
        TORUS,
    ),
    ("decor", "learning"): lambda option: (algorithm_from(option.algorithm or {}), TORUS),
    ("fed-avg", "learning"): lambda option: (br.FedAvg(rate=0.3), star(9)),
}
ELSEWHERE = {
    "walk",
    "central",
    "shuffling",
}  # below; nobody in the middle is an algorithm of the package


def ran(option, job, question, algorithm=None):
    found, graph = RUN[option.protocol, job](option)
    noise = br.Gaussian(clip=0.5, sigma=option.noise_multiplier)
    return rehearse(algorithm or found, graph, noise, option.steps, dim=question.dim)


def reached(run, option, delta):
    """The worst epsilon of the run against those whom the plan is about."""
    if option.protocol == "local-dp":
        return float(run.epsilon(seen_by="everybody", delta=delta))
    table = run.accountant().table(delta).summary
    assert table.status == "proven"
    return table.epsilons[0]


@pytest.mark.parametrize("dim", [1, 40])
@pytest.mark.parametrize(
    ("epsilon", "delta"), [(0.05, 1e-6), (1.0, 1e-6), (8.0, 1e-9), (90.0, 1e-5)]
)
@pytest.mark.parametrize("job", ["mean", "learning"])
def test_the_run_that_was_planned_is_within_the_budget(job, epsilon, delta, dim):
    question = Question(9, epsilon, delta=delta, job=job, graph=TORUS, contributions=3, dim=dim)
    for name in (name for name, what in RUN if what == job):
        option = protocols()[name](question)
        run, inside = ran(option, job, question), option.finite_precision(question)
        facts = run.facts()
        amount = facts.own_rounding().max() if name == "local-dp" else facts.all_rounding()
        assert 0 < amount <= option.rounding
        assert epsilon - 2 * inside - 1e-3 <= reached(run, option, delta) <= epsilon + 1e-12, name
        assert (option.status, 0 < inside < 0.01 * epsilon) == ("proven", True)


def test_every_plan_that_says_proven_is_run_here():
    asked = [
        Question(9, 1.0, graph=TORUS),
        Question(9, 1.0, job="learning", graph=TORUS, contributions=2),
    ]
    plans = [
        (option.protocol, question.job)
        for question in asked
        for found in [plan(question)]
        for option in (found.chosen, *found.alternatives)
        if option.status == "proven"
    ]
    assert {(name, job) for name, job in plans if name not in ELSEWHERE} == set(RUN)


@pytest.mark.parametrize("algorithm", [br.Averaging(), br.Chebyshev(tuned=True)], ids=repr)
def test_a_plan_of_gossip_holds_for_plain_and_for_accelerated_gossip(algorithm):
    question = Question(9, 1.0, graph=TORUS, dim=7)
    option = plan(question, "gossip").chosen
    run = ran(option, "mean", question, algorithm)
    assert run.summary().epsilons[0] <= 1.0 + 1e-12
    assert run.facts().all_rounding() <= option.rounding


def test_a_plan_against_colluders_on_a_ring_holds_for_each_two():
    question = Question(9, 1.0, colluders=2, dim=3)
    option = plan(question, "ring").chosen
    run = ran(option, "mean", question, br.RingSum(noise="shared", published=True))
    assert run.facts().all_rounding() <= option.rounding
    assert (
        max(float(run.epsilon(seen_by=pair)) for pair in itertools.combinations(range(9), 2))
        <= 1.0 + 1e-12
    )


@pytest.mark.parametrize("epsilon", [0.2, 1.0, 6.0])
def test_a_planned_walk_holds_for_what_its_hops_send(epsilon):
    """A plan speaks before the walk: its law with the R of the hops that were made, for every
    pair."""
    question = Question(
        9, epsilon, delta=1e-6, job="learning", graph=TORUS, contributions=2, cooldown=2, dim=4
    )
    option = plan(question, "walk").chosen
    noise = br.Gaussian(clip=0.5, sigma=option.noise_multiplier)
    run = rehearse(br.WalkSGD(rate=0.3, cap=2, rest=2), TORUS, noise, option.steps, dim=4)
    amount = run.facts().all_rounding()
    assert 0 < amount <= option.rounding
    for u, v in [(0, 1), (0, 4), (3, 8)]:
        said = pair_guarantee(TORUS, u, v, option.noise_multiplier, 2, 2).profile
        assert Rounded(said, amount).epsilon(1e-6) <= epsilon + 1e-12
        assert said.epsilon(1e-6) < epsilon


def test_what_was_planned_for_real_numbers_was_too_little():
    """z = sqrt(m) / mu(epsilon), as it was planned: messages of 1000 numbers come out 4e-6 above
    epsilon = 1."""
    question, algorithm = Question(9, 1.0, graph=TORUS, steps=8, dim=1000), br.Renoised(0.1)
    losses = rehearse(algorithm, TORUS, br.Gaussian(clip=0.5, sigma=1.0), 8).losses()
    old, new = (
        math.sqrt(np.nanmax(losses)) / question.mu,
        plan(question, "renoised").chosen.noise_multiplier,
    )
    before, now = (
        rehearse(algorithm, TORUS, br.Gaussian(clip=0.5, sigma=z), 8, dim=1000)
        .summary()
        .epsilons[0]
        for z in (old, new)
    )
    assert before - 1 == pytest.approx(4.0e-6, rel=0.05)
    assert -3e-7 < now - 1 <= 0


def test_a_pair_with_a_cap_of_its_own_keeps_it_on_the_grid():
    caps = np.full((5, 5), np.nan)
    caps[4, 0], caps[0, 1] = 0.02, 30.0
    question = Question(5, 1.0, graph=path(5), steps=8, caps=caps, dim=3)
    for name in ("gossip", "renoised", "local-dp"):
        option = plan(
            question if name != "local-dp" else replace(question, steps=None), name
        ).chosen
        graph = named(option.graph) if name == "renoised" else path(5)  # weights made for caps
        algorithm = br.Averaging() if name != "renoised" else algorithm_from(option.algorithm or {})
        noise = br.Gaussian(clip=0.5, sigma=option.noise_multiplier)
        run = rehearse(algorithm, graph, noise, 8, dim=3)
        assert float(run.epsilon(of=4, seen_by=0)) <= 0.02 + 1e-12
        assert run.summary().epsilons[0] <= 1.0 + 1e-12


def test_a_budget_below_what_rounding_takes_is_refused():
    with pytest.raises(
        PrivacyError, match=r"finite precision alone takes .* of epsilon, with 1000 numbers"
    ):
        plan(Question(9, 1e-6, graph=TORUS, dim=1000), "gossip")
    assert (
        plan(Question(9, 1e-6, graph=TORUS, dim=1000)).chosen.status == "proven"
    )  # sums need no dithers


def test_a_plan_is_proven_only_if_it_says_what_is_sent():
    known = plan(Question(9, 1.0, graph=TORUS), "gossip").chosen
    assert known.status == "proven"
    with pytest.raises(PrivacyError, match="does not say what is sent"):
        replace(known, rounding=math.nan)


def test_the_rounding_of_a_plan_falls_as_its_noise_grows():
    """So that the R of less noise covers the answer."""
    for dim in (1, 30):
        amounts = [Planned(z, dim).released(5) for z in np.geomspace(1e-4, 1e3, 50)]
        assert np.all(np.diff(amounts) <= 0)


@pytest.mark.parametrize("rounding", [1e-25, 1e-14, 1e-9])
@pytest.mark.parametrize("epsilon", [0.3, 4.0, 59.9999, 60.5, 200.0])
def test_a_question_about_what_is_sent_is_the_inverse_of_the_account(epsilon, rounding):
    asked = Question(4, epsilon, delta=1e-6)
    mu = asked.sent(rounding).mu
    found = rounded_epsilon(lambda left: epsilon_of(mu, left), rounding, 1e-6)
    assert epsilon - 1e-3 <= found <= epsilon + 1e-12


@pytest.mark.parametrize("number", [4.22471, 0.53490001, 1.0, 99.99999, 1e-5, 123456.7, math.pi])
def test_noise_is_never_printed_smaller_than_it_is(number):
    assert number <= float(rounded_up(number)) <= number * (1 + 1.1e-3)


def test_an_epsilon_without_a_run_says_how_many_numbers_it_is_about():
    one, many = (
        BlankProtocol(graph="ring:8", steps=3, sigma=1.0, dim=dim)
        .rehearse()
        .epsilon(of=4, seen_by=2)
        for dim in (1, 900)
    )
    assert float(many) > float(one)
    assert (
        "assumed: a message holds 1 number, and rounding is charged for each (--dim)" in one.why()
    )
    assert "assumed: a message holds 900 numbers" in many.why()
