"""What of a data set is used is chosen and said: columns, holes, owners; nothing is dropped in
silence."""

import json
from io import StringIO

import numpy as np
import pytest
from rich.console import Console

from bruit.errors import ConfigError
from bruit.runs.build import build
from bruit.runs.file import parse
from bruit.runs.result import load as load_run
from bruit.show import summary as report
from bruit.tasks import Logistic, Pairwise, Ridge, histogram
from bruit.tasks.data.choice import Choice
from bruit.tasks.data.public import Agreed
from bruit.tasks.data.sources import load
from bruit.tasks.pairs.statistic_file import load_statistic

HEAD = "id,age,weight,color,owner,label"


def file_of(folder, change=lambda k, row: row, name="table.csv", rows=24):
    """24 patients of four clinics; `change` may spoil a row."""
    lines = [HEAD]
    for k in range(rows):
        row = {
            "id": f"P{k:03}",
            "age": f"{30 + k % 5}",
            "weight": f"{60 + k % 7}.5",
            "color": ("red", "blue")[k % 2],
            "owner": "abcd"[k % 4],
            "label": ("no", "yes")[k // 2 % 2],
        }
        lines.append(",".join(change(k, row).values()))
    (folder / name).write_text("\n".join(lines) + "\n")
    return str(folder / name)


def holes(k, row):
    """Two holes in age, one in color, one in both age and weight."""
    return row | {
        3: {"age": ""},
        5: {"age": "?"},
        8: {"color": ""},
        9: {"age": "na", "weight": "NaN"},
    }.get(k, {})


def used(task):
    return task.describe()["used"]


def facts(task, source="private rows"):
    return [fact["fact"] for fact in task.describe()["public"] if fact["from"] == source]


NO_ID = Choice(drop=("id",))


def test_columns_are_chosen_in_their_order(tmp_path):
    table = load(file_of(tmp_path), choice=Choice(columns=("weight", "age")))
    assert table.feature_names == ("weight", "age")
    assert table.features[0].tolist() == [60.5, 30.0]
    task = Logistic.load(file_of(tmp_path), peers=3, choice=Choice(columns=("weight", "age")))
    assert task.dim == 3
    assert used(task)["columns"] == ["weight", "age"]
    assert used(task)["columns_not_used"] == ["id", "color"]
    dropped = Logistic.load(file_of(tmp_path), peers=3, choice=Choice(drop=("id", "weight")))
    assert used(dropped)["columns"] == ["age", "color"]
    assert dropped.dim == 4  # age, two colors, intercept


@pytest.mark.parametrize(
    ("choice", "message"),
    [
        (
            {"columns": ("wieght",)},
            r"no column 'wieght', which columns names; did you mean 'weight'",
        ),
        ({"drop": ("idd",)}, r"no column 'idd', which drop names; did you mean 'id'"),
        ({"drop": ("id",), "fill": {"heigth": 1}}, r"no column 'heigth', which fill names"),
        (
            {"columns": ("age", "label")},
            r"columns names 'label', the label of table.csv, which is no feature",
        ),
        ({"drop": ("owner",)}, r"drop names 'owner', the owner of table.csv"),
        (
            {"columns": ("age",), "fill": {"weight": 1.0}},
            r"fill names the column 'weight', which is not used",
        ),
        ({"columns": ("age", "age")}, r"the column 'age' would be used twice"),
        (
            {"drop": ("id",), "fill": {"age": "old"}},
            r"fill puts the text 'old' into 'age' of table.csv, which holds num",
        ),
    ],
)
def test_choices_that_do_not_fit_the_file(tmp_path, choice, message):
    with pytest.raises(ConfigError, match=message):
        Logistic.load(file_of(tmp_path), peers=3, choice=Choice(**choice))


@pytest.mark.parametrize(
    ("choice", "message"),
    [
        ({"columns": ("a",), "drop": ("a",)}, "'a' is named in columns and in drop"),
        ({"fill": "mean"}, "fill='mean' is not known"),
        ({"fill": float("inf")}, "not finite"),
        ({"fill": {"a": float("nan")}}, "not finite"),
        ({"holes": "keep"}, "holes='keep' is not known"),
    ],
)
def test_choices_that_mean_nothing(choice, message):
    with pytest.raises(ConfigError, match=message):
        Choice(**choice)


# ids


def test_an_id_column_is_refused_not_one_hot_encoded(tmp_path):
    """24 different texts in 24 rows became 24 coordinates, all of them public."""
    with pytest.raises(
        ConfigError, match=r"'id' holds 24 different texts in 24 rows, .* drop = \[\"id\"\]"
    ):
        Logistic.load(file_of(tmp_path), peers=3)
    assert Logistic.load(file_of(tmp_path), peers=3, choice=NO_ID).dim == 5


def test_nearly_as_many_texts_as_rows_are_ids_too(tmp_path):
    nearly = file_of(tmp_path, lambda k, row: row | {"id": f"P{k // 2 if k < 10 else k}"})
    with pytest.raises(ConfigError, match=r"19 different texts in 24 rows"):
        load(nearly)
    few = file_of(tmp_path, lambda k, row: row | {"id": f"P{k % 12}"})
    assert len(load(few).feature_names) == 16
    agreed = Agreed(vocabulary={"id": tuple(f"P{k:03}" for k in range(24))})
    assert len(load(file_of(tmp_path), agreed=agreed).feature_names) == 28


@pytest.mark.parametrize("name", ["id", "patient_id", "PatientID", "index", "Unnamed: 0", ""])
def test_whole_numbers_that_are_ids_by_name_are_refused(tmp_path, name):
    path = tmp_path / "numbered.csv"
    path.write_text(
        f"{name},age,label\n" + "".join(f"{100 + 3 * k},{k % 5},{k % 2}\n" for k in range(12))
    )
    with pytest.raises(ConfigError, match=r"holds another whole number in every row, as ids do"):
        load(str(path))
    assert load(str(path), choice=Choice(columns=(name, "age"))).features[1, 0] == 103  # asked for
    path.write_text(
        "humid,age,label\n" + "".join(f"{100 + 3 * k},{k % 5},{k % 2}\n" for k in range(12))
    )
    assert load(str(path)).feature_names == ("humid", "age")


def test_a_column_without_any_value_is_refused(tmp_path):
    empty = file_of(tmp_path, lambda k, row: row | {"weight": "?"})
    with pytest.raises(ConfigError, match=r"'weight' holds no value in any row; leave it out"):
        load(empty, choice=NO_ID)


# holes


def test_holes_are_refused_unless_something_is_chosen(tmp_path):
    with pytest.raises(
        ConfigError, match=r"row 3 \(line 5\), column 'age': no value .*holes = \"drop\""
    ):
        load(file_of(tmp_path, holes), choice=NO_ID)


def test_holes_are_filled_with_constants(tmp_path):
    path = file_of(tmp_path, holes)
    choice = Choice(drop=("id",), fill={"age": 50, "weight": 70.5, "color": "unknown"})
    table = load(path, choice=choice)
    assert table.features[[3, 5, 9], 0].tolist() == [50, 50, 50]
    assert table.features[9, 1] == 70.5
    assert table.feature_names == ("age", "weight", "color=blue", "color=red", "color=unknown")
    task = Logistic.load(path, peers=3, choice=choice)
    assert used(task)["filled"] == {
        "age": {"holes": 3, "with": "50"},
        "weight": {"holes": 1, "with": "70.5"},
        "color": {"holes": 1, "with": "unknown"},
    }
    assert "how many holes were filled (3 in 'age', 1 in 'weight', 1 in 'color')" in facts(task)
    with pytest.raises(ConfigError, match=r"column 'color' holds no value"):
        load(
            path, choice=Choice(drop=("id",), fill=0.0)
        )  # a number for all is for columns of numbers
    assert load(path, choice=Choice(drop=("id", "color"), fill=0.0)).features[3, 0] == 0.0


def test_holes_are_filled_with_the_mean_of_public_rows_only(tmp_path):
    def clinic_c(k, row):
        return holes(k, row | ({"age": f"{40.25 + k}"} if row["owner"] == "c" else {}))

    path = file_of(tmp_path, clinic_c)
    choice = Choice(columns=("age", "weight"), fill="public")
    options = {"standardize": "none", "rows": "none", "choice": choice, "split": "owner"}
    task = Logistic.load(path, agreed=Agreed(public=("c",)), **options)
    mean = np.mean([40.25 + k for k in range(24) if k % 4 == 2])
    other = task.records.together().features[0][:, 0]
    assert np.isclose(other, mean).sum() == 3
    assert used(task)["filled"]["age"] == {
        "holes": 3,
        "with": f"{mean:g}, the mean of the public rows",
    }
    # what private owners hold moves the mean in no way
    moved = file_of(tmp_path, lambda k, row: clinic_c(k, row | {"age": "999"}), "moved.csv")
    again = Logistic.load(moved, agreed=Agreed(public=("c",)), **options)
    assert used(again)["filled"] == used(task)["filled"]
    with pytest.raises(
        ConfigError, match=r"but no row is public; hold some out \(test\), or fill with constants"
    ):
        Logistic.load(path, peers=3, test=0.0, standardize="none", choice=choice)
    alone = file_of(tmp_path, lambda k, row: row | ({"age": ""} if k % 4 == 2 else {}), "alone.csv")
    with pytest.raises(ConfigError, match=r"no public row of alone.csv has a value in 'age'"):
        Logistic.load(alone, agreed=Agreed(public=("c",)), **options)


def test_records_with_holes_are_left_out_and_counted(tmp_path):
    path = file_of(tmp_path, holes)
    choice = Choice(drop=("id",), holes="drop")
    task = Logistic.load(path, peers=3, choice=choice)
    found = used(task)
    assert (found["records"], found["with_holes"], found["held"] + found["public"]) == (24, 4, 20)
    assert found["holes"] == {"age": 3, "weight": 1, "color": 1}
    assert (
        "left out: 4 records with holes (3 in 'age', 1 in 'weight', 1 in 'color')"
        in found["in_words"]
    )
    assert (
        "4 of 24 records with missing values left out (3 in 'age', 1 in 'weight', 1 in 'color')"
        in facts(task)
    )
    fewer = Logistic.load(path, peers=3, choice=Choice(columns=("weight",), holes="drop"))
    assert used(fewer)["with_holes"] == 1  # holes of columns that are not used drop nothing
    labels = file_of(tmp_path, lambda k, row: row | ({"label": ""} if k < 2 else {}), "labels.csv")
    assert used(Logistic.load(labels, peers=3, choice=choice))["holes"] == {"label": 2}
    both = Logistic.load(
        path, peers=3, choice=Choice(drop=("id",), fill={"age": 1.0}, holes="drop")
    )
    assert used(both)["holes"] == {"weight": 1, "color": 1}
    with pytest.raises(ConfigError, match=r"every record of empty.csv has a hole \(24 in 'age'\)"):
        load(file_of(tmp_path, lambda k, row: row | {"age": ""}, "empty.csv"), choice=choice)


def test_owners_that_lose_all_records_are_named(tmp_path):
    path = file_of(tmp_path, lambda k, row: row | ({"age": ""} if row["owner"] == "d" else {}))
    task = Logistic.load(
        path, split="owner", choice=Choice(drop=("id",), holes="drop"), test=0.0, standardize="none"
    )
    assert task.peers == 3
    assert used(task)["owners_left_out"] == ["d"]
    assert "left out: 1 owner with a hole in every record: d" in used(task)["in_words"]


def test_arrays_are_chosen_from_in_the_same_way(tmp_path):
    X = np.arange(24.0).reshape(8, 3)
    X[2, 1] = np.nan
    np.savez(tmp_path / "set.npz", X=X, y=np.arange(8) % 2, owner=np.arange(8) // 2)
    path = str(tmp_path / "set.npz")
    with pytest.raises(ConfigError, match=r"row 2, column 1 is no finite number \(x1\); fill it"):
        load(path)
    assert load(path, choice=Choice(drop=("x1",))).feature_names == ("x0", "x2")
    assert load(path, choice=Choice(fill={"x1": -1.0})).features[2].tolist() == [6, -1, 8]
    assert load(path, choice=Choice(columns=("x2", "x1"), fill=5.0)).features[2].tolist() == [8, 5]
    dropped = load(path, choice=Choice(holes="drop"))
    assert (len(dropped.features), dropped.reading.dropped) == (7, 1)
    mean = Logistic.load(
        path, peers=2, test=0.4, rows="none", standardize="none", choice=Choice(fill="public")
    )
    assert used(mean)["filled"]["x1"]["holes"] == 1
    with pytest.raises(ConfigError, match=r"fill puts the text 'a' into 'x1'"):
        load(path, choice=Choice(fill={"x1": "a"}))
    iris = load("iris", choice=Choice(columns=("petal width (cm)",)))
    assert iris.features.shape == (150, 1)
    assert iris.reading.unused == ("sepal length (cm)", "sepal width (cm)", "petal length (cm)")


def test_other_tasks_choose_and_say_too(tmp_path):
    path = file_of(tmp_path, holes)
    pairs = Pairwise.load(path, peers=3, choice=Choice(columns=("age",), holes="drop"))
    assert used(pairs)["with_holes"] == 3
    ridge = Ridge.load(
        path,
        peers=3,
        label="weight",
        choice=Choice(drop=("id", "label", "color"), fill={"age": 1.0}, holes="drop"),
    )
    assert used(ridge)["holes"] == {"weight": 1}
    spread = load_statistic(path, "variance", ["age"], 10, "sized:1:2", holes="drop")
    assert used(spread)["with_holes"] == 3
    assert used(spread)["left_over"] == 21 - used(spread)["held"] > 0
    assert "3 of 24 records with missing values left out (3 in 'age')" in facts(spread)
    filled = load_statistic(path, "variance", ["age"], 24, fill=40.0)
    assert used(filled)["filled"] == {"age": {"holes": 3, "with": "40"}}
    with pytest.raises(ConfigError, match=r"no public rows whose mean could fill"):
        load_statistic(path, "variance", ["age"], 24, fill="public")
    with pytest.raises(ConfigError, match=r"variance is of the columns alone; leave label"):
        load_statistic(path, "variance", ["age"], 24, fill=1.0, label="label")
    with pytest.raises(ConfigError, match=r"low and high are the ends of bins"):
        load_statistic(path, "variance", ["age"], 24, fill=1.0, high=9.0)
    many = Pairwise.load("digits", "metric", peers=50)
    assert used(many)["in_words"][-2:] == [
        "the loss is measured among 200 of 359 points",
        "the reference of all data in one place is fitted on 1000 of 1438 points",
    ]
    counted = histogram(
        10, data=path
    )  # reads the label alone: ids and holes elsewhere are nobody's business
    assert used(counted)["left_over"] == 14
    assert used(counted)["columns"] == ["label"]


# owners


def test_no_owner_is_left_out_unasked(tmp_path):
    """Two peers of four owners ran with two owners, and nothing said that the others were
    dropped."""
    path, options = file_of(tmp_path), {"test": 0.0, "standardize": "none", "choice": NO_ID}
    with pytest.raises(
        ConfigError,
        match=r"2 peers .* 4 owners, .* or use split='owner:2', which leaves out the last",
    ):
        Logistic.load(path, peers=2, split="owner", **options)
    with pytest.raises(
        ConfigError,
        match=r"of the 4 owners 1 are public .* which leaves 3; ask for 3 peers, or "
        r"split='owner:2' to leave out the last 1",
    ):
        Logistic.load(path, peers=2, split="owner", choice=NO_ID)
    task = Logistic.load(path, peers=2, split="owner:2", **options)
    assert task.peers == 2
    assert used(task)["owners_left_out"] == ["c", "d"]
    assert used(task)["left_over"] == 12
    assert "left out: 2 owners, as the split asks: c, d" in used(task)["in_words"]
    public = Logistic.load(path, split="owner:2", choice=NO_ID)  # still whole owners
    assert used(public)["public"] == 6
    assert any("they take no part" in fact for fact in facts(public, "public rows"))


def test_what_is_the_same_in_all_public_rows_and_classes_they_lack_are_said(tmp_path):
    flat = file_of(tmp_path, lambda k, row: row | {"weight": "70"})
    words = used(Logistic.load(flat, peers=3, choice=NO_ID))["in_words"]
    assert "the same in all public rows, so centered and not scaled: weight" in words
    rare = file_of(tmp_path, lambda k, row: row | ({"label": "yes" if k == 0 else "no"}))
    words = used(Logistic.load(rare, peers=3, choice=NO_ID))["in_words"]
    assert "1 of 2 classes is in no public row, so scores say nothing of it" in words


# the screen, the folder


TOML = """
graph = "complete:3"
steps = 2
[task]
kind = "logistic"
data = "{file}"
split = "owner:3"
test = 0.0
standardize = "none"
drop = ["id"]
fill = {{ age = 50 }}
holes = "drop"
[algorithm]
name = "gossip-sgd"
[privacy]
sigma = 1.0
"""


def test_the_first_screen_the_folder_and_json_say_it(tmp_path):
    text = TOML.format(file=file_of(tmp_path, holes))
    run = build(parse(text), text).run()
    again = load_run(run.save(tmp_path / "run"))
    for shown in (run, again):
        wide = StringIO()
        Console(file=wide, width=200).print(*report.screen(shown, shown.summary()), sep="\n")
        seen = wide.getvalue()
        for words in (
            "data\n  24 records: 16 held by 3 peers (5 to 6 each)\n",
            "left out: 6 records that the split",
            "left out: 1 owner, as the split asks: d",
            "left out: 2 records with holes (1 in 'weight', 1 in 'color')",
            "3 columns used: age, weight, color",
            "1 column not used: id",
            "filled: 3 holes of 'age' with 50",
            "known besides the messages: 8 facts taken from private rows, listed below",
        ):
            assert words in seen, (words, seen)
        assert seen.index("data\n") < seen.index("accuracy")
    told = json.loads(json.dumps(report.as_json(run, run.summary())))["data"]
    assert told["with_holes"] == 2
    assert told["filled"] == {"age": {"holes": 3, "with": "50"}}
    manifest = json.loads((tmp_path / "run" / "manifest.json").read_text())
    assert manifest["task"]["used"] == told


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (
            "fill = [1]",
            'task.fill = [1]: value error, fill is a number, "public", or a table of constants',
        ),
        ("fill = { age = true }", 'fill is a number, "public"'),
        ('fill = "mean"', "fill='mean' is not known"),
        ('holes = "keep"', "task.holes = 'keep': input should be 'refuse' or 'drop'"),
        ('drop = ["ids"]', "mean 'id'"),
    ],
)
def test_files_that_choose_badly(tmp_path, line, message):
    key = line.split(" ")[0]
    kept = [
        row
        for row in TOML.format(file=file_of(tmp_path)).splitlines()
        if not row.startswith(f"{key} =")
    ]
    text = "\n".join(kept).replace("[algorithm]", f"{line}\n[algorithm]")
    with pytest.raises(ConfigError) as caught:
        build(parse(text), text)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("kind", "line", "message"),
    [
        ("mean", "l2 = 0.1", "task.l2 says nothing about a mean task without data"),
        ("mean", 'split = "owner"', "task.split says nothing about a mean task"),
        ("mean", 'drop = ["a"]', "task.drop says nothing about a mean task"),
        ("histogram", "test = 0.1", "task.test says nothing about a histogram task without data"),
        ("logistic", 'model = "ridge"', "task.model is of personal tasks, found a logistic task"),
        (
            "softmax",
            "predictors = 5",
            "task.predictors is of boosted tasks, found a softmax task",
        ),
        ("ridge", 'classes = ["a", "b"]', "task.classes says nothing about a ridge task"),
        ("boosted", 'rows = "none"', "task.rows says nothing about a boosted task"),
        ("boosted", 'local = ["intercept"]', "since every peer learns a combination of its own"),
        ("personal", 'local = ["intercept"]', "since every peer learns a model of its own already"),
    ],
)
def test_keys_that_would_be_ignored_are_refused(kind, line, message):
    """l2 of a mean, a split of drawn values, a derivative clip of ridge: they were dropped without
    a word."""
    algorithm = {"boosted": "boosting", "mean": "averaging"}.get(kind, "gossip-sgd")
    data = (
        ""
        if kind in ("mean", "histogram")
        else 'data = "diabetes"\n'
        if kind == "ridge"
        else 'data = "iris"\n'
    )
    text = (
        f'graph = "complete:3"\nsteps = 2\n[task]\nkind = "{kind}"\n{data}{line}\n'
        f'[algorithm]\nname = "{algorithm}"\n'
    )
    with pytest.raises(ConfigError, match=message):
        build(parse(text), text)


