"""The model can be used: it says of new rows what the run said of its held-out ones, and nothing
private is in it."""

import csv
import json

import numpy as np
import pytest

import bruit as br
from bruit.runs.model import read_model
from bruit.tasks import Logistic, Pairwise, Ridge, Softmax, histogram
from bruit.tasks.data.formats.csv_file import read_csv
from bruit.tasks.data.public import Agreed
from bruit.tasks.data.public_part import _held_out
from bruit.tasks.data.sources import load
from bruit.tasks.pairs.statistic import Statistic

NOISE = br.Gaussian(clip=1.0, sigma=0.5)
PEOPLE = [
    (
        str(age),
        color,
        str(age / 10 + 3 * (color == "red")),
        "ill" if (age > 40) != (color == "red") else "well",
    )
    for age in range(20, 60)
    for color in ("red", "green", "blue")
]


@pytest.fixture
def people(tmp_path):
    """A CSV file with a text column, a number and both kinds of label."""
    path = tmp_path / "people.csv"
    path.write_text("age,color,dose,state\n" + "\n".join(",".join(row) for row in PEOPLE) + "\n")
    return path


def held_out_rows(data, label=None, seed=0, strata=True, share=0.2):
    """The rows that belong to no peer, as they are in the file."""
    table = load(str(data), label)
    public = _held_out(table.labels if strata else np.zeros(len(table.labels)), share, seed)
    return table, public


def learned(task, steps=20, algorithm=None, privacy=NOISE):
    chosen = algorithm or br.GossipSGD(rate=2.0)
    return br.run(chosen, f"complete:{task.peers}", task, privacy=privacy, steps=steps, seed=3)


@pytest.mark.parametrize(
    ("kind", "data", "options"),
    [
        (Logistic, "breast_cancer", {}),
        (Logistic, "breast_cancer", {"components": 5}),
        (Logistic, "breast_cancer", {"rows": "none"}),
        (Softmax, "iris", {}),
        (Softmax, "wine", {"components": 3}),
        (Ridge, "diabetes", {}),
    ],
    ids=str,
)
def test_held_out_rows_get_exactly_the_score_of_the_run(kind, data, options):
    task = kind.load(data, peers=8, **options)
    run = learned(task)
    table, public = held_out_rows(data, strata=kind is not Ridge)
    model = run.model
    said = model.predict(table.features[public])
    if kind is Ridge:
        recipe = model.recipe
        wanted = (
            np.clip((table.labels[public] - recipe.center) / recipe.unit, -10, 10) * recipe.unit
            + recipe.center
        )
        found = float(np.sqrt(((said - wanted) ** 2).mean()))
        assert found == pytest.approx(model.score, rel=1e-12)
    else:
        names = np.array([table.label_text(value) for value in table.labels[public]])
        found = float((said.astype(str) == names).mean())
        assert found == model.score
    assert run.learned.score.public
    assert model.score == task.evaluate(run.estimates[:1])[task.metric]
    assert np.array_equal(
        model.prepared(table.features[public]).rows, task.records.held_out.features
    )


@pytest.mark.parametrize("standardize", ["public", "none", "agreed"])
def test_a_csv_file_with_texts_is_prepared_as_its_records_were(people, standardize):
    agreed = (
        Agreed(scales={"age": (40, 10), "dose": (5, 2)}) if standardize == "agreed" else Agreed()
    )
    task = Logistic.load(
        str(people), peers=4, label="state", standardize=standardize, agreed=agreed
    )
    model = learned(task).model
    _, public = held_out_rows(people, "state")
    rows = read_csv(people)
    assert np.array_equal(model.prepared(rows).rows[public], task.records.held_out.features)
    assert model.recipe.features == ("age", "color=blue", "color=green", "color=red", "dose")
    as_dicts = [dict(zip(rows.names, row, strict=True)) for row in PEOPLE]
    assert model.predict(as_dicts).tolist() == model.predict(rows).tolist()
    by_column = {
        name: [x if name == "color" else float(x) for x in rows.of(name)]
        for name in model.recipe.names
    }
    assert model.predict(by_column).tolist() == model.predict(rows).tolist()
    assert set(model.predict(rows)) <= {"ill", "well"}
    assert model.predict_proba(rows).sum(axis=1) == pytest.approx(1)


class Frame(dict):
    """As much of a data frame as is asked for."""

    @property
    def columns(self):
        return list(self)


