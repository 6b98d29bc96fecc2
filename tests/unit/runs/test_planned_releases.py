"""How often real peers release, for every algorithm of the catalog, and noise that keeps the
epsilon for that many."""

import math
from dataclasses import dataclass, replace

import numpy as np
import pytest

import bruit as br
from bruit.algorithms.algorithm import Algorithm, catalog
from bruit.algorithms.schedules.walk.schedule import Walk
from bruit.algorithms.turns import enough
from bruit.graphs import graph
from bruit.privacy.ledger import AT_MOST, Budget
from bruit.privacy.toolbox.pld import compose_epsilon
from bruit.runs.ahead.planned_releases import planned_releases
from bruit.runs.build import build_privacy
from bruit.runs.file import PrivacySection
from bruit.runs.run import rehearse

STEPS = 12
FIXED = {  # how often a peer releases in 12 steps, if that is known before the run
    "averaging": 1,
    "chebyshev": 1,
    "dual-averaging": 1,
    "gopa": 1,
    "dual-averaging-rounds": 1,
    "fed-avg": 6,
    "federated-admm": 6,
    "gossip-sgd": 12,
    "gosta": 1,
    "mafalda": 12,
    "masked-consensus": 12,
    "gosta-rounds": 1,
    "model-propagation": 1,
    "pair-averaging": 1,
    "private-descent": 6,
    "renoised": 1,
    "ring-sum": 3,
    "robust-averaging": 1,
    "robust-sgd": 12,
    "token-histogram": 3,
    "u1-gossip": 1,
    "u2-gossip": 1,
}
LIMITED = {"masked-sgd": STEPS + 4}  # what fails is charged too, up to so many; the rest is silence
RANDOM = {  # otherwise, what makes it random
    "boosting": "the peers' clocks",
    "gossip-admm": "the peers' clocks",
    "graph-learning": "the peers' clocks",
    "personalized": "the peers' clocks",
    "walk-admm": "the random walk",
    "walk-sgd": "the random walk",
    "walk-sum": "the random walk",
}


def known(name):
    return catalog()[name](**({"noise": "shared"} if name == "ring-sum" else {}))


def place(name):
    return graph("star:4" if name in ("fed-avg", "federated-admm") else "ring:4")


def counts(algorithm, where, seed, noise=None, steps=STEPS, dim=1):
    ledger = rehearse(algorithm, where, noise, steps, seed, dim).ledger
    return ledger, int(ledger.counts()[:, ledger.is_data()].sum(axis=1).max())


def test_every_algorithm_that_real_peers_can_run_is_fixed_or_random():
    possible = {name for name, kind in catalog().items() if not kind().simulated_only}
    assert possible == FIXED.keys() | RANDOM.keys() | LIMITED.keys()


@pytest.mark.parametrize("name", LIMITED)
def test_where_attempts_fail_the_limit_is_what_is_planned_for(name):
    planned = planned_releases(known(name), graph("complete:4"), STEPS)
    assert (planned.most, planned.sure, planned.law) == (LIMITED[name], 1.0, "")
    assert counts(known(name), graph("complete:4"), 0)[1] == STEPS


@pytest.mark.parametrize("name", FIXED)
def test_where_the_number_is_fixed_every_run_has_it(name):
    planned = planned_releases(known(name), place(name), STEPS)
    assert (planned.most, planned.sure, planned.law) == (FIXED[name], 1.0, "")
    assert {counts(known(name), place(name), seed)[1] for seed in range(3)} == {FIXED[name]}
    assert "releases data at most" in planned.words()


@pytest.mark.parametrize("name", RANDOM)
def test_where_the_number_is_random_it_says_how_sure_it_is(name):
    planned = planned_releases(known(name), place(name), STEPS)
    assert (planned.sure, planned.law) == (0.999, RANDOM[name])
    assert max(counts(known(name), place(name), seed)[1] for seed in range(8)) <= planned.most
    assert (
        f"at most {planned.most} times, with probability 0.999 or more over {planned.law}"
        in planned.words()
    )
    assert "without its data" in planned.promise()


