"""Ctrl-C keeps what is done and says so; the same command goes on; nothing takes the place of
anything unasked."""

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import bruit as br
from bruit.commands import terminal
from tests.e2e.villages import DEADLINE, until


@pytest.fixture
def struck(monkeypatch):
    """A signal in the middle of a command: after so many words about progress with this title. Who
    starts the tests in the background ignores Ctrl-C, which these tests do not."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)

    def strike(title, after, name=signal.SIGINT):
        plain, told = terminal.Ticker.__call__, []

        def call(self, *words):
            plain(self, *words)
            told.append(self._title == title)
            if told[-1] and sum(told) == after:
                os.kill(os.getpid(), name)

        monkeypatch.setattr(terminal.Ticker, "__call__", call)
        return lambda: monkeypatch.setattr(terminal.Ticker, "__call__", plain)

    yield strike
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("name", [signal.SIGINT, signal.SIGTERM])
def test_a_run_is_kept_as_far_as_it_got(bruit, mean, struck, name):
    calm = struck("learning", 3, name)
    said = bruit("run", mean)
    assert said.code == 130
    assert (
        "interrupted: after 3 of 4 rounds; what was done is kept in runs/mean-seed3.run" in said.err
    )
    assert f"bruit run {mean}" in said.err
    assert "interrupted after 3 of 4 rounds" in said.out
    calm()
    shown = bruit("show", "runs/mean-seed3.run", "--json").json
    assert shown["interrupted"] == {
        "done": 3,
        "of": 4,
        "in_words": "interrupted after 3 of 4 rounds",
    }
    assert shown["privacy"]["theorem"].startswith("local DP")
    asked = bruit("epsilon", "runs/mean-seed3.run", "--of", 2, "--seen-by", 0)
    assert "interrupted after 3 of 4 rounds" in asked.out
    assert bruit("replay", "runs/mean-seed3.run").code == 2


@pytest.mark.slow
def test_a_run_in_blocks_is_kept_as_far_as_it_got(bruit, mean, struck):
    """And the same command, in one process or several, runs it to its end."""
    calm = struck("learning", 3)
    said = bruit("run", mean, "--on", "processes:2")
    assert said.code == 130
    assert "on this machine, in up to 2 processes" in said.err
    assert "after 3 of 4 rounds; what was done is kept in runs/mean-seed3.run" in said.err
    assert "2 blocks of peers" in said.out
    calm()
    assert bruit("run", mean).code == 0
    assert bruit("run", mean, "--on", "nowhere", "--force").code == 2


def test_the_same_command_runs_it_to_its_end(bruit, mean, struck):
    calm = struck("learning", 2)
    assert bruit("run", mean, "--json").json["interrupted"]["done"] == 2
    calm()
    said = bruit("run", mean)
    assert said.code == 0
    assert "it begins as the run that was interrupted after 2 of 4 rounds" in said.err
    assert [path.name for path in Path("runs").iterdir()] == ["mean-seed3.run"]
    assert bruit("run", mean, "--out", "straight.run").code == 0
    one, two = br.load("runs/mean-seed3.run"), br.load("straight.run")
    assert np.array_equal(one.estimates, two.estimates)
    assert one.interrupted is None
    assert float(one.summary().epsilons[0]) == float(two.summary().epsilons[0])


def test_a_named_folder_is_completed_too_but_only_by_its_own_run(bruit, mean, struck):
    calm = struck("learning", 2)
    assert bruit("run", mean, "--out", "x.run").code == 130
    calm()
    assert bruit("run", mean, "--out", "x.run", "--seed", 9).code == 2
    assert bruit("run", mean, "--out", "x.run").code == 0
    assert br.load("x.run").interrupted is None


def test_interrupted_accounting_leaves_a_whole_run(bruit, mean, struck):
    mean.write_text(mean.read_text().replace("ring:6", "grid:3x4"))
    struck("accounting", 1)
    said = bruit("run", mean)
    assert said.code == 130
    assert "the accounting is not done, and the run is kept, in runs/mean-seed3.run" in said.err
    assert br.load("runs/mean-seed3.run").interrupted is None


def test_interrupted_references_are_left_out_and_said(bruit, mean, monkeypatch):
    def stop(_self):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("bruit.tasks.mean.Mean.references", stop)
        said = bruit("run", mean)
    assert said.code == 130
    assert (
        "the references (alone, central) were left out; the run is kept in runs/mean-seed3.run"
        in said.err
    )
    assert br.load("runs/mean-seed3.run").references == {}
    assert "already" not in bruit("run", mean).out  # it was not the whole of it


def test_an_interruption_says_that_nothing_was_saved(bruit, saved, monkeypatch):
    def stop(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("bruit.runs.replay.replay", stop)
    assert bruit("replay", saved) == (130, "", "interrupted: no result was saved\n")


@pytest.mark.slow
def test_an_interrupted_audit_says_how_much_is_lost(bruit, mean, struck):
    struck("paired runs", 1)
    said = bruit("audit", mean, "--trials", 4000)
    assert said.code == 130
    assert "paired runs, " in said.err
    assert "and lost; no result was saved" in said.err


SWEEP = ("--vary", "privacy.sigma=1,2", "--seeds", 3)


def test_a_sweep_goes_on_where_it_was(bruit, mean, struck, monkeypatch):
    calm = struck("sweeping", 4)
    said = bruit("sweep", mean, *SWEEP, "--out", "s.csv")
    assert said.code == 130
    assert (
        "4 of 6 runs are done, kept in runs/mean.sweep/rows.jsonl; s.csv is written when all are "
        "done" in said.err
    )
    assert f"bruit sweep {mean} --vary privacy.sigma=1,2 --seeds 3 --out s.csv" in said.err
    assert (
        len([line for line in said.out.splitlines() if line.startswith("│") and "mean" not in line])
        == 4
    )
    assert not Path("s.csv").exists()
    calm()
    ran = counted(monkeypatch)
    said = bruit("sweep", mean, *SWEEP, "--out", "s.csv")
    assert said.code == 0
    assert "4 of 6 from before" in said.err
    assert len(ran) == 2
    assert bruit("sweep", mean, *SWEEP, "--out", "s.csv").code == 2  # it exists
    written = Path("s.csv").read_text()
    ran.clear()
    assert bruit("sweep", mean, *SWEEP, "--out", "s.csv", "--force").code == 0
    assert len(ran) == 6
    assert Path("s.csv").read_text() == written


def counted(monkeypatch):
    """The runs of sweeps from now on."""
    import bruit.runs.many.sweep as sweeps

    ran, plain = [], sweeps._row
    monkeypatch.setattr(sweeps, "_row", lambda one: ran.append(one.key) or plain(one))
    return ran


def test_only_what_is_missing_is_run_and_a_changed_file_is_another_sweep(bruit, mean, monkeypatch):
    ran = counted(monkeypatch)
    first = bruit("sweep", mean, *SWEEP, "--json").json
    assert len(ran) == 6
    assert bruit("sweep", mean, *SWEEP, "--json").json == first
    assert len(ran) == 6
    assert (
        bruit("sweep", mean, "--vary", "privacy.sigma=1,2", "--seeds", 4, "--json").json[:3]
        == first[:3]
    )
    assert len(ran) == 8
    bruit("sweep", mean, *SWEEP, "--delta", 1e-5)
    assert len(ran) == 14
    mean.write_text(mean.read_text().replace("steps = 4", "steps = 5"))
    bruit("sweep", mean, *SWEEP)
    assert len(ran) == 20


def test_changed_data_is_another_sweep_and_infinite_numbers_come_back(
    bruit, mean, monkeypatch, tmp_path
):
    data = tmp_path / "d.csv"
    rows = [f"{k},{k % 3},{k % 2}" for k in range(40)]
    data.write_text("a,b,label\n" + "\n".join(rows) + "\n")
    text = mean.read_text().split("[privacy]")[0].replace("averaging", "gossip-sgd")
    mean.write_text(text.replace('kind = "mean"\ndim = 2', f'kind = "logistic"\ndata = "{data}"'))
    ran = counted(monkeypatch)
    first = bruit("sweep", mean, "--json").json
    assert first[0]["epsilon_worst"] == "inf"
    assert bruit("sweep", mean, "--json").json == first
    said = bruit("sweep", mean, "--out", "rows.csv")
    assert "no noise: everything a peer sends can be read" in " ".join(said.out.split())
    assert ",inf,inf,inf," in Path("rows.csv").read_text()
    assert len(ran) == 1
    data.write_text("a,b,label\n" + "\n".join(rows[1:]) + "\n")
    bruit("sweep", mean)
    assert len(ran) == 2


def test_a_cut_line_is_run_again(bruit, mean, monkeypatch):
    bruit("sweep", mean, *SWEEP)
    kept = Path("runs/mean.sweep/rows.jsonl")
    kept.write_text(kept.read_text()[:-20] + "\nno row\n[]\n")
    ran = counted(monkeypatch)
    assert bruit("sweep", mean, *SWEEP).code == 0
    assert len(ran) == 1


def test_a_run_that_fails_loses_no_other(bruit, mean, monkeypatch):
    said = bruit(
        "sweep", mean, "--vary", "task.kind=mean,ridge", "--json"
    )  # a ridge task needs data
    assert said.code == 1
    good, bad = said.json
    assert good["epsilon_local"] > 0
    assert "needs data" in bad["error"]
    text = bruit("sweep", mean, "--vary", "task.kind=mean,ridge", "--out", "two.csv")
    assert text.code == 1
    assert "needs data" in text.out
    assert "1 of 2 runs failed" in text.err
    assert bruit("show", "two.csv", "--html", "two.html", "--quiet").code == 0
    assert bruit("sweep", mean, "--vary", "task.kind=ridge").code == 2  # nothing is left
    assert (
        next(iter(bruit("sweep", mean, "--json").json[0])) == "seed"
    )  # kept, and nothing is varied now
    monkeypatch.setattr("bruit.runs.result.Run.summary", lambda *_, **__: 1 / 0)
    said = bruit("sweep", mean, "--seeds", 2, "--force")
    assert said.code == 2
    assert "ZeroDivisionError" in said.err


def alive(leader):
    """The processes of a session that have not ended."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it has just ended
            state, _, _, session, *_ = (entry / "stat").read_text().rpartition(")")[2].split()
            if int(session) == leader and state != "Z":
                found.append(int(entry.name))
    return found


