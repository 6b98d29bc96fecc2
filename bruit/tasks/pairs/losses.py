"""Losses of two points, for learning from pairs: a point is a row of features with its label last
(perso:PAIR-7).

    auc      h(x; u, v) = 1[label_u > label_v] log(1 + exp(s_v - s_u)),  s = x.features      two classes
    ranking  the same with a hinge that is rounded: slope -1 below 0, 0 above 1               labels of any order
    metric   h(M; u, v) = log(1 + exp(l (|u - v|_M^2 - 1))),  l = 1 for equal labels, else -1,  |d|_M^2 = d' M d

All are convex in the model, and Lipschitz when features are bounded by R: 2 R for scores, 4 R^2 for
the metric. Sums over points take weights, so that several points of a peer, or corrected counts of
a codebook, are one call.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import final

import numpy as np

from bruit.arrays import Array, Bools
from bruit.errors import ConfigError

MODELS = 16  # models of as many peers are judged where judging one is slow
POINTS = 200  # points among whose pairs they are judged


class PairLoss(ABC):
    """A convex loss of two points; x (k or 1, i, p + 1) and y (k or 1, j, p + 1) hold those of k
    pairs of peers."""

    name: str
    metric: str

    @abstractmethod
    def dim(self, features: int) -> int:
        """Length of a model."""

    @abstractmethod
    def value(self, models: Array, x: Array, y: Array) -> Array:
        """The loss of all pairs of points  # (k, i, j)."""

    @abstractmethod
    def gradient(self, models: Array, x: Array, here: Array, y: Array, there: Array) -> Array:
        """The weighted sum of the gradients of all pairs of points, weights (k, i) and (k, j)
        # (k, dim)."""

    @abstractmethod
    def lipschitz(self, bound: float) -> float:
        """Bound on the gradient of one pair, when features are bounded."""

    @abstractmethod
    def score(self, models: Array, points: Array) -> Array:
        """How good the models are on points  # (models judged,)."""

    @abstractmethod
    def check(self, labels: Array) -> None:
        """Refuse labels from which nothing can be learned."""


@final
@dataclass(frozen=True)
class ScoreLoss(PairLoss):
    """A loss of the difference of two scores: logistic (auc), or a rounded hinge (ranking)."""

    hinge: bool = False

    @property
    def name(self) -> str:  # type: ignore[override]
        return "ranking" if self.hinge else "auc"

    @property
    def metric(self) -> str:  # type: ignore[override]
        return "auc"

    def dim(self, features: int) -> int:
        return features

    def _margins(self, models: Array, x: Array, y: Array) -> tuple[Array, Bools]:
        """s_u - s_v of all pairs of points, and whether u should be above v."""
        left, right = ((rows[..., :-1] @ models[:, :, None])[..., 0] for rows in (x, y))
        return left[:, :, None] - right[:, None, :], x[..., :, None, -1] > y[..., None, :, -1]

    def value(self, models: Array, x: Array, y: Array) -> Array:
        margin, above = self._margins(models, x, y)
        if self.hinge:
            low = np.minimum(1.0 - margin, 1.0)
            loss = np.where(margin < 0, 0.5 - margin, np.maximum(low, 0.0) ** 2 / 2)
        else:
            loss = np.logaddexp(0.0, -margin)
        return np.where(above, loss, 0.0)

    def gradient(self, models: Array, x: Array, here: Array, y: Array, there: Array) -> Array:
        margin, above = self._margins(models, x, y)
        slope = (
            -np.clip(1.0 - margin, 0.0, 1.0)
            if self.hinge
            else -1.0 / (1.0 + np.exp(np.minimum(margin, 700.0)))
        )
        pull = np.where(above, slope, 0.0) * here[:, :, None] * there[:, None, :]
        up, down = pull.sum(axis=2)[:, None] @ x[..., :-1], pull.sum(axis=1)[:, None] @ y[..., :-1]
        return np.asarray(up[:, 0] - down[:, 0])

    def lipschitz(self, bound: float) -> float:
        return 2.0 * bound

    def score(self, models: Array, points: Array) -> Array:
        """The share of pairs of different labels that the scores order rightly, ties by half."""
        labels = points[:, -1]
        scores = models @ points[:, :-1].T  # (k, t)
        if len(np.unique(labels)) == 2:
            from scipy.stats import rankdata

            up = labels == labels.max()
            first, count = rankdata(scores, axis=1)[:, up].sum(axis=1), int(up.sum())
            return np.asarray((first - count * (count + 1) / 2) / (count * (len(up) - count)))
        few = np.linspace(0, len(labels) - 1, min(POINTS, len(labels))).astype(np.int64)
        wanted = np.sign(labels[few, None] - labels[None, few])
        few_scores = some(scores, MODELS)[:, few]
        agree = [float((np.sign(row[:, None] - row[None, :]) * wanted).sum()) for row in few_scores]
        return np.asarray(0.5 + np.array(agree) / (2 * np.abs(wanted).sum()))

    def check(self, labels: Array) -> None:
        found = np.unique(labels)
        if len(found) < 2:
            raise ConfigError(
                f"all {len(labels)} points have label {found[0]:g}; pairs need two classes: bring "
                "points of both"
            )
        if len(found) > 2 and not self.hinge:
            raise ConfigError(
                f"the loss auc is for two classes, found {len(found)} labels; use the loss ranking"
            )


