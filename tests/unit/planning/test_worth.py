"""A plan that is useless says so; a wish that would be ignored is refused; what is planned can be
saved and run."""

import json
import math

import numpy as np
import pytest
from typer.testing import CliRunner

from bruit.commands.cli import app
from bruit.errors import BruitError, ConfigError
from bruit.graphs import complete, path, torus
from bruit.planning.experiment_file import experiment_text
from bruit.planning.plan import plan, protocols
from bruit.planning.question import Question
from bruit.planning.worth import error_of, without_data, worth
from bruit.privacy.toolbox.gaussian import epsilon_of
from bruit.runs.build import build
from bruit.runs.file import parse

TORUS = torus(3, 3)
JOBS = {
    "mean": Question(9, 1.0, graph=TORUS),
    "learning": Question(9, 1.0, job="learning", graph=TORUS, contributions=3),
}


def answered(name, question):
    """The option without its notes, or why it was refused."""
    try:
        found = protocols()[name](question)
    except BruitError as error:
        return str(error)
    return (found.noise_multiplier, found.steps, found.error)


@pytest.mark.parametrize("job", JOBS)
@pytest.mark.parametrize(("wish", "value"), [("steps", 5), ("cooldown", 3)])
@pytest.mark.parametrize("name", protocols())
def test_no_wish_is_ignored(name, wish, value, job):
    """With a wish the plan is another one, or there is none and the reason names the wish."""
    from dataclasses import replace

    plain, wished = answered(name, JOBS[job]), answered(name, replace(JOBS[job], **{wish: value}))
    assert wished != plain or isinstance(plain, str)
    if isinstance(wished, str) and not isinstance(plain, str):
        assert f"--{wish}" in wished


def test_the_steps_of_a_walk_are_its_hops():
    asked = Question(100, 1.0, job="learning", graph=complete(100), contributions=4, steps=200)
    found = plan(asked, "walk").chosen
    assert found.steps == 200
    assert found.messages == 2.0
    with pytest.raises(BruitError, match="more than 100 peers can use"):
        plan(
            Question(100, 1.0, job="learning", graph=complete(100), contributions=4, steps=401),
            "walk",
        )


def test_caps_hold_when_gossip_learns():
    """Caps were left out of the plan of gossip SGD, which claimed them all the same."""
    caps = np.full((5, 5), np.nan)
    caps[4, 0] = 0.1
    found = plan(
        Question(5, 1.0, job="learning", graph=path(5), contributions=2, caps=caps), "gossip"
    ).chosen
    assert epsilon_of(math.sqrt(2) / found.noise_multiplier, 1e-6) <= 0.1


def test_a_protocol_that_brings_its_own_graph_says_so():
    found = plan(Question(16, 1.0, graph=torus(4, 4)), "butterfly").chosen
    assert "not on torus:4x4: it brings its own graph, butterfly:16" in found.notes
    assert not any(
        "own graph" in note for note in plan(Question(9, 1.0, graph=TORUS), "renoised").chosen.notes
    )


def test_useless_is_worse_than_an_answer_without_data():
    asked = Question(16, 0.1)
    found = plan(asked, "local-dp")
    verdict = worth(asked, found.chosen, found.alternatives)
    assert error_of(asked, found.chosen) > without_data(asked) == 0.5
    assert verdict.useless
    assert verdict.sentence.startswith("useless: an error of 9.08")
    assert "epsilon = 3.2 instead of 0.1" in verdict.would_help
    better = Question(16, 3.2)
    assert error_of(better, plan(better, "local-dp").chosen) < 0.5


def test_what_would_help_helps():
    """More peers and a larger epsilon, each checked by planning it."""
    asked, option = Question(8, 0.05), protocols()["gopa"]
    verdict = worth(asked, option(asked))
    assert verdict.useless
    assert len(verdict.would_help) == 2
    for words in verdict.would_help:
        number = words.split(" instead")[0].removeprefix("epsilon = ").removesuffix(" peers")
        other = Question(8, float(number)) if "epsilon" in words else Question(int(number), 0.05)
        assert not worth(other, option(other)).useless, words


def test_a_good_plan_says_nothing_of_the_kind():
    asked = Question(64, 1.0)
    assert worth(asked, protocols()["gopa"](asked)).sentence == ""
    assert (
        "useless"
        not in CliRunner()
        .invoke(app, ["plan", "--graph", "star:9", "--epsilon", "4", "--quiet"])
        .output
    )


