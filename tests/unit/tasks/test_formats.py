"""Tables as people have them: every format gives the same rows, and what cannot be read is refused by
a sentence that says what to do."""

import gzip
import sys
from datetime import date, datetime, timedelta
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pytest

import bruit as br
from bruit.commands import cli
from bruit.errors import ConfigError
from bruit.runs.result import load_model
from bruit.tasks.data.agreed_columns import parse_agreed, read_agreed
from bruit.tasks.data.agreed_rows import complaints, fitting, in_words
from bruit.tasks.data.columns import is_missing, number, spelled
from bruit.tasks.data.formats.dates import are_dates, days, usual_forms
from bruit.tasks.data.formats.frames import as_columns
from bruit.tasks.data.formats.tables import read_table
from bruit.tasks.data.recipe_column import column_from

AGREED = """\
[label]
name = "ill"
classes = [false, true]

[columns.age]
kind = "number"
center = 50
scale = 10
hole = "indicator"

[columns.seen]
kind = "date"
center = 2020-01-01
scale = 100
low = 2019-01-01
hole = "indicator"

[columns.smokes]
kind = "two"
values = [false, true]
hole = false

[columns.ward]
kind = "category"
values = ["north", "other", "south"]
base = "north"
other = "other"
hole = "other"
"""
VALUES = {
    "age": [61, None, 40, 55, 70, 33],
    "seen": [date(2020, 4, 10), date(2018, 1, 1), None, *[date(2021, 5, k) for k in (1, 2, 3)]],
    "smokes": [True, False, None, True, False, True],
    "ward": ["north", "west", None, "south", "north", "other"],
    "ill": [True, False, True, False, True, False],
}


def in_pandas():
    frame = pd.DataFrame(VALUES)
    frame["seen"] = pd.to_datetime(frame["seen"])
    frame["smokes"] = frame["smokes"].astype("boolean")
    frame["ward"] = frame["ward"].astype("category")
    return frame


def written(place, form):
    path, frame = place / f"rows.{form}", pl.DataFrame(VALUES)
    match form:
        case "csv":
            in_pandas().to_csv(path, index=False)  # writes True and False
        case "csv.gz":
            path.write_bytes(gzip.compress(frame.write_csv().encode()))  # writes true and false
        case "tsv":
            frame.write_csv(path, separator="\t")
        case "parquet":
            frame.write_parquet(path)
        case "pq":
            in_pandas().to_parquet(path)
    return path


SOURCES = {
    "pandas": lambda place: in_pandas(),
    "polars": lambda place: pl.DataFrame(VALUES),
    "arrow": lambda place: pl.DataFrame(VALUES).to_arrow(),
    "mapping": lambda place: VALUES,
    "mappings": lambda place: pl.DataFrame(VALUES).to_dicts(),
    **{
        form: lambda place, form=form: written(place, form)
        for form in ("csv", "csv.gz", "tsv", "parquet", "pq")
    },
}


def call(words, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["bruit", *words.split()])
    with pytest.raises(SystemExit) as end:
        cli.main()
    return int(end.value.code or 0)


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "columns.toml").write_text(AGREED)
    return tmp_path


@pytest.mark.parametrize("source", SOURCES)
def test_every_format_gives_the_same_rows(source, place):
    agreed = read_agreed("columns.toml")
    found = fitting(agreed, read_table(SOURCES[source](place)))
    low = days("2019-01-01")
    assert found.raw.tolist() == [
        [61, 0, days("2020-04-10"), 0, 0.5, 0, 0],
        [50, 1, low, 0, -0.5, 1, 0],
        [40, 0, days("2020-01-01"), 1, -0.5, 1, 0],
        [55, 0, days("2021-05-01"), 0, 0.5, 0, 1],
        [70, 0, days("2021-05-02"), 0, -0.5, 0, 0],
        [33, 0, days("2021-05-03"), 0, 0.5, 1, 0],
    ]
    assert found.labels.tolist() == [1, 0, 1, 0, 1, 0]
    assert "cut: 1 date of 'seen' to the range 2019-01-01 to inf" in in_words(agreed, found)
    assert agreed.recipe().finish(found.raw).rows[0].tolist()[2] == 1.0  # 100 days after the center


@pytest.mark.parametrize("source", SOURCES)
def test_a_model_is_learned_from_every_format_and_answers_it(source, place, monkeypatch, capsys):
    rows = SOURCES[source](place)
    task = br.tasks.Logistic.load(
        rows, 3, columns_file="columns.toml", test=0.0, own_test=0.0, rows="none"
    )
    run = br.run(br.GossipSGD(rate=1.0), "complete:3", task, steps=3)
    assert set(run.model.predict(rows if not hasattr(rows, "name") else read_table(rows))) <= {
        "false",
        "true",
    }
    if hasattr(rows, "name"):
        run.save(place / "own.run")
        assert call(f"predict own.run {rows.name} --json", monkeypatch) == 0
        assert '"accuracy"' in capsys.readouterr().out
        assert call(f"predict own.run {rows.name} --out answers.parquet", monkeypatch) == 2
        assert "predictions are written as CSV; call the file .csv" in capsys.readouterr().err
        kept, plain = load_model(place / "own.run"), run.model
        assert kept.scores(read_table(rows)).tolist() == plain.scores(read_table(rows)).tolist()


