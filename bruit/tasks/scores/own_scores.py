"""Scores on peers' own test records: how good every model is for every peer.

    own         mean over u of the metric of u's model on u's test records
    everybody   mean over u and v of the metric of u's model on v's test records

Such scores are read off private records: they are for whoever simulates everybody, and no peer
sends them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from bruit.arrays import Array, Ints
from bruit.errors import ConfigError
from bruit.tasks.records import Records

if TYPE_CHECKING:
    from bruit.tasks.linear import LinearTask


def own_scores(task: LinearTask, records: Records, models: Array) -> Array:
    """The metric of each peer's model on its own records  # (n,)."""
    return np.array(
        [score_for(task, records, peer, models[peer : peer + 1])[0] for peer in range(len(models))]
    )


def score_for(task: LinearTask, records: Records, peer: int, models: Array) -> Array:
    """The metric of some models on the records of one peer  # (k,)."""
    part = next(records.parts(np.array([peer]), task.dim))
    real = part.weights[0] > 0
    matrices = models.reshape(-1, records.columns)
    scores = (part.features[0, real] @ matrices.T).reshape(-1, len(models), task.outputs)
    return task._measure(scores.swapaxes(0, 1), part.targets[:, real])


def judged(task: LinearTask, test: Records, models: Array) -> dict[str, float]:
    """The mean over peers of their models on their own test records, the worst peer, the mean loss,
    and the mean on everybody's; one model for all counts as everybody's."""
    if models.shape not in ((1, task.dim), (test.peers, task.dim)):
        raise ConfigError(
            f"models are {models.shape}; give one row a peer, {(test.peers, task.dim)}, or one for "
            f"all"
        )
    first, back = _distinct(models)
    everywhere = np.stack(
        [score_for(task, test, peer, models[first])[back] for peer in range(test.peers)]
    )  # (peers, models)
    everyone = np.arange(test.peers)
    own = everywhere[everyone, everyone if len(models) > 1 else 0]
    each = np.broadcast_to(models, (test.peers, task.dim))
    worst = own.min() if task._higher_is_better() else own.max()
    return {
        task.metric: float(own.mean()),
        "worst": float(worst),
        "loss": float(_losses(task, test, each).mean()),
        "everybody": float(everywhere.mean()),
    }


def one_answer(task: LinearTask, test: Records) -> float:
    """The best that one answer for all can do, the same mean over peers: the class that is known
    beforehand to be the most frequent, or the agreed center of a number."""
    answers = [np.zeros(1)]
    if task.classifies:
        answers = list(np.eye(task.outputs)) if task.outputs > 1 else [-np.ones(1), np.ones(1)]
    found = [_constant_score(task, test, answer) for answer in answers]
    return max(found) if task._higher_is_better() else min(found)


def _constant_score(task: LinearTask, test: Records, answer: Array) -> float:
    scores = []
    for peer in range(test.peers):
        part = next(test.parts(np.array([peer]), task.dim))
        targets = part.targets[:, part.weights[0] > 0]
        answers = np.broadcast_to(answer, (1, targets.shape[1], len(answer)))
        scores.append(float(task._measure(answers, targets)[0]))
    return float(np.mean(scores))


def _losses(task: LinearTask, records: Records, models: Array) -> Array:
    answer = np.empty(records.peers)
    for part in records.parts(np.arange(records.peers), task.dim):
        some = models[part.rows].reshape(-1, task.outputs, records.columns)
        values = task.loss.value(np.matmul(part.features, some.swapaxes(1, 2)), part.targets)
        answer[part.rows] = (values * part.weights).sum(axis=1)
    return answer


def _distinct(models: Array) -> tuple[Ints, Ints]:
    """Peers that hold the same model are scored once."""
    _, first, back = np.unique(models, axis=0, return_index=True, return_inverse=True)
    return first, back.reshape(-1)
