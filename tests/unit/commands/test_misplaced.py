"""An option or a key that says nothing where it stands is refused by name: nothing is ignored."""

import pytest
from typer.testing import CliRunner

from bruit.commands.cli import app
from bruit.errors import ConfigError
from bruit.runs.file import from_dict
from bruit.tasks.kinds.task_files import refuse_idle_keys

MEAN = {"graph": "ring:4", "steps": 2, "task": {"kind": "mean"}, "algorithm": {"name": "averaging"}}


@pytest.mark.parametrize(
    ("words", "option"),
    [
        ("attack lattice breast-cancer --seen-by 0 --clip 2", "--clip"),
        ("attack lattice breast-cancer --seen-by 0 --algorithm averaging", "--algorithm"),
        ("attack lattice --graph ring:4 --steps 2 --sigma 1 --seen-by 0 --bits 9", "--bits"),
        (
            "attack lattice --graph ring:4 --steps 2 --sigma 1 --seen-by 0 --numbers float"
            " --dither-bits 9",
            "--dither-bits",
        ),
        ("attack linkage a.csv b.csv --values 2", "--values"),
        ("attack linkage a.csv b.csv --epsilon-per-report 1", "--epsilon-per-report"),
        ("attack invert x.run --seen-by 0 --image 8x8", "--image"),
        ("plan --design --peers 9 --epsilon 2", "--epsilon"),
        ("plan --trust caps.csv --save there --force", "--force"),
        ("reproduce --list --quick", "--quick"),
        ("reproduce th-4.1 --all", "--all"),
        ("epsilon --ahead gaussian --why", "--why"),
        ("epsilon --graph ring:4 --steps 2 --sigma 1 --force", "--force"),
        ("auc table.csv --score s --label y --listen localhost:0 --high 5", "--high"),
        ("budget table.csv --level user", "--level"),
        ("show a.run b.run --html x.html --csv numbers", "--csv"),
    ],
)
def test_an_option_that_would_be_ignored_is_refused(words, option, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "table.csv").write_text("s,y\n0.5,1\n0.2,0\n")
    found = CliRunner().invoke(app, words.split()).exception
    assert isinstance(found, ConfigError), found
    assert f"leave {option} out" in str(found)


@pytest.mark.parametrize("key", ["latency", "loss", "churn", "timeout"])
def test_faults_are_of_the_engine_that_has_them(key):
    with pytest.raises(ConfigError, match=f'{key}.*it is of engine.name = "events", found bulk'):
        from_dict({**MEAN, "engine": {key: 0.5}}, where="mine.toml")
    from_dict({**MEAN, "engine": {"name": "events", key: 0.5}}, where="mine.toml")


def test_a_histogram_of_a_file_takes_its_values_from_there():
    """How many values there are is said for drawn ones only; of a file it was ignored."""
    file = from_dict(
        {**MEAN, "task": {"kind": "histogram", "data": "breast_cancer", "dim": 3}}, where="x"
    )
    with pytest.raises(ConfigError, match=r"task\.dim"):
        refuse_idle_keys(file.task)
