"""Epsilon before a walk, at a given noise, cap and cool-down: the planner's own answer, asked the
other way around."""

import json

import pytest
from typer.testing import CliRunner

import bruit as br
from bruit.commands.cli import app
from bruit.errors import BruitError
from bruit.graphs import complete, graph
from bruit.planning.before_walk import before_walk
from bruit.planning.plan import plan
from bruit.planning.question import Question
from bruit.runs.run import rehearse


def blank(name, cap, rest, sigma, steps, **more):
    noise = br.Gaussian(clip=0.5, sigma=sigma)
    return rehearse(br.WalkSGD(rate=0.1, cap=cap, rest=rest, **more), graph(name), noise, steps)


@pytest.mark.parametrize(
    ("name", "cap", "rest"),
    [
        ("complete:50", 4, 1),
        pytest.param("path:5", 2, 2, marks=pytest.mark.slow),
        ("torus:4x5", 3, 4),
    ],
)
def test_the_planned_noise_gives_the_planned_epsilon_back(name, cap, rest):
    where = graph(name)
    found = plan(
        Question(where.n, 1.0, job="learning", graph=where, contributions=cap, cooldown=rest),
        "walk",
    ).chosen
    said = before_walk(blank(name, cap, rest, found.noise_multiplier, found.steps), blank=True)
    assert said.status == "proven"
    assert 1.0 - 1e-3 < said.epsilon(1e-6) <= 1.0
    assert any(f"cap = {cap}, rest = {rest}" in str(one) for one in said.hypotheses)


@pytest.mark.slow
def test_one_pair_costs_at_most_what_the_worst_pair_does():
    run = blank("path:5", 2, 1, 3.0, 10)
    worst = before_walk(run, blank=True).epsilon(1e-6)
    far = before_walk(run, 0, [4], blank=True).epsilon(1e-6)
    assert 0 < far < worst
    assert before_walk(run, 0, [1, 4], blank=True).epsilon(1e-6) > far


@pytest.mark.parametrize(
    ("run", "words"),
    [
        (lambda: blank("path:5", None, 1, 3.0, 10), "set a cap"),
        (lambda: blank("path:5", 2, 1, 3.0, 10, decay=0.5), "steps are of one size"),
        (
            lambda: rehearse(br.Averaging(), complete(5), br.Gaussian(clip=0.5, sigma=1.0), 3),
            "only a walk",
        ),
    ],
)
def test_what_has_no_before_is_refused(run, words):
    with pytest.raises(BruitError, match=words):
        before_walk(run(), blank=True)


def test_a_run_must_keep_the_hypotheses_of_its_theorem():
    """Without declared constants a rehearsal assumes them, and a run may not."""
    with pytest.raises(BruitError, match="no bound on the gradients"):
        before_walk(blank("path:5", 2, 1, 3.0, 10))


WALK = [
    "epsilon",
    "--graph",
    "complete:100",
    "--algorithm",
    "walk-sgd",
    "--set",
    "algorithm.cap=12",
    "--steps",
    "1000",
    "--sigma",
    "5.81598",
    "--before",
]


def test_the_command_answers_for_sigma_cap_and_cool_down():
    found = json.loads(CliRunner().invoke(app, [*WALK, "--json"]).output)
    assert 0.999 < found["epsilon"] <= 1.0
    assert found["spec"] == "walk:RW-14"
    assert any("before the walk" in note for note in found["notes"])
    rested = json.loads(
        CliRunner().invoke(app, [*WALK, "--set", "algorithm.rest=20", "--json"]).output
    )
    assert rested["epsilon"] < found["epsilon"]


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (["--published"], "leave --published and --matrix out"),
        (["--seen-by", "everybody"], "everybody together"),
        (["--of", "3"], "name both"),
    ],
)
def test_the_command_refuses_what_it_would_ignore(more, words):
    said = CliRunner().invoke(app, [*WALK, *more])
    assert isinstance(said.exception, BruitError)
    assert words in str(said.exception)


def test_a_walk_that_was_stopped_has_no_before():
    def stop(done, total, scores):
        if done == 5:
            raise br.Stop

    task = br.tasks.Mean.uniform(6, 2)
    run = br.run(
        br.WalkSGD(cap=2),
        "complete:6",
        task,
        privacy=br.Gaussian(clip=1.0, sigma=3.0),
        steps=20,
        progress=stop,
    )
    with pytest.raises(br.PrivacyError, match="interrupted after 5 of 20 hops"):
        before_walk(run, 0, [1], blank=True)
