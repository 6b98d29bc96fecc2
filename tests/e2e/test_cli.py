"""Every command, as a user meets it."""

import csv
import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import bruit as br
from bruit.commands import terminal
from bruit.errors import ConformanceError

COMMANDS = ("run", "sweep", "replay", "epsilon", "graph", "list", "show", "init")
QUESTION = (
    "epsilon",
    "--graph",
    "torus:16x16",
    "--algorithm",
    "averaging",
    "--steps",
    20,
    "--sigma",
    1,
)


@pytest.mark.parametrize("command", COMMANDS)
def test_help_shows_an_example_and_json(bruit, command):
    said = bruit(command, "--help")
    assert said.code == 0
    assert f"Example: bruit {command}" in said.out
    assert "--json" in said.out


def test_the_help_names_every_command(bruit):
    said = bruit("--help")
    assert said.code == 0
    assert all(command in said.out for command in COMMANDS)


def test_unknown_command_and_missing_argument_are_usage_errors(bruit):
    assert bruit("rnu").code == 2
    assert bruit("run").code == 2
    assert bruit("epsilon", "--steps", "many").code == 2


def test_run_writes_a_whole_folder_and_tells_what_to_do_next(bruit, mean):
    said = bruit("run", mean)
    folder = Path("runs/mean-seed3.run")
    assert said.code == 0
    assert said.err == ""
    assert f"bruit epsilon {folder}" in said.out
    names = {
        "manifest.json",
        "trace.npz",
        "ledger.npz",
        "metrics.json",
        "estimates.npz",
        "experiment.toml",
        "model.json",
    }
    assert {path.name for path in folder.iterdir()} == names
    assert {path.name for path in Path("runs").iterdir()} == {folder.name}
    advice = next(
        line for line in said.out.splitlines() if line.strip().startswith("bruit epsilon")
    ).split()
    assert bruit(*advice[1:]).code == 0


def test_quiet_prints_the_result_only(bruit, mean):
    said = bruit("run", mean, "--quiet")
    assert said.code == 0
    assert "worst pair" in said.out
    assert "try next" not in said.out
    assert said.err == ""


def test_run_json_is_strict_and_complete(bruit, mean):
    found = bruit("run", mean, "--json", "--seed", 5, "--out", "five.run").json
    assert found["seed"] == 5
    assert found["peers"] == 6
    assert found["folder"] == "five.run"
    assert found["privacy"]["status"] == "proven"
    assert set(found["metrics"]) == {"mse", "worst"}


def test_json_of_a_run_without_privacy_says_infinite_in_words(bruit, mean):
    mean.write_text(mean.read_text().split("[privacy]")[0])
    found = bruit("run", mean, "--json").json
    assert found["privacy"]["worst"]["epsilon"] == "inf"
    assert math.isinf(float(found["privacy"]["local"]["epsilon"]))


@pytest.mark.parametrize(
    "words",
    [
        ("list", "algorithms"),
        ("list", "graphs"),
        ("graph", "grid:3x4"),
        ("epsilon", "--graph", "ring:6", "--steps", 3, "--sigma", 1),
    ],
)
def test_piped_text_has_no_color_codes(bruit, words):
    said = bruit(*words)
    assert said.code == 0
    assert "\x1b" not in said.out + said.err


def test_piped_tables_are_not_cut(bruit, mean):
    said = bruit("sweep", mean, "--vary", "privacy.sigma=1,2")
    assert "…" not in said.out
    assert "epsilon_typical" in said.out


def test_show_tells_the_same_story(bruit, saved):
    shown = bruit("show", saved, "--json").json
    assert shown["privacy"]["worst"]["epsilon"] == pytest.approx(
        float(br.load(saved).summary().epsilons[0])
    )
    text = bruit("show", saved, "--quiet")
    assert "6 peers, ring:6, averaging for 4 rounds" in text.out
    assert "delta = 1e-06, user level" in text.out


