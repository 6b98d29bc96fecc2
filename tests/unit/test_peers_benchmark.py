"""The comparison with public rivals counts every process, and gives everybody the same task."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from benchmarks.peers import __main__ as benchmark
from benchmarks.peers import runners
from benchmarks.peers.__main__ import PROCESSES, RIVALS, printed, tables
from benchmarks.peers.problem import Problem, network

ROOT, SCRIPTS = Path(__file__).parents[2], Path(runners.__file__).parent
BURN = "import time\nwhile time.process_time() < 0.3: pass\nprint('burnt', flush=True)"
STAY = f"{BURN}\ntime.sleep(60)"
# `cost` makes its process the one that orphans go to, for good: so it gets a process of its own
COUNTED = """
import json, os, sys
from benchmarks.peers.costs import cost
found = cost([sys.executable, "-S", "-c", sys.argv[1]], os.environ, 20.0)
print(json.dumps([found.cpu, found.mib, found.failed]))
"""


def started(*words):
    there = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, *words], env=there, capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout.splitlines()[-1])


def counted(program):
    return started("-c", COUNTED, program)


def test_seconds_of_a_child_are_counted():
    """It burns 0.3 s. A count of the command alone would find what a bare interpreter takes."""
    child = f"import subprocess, sys; subprocess.run([sys.executable, '-S', '-c', {BURN!r}])"
    cpu, mib, failed = counted(child)
    bare, _, _ = counted("pass")
    assert cpu >= 0.3
    assert bare < 0.2  # what tells the two apart: a count without children would fail above
    assert mib > 1
    assert failed == ""


def test_an_orphan_is_ended_and_counted():
    """It has burnt 0.3 s when its parent ends, in a session of its own, and would stay a minute."""
    parent = (
        f"import subprocess, sys\nleft = subprocess.Popen([sys.executable, '-S', '-c', {STAY!r}],"
        " stdout=subprocess.PIPE, start_new_session=True)\nleft.stdout.readline()"
    )
    cpu, _, failed = counted(parent)
    assert 0.3 <= cpu < 5
    assert failed == ""


def test_a_failure_is_told():
    assert "no such" in counted("raise SystemExit('no such')")[2]


@pytest.mark.parametrize("peers", [6, 20])
def test_the_problem_is_the_same_for_all(tmp_path, peers):
    for name in ("one", "two"):
        Problem(peers, 3, "mlp").write(tmp_path / f"{name}.npz")
    Problem(peers, 1, "logistic").write(tmp_path / "other.npz")
    one, two, other = (dict(np.load(tmp_path / f"{name}.npz")) for name in ("one", "two", "other"))
    assert all(np.array_equal(one[name], two[name]) for name in one)
    differ = {name for name in one if not np.array_equal(one[name], other[name])}
    assert differ == {"rounds", "hidden"}
    assert (one["weights"] == network(peers).weights.toarray()).all()
    assert set(one["owner"].tolist()) == set(range(peers))
    assert (one["adjacency"].sum(axis=1) == 4).all()


def test_the_floor_and_ours_learn_the_same(tmp_path):
    """Both begin at zero, so that only rounding is between them: they agree on all but three of
    540 x 6 labels. One round less moves six of them, a rate of 0.45 for 0.5 eight."""
    Problem(6, 20, "logistic").write(tmp_path / "problem.npz")
    said = [
        started(str(SCRIPTS / RIVALS[who].script), str(tmp_path / "problem.npz"))["accuracy"]
        for who in ("floor", "bruit")
    ]
    assert abs(said[0] - said[1]) < 0.001
    assert min(said) > 0.8


def test_every_rival_has_its_script_and_every_script_its_rival():
    named = {rival.script for rival in [*RIVALS.values(), *PROCESSES.values()]}
    assert named == {path.name for path in SCRIPTS.glob("*.py")} - {"__init__.py"}
    assert {table.problem.peers for table in tables(quick=False)} == {100, 16}


def test_a_rival_that_cannot_be_installed_fails_alone(monkeypatch, tmp_path):
    def refused(rival, folder):
        raise subprocess.CalledProcessError(1, ["pip"])

    monkeypatch.setattr(benchmark, "python_of", refused)
    row = benchmark.tried(RIVALS["Flower"], tmp_path, tables(quick=True)[0])
    assert row["failed"] == "flwr could not be installed (pip gave 1)"


def test_a_rival_that_failed_is_in_the_table():
    row = {"table": "t", "who": "x", "version": "x 1", "load": 1.0, "failed": "Traceback\nwhy"}
    assert "x         failed: why" in printed([row])
