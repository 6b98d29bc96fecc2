"""Which graph fits these models: the objective of collaboration weights, its slopes and its
constants (perso:PERSO-7).

    G(w) = sum_u d_u cost_u + (coupling/2) sum_{u<v} w_uv |t_u - t_v|^2
           + spread (sparsity |w|^2 - sum_u log(d_u + floor)),      d_u = sum_v w_uv,  each pair counted once

cost_u = c_u F_u(t_u) is the loss of peer u at its model, times its confidence. The three terms:
trust peers that do well, be close to peers whose models are close, and neither stand alone nor with
everybody. In the source's letters coupling, spread, sparsity, floor are lambda_1, lambda_2,
lambda_3, zeta.
"""

from dataclasses import dataclass
from math import isfinite

import numpy as np

from bruit.arrays import Array, Ints
from bruit.errors import ConfigError

HALVINGS = 80  # of the range of a weight: beyond what floats tell apart


@dataclass(frozen=True)
class Collaboration:
    """What makes a collaboration graph good."""

    coupling: float = 1.0
    spread: float = 1.0
    sparsity: float = 0.5
    floor: float = 1e-2

    def __post_init__(self) -> None:
        if not (isfinite(self.coupling) and self.coupling >= 0):
            raise ConfigError(
                f"the coupling of a collaboration graph must be a number >= 0, found "
                f"{self.coupling}"
            )
        for name in ("spread", "sparsity", "floor"):
            value = getattr(self, name)
            if not (isfinite(value) and value > 0):
                raise ConfigError(
                    f"the {name} of a collaboration graph must be positive, found {value}; "
                    "without it weights may grow or vanish for ever"
                )

    def value(self, pairs: Ints, weights: Array, models: Array, costs: Array) -> float:
        """G for the weights of these pairs (E, 2), each pair once; all other weights are zero."""
        self.check(models, costs)
        a, b = pairs[:, 0], pairs[:, 1]
        degrees = degrees_of(pairs, weights, len(models))
        apart = ((models[a] - models[b]) ** 2).sum(axis=1)
        even = self.sparsity * float(weights @ weights) - float(np.log(degrees + self.floor).sum())
        return float(degrees @ costs + self.coupling / 2 * (weights @ apart) + self.spread * even)

    def slopes(self, pairs: Ints, weights: Array, models: Array, costs: Array) -> Array:
        """The derivative of G in the weight of each pair:

        cost_u + cost_v + (coupling/2) |t_u - t_v|^2
            + spread (2 sparsity w_uv - 1/(d_u + floor) - 1/(d_v + floor))
        """
        self.check(models, costs)
        a, b = pairs[:, 0], pairs[:, 1]
        lonely = 1.0 / (degrees_of(pairs, weights, len(models)) + self.floor)
        apart = ((models[a] - models[b]) ** 2).sum(axis=1)
        even = 2 * self.sparsity * weights - lonely[a] - lonely[b]
        return np.asarray(
            costs[a] + costs[b] + self.coupling / 2 * apart + self.spread * even
        )  # (E,)

    def best(self, costs: Array, apart: Array, mine: Array, others: Array) -> Array:
        """The weight w >= 0 of each pair at which G is least, all other weights kept: the root of

            cost_u + cost_v + (coupling/2) |t_u - t_v|^2
                + spread (2 sparsity w - 1/(mine + w + floor) - 1/(others + w + floor))

        or 0 if that is positive at 0. costs: cost_u + cost_v; apart: |t_u - t_v|^2; mine, others:
        the degrees of both ends without w. The same bits with the ends exchanged.
        """
        mine, others = np.maximum(mine, 0.0) + self.floor, np.maximum(others, 0.0) + self.floor
        level = costs + self.coupling / 2 * apart
        low = np.zeros(len(level))
        high = np.maximum(2 / self.floor - level / self.spread, 0.0) / (2 * self.sparsity)
        for _ in range(HALVINGS):
            middle = (low + high) / 2
            lonely = 1.0 / (mine + middle) + 1.0 / (others + middle)
            rising = level + self.spread * (2 * self.sparsity * middle - lonely) > 0
            low, high = np.where(rising, low, middle), np.where(rising, middle, high)
        stays = level >= self.spread * (1.0 / mine + 1.0 / others)
        return np.where(stays, 0.0, low)

    def block_constant(self, sampled: int) -> float:
        """How fast the slopes of one peer's weights to `sampled` others can change:

            L = spread (2 sparsity + (sampled + 1) / floor^2)

        the largest eigenvalue of that block of the Hessian where all degrees are zero, its worst
        point.
        """
        return self.spread * (2 * self.sparsity + (sampled + 1) / self.floor**2)

    def factor(self, peers: int, sampled: int) -> float:
        """The expected gap to the best graph shrinks by at least this factor a wake-up with safe
        steps."""
        bent = 2 * self.spread * self.sparsity
        return 1 - 2 * sampled * bent / (peers * (peers - 1) * self.block_constant(sampled))

    def check(self, models: Array, costs: Array) -> None:
        """One finite model and one finite cost a peer."""
        if models.ndim != 2 or costs.shape != (len(models),):
            raise ConfigError(
                f"models are {models.shape} and costs {costs.shape}; give one row and one number a "
                f"peer"
            )
        if not (np.isfinite(models).all() and np.isfinite(costs).all()):
            raise ConfigError(
                "a model or a loss is not finite; a graph is learned from finite ones only"
            )


def degrees_of(pairs: Ints, weights: Array, peers: int) -> Array:
    """d_u: the sum of each peer's weights."""
    degrees = np.bincount(pairs[:, 0], weights, peers) + np.bincount(pairs[:, 1], weights, peers)
    return np.asarray(degrees, np.float64)  # (n,)
