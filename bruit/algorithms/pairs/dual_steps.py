"""The step of dual averaging: from the sum of gradients z to the model that minimizes it,
regularized (perso:PAIR-6).

    pi_t(z) = argmin over x of  z.x + |x|^2 / (2 gamma) + t psi(x),     gamma = rate / sqrt(t)
    psi = l1 |x|_1 + l2 |x|^2 + [|x| <= ball] + [x is a positive semidefinite matrix]

Closed forms, one after the other: soft threshold at t l1, scale by gamma / (1 + 2 l2 t gamma),
project. The sign is +z.x because z adds gradients up; the thesis prints -z.x, which would climb.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from bruit.arrays import Array
from bruit.domains import nonnegative, positive
from bruit.errors import ConfigError


@dataclass(frozen=True)
class DualStep:
    """The regularizer psi and the rate."""

    rate: float = 1.0
    l1: float = 0.0
    l2: float = 0.0
    ball: float | None = None
    semidefinite: bool = False

    def __post_init__(self) -> None:
        positive(self, "rate", "ball")
        nonnegative(self, "l1", "l2")
        if self.semidefinite and self.l1 > 0:
            raise ConfigError(
                "a sparse and semidefinite matrix has no closed form; use l1 or semidefinite, not "
                "both"
            )

    def __call__(self, z: Array, t: Array) -> Array:
        """The models of rows z at their own times t > 0  # (k, d)."""
        time = t[:, None]
        gamma = self.rate / np.sqrt(time)
        kept = np.sign(z) * np.maximum(np.abs(z) - time * self.l1, 0.0) if self.l1 else z
        model = -gamma * kept / (1.0 + 2.0 * self.l2 * time * gamma)
        if self.semidefinite:
            model = positive_part(model)
        if self.ball is not None:
            length = np.maximum(np.linalg.norm(model, axis=1, keepdims=True), self.ball)
            model = model * (self.ball / length)
        return np.asarray(model)


def positive_part(rows: Array) -> Array:
    """The nearest positive semidefinite matrix of each row, read as a square symmetric matrix
    # (k, p * p)."""
    p = math.isqrt(rows.shape[1])
    if p * p != rows.shape[1]:
        raise ConfigError(
            f"models of {rows.shape[1]} numbers are no square matrices; semidefinite is for metrics"
        )
    matrices = rows.reshape(-1, p, p)
    values, vectors = np.linalg.eigh((matrices + matrices.transpose(0, 2, 1)) / 2)
    return np.asarray(
        (vectors * np.maximum(values, 0.0)[:, None, :]) @ vectors.transpose(0, 2, 1)
    ).reshape(rows.shape)
