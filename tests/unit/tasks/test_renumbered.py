"""Tasks under other numbers pass on every question: one that is forgotten is answered by a default,
which may be another answer than that of the whole task."""

import numpy as np
import pytest

from bruit.runs.engines.held_part import HeldPart
from bruit.tasks import Logistic
from bruit.tasks.renumbered import Renumbered
from bruit.tasks.task import Task

OWN = {
    "peers",
    "record_counts",
    "sizes",
    "sensitivities",
    "evaluate",
    "judge",
    "references",
    "comparison",
    "divided",
    "digest",
}  # about all peers at once


def test_every_question_about_some_peers_is_passed_on():
    asked = {name for name, member in vars(Task).items() if not name.startswith("_")}
    asked -= {"answers"}  # of a class, not of its records
    assert asked - set(vars(Renumbered)) == OWN


@pytest.mark.parametrize("ids", [[2, 5], [5], [0, 1, 2, 3, 4, 5]])
def test_a_block_derives_the_bounds_of_the_whole_task(ids):
    task = Logistic.load("breast_cancer", peers=6, seed=0)
    held = HeldPart(task, np.arange(6), 6)
    assert held.sensitivities("gradient", 2) == task.sensitivities("gradient", 2)
    assert np.array_equal(held.record_counts(), task.record_counts())
    x = np.random.default_rng(0).normal(size=(len(ids), task.dim))
    asked = np.array(ids)
    assert np.array_equal(held.gradient(asked, x), task.gradient(asked, x))
    assert np.array_equal(held.cut_losses(asked, x, 1.0), task.cut_losses(asked, x, 1.0))
