"""An agreed columns file: what it says, what it refuses, and that all who use it prepare the same
rows."""

import numpy as np
import pytest

from bruit.errors import ConfigError
from bruit.peers.site.own_csv import write_records
from bruit.peers.site.own_records import read_share
from bruit.runs.file import parse
from bruit.tasks import Logistic, Personal, Ridge, Softmax
from bruit.tasks.data.agreed_columns import parse_agreed, read_agreed
from bruit.tasks.data.agreed_rows import complaints, fitting, in_words
from bruit.tasks.data.catalog import locate
from bruit.tasks.data.drafts.header import draft
from bruit.tasks.data.formats.csv_file import read_csv
from bruit.tasks.data.own_rows import Agreement
from bruit.tasks.kinds.section import TaskSection
from bruit.tasks.kinds.task_files import build_task

FILE = """\
intercept = 0.3
cut = 3.0
size = 0.5
owner = "clinic"
drop = ["patient"]

[label]
name = "ill"
classes = { no = ["0", "never"], yes = ["1"] }

[columns.age]
kind = "number"
center = 50
scale = 10
missing = ["-9"]
hole = "indicator"

[columns.chol]
kind = "number"
center = 200
scale = 40
low = 100
high = 300
instead = { 0 = 210 }
hole = "leave out"

[columns.sex]
kind = "two"
values = ["f", "m"]

[columns.pain]
kind = "category"
values = ["1", "2", "rest"]
base = "1"
other = "rest"
hole = "2"
"""
ROWS = """\
patient,clinic,age,chol,sex,pain,ill
1,a,60,200,m,1,1
2,a,-9,0,f,2.0,never
3,b,,1000,m,9,0
4,b,95,?,m,1,1
5,b,20,150,f,?,1
"""


@pytest.fixture
def made(tmp_path):
    def write(file=FILE, rows=ROWS):
        (tmp_path / "columns.toml").write_text(file)
        (tmp_path / "mine.csv").write_text(rows)
        return read_agreed(tmp_path / "columns.toml"), read_csv(tmp_path / "mine.csv")

    return write


def test_rows_by_hand(made):
    """age 60: (60 - 50) / 10 / 2; a hole: 0 and a column of its own; 1000 cut to 300, (300 - 200) /
    40 / 2; 0 is read as 210; sex -1/2, 1/2; pain 1 has no column, 9 is `rest`, a hole is 2."""
    agreed, table = made()
    found = fitting(agreed, table)
    ready = agreed.recipe().finish(found.raw).rows
    assert agreed.recipe().features == (
        "age",
        "age is missing",
        "chol",
        "sex=m",
        "pain=2",
        "pain=rest",
    )
    assert ready.tolist() == [
        [0.5, 0.0, 0.0, 0.5, 0.0, 0.0, 0.3],
        [0.0, 1.0, 0.125, -0.5, 1.0, 0.0, 0.3],
        [0.0, 1.0, 1.25, 0.5, 0.0, 1.0, 0.3],
        [-1.5, 0.0, -0.625, -0.5, 1.0, 0.0, 0.3],
    ]
    assert found.labels.tolist() == [1.0, 0.0, 0.0, 1.0]
    said = in_words(agreed, found)
    assert "left out: 1 record with holes (1 in 'chol')" in said
    assert "cut: 1 number of 'chol' to the range 100 to 300" in said
    assert "not agreed on: 1 cell of 'pain', taken for 'rest'" in said
    assert "filled: 2 holes of 'age' with a feature of its own" in said


