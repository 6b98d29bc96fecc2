"""Models without bruit: coefficients in raw units read from JSON by a few lines of Python, and
scikit-learn pipelines, say what the model says."""

import json
import math
import subprocess
import sys

import numpy as np
import pytest

import bruit as br
from bruit.runs.model import Model
from bruit.tasks import Logistic
from bruit.tasks.data.agreed_columns import parse_agreed

AGREED = {
    "intercept": 0.3,
    "cut": 3.0,
    "size": 0.5,
    "label": {"name": "ill", "classes": {"no": ["0"], "yes": ["1", "2"]}},
    "columns": {
        "age": {"kind": "number", "center": 50, "scale": 10, "missing": [-9], "hole": "indicator"},
        "chol": {
            "kind": "number",
            "center": 200,
            "scale": 40,
            "low": 120,
            "high": 400,
            "instead": {"0": 210},
            "hole": 190,
        },
        "sex": {"kind": "two", "values": ["f", "m"], "hole": "indicator"},
        "pain": {"kind": "category", "values": ["3", "1", "2"], "base": "1", "hole": "2"},
        "job": {
            "kind": "category",
            "values": ["none", "desk", "other", "field"],
            "other": "other",
            "coding": "halves",
            "hole": "desk",
        },
    },
}
COLUMNS = tuple(AGREED["columns"])
NUMBER = {"center": 5.0, "scale": 2.0}


def rows(count=1000, seed=0):
    """Random rows as pandas would read them: holes are None."""
    rng = np.random.default_rng(seed)
    age = rng.normal(50, 25, count).round(1)
    age[rng.random(count) < 0.1] = -9
    chol = np.where(rng.random(count) < 0.1, 0, rng.normal(220, 90, count).round())
    table = np.empty((count, 5), dtype=object)
    table[:, 0], table[:, 1] = age, chol
    table[:, 2] = rng.choice(["f", "m"], count)
    table[:, 3] = rng.choice([1.0, 2.0, 3.0], count)
    table[:, 4] = rng.choice(["none", "desk", "field", "other", "sea", "air"], count)
    table[rng.random(table.shape) < 0.1] = None
    return table


def model_of(kind, unit_rows, seed=1):
    content = dict(AGREED)
    if kind == "ridge":
        content["label"] = {"name": "ill"} | NUMBER
    if kind == "softmax":
        content["label"] = {"name": "ill", "classes": ["no", "maybe", "yes"]}
    recipe = parse_agreed(content).recipe("unit" if unit_rows else "none")
    outputs = 3 if kind == "softmax" else 1
    numbers = np.random.default_rng(seed).normal(size=outputs * recipe.width)
    return Model(kind=kind, numbers=numbers, recipe=recipe, metric="accuracy")


def raw_scores(content, row):
    """What a reader of the JSON file writes in any language: no bruit."""

    def several(found):
        return found if isinstance(found, list) else [found]

    raw = content["in_raw_units"]
    scores = list(several(raw["intercept"]))
    for name, column in raw["columns"].items():
        cell = row[name]
        text = (
            None
            if cell is None
            else str(int(cell) if isinstance(cell, float) and cell == int(cell) else cell)
        )
        cell = column.get("instead", {}).get(text, cell)
        if cell is None or text in column.get("missing", []):
            if "term" in column["hole"]:
                scores = [
                    a + b for a, b in zip(scores, several(column["hole"]["term"]), strict=True)
                ]
                continue
            cell = column["hole"]["value"]
        if column["kind"] == "number":
            value = float(cell)
            value = value if column["low"] is None else max(value, column["low"])
            value = value if column["high"] is None else min(value, column["high"])
            added = [one * value for one in several(column["coefficient"])]
        else:
            text = str(int(cell)) if isinstance(cell, float) else cell
            added = several(column["terms"].get(text, column["terms"].get(column["other"])))
        scores = [a + b for a, b in zip(scores, added, strict=True)]
    return scores


@pytest.mark.parametrize("unit_rows", [False, True])
@pytest.mark.parametrize("kind", ["logistic", "softmax", "ridge"])
def test_a_pipeline_says_what_the_model_says(kind, unit_rows):
    model, table = model_of(kind, unit_rows), rows()
    made = model.to_sklearn()
    said = model.predict([dict(zip(COLUMNS, row, strict=True)) for row in table.tolist()])
    if kind == "ridge":
        assert made.predict(table) == pytest.approx(said, rel=1e-12, abs=1e-12)
        return
    assert made.predict(table).tolist() == said.tolist()
    chances = model.predict_proba(table)
    assert made.predict_proba(table) == pytest.approx(chances, rel=1e-9, abs=1e-12)
    assert made.classes_.tolist() == model.labels().tolist()


