"""Records from gradients in closed form: any model whose first layer is linear with a bias
(gossip:ATK-1, REC-8).

    scores s = W x + b, any loss:   dL/dW_k = (dL/db_k) x,   so   x = (dL/dW_k) / (dL/db_k),   k = argmax |dL/db_k|

The label of softmax with cross-entropy is the one class whose bias gradient p - e_y is negative;
of a network it is that of the last layer's bias.
Limits: nothing comes out when all bias gradients are zero; for a peer with several records the
quotient is the mixture sum_i c_ki x_i / sum_i c_ki with c_ki the slope of record i. `purity` tells
the two apart without knowing the truth: the gradient of one record has rank one. Records divided by
their norm are recovered as they were before, since the quotient does not change.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bruit.adversary.attacks.first_layer import Attackable, attackable, class_slopes, first_layer
from bruit.adversary.attacks.gradients import Gradients
from bruit.arrays import Array, Bools, Ints
from bruit.errors import ConfigError
from bruit.tasks.linear import LinearTask
from bruit.tasks.logistic import Logistic
from bruit.tasks.ridge import Ridge
from bruit.tasks.softmax import Softmax
from bruit.tasks.task import Task

SUCCESS = 10.0
"""dB from which the source counts a picture as reconstructed (gossip:REC-8)."""

SYNTHETIC_SUCCESS = 20.0
"""dB for uniform synthetic pictures, where the constant one half already reaches 10.79 dB
(gossip:REC-8)."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Inverted:
    """What came out of the gradients of k peers; rows that are not `invertible` are nan.

    labels: the class (softmax), -1 or 1 (logistic) or the number (ridge); nan where unknown.
    purity: share of the gradient's energy in its first singular direction, 1 for a single record.
    """

    peers: Ints  # (k,)
    inputs: Array  # (k, p)
    labels: Array  # (k,)
    purity: Array  # (k,)
    invertible: Bools  # (k,)
    estimable: Bools  # (k,) whether what was heard determines this peer's gradient at all


@dataclass(frozen=True, eq=False)
class InversionScores:
    """How close the recovered inputs are to the peer's closest record; for observers who know the
    truth."""

    psnr: Array  # (k,) dB
    relative_error: Array  # (k,)
    record: Ints  # (k,) which of the peer's records is the closest
    label_right: Bools  # (k,)
    records: Ints  # (k,) how many the peer holds


def invert_layer(weights: Array, bias: Array) -> tuple[Array, Bools]:
    """The inputs of a linear layer with bias from the gradients of its weights (k, c, p) and biases
    (k, c).

    Also which rows could be inverted; the others are nan.
    """
    if weights.ndim != 3 or bias.shape != weights.shape[:2]:
        raise ConfigError(
            f"weight gradients are {weights.shape} and bias gradients {bias.shape};"
            " give (k, c, p) and (k, c): peer, output, input"
        )
    rows = np.arange(len(bias))
    largest = np.abs(bias).argmax(axis=1)
    divisor = bias[rows, largest]
    invertible = divisor != 0.0
    inputs = np.full((len(bias), weights.shape[2]), np.nan)
    chosen = weights[rows[invertible], largest[invertible]]
    inputs[invertible] = chosen / divisor[invertible, None]
    return inputs, invertible


def softmax_labels(bias: Array) -> Ints:
    """The class of one record from the bias gradients p - e_y (k, c) of softmax with
    cross-entropy."""
    labels: Ints = bias.argmin(axis=-1).astype(np.int64)
    return labels


def invert(task: Task, gradients: Gradients, start: Array | None = None) -> Inverted:
    """The records of other peers from their estimated gradients at the common start (that of the
    task by default).

    Of the task only public facts are used: its loss, its regularizer and the shape of its records.
    """
    task = attackable(task)
    if gradients.values.shape[1] != task.dim:
        raise ConfigError(
            f"gradients have {gradients.values.shape[1]} numbers, models of this task {task.dim}; "
            "give the task of the attacked run"
        )
    model = task.start() if start is None else np.asarray(start, dtype=np.float64)
    losses = gradients.values - task.l2 * model
    layer = first_layer(task, losses)
    inputs, invertible = invert_layer(layer[:, :, :-1], layer[:, :, -1])
    marks = (
        _labels(task, layer, inputs, first_layer(task, model[None])[0])
        if isinstance(task, LinearTask)
        else _classes(class_slopes(task, losses), len(layer))
    )
    labels = np.where(invertible, marks, np.nan)
    return Inverted(
        peers=gradients.peers,
        inputs=inputs,
        labels=labels,
        purity=_purity(layer),
        invertible=invertible,
        estimable=gradients.estimable,
    )