@pytest.mark.parametrize("source", ["pandas", "polars", "arrow", "csv"])
def test_a_network_learns_from_every_format(source, place):
    rows = SOURCES[source](place)
    keys = {"columns_file": "columns.toml", "test": 0.0, "own_test": 0.0, "peers": 3}
    task = br.tasks.Torch.load(rows, "mlp:2", **keys)
    assert (task.peers, task.records.columns) == (3, 7)


def test_holes_of_all_kinds_are_empty_cells():
    holes = [None, float("nan"), np.nan, pd.NA, pd.NaT, np.datetime64("NaT"), np.float32("nan"), ""]
    assert as_columns({"a": holes}).of("a") == ("",) * len(holes)


def test_values_are_spelled_as_a_csv_file_would():
    values = [1, 1.5, np.int8(3), True, np.False_, Decimal("2.50"), " x ", date(2024, 3, 1)]
    values += [datetime(2024, 3, 1), datetime(2024, 3, 1, 12, 30), pd.Timestamp("2024-03-01")]
    assert as_columns({"a": values}).of("a") == (
        *("1", "1.5", "3", "true", "false", "2.50", "x", "2024-03-01"),
        *("2024-03-01", "2024-03-01 12:30:00", "2024-03-01"),
    )
    assert [spelled(text) for text in ("True", "TRUE", "false", "1.0", "truth")] == [
        *("true", "true", "false", "1", "truth")
    ]


@pytest.mark.parametrize("value", [b"x", [1], {"a": 1}, (1,), np.zeros(2), timedelta(1)])
def test_what_no_cell_can_hold_is_refused(value):
    with pytest.raises(ConfigError, match=r"the table row 1, column 'a' holds a .*: turn it into"):
        as_columns({"a": [1, value]})


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (pl.LazyFrame(VALUES), "give its collect"),
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), "two columns called 'a'"),
        ({"a": [1], "b": [1, 2]}, "columns of different lengths"),
        (pd.DataFrame({"a": []}), "or no row; give at least one"),
        (7, "a data frame, a mapping of columns, .* found int"),
    ],
)
def test_rows_in_hand_that_are_no_table(rows, message):
    with pytest.raises(ConfigError, match=message):
        as_columns(rows)


@pytest.mark.parametrize(
    ("name", "raw", "message"),
    [
        (
            "a.csv",
            b"name,ill\nM\xfcller,1\n",
            "not UTF-8 text: line 2 holds the byte 0xfc; save it",
        ),
        ("a.csv", "a,ill\n1,2\n".encode("utf-16"), "is UTF-16 text; save it as UTF-8"),
        ("a.csv.gz", b"a,b\n", "a.csv.gz could not be read: Not a gzipped file"),
        (
            "a.csv",
            b"a;ill\n1,5;1\n2;0\n",
            "line 2, column 'a' holds '1,5', a number with a decimal",
        ),
        ("a.csv", b"a,b\n1\n", "line 2 has 1 cell, .* repair that line, or remove it if it is no"),
        ("a.csv", b"Report\na,b\n1,2\n", "line 2 has 2 cells, .* remove what stands above"),
        (
            "a.csv",
            b'a,b\n1,yes\n2,"yes\n3,no\n4,no\n',  # would be one row that holds three
            "a.csv, lines 3 to 5: a quote that opens there is not closed",
        ),
        ("a.csv", b'a,b\n"x"y,1\n', "a.csv, line 2: a quote that opens there is not closed"),
        ("a.csv", b"a,,\n1,2,\n1,,3\n", "two columns without a name, one at place 3"),
        ("a.xlsx", b"PK", 'neither .*; save the sheet from your spreadsheet as "CSV UTF-8"'),
        ("a.parquet", b"PAR1", "could not be read as a Parquet file"),
    ],
)
def test_files_that_cannot_be_read(name, raw, message, tmp_path):
    (tmp_path / name).write_bytes(raw)
    with pytest.raises(ConfigError, match=message):
        read_table(tmp_path / name)


def test_semicolons_and_texts_with_commas_are_read(tmp_path):
    (tmp_path / "a.csv").write_text("name;age\nMiller, A;1.5\n3,4;2\n")
    assert read_table(tmp_path / "a.csv").cells == (("Miller, A", "3,4"), ("1.5", "2"))


