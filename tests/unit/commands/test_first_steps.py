"""The first lines of the README, followed literally in a new shell, find the command and the page's
packages."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from bruit.commands.cli import app
from bruit.errors import ConfigError
from bruit.runs.build import build
from bruit.runs.file import bundled, read
from bruit.tasks.kinds.task_files import build_task

ROOT = Path(__file__).parents[3]


def test_the_readme_says_how_the_shell_finds_the_command():
    text = (ROOT / "README.md").read_text()
    make, activate = text.index("make run"), text.index(". .venv/bin/activate")
    first = re.search(r"^bruit ", text, re.MULTILINE)
    assert make < activate < first.start()


def test_make_run_installs_what_the_page_needs_and_says_what_to_type():
    text = (ROOT / "Makefile").read_text()
    rule = text.split("$(VENV)/run: pyproject.toml")[1].split("$(VENV)/dev")[0]
    assert "'.[ui]'" in rule
    assert "installing bruit" in rule.splitlines()[1], "a minute of silence is not an answer"
    assert "--quiet" not in text
    assert ". $(BIN)/activate" in text.split("\nrun: ")[1].split("\n\n")[0]
    assert "pipefail" in text, "a failed installation must not look like one that worked"


def test_a_table_in_place_of_an_experiment_is_told_where_it_goes(tmp_path):
    (tmp_path / "mine.csv").write_text("age,ill\n60,yes\n")
    with pytest.raises(ConfigError, match=r"`bruit init own\.toml --data .*mine\.csv --label"):
        read(tmp_path / "mine.csv")
    np.savez(tmp_path / "mine.npz", X=np.zeros((2, 1)), y=np.zeros(2))
    with pytest.raises(ConfigError, match=r'`bruit init` writes one, .* data = "mine\.npz"'):
        read(tmp_path / "mine.npz")


def test_what_is_suggested_for_the_experiment_is_what_it_takes(tmp_path, monkeypatch):
    """The lines that `bruit columns suggest` prints, put into the template of the README, run."""
    monkeypatch.chdir(tmp_path)
    rows = "".join(f"{40 + k % 30},c{k % 3},{'yes' if k % 30 > 12 else 'no'}\n" for k in range(90))
    (tmp_path / "mine.csv").write_text("age,owner,ill\n" + rows)
    said = CliRunner().invoke(app, ["columns", "suggest", "--public", "mine.csv", "--label", "ill"])
    keys = said.output.split("under [task]: ")[1].split()
    text = bundled()["ten-clinics"].read_text().replace("complete:10", "complete:3")
    text = re.sub(r"^(split|components|data) = .*$", "", text, flags=re.MULTILINE)
    lines = " ".join(keys).replace(", ", "\n")
    text = text.replace("[task]", f'[task]\ndata = "mine.csv"\nsplit = "owner"\n{lines}')
    (tmp_path / "own.toml").write_text(text)
    assert build_task(read("own.toml")[0].task, 3, 0).peers == 3


def _own(folder, holes=True):
    """A table as one gets it: ids, dates, holes, texts, three kinds of labels, six clinics."""
    lines = ["patient,clinic,age,smokes,seen,ill,stage,cost"]
    for k in range(120):
        age = "" if holes and k % 20 == 7 else str(30 + 7 * k % 50)
        ill, smokes = "yes" if 7 * k % 50 > 25 else "no", "yes" if k % 3 else "no"
        day, stage = f"202{k % 4}-0{k % 9 + 1}-15", ("early", "mid", "late")[k % 3]
        lines.append(
            f"P{k:03},{'abcdef'[k % 6]},{age},{smokes},{day},{ill},{stage},{k * 1.5 + 0.25}"
        )
    (folder / "mine.csv").write_text("\n".join(lines) + "\n")


def _init(*words):
    return CliRunner().invoke(app, ["init", "sub/own.toml", "--json", *words])


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sub").mkdir()
    _own(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("label", "owner", "kind", "peers"),
    [
        ("ill", ("--owner", "clinic"), "logistic", 5),
        ("stage", (), "softmax", 10),
        ("cost", (), "ridge", 10),
    ],
)
def test_an_experiment_for_ones_own_table_runs_as_it_is_written(here, label, owner, kind, peers):
    said = _init("--data", "mine.csv", "--label", label, *owner)
    assert said.exit_code == 0, said.output
    built = build(*read("sub/own.toml"))
    assert (built.file.task.kind, built.graph.n) == (kind, peers)
    assert built.run().steps == 40
    about = json.loads(said.output)
    assert set(about["left_out"]) == {"patient", "seen"}
    assert about["public"], "who becomes public is said"


def test_what_is_read_off_the_rows_is_said_and_no_value_is_in_the_file(here):
    """A stray text, an id and a date of the rows are in no line that could be shown to others."""
    table = (here / "mine.csv").read_text().replace("P011,f,57", "P011,f,>180")
    (here / "mine.csv").write_text(table)
    said = _init("--data", "mine.csv", "--label", "ill", "--owner", "clinic")
    text = (here / "sub/own.toml").read_text()
    for line in json.loads(said.output)["read_off_the_rows"]:
        assert f"#   {line}\n" in text
    assert "how many owners there are, 6" in text
    assert "'age' holds numbers with texts among them" in text
    assert not any(cell in text for cell in (">180", "P011", "-15"))
    assert "PUBLIC: 1 owner of 6" in text


def test_classes_in_two_spellings_are_not_learned_apart(here):
    table = (here / "mine.csv").read_text().replace(",yes,early", ",Yes,early")
    (here / "mine.csv").write_text(table)
    said = _init("--data", "mine.csv", "--label", "ill", "--owner", "clinic")
    assert "'Yes' and 'yes', which would be two classes; write them alike" in str(said.exception)


def test_dates_and_commas_of_a_spreadsheet_are_told(here):
    lines = (here / "mine.csv").read_text().splitlines()
    head, *rows = [line.split(",") for line in lines]
    days = ["/".join(reversed(row[4].split("-"))) for row in rows]
    rows = [
        [*row[:4], day, *row[5:7], f'"{k},5"']
        for k, (row, day) in enumerate(zip(rows, days, strict=True))
    ]
    (here / "mine.csv").write_text("\n".join(map(",".join, [head, *rows])) + "\n")
    about = json.loads(_init("--data", "mine.csv", "--label", "ill").output)
    assert about["left_out"]["seen"] == "holds dates, which a columns file reads"
    assert about["left_out"]["cost"] == "holds numbers with a comma"


def test_by_a_columns_file_nobody_is_public_and_only_owners_are_counted(here):
    words = ["--public", "mine.csv", "--label", "ill", "--owner", "clinic"]
    assert CliRunner().invoke(app, ["columns", "suggest", *words]).exit_code == 0
    said = _init("--data", "mine.csv", "--columns", "columns.toml")
    assert said.exit_code == 0, said.output
    about = json.loads(said.output)
    counted, suggested = about["read_off_the_rows"]
    assert counted == "how many owners there are, 6"
    assert "suggested by the rows of mine.csv: where these are the same rows" in suggested
    assert (about["public"], about["peers"], about["left_out"]) == ("", 6, {})
    file = read("sub/own.toml")[0]
    assert (file.task.test, file.task.own_test, file.task.rows) == (0.0, 0.3, "none")
    said = _init("--data", "mine.csv", "--columns", "columns.toml", "--label", "age", "--force")
    assert "agrees on the label 'ill', found --label age" in str(said.exception)


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ("--label ill", "--label is about your own table: give --data"),
        ("--data mine.csv --template ten-clinics", "exclude each other"),
        ("--data mine.csv", "name it with --label, one of: patient"),
        ("--data mine.csv --label il", "did you mean 'ill'"),
        ("--data mine.csv --label ill --owner smokes", "3 peers are the least"),
        ("--data mine.csv --label patient", "holds 114 different texts"),
        ("--data breast_cancer --label ill", "is a data set that is known"),
    ],
)
def test_what_cannot_run_is_refused_before_a_file_is_written(here, words, why):
    assert why in str(_init(*words.split()).exception)
    assert not (here / "sub/own.toml").exists()


def test_the_relay_that_is_made_is_started_where_the_book_says_it_is(tmp_path):
    words = [
        "network",
        "init",
        "--peers",
        "4",
        "--graph",
        "complete",
        "--relay",
        "localhost:18443",
        "--out",
    ]
    said = CliRunner().invoke(app, [*words, str(tmp_path / "net")]).output.replace("\n", " ")
    assert said.rstrip().endswith("book.toml --port 18443")
