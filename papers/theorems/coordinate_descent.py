"""Private coordinate descent as a noisy fixed point: gradient steps of which only some blocks of
coordinates are taken.

    R_b(u) = u_b - (2 / beta) grad_b f(u),   relaxation gamma beta / 2

Blocks are drawn by the caller; all read the old u. The state is the model cut into blocks of equal
length.
Spec: walk:ADMM-2 (Prop. 8.4).
"""

from __future__ import annotations

from collections.abc import Callable

from bruit.algorithms.admm.iteration import Iteration
from bruit.arrays import Array
from bruit.errors import ConfigError
from papers.theorems.gradient_steps import gradient_descent


def coordinate_descent(
    gradient: Callable[[Array], Array], smoothness: float, rate: float, noise: float = 0.0
) -> Iteration:
    """An iteration on blocks (..., B, d / B) from the gradient of whole models (..., d)."""

    def of_blocks(u: Array) -> Array:
        return gradient(joined(u)).reshape(u.shape)

    return gradient_descent(of_blocks, smoothness, rate, noise)


def cut(model: Array, blocks: int) -> Array:
    """Models (..., d) as states (..., blocks, d / blocks)."""
    if blocks < 1 or model.shape[-1] % blocks:
        raise ConfigError(
            f"a model of {model.shape[-1]} coordinates cannot be cut into {blocks} equal blocks"
        )
    return model.reshape(*model.shape[:-1], blocks, -1)


def joined(u: Array) -> Array:
    """States (..., B, d / B) as models (..., d)."""
    return u.reshape(*u.shape[:-2], -1)