def test_show_for_another_delta(bruit, saved):
    one, other = (
        bruit("show", saved, "--json").json,
        bruit("show", saved, "--delta", 1e-3, "--json").json,
    )
    assert other["privacy"]["delta"] == 1e-3
    assert other["privacy"]["worst"]["epsilon"] < one["privacy"]["worst"]["epsilon"]


def test_epsilon_of_a_run(bruit, saved):
    found = bruit("epsilon", saved, "--of", 2, "--seen-by", 0, "--json").json
    assert found["epsilon"] == pytest.approx(float(br.load(saved).epsilon(of=2, seen_by=0)))
    assert (found["of"], found["seen_by"]) == ("peer 2", "peer 0")
    coalition = bruit("epsilon", saved, "--of", 2, "--seen-by", "0,4", "--json").json
    assert coalition["seen_by"] == "peers 0, 4 together"
    assert coalition["loss"] >= found["loss"] - 1e-12
    everybody = bruit("epsilon", saved, "--seen-by", "everybody", "--json").json
    assert everybody["theorem"].startswith("local DP")


def test_epsilon_without_any_data(bruit):
    said = bruit(*QUESTION, "--of", 5, "--seen-by", 0, "--json")
    found = said.json
    assert said.code == 0
    assert {"loss", "epsilon", "delta", "status", "hypotheses"} <= set(found)
    assert found["status"] == "proven"
    assert found["delta"] == 1e-6
    assert 0 < found["loss"] <= 1
    assert list(Path().iterdir()) == []
    text = bruit(*QUESTION, "--of", 5, "--seen-by", 0).out
    assert "at delta = 1e-06 (user level), proven" in text
    assert "what peer 0 could have learned about peer 5" in text


def test_epsilon_matrix_is_m_of_u_in_the_view_of_v(bruit):
    # star(6), v = 1, T = 3 (gossip:MUF-2): leaves see each other at 0.25 and the hub at 1.
    said = bruit(
        "epsilon", "--graph", "star:6", "--steps", 3, "--sigma", 1, "--matrix", "out.npy", "--json"
    )
    assert said.code == 0
    m = np.load("out.npy", allow_pickle=False)
    assert m.dtype == np.float64
    assert np.isnan(np.diag(m)).all()
    assert np.delete(m[:, 1], 1) == pytest.approx([1, 0.25, 0.25, 0.25, 0.25])
    assert [path.name for path in Path().iterdir()] == ["out.npy"]
    assert said.json["worst"]["loss"] == pytest.approx(np.nanmax(m))


def test_epsilon_published_is_labelled(bruit):
    # path(3), v = 0, T = 2 (gossip:MUF-1, MUF-2): the printed formula says 1/3 where the truth is
    # 1.
    words = (
        "epsilon",
        "--graph",
        "path:3",
        "--steps",
        2,
        "--sigma",
        1,
        "--of",
        2,
        "--seen-by",
        0,
        "--json",
    )
    assert bruit(*words).json["loss"] == pytest.approx(1)
    published = bruit(*words, "--published").json
    assert published["status"] == "published"
    assert published["loss"] < 1
    assert "not a guarantee" in published["notes"][0]


@pytest.mark.parametrize("preset", ["muffliato", "randomized-muffliato"])
def test_a_preset_chooses_its_horizon(bruit, preset):
    said = bruit(
        "epsilon",
        "--graph",
        "ring:6",
        "--algorithm",
        preset,
        "--sigma",
        1,
        "--of",
        3,
        "--seen-by",
        0,
        "--set",
        "algorithm.spread=0.5",
        "--json",
    )
    assert said.code == 0
    assert 0 <= said.json["loss"] <= 1


def test_replay_agrees_and_a_changed_trace_does_not(bruit, saved, monkeypatch):
    said = bruit("replay", saved, "--json")
    assert said.code == 0
    assert said.json == {"agrees": True, "difference": 0.0, "ledger_lines": 36}
    assert "agrees" in bruit("replay", saved, "--quiet").out
    run = br.load(saved)
    run.estimates = run.estimates + 1e-3
    run.save("false.run")
    said = bruit("replay", "false.run", "--json")
    assert said.code == 1
    assert said.json["agrees"] is False
    assert said.err.startswith("disagreement: the estimates differ")


