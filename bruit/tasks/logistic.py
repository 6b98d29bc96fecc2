"""Logistic regression: which of two classes, labels -1 and 1.

    loss(s, y) = log(1 + exp(-y s))        slope = (tanh(s/2) - y) / 2, in (-1, 1)

Clipping the slope at C < 1 continues the loss by a straight line where it is steeper than C: still convex and
1/4-smooth. With ||x|| <= 1: lipschitz min(1, C), smoothness 1/4 + l2 (walk:F-2, perso:DP-7).
"""

from dataclasses import dataclass
from math import inf, log, log1p
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
from bruit.tasks.proximal import logistic_prox
from bruit.tasks.records import Part
from bruit.tasks.task import MODELS


@dataclass(frozen=True)
class LogisticLoss(Loss):
    """log(1 + exp(-y s)), its slope clipped at `clip`."""

    clip: float = inf

    @property
    def lipschitz(self) -> float:
        return min(1.0, self.clip)

    @property
    def smoothness(self) -> float:
        return 0.25

    def value(self, scores: Array, targets: Array) -> Array:
        margins = scores[:, :, 0] * targets
        plain = np.logaddexp(0.0, -margins)
        if self.clip >= 1:
            return plain
        knee = log1p(-self.clip) - log(self.clip)  # the margin where the slope is -clip
        return np.where(margins < knee, -log1p(-self.clip) + self.clip * (knee - margins), plain)

    def slope(self, scores: Array, targets: Array) -> Array:
        scores *= 0.5
        np.tanh(scores, out=scores)
        scores -= targets[:, :, None]
        scores *= 0.5
        if self.clip < 1:
            np.clip(scores, -self.clip, self.clip, out=scores)
        return scores

    def curvature(self, scores: Array, targets: Array) -> Array:
        bent = np.tanh(0.5 * scores)
        curve = 0.25 * (1.0 - bent) * (1.0 + bent)
        if self.clip < 1:
            curve[np.abs(bent - targets[:, :, None]) > 2 * self.clip] = 0.0
        return curve

    def bend(self, curvature: Array, direction: Array) -> Array:
        return curvature * direction


@dataclass(frozen=True, eq=False)
class Logistic(LinearTask):
    """Two classes, one score: the model says class 1 where its score is positive."""

    answers: ClassVar[frozenset[str] | None] = MODELS

    @property
    def metric(self) -> str:
        return "accuracy"

    @property
    def outputs(self) -> int:
        return 1

    @property
    def loss(self) -> Loss:
        return LogisticLoss(inf if self.derivative_clip is None else self.derivative_clip)

    @classmethod
    def _encode(cls, table: Table) -> tuple[Array, tuple[str, ...], str]:
        values = table.label_values()
        if len(values) == 2:
            names = tuple(table.label_text(value) for value in values)
            return (
                np.where(table.labels == values[1], 1.0, -1.0),
                names,
                f"labels: {names[0]} = -1, {names[1]} = 1",
            )
        if table.threshold is None:
            raise ConfigError(
                f"{table.name} has {len(values)} different labels, logistic regression needs 2; "
                "use Softmax for classes or Ridge for numbers; they are "
                + ", ".join(table.label_text(value) for value in values[:5])
                + (", .." if len(values) > 5 else "")
            )
        names = (f"<={table.threshold:g}", f">{table.threshold:g}")
        return (
            np.where(table.labels > table.threshold, 1.0, -1.0),
            names,
            f"labels: {names[0]} = -1, {names[1]} = 1",
        )

    def _class_names(self) -> tuple[str, ...]:
        return self.records.classes if len(self.records.classes) == 2 else ("-1", "1")

    def _check(self) -> None:
        self.records.check_two_labels("logistic regression")

    def _measure(self, scores: Array, targets: Array) -> Array:
        hits: Array = ((scores[:, :, 0] > 0) == (targets > 0)).mean(axis=1)
        return hits

    def _higher_is_better(self) -> bool:
        return True

    def _minimize(self, part: Part, center: Array, strength: Array, tolerance: float) -> Array:
        if part.features.shape[1] == 1:
            gamma, rows = part.weights[:, 0] / strength, part.features[:, 0]
            return logistic_prox(
                rows, part.targets[:, 0], center[:, 0], gamma, self.loss.lipschitz
            )[:, None]
        return minimize(self.loss, part, center, strength, tolerance)


class LogisticKind(LinearKind):
    """Two classes, one score: the model says class 1 where its score is positive."""

    name = "logistic"
    task = Logistic

    def targets(self, table: Columns, label: str, agreement: Agreement) -> Array:
        """The second class is 1, the first -1."""
        return 2 * places(table, label, agreement, two=True).astype(np.float64) - 1

    def agreed_targets(self, agreed: AgreedColumns, labels: Array) -> Array:
        return 2 * labels - 1

    def check_classes(self, agreed: AgreedColumns) -> None:
        if len(agreed.classes) != 2:
            raise ConfigError(
                f"logistic needs two classes, and {agreed.file} agrees on {len(agreed.classes)}: "
                f"{', '.join(agreed.classes)}; use softmax"
            )
