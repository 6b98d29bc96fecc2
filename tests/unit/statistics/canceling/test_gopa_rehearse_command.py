"""`bruit gopa rehearse`: counts and an AUC of one table, as the functions behind it say them."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from bruit.commands.cli import app
from bruit.errors import ConfigError
from bruit.graphs import k_out
from bruit.statistics.average.canceling.auc import private_auc
from bruit.statistics.average.canceling.counts import private_histogram

USERS, CUTS = 120, np.array([-1.0, 0.0, 1.0])


@pytest.fixture
def scores(tmp_path):
    rng = np.random.default_rng(1)
    label = rng.integers(0, 2, USERS)
    score = (rng.normal(size=USERS) + 1.5 * label).round(4)
    table = tmp_path / "scores.csv"
    table.write_text(
        "s,y\n" + "".join(f"{a},{b}\n" for a, b in zip(score, label, strict=True)), encoding="utf-8"
    )
    return table, score, label


def rehearse(table, *words):
    asked = ["gopa", "rehearse", str(table), "--column", "s", "--cuts=-1,0,1", *words]
    return CliRunner().invoke(app, asked)


def test_counts_are_those_of_the_histogram(scores):
    table, score, _ = scores
    found = json.loads(rehearse(table, "--leaving", "0.1", "--colluders", "2", "--json").stdout)
    same = private_histogram(
        np.digitize(score, CUTS),
        4,
        k_out(USERS, 12),
        1.0,
        seen_by=[0, 1],
        dropped=range(108, USERS),
        leaving=0.1,
    )
    assert found["counts"] == pytest.approx(same.counts.tolist())
    assert found["epsilon"] == pytest.approx(float(same.guarantee.epsilon(1e-6)))
    assert (found["users"], found["status"], found["rehearsal"]) == (108, "ideal", True)


def test_with_a_label_it_is_the_auc(scores):
    table, score, label = scores
    found = json.loads(rehearse(table, "--label", "y", "--epsilon", "4", "--json").stdout)
    same = private_auc(score, label, CUTS, k_out(USERS, 12), 4.0, seen_by=[0])
    assert [found["auc"], *found["interval"]] == pytest.approx([same.value, same.low, same.high])


def test_it_says_that_it_protects_nobody(scores):
    said = rehearse(scores[0]).stdout
    assert "1 and above:" in said
    assert "it protects nobody" in said
    assert "user level, ideal, against peer 0" in said


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--cuts=1,0",), "must be finite and ascend"),
        (("--cuts=a",), "not numbers"),
        (("--colluders", "0"), "may collude, found 0"),
        (("--colluders", "120"), "may collude, found 120"),
        (("--leaving", "1"), r"lies in \[0, 1\), found 1"),
        (("--positive", "1"), "names a class of --label"),
    ],
)
def test_what_makes_no_sense_is_refused(scores, words, sentence):
    with pytest.raises(ConfigError, match=sentence):
        raise rehearse(scores[0], *words).exception
