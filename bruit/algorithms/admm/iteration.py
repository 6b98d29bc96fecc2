"""The noisy fixed-point iteration: move some blocks a part of the way to a noisy image of the whole
state.

    u_b <- u_b + active_b * relaxation * (R_b(u) + e_b + sigma * eta_b - u_b)        eta_b standard normal

All blocks read the old u. R is an operator, usually non-expansive; e is an error (a sampled record,
an inexact solver). A step that moves only some blocks of a non-expansive operator need not be
non-expansive: R(u1, u2) = (u2, u1), moving u1 only, takes a distance of 1 to sqrt(2). Amplification
by iteration therefore says nothing about block-wise steps.
Spec: walk:ADMM-1 (Definition 8.1, Algorithm 8.1).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import isfinite

import numpy as np

from bruit.algorithms.admm.draws import DrawSource
from bruit.arrays import Array
from bruit.errors import ConfigError

Operator = Callable[[Array], Array]  # (..., blocks, d) to the same shape
Error = Callable[[int, Array], Array]  # (step, u) to the shape of u


@dataclass(frozen=True)
class Iteration:
    """An operator, how far to follow it (a number in (0, 1], or one for each step), and the
    noise."""

    operator: Operator
    relaxation: float | Callable[[int], float] = 1.0
    sigma: float = 0.0
    error: Error | None = None

    def __post_init__(self) -> None:
        if not callable(self.relaxation):
            check_relaxation(self.relaxation)
        if not (self.sigma >= 0 and isfinite(self.sigma)):
            raise ConfigError(f"sigma must be a number >= 0, found {self.sigma}")

    def step(self, number: int, u: Array, draws: DrawSource) -> Array:
        """The state after one step."""
        image = self.operator(u)
        if image.shape != u.shape:
            raise ConfigError(
                f"the operator turned a state {u.shape} into {image.shape}; it must keep the shape"
            )
        if self.error is not None:
            image = image + self.error(number, u)
        if self.sigma:
            image = image + self.sigma * draws.normals(number, u.shape)
        share = (
            check_relaxation(self.relaxation(number))
            if callable(self.relaxation)
            else self.relaxation
        )
        moving = draws.active(number, u.shape)[..., None]
        return np.asarray(np.where(moving, u + share * (image - u), u))

    def iterates(self, start: Array, steps: int, draws: DrawSource) -> Iterator[Array]:
        """u_1, u_2, ... u_steps."""
        u = check_state(start)
        for number in range(steps):
            u = self.step(number, u, draws)
            yield u

    def run(self, start: Array, steps: int, draws: DrawSource) -> Array:
        """The last iterate; the start if there are no steps."""
        u = check_state(start)
        for later in self.iterates(start, steps, draws):
            u = later
        return u


def check_relaxation(relaxation: float) -> float:
    """A relaxation is in (0, 1]."""
    if not 0 < relaxation <= 1:
        raise ConfigError(f"the relaxation must be in (0, 1], found {relaxation}")
    return relaxation


def check_state(start: Array) -> Array:
    """A state has blocks and numbers in each block, after any axis of independent runs."""
    u = np.asarray(start, np.float64)
    if u.ndim < 2:
        raise ConfigError(f"a state is (blocks, d) or (runs, blocks, d), found shape {u.shape}")
    return u