def test_the_command_says_useless_and_what_would_help():
    said = CliRunner().invoke(
        app, ["plan", "--peers", "16", "--epsilon", "0.1", "--algorithm", "local-dp", "--quiet"]
    )
    assert "  useless: an error of 9.08 is no better than an answer without any data" in said.output
    assert "  what would help: epsilon = 3.2 instead of 0.1" in said.output


def test_a_graph_is_printed_as_it_is_named():
    """`complete:100:` was an emoji."""
    said = (
        CliRunner()
        .invoke(app, ["plan", "--graph", "complete:100", "--algorithm", "walk", "--quiet"])
        .output
    )
    assert said.startswith("walk on complete:100: noise multiplier")
    assert "note: before the walk, over all the ways it may go; after it" in said


SAVED = [
    ("gossip", "mean"),
    ("renoised", "mean"),
    ("butterfly", "mean"),
    ("ring", "mean"),
    ("gopa", "mean"),
    ("butterfly", "learning"),
    ("fed-avg", "learning"),
]


@pytest.mark.parametrize(("name", "job"), SAVED)
def test_a_saved_plan_runs_within_its_budget(name, job):
    from dataclasses import replace

    asked = replace(JOBS[job], dim=7 if job == "learning" else 2)
    text = experiment_text(plan(asked, name))
    run = build(parse(text), text).run()
    worst = run.summary(1e-6)
    assert worst.status == "proven"
    assert 0.9 < worst.epsilons[0] <= 1.0 + 1e-9


@pytest.mark.parametrize("job", JOBS)
def test_a_saved_plan_of_local_dp_holds_against_everybody(job):
    text = experiment_text(plan(JOBS[job], "local-dp"))
    run = build(parse(text), text).run()
    assert (
        float(run.epsilon(seen_by="everybody")) <= 1.0 + 1e-6
    )  # a model of 31 numbers where one was planned


def test_a_saved_plan_of_more_peers_than_the_example_has_rows_can_be_built():
    from dataclasses import replace

    asked = replace(JOBS["learning"], graph=complete(600), peers=600, contributions=2)
    text = experiment_text(plan(asked, "walk"))
    assert "each draws 8 of them" in text
    assert build(parse(text), text).task.peers == 600


def test_plan_save_run(tmp_path, monkeypatch):
    """As a user does it: plan a walk, save it, run it, and ask the run for both numbers."""
    monkeypatch.chdir(tmp_path)
    words = [
        "plan",
        "--graph",
        "complete:30",
        "--algorithm",
        "walk",
        "--contributions",
        "2",
        "--dim",
        "7",
        "--save",
        "walk.toml",
    ]
    call = CliRunner().invoke
    said = call(app, [*words, "--quiet"])
    assert said.exit_code == 0
    assert "wrote walk.toml" in said.output
    again = call(app, words)
    assert isinstance(again.exception, ConfigError)
    assert "walk.toml exists" in str(again.exception)
    ran = call(app, ["run", "walk.toml", "--out", "walk.run"])
    assert ran.exit_code == 0, ran.output
    assert "after the walk: of the path that the token took" in " ".join(ran.output.split())
    after = json.loads(call(app, ["epsilon", "walk.run", "--json"]).output)
    before = json.loads(call(app, ["epsilon", "walk.run", "--before", "--json"]).output)
    assert after["theorem"] == "the path energy of the realized walk"
    assert after["after_the_walk"].startswith("after the walk")
    assert before["theorem"] == "the walk seen from before its start"
    assert before["status"] == "proven"
    assert 0.99 < before["epsilon"] <= 1.0
    assert after["worst"]["epsilon"] != pytest.approx(before["epsilon"], rel=0.01)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (
            ["--peers", "8", "--algorithm", "central", "--save", "x.toml"],
            "no experiment file runs central",
        ),
        (["--peers", "8", "--algorithm", "gopa", "--steps", "4"], "leave --steps out"),
        (["--peers", "8", "--algorithm", "ring", "--cooldown", "4"], "leave --cooldown out"),
        (["--peers", "8", "--force"], "--force is about the file of --save"),
        (["--trust", "x.csv", "--steps", "4", "--dim", "2"], "leave out --steps, --dim"),
    ],
)
def test_the_command_refuses_what_it_would_ignore(options, words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    said = CliRunner().invoke(app, ["plan", *options])
    assert isinstance(said.exception, BruitError)
    assert words in str(said.exception)
    assert list(tmp_path.iterdir()) == []
