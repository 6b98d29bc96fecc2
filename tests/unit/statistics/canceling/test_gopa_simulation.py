"""A simulated round: the worked example, exact cancellation, dropouts, and the planner's
options."""

import math

import numpy as np
import pytest

from bruit.errors import ConfigError, PrivacyError
from bruit.graphs import k_out, ring
from bruit.planning.plan import plan, protocols
from bruit.planning.question import Question
from bruit.privacy.ahead.gopa_k_out import Crowd, k_out_guarantee
from bruit.privacy.theorems.gopa import complete_theta
from bruit.privacy.toolbox.gaussian import epsilon_of
from bruit.statistics.average.canceling.simulation import masked_values, noise_dice, simulate
from bruit.statistics.average.canceling.terms import Terms


def terms_of(graph, width=4, **changes):
    return Terms(
        **{
            "number": 0,
            "peers": graph.n,
            "width": width,
            "clip": 10.0,
            "own_sigma": 0.5,
            "pair_sigma": 20.0,
            "degree": int(graph.degrees.max()),
            **changes,
        }
    )


def test_worked_example_of_the_protocol_and_of_a_rollback():
    """perso:GOPA-1, GOPA-7: given noises, by the same words that participants add."""
    field = terms_of(ring(4)).field
    x, own = np.array([0.2, 0.9, 0.5, 0.4]), np.array([0.05, -0.1, 0.02, 0.03])
    edges, noise = [(0, 1), (1, 2), (2, 3), (0, 3), (0, 2)], [3, -2, 1.5, 0.7, -4]
    masked = (field.encode(x) + field.encode(own))[:, None]
    words = field.encode(np.array(noise)[:, None])
    for (a, b), word in zip(edges, words, strict=True):
        masked[a] += word
        masked[b] -= word
    assert field.decode(masked).ravel() == pytest.approx([-0.05, -4.2, 8.02, -1.77], abs=1e-6)
    assert field.decode(masked.sum(axis=0)) / 4 == pytest.approx(0.5, abs=1e-6)
    three = masked[:3].sum(axis=0)
    assert field.decode(three) / 3 == pytest.approx(1.2566666667, abs=1e-6)
    rolled = three - words[2] - words[3]  # what 2 and 0 had exchanged with 3
    assert field.decode(rolled) / 3 == pytest.approx(0.5233333333, abs=1e-6)


@pytest.mark.parametrize("dropped", [(), (3, 17, 20)])
def test_noise_between_neighbors_cancels_to_the_bit(dropped):
    graph = k_out(60, 5, seed=1)
    values = np.random.default_rng(1).uniform(0, 1, (60, 4))
    terms, online = terms_of(graph), ~np.isin(np.arange(60), dropped)
    found = simulate(graph, values, terms, 2, dropped)
    draws = noise_dice(graph, values, terms, 2, online).normal(
        "noise", np.arange(60), terms.number, 0, 4
    )
    own = terms.field.encode(values) + terms.field.noise(draws, terms.own_sigma)
    assert np.array_equal(found.total, own[online].sum(axis=0, dtype=np.uint64))
    assert found.online == tuple(u for u in range(60) if u not in dropped)
    assert np.abs(found.mean - values[list(found.online)].mean(axis=0)).max() < 5 * math.sqrt(
        found.variance
    )


def test_chunks_do_not_matter(monkeypatch):
    graph, values = k_out(30, 4, seed=1), np.zeros((30, 4))
    whole = masked_values(graph, values, terms_of(graph), 1)
    monkeypatch.setattr("bruit.statistics.average.canceling.simulation.NUMBERS", 12)
    assert np.array_equal(whole, masked_values(graph, values, terms_of(graph), 1))


def test_bad_input():
    graph = ring(5)
    with pytest.raises(ConfigError, match="the terms are for 5 peers"):
        simulate(graph, np.zeros((4, 4)), terms_of(graph))
    with pytest.raises(ConfigError, match="everybody dropped out"):
        simulate(graph, np.zeros((5, 4)), terms_of(graph), dropped=range(5))


def test_values_out_of_range_are_refused_before_anything_is_summed():
    """Five values of 2e11 would each fit 24 bits after the point, and their sum would wrap
    around."""
    graph = ring(5)
    with pytest.raises(ConfigError, match=r"peer 0 is out of range: its norm 2e\+11 exceeds 10"):
        simulate(graph, np.full((5, 1), 2e11), terms_of(graph, 1))
    with pytest.raises(ConfigError, match="it would overflow"):
        terms_of(graph, 1, clip=2e11)


def options(question):
    found = plan(question)
    return {one.protocol: one for one in (found.chosen, *found.alternatives)}


def test_planned_noise_on_a_complete_graph_keeps_the_budget():
    known = options(Question(20, 1.0, delta=1e-6, job="mean", colluders=4))
    chosen = known["gopa"]
    pair = float(chosen.notes[0].split("ratio ")[1]) * chosen.noise_multiplier
    theta = complete_theta(16, chosen.noise_multiplier, pair)
    assert epsilon_of(math.sqrt(theta), 1e-6) == pytest.approx(1.0, rel=1e-3)
    assert chosen.graph == "complete:20"
    assert (
        known["central"].error
        < known["secure-aggregation"].error
        < chosen.error
        < known["local-dp"].error / 3
    )


def test_planned_noise_on_a_k_out_graph_keeps_the_budget():
    """perso:GOPA-4, at a total delta."""
    chosen = options(Question(3000, 0.5, delta=1e-6, job="mean", colluders=600))["gopa"]
    k = int(chosen.graph.split("k=")[1])
    pair = float(chosen.notes[0].split("ratio ")[1]) * chosen.noise_multiplier
    stated = k_out_guarantee(Crowd(3000, 0.8), k, chosen.noise_multiplier, pair, 1e-6)
    assert float(stated.epsilon(1e-6)) == pytest.approx(0.5, rel=1e-3)


def test_shares_of_secure_aggregation():
    """perso:FL-2: with n honest peers the error is a curator's."""
    known = options(Question(100, 1.0, delta=1e-5, job="mean"))
    assert known["secure-aggregation"].error == pytest.approx(
        known["central"].error * math.sqrt(100 / 99), rel=1e-9
    )


def test_shares_of_noise_grow_with_the_rounds_of_learning():
    """perso:FL-2: T rounds compose to mu when each has mu / sqrt(T)."""
    once, often = (
        protocols()["secure-aggregation"](
            Question(100, 1.0, delta=1e-5, job="learning", contributions=rounds)
        )
        for rounds in (1, 16)
    )
    assert often.noise_multiplier == pytest.approx(4 * once.noise_multiplier, rel=1e-12)


def test_the_planner_says_where_real_peers_find_gopa():
    told = protocols()["gopa"](Question(20, 1.0, delta=1e-6, job="mean")).notes
    assert "between real peers with `bruit mean --book`" in told


@pytest.mark.parametrize(
    ("changes", "protocol", "words"),
    [
        ({"job": "learning"}, "gopa", "it sums, not learns"),
        ({"colluders": 19}, "gopa", "only local noise protects"),
        ({"colluders": 11}, "secure-aggregation", "needs an honest majority"),
        ({"caps": np.ones((20, 20))}, "gopa", "nothing to choose"),
        ({"caps": np.ones((20, 20))}, "secure-aggregation", "nothing to choose"),
    ],
)
def test_what_cannot_be_planned_says_why(changes, protocol, words):
    with pytest.raises(PrivacyError, match=words):
        protocols()[protocol](Question(**{"peers": 20, "epsilon": 1.0, **changes}))
