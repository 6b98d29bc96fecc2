"""Experiments as TOML: defaults, lines, nearest names."""

import pytest

from bruit.errors import ConfigError
from bruit.runs.build import build
from bruit.runs.file import bundled, from_dict, line_of, parse, read
from bruit.tasks.data.catalog import locate

GOOD = """\
# a comment with steps = 9
graph = "ring:4"
steps = 3

[task]
kind = "mean"

[algorithm]
name = "averaging"
"""


def test_defaults():
    file = parse(GOOD)
    assert (file.seed, file.watch, file.privacy, file.engine.name) == (0, [], None, "bulk")
    assert (file.task.split, file.task.rows, file.task.test) == ("iid", "unit", 0.2)


def test_every_bundled_experiment_is_valid():
    assert "breast-cancer" in bundled()
    for name in bundled():
        file, text = read(name)
        assert parse(text) == file


@pytest.mark.parametrize(
    ("path", "line"),
    [
        (("steps",), 3),
        (("task", "kind"), 6),
        (("task", "absent"), 5),
        (("algorithm", "name"), 9),
        (("task",), 5),
        (("steps", "0"), 3),
        (("absent",), None),
        (("privacy", "sigma"), None),
    ],
)
def test_the_line_of_a_key_or_of_what_holds_it(path, line):
    assert line_of(GOOD, path) == line


@pytest.mark.parametrize(
    ("text", "path", "line"),
    [
        ('task.kind = "mean"', ("task", "kind"), 1),
        ('\ntask = { kind = "maen" }', ("task", "kind"), 2),
        ("[[task]]\nkind = 3", ("task", "kind"), 2),
        ('[ "task" ]\n"kind" = 3', ("task", "kind"), 2),
        ("[task.more]\nkind = 3", ("task", "kind"), None),
    ],
)
def test_lines_of_other_ways_to_write_toml(text, path, line):
    assert line_of(text, path) == line


def test_inline_tables_are_named_with_their_line():
    text = 'graph = "ring:4"\ntask = { kind = "maen" }\nalgorithm = { name = "averaging" }\n'
    with pytest.raises(ConfigError, match=r"^x\.toml:2: task\.kind = 'maen'.*did you mean 'mean'"):
        parse(text, "x.toml")


def test_all_problems_are_told_at_once():
    text = GOOD.replace("steps = 3", "stepps = 3\nseed = 'x'")
    with pytest.raises(ConfigError) as error:
        parse(text, "x.toml")
    first, second = sorted(str(error.value).split("\n"))
    assert "x.toml:3: unknown key 'stepps'; did you mean 'steps'?" in (first, second)
    assert any(line.startswith("x.toml:4: seed = 'x'") for line in (first, second))


def test_a_key_that_resembles_nothing_gets_the_list():
    with pytest.raises(ConfigError, match="known here: graph, steps, seed"):
        parse("qqqqq = 1\n" + GOOD)


@pytest.mark.parametrize("value", ["'3'", "true", "3.0", "[3]", "1979-05-27"])
def test_types_are_not_guessed(value):
    with pytest.raises(ConfigError, match=r"steps = .*integer"):
        parse(GOOD.replace("steps = 3", f"steps = {value}"))


def test_a_whole_number_is_a_number():
    file = parse(GOOD + "\n[privacy]\nsigma = 2\n")
    assert file.privacy is not None
    assert file.privacy.sigma == 2.0


def test_a_checked_file_can_be_checked_again():
    file = parse(GOOD)
    assert from_dict(file.model_dump()) == file


def test_a_folder_is_no_experiment(tmp_path):
    with pytest.raises(ConfigError, match="there is no experiment file"):
        read(tmp_path)


def test_a_key_that_is_gone_says_what_to_write():
    with pytest.raises(
        ConfigError,
        match=r"^x\.toml:12: 'privacy\.lattice' is gone: .* write arithmetic = \"ideal\"",
    ):
        parse(GOOD + "\n[privacy]\nlattice = 0.5\n", "x.toml")
    with pytest.raises(
        ConfigError, match=r"privacy\.arithmetic = 'floats': input should be 'grid' or 'ideal'"
    ):
        parse(GOOD + "\n[privacy]\narithmetic = 'floats'\n")
    assert parse(GOOD + "\n[privacy]\nsigma = 2\n").privacy.arithmetic == "grid"


def test_ten_clinics_protect_every_record():
    """The main job: what its file says is what is promised, and it is worth more than a guess."""
    run = build(read("ten-clinics")[0]).run()
    assert run.task["records_per_peer"] == [8, 100]
    assert 0.8 < float(run.epsilon(seen_by=0, delta=1e-4)) <= 1.0
    assert run.summary(1e-4).level == "record"
    assert run.metrics.last("accuracy") > 0.9
    assert run.joining is not None
    assert len(run.joining.gains) == 10


def test_four_hospitals_run_where_their_data_is(monkeypatch, tmp_path):
    """Else one sentence says where to get it."""
    if locate("heart_disease") is not None:
        run = build(read("four-hospitals")[0]).run()
        assert run.joining.names == ("cleveland", "hungarian", "switzerland", "va")
        assert run.local_parts == ("scale", "intercept")
        assert float(run.epsilon(seen_by=0, delta=1e-4)) <= 1.0
    monkeypatch.setattr("bruit.tasks.data.catalog.folders", lambda: [tmp_path])
    with pytest.raises(ConfigError, match=r"set BRUIT_DATA.*archive.ics.uci.edu/dataset/45"):
        build(read("four-hospitals")[0])