FAULTY = """
[engine]
name = "events"
latency = 0.3
loss = 0.1
churn = 0.1
timeout = 0.5
"""


@pytest.mark.parametrize(
    "algorithm", ["averaging", "pair-averaging", "gossip-sgd", "walk-sgd", "renoised"]
)
def test_replay_of_a_run_with_latency_loss_and_churn(bruit, mean, algorithm):
    mean.write_text(mean.read_text().replace('"averaging"', f'"{algorithm}"') + FAULTY)
    ran = bruit("run", mean, "--out", "faulty.run", "--json")
    assert ran.code == 0
    assert ran.json["engine"]["loss"] == 0.1
    said = bruit("replay", "faulty.run", "--json")
    assert said.code == 0
    assert said.json["agrees"] is True
    assert said.json["difference"] <= 1e-9


def test_the_engine_of_the_command_line_wins(bruit, mean):
    found = bruit("run", mean, "--engine", "events", "--json").json
    assert found["engine"]["name"] == "events"
    assert bruit("replay", "runs/mean-seed3.run").code == 0


def test_sweep_runs_a_grid_and_writes_csv(bruit, mean):
    said = bruit(
        "sweep",
        mean,
        "--vary",
        "privacy.sigma=1,2",
        "--vary",
        "steps=2,4",
        "--seeds",
        2,
        "--out",
        "s.csv",
        "--json",
    )
    rows = said.json
    assert said.code == 0
    assert [(row["privacy.sigma"], row["steps"], row["seed"]) for row in rows] == [
        (sigma, steps, seed) for sigma in (1, 2) for steps in (2, 4) for seed in (3, 4)
    ]
    with open("s.csv", newline="") as stream:
        written = list(csv.DictReader(stream))
    assert [float(row["epsilon_local"]) for row in written] == pytest.approx(
        [row["epsilon_local"] for row in rows]
    )
    assert all(row["status"] == "proven" and row["delta"] == "1e-06" for row in written)
    local = {row["privacy.sigma"]: row["epsilon_local"] for row in rows}
    assert local[2] < local[1]


def test_a_sweep_over_tasks_with_different_metrics(bruit, mean):
    text = (
        mean.read_text()
        .replace("dim = 2", 'data = "breast_cancer"')
        .replace("averaging", "gossip-sgd")
    )
    mean.write_text(text.replace('"mean"', '"ridge"'))
    said = bruit("sweep", mean, "--vary", "task.kind=ridge,logistic", "--out", "two.csv")
    assert said.code == 0
    with open("two.csv", newline="") as stream:
        ridge, logistic = csv.DictReader(stream)
    assert ridge["rmse"]
    assert not ridge["accuracy"]
    assert logistic["accuracy"]


def test_init_then_run(bruit):
    said = bruit("init", "my.toml")
    assert said.code == 0
    assert "bruit run my.toml" in said.out
    assert bruit("run", "my.toml", "--quiet").code == 0
    assert bruit("init", "other.toml", "--json").json == {
        "written": "other.toml",
        "template": "breast-cancer",
    }


def test_graph_facts(bruit):
    # ring(16) has gap 0.0507469783 with the default weights (gossip:GM-3).
    found = bruit("graph", "ring:16", "--json").json
    assert found["spectral_gap"] == pytest.approx(0.0507469783)
    assert (found["peers"], found["links"], found["connected"]) == (16, 16, True)
    assert "spectral_gap" in bruit("graph", "ring:16").out
    assert bruit("graph", "butterfly:8", "--json").json["period"] == 3


@pytest.mark.parametrize(
    "what", ["algorithms", "graphs", "data", "mechanisms", "tasks", "experiments"]
)
def test_list(bruit, what):
    found = bruit("list", what, "--json").json
    assert found
    assert all(isinstance(text, str) and text for text in found.values())
    shown = bruit("list", what).out
    assert all(name in shown for name in found)


