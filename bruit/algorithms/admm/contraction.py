"""How much an operator contracts: exactly for affine operators, measured from below for others.

tau = sup over u != v of |R(u) - R(v)| / |u - v|         < 1: contractive, 1: non-expansive (walk:ADMM-1)
"""

from __future__ import annotations

import numpy as np

from bruit.algorithms.admm.iteration import Operator, check_state
from bruit.arrays import Array
from bruit.errors import ConfigError
from bruit.randomness import Dice


def declared_contraction(gamma: float, smoothness: float, convexity: float) -> float:
    """tau of consensus ADMM whose losses are all that smooth and strongly convex: that of the
    reflection 2 prox - I.

        max((gamma L - 1) / (gamma L + 1), (1 - gamma mu) / (1 + gamma mu))          (Giselsson and Boyd 2017)

    The reflection of the consensus step is non-expansive, so the composition contracts as much.

    >>> declared_contraction(0.5, 2.0, 0.5)
    0.6
    """
    if not 0 < convexity <= smoothness:
        found = f"smoothness {smoothness:g} and strong convexity {convexity:g}"
        raise ConfigError(
            f"ADMM contracts for smoothness >= strong convexity > 0, found {found}; give the task "
            f"an l2"
        )
    fast, slow = gamma * smoothness, gamma * convexity
    return max((fast - 1) / (fast + 1), (1 - slow) / (1 + slow))


def affine_contraction(operator: Operator, start: Array) -> float:
    """The Lipschitz constant of an affine operator: the spectral norm of its matrix, found by unit
    inputs."""
    u = check_state(start)
    moved = u + np.eye(u.size).reshape(-1, *u.shape)
    images = operator(moved) - operator(u[None])
    return float(np.linalg.norm(images.reshape(u.size, u.size), 2))


def measured_contraction(
    operator: Operator, start: Array, dice: Dice, pairs: int = 64, turns: int = 20
) -> float:
    """The largest ratio |R(u) - R(v)| / |u - v| met while chasing the direction that shrinks least.

    A lower bound on tau, never a proof: pairs of points around the start, whose differences are
    replaced `turns` times by the difference of their images (a power method where the operator is
    differentiable).
    """
    u = check_state(start)
    draws = dice.normal("contraction", np.arange(2 * pairs), 0, 0, u.size).reshape(
        2, pairs, *u.shape
    )
    here, gap = u + draws[0], draws[1]
    axes = tuple(range(1, gap.ndim))
    worst = 0.0
    for _ in range(turns):
        length = np.sqrt((gap**2).sum(axis=axes, keepdims=True))
        image = operator(here + gap) - operator(here)
        stretched = np.sqrt((image**2).sum(axis=axes, keepdims=True))
        worst = max(worst, float((stretched / length).max()))
        alive = stretched > 1e-12 * length
        gap = np.where(alive, image * (length / np.where(alive, stretched, 1.0)), gap)
    return worst