def _classes(slopes: Array | None, count: int) -> Array:
    if slopes is None:
        return np.full(count, np.nan)
    return softmax_labels(slopes).astype(np.float64)


def _labels(task: LinearTask, layer: Array, inputs: Array, model: Array) -> Array:
    bias = layer[:, :, -1]
    if isinstance(task, Softmax):
        return softmax_labels(bias).astype(np.float64)
    if isinstance(task, Logistic):
        return np.where(bias[:, 0] < 0, 1.0, -1.0)
    if isinstance(task, Ridge):
        # Slope s - y times the intercept's entry, which is 1 or, in rows of norm one, 1 / ||(x,
        # 1)||.
        entry = (
            1.0 / np.sqrt(1.0 + (inputs**2).sum(axis=1))
            if np.isfinite(task.records.row_bound)
            else 1.0
        )
        scores = (inputs @ model[0, :-1] + model[0, -1]) * entry
        answers: Array = scores - bias[:, 0] / entry
        return answers
    return np.full(len(layer), np.nan)


def _purity(layer: Array) -> Array:
    energy = np.linalg.svd(layer, compute_uv=False) ** 2
    total = energy.sum(axis=1)
    return np.where(total > 0, energy[:, 0] / np.where(total > 0, total, 1.0), 0.0)


def psnr(truth: Array, found: Array, peak: float = 1.0) -> Array:
    """Peak signal-to-noise ratio in dB over the last axis, 10 log10(peak^2 / MSE); -inf where
    nothing was found."""
    errors = np.asarray(((truth - found) ** 2).mean(axis=-1))
    errors = np.where(np.isnan(errors), np.inf, errors)
    with np.errstate(divide="ignore"):
        ratio: Array = 10.0 * np.log10(peak**2 / errors)
    return ratio


def relative_error(truth: Array, found: Array) -> Array:
    """||found - truth|| / ||truth|| over the last axis; infinite where nothing was found."""
    gaps = np.linalg.norm(found - truth, axis=-1)
    with np.errstate(divide="ignore", invalid="ignore"):
        errors: Array = np.where(gaps == 0.0, 0.0, gaps / np.linalg.norm(truth, axis=-1))
    return np.where(np.isnan(errors), np.inf, errors)


def true_records(task: Attackable, peer: int) -> tuple[Array, Array]:
    """The inputs (m, p) and targets (m,) of one peer, without intercept and before rows were
    scaled; observers only."""
    records = task.records
    block, place = records.blocks[int(records.block_of[peer])], int(records.place_of[peer])
    size = int(records.sizes[peer])
    rows = block.features[place, :size]
    if isinstance(task, LinearTask):
        rows = rows[:, :-1] / rows[:, -1:]
    return rows, block.targets[place, :size]


def score(task: Task, inverted: Inverted, peak: float = 1.0) -> InversionScores:
    """Compare recovered inputs with the closest record of each peer; `peak` is the largest value an
    input can have."""
    if not isinstance(task, Attackable):
        raise ConfigError(f"the records of {type(task).__name__} have no inputs to compare with")
    if not peak > 0:
        raise ConfigError(f"the peak of the inputs must be positive, found {peak}")
    ratios, errors, closest, right = [], [], [], []
    for peer, found, label in zip(
        inverted.peers.tolist(), inverted.inputs, inverted.labels, strict=True
    ):
        truth, targets = true_records(task, peer)
        ratio = psnr(truth, found, peak)
        best = int(ratio.argmax())
        ratios.append(ratio[best])
        errors.append(relative_error(truth[best], found))
        closest.append(best)
        right.append(bool(abs(label - targets[best]) < 1e-6 * max(1.0, abs(targets[best]))))
    return InversionScores(
        np.array(ratios),
        np.array(errors),
        np.array(closest, dtype=np.int64),
        np.array(right),
        task.records.sizes[inverted.peers],
    )