def test_python_dash_m(tmp_path):
    words = [sys.executable, "-m", "bruit", *map(str, QUESTION), "--of", "5", "--seen-by", "0"]
    said = subprocess.run(
        words,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        env={"PYTHONPATH": str(Path(br.__file__).parents[1]), "PATH": ""},
    )
    assert said.returncode == 0, said.stderr
    assert said.stdout.startswith("epsilon = ")
    assert "\x1b" not in said.stdout
    assert said.stderr == ""


def test_exit_codes_of_disagreement_and_interruption(bruit, saved, monkeypatch):
    def disagree(*_, **__):
        raise ConformanceError("they differ")

    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("bruit.runs.replay.replay", disagree)
    assert bruit("replay", saved) == (1, "", "disagreement: they differ\n")
    monkeypatch.setattr("bruit.runs.replay.replay", interrupt)
    assert bruit("replay", saved).code == 130


def test_progress_is_shown_on_a_terminal_only(monkeypatch):
    assert terminal.progress_bar(quiet=False) is None
    monkeypatch.setattr(terminal, "err", terminal.Console(stderr=True, force_terminal=True))
    assert terminal.progress_bar(quiet=False) is not None
    assert terminal.progress_bar(quiet=True) is None
    with terminal.Ticker(quiet=False, title="work") as ticker:
        ticker(1, 2, {"loss": 0.5})


def test_set_changes_the_run_and_the_folder_tells_it(bruit, mean):
    said = bruit(
        "run",
        mean,
        "--set",
        "privacy.sigma=3",
        "--set",
        "task.dim=5",
        "--seed",
        7,
        "--out",
        "x.run",
    )
    assert said.code == 0
    assert (
        "changed: privacy.sigma = 3 instead of 1.5; task.dim = 5 instead of 2; seed = 7 instead of 3"
        in said.out
    )
    kept = Path("x.run/experiment.toml")
    assert br.load("x.run").privacy.sigma == 3
    again = bruit("run", kept, "--out", "y.run", "--json")
    assert again.json["seed"] == 7
    assert np.array_equal(br.load("x.run").estimates, br.load("y.run").estimates)


def test_set_refuses_what_is_no_key(bruit, mean):
    for words, found in (
        ("privacy.sigmma=3", "did you mean 'privacy.sigma'"),
        ("sigma=3", "'privacy.sigma'"),
    ):
        said = bruit("run", mean, "--set", words)
        assert said.code == 2
        assert found in said.err
    assert bruit("run", mean, "--seed", 1, "--set", "seed=2").code == 2
    assert not Path("runs").exists()


def test_a_sweep_takes_set_too(bruit, mean):
    rows = bruit("sweep", mean, "--set", "task.dim=3", "--vary", "privacy.sigma=1,2", "--json").json
    plain = bruit("sweep", mean, "--vary", "privacy.sigma=1,2", "--json").json
    assert [row["mse"] for row in rows] != [row["mse"] for row in plain]
    assert bruit("sweep", mean, "--set", "steps=2", "--vary", "steps=1,2").code == 2


def test_epsilon_of_a_folder_refuses_the_options_of_a_protocol(bruit, saved):
    for words in (
        ("--dim", 3),
        ("--sensitivity", 2),
        ("--smoothness", 1),
        ("--algorithm", "renoised"),
        ("--seed", 4),
    ):
        said = bruit("epsilon", saved, *words)
        assert said.code == 2, words
        assert "name either a run folder or a protocol" in said.err


def test_a_next_command_can_be_typed_as_it_is_printed(monkeypatch, tmp_path):
    """By the name if the shell finds it, else by what was started."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(sys, "argv", [str(tmp_path / ".venv" / "bin" / "bruit")])
    assert terminal.program() == ".venv/bin/bruit"
    monkeypatch.setattr(sys, "argv", ["/somewhere/bruit/__main__.py"])
    assert terminal.program() == f"{sys.executable} -m bruit"
    monkeypatch.setattr(sys, "argv", ["pytest"])
    assert terminal.program() == "bruit"
