"""No command takes the place of what is there: runs have names of their own, files need --force."""

import json
from pathlib import Path

import pytest

import bruit as br

TABLE = "color,score,label\n" + "".join(
    f"{'red' if k % 2 else 'blue'},{k / 40},{k % 2}\n" for k in range(40)
)


def test_a_changed_file_has_a_folder_of_its_own(bruit, mean):
    assert bruit("run", mean).code == 0
    first = Path("runs/mean-seed3.run/manifest.json").read_text()
    mean.write_text(mean.read_text().replace("sigma = 1.5", "sigma = 2.5"))
    said = bruit("run", mean)
    assert said.code == 0
    assert "saved in runs/mean-seed3-2.run" in said.out
    mean.write_text(mean.read_text().replace("sigma = 2.5", "sigma = 3.5"))
    assert bruit("run", mean, "--json").json["folder"] == "runs/mean-seed3-3.run"
    assert (
        bruit("run", mean, "--force", "--json").json["folder"] == "runs/mean-seed3-3.run"
    )  # its own, once more
    assert Path("runs/mean-seed3.run/manifest.json").read_text() == first
    assert [br.load(path).privacy.sigma for path in sorted(Path("runs").iterdir())] == [
        2.5,
        3.5,
        1.5,
    ]


def test_the_same_run_is_shown_and_not_run_again(bruit, mean, monkeypatch):
    first = bruit("run", mean, "--json").json
    assert first["run_again"] is True
    with monkeypatch.context() as patched:
        patched.setattr(
            "bruit.runs.build.Experiment.learn", lambda *_: pytest.fail("it was run again")
        )
        said = bruit("run", mean)
        assert said.code == 0
        assert (
            "this very run was in runs/mean-seed3.run already and was not run again (--force does)"
            in said.out
        )
        again = bruit("run", mean, "--json").json
        assert again == {**first, "run_again": False, "model": {**first["model"], "score": None}}
    forced = bruit("run", mean, "--force", "--json").json
    assert forced == first
    assert [path.name for path in Path("runs").iterdir()] == ["mean-seed3.run"]


@pytest.mark.parametrize("words", [("--engine", "events"), ("--rehearsal",)])
def test_other_options_are_another_run(bruit, mean, words):
    bruit("run", mean)
    assert bruit("run", mean, *words, "--json").json["folder"] == "runs/mean-seed3-2.run"


def test_changed_data_are_another_run(bruit, mean, tmp_path):
    data = tmp_path / "d.csv"
    data.write_text(TABLE)
    text = mean.read_text().replace("averaging", "gossip-sgd")
    mean.write_text(text.replace('kind = "mean"\ndim = 2', f'kind = "logistic"\ndata = "{data}"'))
    assert bruit("run", mean).code == 0
    data.write_text(TABLE.replace("red", "green"))
    assert bruit("run", mean, "--json").json["folder"] == "runs/mean-seed3-2.run"
    manifest = json.loads(Path("runs/mean-seed3.run/manifest.json").read_text())
    assert (
        "sha256" not in manifest["task"]["data"]
    )  # nothing that guesses of the rows could be compared with


def test_a_broken_or_foreign_folder_is_left_alone(bruit, mean):
    bruit("run", mean)
    Path("runs/mean-seed3.run/manifest.json").write_text("{")
    assert bruit("run", mean, "--json").json["folder"] == "runs/mean-seed3-2.run"
    assert Path("runs/mean-seed3.run/manifest.json").read_text() == "{"
    Path("runs/mean-seed5.run").write_text("a file")
    assert bruit("run", mean, "--seed", 5, "--json").json["folder"] == "runs/mean-seed5-2.run"
    assert Path("runs/mean-seed5.run").read_text() == "a file"


def test_a_name_that_was_taken_meanwhile_is_not_overwritten(bruit, mean, monkeypatch):
    from bruit.runs.build import Experiment

    plain = Experiment.learn

    def slow(self, *words):
        Path("runs/mean-seed3.run").mkdir(parents=True)
        return plain(self, *words)

    monkeypatch.setattr(Experiment, "learn", slow)
    assert bruit("run", mean, "--json").json["folder"] == "runs/mean-seed3-2.run"
    assert not list(Path("runs/mean-seed3.run").iterdir())