@pytest.mark.parametrize("name", sorted(FIXED.keys() | RANDOM.keys()))
@pytest.mark.parametrize(("mechanism", "epsilon"), [("gaussian", 1.0), ("laplace", 3.0)])
def test_the_noise_keeps_the_budget_for_as_many_releases_as_are_planned(name, mechanism, epsilon):
    """Exactly: to the last release that is planned the door is open."""
    if mechanism == "laplace" and name in ("ring-sum", "token-histogram"):
        pytest.skip("shares of Laplace noise do not add up, and histograms are answers")
    algorithm, where = known(name), place(name)
    planned = planned_releases(algorithm, where, STEPS)
    section = PrivacySection(mechanism=mechanism, epsilon=epsilon, delta=1e-6)
    noise = build_privacy(section, algorithm, where, STEPS, 0, 3, planned=planned)
    if mechanism == "laplace":
        assert planned.most / noise.noise_multiplier == pytest.approx(epsilon, rel=1e-9)
        assert planned.most / noise.noise_multiplier <= epsilon * AT_MOST
        return
    ledger, seen = counts(algorithm, where, 0, noise, dim=3)
    whole = max(Budget(epsilon, 1e-6).spent(ledger, peer) for peer in range(where.n))
    assert whole <= epsilon * AT_MOST
    if seen == planned.most:
        assert whole == pytest.approx(epsilon, rel=1e-3)
    else:
        data = [
            event for event, reads in zip(ledger.events, ledger.is_data(), strict=True) if reads
        ]
        whole = max(compose_epsilon([(event, planned.most)], 1e-6) for event in data)
        assert epsilon * 0.999 < whole <= epsilon * AT_MOST


def test_randomized_responses_add_up_to_the_budget_and_not_a_float_more():
    for epsilon in (0.05, 0.3, 1.0, 2.0, 7.0):
        for steps in (3, 10, 70):
            algorithm, where = br.TokenHistogram(), graph("ring:3")
            planned = planned_releases(algorithm, where, steps)
            section = PrivacySection(mechanism="randomized-response", epsilon=epsilon)
            noise = build_privacy(section, algorithm, where, steps, 0, 4, planned=planned)
            assert planned.most * noise.event().epsilon <= epsilon * AT_MOST


def test_a_simulation_is_made_for_the_walk_that_it_runs():
    algorithm, where = br.WalkSum(), graph("ring:4")
    section = PrivacySection(epsilon=1.0)
    sizes = {build_privacy(section, algorithm, where, 200, seed).sigma for seed in range(3)}
    assert len(sizes) > 1
    planned = build_privacy(
        section, algorithm, where, 200, 0, planned=planned_releases(algorithm, where, 200)
    )
    assert planned.sigma > max(sizes)


@pytest.mark.parametrize("updates", [None, 4])
def test_a_turn_of_graph_learning_is_not_charged_as_two(updates):
    """Counted line by line: a gradient in turns of learning, up to `updates`, and a loss in every
    fifth turn; planned were two releases for every turn."""
    algorithm = br.GraphLearning(look=2, learn=3, updates=updates)
    where, steps = graph("complete:4"), 40
    for seed in range(3):
        run = rehearse(algorithm, where, None, steps, seed)
        turns = np.bincount(np.concatenate((run.trace.meetings.a, run.trace.meetings.b)))
        made = run.ledger.counts()[:, run.ledger.is_data()].sum(axis=1)
        gradients = made - 2 - turns // 5
        assert (gradients >= 0).all()
        assert (gradients <= (turns if updates is None else 4)).all()
        assert (made <= [algorithm.released(int(one)) for one in turns]).all()
        assert updates is None or (gradients == 4).all()
    planned = planned_releases(algorithm, where, steps).most
    turns = enough(algorithm.schedule, where, steps, algorithm.turns(where, steps)).turns
    assert planned == 2 + min(turns, updates or turns) + turns // 5 < 2 + 2 * turns


def test_the_number_for_graph_learning_is_reached_but_for_one():
    """Two peers whose meetings are in step learn in all but the first."""
    algorithm, where = br.GraphLearning(look=1, learn=500), graph("path:2")
    run = rehearse(algorithm, where, None, 40, 1)
    turns = len(run.trace.meetings.a)
    made = run.ledger.counts()[:, run.ledger.is_data()].sum(axis=1)
    assert made.tolist() == [algorithm.released(turns) - 1] * 2


