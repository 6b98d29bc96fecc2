"""Regularizers: public penalties of the model, each with its value and its exact proximal point.

    prox_{gamma r}(v) = argmin over x of r(x) + |x - v|^2 / (2 gamma)

All of them add up over coordinates, so the proximal point is one number at a time. Spec:
walk:ADMM-10.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from math import inf, isfinite

import numpy as np

from bruit.arrays import Array
from bruit.errors import ConfigError


class Regularizer(ABC):
    """A convex penalty of the model that depends on nobody's records."""

    @abstractmethod
    def value(self, x: Array) -> Array:
        """The penalty of each model; infinite where a model is not allowed  # (...,)."""

    @abstractmethod
    def prox(self, v: Array, gamma: float) -> Array:
        """The proximal point of each row  # (..., d)."""


@dataclass(frozen=True)
class Free(Regularizer):
    """No penalty."""

    def value(self, x: Array) -> Array:
        return np.zeros(x.shape[:-1])

    def prox(self, v: Array, gamma: float) -> Array:
        return v


@dataclass(frozen=True)
class L1(Regularizer):
    """weight |x|_1: soft threshold at gamma * weight."""

    weight: float

    def __post_init__(self) -> None:
        _check("L1", self.weight)

    def value(self, x: Array) -> Array:
        return np.asarray(self.weight * np.abs(x).sum(axis=-1))

    def prox(self, v: Array, gamma: float) -> Array:
        cut = gamma * self.weight
        return v - np.clip(v, -cut, cut)


@dataclass(frozen=True)
class L2(Regularizer):
    """(weight / 2) |x|^2: v / (1 + gamma * weight)."""

    weight: float

    def __post_init__(self) -> None:
        _check("L2", self.weight)

    def value(self, x: Array) -> Array:
        return np.asarray(self.weight / 2 * (x**2).sum(axis=-1))

    def prox(self, v: Array, gamma: float) -> Array:
        return v / (1 + gamma * self.weight)


@dataclass(frozen=True)
class ElasticNet(Regularizer):
    """l1 |x|_1 + (l2 / 2) |x|^2: soft threshold, then shrink."""

    l1: float
    l2: float

    def __post_init__(self) -> None:
        _check("the L1 part of an elastic net", self.l1)
        _check("the L2 part of an elastic net", self.l2)

    def value(self, x: Array) -> Array:
        return L1(self.l1).value(x) + L2(self.l2).value(x)

    def prox(self, v: Array, gamma: float) -> Array:
        return L1(self.l1).prox(v, gamma) / (1 + gamma * self.l2)


@dataclass(frozen=True)
class Box(Regularizer):
    """Coordinates kept in [low, high], with another penalty inside.

    Exact: a convex function of one number is least, on an interval, at the point of it nearest to
    its free minimum.
    """

    low: float
    high: float
    inside: Regularizer = Free()

    def __post_init__(self) -> None:
        if not self.low <= self.high:
            raise ConfigError(
                f"a box needs low <= high, found low = {self.low} and high = {self.high}"
            )

    def value(self, x: Array) -> Array:
        allowed = ((x >= self.low) & (x <= self.high)).all(axis=-1)
        return np.where(allowed, self.inside.value(x), inf)

    def prox(self, v: Array, gamma: float) -> Array:
        return np.clip(self.inside.prox(v, gamma), self.low, self.high)


def penalty(l1: float = 0.0, l2: float = 0.0, bound: float | None = None) -> Regularizer:
    """The regularizer of these numbers: l1 |x|_1 + (l2 / 2) |x|^2, coordinates within +- bound if one is given."""
    inside: Regularizer = ElasticNet(l1, l2) if l1 or l2 else Free()
    return inside if bound is None else Box(-bound, bound, inside)


def _check(name: str, weight: float) -> None:
    if not (weight >= 0 and isfinite(weight)):
        raise ConfigError(f"the weight of {name} must be a number >= 0, found {weight}")
