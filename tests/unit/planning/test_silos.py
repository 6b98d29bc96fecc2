"""Silos: noise that keeps the budget and no more, settings from made-up problems, honest sentences."""

import json
import math
import tomllib

import numpy as np
import pytest
from typer.testing import CliRunner

import bruit as br
from bruit.commands.cli import app
from bruit.errors import BruitError
from bruit.mechanisms import RecordSums
from bruit.planning.silos.descent import DescentSettings, descend
from bruit.planning.silos.experiment import silos_text
from bruit.planning.silos.plan import plan_silos, spare
from bruit.planning.silos.problems import generator, make_problems
from bruit.planning.silos.question import SilosQuestion, held_by
from bruit.privacy.calibrate import least_noise_multiplier
from bruit.privacy.events import record_event
from bruit.privacy.toolbox.pld import compose_epsilon
from bruit.runs.build import build
from bruit.runs.file import parse
from bruit.tasks import Logistic
from bruit.tasks.records import Records

SMALL = {"records": (60, 50, 20, 30), "dim": 5, "epsilon": 1.0, "delta": 1e-4}


def asked(**changes):
    return SilosQuestion(**(SMALL | changes))


@pytest.fixture(scope="module")
def three():
    return plan_silos(asked(steps=3))


@pytest.mark.parametrize("adjacency", ["replace", "add-remove"])
@pytest.mark.parametrize(
    ("q", "gone"), [(1.0, 0), (1.0, 1), pytest.param(0.5, 1, marks=pytest.mark.slow)]
)
def test_the_noise_keeps_the_budget_and_a_little_less_does_not(adjacency, q, gone):
    question = asked(steps=4, sample_rate=q, adjacency=adjacency, dropouts=gone)
    for option in plan_silos(question).options:
        assert option.attempts == 4 + (1 if gone and option.protocol == "masked" else 0)

        def cost(z, releases=option.attempts):
            return compose_epsilon([(record_event(z, q, adjacency), releases)], question.delta)

        assert cost(option.noise_multiplier) <= question.epsilon
        assert cost(0.998 * option.noise_multiplier) > question.epsilon


@pytest.mark.slow
def test_a_sample_saves_no_noise():
    """The mean gradient of 20 releases carries z / q: about the same or more with a sample."""
    for adjacency, expected in (("replace", 0.9995), ("add-remove", 1.0244)):
        sampled = least_noise_multiplier(1.0, 1e-4, 20, 0.5, adjacency) / 0.5
        whole = least_noise_multiplier(1.0, 1e-4, 20, 1.0, adjacency)
        assert sampled / whole == pytest.approx(expected, abs=5e-4)


def test_who_adds_how_much(three):
    found = {one.protocol: one for one in three.options}
    sigma = {name: one.noise_multiplier * one.clip for name, one in found.items()}
    assert found["curator"].noise == pytest.approx(sigma["curator"])
    assert found["masked"].noise == pytest.approx(sigma["masked"] * math.sqrt(4 / 3))
    assert found["local"].noise == pytest.approx(sigma["local"] * 2)
    assert found["alone"].noise == pytest.approx(sigma["alone"])
    assert found["masked"].batch == 160
    assert found["masked"].error == pytest.approx(found["masked"].noise / 160)


def test_colluders_cost_noise():
    most = plan_silos(asked(steps=2, colluders=2)).option("masked")
    assert most.noise == pytest.approx(most.noise_multiplier * most.clip * math.sqrt(4 / 2))


def test_less_noise_is_ranked_higher_and_alone_comes_last(three):
    assert [one.protocol for one in three.options] == ["curator", "masked", "local", "alone"]
    assert three.blind < three.option("masked").accuracy < three.without_noise < three.best


def test_a_silo_with_more_records_is_better_alone(three):
    own = three.option("alone").own.mean(axis=0)
    assert own[0] > own[3]
    assert own[0] > own[2]
    gains, errors = three.gains()
    assert gains[2] > 2 * errors[2]


def test_the_same_question_has_the_same_answer(three):
    assert plan_silos(asked(steps=3)).to_dict() == three.to_dict()


def test_four_epsilons_of_one_run(three):
    costs = three.epsilons()
    assert costs["outsiders"] < costs["coalition"] < costs["masks_opened"]
    assert costs["silo_as_a_whole"] > 20
    z, releases = three.option("masked").noise_multiplier, 3
    opened = compose_epsilon([(record_event(z / math.sqrt(3), 1.0), releases)], 1e-4)
    assert costs["masks_opened"] == pytest.approx(opened, rel=1e-5)