@pytest.mark.parametrize(
    ("words", "file"),
    [
        (("sweep", "mean.toml", "--out", "x.csv"), "x.csv"),
        (
            ("epsilon", "--graph", "ring:4", "--steps", 1, "--sigma", 1, "--matrix", "x.npy"),
            "x.npy",
        ),
        (("show", "x.run", "--html", "x.html"), "x.html"),
        (("show", "x.run", "--csv", "numbers"), "numbers/utility.csv"),
        (
            (
                "ldp",
                "report",
                "t.csv",
                "--column",
                "color",
                "--domain",
                "red,blue",
                "--out",
                "r.csv",
                "--seed",
                1,
            ),
            "r.csv",
        ),
        (("predict", "learned.run", "t.csv", "--out", "p.csv"), "p.csv"),
        (("init", "x.toml"), "x.toml"),
        (("network", "join", "a/public.toml", "b/public.toml"), "book.toml"),
        (("peer", "data", "one.csv", "--experiment", "mean.toml", "--out", "r.npz"), "r.npz"),
    ],
    ids=lambda words: " ".join(map(str, words[:2])) if isinstance(words, tuple) else words,
)
def test_files_are_overwritten_with_force_only(bruit, mean, saved, words, file):
    Path("t.csv").write_text(TABLE)
    Path("one.csv").write_text("a,b\n1,2\n")
    task = br.tasks.Logistic.load("t.csv", peers=4)
    br.run(br.GossipSGD(), "ring:4", task, steps=2).save("learned.run")
    for port, name in ((7401, "a"), (7402, "b")) if words[0] == "network" else ():
        assert bruit("peer", "key", name, "--out", name, "--port", port).code == 0
    assert bruit(*words).code == 0
    Path(file).write_bytes(b"precious")
    said = bruit(*words)
    assert said.code == 2
    assert f"{file} exists" in said.err
    assert "--force" in said.err
    assert Path(file).read_bytes() == b"precious"
    assert bruit(*words, "--force").code == 0
    assert Path(file).read_bytes() != b"precious"


def test_an_attack_draws_over_nothing(bruit, saved):
    Path("grid.png").write_bytes(b"precious")
    said = bruit("attack", "invert", saved, "--seen-by", 0, "--picture", "grid.png")
    assert "grid.png exists" in said.err
    assert (said.code, Path("grid.png").read_bytes()) == (2, b"precious")


def test_a_saved_plan_is_left_alone(bruit):
    Path("trust.csv").write_text("of,seen_by,epsilon\n0,1,1\n1,2,1\n2,0,1\n")
    Path("plan").mkdir()
    Path("plan/edges.txt").write_text("precious")
    said = bruit("plan", "--trust", "trust.csv", "--peers", 3, "--epsilon", 1, "--save", "plan")
    assert said.code == 2
    assert "plan/edges.txt exists" in said.err
    assert Path("plan/edges.txt").read_text() == "precious"


@pytest.mark.parametrize(
    ("name", "complaint"),
    [
        ("precious", "precious exists and is not a run folder, so it is left alone"),
        ("thesis.txt", "thesis.txt exists and is not a run folder, so it is left alone"),
        ("thesis.txt/x.run", "thesis.txt is not a folder"),
    ],
)
def test_a_place_where_no_run_can_be_kept_is_refused_before_the_run(
    bruit, mean, monkeypatch, name, complaint
):
    Path("precious").mkdir()
    Path("precious/thesis.txt").write_text("mine")
    Path("thesis.txt").write_text("mine")
    monkeypatch.setattr(
        "bruit.runs.build.build", lambda *given, **more: pytest.fail("the run has begun")
    )
    said = bruit("run", mean, "--out", name, "--force")
    assert said.code == 2
    assert complaint in said.err
    assert Path("precious/thesis.txt").read_text() == Path("thesis.txt").read_text() == "mine"
