"""Runs on disk: what comes back is what was saved, whatever the algorithm and the graph."""

import json
import shutil

import numpy as np
import pytest

import bruit as br
from bruit.graphs import butterfly, from_matrix, grid, ring
from bruit.runs.engines.replay import flat, lines
from bruit.testing import small_task

NOISE = br.Gaussian(clip=2.0, sigma=1.0)
CASES = [
    (br.Averaging(), ring(6)),
    (br.Chebyshev(), grid(2, 3)),
    (br.PairAveraging(br.Pairs("edges")), ring(6)),
    (br.Renoised(tau=0.2), ring(6)),
    (br.GossipSGD(mixing=3), butterfly(8, relabel=2)),
    (br.WalkSGD(cap=2, schedule=br.Walk(first=3)), ring(6)),
]


@pytest.mark.parametrize(("algorithm", "graph"), CASES, ids=[repr(case[0]) for case in CASES])
def test_saved_and_loaded_is_the_same(tmp_path, algorithm, graph):
    first = br.run(
        algorithm, graph, small_task(graph.n), privacy=NOISE, steps=6, seed=4, watch=[0, 2]
    )
    second = br.load(first.save(tmp_path / "x.run"))
    assert second.algorithm == algorithm
    assert second.graph.name == graph.name
    assert second.privacy == NOISE
    assert (second.steps, second.seed, second.phase, second.task) == (6, 4, 0, first.task)
    assert second.constants == first.constants
    assert np.array_equal(second.estimates, first.estimates)
    assert lines(second.ledger) == lines(first.ledger)
    assert second.metrics.rows == first.metrics.rows
    assert np.allclose(second.losses(), first.losses(), equal_nan=True)
    for one, two in zip(first.view({0, 2}).messages, second.view({0, 2}).messages, strict=True):
        assert np.array_equal(one.row, two.row)
    br.replay(second, small_task(graph.n))


def test_a_graph_of_ones_own_comes_back_from_its_weights(tmp_path):
    weights = np.array([[0.5, 0.5, 0], [0.5, 0.25, 0.25], [0, 0.25, 0.75]])
    graph = from_matrix(weights, name="mine")
    first = br.run(br.Averaging(), graph, small_task(3), privacy=NOISE, steps=2)
    second = br.load(first.save(tmp_path / "x.run"))
    assert np.array_equal(second.graph.weights.toarray(), weights)
    assert second.epsilon(of=2, seen_by=0) == pytest.approx(float(first.epsilon(of=2, seen_by=0)))


def test_the_manifest_is_strict_json(tmp_path):
    folder = br.run(br.Averaging(), ring(4), small_task(4), steps=2).save(tmp_path / "x.run")
    for name in ("manifest.json", "metrics.json"):
        json.loads(
            (folder / name).read_text(),
            parse_constant=lambda token: pytest.fail(f"{token} is no JSON"),
        )
    assert json.loads((folder / "manifest.json").read_text())["constants"]["lipschitz"] == "inf"


def test_no_overwriting_unasked_and_never_of_anything_else(tmp_path):
    result = br.run(br.Averaging(), ring(4), small_task(4), steps=2)
    result.save(tmp_path / "x.run")
    with pytest.raises(br.ConfigError, match="exists"):
        result.save(tmp_path / "x.run")
    result.save(tmp_path / "x.run", overwrite=True)
    (tmp_path / "folder").mkdir()
    with pytest.raises(br.ConfigError, match="not a run folder"):
        result.save(tmp_path / "folder", overwrite=True)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["folder", "x.run"]


def test_parents_are_made(tmp_path):
    result = br.run(br.Averaging(), ring(4), small_task(4), steps=2)
    assert br.load(result.save(tmp_path / "a" / "b" / "x.run")).n == 4


def test_a_run_can_be_moved(tmp_path):
    result = br.run(br.Averaging(), ring(4), small_task(4), privacy=NOISE, steps=2)
    shutil.move(result.save(tmp_path / "x.run"), tmp_path / "y.run")
    assert br.load(tmp_path / "y.run").epsilon() == result.epsilon()


def test_replay_needs_the_data(tmp_path):
    folder = br.run(br.Averaging(), ring(4), small_task(4), steps=2).save(tmp_path / "x.run")
    with pytest.raises(br.ConfigError, match="where its data came from"):
        br.replay(br.load(folder))


def test_a_replay_on_other_data_disagrees(tmp_path):
    folder = br.run(br.Averaging(), ring(4), small_task(4), steps=2).save(tmp_path / "x.run")
    with pytest.raises(br.ConformanceError, match="estimates differ"):
        br.replay(br.load(folder), br.tasks.Mean(np.ones((4, 3))))


def test_a_later_phase_cannot_be_replayed_alone():
    first = br.run(br.Averaging(), ring(4), small_task(4), steps=2)
    second = br.run(br.Averaging(), ring(4), small_task(4), steps=2, after=first)
    with pytest.raises(br.ConfigError, match="goes on from an earlier one"):
        br.replay(second, small_task(4))


@pytest.mark.parametrize("algorithm", [br.Averaging(), br.PairAveraging(), br.WalkSGD()], ids=repr)
def test_a_phase_leaves_the_earlier_one_as_it_was(algorithm):
    first = br.run(algorithm, ring(4), small_task(4), steps=3)
    before = flat(first.state).copy()
    br.run(algorithm, ring(4), small_task(4), steps=3, seed=2, after=first)
    assert np.array_equal(flat(first.state), before)


def test_metrics():
    result = br.run(br.Averaging(), ring(4), small_task(4), steps=40)
    assert len(result.metrics.column("mse")) == 20
    assert (
        result.metrics.last("mse")
        == result.metrics.column("mse")[-1]
        < result.metrics.column("mse")[0]
    )
    with pytest.raises(br.ConfigError, match=r"no metric 'rmse'.*mse, worst"):
        result.metrics.last("rmse")


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"steps": -1}, "negative"),
        ({"watch": [-1]}, "cannot watch peer -1"),
        ({"watch": [4]}, "cannot watch peer 4"),
        ({"graph": ring(5)}, "5 peers but the task has 4"),
        ({"graph": "rnig:4"}, "did you mean 'ring'"),
    ],
)
def test_impossible_runs(change, word):
    asked = {"graph": ring(4), "steps": 2} | change
    with pytest.raises(br.ConfigError, match=word):
        br.run(br.Averaging(), asked.pop("graph"), small_task(4), **asked)


def test_a_phase_on_the_event_engine_goes_on_from_the_states():
    task, graph = small_task(6), ring(6)
    first = br.run(br.Averaging(), graph, task, steps=3)
    bulk = br.run(br.Averaging(), graph, task, steps=4, after=first)
    events = br.run(br.Averaging(), graph, task, steps=4, after=first, engine=br.Events())
    whole = br.run(br.Averaging(), graph, task, steps=7)
    assert np.allclose(bulk.estimates, whole.estimates)
    assert np.allclose(events.estimates, whole.estimates)
