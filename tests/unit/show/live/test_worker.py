"""What is told of a run while it goes on: what the accountant says of the same protocol ended
there, or later."""

import json
import math
from pathlib import Path

import numpy as np
import pytest

import bruit as br
from bruit.runs.build import build
from bruit.runs.file import parse
from bruit.show.live import worker
from bruit.show.live.runs import _surroundings
from bruit.show.live.timetable import Timetable

TEXT = """graph = "er:12,c=2"
steps = {steps}
seed = 4
references = false
[task]
kind = "mean"
[algorithm]
name = "{algorithm}"
{more}
[privacy]
sigma = 2.0
"""


def built(algorithm, steps, more=""):
    text = TEXT.format(algorithm=algorithm, steps=steps, more=more)
    return build(parse(text), text)


@pytest.fixture
def told(capsys):
    def read():
        return [json.loads(line) for line in capsys.readouterr().out.splitlines()]

    return read


@pytest.mark.parametrize(
    ("algorithm", "steps", "more"),
    [
        ("averaging", 5, ""),
        ("pair-averaging", 3, ""),
        ("gossip-sgd", 6, "mixing = 2"),
        ("walk-sgd", 12, ""),
    ],
)
def test_leaks_rise_to_what_the_run_says_and_never_lag(algorithm, steps, more, told):
    experiment = built(algorithm, steps, more)
    leaks = worker.leaks_ahead(experiment, 1e-6)
    run = experiment.run(worker.Followed(dict(leaks), Timetable(experiment, 0)))
    final = run.accountant().learned(0, 1e-6)
    told_by_step = np.array([leaks[step][1:] for step in sorted(leaks)])
    assert (np.diff(told_by_step, axis=0) >= 0).all()
    assert leaks[steps][1:] == pytest.approx(final[1:])
    for step in leaks:
        ended = br.run(
            experiment.algorithm,
            experiment.graph,
            experiment.task,
            privacy=experiment.privacy,
            steps=step,
            seed=4,
            evaluate_every=0,
        )
        there = ended.accountant().learned(0, 1e-6)[1:]
        if "averaging" in algorithm:  # its losses are exact (gossip:MUF-2) and only grow
            assert leaks[step][1:] == pytest.approx(there)
        else:  # half a round of consensus may be charged more than the whole
            assert (np.array(leaks[step][1:]) <= there * (1 + 1e-9)).all()
    events = [one for one in told() if one["event"] == "leaks"]
    assert events[-1]["epsilons"][1] == pytest.approx(final[1])
    assert events[-1]["epsilons"][0] is None


def test_long_runs_are_not_rehearsed_at_length(monkeypatch):
    monkeypatch.setattr(worker, "PATIENCE", 0.0)
    assert sorted(worker.leaks_ahead(built("averaging", 10**9), 1e-6)) == [1]


def test_nothing_is_told_ahead_without_noise_or_with_latency():
    text = TEXT.format(algorithm="averaging", steps=3, more="")
    for changed in (
        text.replace("[privacy]\nsigma = 2.0", ""),
        text + '[engine]\nname = "events"\n',
    ):
        assert worker.leaks_ahead(build(parse(changed), changed), 1e-6) == {}


def test_what_json_does_not_know_is_null(told):
    worker.tell("step", scores={"a": math.inf, "b": math.nan, "c": 1.0}, said=[[0, 1]])
    assert told() == [
        {"event": "step", "scores": {"a": None, "b": None, "c": 1.0}, "said": [[0, 1]]}
    ]


def test_a_changing_graph_is_drawn_with_all_its_links(told):
    text = TEXT.format(algorithm="averaging", steps=3, more="").replace("er:12,c=2", "butterfly:8")
    worker.begin(build(parse(text), text), 1e-6)
    (begun,) = told()
    cube = [[a, a | bit] for bit in (1, 2, 4) for a in range(8) if not a & bit]
    assert sorted(begun["edges"]) == sorted(cube)
    assert len(begun["places"]) == 8


def test_a_worker_finds_bruit_and_nothing_inside_of_it(monkeypatch):
    """The package itself on the path would put bruit.sklearn in place of scikit-learn."""
    monkeypatch.delenv("PYTHONPATH", raising=False)
    here = Path(_surroundings()["PYTHONPATH"])
    assert (here / "bruit" / "__init__.py").is_file()
    assert not (here / "sklearn").exists()