def test_a_derivative_clip_of_ridge_is_used():
    """It was taken out before the task was made."""
    text = (
        'graph = "complete:3"\nsteps = 2\n[task]\nkind = "ridge"\ndata = '
        '"diabetes"\nderivative_clip = 0.5\n'
        '[algorithm]\nname = "gossip-sgd"\n'
    )
    assert build(parse(text), text).task.derivative_clip == 0.5


def test_long_numbers_that_are_names_stay_apart(tmp_path):
    """Classes, categories and owners with more digits than are shown by default, or than a float
    holds."""
    long = (
        ("1000001", "1000002"),
        ("90071992547409921", "90071992547409922"),
        ("36028797018963968", "36028797018963969"),
    )
    lines = [f"{k},{long[0][k % 2]},{long[1][k % 2]},{long[2][k // 2 % 2]}" for k in range(40)]
    (tmp_path / "long.csv").write_text("x,label,place,owner\n" + "\n".join(lines) + "\n")
    table = load(str(tmp_path / "long.csv"), agreed=Agreed(vocabulary={"place": long[1]}))
    assert [table.label_text(value) for value in table.label_values()] == list(long[0])
    assert table.features[:2, 1:].tolist() == [[1, 0], [0, 1]]
    assert table.owner_names == long[2]
    assert table.owners.tolist() == [k // 2 % 2 for k in range(40)]
