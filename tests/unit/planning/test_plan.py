"""The planner: least noise by formula or search, ranked options, refusals with a reason."""

import itertools
import json
import math
from dataclasses import replace

import numpy as np
import pytest
from typer.testing import CliRunner

import bruit as br
from bruit.commands.cli import app
from bruit.errors import ConfigError, PrivacyError
from bruit.graphs import complete, hypercube, path, ring, torus
from bruit.graphs import graph as named
from bruit.planning.option import descent_error
from bruit.planning.plan import claim, plan, protocols
from bruit.planning.question import Question
from bruit.privacy.ahead.ring import ring_losses, shared_noise, spaced_noise, with_last_noise
from bruit.privacy.ahead.walk_pairs import pair_guarantee, pairwise_epsilons
from bruit.privacy.exact.all_pairs import pairwise
from bruit.privacy.formulas.shuffling import amplified
from bruit.privacy.toolbox.gaussian import epsilon_of
from bruit.runs.run import rehearse

KNOWN = {"local-dp", "central", "ring", "butterfly", "gossip", "renoised", "walk"}


def by_name(found):
    return {option.protocol: option for option in (found.chosen, *found.alternatives)}


def test_every_protocol_is_found_by_looking():
    assert set(protocols()) >= KNOWN


@pytest.mark.slow
def test_the_walk_of_the_specification():
    # walk:RW-3: n = 2000, 12 contributions, (1, 1e-6): local 14.6347, verified walk
    # 3.4030.
    found = plan(
        Question(2000, 1.0, delta=1e-6, job="learning", graph=complete(2000), contributions=12),
        "walk",
    )
    assert found.chosen.noise_multiplier == pytest.approx(3.4030, rel=0.01)
    assert found.chosen.status == "proven"
    assert by_name(found)["local-dp"].noise_multiplier == pytest.approx(14.6347, abs=1e-4)


@pytest.mark.parametrize(
    ("name", "cap", "cooldown"), [("er:16,c=1", 3, 1), ("er:24,c=1.2", 2, 5), ("torus:4x5", 3, 1)]
)
def test_a_planned_walk_keeps_every_pair_within_the_budget(name, cap, cooldown):
    graph = named(name)
    asked = Question(
        graph.n, 1.0, delta=1e-6, job="learning", graph=graph, contributions=cap, cooldown=cooldown
    )
    found = plan(asked, "walk").chosen
    assert found.status == "proven"
    assert f"cap = {cap}, rest = {cooldown}" in found.notes[0]
    bound = pairwise_epsilons(graph, found.noise_multiplier, 1e-6, cap, cooldown)
    assert np.nanmax(bound) <= 1.0 + 1e-9


def test_a_few_pairs_do_not_stand_for_all():
    """Above 12 peers noise was planned for a few pairs: 7.157 on er:16,c=1, where peer 8 is the one
    neighbor of 11."""
    graph = named("er:16,c=1")
    found = plan(
        Question(16, 1.0, delta=1e-6, job="learning", graph=graph, contributions=3), "walk"
    ).chosen
    assert pair_guarantee(graph, 11, 8, 7.157415, 3).epsilon(1e-6) == pytest.approx(
        1.0241, abs=1e-4
    )
    assert pair_guarantee(graph, 11, 8, found.noise_multiplier, 3).delta(1.0) <= 1e-6 * (
        1 + 1e-4
    )  # rounded up


def test_differential_privacy_is_claimed_of_what_is_proven_for_every_pair():
    question = Question(6, 1.0, graph=ring(6))
    found = plan(question)
    for option in (found.chosen, *found.alternatives):
        real = (
            "ideal, true of real numbers and not of what is sent: "
            if option.status == "ideal"
            else ""
        )
        assert claim(question, option).startswith(
            f"{real}(1, 1e-06)-DP at user level for the worst pair"
        )
        assert "no guarantee for any pair" in claim(replace(question, protect="mean"), option)
        assert "-DP" not in claim(replace(question, protect="mean"), option)
    rough = replace(found.chosen, status="heuristic")
    assert "-DP" not in claim(question, rough)
    assert "a heuristic, no guarantee for anybody" in claim(question, rough)


