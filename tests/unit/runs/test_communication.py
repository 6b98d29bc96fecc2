"""Communicability and Katz centrality beside the losses of walks (walk:RW-11)."""

import json

import numpy as np
import pytest
from scipy.linalg import expm
from scipy.stats import spearmanr

import bruit as br
from bruit.graphs import complete, path, ring
from bruit.runs.communication import communication
from bruit.show.report.page import render
from bruit.show.summary import as_json, beside
from bruit.tasks import Mean

NOISE = br.Gaussian(clip=1.0, sigma=2.0)


def walk(graph, privacy=NOISE, algorithm=None, steps=300):
    task = Mean.uniform(graph.n, 2, 1)
    return br.run(
        algorithm or br.WalkSum(), graph, task, privacy=privacy, steps=steps, evaluate_every=0
    )


def test_the_numbers_are_those_of_the_definitions():
    run = walk(path(7))
    found, losses = communication(run), run.losses()
    pair = ~np.eye(7, dtype=bool)
    much = expm(path(7).weights.toarray())[pair].round(10)  # equal pairs stay equal
    assert found.with_pairs == pytest.approx(spearmanr(much, losses[pair]).statistic)
    assert found.pairs[:, 0].sum() == 42
    assert found.pairs[:, 0] @ found.pairs[:, 2] == pytest.approx(losses[pair].sum())
    adjacency = np.diag(np.ones(6), 1) + np.diag(np.ones(6), -1)
    assert np.allclose((np.eye(7) - 0.1 * adjacency) @ found.katz, 1)
    assert found.with_pairs > 0.5  # those who communicate learn


def test_what_a_run_says():
    run = walk(path(7))
    told = "\n".join(beside(run))
    assert "communicability beside the loss (walk:RW-11): rank correlation" in told
    assert "Katz centrality beside what a peer could learn" in told
    plain = json.loads(json.dumps(as_json(run, run.summary())["communication"]))
    assert len(plain["katz"]) == 7
    assert "Loss and communication" in render(run)
    assert "Katz" not in "\n".join(beside(walk(ring(6))))  # all are equally central


@pytest.mark.parametrize(
    "run",
    [
        walk(complete(6)),
        walk(ring(6), algorithm=br.RingSum(), steps=12),
        walk(ring(6), privacy=None),
        walk(ring(6), algorithm=br.Averaging(), steps=4),
        walk(path(6), algorithm=br.WalkADMM(), steps=0),
    ],
    ids=["complete", "ring order", "no noise", "rounds", "no losses"],
)
def test_where_there_is_nothing_to_compare(run):
    assert communication(run) is None
    assert as_json(run, run.summary())["communication"] is None
    assert "Loss and communication" not in render(run)
