"""`attack reconstruct` and `attack invert`: predictions from a graph, values from a run folder, and
refusals."""

import json
from dataclasses import replace

import numpy as np
import pytest
from typer.testing import CliRunner

import bruit as br
from bruit.commands.attacks.attack import attack_app
from bruit.commands.cli import app
from bruit.errors import ConfigError
from bruit.runs.build import build
from bruit.runs.file import parse

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
    found = CliRunner().invoke(
        attack_app, ["reconstruct", *map(str, words)], catch_exceptions=False
    )
    assert found.exit_code == 0, found.output
    return found.output


def test_a_prediction_needs_the_graph_only():
    """gossip:REC-2: hypercube(4), peer 0; the defence counts what sums would expose
    (gossip:REC-3)."""
    said = json.loads(ask("--graph", "hypercube:4", "--seen-by", 0, "--steps", 4, "--json"))
    assert said["reconstructible"] == [0, 1, 2, 4, 7, 8, 11, 13, 14, 15]
    assert (said["rank"], said["relations"], len(said["first_relations"])) == (14, 4, 4)
    assert set(said["taxonomy"]) == {"goal", "behaviour", "knowledge", "view"}
    assert "expose 2 instead of 10 peers" in said["defence"]
    sums = json.loads(
        ask("--graph", "hypercube:4", "--seen-by", 0, "--steps", 4, "--sums", "--json")
    )
    assert sums["reconstructible"] == [0, 15]


def test_secure_aggregation_acceleration_coalitions_and_changing_graphs():
    """gossip:REC-3: ring(8) under secure aggregation exposes the antipode only; acceleration
    exposes nobody more; a butterfly of 8 tells pair sums."""
    sums = ("--graph", "ring:8", "--steps", 8, "--secure-aggregation", "--json", "--seen-by")
    assert json.loads(ask(*sums, 0))["reconstructible"] == [0, 4]
    assert json.loads(ask(*sums, "1,5"))["reconstructible"] == [1, 5]
    cube = ("--graph", "hypercube:4", "--seen-by", 0, "--steps", 4, "--json", "--algorithm")
    plain, fast = (json.loads(ask(*cube, name)) for name in ("averaging", "chebyshev"))
    assert fast["reconstructible"] == plain["reconstructible"]
    changing = json.loads(ask("--graph", "butterfly:8", "--seen-by", 0, "--steps", 3, "--json"))
    assert changing["reconstructible"] == [0, 1]
    assert changing["first_relations"] == ["x2 + x3", "x4 + x5 + x6 + x7"]


@pytest.mark.slow
def test_the_graph_of_the_papers():
    """ego:414, peer 7, ten steps: the count of the map of gossip:EXP-3, by another computation."""
    try:
        graph = br.graphs.from_ego(414)
    except ConfigError as error:
        pytest.skip(f"the ego-Facebook data are not here: {error}")
    said = json.loads(ask("--graph", "ego:414", "--seen-by", 7, "--steps", 10, "--json"))
    losses = muffliato_losses(graph, 7, 10)
    assert said["reconstructible"] == sorted({7, *np.flatnonzero(losses > 1 - 1e-6).tolist()})


def muffliato_losses(graph, observer, steps):
    """m[u, observer] of the exact account of gossip:MUF-2, which knows nothing of attacks."""
    from bruit.runs.run import rehearse

    run = rehearse(br.Averaging(), graph, br.Gaussian(clip=1.0, sigma=1.0), steps)
    return run.losses()[:, observer]


def test_published_weights_and_text():
    text = ask("--graph", "path:5", "--seen-by", "0,4", "--steps", 1, "--published-weights")
    assert "after 1 step on path:5,plus=0, peers 0, 4 can compute 4 of 5 values" in text
    assert "0, 1, 3, 4" in text
    assert "defence: " in text
    assert "threat: goal: data reconstruction" in text