def test_a_heuristic_is_never_chosen_unless_asked_for(monkeypatch):
    graph, monkey = torus(4, 4), Question(16, 1.0, graph=torus(4, 4), protect="mean")
    best = plan(monkey).chosen
    cheap = replace(best, protocol="renoised", error=0.0, status="heuristic")
    known = {**protocols(), "renoised": lambda question: cheap}
    monkeypatch.setattr("bruit.planning.plan.protocols", lambda: known)
    assert plan(replace(monkey, graph=graph)).chosen.status == "proven"
    assert plan(replace(monkey, graph=graph), "renoised").chosen.status == "heuristic"


def test_renoised_gossip_of_many_peers_claims_what_is_proven(monkeypatch):
    """For the worst pair of a large graph two observers stood for all; local DP is what is known of
    the others."""
    monkeypatch.setattr("bruit.planning.renoised.EXACT_PEERS", 8)
    worst, mean = (
        plan(Question(12, 1.0, graph=path(12), steps=4, protect=protect), "renoised").chosen
        for protect in ("worst", "mean")
    )
    assert (worst.status, worst.loss) == ("proven", 1.0)
    assert mean.status == "heuristic"


def test_too_many_pairs_are_refused_before_they_are_computed():
    with pytest.raises(
        PrivacyError, match=r"all pairs of the 600 peers .* plan a walk on complete:600"
    ):
        plan(
            Question(
                600, 1.0, delta=1e-6, job="learning", graph=named("er:600,c=2"), contributions=2
            ),
            "walk",
        )


def test_the_printed_descent_bound():
    # walk:RW-3, Prop. 7.3: D = 2, L = 1, d = 10, sigma^2 = 8 log(1.25 / delta): G = 33.527486168,
    # bound 2.121017246.
    variance = 8 * math.log(1.25 / 1e-6)
    question = Question(
        2, 1.0, dim=10, diameter=2.0, sensitivity=2.0
    )  # L = 1 is a sensitivity of 2
    assert descent_error(question, 10**6, variance / 4) == pytest.approx(2.121017246, rel=1e-9)


@pytest.mark.parametrize("protect", ["worst", "mean"])
def test_planned_noise_keeps_the_budget_and_not_much_more(protect):
    graph = torus(4, 4)
    found = plan(
        Question(16, 1.0, delta=1e-6, job="mean", graph=graph, protect=protect), "gossip"
    ).chosen
    m = pairwise(graph, found.steps).m
    loss = np.nanmax(m) if protect == "worst" else np.max(np.nansum(m, axis=0)) / 16
    reached = epsilon_of(math.sqrt(loss) / found.noise_multiplier, 1e-6)
    assert 1.0 - 1e-6 <= reached <= 1.0 + 1e-9


def test_renoised_plan_agrees_with_the_accountant():
    graph = ring(12)
    found = plan(
        Question(12, 2.0, delta=1e-6, job="mean", graph=graph, steps=6, protect="mean"), "renoised"
    ).chosen
    run = rehearse(br.Renoised(0.1), graph, br.Gaussian(clip=0.5, sigma=found.noise_multiplier), 6)
    assert run.summary().epsilons[2] == pytest.approx(2.0, rel=1e-6)


@pytest.mark.slow
def test_a_butterfly_plan_is_the_realized_loss_of_its_labels():
    found = plan(Question(16, 1.0, delta=1e-6, job="learning", contributions=5), "butterfly").chosen
    graph = named(found.graph)
    run = rehearse(
        br.GossipSGD(mixing=4), graph, br.Gaussian(clip=0.5, sigma=found.noise_multiplier), 20
    )
    assert run.summary().epsilons[0] == pytest.approx(1.0, rel=1e-6)


def test_options_are_ranked_and_a_curator_is_never_chosen():
    found = plan(Question(64, 1.0, delta=1e-6, job="mean", graph=hypercube(6)))
    errors = [option.error for option in found.alternatives]
    assert errors == sorted(errors)
    assert found.chosen.protocol != "central"
    assert by_name(found)["central"].error <= min(errors)
    assert (
        plan(
            Question(64, 1.0, delta=1e-6, job="mean", graph=hypercube(6)), "averaging"
        ).chosen.protocol
        == "gossip"
    )


def test_a_graph_is_chosen_when_none_is_given():
    found = plan(Question(64, 1.0, delta=1e-6, job="mean", protect="mean"), "gossip")
    assert found.chosen.graph.split(":")[0] in ("hypercube", "torus", "regular", "er")