@pytest.mark.slow
def test_workers_are_quiet_when_a_sweep_is_interrupted(mean, tmp_path):
    """Ctrl-C reaches the whole group of processes, as in a terminal; nobody is left behind."""
    mean.write_text(
        mean.read_text().replace("ring:6", "torus:16x16").replace("steps = 4", "steps = 3000")
    )
    words = [sys.executable, "-m", "bruit", "sweep", str(mean), "--seeds", "40"]
    around = {**os.environ, "PYTHONPATH": str(Path(br.__file__).parents[1])}
    process = subprocess.Popen(
        [*words, "--on", "processes:2"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env=around,
    )
    kept = tmp_path / "runs" / "mean.sweep" / "rows.jsonl"
    until(lambda: kept.exists() and kept.read_text().count("\n") >= 2, "two runs are kept")
    assert len(alive(process.pid)) >= 3
    os.killpg(process.pid, signal.SIGINT)
    shown, complained = process.communicate(timeout=DEADLINE)
    assert process.returncode == 130
    until(lambda: not alive(process.pid), "nobody of its session is left")
    done = kept.read_text().count("\n")
    assert f"interrupted: {done} of 40 runs are done" in complained
    assert "Traceback" not in complained + shown
    assert (
        len([line for line in shown.splitlines() if line.startswith("│") and "mean" not in line])
        == done
    )
    assert {json.loads(line)["seed"] for line in kept.read_text().splitlines()} <= set(range(3, 43))


def test_what_got_further_stays_when_a_run_is_interrupted_twice(bruit, mean, struck):
    calm = struck("learning", 3)
    bruit("run", mean)
    calm()
    calm = struck("learning", 1)
    said = bruit("run", mean)
    assert said.code == 130
    assert (
        "interrupted: after 3 of 4 rounds; what was done is kept in runs/mean-seed3.run" in said.err
    )
    calm()
    assert bruit("show", "runs/mean-seed3.run", "--json").json["interrupted"]["done"] == 3
    assert bruit("run", mean).code == 0
    assert not Path("runs/mean-seed3-2.run").exists()


def test_sizing_the_noise_for_an_epsilon_is_told_and_ends_at_once(bruit, mean, struck):
    """An epsilon needs a rehearsal as long as the run: no silence, and nothing to keep."""
    struck("sizing the noise", 2)
    changes = [part for key in ("privacy.epsilon=2", "privacy.clip=1") for part in ("--set", key)]
    mean.write_text(re.sub(r"(?m)^\[privacy\]\n(.+\n)*", "", mean.read_text()))
    said = bruit("run", mean, *changes)
    assert said.code == 130
    assert "sizing the noise, 2 of 4 done, and lost; no result was saved" in said.err
