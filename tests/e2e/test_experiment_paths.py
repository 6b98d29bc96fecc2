"""Files of an experiment lie beside it, wherever the command is called; a run folder finds them
again from anywhere."""

from pathlib import Path

import numpy as np
import pytest

from bruit.peers.site.running import run_participants
from bruit.peers.site.site import participant, read_site
from bruit.runs.file import read
from bruit.runs.result import load
from bruit.show.live import worker
from bruit.show.live.operator import operator_view

TABLE = """\
graph = "file:edges.txt,plus=1"   # six peers
steps = 4

[task]
kind = "logistic"
data = 'table.csv'
split = "owner"
test = 0.0
standardize = "none"

[algorithm]
name = "gossip-sgd"

[privacy]
sigma = 1.0
"""
RING = "".join(f"{k} {(k + 1) % 6}\n" for k in range(6))


def write_study(folder: Path, text: str = TABLE) -> Path:
    """An experiment with its table and its edges, in a folder of their own."""
    folder.mkdir(parents=True)
    rows = np.random.default_rng(0).normal(size=(36, 2))
    lines = [
        f"{a:.3f},{b:.3f},{'yes' if a + b > 0 else 'no'},{k % 6}" for k, (a, b) in enumerate(rows)
    ]
    (folder / "table.csv").write_text("\n".join(["a,b,label,owner", *lines]) + "\n")
    (folder / "edges.txt").write_text(RING)
    (folder / "study.toml").write_text(text)
    return folder / "study.toml"


@pytest.fixture
def study(tmp_path):
    return write_study(tmp_path / "studies" / "heart")


def test_files_are_looked_for_beside_the_experiment(bruit, study):
    assert bruit("run", "studies/heart/study.toml", "--out", "x.run").code == 0
    file, text = read(study)
    assert (file.task.data, file.graph) == (
        str(study.parent / "table.csv"),
        f"file:{study.parent}/edges.txt,plus=1",
    )
    assert (Path("x.run") / "experiment.toml").read_text() == text
    changed = [
        (old, new)
        for old, new in zip(TABLE.splitlines(), text.splitlines(), strict=True)
        if old != new
    ]
    assert [old.split(" = ")[0] for old, _ in changed] == ["graph", "data"]
    assert changed[0][1].endswith("# six peers")


def test_beside_the_experiment_comes_before_the_working_directory(bruit, study, tmp_path):
    (tmp_path / "edges.txt").write_text("0 1\n")
    (tmp_path / "table.csv").write_text("nonsense")
    assert bruit("run", study, "--out", "x.run").code == 0
    study.with_name("edges.txt").unlink()
    (tmp_path / "edges.txt").write_text(RING)
    assert (
        bruit("run", study, "--out", "y.run").code == 0
    )  # as before: a file of the working directory


def test_a_missing_file_is_looked_for_in_both_places_and_said(bruit, study, tmp_path):
    for name, line in (("table.csv", 6), ("edges.txt", 1)):
        study.with_name(name).unlink()
        said = bruit("run", study)
        assert said.code == 2
        assert (
            f"study.toml:{line}: there is no file {name}: looked beside the experiment in"
            f" {study.parent} and in the working directory {tmp_path}\n" in said.err
        )
    assert bruit("sweep", study).code == 2


def test_a_run_folder_finds_its_files_from_anywhere(bruit, study, tmp_path, monkeypatch):
    assert bruit("run", study, "--out", "x.run").code == 0
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    said = bruit("replay", "../x.run", "--json")
    assert said.code == 0, said.err
    assert said.json["agrees"] is True
    assert bruit("attack", "invert", "../x.run", "--seen-by", 0).code == 0
    assert bruit("sweep", study, "--seeds", 2, "--json").code == 0
    assert load("../x.run").graph.n == 6