def test_a_data_frame_is_read_by_column_name(people):
    model = learned(Logistic.load(str(people), peers=4, label="state")).model
    frame = Frame(
        {"dose": [1.0, 2.0], "color": ["red", "blue"], "age": [30, 50], "name": ["x", "y"]}
    )
    rows = [{"age": 30, "color": "red", "dose": 1.0}, {"age": 50, "color": "blue", "dose": 2.0}]
    assert model.predict(frame).tolist() == model.predict(rows).tolist()
    assert model.recipe.extra(frame) == ("name",)


def test_a_number_is_predicted_in_the_units_of_its_label(people):
    task = Ridge.load(str(people), peers=4, label="dose", rows="none", test=0.2)
    run = learned(task, 300, br.GossipSGD(rate=0.1), None)
    errors = run.model.predict(read_csv(people)) - np.array([float(row[2]) for row in PEOPLE])
    assert np.abs(errors).max() < 0.05
    assert run.model.measured(read_csv(people)) == (
        "rmse",
        pytest.approx(float(np.sqrt((errors**2).mean()))),
    )


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            lambda rows: [row | {"color": "pink"} for row in rows],
            "'pink', which the model has never met",
        ),
        (lambda rows: [row | {"age": ""} for row in rows], "column 'age'"),
        (
            lambda rows: [{key: row[key] for key in ("age", "color")} for row in rows],
            "no column 'dose'",
        ),
        (
            lambda rows: [{"ages": row["age"]} for row in rows],
            "no column 'age'; did you mean 'ages'",
        ),
        (lambda rows: [row | {"age": "old"} for row in rows], "'age'"),
        (lambda _: [], "shape"),
        (lambda _: 3, "data frame"),
        (lambda _: np.zeros((2, 7)), "of 3 columns: age, color, dose"),
    ],
)
def test_rows_the_model_cannot_be_applied_to_are_refused(people, change, words):
    model = learned(Logistic.load(str(people), peers=4, label="state")).model
    rows = [{"age": 30, "color": "red", "dose": 1.0}, {"age": 31, "color": "blue", "dose": 2.0}]
    with pytest.raises(br.ConfigError, match=words):
        model.predict(change(rows))


def test_holes_are_refused_in_arrays_too():
    model = learned(Logistic.load("breast_cancer", peers=4)).model
    rows = np.zeros((2, 30))
    rows[1, 3] = np.nan
    with pytest.raises(br.ConfigError, match="row 1, column 'mean area'"):
        model.predict(rows)


def test_what_is_written_is_what_is_read(tmp_path, people):
    model = learned(Softmax.load(str(people), peers=4, label="color", components=2)).model
    again = br.load_model(model.save(tmp_path / "m.json"))
    assert again.describe() == model.describe()
    assert np.array_equal(again.numbers, model.numbers)
    assert again.predict(read_csv(people)).tolist() == model.predict(read_csv(people)).tolist()
    json.loads(
        (tmp_path / "m.json").read_text(),
        parse_constant=lambda token: pytest.fail(f"{token} is no JSON"),
    )


def test_a_run_folder_gives_the_model_of_any_peer(tmp_path):
    run = br.run(
        br.GossipSGD(), "ring:6", Logistic.load("breast_cancer", peers=6), privacy=NOISE, steps=4
    )
    folder = run.save(tmp_path / "x.run")
    assert (
        br.load_model(folder).describe()
        == run.model.describe()
        == read_model(folder / "model.json").describe()
    )
    third = br.load_model(folder, peer=3)
    assert np.array_equal(third.numbers, run.estimates[3])
    assert third.score is None  # only the first one was measured
    with pytest.raises(br.ConfigError, match=r"the peers are 0\.\.5"):
        br.load_model(folder, peer=6)
    with pytest.raises(br.ConfigError, match="holds one model"):
        br.load_model(folder / "model.json", peer=1)


def test_the_model_of_a_walk_is_its_last_holders():
    run = br.run(
        br.WalkSGD(),
        "ring:6",
        Logistic.load("breast_cancer", peers=6),
        privacy=NOISE,
        steps=40,
        seed=1,
    )
    assert run.model.peer == run.trace.meetings.b[-1]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda c: c | {"format": "other"}, "not a model of bruit"),
        (lambda c: c | {"version": 3}, "format version 3"),
        (lambda c: c | {"coefficients": [[1.0]]}, "numbers for 1 outputs"),
        (lambda c: c | {"intercept": "xy"}, "broken"),
        (lambda c: {key: c[key] for key in c if key != "preparation"}, "broken"),
        (lambda c: c | {"preparation": c["preparation"] | {"centers": [1]}}, "broken"),
        (lambda _: [1], "not a model"),
        (lambda c: c | {"preparation": c["preparation"] | {"scales": [0.0] * 30}}, "broken"),
    ],
)
def test_broken_foreign_and_newer_files_are_refused(tmp_path, change, words):
    path = learned(Logistic.load("breast_cancer", peers=4)).model.save(tmp_path / "m.json")
    path.write_text(json.dumps(change(json.loads(path.read_text()))))
    with pytest.raises(br.ConfigError, match=words):
        br.load_model(path)
    path.write_text("{")
    with pytest.raises(br.ConfigError, match="is broken"):
        br.load_model(path)
    with pytest.raises(br.ConfigError, match="there is no model"):
        br.load_model(tmp_path / "nothing.json")


