"""Ridge regression: predict a number.

    loss(s, y) = (s - y)^2 / 2             slope = s - y, unbounded

The squared loss has no Lipschitz constant. Clipping the slope at C gives the Huber loss: quadratic up to C, straight
beyond, convex and 1-smooth, lipschitz C for ||x|| <= 1 (walk:ADMM-10, F-2).
"""

from dataclasses import dataclass
from math import inf, isfinite
from typing import ClassVar

import numpy as np

from bruit.arrays import Array
from bruit.tasks.data.agreed_columns import AgreedColumns
from bruit.tasks.data.columns import Columns
from bruit.tasks.data.own_rows import Agreement, column
from bruit.tasks.data.table import Table
from bruit.tasks.kinds.kind import MODEL
from bruit.tasks.kinds.linear_kind import LinearKind
from bruit.tasks.linear import LinearTask
from bruit.tasks.loss import Loss
from bruit.tasks.newton import minimize
from bruit.tasks.proximal import huber_prox
from bruit.tasks.records import Part
from bruit.tasks.task import MODELS


@dataclass(frozen=True)
class SquaredLoss(Loss):
    """(s - y)^2 / 2, its slope clipped at `clip` (Huber)."""

    clip: float = inf

    @property
    def lipschitz(self) -> float:
        return self.clip

    @property
    def smoothness(self) -> float:
        return 1.0

    def value(self, scores: Array, targets: Array) -> Array:
        size = scores[:, :, 0] - targets
        if not isfinite(self.clip):
            np.multiply(size, size, out=size)
            size *= 0.5
            return size
        np.abs(size, out=size)
        quadratic = np.minimum(size, self.clip)
        return quadratic * (size - quadratic / 2)

    def slope(self, scores: Array, targets: Array) -> Array:
        scores -= targets[:, :, None]
        if isfinite(self.clip):
            np.clip(scores, -self.clip, self.clip, out=scores)
        return scores

    def curvature(self, scores: Array, targets: Array) -> Array:
        return (np.abs(scores - targets[:, :, None]) <= self.clip).astype(np.float64)

    def bend(self, curvature: Array, direction: Array) -> Array:
        return curvature * direction


@dataclass(frozen=True, eq=False)
class Ridge(LinearTask):
    """A number a record, one score; the metric is the root mean squared error in units of the
    label."""

    answers: ClassVar[frozenset[str] | None] = MODELS

    classifies: ClassVar[bool] = False

    @property
    def metric(self) -> str:
        return "rmse"

    @property
    def outputs(self) -> int:
        return 1

    @property
    def loss(self) -> Loss:
        return SquaredLoss(inf if self.derivative_clip is None else self.derivative_clip)

    @classmethod
    def _encode(cls, table: Table) -> tuple[Array, tuple[str, ...], str]:
        return table.labels, (), "labels: numbers"

    def _check(self) -> None:
        """Any finite number is a fair target."""

    def _measure(self, scores: Array, targets: Array) -> Array:
        errors: Array = np.sqrt(((scores[:, :, 0] - targets) ** 2).mean(axis=1))
        return self.records.label_unit * errors

    def _higher_is_better(self) -> bool:
        return False

    def _minimize(self, part: Part, center: Array, strength: Array, tolerance: float) -> Array:
        if part.features.shape[1] == 1:
            gamma, rows = part.weights[:, 0] / strength, part.features[:, 0]
            return huber_prox(rows, part.targets[:, 0], center[:, 0], gamma, self.loss.lipschitz)[
                :, None
            ]
        if self.derivative_clip is not None:
            return minimize(self.loss, part, center, strength, tolerance)
        return _least_squares(part, center[:, 0], strength)[:, None]


def _least_squares(part: Part, center: Array, strength: Array) -> Array:
    """Exact minimum of sum_j w_j (x_j.z - y_j)^2 / 2 + (a/2) ||z - u||^2, with S = diag(sqrt(w)) X:

        z = u + (S'S + a I)^-1 S' r = u + S' (S S' + a I)^-1 r,      r = diag(sqrt(w)) (y - X u)

    the smaller of the two systems (features or records) is solved.
    """
    roots = np.sqrt(part.weights)
    scaled = part.features * roots[:, :, None]  # (k, m, p)
    rest = roots * part.targets - np.matmul(scaled, center[:, :, None])[:, :, 0]
    few_records = scaled.shape[1] < scaled.shape[2]
    flipped = scaled.swapaxes(1, 2)
    gram = np.matmul(scaled, flipped) if few_records else np.matmul(flipped, scaled)
    diagonal = np.arange(gram.shape[1])
    gram[:, diagonal, diagonal] += strength[:, None]
    if few_records:
        shift = np.matmul(flipped, np.linalg.solve(gram, rest[:, :, None]))
    else:
        shift = np.linalg.solve(gram, np.matmul(flipped, rest[:, :, None]))
    return center + np.asarray(shift, dtype=np.float64)[:, :, 0]


class RidgeKind(LinearKind):
    """A number a record, one score; the metric is the root mean squared error in units of the
    label."""

    name = "ridge"
    task = Ridge
    keys = MODEL - {"classes"}

    def targets(self, table: Columns, label: str, agreement: Agreement) -> Array:
        return column(table, label, *self.unit(agreement))

    def agreed_targets(self, agreed: AgreedColumns, labels: Array) -> Array:
        return (labels - agreed.label.center) / agreed.label.scale

    def unit(self, agreement: Agreement) -> tuple[float, float]:
        return (agreement.columns or {}).get(agreement.label or "", (0.0, 1.0))
