"""Softmax regression: which of c classes, labels 0..c-1.

    loss(s, y) = log(sum_k exp(s_k)) - s_y        slope = softmax(s) - e_y, of norm below sqrt(2)

With ||x|| <= 1: lipschitz sqrt(2), smoothness 1/2 + l2 (the covariance of a class draw has norm at most 1/2). Its slope
is a vector, and clipping a vector leaves the gradients of convex losses (walk:F-2, finding 7), so a derivative clip is
refused; the slope is bounded without one.
"""

from dataclasses import dataclass
from math import sqrt
from typing import ClassVar

import numpy as np

from bruit.arrays import Array
from bruit.errors import ConfigError
from bruit.tasks.data.agreed_columns import AgreedColumns
from bruit.tasks.data.columns import Columns
from bruit.tasks.data.own_rows import Agreement, places
from bruit.tasks.data.table import Table
from bruit.tasks.kinds.linear_kind import LinearKind
from bruit.tasks.linear import LinearTask
from bruit.tasks.loss import Loss
from bruit.tasks.newton import minimize
from bruit.tasks.records import Part
from bruit.tasks.task import MODELS

MOST_CLASSES = 1000


@dataclass(frozen=True)
class SoftmaxLoss(Loss):
    """log-sum-exp of the scores minus the score of the true class."""

    @property
    def lipschitz(self) -> float:
        return sqrt(2.0)

    @property
    def smoothness(self) -> float:
        return 0.5

    def value(self, scores: Array, targets: Array) -> Array:
        top = scores.max(axis=2)
        spread = np.log(np.exp(scores - top[:, :, None]).sum(axis=2)) + top
        own: Array = np.take_along_axis(scores, targets.astype(np.int64)[:, :, None], axis=2)[
            :, :, 0
        ]
        losses: Array = spread - own
        return losses

    def slope(self, scores: Array, targets: Array) -> Array:
        shares = _softmax(scores)
        flat = shares.reshape(-1, shares.shape[2])
        flat[np.arange(len(flat)), targets.ravel().astype(np.int64)] -= 1.0
        return shares

    def curvature(self, scores: Array, targets: Array) -> Array:
        return _softmax(scores.copy())

    def bend(self, curvature: Array, direction: Array) -> Array:
        mean: Array = np.einsum("kmc,kmc->km", curvature, direction)
        bent: Array = curvature * (direction - mean[:, :, None])
        return bent


@dataclass(frozen=True, eq=False)
class Softmax(LinearTask):
    """c classes, one score each: the model says the class of the largest score."""

    answers: ClassVar[frozenset[str] | None] = MODELS

    @property
    def metric(self) -> str:
        return "accuracy"

    @property
    def outputs(self) -> int:
        return len(self.records.classes)

    @property
    def loss(self) -> Loss:
        return SoftmaxLoss()

    @classmethod
    def _encode(cls, table: Table) -> tuple[Array, tuple[str, ...], str]:
        values = table.label_values()
        codes = np.searchsorted(values, table.labels)
        if len(values) > MOST_CLASSES or not bool((values == values.round()).all()):
            raise ConfigError(
                f"{table.name} has {len(values)} different labels, which look like numbers, not"
                " classes; use Ridge"
            )
        names = tuple(table.label_text(value) for value in values)
        return codes.astype(np.float64), names, "labels: classes numbered in sorted order"

    def _check(self) -> None:
        if self.derivative_clip is not None:
            raise ConfigError(
                "softmax has no scalar derivative to clip, and clipping its vector would break "
                "non-expansiveness; leave derivative_clip out (its slope is below sqrt(2) anyway)"
            )
        if not self.records.classes:
            raise ConfigError(
                "these records have more than 100 different targets and do not say which classes"
                " there are; declare them: Records.of(.., classes=)"
            )
        if self.outputs < 2:
            raise ConfigError(
                f"softmax needs at least 2 classes, these records have {self.outputs}"
            )
        for block in self.records.blocks:
            odd = np.argwhere(
                (block.targets != block.targets.round())
                | (block.targets < 0)
                | (block.targets >= self.outputs)
            )
            if len(odd):
                place, record = odd[0]
                raise ConfigError(
                    f"record {record} of peer {block.peers[place]} has label "
                    f"{block.targets[place, record]:g}; softmax needs classes "
                    f"0..{self.outputs - 1}; classes that no record here has are declared: "
                    "Records.of(.., classes=)"
                )

    def _measure(self, scores: Array, targets: Array) -> Array:
        hits: Array = (scores.argmax(axis=2) == targets).mean(axis=1)
        return hits

    def _higher_is_better(self) -> bool:
        return True

    def _minimize(self, part: Part, center: Array, strength: Array, tolerance: float) -> Array:
        return minimize(self.loss, part, center, strength, tolerance)


def _softmax(scores: Array) -> Array:
    """exp(s) / sum exp(s) over the last axis, in place."""
    scores -= scores.max(axis=2, keepdims=True)
    np.exp(scores, out=scores)
    scores /= scores.sum(axis=2, keepdims=True)
    return scores


class SoftmaxKind(LinearKind):
    """c classes, one score each: the model says the class of the largest score."""

    name = "softmax"
    task = Softmax

    def targets(self, table: Columns, label: str, agreement: Agreement) -> Array:
        """The place of the class."""
        return places(table, label, agreement).astype(np.float64)

    def agreed_targets(self, agreed: AgreedColumns, labels: Array) -> Array:
        return labels