def test_a_changed_model_in_a_run_folder_is_noticed(tmp_path):
    folder = learned(Logistic.load("breast_cancer", peers=4)).save(tmp_path / "x.run")
    content = json.loads((folder / "model.json").read_text())
    (folder / "model.json").write_text(json.dumps(content | {"peer": 1}))
    with pytest.raises(br.ConfigError, match=r"model.json is not the file that was written"):
        br.load(folder)


def test_an_estimator_of_scikit_learn(people):
    from sklearn.base import is_classifier
    from sklearn.metrics import accuracy_score
    from sklearn.utils.validation import check_is_fitted

    model = learned(Logistic.load("breast_cancer", peers=4)).model
    table, _ = held_out_rows("breast_cancer")
    made = model.to_sklearn()
    names = np.array([table.label_text(value) for value in table.labels])
    check_is_fitted(made)
    assert is_classifier(made)
    assert made.classes_.tolist() == ["malignant", "benign"]
    assert made[-1].coef_.shape == (1, 31)
    assert made.score(table.features, names) == accuracy_score(names, model.predict(table.features))
    scores = model.scores(table.features)[:, 0]
    assert made.decision_function(table.features) == pytest.approx(scores)
    assert np.array_equal(
        made.predict_proba(table.features)[:, 1] > 0.5, made.predict(table.features) == "benign"
    )
    line = learned(Ridge.load("diabetes", peers=4)).model.to_sklearn()
    rows, _ = held_out_rows("diabetes", strata=False)
    assert line.predict(rows.features).shape == (442,)
    assert line[-1].coef_.shape == (11,)


def test_numeric_classes_come_back_as_numbers():
    labels = np.tile([-1.0, 1.0], 12)
    records = br.tasks.Records.of(
        np.random.default_rng(0).normal(size=(24, 3)), labels, np.repeat(np.arange(8), 3)
    )
    model = br.run(br.GossipSGD(), "ring:8", Logistic(records), steps=3).model
    assert model.predict(np.zeros((2, 3))).dtype.kind == "i"
    assert set(model.labels().tolist()) == {-1, 1}
    assert model.recipe.names == ("x0", "x1", "x2")


def test_means_histograms_and_statistics_are_numbers():
    values = br.tasks.Mean(np.arange(8.0).reshape(4, 2))
    mean = br.run(br.Averaging(), "complete:4", values, steps=50).model
    assert mean.answer() == {"number 0": pytest.approx(3), "number 1": pytest.approx(4)}
    counted = histogram(30, data="iris")
    share = br.run(br.Averaging(), "complete:30", counted, steps=50).model
    assert share.kind == "histogram"
    assert list(share.answer()) == ["setosa", "versicolor", "virginica"]
    assert sum(share.answer().values()) == pytest.approx(1)
    points = Statistic.of(np.arange(5.0), "gini")
    number = br.run(br.Gosta(), "complete:5", points, steps=20).model
    assert list(number.answer()) == ["gini"]
    for model in (mean, share, number):
        assert model.score is None  # measured against the truth, which is private
        with pytest.raises(br.ConfigError, match="no function of rows"):
            model.predict(np.zeros((1, 2)))


def test_pairwise_models_score_rows_or_measure_distances():
    task = Pairwise.load("breast_cancer", "auc", peers=8)
    run = br.run(br.DualAveraging(), "complete:8", task, steps=30, seed=0)
    table, public = held_out_rows("breast_cancer")
    scores = run.model.predict(table.features[public])
    points = np.column_stack((scores, table.labels[public]))
    up, down = points[points[:, 1] == 1, 0], points[points[:, 1] == 0, 0]
    auc = float((np.sign(up[:, None] - down[None, :]) / 2 + 0.5).mean())
    assert auc == pytest.approx(run.model.score, abs=1e-12)
    metric = Pairwise.of(np.random.default_rng(1).normal(size=(6, 2)), np.arange(6) % 2, "metric")
    far = br.run(br.DualAveraging(), "complete:6", metric, steps=10).model
    assert far.distances(np.eye(2)).shape == (2, 2)
    with pytest.raises(br.ConfigError, match="compares two rows"):
        far.predict(np.eye(2))