@pytest.mark.parametrize(
    "text",
    [
        '"age, years";ill\n40;1\n50;0\n',  # the comma stands in a quoted name
        "age, years|ill|\n40|1|\n50|0|\n",
        "\ufeffage, years;ill;\r\n40;1;\r\n50;0;\r\n",
        '"age, years", "ill"\r40, "1"\r50, 0\r',
        '"age, years",ill,,\n40,1,,\n50,0,,\n',  # columns of a spreadsheet that hold nothing
    ],
)
def test_what_stands_between_cells_is_found_in_the_header(text, tmp_path):
    (tmp_path / "a.csv").write_text(text, newline="")
    found = read_table(tmp_path / "a.csv")
    assert (found.names, found.cells) == (("age, years", "ill"), (("40", "50"), ("1", "0")))
    assert found.lines == (2, 3)


def test_what_python_takes_for_a_number_and_people_do_not():
    assert np.isnan(number("1_2"))
    assert (spelled("1_2"), spelled("12")) == ("1_2", "12")
    assert is_missing("#N/A")
    assert is_missing("<NA>")


@pytest.mark.parametrize(
    ("cells", "forms"),
    [
        (["31.01.2024", "", "01.02.2024"], ("%d.%m.%Y",)),
        (["01/02/2024", "03/04/2024"], ("%d/%m/%Y", "%m/%d/%Y")),
        (["01/31/2024", "03/04/2024"], ("%m/%d/%Y",)),
        (["20240131", "20240201"], ("%Y%m%d",)),
        (["20240131", "99999999"], ()),
        (["12345678", "10101010"], ()),
        (["31.01.2024", "2024-02-01"], ()),
        ([""], ()),
    ],
)
def test_usual_forms_of_dates(cells, forms):
    assert usual_forms(cells) == forms


def test_without_pyarrow_a_parquet_file_says_what_to_install(tmp_path, monkeypatch):
    pl.DataFrame(VALUES).write_parquet(tmp_path / "a.parquet")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ConfigError, match=r"pip install 'bruit\[parquet\]'; or save .* as CSV"):
        read_table(tmp_path / "a.parquet")


def test_equal_cells_of_a_large_file_are_one_text_in_memory(tmp_path):
    (tmp_path / "a.csv").write_text("ward,ill\n" + "the north ward, yes\n" * 1000)
    cells = read_table(tmp_path / "a.csv").of("ward")
    assert len({id(cell) for cell in cells}) == 1


def test_dates_in_other_forms_and_with_times():
    assert days("1970-01-02 06:00") == days("1970-01-02T08:00+02:00") == 1.25
    assert days("01.02.1970", "%d.%m.%Y") == 31
    assert np.isnan(days("31.02.1970", "%d.%m.%Y"))
    assert are_dates(["2024-03-01", "", "2024-03-02 10:00"])
    assert not are_dates(["20240301"])
    assert not are_dates([""])
    section = {"kind": "date", "form": "%d.%m.%Y", "center": "2020-01-01", "scale": 10}
    agreed = parse_agreed({"label": {"name": "y"}, "columns": {"seen": section}})
    table = as_columns({"seen": ["11.01.2020", "2020-01-11"], "y": [1, 2]})
    assert agreed.recipe().standard(np.array([[days("2020-01-11")]])).tolist() == [[1.0]]
    (wrong,) = complaints(agreed, table)
    assert "'2020-01-11', where the agreed columns agrees on a date as %d.%m.%Y" in wrong.sentence
    (column,) = agreed.columns
    assert column_from(column.describe()) == column


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"center": "yesterday", "scale": 1}, "columns.seen.center is a date as 2024-03-01"),
        ({"center": date(2020, 1, 1)}, "columns.seen.scale is missing"),
        ({"center": date(2020, 1, 1), "scale": 1, "form": "dd.mm"}, "or a form such as"),
        (
            {"center": date(2020, 1, 1), "scale": 1, "low": date(2021, 1, 1), "high": "2020-01-01"},
            "the range 2021-01-01 to 2020-01-01",
        ),
        (
            {"center": date(2020, 1, 1), "scale": 1, "low": date(2019, 1, 1), "hole": "1999-01-01"},
            "hole is a date between 2019-01-01 and inf",
        ),
    ],
)
def test_sections_of_dates_that_make_no_sense(keys, message):
    with pytest.raises(ConfigError, match=message):
        parse_agreed({"label": {"name": "y"}, "columns": {"seen": {"kind": "date", **keys}}})


def test_a_column_of_dates_without_a_columns_file_is_told_about_it():
    rows = {"seen": [f"2024-03-{k:02}" for k in range(1, 21)], "y": [0, 1] * 10}
    with pytest.raises(ConfigError, match=r'dates are read by a columns file \(kind = "date"\)'):
        br.tasks.Logistic.load(rows, 2)


def test_a_pipeline_refuses_what_its_parts_read_otherwise(place):
    task = br.tasks.Logistic.load(
        in_pandas(), 3, columns_file="columns.toml", test=0.0, own_test=0.0, rows="none"
    )
    run = br.run(br.GossipSGD(rate=1.0), "complete:3", task, steps=1)
    with pytest.raises(ConfigError, match="'seen' holds dates, which the parts of scikit-learn"):
        run.model.to_sklearn()
