"""Every algorithm with every kind of task and every way to hide values: it runs to its end, or
releases nothing."""

import numpy as np
import pytest

import bruit as br
from bruit.algorithms.algorithm import algorithm_from, catalog
from bruit.algorithms.answerable import answers, asked_by
from bruit.errors import BruitError, ConfigError
from bruit.mechanisms import DiscreteGaussian, Laplace, RandomizedResponse
from bruit.privacy.ledger import Ledger
from bruit.tasks.kinds.section import TaskSection
from bruit.tasks.kinds.task_files import build_task

PEERS = 6
SMALL = {
    "mean": {"dim": 2},
    "histogram": {"dim": 3},
    "ridge": {"data": "diabetes", "components": 2, "l2": 0.1},
    "logistic": {"data": "breast_cancer", "components": 2, "l2": 0.1},
    "softmax": {"data": "iris", "components": 2, "l2": 0.1},
    "statistic": {"data": "diabetes", "columns": ["bmi"], "kernel": "gini", "split": "sized:1:1"},
    "pairwise": {"data": "breast_cancer", "components": 2, "split": "sized:1:1"},
    "personal": {"data": "breast_cancer", "components": 2, "l2": 0.1},
    "boosted": {"data": "breast_cancer", "components": 2, "predictors": 8},
    "torch": {"data": "iris", "module": "mlp:3", "components": 2},
}
NOISES = {
    "none": None,
    "gaussian": br.Gaussian(sigma=1.0),
    "laplace": Laplace(scale=1.0),
    "discrete": DiscreteGaussian(sigma=1.0),
    "answers": RandomizedResponse(values=3, gamma=0.5),
}
GRAPHS = {
    "federated-admm": f"star:{PEERS}",
    "fed-avg": f"star:{PEERS}",
    "ring-sum": f"ring:{PEERS}",
}


@pytest.fixture(scope="module")
def tasks():
    return {
        kind: build_task(TaskSection(kind=kind, **keys), PEERS, 0) for kind, keys in SMALL.items()
    }


@pytest.fixture
def lines(monkeypatch):
    """What was written into any ledger."""
    found, record = [], Ledger.record

    def noted(self, *line):
        found.append(line)
        record(self, *line)

    monkeypatch.setattr(Ledger, "record", noted)
    return found


@pytest.mark.parametrize("name", catalog())
def test_an_algorithm_runs_to_its_end_or_is_refused_before_anything_is_released(name, tasks, lines):
    """By discovery: a new algorithm, or a new kind of task, is enrolled by being there."""
    assert set(SMALL) == set(answers())
    for kind, task in tasks.items():
        for noise, mechanism in NOISES.items():
            lines.clear()
            try:
                br.run(
                    algorithm_from({"name": name}),
                    GRAPHS.get(name, f"complete:{PEERS}"),
                    task,
                    privacy=mechanism,
                    steps=3,
                    evaluate_every=0,
                )
            except BruitError:
                assert lines == [], (
                    f"{name} on a {kind} task with {noise} died after it had released something"
                )


@pytest.mark.parametrize("name", ["gosta", "u1-gossip", "u2-gossip", "dual-averaging"])
def test_models_are_not_asked_about_pairs_of_points(name, tasks, lines):
    """It showed a value first, and then found nobody to ask about pairs."""
    with pytest.raises(
        ConfigError, match=f"{name} asks peers for a .* of two points, which a ridge task does not"
    ):
        br.run(
            algorithm_from({"name": name}),
            "complete:6",
            tasks["ridge"],
            privacy=br.Gaussian(sigma=1.0),
            steps=3,
        )
    assert lines == []


def test_a_row_that_names_no_value_is_found_before_the_token_leaves(lines):
    values = np.eye(3)[[0, 1, 2, 0, 1, 2]]
    values[5] = (0.5, 0.5, 0.0)
    with pytest.raises(ConfigError, match="the row of peer 5 does not name one value"):
        br.run(
            algorithm_from({"name": "token-histogram"}),
            "complete:6",
            br.tasks.Mean(values),
            privacy=RandomizedResponse(values=3, gamma=0.5),
            steps=20,
        )
    assert lines == []


def test_a_task_of_ones_own_is_not_judged_by_its_name(tasks, lines):
    class Ridge(br.tasks.Ridge):
        """Ridge regression whose models are compared in pairs."""

        def pair_value(self, x, y, uniform):
            return (x + y) / 2

    mine = Ridge(tasks["ridge"].records, 0.1)
    run = br.run(
        algorithm_from({"name": "gosta"}),
        "complete:6",
        mine,
        privacy=br.Gaussian(sigma=1.0),
        steps=3,
    )
    assert len(run.ledger)
    assert asked_by(run.algorithm) == "a function of two points"
    assert "answers" not in vars(Ridge)