@pytest.mark.parametrize("private", [False, True])
def test_a_run_is_attacked(tmp_path, private):
    """Nobody was watched: the run is repeated from its trace; with noise only noisy values are
    found."""
    text = EXPERIMENT + (NOISE if private else "")
    experiment = build(parse(text), text)
    folder = experiment.run().save(tmp_path / "one.run")
    said = json.loads(ask(folder, "--seen-by", 2, "--json"))
    assert said["reconstructible"] == list(range(9))
    assert said["recovered_with_noise"] == [0, 1, 3, 4, 5, 6, 7, 8]
    assert said["recovered"] == ([] if private else said["recovered_with_noise"])
    assert ("The noise of this run is the defence" in said["defence"]) == private
    assert "values recovered" in ask(folder, "--seen-by", "2,3")


def test_dithers_blur_what_is_far(tmp_path):
    """On a path all values are determined; the far ones only up to errors beyond their noise, and
    it is said."""
    text = (EXPERIMENT + NOISE).replace("ring:9", "path:10").replace("steps = 5", "steps = 9")
    folder = build(parse(text), text).run().save(tmp_path / "far.run")
    said = json.loads(ask(folder, "--seen-by", 0, "--json"))
    assert said["reconstructible"] == list(range(10))
    found = len(said["recovered_with_noise"])
    assert said["recovered_with_noise"] == list(range(1, 1 + found))
    assert 3 <= found <= 7
    assert said["errors"] == sorted(said["errors"])
    assert 0 < said["tolerance_with_noise"] <= 3.0 < said["errors"][-1]
    assert f"{9 - found} more are determined, but dithers blur them" in ask(folder, "--seen-by", 0)


def test_a_run_without_experiment_is_predicted(tmp_path):
    run = br.run(br.Averaging(), "path:4", br.tasks.Mean(np.zeros((4, 1))), steps=2)
    said = json.loads(ask(run.save(tmp_path / "two.run"), "--seen-by", 0, "--json"))
    assert said["reconstructible"] == [0, 1, 2]
    assert "recovered" not in said


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ("--graph", "path:5", "--seen-by", 9, "--steps", 1),
            r"observer 9 is not a peer of this graph",
        ),
        (("--graph", "path:5", "--seen-by", "a", "--steps", 1), "--seen-by 'a' is neither a peer"),
        (("--graph", "path:5", "--seen-by", 0), "name either a run folder or a protocol"),
        (("--seen-by", 0, "--steps", 3), "name either a run folder or a protocol"),
        (("--graph", "path:5", "--seen-by", 0, "--steps=-2"), "the number of gossip steps is -2"),
        (("nowhere.run", "--seen-by", 0, "--steps", 2), "leave out the other options"),
        (("nowhere.run", "--seen-by", 0), "there is no run folder"),
        (
            ("--graph", "butterfly:8", "--seen-by", 0, "--steps", 3, "--published-weights"),
            "needs one fixed graph",
        ),
        (
            ("--graph", "butterfly:8", "--seen-by", 0, "--steps", 3, "--algorithm", "chebyshev"),
            "needs one fixed graph",
        ),
        (
            ("--graph", "butterfly:8", "--seen-by", 0, "--steps", 3, "--sums"),
            "sums are known for one fixed graph only",
        ),
        (
            ("--graph", "path:5", "--seen-by", 0, "--steps", 3, "--algorithm", "walk-sgd"),
            "averaging or chebyshev, found",
        ),
        (
            ("nowhere.run", "--seen-by", 0, "--algorithm", "averaging"),
            "leave out the other options",
        ),
    ],
)
def test_bad_input(words, message):
    with pytest.raises(ConfigError, match=message):
        ask(*words)


