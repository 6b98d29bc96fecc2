"""Records from a participant's own CSV: prepared by agreed constants; complaints name file, column
and line."""

import stat

import numpy as np
import pytest

from bruit.accounts.account import beside
from bruit.accounts.prices import Price
from bruit.errors import ConfigError
from bruit.peers.site.own_csv import read_scales, write_records
from bruit.peers.site.own_records import read_share
from bruit.tasks.data.own_rows import Agreement
from bruit.tasks.kinds.section import TaskSection

PATIENTS = "age,pressure,ill\n63,150,yes\n45,114,no\n"
COLUMNS = {"pressure": (132.0, 18.0), "age": (54.0, 9.0)}


def agreement(
    kind="logistic", label="ill", columns=COLUMNS, classes=("no", "yes"), columns_=(), **task
):
    """`columns` are centers and scales, `columns_` those that the experiment names."""
    task |= {"columns": list(columns_)}
    return Agreement(TaskSection(kind=kind, **task), label, columns, classes)


@pytest.fixture
def csv(tmp_path):
    def write(text=PATIENTS, name="mine.csv"):
        (tmp_path / name).write_text(text)
        return tmp_path / name

    return write


def test_rows_by_hand(csv, tmp_path):
    """(150 - 132) / 18 = 1, (63 - 54) / 9 = 1, intercept 1, over the norm sqrt(3); the agreed
    order, not the file's."""
    out = tmp_path / "records.npz"
    assert write_records(csv(), agreement(l2=0.1, derivative_clip=0.5), out) == (2, 3)
    assert stat.S_IMODE(out.stat().st_mode) == 0o600
    with np.load(out) as stored:
        assert np.allclose(
            stored["features"], np.array([[1, 1, 1], [-1, -1, 1]]) / np.sqrt(3), atol=1e-9
        )
        assert np.linalg.norm(stored["features"], axis=1).max() <= 1
        assert stored["targets"].tolist() == [1.0, -1.0]
        assert (
            float(stored["l2"]),
            float(stored["derivative_clip"]),
            float(stored["row_bound"]),
        ) == (0.1, 0.5, 1.0)


def test_prepared_records_are_no_change_of_the_table_until_they_change(csv, tmp_path, caplog):
    """Everybody's first run said that records had changed since their account was written."""
    question = Price.stated("a run", 1.0, 0.0, "user", "everybody")
    outs = [tmp_path / "first.npz", tmp_path / "second.npz"]
    for out, l2 in zip(outs, (0.1, 0.2), strict=True):
        write_records(csv(), agreement(l2=l2, derivative_clip=0.5), out)
        beside(out).charge(question)
    assert "has changed" not in caplog.text
    assert len(beside(csv()).balance().charged) == 2
    outs[0].write_bytes(b"other records")
    beside(outs[0]).charge(question)
    assert "first.npz has changed since its account was written" in caplog.text


@pytest.mark.parametrize(
    ("kind", "text", "classes", "targets"),
    [
        ("logistic", PATIENTS, ("no", "yes"), [1.0, -1.0]),
        ("softmax", PATIENTS.replace("no", "maybe"), ("no", "maybe", "yes"), [2.0, 1.0]),
        ("ridge", PATIENTS.replace("yes", "7.5").replace("no", "2"), (), [7.5, 2.0]),
    ],
)
def test_a_peer_can_learn_from_what_was_written(csv, tmp_path, kind, text, classes, targets):
    out = tmp_path / "records.npz"
    write_records(csv(text), agreement(kind, classes=classes), out)
    task, _ = read_share(out, 1, 4, kind)
    assert np.load(out)["targets"].tolist() == targets
    assert np.isfinite(task.gradient(np.array([1]), np.zeros((1, task.dim)))).all()


def test_the_label_of_a_regression_has_constants_too(csv, tmp_path):
    columns = COLUMNS | {"ill": (2.0, 4.0)}
    text = PATIENTS.replace("yes", "10").replace("no", "2")
    assert write_records(csv(text), agreement("ridge", columns=columns), tmp_path / "r.npz") == (
        2,
        3,
    )
    with np.load(tmp_path / "r.npz") as stored:
        assert (stored["targets"].tolist(), float(stored["label_unit"])) == ([2.0, 0.0], 4.0)