def test_caps_of_single_pairs_decide():
    caps = np.full((5, 5), np.nan)
    caps[4, 0] = 0.1  # the far end of the path, seen by the other
    loose = plan(Question(5, 1.0, delta=1e-6, job="mean", graph=path(5), steps=2), "gossip").chosen
    tight = plan(
        Question(5, 1.0, delta=1e-6, job="mean", graph=path(5), steps=2, caps=caps), "gossip"
    ).chosen
    assert tight.noise_multiplier == pytest.approx(
        loose.noise_multiplier
    )  # two rounds do not reach the far end
    longer = plan(
        Question(5, 1.0, delta=1e-6, job="mean", graph=path(5), steps=8, caps=caps), "gossip"
    ).chosen
    assert longer.noise_multiplier > loose.noise_multiplier
    m = pairwise(path(5), 8).m
    assert epsilon_of(math.sqrt(m[4, 0]) / longer.noise_multiplier, 1e-6) <= 0.1 + 1e-9


def test_those_in_the_middle_are_compared_with_and_never_chosen():
    found = by_name(plan(Question(2000, 1.0, delta=1e-6, job="mean", graph=ring(2000))))
    shuffled = found["shuffling"]
    local = float(shuffled.notes[0].split()[3].removesuffix("-LDP"))
    assert amplified(local, 1999, 1e-6).epsilon(1e-6) == pytest.approx(1.0, rel=1e-3)
    truth = math.exp(local) / (1 + math.exp(local))
    assert shuffled.error == pytest.approx(
        0.5 / (2 * truth - 1) / math.sqrt(2000), rel=1e-3
    )  # worst case: values 0, 1
    assert shuffled.to_dict(Question(2000, 1.0))["noise_multiplier"] is None
    learning = Question(100, 1.0, delta=1e-5, job="learning", graph=complete(100), contributions=1)
    rows = by_name(plan(learning))
    # perso:FL-2: averages carry sigma / sqrt(n) and sigma / n (one of n knows its own share)
    z = rows["fed-avg"].noise_multiplier
    assert rows["secure-aggregation"].noise_multiplier == pytest.approx(z / math.sqrt(99))
    assert rows["fed-avg"].error == pytest.approx(rows["local-dp"].error, rel=1e-9)
    assert rows["local-dp"].error > rows["secure-aggregation"].error
    assert (rows["secure-aggregation"].status, rows["fed-avg"].status) == ("ideal", "proven")
    assert plan(learning).chosen.protocol not in ("fed-avg", "secure-aggregation", "central")


@pytest.mark.parametrize(
    ("changes", "error", "words"),
    [
        ({"epsilon": 0.0}, PrivacyError, "positive, finite epsilon"),
        ({"epsilon": math.inf}, PrivacyError, "positive, finite epsilon"),
        ({"delta": 0.0}, PrivacyError, "delta must lie strictly"),
        ({"delta": 1.0}, PrivacyError, "delta must lie strictly"),
        ({"peers": 1}, ConfigError, "at least two peers"),
        ({"contributions": 0}, ConfigError, "at least 1"),
        ({"colluders": 16}, PrivacyError, "observers are 1 to 15"),
        ({"steps": 0}, ConfigError, "steps >= 1"),
        ({"steps": -3}, ConfigError, "steps >= 1"),
        ({"sensitivity": math.inf}, ConfigError, "sensitivity > 0"),
        ({"spread": math.nan}, ConfigError, "spread >= 0"),
        ({"graph": ring(5)}, ConfigError, "has 5 peers, the plan 16"),
        ({"caps": np.ones((3, 3))}, ConfigError, "caps are one epsilon per pair"),
        ({"caps": np.ones((16, 16)), "protect": "mean"}, PrivacyError, "contradict each other"),
    ],
)
def test_contradictory_questions_are_refused(changes, error, words):
    with pytest.raises(error, match=words):
        Question(**{"peers": 16, "epsilon": 1.0, **changes})


