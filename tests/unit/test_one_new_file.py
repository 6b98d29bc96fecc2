"""A new mechanism, kind of task, protocol of the planner, or benchmark is one new file: each is put
into a temporary folder, and no file that exists is touched.

The mechanism and the task are those of docs/how-to/add-a-mechanism.md and add-a-task.md: the first
block of each page is the file.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import numpy as np
import pytest

import bruit.mechanisms
import bruit.planning
import bruit.tasks
from bruit.commands.listing import listing
from bruit.errors import ConfigError
from bruit.mechanisms import mechanism_from
from bruit.peers.site.own_csv import write_records
from bruit.peers.site.own_records import read_share, write_share
from bruit.planning.experiment_file import experiment_text
from bruit.planning.plan import learning_names, plan
from bruit.planning.question import Question
from bruit.runs.build import build
from bruit.runs.file import parse
from bruit.runs.result import load
from bruit.runs.settings import change
from bruit.tasks.data.own_rows import Agreement
from docs.pages import blocks

ROOT = Path(bruit.__file__).parents[1]
MEAN = """
graph = "complete:4"
steps = 3
[task]
kind = "mean"
dim = 2
[algorithm]
name = "averaging"
[privacy]
mechanism = "one-bit"
"""
QUANTILE = """
graph = "complete:4"
steps = 3
[task]
kind = "quantile"
share = 0.9
[algorithm]
name = "gossip-sgd"
"""
RELAY = dedent('''
    """Everybody tells one trusted relay, which tells the mean."""

    from bruit.planning.option import Option, Traits

    TRAITS = Traits(also=("megaphone",), learning=("megaphone",), own_graph=True)


    def option(question):
        return Option(
            protocol="relay",
            graph="any",
            steps=1,
            noise_multiplier=1e-3,
            status="proven",
            theorem="none, an example",
            spec="none",
            trust="the relay",
            error=1e-6,
            at_most=False,
            statement="none",
            messages=1.0,
            rounding=0.0,
            algorithm={"name": "averaging"},
            task={"rows": "none"},
        )
    ''')
BENCHMARK = dedent('''
    """How long it takes to add one and one."""

    from benchmarks.timing import Answer, main


    def measure(quick):
        answer = Answer("one and one", quick)
        answer.add("the sum", 1 + 1, "apples")
        return answer


    if __name__ == "__main__":
        main(measure)
    ''')


@pytest.fixture
def add(tmp_path, monkeypatch):
    """Put a file into a temporary folder that belongs to a package, and take it out afterwards."""
    added = []

    def put(package, name, text):
        folder = tmp_path / package.__name__
        folder.mkdir(exist_ok=True)
        (folder / f"{name}.py").write_text(text)
        monkeypatch.setattr(package, "__path__", [*package.__path__, str(folder)])
        added.append(f"{package.__name__}.{name}")

    yield put
    for name in added:
        sys.modules.pop(name, None)


def on_page(name):
    return next(
        block.body
        for block in blocks((ROOT / "docs" / "how-to" / name).read_text())
        if block.kind == "python"
    )


def made(text):
    return build(parse(text, "file.toml"), text, "file.toml")


@pytest.fixture
def one_bit(add):
    add(bruit.mechanisms, "one_bit", on_page("add-a-mechanism.md"))


def test_without_its_file_nobody_knows_it():
    with pytest.raises(ConfigError, match=r"file.toml:10: privacy.mechanism = 'one-bit'"):
        made(MEAN)
    with pytest.raises(ConfigError, match=r"file.toml:5: task.kind = 'quantile'"):
        made(QUANTILE)
    with pytest.raises(ConfigError, match="knows no protocol 'relay'"):
        plan(Question(4, 1.0), "relay")


def test_a_mechanism(one_bit, tmp_path):
    assert listing("mechanisms")["one-bit"].startswith("One bit for each of `dim` numbers")
    run = made(MEAN + "coin = 0.5\n").run()
    assert run.privacy.describe()["coin"] == 0.5
    assert mechanism_from(run.privacy.describe()) == run.privacy
    assert run.epsilon(delta=0.0) == pytest.approx(1.0)  # two numbers
    run.save(tmp_path / "run")
    assert load(tmp_path / "run").privacy == run.privacy
    text = change(MEAN + "coin = 0.5\n", ["privacy.coin=0.25"]).text
    assert made(text).privacy.coin == 0.25


def test_a_mechanism_for_an_epsilon(one_bit):
    run = made(MEAN + "epsilon = 3.0\n").run()
    assert 3.0 * (1 - 1e-9) < run.epsilon(delta=0.0) <= 3.0


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("", "say how much one-bit noise exactly once, by privacy.coin or privacy.epsilon"),
        ("sigma = 1.0", "found privacy.sigma"),
        ("coin = 0.5\nepsilon = 1.0", "found privacy.coin and privacy.epsilon"),
        ('coin = "much"', "file.toml:11: privacy.coin = 'much': input should be a valid number"),
        ("coin = inf", "file.toml:11: privacy.coin = inf: input should be a finite number"),
        ("koin = 0.5", "file.toml:11: unknown key 'privacy.koin'; did you mean 'coin'"),
    ],
)
def test_a_mechanism_is_refused_what_others_are(one_bit, line, words):
    with pytest.raises(ConfigError, match=words):
        made(f"{MEAN}{line}\n")


def test_keys_of_one_mechanism_are_no_others(one_bit):
    with pytest.raises(ConfigError, match=r"unknown key 'privacy.coin'"):
        made(MEAN.replace("one-bit", "gaussian") + "coin = 0.5\n")


@pytest.fixture
def quantile(add):
    add(bruit.tasks, "quantile", on_page("add-a-task.md"))


def test_a_kind_of_task(quantile):
    assert listing("tasks")["quantile"].startswith("One number a peer")
    experiment = made(QUANTILE)
    assert experiment.task.share == 0.9
    assert "error" in experiment.run().references | experiment.task.evaluate(np.zeros((4, 1)))
    assert made(QUANTILE.replace("share = 0.9\n", "")).task.share == 0.5


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("share = 0.9", "shar = 0.9", "file.toml:6: unknown key 'task.shar'; did you mean 'share'"),
        ("share = 0.9", 'share = "all"', "file.toml:6: task.share = 'all'"),
        ("share = 0.9", "share = 2.0", "a share above 0 and below 1, found 2.0"),
        ("share = 0.9", "dim = 3", "task.dim"),
        ('"quantile"', '"mean"', "file.toml:6: unknown key 'task.share'"),
        ('"gossip-sgd"', '"averaging"', "averaging asks peers for a value to average, which a qua"),
    ],
)
def test_a_kind_of_task_is_refused_what_others_are(quantile, old, new, words):
    with pytest.raises(ConfigError, match=words):
        made(QUANTILE.replace(old, new))


def test_a_participant_holds_records_of_it(quantile, tmp_path):
    whole = made(QUANTILE).task
    write_share(whole, "quantile", 2, tmp_path / "records.npz")
    own, _ = read_share(tmp_path / "records.npz", 2, 4, "quantile")
    assert own.value(np.array([2])) == whole.value(np.array([2]))
    assert own.inner.share == 0.9
    (tmp_path / "mine.csv").write_text("age\n63\n")
    agreed = Agreement(parse(QUANTILE).task, None, {"age": (53.0, 10.0)})
    assert write_records(tmp_path / "mine.csv", agreed, tmp_path / "mine.npz") == (1, 1)
    own, _ = read_share(tmp_path / "mine.npz", 0, 4, "quantile")
    assert own.value(np.array([0])).tolist() == [[1.0]]


def test_a_protocol_of_the_planner(add):
    add(bruit.planning, "relay", RELAY)
    question = Question(8, 1.0)
    assert plan(question).chosen.protocol == "relay"
    assert plan(question, "megaphone").chosen.protocol == "relay"
    assert "megaphone" in learning_names()
    learned = plan(Question(8, 1.0, job="learning", contributions=2), "relay")
    assert 'rows = "none"' in experiment_text(learned)


def test_one_that_needs_somebody_in_the_middle_is_not_chosen(add):
    add(bruit.planning, "relay", RELAY.replace("own_graph=True", "own_graph=True, middleman=True"))
    assert plan(Question(8, 1.0)).chosen.protocol != "relay"
    assert plan(Question(8, 1.0), "relay").chosen.protocol == "relay"


def test_a_benchmark(tmp_path):
    """In a copy of the folder, since each question is a process of its own."""
    shutil.copytree(ROOT / "benchmarks", tmp_path / "benchmarks")
    (tmp_path / "benchmarks" / "speed" / "one_and_one.py").write_text(BENCHMARK)
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.speed", "--quick", "--json", "one_and_one"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
    )
    answer = json.loads(done.stdout)["one_and_one"]
    assert answer["rows"] == [{"what": "the sum", "number": 2, "unit": "apples"}]