def test_no_row_is_longer_than_the_public_bound(made):
    """R^2: age max(1.5^2, 1), chol 1.25^2, sex 1/4, pain 1, intercept 0.09."""
    agreed, table = made()
    bound = agreed.recipe().row_bound()
    assert bound == pytest.approx(np.sqrt(2.25 + 1.5625 + 0.25 + 1 + 0.09), rel=1e-9)
    ready = agreed.recipe().finish(fitting(agreed, table).raw).rows
    assert np.linalg.norm(ready, axis=1).max() <= bound
    free, _ = made(FILE.replace("cut = 3.0\n", ""))
    assert free.recipe().row_bound() == np.inf
    assert agreed.recipe("unit").row_bound() == 1.0


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (",60,", ",nan!,", r"line 2\), column 'age' holds 'nan!', .* a finite number"),
        (",60,", ",inf,", "column 'age' holds 'inf'"),
        (",m,1,1\n2", ",,1,1\n2", r"line 2\), column 'sex' holds no value"),
        (
            ",m,1,1\n2",
            ",x,1,1\n2",
            "column 'sex' holds 'x', which is none of the values of columns",
        ),
        (",never", ",maybe", r"line 3\), the label 'ill' holds 'maybe', .* none of the agreed"),
        (",never", ",", "a record without label cannot be learned from"),
        (",chol,", ",cholesterol,", "no column 'chol', a column of columns.toml; did you mean"),
        (",ill\n", ",sick\n", "no column 'ill', the label of columns.toml"),
    ],
)
def test_rows_that_make_no_sense_are_told_with_line_and_column(made, tmp_path, old, new, message):
    agreed, table = made(rows=ROWS.replace(old, new, 1))
    with pytest.raises(ConfigError, match=message):
        fitting(agreed, table)
    assert complaints(agreed, table)
    task = Agreement(TaskSection(kind="logistic"), None, None, (), agreed)
    with pytest.raises(ConfigError, match=message):
        write_records(tmp_path / "mine.csv", task, tmp_path / "records.npz")
    assert not (tmp_path / "records.npz").exists()


def test_all_complaints_are_counted(made):
    agreed, table = made(rows=ROWS.replace(",m,", ",x,"))
    assert [one.line for one in complaints(agreed, table)] == [2, 4]
    with pytest.raises(ConfigError, match="and 1 more; see `bruit columns check`"):
        fitting(agreed, table)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("center = 50", "", "columns.age.center is missing; fill it from public knowledge"),
        ("scale = 10", "scale = 0", "columns.age.scale is a finite number above 0"),
        ("scale = 10", "scale = nan", "columns.age.scale is a finite number"),
        ("low = 100", "low = 400", "the range 400 to 300"),
        ('kind = "two"', 'kind = "pair"', "columns.sex.kind is one of number, date, category, two"),
        ('["f", "m"]', '["f"]', "at least two different values, found f"),
        ('["f", "m"]', '["f", "m", "x"]', "kind two and has 3 values"),
        ('base = "1"', 'base = "7"', "columns.pain.base is '7', which is none of its values"),
        ('hole = "2"', 'hole = "7"', "columns.pain.hole is one of its values"),
        ("{ 0 = 210 }", "{ 0 = 9999 }", "columns.chol.instead is a number between 100 and 300"),
        ('drop = ["patient"]', 'drop = ["age"]', "'age' is in drop and is used"),
        ('owner = "clinic"', 'owner = "age"', "the owner 'age' is a column too"),
        ("intercept = 0.3", "intercep = 0.3", "unknown key 'intercep'; did you mean 'intercept'"),
        ('yes = ["1"]', 'yes = ["0"]', "no spelling means two"),
        ('name = "ill"', "", "does not say what is learned"),
        ("center = 50", "center = ", "not valid TOML"),
    ],
)
def test_files_that_make_no_sense(made, old, new, message):
    with pytest.raises(ConfigError, match=message):
        made(FILE.replace(old, new, 1))


def test_the_agreed_digest_is_checked(made, tmp_path):
    agreed, _ = made()
    path = tmp_path / "columns.toml"
    assert read_agreed(f"{path},sha256={agreed.digest}").names == agreed.names
    path.write_text(FILE + "# one more word\n")
    with pytest.raises(ConfigError, match="is not the columns file that was agreed on"):
        read_agreed(f"{path},sha256={agreed.digest}")
    with pytest.raises(ConfigError, match="sha256=DIGEST"):
        read_agreed(f"{path},md5=1")
    with pytest.raises(ConfigError, match="with bruit come: heart_disease"):
        read_agreed("none.toml")


