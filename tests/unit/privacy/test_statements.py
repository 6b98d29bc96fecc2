"""Statements asked by name before there is a run: all can be asked, and none answers nonsense."""

import math

import pytest
from typer.testing import CliRunner

from bruit.commands.cli import app
from bruit.commands.listing import listing
from bruit.errors import BruitError, ConfigError
from bruit.graphs import graph as named_graph
from bruit.privacy.ahead import masked_consensus, private_graph
from bruit.privacy.ahead.statements import ask, keys, statement, statements
from bruit.privacy.guarantee import STATUSES

DUALS = {"lipschitz": 1.0, "gamma": 0.5, "sigma": 4.0, "relaxation": 0.5}
VIEW = {"graph": "ring:6", "of": 3, "seen_by": 0, "noise_multiplier": 2.0}
HIDDEN = {"n": 50, "degree": 4, "noise_multiplier": 2.0, "colluders": 2}
HISTOGRAM = {"n": 200, "cycles": 2, "values": 3, "gamma": 0.5, "delta": 1e-8, "published": True}
GIVEN = {
    "admm-consensus-noise": {
        "n": 20,
        "releases": 5,
        "lipschitz": 1.0,
        "gamma": 0.5,
        "sigma_z": 1.0,
        "relaxation": 0.5,
    },
    "admm-models": {**DUALS, "n": 20, "rounds": 5, "colluders": 2},
    "admm-models-estimate": {**DUALS, "n": 20, "rounds": 5},
    "admm-server": {**DUALS, "participations": 3},
    "admm-server-estimate": {**DUALS, "n": 20, "sampled": 5, "rounds": 4},
    "admm-token": {**DUALS, "participations": 3},
    "admm-token-estimate": {**DUALS, "n": 20, "participations": 3, "hops": 2.0},
    "admm-transcript": {**DUALS, "participations": 3},
    "composition": {"epsilons": [0.1, 0.2], "deltas": [0.0, 1e-8]},
    "fresh-hidden-graphs": {**HIDDEN, "mixing": 3, "rounds": 2, "adjacent": 1},
    "hidden-graph": {**HIDDEN, "steps": 3, "runs": 2},
    "hidden-graph-neighbor": {"n": 50, "steps": 3, "noise_multiplier": 2.0, "runs": 2},
    "last-iterate": {
        "shifts": [1.0, 0.0],
        "noise_multiplier": 2.0,
        "noise": [1.0, 1.0],
        "lipschitz": 1.0,
        "step": 0.1,
        "smoothness": 1.0,
        "contraction": 1.0,
        "silent_contracts": False,
    },
    "masked-consensus": {**VIEW, "mixing": 3, "tau": 0.2, "omega": 0.5, "rounds": 2, "first": 0},
    "neighborhood-sums": {**VIEW, "steps": 3},
    "noisy-neighborhood-sums": {
        "graph": "ring:6",
        "tau": [0.5, 0.5],
        "of": 3,
        "observer": 0,
        "noise_multiplier": 2.0,
    },
    "private-sgd": {
        "records": 100,
        "batch": 10.0,
        "noise_multiplier": 2.0,
        "steps": 3,
        "adjacency": "replace",
    },
    "randomized-response": {"values": 4, "epsilon": 1.0},
    "ring-histogram": HISTOGRAM,
    "ring-histogram-estimate": HISTOGRAM,
    "shuffling": {"local_epsilon": 1.0, "reports": 1000, "delta": 1e-6},
    "walk-sum": {
        "n": 5,
        "steps": 6,
        "noise_multiplier": 2.0,
        "first": "uniform",
        "published": False,
        "observers": 1,
        "route": "renyi",
        "grid": 0.01,
        "tail": 1e-8,
        "approximate": False,
    },
}


def test_the_examples_here_are_all_statements_with_all_their_keys():
    assert {name: set(given) for name, given in GIVEN.items()} == {
        name: set(keys(make)) for name, make in statements().items()
    }


@pytest.mark.parametrize("name", GIVEN)
def test_every_statement_can_be_asked(name):
    found = ask(name, GIVEN[name])
    assert found.status in STATUSES
    assert ("estimate" in name) == (found.status == "heuristic")
    assert found.hypotheses
    assert 0 <= found.epsilon(1e-5) < math.inf


