"""Several runs and sweeps on one page: one point per configuration."""

import pytest

import bruit as br
from bruit.runs.many.sweep import to_csv
from bruit.show.report import render
from bruit.show.report.compare import of_sweep
from tests.unit.show.report.pages import Page

ROWS = [
    {
        "privacy.epsilon": epsilon,
        "seed": seed,
        "mse": 1 / epsilon + seed / 100,
        "alone": 0.9,
        "epsilon_worst": epsilon / 2 + seed,
        "epsilon_typical": epsilon / 4,
        "epsilon_local": float(epsilon),
        "delta": 1e-6,
        "status": "proven",
    }
    for epsilon in (2, 8)
    for seed in (0, 1)
]


def test_a_sweep_is_grouped_by_setting(tmp_path):
    to_csv(ROWS, tmp_path / "sweep.csv")
    two, eight = of_sweep(tmp_path / "sweep.csv")
    assert two.name == "privacy.epsilon = 2"
    assert two.value("mse") == pytest.approx(0.505)
    assert eight.numbers["epsilon_worst"] == [4.0, 5.0]
    assert eight.value("epsilon_worst") == 5.0
    assert two.scores() == ["mse"]
    page = Page(render(tmp_path / "sweep.csv"))
    dots = [one for one in page.all("circle") if one.attributes.get("class", "").startswith("dot")]
    assert len(dots) == 2 * 2 * (
        2 + 4
    )  # two figures, each wide and narrow; points of settings and seeds


def test_runs_side_by_side(folder, averaging):
    page = Page(render([folder, averaging]))
    shown = [
        float(one.attributes["data-value"])
        for one in page.all("td")
        if "data-value" in one.attributes
    ]
    summary = averaging.summary()
    assert shown.count(summary.epsilons[0]) >= 2
    assert shown.count(averaging.metrics.last("mse")) == 2
    assert "different tasks" not in page.by_id("compare").text


def test_an_infinite_epsilon_is_told_not_drawn(averaging):
    plain = br.run(br.Averaging(), br.graphs.ring(4), br.testing.small_task(4), steps=2)
    text = Page(render([averaging, plain])).by_id("compare").text
    assert "Not drawn, because its epsilon is infinite" in text


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("a,b\n1,2\n", "not a sweep of bruit"),
        ("", "not a sweep of bruit"),
        ("seed,epsilon_worst\n", "has none"),
        ("seed,epsilon_worst\n0,many\n", "line 2: 'many' is not a number"),
    ],
)
def test_files_that_are_no_sweep(tmp_path, content, message):
    (tmp_path / "x.csv").write_text(content)
    with pytest.raises(br.ConfigError, match=message):
        render(tmp_path / "x.csv")
    with pytest.raises(br.ConfigError, match="cannot read the sweep"):
        render(tmp_path / "none.csv")