def test_simulation_peer_and_new_rows_are_prepared_alike(made, tmp_path):
    agreed, table = made()
    task = Logistic.load(
        str(tmp_path / "mine.csv"), split="owner", test=0.0, rows="none", columns_file=agreed
    )
    assert task.constants().source == "declared"
    recipe = task.recipe()
    for peer, clinic in enumerate("ab"):
        own = tmp_path / f"{clinic}.csv"
        rows = [line for line in ROWS.splitlines() if f",{clinic}," in line]
        own.write_text("\n".join([ROWS.splitlines()[0], *rows]) + "\n")
        section = TaskSection(kind="logistic", rows="none")
        out = tmp_path / f"{clinic}.npz"
        write_records(own, Agreement(section, None, None, (), agreed), out)
        share, _ = read_share(out, peer, 2, "logistic", agreed.digest)
        part = next(task.records.parts(np.array([peer]), 1))
        mine = next(share.inner.records.parts(np.array([0]), 1))
        real = part.weights[0] > 0
        assert part.features[0][real].tolist() == mine.features[0].tolist()
        assert part.targets[0][real].tolist() == mine.targets[0].tolist()
        assert share.recipe().describe() == recipe.describe()
        assert share.inner.records.row_bound == task.records.row_bound
    whole = table.rows([0, 1, 2, 4])
    assert recipe.prepare(whole).rows.tolist() == [
        row for peer in (0, 1) for row in _real(task, peer)
    ]


def _real(task, peer):
    part = next(task.records.parts(np.array([peer]), 1))
    return part.features[0][part.weights[0] > 0].tolist()


def test_records_by_another_columns_file_are_refused(made, tmp_path):
    agreed, _ = made()
    out = tmp_path / "records.npz"
    section = TaskSection(kind="logistic")
    write_records(tmp_path / "mine.csv", Agreement(section, None, None, (), agreed), out)
    with pytest.raises(ConfigError, match=r"were prepared by a columns file .* agrees on one of"):
        read_share(out, 0, 2, "logistic", "0" * 64)
    with pytest.raises(ConfigError, match="but the experiment agrees on none"):
        read_share(out, 0, 2, "logistic", "")


def test_tables_of_one_record_one_class_and_none(made, tmp_path):
    """One record or one class is enough for a peer among others; nothing at all is not."""
    head, first = ROWS.splitlines()[:2]
    agreed, _ = made(rows=f"{head}\n{first}\n")
    task, out = Agreement(TaskSection(kind="logistic"), None, None, (), agreed), tmp_path / "r.npz"
    assert write_records(tmp_path / "mine.csv", task, out) == (1, 7)
    (tmp_path / "mine.csv").write_text(head + "\n")
    with pytest.raises(ConfigError, match="holds no records"):
        write_records(tmp_path / "mine.csv", task, tmp_path / "r2.npz")
    (tmp_path / "mine.csv").write_text(f"{head}\n4,b,95,?,m,1,1\n")
    with pytest.raises(ConfigError, match=r"every record of mine\.csv has a hole"):
        write_records(tmp_path / "mine.csv", task, tmp_path / "r2.npz")
    (tmp_path / "mine.csv").write_text(f"{head}\n{first}\n")
    with pytest.raises(ConfigError, match="holds 1 record, and needs one to learn from"):
        Logistic.load(
            str(tmp_path / "mine.csv"), split="owner", test=0.0, own_test=0.5, columns_file=agreed
        )


def test_numbers_are_learned_in_their_units(made, tmp_path):
    text = FILE.replace(
        'classes = { no = ["0", "never"], yes = ["1"] }', "center = 5\nscale = 2\nlow = 0\nhigh = 9"
    )
    agreed, _ = made(text, ROWS.replace(",never", ",100"))
    task = Ridge.load(str(tmp_path / "mine.csv"), split="owner", test=0.0, columns_file=agreed)
    assert task.records.together().targets.ravel().tolist() == [-2.0, 2.0, -2.5, -2.0]
    assert (task.recipe().center, task.recipe().unit) == (5.0, 2.0)
    with pytest.raises(
        ConfigError, match=r"logistic learns a class, but columns\.toml agrees on no"
    ):
        Logistic.load(str(tmp_path / "mine.csv"), split="owner", test=0.0, columns_file=agreed)
    classes, _ = made()
    with pytest.raises(ConfigError, match="ridge learns a number, but"):
        Personal.load(Ridge, str(tmp_path / "mine.csv"), split="owner", columns_file=classes)