@pytest.mark.parametrize("name", GIVEN)
def test_strange_numbers_are_refused_or_answered_never_crash(name):
    """Nothing but a refusal in words, or an epsilon that is no less than 0."""
    for key, usual in GIVEN[name].items():
        for strange in (
            0,
            -1,
            1,
            0.5,
            -0.5,
            math.nan,
            math.inf,
            "",
            "no",
            True,
            [],
            [-1],
            [math.nan],
        ):
            if type(strange) is type(usual) and strange == usual:
                continue
            try:
                found = ask(name, {**GIVEN[name], key: strange}).epsilon(1e-5)
            except BruitError:
                continue
            assert float(found) >= 0, (key, strange)


def test_the_answer_is_that_of_the_theorem():
    asked = {**VIEW, "mixing": 3, "tau": 0.2, "omega": 0.5, "rounds": 2}
    rounds = [masked_consensus.MaskedRound(3, 0.2, 0.5)] * 2
    graph = named_graph("ring:6")
    assert ask("masked-consensus", asked).loss == pytest.approx(
        masked_consensus.masked_losses(graph, rounds, 0)[3]
    )
    share = private_graph.stranger_share(50, 4, 3, 2)
    fresh = [private_graph.HiddenRound(adjacent, share) for adjacent in (True, False)]
    assert ask("fresh-hidden-graphs", GIVEN["fresh-hidden-graphs"]).epsilon(1e-5) == pytest.approx(
        private_graph.fresh_hidden_graphs(fresh, 2.0, 2).epsilon(1e-5)
    )


@pytest.mark.parametrize(
    ("name", "given", "said"),
    [
        ("hidden-grph", {}, "did you mean 'hidden-graph'"),
        ("hidden-graph", {"n": 50}, "not told degree, steps, noise_multiplier"),
        ("hidden-graph", {**GIVEN["hidden-graph"], "graph": "ring:5"}, "has no key 'graph'"),
        ("hidden-graph", {**GIVEN["hidden-graph"], "n": 50.0}, "n is a whole number, found 50.0"),
        ("hidden-graph", {**GIVEN["hidden-graph"], "n": True}, "n is a whole number, found True"),
        (
            "neighborhood-sums",
            {**GIVEN["neighborhood-sums"], "seen_by": "all"},
            "a list of numbers",
        ),
        ("neighborhood-sums", {**GIVEN["neighborhood-sums"], "graph": "butterfly:8"}, "of a graph"),
        ("private-sgd", {**GIVEN["private-sgd"], "adjacency": "x"}, "replace or add-remove"),
        ("composition", {"epsilons": [0.1, True]}, "a list of numbers like"),
        ("composition", {"epsilons": [math.nan]}, "a list of numbers like"),
    ],
)
def test_what_is_missing_unknown_or_of_another_kind_is_refused(name, given, said):
    with pytest.raises(ConfigError, match=said):
        ask(name, given)


def epsilon(*words):
    return CliRunner().invoke(app, ["epsilon", *words])


def test_the_command_asks_by_its_options_and_by_set():
    found = epsilon(
        *("--ahead", "neighborhood-sums", "--graph", "ring:6", "--steps", "3", "--of", "3"),
        *("--seen-by", "0", "--sigma", "4", "--sensitivity", "2"),
    )
    assert found.exit_code == 0, found.output
    same = ask("neighborhood-sums", GIVEN["neighborhood-sums"]).epsilon(1e-6)
    assert f"epsilon = {float(same):.6g}" in found.output
    assert "gossip:MUF-X4" in found.output


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--ahead", "shuffling", "--before"), "not about --before"),
        (("--ahead", "shuffling", "some.run"), "not about a run"),
        (("--ahead", "shuffling", "--sensitivity", "2"), "give --sigma too"),
        (
            ("--ahead", "admm-server", "--sigma", "1", "--sensitivity", "2"),
            "leave --sensitivity out",
        ),
        (("--ahead", "hidden-graph", "--steps", "2", "--set", "steps=3"), "given twice"),
        (("--ahead", "hidden-graph", "--sigma", "0"), "must be finite and positive"),
    ],
)
def test_the_command_refuses_what_a_statement_has_no_use_for(words, said):
    found = epsilon(*words)
    assert isinstance(found.exception, ConfigError)
    assert said in str(found.exception)


def test_the_list_says_what_each_must_be_told():
    rows = listing("ahead")
    assert list(rows) == list(statements())
    assert rows["hidden-graph"].endswith("n degree steps noise_multiplier [colluders] [runs]")
    assert statement("walk-sum").__name__ == "summation"