def test_a_plan_that_is_of_little_use_says_so():
    said = plan_silos(asked(steps=1, epsilon=0.01)).sentences()
    assert said[0].startswith("hardly of use")


def test_records_that_come_and_go_are_declared():
    said = " ".join(plan_silos(asked(steps=1, adjacency="add-remove")).sentences())
    assert "declared beforehand" in said


def test_a_quarter_of_the_attempts_is_spare_where_peers_may_go():
    assert [spare(asked(dropouts=1), steps) for steps in (1, 4, 5)] == [1, 1, 2]
    assert spare(asked(), 20) == 0


def test_descent_clips_record_by_record():
    """One problem, step by step in a loop, no noise: the same model."""
    problems = make_problems(1, 12, 4, generator(3))
    settings = DescentSettings(
        clip=np.array([0.2, 5.0]),
        rate=np.array([1.0, 0.5]),
        noise=np.zeros(2),
        steps=3,
        momentum=0.5,
    )
    models = descend(problems.features, problems.labels, 12.0, settings, generator(0))[0]
    for place, (clip, rate) in enumerate([(0.2, 1.0), (5.0, 0.5)]):
        model, speed = np.zeros(4), np.zeros(4)
        for _ in range(3):
            total = np.zeros(4)
            for row, label in zip(problems.features[0], problems.labels[0], strict=True):
                gradient = (1 / (1 + np.exp(-row @ model)) - label) * row
                total += gradient * min(1, clip / np.linalg.norm(gradient))
            speed = 0.5 * speed + total / 12
            model = model - rate * speed
        np.testing.assert_allclose(models[place], model, rtol=1e-10)


def masked_run(problems, sigma, seed):
    """Masked SGD itself on one made-up problem, dealt to three peers."""
    rows, labels = problems.features[0], 2 * problems.labels[0] - 1
    owners = np.arange(len(rows)) % 3
    return br.run(
        br.MaskedSGD(rate=1.5, momentum=0.3, colluders=1, spare=0),
        "complete:3",
        Logistic(Records.of(rows, labels, owners)),
        privacy=RecordSums(clip=0.4, sigma=sigma, divisor=len(rows) / 3),
        steps=3,
        seed=seed,
    ).estimates[0]


def described(noise, copies):
    return DescentSettings(
        clip=np.full(copies, 0.4),
        rate=np.full(copies, 1.5),
        noise=np.full(copies, noise),
        steps=3,
        momentum=0.3,
    )


def test_descent_is_masked_sgd_without_noise():
    problems = make_problems(1, 30, 4, generator(8))
    models = descend(problems.features, problems.labels, 30.0, described(0.0, 1), generator(0))
    np.testing.assert_allclose(masked_run(problems, 0.0, 1), models[0, 0], atol=1e-6)


@pytest.mark.slow
def test_descent_has_the_law_of_masked_sgd():
    """300 runs against 20,000 draws: the mean of 4 coordinates within 4.5 standard errors (false
    alarms below 3e-5), deviations within a factor 1 +- 0.19 (below 2e-5; a deviation 1.41 times as
    large, that of noise which every peer adds in whole, is missed with a chance below 1e-3)."""
    problems = make_problems(1, 30, 4, generator(8))
    runs = np.stack([masked_run(problems, 4.0, seed) for seed in range(300)])
    noise = 4.0 * math.sqrt(3 / 2)
    many = descend(problems.features, problems.labels, 30.0, described(noise, 20_000), generator(0))
    expected, spread = many[0].mean(axis=0), many[0].std(axis=0)
    assert (np.abs(runs.mean(axis=0) - expected) < 4.5 * spread / math.sqrt(300)).all()
    ratio = runs.std(axis=0, ddof=1) / spread
    assert (np.abs(ratio - 1) < 0.19).all()


def test_descent_adds_the_noise_it_is_told():
    """4000 models of one step: the deviation of each coordinate is rate * noise / batch. A band of
    5 deviations of a standard deviation on 5 coordinates: false alarms below 1e-5; noise that is a
    tenth off is seen with certainty (18 deviations)."""
    problems = make_problems(1, 20, 5, generator(3))
    many = 4000
    settings = DescentSettings(
        clip=np.full(many, 0.1), rate=np.full(many, 2.0), noise=np.full(many, 3.0), steps=1
    )
    models = descend(problems.features, problems.labels, 20.0, settings, generator(0))[0]
    found = models.std(axis=0) / (2.0 * 3.0 / 20.0)
    assert np.abs(found - 1).max() < 5 / math.sqrt(2 * many)