def test_caps_and_drawn_participants():
    assert planned_releases(br.WalkSGD(cap=3), graph("ring:4"), 200).most == 3
    assert planned_releases(br.WalkSGD(cap=3), graph("ring:4"), 200).fixed
    assert planned_releases(br.Personalized(updates=(2, 5, 1, 1)), graph("ring:4"), 100).most == 5
    for algorithm in (br.FedAvg(participants=2), br.FederatedADMM(participants=2)):
        planned = planned_releases(algorithm, graph("star:6"), 40)
        assert planned.law == "who is drawn to take part"
        assert 7 < planned.most < 20  # of 20 iterations, a third for each peer
        assert (
            max(counts(algorithm, graph("star:6"), seed, steps=40)[1] for seed in range(8))
            <= planned.most
        )
    assert (
        planned_releases(br.GossipADMM(inner=2), graph("ring:4"), 5).most % 2 == 0
    )  # two reads a meeting


def test_after_which_round_nobody_reads_any_more():
    assert planned_releases(br.Averaging(), graph("ring:4"), 9).until == 0
    assert planned_releases(br.GossipSGD(mixing=4), graph("ring:4"), 12).until == 8
    assert planned_releases(br.WalkSum(), graph("ring:4"), 9).until == math.inf


@dataclass(frozen=True)
class Whimsical(Algorithm):
    """Rounds in which public coins say who reads: an algorithm of one's own, of which no law is
    known."""

    def start(self, home):
        return home.zeros()

    def emit(self, state, edges):
        return edges.broadcast(state)

    def absorb(self, state, inbox, home):
        return inbox.mix() + home.value(where=home.common(4)[0][home.ids] < 0.5)

    def estimate(self, state):
        return state


def test_rounds_of_which_nothing_is_known_are_all_charged():
    planned = planned_releases(Whimsical(), graph("ring:4"), 30)
    assert (planned.most, planned.sure) == (30, 1.0)


def test_silent_first_hops_are_waited_for():
    slow = br.WalkSGD(burn_in=60, flush=20)
    planned = planned_releases(slow, graph("ring:4"), 100)
    whole = planned_releases(replace(slow, burn_in=0, flush=0), graph("ring:4"), 100)
    assert 5 < planned.most < whole.most
    assert np.isinf(planned.until)
    assert isinstance(slow.schedule, Walk)


@pytest.mark.parametrize("name", FIXED)
def test_a_long_run_is_planned_from_its_beginning_as_if_it_were_counted_to_its_end(
    name, monkeypatch
):
    for steps in (150, 151, 163):
        whole = planned_releases(known(name), place(name), steps)
        with monkeypatch.context() as few:
            few.setattr("bruit.runs.ahead.planned_releases.COUNTED", 64)
            assert planned_releases(known(name), place(name), steps) == whole


@pytest.mark.parametrize("mixing", [1, 2, 3, 7, 40, 100])
def test_rounds_that_only_mix_are_not_taken_for_the_rest_of_a_long_run(mixing, monkeypatch):
    algorithm, where = br.GossipSGD(mixing=mixing), graph("ring:4")
    whole = planned_releases(algorithm, where, 205)
    assert whole.most == -(-205 // mixing)
    monkeypatch.setattr("bruit.runs.ahead.planned_releases.COUNTED", 64)
    assert planned_releases(algorithm, where, 205) == whole


def test_a_million_rounds_are_planned_without_running_a_million():
    """Every start of a real peer asks this; it once took minutes."""
    rehearsed = []

    def counting(algorithm, where, noise, steps, *more):
        rehearsed.append(steps)
        return rehearse(algorithm, where, noise, steps, *more)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("bruit.runs.ahead.planned_releases.rehearse", counting)
        planned = planned_releases(br.GossipSGD(), graph("ring:3"), 10**6)
    assert (planned.most, planned.sure, planned.until) == (10**6, 1.0, 10**6 - 1)
    assert max(rehearsed) < 10_000
