"""A learned graph is a graph like any other: drawn, saved, and talked over in the next run
(perso:PERSO-8)."""

import re

import numpy as np
import pytest

import bruit as br
from bruit.graphs.learn import degrees_of
from bruit.personal import alternate, bounded_records, learn_graph
from bruit.randomness import Replay
from bruit.runs.build import build
from bruit.runs.file import ExperimentFile
from bruit.show.report import render

PEERS, EACH = 8, 10


@pytest.fixture(scope="module")
def task():
    """Two clusters whose labels follow opposite rules."""
    rng = np.random.default_rng(0)
    owners = np.repeat(np.arange(PEERS), EACH)
    rows = rng.uniform(-1, 1, (PEERS * EACH, 2))
    labels = np.where(rows[:, 0] * np.where(owners < PEERS // 2, 1, -1) > 0, 1.0, -1.0)
    return br.tasks.Personal(
        br.tasks.Logistic(bounded_records(rows, labels, owners)), np.full(PEERS, 0.05)
    )


@pytest.fixture(scope="module")
def learned(task):
    aim = br.graphs.Collaboration(coupling=2.0, floor=0.1)
    return alternate(br.Personalized(smoothness=0.3), task, aim, rounds=2, steps=10, wakes=400)


def inside(weights):
    """The share of weight within the two clusters."""
    side = np.arange(PEERS) < PEERS // 2
    off = weights * (1 - np.eye(PEERS))
    return off[side[:, None] == side].sum() / off.sum()


def test_saved_and_used_again(tmp_path, task, learned):
    path = br.graphs.to_edge_list(learned.graph, tmp_path / "learned.txt")
    again = br.run(
        br.Personalized(smoothness=0.3), f"file:{path}", task, steps=5, seed=3, evaluate_every=0
    )
    same = br.run(
        br.Personalized(smoothness=0.3), learned.graph, task, steps=5, seed=3, evaluate_every=0
    )
    assert again.graph.fingerprint() == learned.graph.fingerprint()
    assert np.array_equal(again.estimates, same.estimates)
    assert inside(again.graph.weights.toarray()) > 0.9
    again.save(tmp_path / "next.run")
    assert br.load(tmp_path / "next.run").graph.fingerprint() == learned.graph.fingerprint()


def test_drawn(task, learned):
    """Every link of the learned graph is in the picture of a run over it, and every peer is a
    dot."""
    noise = br.Gaussian(clip=1.0, sigma=1.0)
    page = render(
        br.run(br.Personalized(smoothness=0.3), learned.graph, task, privacy=noise, steps=3)
    )
    (links,) = re.findall(r'<path d="([^"]*)" class="links"', page)
    assert links.count("M") == learned.graph.edge_count
    assert len(re.findall(r"<circle [^>]*data-peer", page)) == PEERS


def test_named_in_an_experiment_file(tmp_path, monkeypatch):
    """`graph = "file:..."` with the weights of the third column; names are relative to where the
    command runs."""
    monkeypatch.chdir(tmp_path)
    weights = np.array([[0, 2, 1], [2, 0, 1], [1, 1, 0.0]])
    br.graphs.to_edge_list(br.graphs.similarity(weights), "learned.txt")
    file = ExperimentFile(
        graph="file:learned.txt", steps=4, task={"kind": "mean"}, algorithm={"name": "averaging"}
    )
    done = build(file).run()
    assert done.graph.weights.toarray()[0] == pytest.approx((0, 2 / 3, 1 / 3))


def test_the_documented_names_are_there():
    found = learn_graph(
        br.graphs.Collaboration(floor=0.1),
        np.array([[0.0], [0.1], [5.0], [5.1]]),
        np.zeros(4),
        wakes=40,
        dice=Replay(0),
        sampled=3,
    )
    assert found.graph().name == "learned:4"
    assert found.degrees == pytest.approx(degrees_of(found.pairs, found.weights, 4))
    for part, names in (
        (br.tasks, ("Personal", "Boosted", "Stumps")),
        (br.personal, ("alternate", "learn_graph")),
        (br.graphs, ("similarity", "angular_weights", "Collaboration", "to_edge_list")),
    ):
        assert set(names) <= set(part.__all__)