def test_invert_reads_digits_out_of_gossip_sgd(tmp_path):
    """gossip:REC-4..8, ATK-1: without noise records come back, with noise of local epsilon 1 none
    does."""
    for name, noise in (("bare", ""), ("noisy", "[privacy]\nclip = 1.0\nepsilon = 1.0\n")):
        file = tmp_path / f"{name}.toml"
        file.write_text(
            'graph = "ring:6"\nsteps = 4\nreferences = false\n'
            '[task]\nkind = "softmax"\ndata = "digits"\nsplit = "iid"\n'
            'test = 0.9\nstandardize = "none"\n'
            '[algorithm]\nname = "gossip-sgd"\nrate = 1e-6\n' + noise
        )
        runner = CliRunner()
        made = runner.invoke(
            app, ["run", str(file), "--out", str(tmp_path / f"{name}.run"), "--quiet"]
        )
        assert made.exit_code == 0, made.output
        ran = runner.invoke(
            app, ["attack", "invert", str(tmp_path / f"{name}.run"), "--seen-by", "0", "--json"]
        )
        assert ran.exit_code == 0, ran.output
        about = json.loads(ran.output)
        assert {"estimable", "records", "recovered", "taxonomy", "defence"} <= set(about)
        assert len(about["estimable"]) == 5
        if name == "noisy":
            assert about["recovered"] == 0
            assert "The noise of this run is the defence" in about["defence"]
    words = ["invert", str(tmp_path / "bare.run"), "--seen-by"]
    drawn = [*words, "0", "--picture", str(tmp_path / "grid.png")]
    text = CliRunner().invoke(attack_app, drawn, catch_exceptions=False).output
    assert "5 of 5 peers can be told apart" in text
    assert "sigma = 16.9 per unit of clip on each of 4 gradients" in text
    assert (tmp_path / "grid.png").read_bytes()[:4] == b"\x89PNG"
    for more, message in (
        (["9"], r"attacker 9 is not in ring:6|cannot watch peer 9"),
        (["0", "--method", "magic"], "--method is ols or gls"),
        ([*drawn[3:], "--force", "--image", "7x7"], "records of 64 numbers are no images of 7x7"),
        ([*drawn[3:], "--force", "--image", "square"], "no size like 8x8"),
        (["0", "--picture", str(tmp_path / "nowhere" / "grid.png")], "there is no folder"),
    ):
        with pytest.raises(ConfigError, match=message):
            CliRunner().invoke(
                attack_app,
                [*words, *more] if more[0] != "--seen-by" else more,
                catch_exceptions=False,
            )


@pytest.mark.parametrize(
    ("name", "command", "message"),
    [
        ("averaging", "invert", "reconstructed from gossip-sgd, but this run is averaging"),
        ("gossip-sgd", "invert", "Mean has no closed-form gradient inversion"),
        ("gossip-sgd", "reconstruct", "but this is a run of gossip-sgd"),
    ],
)
def test_the_wrong_run(tmp_path, name, command, message):
    """A run that says nothing of what is asked, or a model that cannot be inverted: no report at
    all."""
    text = EXPERIMENT.replace(
        '"averaging"', '"gossip-sgd"\nrate = 0.1' if name == "gossip-sgd" else '"averaging"'
    )
    folder = build(parse(text), text).run().save(tmp_path / "wrong.run")
    with pytest.raises(ConfigError, match=message):
        CliRunner().invoke(
            attack_app, [command, str(folder), "--seen-by", "0"], catch_exceptions=False
        )


def test_a_view_without_the_needed_messages():
    """Nobody watched the observer: its view is empty, and nothing is reported."""
    task = br.tasks.Mean(np.arange(4.0)[:, None])
    run = br.run(br.Averaging(), "path:4", task, steps=2, watch=[1])
    from bruit.adversary.attacks import reconstruct, run_knowledge

    with pytest.raises(ConfigError, match="peer 0 was not watched"):
        run.view({0})
    part = run.view({1})
    with pytest.raises(ConfigError, match=r"missing first: what peer 0 said at 1"):
        reconstruct(
            replace(part, messages=part.messages[:2], foreign=part.foreign[:2]),
            run_knowledge(run, 1),
            np.array([[1.0]]),
        )
