"""`attack reconstruct`: predictions from a graph, values from a run folder, and refusals."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

import bruit as br
from bruit.attacks_cli import attack_app
from bruit.build import build
from bruit.cli import app
from bruit.config import parse
from bruit.errors import ConfigError

EXPERIMENT = """
graph = "ring:9"
steps = 5
seed = 4
[task]
kind = "mean"
dim = 2
[algorithm]
name = "averaging"
"""
NOISE = """
[privacy]
mechanism = "gaussian"
clip = 2.0
sigma = 3.0
"""


def ask(*words):
    found = CliRunner().invoke(attack_app, ["reconstruct", *map(str, words)], catch_exceptions=False)
    assert found.exit_code == 0, found.output
    return found.output


def test_a_prediction_needs_the_graph_only():
    """gossip:REC-2: hypercube(4), peer 0; the defence counts what sums would expose (gossip:REC-3)."""
    said = json.loads(ask("--graph", "hypercube:4", "--seen-by", 0, "--steps", 4, "--json"))
    assert said["reconstructible"] == [0, 1, 2, 4, 7, 8, 11, 13, 14, 15]
    assert (said["rank"], said["relations"], len(said["first_relations"])) == (14, 4, 4)
    assert set(said["taxonomy"]) == {"goal", "behaviour", "knowledge", "view"}
    assert "expose 2 instead of 10 peers" in said["defence"]
    sums = json.loads(ask("--graph", "hypercube:4", "--seen-by", 0, "--steps", 4, "--sums", "--json"))
    assert sums["reconstructible"] == [0, 15]


def test_published_weights_and_text():
    text = ask("--graph", "path:5", "--seen-by", "0,4", "--steps", 1, "--published-weights")
    assert "after 1 steps on path:5,plus=0, peers 0, 4 can compute 4 of 5 values" in text
    assert "0, 1, 3, 4" in text
    assert "defence: " in text
    assert "threat: goal: data reconstruction" in text


@pytest.mark.parametrize("private", [False, True])
def test_a_run_is_attacked(tmp_path, private):
    """Nobody was watched: the run is repeated from its trace; with noise only noisy values are found."""
    text = EXPERIMENT + (NOISE if private else "")
    experiment = build(parse(text), text)
    folder = experiment.run().save(tmp_path / "one.run")
    said = json.loads(ask(folder, "--seen-by", 2, "--json"))
    assert said["reconstructible"] == list(range(9))
    assert said["recovered_with_noise"] == [0, 1, 3, 4, 5, 6, 7, 8]
    assert said["recovered"] == ([] if private else said["recovered_with_noise"])
    assert ("The noise of this run is the defence" in said["defence"]) == private
    assert "values recovered" in ask(folder, "--seen-by", "2,3")


def test_a_run_without_experiment_is_predicted(tmp_path):
    run = br.run(br.Averaging(), "path:4", br.tasks.Mean(np.zeros((4, 1))), steps=2)
    said = json.loads(ask(run.save(tmp_path / "two.run"), "--seen-by", 0, "--json"))
    assert said["reconstructible"] == [0, 1, 2]
    assert "recovered" not in said


@pytest.mark.parametrize(("words", "message"), [
    (("--graph", "path:5", "--seen-by", 9, "--steps", 1), r"observer 9 is not a peer of this graph"),
    (("--graph", "path:5", "--seen-by", "a", "--steps", 1), "--seen-by 'a' is neither a peer"),
    (("--graph", "path:5", "--seen-by", 0), "name either a run folder or a protocol"),
    (("--seen-by", 0, "--steps", 3), "name either a run folder or a protocol"),
    (("--graph", "path:5", "--seen-by", 0, "--steps=-2"), "the number of gossip steps is -2"),
    (("nowhere.run", "--seen-by", 0, "--steps", 2), "leave out the other options"),
    (("nowhere.run", "--seen-by", 0), "there is no run folder"),
    (("--graph", "butterfly:8", "--seen-by", 0, "--steps", 3, "--published-weights"), "needs one fixed graph"),
])  # fmt: skip
def test_bad_input(words, message):
    with pytest.raises(ConfigError, match=message):
        ask(*words)


def test_invert_reads_digits_out_of_gossip_sgd(tmp_path):
    """gossip:REC-4..8, ATK-1: without noise records come back, with noise of local epsilon 1 none does."""
    for name, noise in (("bare", ""), ("noisy", "[privacy]\nclip = 1.0\nepsilon = 1.0\n")):
        file = tmp_path / f"{name}.toml"
        file.write_text('graph = "ring:6"\nsteps = 4\n[task]\nkind = "softmax"\ndata = "digits"\nsplit = "iid"\n'
                        'standardize = "none"\n[algorithm]\nname = "gossip-sgd"\nrate = 1e-6\n' + noise)  # fmt: skip
        runner = CliRunner()
        made = runner.invoke(app, ["run", str(file), "--out", str(tmp_path / f"{name}.run"), "--quiet"])
        assert made.exit_code == 0, made.output
        ran = runner.invoke(app, ["attack", "invert", str(tmp_path / f"{name}.run"), "--seen-by", "0", "--json"])
        assert ran.exit_code == 0, ran.output
        about = json.loads(ran.output)
        assert {"estimable", "records", "recovered", "taxonomy", "defence"} <= set(about)
        assert len(about["estimable"]) == 5
        if name == "noisy":
            assert about["recovered"] == 0
            assert "The noise of this run is the defence" in about["defence"]
    text = CliRunner().invoke(app, ["attack", "invert", str(tmp_path / "bare.run"), "--seen-by", "0"]).output
    assert "5 of 5 peers can be told apart" in text