@pytest.mark.parametrize(
    "line",
    ['label = "ill"', "fill = 0", 'holes = "drop"', 'standardize = "none"', "components = 2"],
)
def test_nothing_is_said_twice(made, tmp_path, line):
    made()
    text = (
        'graph = "complete:2"\nsteps = 1\n[task]\nkind = "logistic"\n'
        f'data = "{tmp_path}/mine.csv"\ncolumns_file = "{tmp_path}/columns.toml"\n{line}\n'
        '[algorithm]\nname = "gossip-sgd"\n'
    )
    with pytest.raises(ConfigError, match="is said in the columns file"):
        build_task(parse(text).task, 2, 0)


def test_a_draft_holds_nothing_of_the_rows(tmp_path):
    (tmp_path / "t.csv").write_text("age,city of birth,ill\n4711,Xanadu,1\n815,Xanadu,0\n")
    text = draft(read_csv(tmp_path / "t.csv"), "ill")
    for cell in ("4711", "815", "Xanadu"):
        assert cell not in text
    assert "FROM PUBLIC KNOWLEDGE" in text
    (tmp_path / "c.toml").write_text(text)
    with pytest.raises(ConfigError, match=r"columns\.age\.center is missing"):
        read_agreed(tmp_path / "c.toml")
    filled = text.replace("# center =  ", "center = 1 #").replace("# scale =  ", "scale = 2 #")
    filled = filled.replace("# values = []", 'values = ["a", "b"]')
    (tmp_path / "c.toml").write_text(filled.replace('# classes = ["no"', 'classes = ["no"'))
    assert read_agreed(tmp_path / "c.toml").names == ("age", "city of birth")


def test_bundled_data_by_a_columns_file():
    agreed = parse_agreed(
        {
            "label": {"name": "target", "classes": ["setosa", "versicolor", "virginica"]},
            "columns": {"petal width (cm)": {"kind": "number", "center": 1.0, "scale": 1.0}},
        }
    )
    task = Softmax.load("iris", peers=3, test=0.0, rows="none", columns_file=agreed)
    assert task.dim == 6


@pytest.mark.skipif(locate("heart_disease") is None, reason="the data folder has no heart_disease")
def test_heart_disease_as_flamby_prepares_it():
    """303, 261, 46 and 130 patients; 13 columns and the intercept; a third of each center's for
    judging."""
    options = {"split": "owner", "test": 0.0, "rows": "none", "columns_file": "heart_disease"}
    task = Logistic.load("heart_disease", **options)
    assert task.records.sizes.tolist() == [303, 261, 46, 130]
    assert task.dim == 14
    assert task.constants().source == "declared"
    apart = Logistic.load("heart_disease", own_test=1 / 3, seed=1, **options)
    assert apart.judged is not None
    assert apart.records.sizes.tolist() == [202, 174, 31, 87]
    assert apart.judged.sizes.tolist() == [101, 87, 15, 43]
    found = apart.references()
    assert 0.60 < found["one_answer"] < found["alone_everybody"] < found["central"] < 0.90
    numbers = read_agreed("heart_disease").constants
    assert numbers["age"] == (55.0, 20.0)
    assert numbers["chol"] == (200.0, 80.0)


def test_a_known_value_is_no_hole(made):
    """A question mark that is among the values, as in adult's, stays one."""
    agreed, table = made(
        FILE.replace('["1", "2", "rest"]', '["1", "2", "?", "rest"]'), ROWS.replace("5,b", "5,a")
    )
    found = fitting(agreed, table)
    assert found.cells["pain"].filled == 0
    assert agreed.recipe().features[-3:] == ("pain=2", "pain=?", "pain=rest")
    assert found.raw[-1, -3:].tolist() == [0.0, 1.0, 0.0]
