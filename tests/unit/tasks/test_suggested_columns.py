"""A columns file suggested by public rows: complete at once, read off those rows and no others, and
ready for cells that they do not hold."""

import tomllib

import numpy as np
import pytest

from bruit.errors import ConfigError
from bruit.tasks import Logistic, Ridge
from bruit.tasks.data.agreed_columns import parse_agreed, read_agreed
from bruit.tasks.data.agreed_rows import complaints, fitting, in_words
from bruit.tasks.data.drafts.public_rows import suggest
from bruit.tasks.data.formats.dates import days
from bruit.tasks.data.formats.frames import as_columns
from bruit.tasks.data.formats.tables import read_table

ROWS = 200
PUBLIC = {
    "patient": [f"P{k}" for k in range(ROWS)],
    "row": list(range(ROWS)),
    "age": [40 + k % 41 for k in range(ROWS)],
    "pulse": [None if k == 7 else 60.25 + k % 3 for k in range(ROWS)],
    "seen": [f"2024-01-{1 + k % 30:02}" for k in range(ROWS)],
    "smokes": [k % 3 == 0 for k in range(ROWS)],
    "ward": ["rare" if k == 0 else ("north", "south", "north")[k % 3] for k in range(ROWS)],
    "planet": ["earth"] * ROWS,
    "none at all": [None] * ROWS,
    "clinic": [f"c{k % 4}" for k in range(ROWS)],
    "ill": ["yes" if k % 2 else "no" for k in range(ROWS)],
}


def test_by_hand():
    found = suggest(as_columns(PUBLIC), "ill", "clinic")
    assert list(found.left_out) == ["patient", "row", "planet", "none at all"]
    assert found.rows == ROWS
    agreed = found.agreed
    assert agreed.names == ("age", "pulse", "seen", "smokes", "ward")
    assert agreed.classes == ("no", "yes")
    assert (agreed.owner, agreed.dropped) == ("clinic", tuple(found.left_out))
    mean, spread = np.mean(PUBLIC["age"]), np.std(PUBLIC["age"])
    assert agreed.constants["age"] == (round(mean), round(spread) / 0.5)
    dates = [days(text) for text in PUBLIC["seen"]]
    assert agreed.constants["seen"][0] == round(np.mean(dates))
    age, pulse, _, smokes, ward = agreed.columns
    assert (age.indicator, pulse.indicator) == (False, True)
    assert smokes.values == ("false", "true")
    assert (ward.values, ward.base, ward.other) == (("north", "south", "other"), "north", "other")
    assert "1 rare value" in found.text
    assert complaints(agreed, as_columns(PUBLIC)) == []


def test_private_rows_may_hold_values_and_holes_that_public_ones_do_not():
    agreed = suggest(as_columns(PUBLIC), "ill", "clinic").agreed
    mine = {name: cells[:3] for name, cells in PUBLIC.items()}
    mine |= {"ward": ["attic", "north", "south"], "pulse": [None, 60, 9999], "ill": ["no"] * 3}
    cells = fitting(agreed, as_columns(mine)).cells
    assert (cells["ward"].others, cells["pulse"].filled, cells["pulse"].cut) == (1, 1, 1)
    (wrong,) = complaints(agreed, as_columns(mine | {"age": [None, 50, 60]}))
    assert "holds no value; repair the row, or agree on what stands in a hole" in wrong.sentence


def test_the_file_is_what_was_suggested_and_a_task_is_learned_by_it(tmp_path):
    found = suggest(as_columns(PUBLIC), "ill", "clinic")
    (tmp_path / "columns.toml").write_text(found.text)
    task = Logistic.load(
        PUBLIC,
        split="owner",
        columns_file=tmp_path / "columns.toml",
        test=0.0,
        own_test=0.2,
        rows="none",
    )
    assert task.peers == 4
    assert np.isfinite(found.agreed.recipe().row_bound())


def test_texts_of_which_none_is_usual_are_left_out():
    """70 texts, each in two of 400 rows: there is no value that a category could begin with."""
    rows = PUBLIC | {"note": [f"n{k}" if k < 70 else None for k in range(ROWS)]}
    twice = {name: cells * 2 for name, cells in rows.items()}
    found = suggest(as_columns(twice), "ill", "clinic")
    assert found.left_out["note"] == "70 different texts, each in less than one of 100 rows"


def test_a_number_is_predicted_with_center_and_scale():
    rows = {"size": [k / 3 for k in range(50)], "y": [10.5 * k for k in range(50)]}
    label = suggest(as_columns(rows)).agreed.label
    assert (label.center, label.scale) == (260.0, 150.0)
    agreed = suggest(as_columns(rows)).agreed
    assert Ridge.load(rows, 2, columns_file=agreed, test=0.0, own_test=0.2, rows="none").peers == 2


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"ill": ["no"] * ROWS}, "'ill' holds 1 different text; a class is one of 2 to 100"),
        ({"ill": PUBLIC["patient"]}, "'ill' holds 200 different texts"),
        ({"ill": [None, *PUBLIC["ill"][1:]]}, "a record without label cannot be learned from"),
        (
            {"ill": ["old", *PUBLIC["age"][1:]]},
            "column 'ill': 'old' where the column holds numbers",
        ),
    ],
)
def test_public_rows_that_suggest_nothing(changed, message):
    with pytest.raises(ConfigError, match=message):
        suggest(as_columns(PUBLIC | changed), "ill", "clinic")


def test_strange_names_and_values_stay_what_they_are():
    names = {'the "age" of [it]': ["1.5", "2", "9"], "Größe": ["a\\b", 'c"d', "é"], "y": [0, 1, 0]}
    agreed = suggest(as_columns(names)).agreed
    assert agreed.names == tuple(names)[:2]
    assert set(agreed.columns[1].values) == {'c"d', "a\\b", "é", "other"}


