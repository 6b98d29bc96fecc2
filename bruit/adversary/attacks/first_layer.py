"""The first layer of a model as an attacker sees it: its gradient beside that of its bias.

A linear task is one layer, and its last column is the bias. A network qualifies if its first
weights are those of a linear layer with a bias that takes the record itself; whether it does is
tried on a made-up record, so nothing of anybody's records is used (gossip:ATK-1).
"""

from __future__ import annotations

import math

import numpy as np

from bruit.arrays import Array
from bruit.errors import ConfigError
from bruit.tasks.linear import LinearTask
from bruit.tasks.networks.network_task import Torch
from bruit.tasks.task import Task

NEAR = 1e-6  # how well a made-up record must come back

Attackable = LinearTask | Torch


def attackable(task: Task) -> Attackable:
    """The task, if records follow from gradients of its first layer in closed form."""
    if isinstance(task, Torch):
        _try_made_up_record(task)
        return task
    if not isinstance(task, LinearTask):
        raise ConfigError(
            f"{type(task).__name__} has no closed-form gradient inversion; it is known for softmax, "
            "logistic and ridge tasks, and for networks whose first layer is linear"
        )
    if not task.records.manifest.get("intercept"):
        raise ConfigError(
            "these records have no intercept, and the gradient of a linear layer without bias hides "
            "the scale of its input; use records with an intercept"
        )
    return task


def first_layer(task: Attackable, gradients: Array) -> Array:
    """Of each row the gradient of the first layer, the bias last  # (k, outputs, inputs + 1)."""
    if isinstance(task, LinearTask):
        return gradients.reshape(-1, task.outputs, task.records.columns)
    weight, bias = task.network.places[:2]
    rows = gradients[:, weight.begin : weight.end].reshape(len(gradients), *weight.shape)
    return np.concatenate([rows, gradients[:, bias.begin : bias.end, None]], axis=2)


def class_slopes(task: Torch, gradients: Array) -> Array | None:
    """The gradient of the last bias, p - e_y for one record of a class; None where there is none
    # (k, classes)."""
    last = task.network.places[-1]
    if not task.classifies or last.shape != (task.outputs,):
        return None
    return gradients[:, last.begin : last.end]


def _try_made_up_record(task: Torch) -> None:
    """Refuse networks out of whose first gradients a record does not come back."""
    from bruit.tasks.networks.with_torch.network import public_rows

    network = task.network
    width = math.prod(network.shape)
    shapes = [place.shape for place in network.places[:2]]
    linear = len(shapes) == 2 and len(shapes[0]) == 2 and shapes[0][1] == width
    if linear and shapes[1] == shapes[0][:1]:
        record = public_rows(1, (1, width)).numpy()
        batch = network.batch(record, np.zeros((1, 1)))
        found = network.gradients(task.start()[None], batch, np.ones((1, 1)))
        layer = first_layer(task, found)[0]
        row = layer[np.abs(layer[:, -1]).argmax()]
        if row[-1] and np.allclose(row[:-1] / row[-1], record[0, 0], rtol=NEAR, atol=NEAR):
            return
    raise ConfigError(
        "records of a network follow from its gradients in closed form only where its first layer "
        "is linear, has a bias and takes the record itself; this one's does not (others are "
        "searched by gradient matching: papers/baselines/matching.py in the repository)"
    )