def test_a_sample_is_of_the_rate_it_is_told():
    """2000 problems of one step: the mean of the sampled sums is q times the whole; band of 5
    standard errors, false alarms below 1e-5."""
    problems = make_problems(1, 40, 3, generator(5))
    features = np.repeat(problems.features, 2000, axis=0)
    labels = np.repeat(problems.labels, 2000, axis=0)
    one = {"clip": np.array([9.0]), "rate": np.array([1.0]), "noise": np.zeros(1), "steps": 1}
    whole = descend(features[:1], labels[:1], 1.0, DescentSettings(**one), generator(0))[0, 0]
    some = descend(features, labels, 1.0, DescentSettings(**one, sample_rate=0.3), generator(0))[
        :, 0
    ]
    errors = some.std(axis=0) / math.sqrt(2000)
    assert (np.abs(some.mean(axis=0) - 0.3 * whole) < 5 * errors).all()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"records": (5,)}, "at least two"),
        ({"records": (5, 0)}, "leave it out"),
        ({"colluders": 2, "dropouts": 1}, "fewer than two"),
        ({"colluders": -1}, "0 or more"),
        ({"sample_rate": 1.5}, "at most 1"),
        ({"epsilon": 0.0}, "positive"),
        ({"delta": 0.0}, "strictly"),
        ({"adjacency": "swap"}, "add-remove"),
        ({"steps": 0}, "1 step"),
        ({"dim": 0}, "at least 1 number"),
    ],
)
def test_bad_questions_are_refused_with_a_sentence(change, words):
    with pytest.raises(BruitError, match=words):
        asked(**change)


def test_numbers_of_records():
    assert held_by(2, "7,8") == (7, 8)
    for silos, text in ((3, "7,8"), (None, "7,x")):
        with pytest.raises(BruitError):
            held_by(silos, text)


WORDS = "plan --silos 4 --records 60,50,20,30 --dim 5 --epsilon 1 --delta 1e-4 --steps 2"


def test_the_command_prints_and_saves(tmp_path):
    file = tmp_path / "planned.toml"
    run = CliRunner().invoke(app, [*WORDS.split(), "--json", "--save", str(file)])
    assert run.exit_code == 0, run.output
    told = json.loads(run.output)
    assert (told["level"], told["adjacency"]) == ("record", "replace")
    masked = next(one for one in told["options"] if one["protocol"] == "masked")
    written = tomllib.loads(file.read_text())
    assert written["steps"] == masked["steps"] == 2
    assert written["algorithm"]["name"] == "masked-sgd"
    assert written["privacy"]["sigma"] >= masked["sigma"]
    assert written["privacy"]["sigma"] == pytest.approx(masked["sigma"], rel=1e-8)
    shown = CliRunner().invoke(app, WORDS.split()).output
    assert "a silo as a whole: not protected" in shown


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ("--graph complete:4", "leave out --graph"),
        ("--level user", "leave out --level user"),
        ("--contributions 3", "leave out --contributions"),
    ],
)
def test_wishes_of_other_plans_are_refused(more, words):
    run = CliRunner().invoke(app, [*WORDS.split(), *more.split()])
    assert run.exit_code != 0
    assert words in str(run.exception)


@pytest.mark.parametrize("more", ["--level record", "--adjacency replace", "--dropouts 1"])
def test_wishes_at_record_level_need_silos(more):
    run = CliRunner().invoke(app, ["plan", "--peers", "4", *more.split()])
    assert run.exit_code != 0
    assert "--silos" in str(run.exception)


@pytest.mark.parametrize("adjacency", ["replace", "add-remove"])
def test_what_is_planned_can_be_run_and_keeps_the_epsilon(adjacency):
    """Through the run's own account, of what is sent, spare attempts included."""
    question = asked(steps=4, dropouts=1, adjacency=adjacency)
    text = silos_text(plan_silos(question))
    run = build(parse(text), text).run()
    promised = run.epsilon(of=0, seen_by=1, delta=question.delta)
    assert 0.5 * question.epsilon < promised <= question.epsilon


def test_the_text_says_for_whom_it_was_planned(three):
    assert "60, 50, 20, 30 records" in silos_text(three)
