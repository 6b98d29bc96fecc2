"""A model from the command line, and what a run says of itself: worse than alone, or nothing
protected."""

import csv
import io
import json
import os
import stat
from pathlib import Path

import pytest

import bruit as br
from bruit.tasks.data.sources import load

LEARN = """\
graph = "complete:12"
steps = 40
seed = 3

[task]
kind = "logistic"
data = "breast_cancer"
components = 5

[algorithm]
name = "gossip-sgd"
rate = 5.0

[privacy]
sigma = 0.05
clip = 0.05
"""


@pytest.fixture
def learn(tmp_path) -> Path:
    path = tmp_path / "learn.toml"
    path.write_text(LEARN)
    return path


def write_rows(path, rows, extra=()):
    """Some of the data set as a user would have it."""
    table = load("breast_cancer")
    with open(path, "w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow([*table.feature_names, *extra])
        for k in rows:
            named = {"label": table.label_text(table.labels[k]), "id": k}
            writer.writerow(
                [*map(repr, table.features[k].tolist()), *(named[name] for name in extra)]
            )


def test_a_run_says_where_its_model_is_and_how_it_is_used(bruit, learn):
    said = bruit("run", learn)
    assert said.code == 0
    model = br.load_model("runs/learn-seed3.run")
    told = f"is in runs/learn-seed3.run/model.json; its accuracy is {model.score:.4f} on records that no peer holds"
    assert told in said.out
    assert "bruit predict runs/learn-seed3.run NEW.csv" in said.out
    assert bruit("run", learn, "--json").json["model"]["score"] == model.score
    assert f"accuracy {model.score:.4f}" in bruit("predict", "runs/learn-seed3.run").out


def test_predictions_of_new_rows(bruit, learn):
    bruit("run", learn, "--out", "x.run")
    write_rows("new.csv", range(60), ("label", "id"))
    said = bruit("predict", "x.run", "new.csv")
    assert said.code == 0
    rows = list(csv.DictReader(io.StringIO(said.out)))
    assert len(rows) == 60
    assert {row["prediction"] for row in rows} <= {"malignant", "benign"}
    assert all(0.5 <= float(row["probability"]) <= 1 for row in rows)
    assert "left alone: id" in said.err
    truth = [row["label"] for row in csv.DictReader(io.StringIO(Path("new.csv").read_text()))]
    right = sum(row["prediction"] == name for row, name in zip(rows, truth, strict=True)) / 60
    assert f"these rows have the label: accuracy {right:.4f}" in said.err
    assert "beware" in said.err  # simulated noise
    found = bruit("predict", "x.run/model.json", "new.csv", "--json").json
    assert [answer["prediction"] for answer in found["predictions"]] == [
        row["prediction"] for row in rows
    ]
    assert found["measured"] == {"metric": "accuracy", "value": pytest.approx(right)}
    assert found["ignored_columns"] == ["id"]
    third = bruit("predict", "x.run", "new.csv", "--peer", 3, "--out", "p.csv", "--quiet")
    assert (third.code, third.out, third.err) == (0, "", "")
    assert len(Path("p.csv").read_text().splitlines()) == 61


@pytest.mark.parametrize(
    ("header", "cells", "words"),
    [
        ("a,b", "1,2", "no column 'mean radius'"),
        ("mean radiu", "1", "did you mean 'mean radiu'"),
    ],
)
def test_rows_that_do_not_fit_are_refused(bruit, learn, header, cells, words):
    bruit("run", learn, "--out", "x.run")
    Path("bad.csv").write_text(f"{header}\n{cells}\n")
    said = bruit("predict", "x.run", "bad.csv")
    assert said.code == 2
    assert words in said.err
    assert bruit("predict", "x.run", "none.csv").code == 2
    assert bruit("predict", "nowhere", "bad.csv").code == 2
    assert bruit("predict", "x.run", "bad.csv", "--peer", 99).code == 2


def test_holes_and_far_numbers_are_said(bruit, learn):
    bruit("run", learn, "--out", "x.run")
    write_rows("new.csv", range(3))
    text = Path("new.csv").read_text()
    Path("hole.csv").write_text(text.replace("17.99", "", 1))
    said = bruit("predict", "x.run", "hole.csv")
    assert said.code == 2
    assert "line 2" in said.err
    assert "'mean radius'" in said.err
    Path("far.csv").write_text(text.replace("17.99", "99999", 1))
    assert (
        "1 numbers are far from all the model was learned from"
        in bruit("predict", "x.run", "far.csv").err
    )


def test_a_mean_is_printed_without_rows(bruit, saved):
    said = bruit("predict", saved)
    assert "mean, 2 numbers, peer 0 of 6" in said.out
    assert "number 1:" in said.out
    assert set(bruit("predict", saved, "--json").json["answer"]) == {"number 0", "number 1"}
    Path("x.csv").write_text("a\n1\n")
    refused = bruit("predict", saved, "x.csv")
    assert refused.code == 2
    assert "applied to no rows" in refused.err


def test_a_metric_compares_rows(bruit, mean):
    text = mean.read_text().split("[privacy]")[0].replace("averaging", "dual-averaging")
    mean.write_text(
        text.replace('kind = "mean"\ndim = 2', 'kind = "pairwise"\nloss = "metric"\ndata = "iris"')
    )
    assert bruit("run", mean, "--out", "m.run").code == 0
    table = load("iris")
    lines = [
        ",".join(table.feature_names),
        *(",".join(map(str, row)) for row in table.features[:3].tolist()),
    ]
    Path("new.csv").write_text("\n".join(lines) + "\n")
    rows = list(csv.DictReader(io.StringIO(bruit("predict", "m.run", "new.csv").out)))
    assert [(row["row"], row["other"]) for row in rows] == [("0", "1"), ("0", "2"), ("1", "2")]


def test_a_run_without_noise_says_so_in_one_sentence(bruit, mean):
    mean.write_text(mean.read_text().split("[privacy]")[0])
    said = bruit("run", mean)
    sentence = "no noise: everything a peer sends can be read; nothing is protected"
    assert sentence in said.out
    assert "proven" not in said.out
    assert "epsilon, " not in said.out
    assert "what could one peer have learned" not in said.out
    assert sentence in bruit("show", "runs/mean-seed3.run").out
    assert bruit("run", mean, "--json").json["protection"] == sentence
    assert sentence in json.loads(Path("runs/mean-seed3.run/model.json").read_text())["warnings"]


@pytest.mark.slow
def test_a_run_worse_than_alone_says_so_and_what_would_help(bruit, learn):
    better = bruit("run", learn, "--out", "good.run")
    assert "worse than staying alone" not in better.out
    learn.write_text(LEARN.replace("sigma = 0.05", "sigma = 50.0"))
    said = bruit("run", learn, "--out", "bad.run")
    line = next(line for line in said.out.splitlines() if "worse than staying alone" in line)
    assert "accuracy" in line
    for help_ in (
        "more peers",
        "a larger epsilon",
        "record level",
        "fewer numbers to hide (a model has 6",
    ):
        assert help_ in said.out.replace("\n", " ")
    shown = bruit("show", "bad.run", "--json").json["verdict"]
    assert shown["worse"] is True
    assert shown["gain"] == pytest.approx(shown["together"] - shown["alone"])
    assert len(shown["advice"]) == 4
    assert json.loads(Path("bad.run/manifest.json").read_text())["verdict"]["worse"] is True
    assert bruit("show", "good.run", "--json").json["verdict"]["worse"] is False
    (row,) = bruit("sweep", learn, "--json").json
    assert row["gain"] == pytest.approx(shown["gain"])


def test_errors_that_should_be_small_are_compared_the_other_way(bruit, mean):
    mean.write_text(mean.read_text().replace("sigma = 1.5", "sigma = 90.0"))
    assert bruit("run", mean, "--json").json["verdict"]["worse"] is True
    mean.write_text(mean.read_text().replace("sigma = 90.0", "sigma = 0.01"))
    assert bruit("run", mean, "--json").json["verdict"]["worse"] is False


@pytest.mark.slow
def test_a_real_peer_keeps_its_model_for_itself(bruit, tmp_path):
    (tmp_path / "peers.toml").write_text(
        LEARN.replace("complete:12", "complete:3").replace("steps = 40", "steps = 4")
    )
    assert (
        bruit("network", "init", "--peers", 3, "--experiment", "peers.toml", "--out", "net").code
        == 0
    )
    sites = [f"net/peer-{peer}/site.toml" for peer in range(3)]
    assert bruit("peer", "run", *sites).code == 0
    write_rows("new.csv", range(20), ("label",))
    for peer in range(3):
        path = Path(f"net/peer-{peer}/state/model.json")
        assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
        model = br.load_model(path)
        report = json.loads(Path(f"net/peer-{peer}/state/report.json").read_text())
        assert model.score == report["metrics"]["accuracy"]
        assert model.peer == peer
        assert model.privacy["epsilon"] == pytest.approx(float(report["epsilon"]))
        assert model.privacy["protected"] is True
        assert model.warnings == ()
        said = bruit("predict", path.parent, "new.csv")
        assert said.code == 0
        assert len(said.out.splitlines()) == 21


@pytest.mark.slow
def test_a_real_peers_own_file_gives_a_model_of_its_columns(bruit, tmp_path):
    text = (
        LEARN.replace("complete:12", "complete:3")
        .replace("steps = 40", "steps = 4")
        .replace("components = 5\n", "")
    )
    (tmp_path / "agreed.toml").write_text(text)
    (tmp_path / "scales.toml").write_text("age = [54.0, 9.0]\nweight = [70.0, 10.0]\n")
    (tmp_path / "mine.csv").write_text(
        "name,age,weight,ill\nAna,63,70,yes\nBen,41,80,no\nEva,50,60,no\n"
    )
    assert (
        bruit("network", "init", "--peers", 3, "--experiment", "agreed.toml", "--out", "net").code
        == 0
    )
    for peer in range(3):
        words = (
            "--experiment",
            "agreed.toml",
            "--label",
            "ill",
            "--classes",
            "no,yes",
            "--scales",
            "scales.toml",
        )
        assert (
            bruit(
                "peer",
                "data",
                "mine.csv",
                *words,
                "--out",
                f"net/peer-{peer}/records.npz",
                "--force",
            ).code
            == 0
        )
    assert bruit("peer", "run", *[f"net/peer-{peer}/site.toml" for peer in range(3)]).code == 0
    model = br.load_model("net/peer-1/state")
    assert model.recipe.names == ("age", "weight")
    assert model.classes == ("no", "yes")
    assert (
        model.score is None
    )  # there are no public records: its score would be one of private rows
    said = bruit("predict", "net/peer-1/state", "mine.csv")
    assert said.code == 0
    assert "left alone: name" in said.err


TABLE = "age,pressure,smokes,ill\n" + "".join(
    f"{'' if k == 7 else 40 + k},{100 + 3 * k},{('yes', 'no')[k % 2]},{('no', 'yes')[k > 15]}\n"
    for k in range(30)
)
FILLED = """\
graph = "complete:4"
steps = 3
[task]
kind = "logistic"
data = "table.csv"
label = "ill"
fill = { age = 55 }
[algorithm]
name = "gossip-sgd"
"""


@pytest.mark.parametrize(
    ("row", "complaint"),
    [
        (
            "40,?,no",
            "new.csv row 0 (line 2), column 'pressure' holds no value, but the model was learned "
            "with numbers",
        ),
        (
            "40,,no",
            "new.csv row 0 (line 2), column 'pressure' holds no value, but the model was learned "
            "with numbers",
        ),
        (
            "40,high,no",
            "new.csv row 0 (line 2), column 'pressure' holds 'high', but the model was learned "
            "with numbers",
        ),
        (
            "40,inf,no",
            "new.csv row 0 (line 2), column 'pressure' holds 'inf', but the model was learned with "
            "numbers",
        ),
    ],
)
def test_one_row_with_a_hole_is_judged_like_one_of_many(bruit, tmp_path, row, complaint):
    Path("table.csv").write_text(TABLE)
    Path("filled.toml").write_text(FILLED)
    bruit("run", "filled.toml")
    Path("new.csv").write_text(f"age,pressure,smokes\n{row}\n")
    said = bruit("predict", "runs/filled-seed0.run", "new.csv")
    assert said.code == 2
    assert complaint in said.err


@pytest.mark.parametrize("hole", ["", "?"])
def test_holes_that_are_filled_are_said(bruit, tmp_path, hole):
    Path("table.csv").write_text(TABLE)
    Path("filled.toml").write_text(FILLED)
    bruit("run", "filled.toml")
    Path("new.csv").write_text(f"age,pressure,smokes\n{hole},130,no\n")
    said = bruit("predict", "runs/filled-seed0.run", "new.csv")
    assert said.err.startswith("1 row, ")
    assert "holes filled as those of the records were: 1 in 'age'" in said.err
    assert bruit("predict", "runs/filled-seed0.run", "new.csv", "--json").json["filled"] == {
        "age": 1
    }
    Path("new.csv").write_text("age,pressure,smokes\n55,130,no\n")
    assert bruit("predict", "runs/filled-seed0.run", "new.csv").out == said.out