@final
@dataclass(frozen=True)
class MetricLoss(PairLoss):
    """Points of one class are to be closer than 1 in the metric M, others farther; M is a flat p x
    p matrix."""

    name: str = "metric"
    metric: str = "accuracy"

    def dim(self, features: int) -> int:
        return features * features

    def _far(self, models: Array, x: Array, y: Array) -> tuple[Array, Array, Array]:
        """The differences of all pairs of points, l (|d|_M^2 - 1), and l."""
        apart = x[..., :, None, :-1] - y[..., None, :, :-1]  # (k or 1, i, j, p)
        p = apart.shape[-1]
        far = np.einsum(
            "kijp,kpq,kijq->kij",
            np.broadcast_to(apart, (len(models), *apart.shape[1:])),
            models.reshape(-1, p, p),
            np.broadcast_to(apart, (len(models), *apart.shape[1:])),
        )
        sign = np.where(x[..., :, None, -1] == y[..., None, :, -1], 1.0, -1.0)
        return apart, sign * (far - 1.0), sign

    def value(self, models: Array, x: Array, y: Array) -> Array:
        return np.logaddexp(0.0, self._far(models, x, y)[1])

    def gradient(self, models: Array, x: Array, here: Array, y: Array, there: Array) -> Array:
        apart, far, sign = self._far(models, x, y)
        pull = sign / (1.0 + np.exp(np.minimum(-far, 700.0))) * here[:, :, None] * there[:, None, :]
        whole = np.broadcast_to(apart, (len(models), *apart.shape[1:]))
        return np.asarray(np.einsum("kij,kijp,kijq->kpq", pull, whole, whole)).reshape(
            len(models), -1
        )

    def lipschitz(self, bound: float) -> float:
        return 4.0 * bound**2

    def score(self, models: Array, points: Array) -> Array:
        """Share of pairs told right (equal or different label), averaged over both kinds, for some
        of the models."""
        chosen = some(points, POINTS)
        pairs = np.triu(np.ones((len(chosen), len(chosen)), dtype=bool), 1)
        alike = (chosen[:, None, -1] == chosen[None, :, -1])[pairs]
        apart = (chosen[:, None, :-1] - chosen[None, :, :-1])[pairs]
        found = []
        for model in some(models, MODELS):
            near = ((apart @ model.reshape(apart.shape[1], -1)) * apart).sum(axis=1) < 1.0
            found.append((near[alike].mean() + (~near[~alike]).mean()) / 2)
        return np.array(found)

    def check(self, labels: Array) -> None:
        if len(np.unique(labels)) < 2:
            raise ConfigError(
                f"all {len(labels)} points have label {labels[0]:g}; a metric is learned from"
                " points of several classes"
            )


def some(rows: Array, most: int) -> Array:
    """At most so many rows, evenly apart."""
    return rows if len(rows) <= most else rows[np.linspace(0, len(rows) - 1, most).astype(np.int64)]


LOSSES: dict[str, PairLoss] = {
    "auc": ScoreLoss(),
    "ranking": ScoreLoss(hinge=True),
    "metric": MetricLoss(),
}


def named_loss(name: str) -> PairLoss:
    """A loss by name."""
    if name not in LOSSES:
        raise ConfigError(f"there is no loss of pairs {name!r} (known: {', '.join(LOSSES)})")
    return LOSSES[name]
