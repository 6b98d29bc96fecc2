"""Whether a fit without noise came to its end, and the step that lets it: both are read off the
rows.

    step         1 / L,    L = max over peers of  beta lambda_max(sum_i x_i x_i^T / m) + l2
    left over    max over coefficients j of  g_j^2 / (2 H_j)  over the loss of the zero model,    H_j >= d^2 F / dx_j^2

L is the curvature of the peers' losses themselves, not of their longest row. g_j^2 / (2 H_j) is
what changing one coefficient alone is sure to take off the loss, so a fit that leaves much of it is
not at its minimum. Neither number may be computed for a private fit: it would be one more read of
the rows.
"""

import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from bruit.arrays import Array
from bruit.tasks.linear import LinearTask

LEFT = 0.01  # of the loss of the zero model
# columns or rows up to which the largest eigenvalue is computed; beyond, the trace bounds it
WIDEST = 2000


def measured_smoothness(task: LinearTask) -> float:
    """L of the losses of all peers, from their rows: an upper bound, exact up to WIDEST columns or
    rows."""
    largest = 0.0
    for block in task.records.blocks:
        rows = block.features * np.sqrt(block.weights)[:, :, None]  # (k, m, p)
        if min(rows.shape[1:]) > WIDEST:
            found = float(np.einsum("kmp,kmp->k", rows, rows).max())
        else:
            wide = rows.shape[1] < rows.shape[2]
            gram = rows @ rows.swapaxes(1, 2) if wide else rows.swapaxes(1, 2) @ rows
            found = float(np.linalg.eigvalsh(gram)[:, -1].max())
        largest = max(largest, found)
    return task.loss.smoothness * largest * (1 + 1e-9) + task.l2


def curvatures(task: LinearTask) -> Array:
    """H_j of every peer's loss, for each of its coefficients  # (n, dim)."""
    squares = np.empty((task.peers, task.records.columns))
    for block in task.records.blocks:
        squares[block.peers] = np.einsum("km,kmp->kp", block.weights, block.features**2)
    return np.tile(task.loss.smoothness * squares + task.l2, (1, task.outputs))


def zero_losses(task: LinearTask) -> Array:
    """Every peer's loss of the model that is zero  # (n,)."""
    losses = np.empty(task.peers)
    for block in task.records.blocks:
        none = np.zeros((*block.targets.shape, task.outputs))
        losses[block.peers] = (block.weights * task.loss.value(none, block.targets)).sum(axis=1)
    return losses


def warn_if_unfinished(
    gradients: Array, curvature: Array, losses: Array, steps: int, unit: str
) -> None:
    """Warn where one coefficient of a model would still lower its loss by more than LEFT of the
    loss at zero.

    Rows are models: of an objective, its gradient, bounds on its second derivatives, and its value
    at zero.
    """
    with np.errstate(invalid="ignore", over="ignore"):
        gained = (gradients**2 / (2 * np.maximum(curvature, np.finfo(float).tiny))).max(axis=1)
    known = losses > 0
    if not np.isfinite(gained).all():
        warnings.warn(
            f"the fit diverged: after {steps} {unit} the models are not finite; give a smaller "
            f"rate",
            ConvergenceWarning,
            stacklevel=5,
        )
        return
    left = float((gained[known] / losses[known]).max(initial=0.0))
    if left > LEFT:
        warnings.warn(
            f"the fit did not converge: after {steps} {unit} one coefficient alone would still"
            f" lower the loss by {left:.0%} of the loss of a zero model; scale the columns (with"
            " public constants), or give more steps",
            ConvergenceWarning,
            stacklevel=5,
        )


def warn_if_unfinished_together(task: LinearTask, model: Array, steps: int, unit: str) -> None:
    """The same for one model of all peers, whose loss is the mean of theirs."""
    everybody = np.broadcast_to(model.reshape(1, -1), (task.peers, task.dim))
    gradient = task.gradient(np.arange(task.peers), everybody).mean(axis=0, keepdims=True)
    curvature, loss = (
        curvatures(task).mean(axis=0, keepdims=True),
        zero_losses(task).mean(keepdims=True),
    )
    warn_if_unfinished(gradient, curvature, loss, steps, unit)