def test_a_mean_is_one_row(csv, tmp_path):
    out = tmp_path / "records.npz"
    assert write_records(csv("a,b\n3,4\n"), agreement("mean", None, None), out) == (1, 2)
    task, _ = read_share(out, 0, 2, "mean")
    assert task.value(np.array([0])).tolist() == [[3.0, 4.0]]
    with pytest.raises(
        ConfigError, match="holds 2 rows, but in a mean every participant has one value"
    ):
        write_records(csv("a,b\n3,4\n5,6\n"), agreement("mean", None, None), out)


def test_a_histogram_is_one_answer(csv, tmp_path):
    """Randomized response tells one of the agreed values: a row with a single 1, in the agreed
    order."""
    out, agreed = (
        tmp_path / "records.npz",
        agreement("histogram", "ill", None, ("no", "maybe", "yes"), dim=3),
    )
    assert write_records(csv("age,ill\n63,yes\n"), agreed, out) == (1, 3)
    task, _ = read_share(out, 0, 2, "histogram")
    assert task.value(np.array([0])).tolist() == [[0.0, 0.0, 1.0]]


@pytest.mark.parametrize(
    ("text", "changes", "words"),
    [
        (PATIENTS, {}, "mine.csv holds 2 rows, but in a histogram every participant has one value"),
        (
            "ill\nmaybe\n",
            {},
            "line 2, column 'ill' holds 'maybe', which is none of the agreed classes",
        ),
        (
            "ill\nyes\n",
            {"label": None},
            "histogram needs the column that is counted: name it with --label",
        ),
        (
            "ill\nyes\n",
            {"classes": ()},
            "histogram needs the agreed classes of 'ill' in their order, at least two",
        ),
        (
            "ill\nyes\n",
            {"dim": 3},
            "a histogram of 3 values was agreed on .task.dim., but --classes names 2",
        ),
    ],
)
def test_histograms_that_cannot_be(csv, tmp_path, text, changes, words):
    with pytest.raises(ConfigError, match=words):
        write_records(csv(text), agreement("histogram", **changes), tmp_path / "records.npz")
    assert not (tmp_path / "records.npz").exists()


def test_public_records_of_a_mean(csv, tmp_path):
    with pytest.raises(ConfigError, match="a mean is no model; leave it out"):
        write_records(
            csv("a\n3\n"),
            agreement("mean", None, None),
            tmp_path / "records.npz",
            csv("a\n3\n", "p.csv"),
        )


def test_public_records_are_prepared_alike(csv, tmp_path):
    out = tmp_path / "records.npz"
    write_records(csv(), agreement(), out, csv(PATIENTS.replace("63", "54"), "public.csv"))
    with np.load(out) as stored:
        assert np.allclose(
            stored["public_features"][0], np.array([1, 0, 1]) / np.sqrt(2), atol=1e-9
        )
        assert stored["public_targets"].tolist() == [1.0, -1.0]


@pytest.mark.parametrize(
    ("text", "changes", "words"),
    [
        (PATIENTS.replace("age", "years"), {}, "mine.csv has no column 'age'"),
        (PATIENTS, {"label": "il"}, "mine.csv has no column 'il'; did you mean 'ill'"),
        (
            PATIENTS.replace("45", "nan"),
            {},
            r"row 1 \(line 3\), column 'age': no value where the column holds numbers",
        ),
        (PATIENTS.replace("45", ""), {}, r"line 3\), column 'age': no value"),
        (PATIENTS.replace("45", "inf"), {}, r"line 3\), column 'age': 'inf'"),
        (PATIENTS.replace("45", "old"), {}, r"line 3\), column 'age': 'old'"),
        (
            PATIENTS.replace("45", "old").replace("63", "young"),
            {},
            "column 'age' holds text or nothing; turn it into",
        ),
        (
            PATIENTS.replace("no", "No"),
            {},
            "line 3, column 'ill' holds 'No', which is none of the agreed classes",
        ),
        (PATIENTS, {"label": None}, "logistic needs a label"),
        (
            PATIENTS,
            {"classes": ()},
            "needs the agreed classes of 'ill' in their order, two different ones; found none",
        ),
        (PATIENTS, {"classes": ("no", "yes", "maybe")}, "two different ones; found no, yes, maybe"),
        (PATIENTS, {"classes": ("no", "no")}, "found no, no"),
        (PATIENTS, {"columns": {"ill": (0.0, 1.0)}}, "no feature column beside the label"),
        (PATIENTS, {"components": 2}, "asks for components"),
        ("age\n", {}, "holds no records"),
    ],
)
def test_what_is_wrong_is_named_and_nothing_is_written(csv, tmp_path, text, changes, words):
    with pytest.raises(ConfigError, match=words):
        write_records(csv(text), agreement(**changes), tmp_path / "records.npz")
    assert not (tmp_path / "records.npz").exists()