def test_a_text_among_numbers_leaves_the_column_out_and_says_where_it_is():
    found = suggest(as_columns(PUBLIC | {"age": [40, ">90", *PUBLIC["age"][2:]]}), "ill", "clinic")
    assert found.left_out["age"].startswith("numbers, but '>90' in line 2")
    assert found.agreed.names == ("pulse", "seen", "smokes", "ward")


def test_values_that_may_be_spellings_of_one_are_pointed_at():
    ill = [("no", "No", "yes", "no")[k % 4] for k in range(ROWS)]
    ward = [("north", "south", "NORTH", "so uth", "east", "north")[k % 6] for k in range(ROWS)]
    found = suggest(as_columns(PUBLIC | {"ill": ill, "ward": ward}), "ill", "clinic")
    assert found.alike == {"ill": [("no", "No")], "ward": [("north", "NORTH"), ("south", "so uth")]}
    taken = found.text
    for start in ("# one class in several spellings? then: ", "# one value in several spellings?"):
        assert start in taken
    offered = [line.partition("then: ")[2] for line in taken.splitlines() if "then: " in line]
    assert offered[0] == 'classes = { no = ["no", "No"], yes = ["yes"] }'
    before = 'classes = ["No", "no", "yes"]'
    agreed = parse_agreed(tomllib.loads(taken.replace(before, offered[0])), "corrected")
    assert agreed.classes == ("no", "yes")
    assert suggest(as_columns(PUBLIC), "ill", "clinic").alike == {}


def test_dates_in_a_usual_form_and_those_that_could_be_read_in_two():
    german = [f"{1 + k % 30:02}.01.2024" for k in range(ROWS)]
    found = suggest(as_columns(PUBLIC | {"seen": german}), "ill", "clinic")
    assert found.agreed.columns[2].dates == "%d.%m.%Y"
    assert (
        found.agreed.constants["seen"]
        == suggest(as_columns(PUBLIC), "ill").agreed.constants["seen"]
    )
    either = [f"0{1 + k % 9}/0{1 + k % 7}/2024" for k in range(ROWS)]
    found = suggest(as_columns(PUBLIC | {"seen": either}), "ill", "clinic")
    assert found.left_out["seen"].startswith("dates that may be read as %d/%m/%Y or %m/%d/%Y;")


@pytest.mark.parametrize(
    ("pulse", "strange"),
    [
        ([-9, -9], ("-9",)),
        ([999, 999, -1, -1], ("-1", "999")),
        ([-9], ()),  # once is a number
        ([-3, -3], ()),
        ([99, 99], ()),  # a pulse of 99 is one
        ([-9, -9, -8], ()),
    ],
)
def test_numbers_that_may_stand_for_a_hole_are_pointed_at(pulse, strange):
    cells = [*pulse, *PUBLIC["pulse"][len(pulse) :]]
    found = suggest(as_columns(PUBLIC | {"pulse": cells}), "ill", "clinic")
    assert found.strange == ({"pulse": strange} if strange else {})
    offered = f"then: missing = [{', '.join(f'{chr(34)}{one}{chr(34)}' for one in strange)}]"
    assert (offered in found.text) == bool(strange)


def test_numbers_with_commas_are_told():
    commas = [f"{k},5" for k in range(ROWS)]
    found = suggest(as_columns(PUBLIC | {"age": commas}), "ill", "clinic")
    assert found.left_out["age"] == "numbers with a comma; write them with a point to use them"


def test_numbers_without_a_scale_and_names_of_two_lines():
    """They used to end in an OverflowError, and in a file that is no TOML."""
    huge = [1e308, *PUBLIC["age"][1:]]
    found = suggest(as_columns(PUBLIC | {"age": huge, "an\nid": PUBLIC["patient"]}), "ill")
    assert found.left_out["age"].startswith("a number above 1e+150 has no scale")
    assert "an\nid" in found.agreed.dropped
    with pytest.raises(ConfigError, match="label 'ill' holds a number above"):
        suggest(as_columns(PUBLIC | {"ill": huge}), "ill")


def test_a_file_suggested_by_the_rows_it_is_used_on_says_so(tmp_path, monkeypatch):
    """Whoever gives private rows for public ones would be told that all was agreed on."""
    monkeypatch.chdir(tmp_path)
    lines = [
        ",".join("" if one is None else str(one) for one in row)
        for row in zip(*PUBLIC.values(), strict=True)
    ]
    for name in ("mine.csv", "survey.csv"):
        (tmp_path / name).write_text("\n".join([",".join(PUBLIC), *lines]) + "\n")
    (tmp_path / "columns.toml").write_text(suggest(read_table("survey.csv"), "ill", "clinic").text)
    asked = {"split": "owner", "columns_file": "columns.toml", "test": 0.0, "own_test": 0.2}
    for name, told in (("survey.csv", True), ("mine.csv", False)):
        facts = Logistic.load(name, rows="none", **asked).describe()["public"]
        found = [one for one in facts if "suggested by the rows of survey.csv" in one["fact"]]
        assert [one["from"] for one in found] == ["private rows"] * told
        agreed = read_agreed("columns.toml")
        words = " ".join(in_words(agreed, fitting(agreed, read_table(name))))
        assert ("covered by no epsilon" in words) == told
    assert suggest(as_columns(PUBLIC), "ill").agreed.suggested_by == ""
    columns = {"a": {"kind": "two", "values": [0, 1]}}
    with pytest.raises(ConfigError, match="suggested_by is the name of a table, found 7"):
        parse_agreed({"suggested_by": 7, "label": {"name": "y"}, "columns": columns})
