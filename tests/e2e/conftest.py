"""The command line in this process, `bruit("run", "x.toml")`, with what it says; and villages of
real processes."""

import json
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from bruit.commands import cli
from tests.e2e.villages import Village

MEAN = """\
graph = "ring:6"
steps = 4
seed = 3

[task]
kind = "mean"
dim = 2

[algorithm]
name = "averaging"

[privacy]
sigma = 1.5
"""


def pytest_collection_modifyitems(items):
    """A second chance (`--reruns`) is for real processes and browsers: for what is slow here."""
    for item in items:
        if "tests/e2e/" in item.nodeid and item.get_closest_marker("slow") is None:
            item.add_marker(pytest.mark.flaky(reruns=0))


def pytest_terminal_summary(terminalreporter):
    """What failed and was tried again is told with its words, though the second trial held."""
    for report in terminalreporter.stats.get("rerun", ()):
        terminalreporter.section(f"failed at first: {report.nodeid}")
        terminalreporter.line(report.longreprtext)


class Said(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """Standard output as strict JSON: NaN and Infinity are no JSON."""

        def refuse(token: str) -> None:
            raise AssertionError(f"{token} is not JSON")

        return json.loads(self.out, parse_constant=refuse)


@pytest.fixture
def bruit(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)

    def call(*words: object) -> Said:
        monkeypatch.setattr(sys, "argv", ["bruit", *map(str, words)])
        code = 0
        try:
            cli.main()
        except SystemExit as end:
            code = int(end.code or 0)
        said = capsys.readouterr()
        return Said(code, said.out, said.err)

    return call


@pytest.fixture
def mean(tmp_path) -> Path:
    """A small experiment: six peers on a ring average."""
    path = tmp_path / "mean.toml"
    path.write_text(MEAN)
    return path


@pytest.fixture
def saved(bruit, mean) -> Path:
    """The folder of a run of it."""
    assert bruit("run", mean, "--out", "x.run").code == 0
    return Path("x.run")


@pytest.fixture
def village(tmp_path, monkeypatch):
    monkeypatch.setenv(
        "PYTHONPATH", str(Path(__file__).parents[2])
    )  # from any folder, installed or not
    made = []

    def make(*words, **options):
        made.append(Village(tmp_path, *words, **options))
        return made[-1]

    yield make
    for one in made:
        one.end()