def test_files_that_are_not_there(csv, tmp_path):
    with pytest.raises(ConfigError, match=r"there is no file .*none.csv"):
        write_records(tmp_path / "none.csv", agreement(), tmp_path / "records.npz")
    with pytest.raises(ConfigError, match="there is no folder"):
        write_records(csv(), agreement(), tmp_path / "nowhere" / "records.npz")
    with pytest.raises(ConfigError, match="it names the agreed scales"):
        read_scales(tmp_path / "none.toml")


def test_columns_are_read_in_their_order(tmp_path):
    (tmp_path / "columns.toml").write_text("pressure = [132, 18.0]\nage = [54.0, 9]\n")
    assert list(read_scales(tmp_path / "columns.toml").items()) == list(COLUMNS.items())


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("age = 54.0", r"age must be \[center, scale\].* found 54.0"),
        ("age = [54.0, 0.0]", "the scale above 0"),
        ("age = [nan, 1.0]", "two numbers"),
        ("age = [54.0, true]", "two numbers"),
        ("age = [", "not valid TOML"),
        ("", "names no column"),
    ],
)
def test_wrong_columns_are_named(tmp_path, text, words):
    (tmp_path / "columns.toml").write_text(text)
    with pytest.raises(ConfigError, match=words):
        read_scales(tmp_path / "columns.toml")


HOLES = "id,age,pressure,ill\np1,63,150,yes\np2,,114,no\np3,45,,no\n"


def test_columns_holes_and_records_are_chosen_as_agreed(csv, tmp_path):
    """Holes could only be repaired in the file, and every column was used."""
    out, said = tmp_path / "records.npz", []
    filled = agreement(fill={"age": 54.0}, holes="drop")
    assert write_records(csv(HOLES), filled, out, tell=said.append) == (2, 3)
    with np.load(out) as stored:
        assert np.allclose(stored["features"][1], np.array([-1, 0, 1]) / np.sqrt(2), atol=1e-9)
    assert said == [
        "mine.csv: left out: 1 record with holes (1 in 'pressure')",
        "mine.csv: 2 columns used: pressure, age",
        "mine.csv: 1 column not used: id",
        "mine.csv: filled: 1 hole of 'age' with 54",
    ]
    chosen = agreement(columns=None, drop=["id"], fill=0.0)
    assert write_records(csv(HOLES), chosen, out) == (3, 3)
    assert write_records(
        csv(HOLES), agreement(columns=None, columns_=["age"], holes="drop"), out
    ) == (2, 2)


@pytest.mark.parametrize(
    ("task", "message"),
    [
        ({"fill": "public"}, "here agree on constants"),
        ({"drop": ["ages"]}, "no column 'ages', which drop names; did you mean 'age'"),
        (
            {"columns_": ["age", "id"], "columns": COLUMNS},
            "centers and scales are given for pressure, age; make them the",
        ),
        ({"drop": ["id"]}, 'holes = "drop"'),
    ],
)
def test_choices_that_participants_cannot_make(csv, tmp_path, task, message):
    with pytest.raises(ConfigError, match=message):
        write_records(csv(HOLES), agreement(**({"columns": None} | task)), tmp_path / "r.npz")
    assert not (tmp_path / "r.npz").exists()


def test_ids_are_refused_here_too(csv, tmp_path):
    text = "patient_id,age,ill\n" + "".join(
        f"{k},{40 + k % 3},{'yes' if k % 2 else 'no'}\n" for k in range(9)
    )
    with pytest.raises(ConfigError, match="'patient_id' holds another whole number in every row"):
        write_records(csv(text), agreement(columns=None), tmp_path / "r.npz")