@pytest.mark.parametrize("unit_rows", [False, True])
@pytest.mark.parametrize("kind", ["logistic", "softmax", "ridge"])
def test_the_json_file_says_what_the_model_says(tmp_path, kind, unit_rows):
    model, table = model_of(kind, unit_rows), rows(200)
    content = json.loads(model.save(tmp_path / "m.json").read_text())
    named = [dict(zip(COLUMNS, row, strict=True)) for row in table.tolist()]
    found = np.array([raw_scores(content, row) for row in named])
    expected = model.scores(named)
    if unit_rows:
        assert "norm of the prepared row" in content["in_raw_units"]["divided_by"]
        plain = model_of(kind, False)
        expected = plain.scores(named)  # before the division
    if kind == "ridge":
        expected = expected * 2.0 + (0.0 if unit_rows else 5.0)
    assert found == pytest.approx(expected, rel=1e-9, abs=1e-9)
    again = br.load_model(tmp_path / "m.json")
    assert again.scores(named).tolist() == model.scores(named).tolist()


def test_two_softmax_classes_have_one_score():
    recipe = parse_agreed(AGREED).recipe()
    numbers = np.random.default_rng(2).normal(size=2 * recipe.width)
    model, table = (
        Model(kind="softmax", numbers=numbers, recipe=recipe, metric="accuracy"),
        rows(99),
    )
    made = model.to_sklearn()
    assert made[-1].coef_.shape[0] == 1
    assert made.predict_proba(table) == pytest.approx(model.predict_proba(table), rel=1e-9)


def test_principal_directions_and_limits_are_folded_in():
    """Public scales, limits of 10 and components of a learned run; far numbers are cut alike."""
    task = Logistic.load("breast_cancer", peers=4, components=5)
    model = br.run(br.GossipSGD(), "ring:4", task, steps=5).model
    table = np.random.default_rng(3).normal(0, 1, (50, 30)) * 1000
    assert model.to_sklearn().predict_proba(table) == pytest.approx(
        model.predict_proba(table), rel=1e-9, abs=1e-12
    )


def test_strangers_and_holes_that_nobody_agreed_on_are_refused():
    model = model_of("logistic", False)
    made, table = model.to_sklearn(), rows(3)
    table[0] = [50.0, 200.0, "x", 1.0, "desk"]
    with pytest.raises(ValueError, match="unknown categories"):
        made.predict(table)
    content = dict(AGREED) | {"columns": {"age": {"kind": "number", "center": 50, "scale": 10}}}
    strict = parse_agreed(content).recipe()
    plain = Model(kind="logistic", numbers=np.ones(2), recipe=strict, metric="accuracy")
    with pytest.raises(ValueError, match="NaN"):
        plain.to_sklearn().predict(np.array([[None]], dtype=object))
    with pytest.raises(br.ConfigError, match="holds no value"):
        plain.predict([{"age": None}])


@pytest.mark.slow
def test_a_pipeline_is_made_of_scikit_learn_alone():
    """Whoever stores it with joblib or skops needs no bruit to load it."""
    code = (
        "import sys, json\nclass Guard:\n    def find_spec(self, name, *_):\n        if"
        " name.split('.')[0] == 'bruit': raise ImportError(name)\nsys.meta_path.insert(0,"
        " Guard())\nimport joblib, numpy as np\nmade ="
        " joblib.load(sys.argv[1])\nprint(json.dumps(made.predict(np.array([[60.0, None, 'm', 1.0,"
        " 'sea']], object)).tolist()))\n"
    )
    joblib = pytest.importorskip("joblib")
    import tempfile

    model = model_of("logistic", True)
    with tempfile.NamedTemporaryFile(suffix=".joblib") as file:
        joblib.dump(model.to_sklearn(), file.name)
        done = subprocess.run(
            [sys.executable, "-c", code, file.name], capture_output=True, text=True, check=True
        )
    row = [{"age": 60.0, "chol": None, "sex": "m", "pain": 1.0, "job": "sea"}]
    assert json.loads(done.stdout) == model.predict(row).tolist()


def test_a_data_frame_is_read_by_name():
    pandas = pytest.importorskip("pandas")
    model, table = model_of("logistic", False), rows(50)
    frame = pandas.DataFrame(table, columns=list(COLUMNS))[list(reversed(COLUMNS))]
    assert model.to_sklearn().predict(frame).tolist() == model.predict(frame).tolist()


def test_a_logistic_score_is_a_chance(tmp_path):
    model = model_of("logistic", False)
    content = json.loads(model.save(tmp_path / "m.json").read_text())
    row = {"age": 61.0, "chol": 250.0, "sex": "m", "pain": 2.0, "job": "sea"}
    chance = 1 / (1 + math.exp(-raw_scores(content, row)[0]))
    assert chance == pytest.approx(model.predict_proba([row])[0, 1])
    assert content["in_raw_units"]["outputs"] == ["yes"]