@pytest.mark.slow
def test_a_protocol_that_cannot_says_why():
    with pytest.raises(PrivacyError, match="it sums, not learns"):
        plan(Question(16, 1.0, job="learning", contributions=3), "ring")
    with pytest.raises(ConfigError, match="knows no protocol 'carrier-pigeon'"):
        plan(Question(16, 1.0), "carrier-pigeon")
    with pytest.raises(ConfigError, match="'wlak'; did you mean 'walk'"):
        plan(Question(16, 1.0), "wlak")
    assert "ring" in plan(Question(16, 1.0, job="learning", contributions=3)).refused


def test_command_has_the_keys_of_the_contract():
    ran = CliRunner().invoke(
        app,
        [
            "plan",
            "--algorithm",
            "walk",
            "--graph",
            "complete:200",
            "--contributions",
            "3",
            "--epsilon",
            "1",
            "--delta",
            "1e-6",
            "--json",
        ],
    )
    assert ran.exit_code == 0, ran.output
    about = json.loads(ran.output)
    assert {"noise_multiplier", "status", "predicted", "alternatives"} <= set(about)
    assert about["protocol"] == "walk"
    assert about["predicted"]["excess_loss"] > 0
    text = CliRunner().invoke(app, ["plan", "--peers", "16", "--protect", "mean"])
    assert text.exit_code == 0, text.output
    for words in (
        "noise multiplier",
        "predicted error of the mean",
        "user level",
        "a summary",
        "the same budget",
    ):
        assert words in text.output


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ([], "say how many peers"),
        (["--graph", "ring:8", "--peers", "9"], "contradicts the graph"),
        (["--peers", "8", "--protect", "everybody"], "worst or mean"),
        (["--trust", "missing.csv"], "cannot read missing.csv"),
        (["--trust", "missing.csv", "--graph", "ring:8"], "leave out --graph"),
    ],
)
def test_command_refuses_what_means_nothing(options, words):
    with pytest.raises((ConfigError, PrivacyError), match=words):
        CliRunner().invoke(app, ["plan", *options], catch_exceptions=False)


@pytest.mark.slow
@pytest.mark.parametrize("n", [3, 4, 7, 12])
@pytest.mark.parametrize("colluders", [1, 2])
def test_the_ring_plan_covers_every_observer(n, colluders):
    # gossip:RING-4: with the last noise no single view costs more than K = 1; two colluders around
    # a peer (n - 1) / 1.
    found = plan(Question(n, 1.0, colluders=colluders), "ring").chosen
    noise = with_last_noise(spaced_noise(n, 1) if colluders == 1 else shared_noise(n, 1))
    views = (
        [(v,) for v in range(n)] if colluders == 1 else list(itertools.combinations(range(n), 2))
    )
    worst = max(np.nanmax(ring_losses(n, noise, view, published=True)) for view in views)
    assert found.loss == pytest.approx(worst)
    assert epsilon_of(math.sqrt(worst) / found.noise_multiplier, 1e-6) <= 1.0 + 1e-9


def test_the_walk_plan_predicts_the_error_of_a_capped_walk():
    # A simulation of the plan itself: 200 walks of n hops, each peer contributes once, every hop
    # adds noise.
    # The predicted error is within 15 % (the estimate of a standard deviation from 200 runs is
    # within 15 % except with
    # probability 0.003; the seed is fixed).
    n, rng = 64, np.random.default_rng(5)
    found = plan(Question(n, 1.0, graph=complete(n)), "walk").chosen
    values = np.where(np.arange(n) < n // 2, 0.0, 1.0)  # variance 1/4, the declared spread
    errors = []
    for _ in range(200):
        seen = np.unique(rng.integers(0, n, n))
        noise = found.noise_multiplier * rng.normal() * math.sqrt(n)
        errors.append((values[seen].sum() + noise) / len(seen) - 0.5)
    assert np.sqrt(np.mean(np.square(errors))) == pytest.approx(found.error, rel=0.15)


def test_what_is_quoted_is_named_so_and_chosen_last():
    """GOPA on a random k-out graph rests on a theorem that is not proven here; it is planned when
    asked for."""
    question = Question(300, 1.0, delta=1e-6)
    asked = plan(question, "gopa").chosen
    assert (asked.graph.split(":")[0], asked.status) == ("kout", "quoted")
    found = plan(question)
    assert found.chosen.status == "proven"
    assert any(
        option.status == "quoted" and option.error < found.chosen.error
        for option in found.alternatives
    )