def test_each_peer_has_its_own_personal_model():
    rng = np.random.default_rng(0)
    task = Logistic(
        br.tasks.Records.of(
            rng.normal(size=(12, 2)), np.tile([-1.0, 1.0], 6), np.repeat(np.arange(4), 3)
        )
    )
    personal = br.tasks.Personal(task, np.full(4, 0.5))
    run = br.run(br.ModelPropagation(), "ring:4", personal, steps=10)
    assert not np.array_equal(run.model_of(0).numbers, run.model_of(1).numbers)
    assert run.model_of(1).kind == "logistic"
    assert run.model.score is None  # judged on private records


def test_boosted_models_ask_their_stumps(tmp_path):
    from bruit.tasks.boosted import Boosted
    from bruit.tasks.stumps import Stumps

    rng = np.random.default_rng(2)
    X, y = rng.uniform(size=(40, 2)), np.tile([-1.0, 1.0], 20)
    X[:, 0] = 0.3 * X[:, 0] + 0.35 * (y > 0) + 0.1
    stumps = Stumps.over(np.zeros(2), np.ones(2), 8)
    task = Boosted(Boosted.of(X, y, np.repeat(np.arange(4), 10), stumps))
    run = br.run(br.Boosting(), "ring:4", task, steps=30)
    model = br.load_model(run.model.save(tmp_path / "m.json"))
    assert model.kind == "boosted"
    assert model.recipe.inputs[0] == "x0 > 0.25"
    right = float((model.predict(X[:10]) == y[:10]).mean())
    assert right == task.scores(run.estimates)[0]
    assert model.to_sklearn().score(X[:10], y[:10]) == right


def test_a_model_without_noise_says_so_and_no_seed_is_in_it(tmp_path):
    task = Logistic.load("breast_cancer", peers=4)
    open_one = learned(task, privacy=None).model
    assert open_one.privacy["protected"] is False
    assert "nothing is protected" in open_one.warnings[0]
    hidden = learned(task).model
    assert hidden.privacy["level"] == "user"
    assert hidden.privacy["delta"] == 1e-6
    assert hidden.privacy["epsilon"] == pytest.approx(float(learned(task).epsilon(delta=1e-6)))
    assert "it protects nobody" in hidden.warnings[0]  # simulated noise
    written = json.dumps(
        {key: value for key, value in hidden.describe().items() if key != "warnings"}
    )
    assert "seed" not in written.replace("whoever knows the seed and the records", "")


def test_an_epsilon_that_is_not_known_promises_nothing(monkeypatch):
    def refuse(*_, **__):
        raise br.PrivacyError("nothing is known")

    run = learned(Logistic.load("breast_cancer", peers=4))
    monkeypatch.setattr(br.Run, "epsilon", refuse)
    assert run.model.privacy["epsilon"] is None
    assert run.model.privacy["protected"] is False
    assert "not computed" in run.model.privacy["in_words"]


def test_raw_data_at_home_is_said():
    model = br.run(
        br.GossipSGD(), "ring:4", Logistic.load("breast_cancer", peers=4), privacy=NOISE, steps=2
    )
    model.local = True
    assert any("give it to nobody" in warning for warning in model.model.warnings)
    assert model.model.privacy["protected"] is False


def test_predictions_of_a_run_that_went_astray_are_refused():
    run = learned(Logistic.load("breast_cancer", peers=4))
    run.estimates = np.full_like(run.estimates, np.nan)
    with pytest.raises(br.ConfigError, match="not finite"):
        run.model.predict(np.zeros((1, 30)))


def test_older_folders_have_no_model(tmp_path):
    run = learned(Logistic.load("breast_cancer", peers=4))
    run.learned = None
    folder = run.save(tmp_path / "old.run")
    assert not (folder / "model.json").exists()
    with pytest.raises(br.ConfigError, match="older bruit"):
        br.load_model(folder)


def test_a_threshold_is_measured_on_the_number_behind_it(tmp_path):
    task = Logistic.load("breast_cancer", peers=4)
    model = learned(task).model
    cut = model.recipe.__class__(
        **{**vars(model.recipe), "classes": ("<=5", ">5"), "label": "grade"}
    )
    path = tmp_path / "new.csv"
    with open(path, "w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow([*model.recipe.names, "grade"])
        writer.writerows(
            [[*map(repr, row.tolist()), 7] for row in load("breast_cancer").features[:20]]
        )
    graded = br.runs.model.Model(**{**vars(model), "recipe": cut})
    share = float((graded.scores(read_csv(path))[:, 0] > 0).mean())
    assert graded.measured(read_csv(path)) == ("accuracy", share)
