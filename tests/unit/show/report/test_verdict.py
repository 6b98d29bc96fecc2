"""The headline of a report, the model it shows, and the units it explains."""

from dataclasses import replace

import numpy as np
import pytest

import bruit as br
from bruit.graphs import ring
from bruit.show.report import render
from bruit.show.report.model import names_of
from bruit.show.report.story import tell
from bruit.show.report.verdict import price, verdict
from bruit.show.summary import advice
from bruit.tasks.data.recipe import Recipe
from bruit.testing import small_task
from tests.unit.show.report.pages import Page


@pytest.fixture
def run():
    noise = br.Gaussian(clip=1.0, sigma=0.5)
    return br.run(br.Averaging(), ring(6), small_task(6), privacy=noise, steps=4, seed=2)


def headline(run):
    return next(
        one.text
        for one in Page(render(run)).all("p")
        if "headline" in one.attributes.get("class", "")
    )


CASES = [
    ({"alone": 9.0, "central": 0.0}, True, "Working together paid: mse "),
    ({"alone": 9.0}, True, "against 9 alone"),
    ({"alone": 1e-9, "central": 0.0}, False, "Working together was worse than staying alone: mse "),
    ({"central": 0.0}, None, "what each reaches alone was not measured"),
    ({}, None, "what each reaches alone was not measured"),
]


@pytest.mark.parametrize(("references", "better", "words"), CASES)
def test_less_error_is_better(run, references, better, words):
    run.references = references
    found = verdict(tell(run))
    assert found.better is better
    assert words in found.headline
    assert headline(run) == f"{found.headline}."


@pytest.mark.parametrize(("alone", "better"), [(0.5, True), (0.95, False), (0.9, False)])
def test_more_accuracy_is_better(run, alone, better):
    run.metrics.rows = [{"accuracy": 0.9} for _ in run.metrics.rows]
    run.task = {**run.task, "metric": "accuracy"}
    run.references = {"alone": alone, "central": 1.0}
    found = verdict(tell(run))
    assert found.better is better
    if alone == 0.5:
        assert "goes 80% of the way to all data in one place (1)" in found.curve
    if alone == 0.9:
        assert found.headline.startswith("Working together changed nothing")


@pytest.mark.parametrize("alone", [9.0, 1e-9])
def test_the_report_decides_as_the_run_does_and_says_what_would_help(run, alone):
    run.references = {"alone": alone, "central": 0.0}
    worse = run.verdict().worse
    assert verdict(tell(run)).better is not worse
    page = Page(render(run))
    shown = [one.text for one in page.all("li")]
    assert all((text in shown) is worse for text in advice(run))
    run.interrupted = (2, 4)
    assert page.all("h1")[0].text == "Report of this run"
    assert (
        Page(render(run)).all("h1")[0].text == "Report of this run, interrupted after 2 of 4 rounds"
    )


def test_scores_that_nobody_judges_are_told_beside_each_other(run):
    run.metrics.rows = [{"share": 0.5} for _ in run.metrics.rows]
    run.references = {"alone": 0.25}
    found = verdict(tell(run))
    assert found.better is None
    assert found.headline == "6 peers together reached share 0.5; each reaches 0.25 alone"


def test_models_that_are_no_numbers_and_runs_without_scores(run):
    run.metrics.rows[-1] = {name: float("nan") for name in run.metrics.rows[-1]}
    assert "without a usable model" in verdict(tell(run)).headline
    run.metrics.steps, run.metrics.rows = [], []
    assert "nothing was measured" in verdict(tell(run)).headline
    assert "Nothing was measured" in render(run)


def test_the_price_says_all_that_belongs_to_it(run):
    said = price(tell(run, delta=1e-5))
    assert (
        f"epsilon = {run.summary(1e-5).epsilons[0]:.4g} at delta = 1e-05, user level, replace"
        in said
    )
    bare = br.run(br.Averaging(), ring(6), small_task(6), steps=4, seed=2)
    assert "Nothing limits" in price(tell(bare))
    (tiles,) = [
        one for one in Page(render(bare)).all("ul") if one.attributes.get("class") == "tiles"
    ]
    assert "no noise was added" in tiles.text
    assert "proven" not in tiles.text


def test_units_are_explained(run):
    text = Page(render(run)).by_id("reading").text
    worst = run.summary().epsilons[0]
    assert f"a factor of at most e^epsilon: here {np.exp(worst):.3g}" in text
    assert "everything a peer holds is replaced by anything else" in text
    assert "1 is as if a peer had sent what it says once" in text


def named(run, *columns, intercept=False, classes=()):
    """The run, as if its rows had had these columns."""
    recipe = Recipe.plain(columns, intercept=intercept, classes=classes)
    return replace(run, learned=run.learned._replace(recipe=recipe, peer=4))


def test_the_model_is_shown_with_its_names(run, tmp_path):
    text = Page(render(run)).by_id("model").text
    assert f"{run.estimates[run.learned.peer, 0]:.4g}" in text
    assert "coordinate 1" in text
    folder = named(run, "age", "<b>weight</b>", intercept=True).save(tmp_path / "named.run")
    text = Page(render(folder)).by_id("model").text
    assert "age" in text
    assert "<b>weight</b>" in text
    assert "intercept" in text  # three numbers, two columns
    assert "the model of peer 4" in text
    assert f"{run.estimates[4, 0]:.4g}" in text
    assert names_of(tell(named(run, "a", classes=("x", "y", "z"))), 3)[0] == [
        "a, x",
        "a, y",
        "a, z",
    ]


def test_models_without_names_and_raw_data(run):
    run.task = {**run.task, "task": "something else"}
    older = replace(run, learned=None)
    assert names_of(tell(older), 3) == (["number 1", "number 2", "number 3"], False)
    text = Page(render(older)).by_id("model").text
    assert "The run does not say what its numbers are called." in text
    assert "the mean over peers" in text
    at_home = replace(run, local=True)
    text = Page(render(at_home)).by_id("model").text
    assert "raw data that was to stay at home" in text
    assert f"{run.estimates.mean(axis=0)[0]:.4g}" not in text


def test_the_page_of_many_peers_stays_small():
    """No element a pair, and links far beyond what is drawn."""
    run = br.run(
        br.Averaging(),
        br.graphs.complete(300),
        small_task(300),
        privacy=br.Gaussian(clip=1.0, sigma=2.0),
        steps=1,
        seed=1,
    )
    text = render(run)
    page = Page(text)
    assert len(page.elements) < 300 * 4 + 1500
    assert "of its 44,850 links are drawn" in page.by_id("map-section").text
    assert len(text) < 900_000