def test_a_run_of_the_live_page_is_found_again_too(bruit, study, tmp_path, monkeypatch, capsys):
    """The page writes what was typed into a folder of its own: files are those of the working
    directory."""
    monkeypatch.chdir(study.parent)
    typed = tmp_path / "typed"
    typed.mkdir()
    (typed / "x.toml").write_text(TABLE)
    assert worker.main(str(typed / "x.toml"), str(tmp_path / "x.run")) == 0
    capsys.readouterr()
    monkeypatch.chdir(tmp_path)
    assert bruit("replay", "x.run").code == 0


@pytest.mark.slow
def test_an_audit_and_a_sweep_find_the_files(bruit, study):
    assert bruit("audit", study, "--trials", 200).code == 0
    rows = bruit("sweep", study, "--vary", "steps=2,4", "--json").json
    assert len(rows) == 2


def test_paths_that_are_not_plain_strings_are_refused(bruit, study):
    study.write_text(TABLE.replace("'table.csv'", '"\\u0074able.csv"'))
    said = bruit("run", study)
    assert said.code == 2
    assert "the value of task.data is not written as one plain string" in said.err


def test_participants_get_a_copy_of_the_graph_and_its_digest(bruit, study, monkeypatch, tmp_path):
    said = bruit("network", "init", "--peers", 6, "--experiment", study, "--out", "net", "--json")
    assert said.code == 0, said.err
    for name in ("edges.txt", "table.csv"):
        study.with_name(name).unlink()  # the founder's files are not needed any more
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    sites = [tmp_path / site for site in said.json["sites"]]
    for site in sites:
        assert (site.parent / "graph-edges.txt").read_text() == RING
        graph, data = [
            (site.parent / "experiment.toml").read_text().splitlines()[k] for k in (0, 5)
        ]
        assert graph.startswith('graph = "file:graph-edges.txt,plus=1,sha256=')
        assert data == "data = 'table.csv'"  # as it was agreed on: no path of the founder's machine
    people = [participant(read_site(site), rehearse=0) for site in sites]
    assert len({one.host.run_id for one in people}) == 1
    assert operator_view(sites[0])["others"] == [
        {"peer": 1, "name": "peer-1"},
        {"peer": 5, "name": "peer-5"},
    ]
    assert run_participants(people) == 0


def test_another_graph_is_noticed_at_the_start(bruit, study):
    bruit("network", "init", "--peers", 6, "--experiment", study, "--out", "net")
    home = Path("net/peer-0")
    (home / "graph-edges.txt").write_text(RING + "0 3\n")
    said = bruit("peer", "run", home / "site.toml")
    assert said.code == 2
    assert "graph-edges.txt is not the edge list that was agreed on: its sha256 is" in said.err
    assert not (home / "state").exists()


def test_without_a_digest_other_graphs_are_other_runs(bruit, study):
    """Agreed on by hand, where nobody wrote a digest down: peers with different edges refuse each
    other."""
    bruit("network", "init", "--peers", 6, "--experiment", study, "--out", "net")
    ids = []
    for peer in range(3):
        home = Path(f"net/peer-{peer}")
        text = (home / "experiment.toml").read_text()
        (home / "experiment.toml").write_text(
            text.replace(text.split(",sha256=")[1].split('"')[0], "").replace(",sha256=", "")
        )
        if peer == 2:
            (home / "graph-edges.txt").write_text(RING + "0 3\n")
        one = participant(read_site(home / "site.toml"))
        ids.append(one.host.run_id)
        one.host.journal.close()
    assert ids[0] == ids[1] != ids[2]


def test_a_graph_named_on_the_command_line_lies_in_the_working_directory(bruit, study, tmp_path):
    study.write_text(TABLE.replace("file:edges.txt,plus=1", "ring:6"))
    (tmp_path / "edges.txt").write_text(RING + "0 3\n")
    said = bruit(
        "network",
        "init",
        "--peers",
        6,
        "--experiment",
        study,
        "--graph",
        "file:edges.txt",
        "--out",
        "net",
    )
    assert said.code == 0, said.err
    assert Path("net/peer-3/graph-edges.txt").read_text() == RING + "0 3\n"
