"""The joint objective of personal models on a given graph (perso:PERSO-1).

    M(X) = sum_u d_u c_u f_u(x_u) + (coupling/2) sum_{u<v} w_uv |x_u - x_v|^2,      d_u = sum_v w_uv

w are similarity weights as given (`bruit.graphs.similarity` makes the graph), c confidences in (0,
1]. As coupling goes to 0 everybody is alone, as it grows there is one model for each connected
part.
"""

from dataclasses import dataclass
from math import ceil, log

import numpy as np

from bruit.arrays import Array, Ints
from bruit.errors import ConfigError
from bruit.graphs.graph import Weights
from bruit.graphs.similarity import similarity_weights


@dataclass(frozen=True, eq=False)
class Joint:
    """Weights, confidences and coupling; the losses are the caller's."""

    weights: Weights  # (n, n) symmetric, zero diagonal
    confidences: Array  # (n,)
    coupling: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "weights", similarity_weights(self.weights))
        if self.confidences.shape != (self.weights.shape[0],):
            raise ConfigError(
                f"confidences are {self.confidences.shape} for {self.weights.shape[0]} peers"
            )
        bad = np.flatnonzero(~((self.confidences >= 0) & (self.confidences <= 1)))
        if len(bad):
            found = self.confidences[bad[0]]
            raise ConfigError(
                f"the confidence of peer {bad[0]} is {found}; it must be between 0 and 1"
            )
        if not self.coupling > 0:
            raise ConfigError(f"the coupling must be positive, found {self.coupling}")

    @property
    def degrees(self) -> Array:
        """d_u  # (n,)."""
        return np.asarray(self.weights @ np.ones(self.weights.shape[0]))

    def value(self, models: Array, losses: Array) -> float:
        """M, from every peer's own loss at its own model."""
        pulled = np.asarray(self.weights @ models)
        apart = float(self.degrees @ (models * models).sum(axis=1) - (models * pulled).sum())
        return float(self.degrees * self.confidences @ losses) + self.coupling / 2 * apart

    def gradient(self, models: Array, gradients: Array) -> Array:
        """Row u: d_u (coupling x_u + c_u gradient_u) - coupling sum_v w_uv x_v."""
        own = self.coupling * models + self.confidences[:, None] * gradients
        return self.degrees[:, None] * own - self.coupling * np.asarray(
            self.weights @ models
        )  # (n, d)

    def block_constants(self, smoothness: Array) -> Array:
        """L_u = d_u (coupling + c_u L_u^loc): how fast the slope of M in x_u can change  # (n,)."""
        return np.asarray(self.degrees * (self.coupling + self.confidences * smoothness))

    def strong_convexity(self, local: Array) -> float:
        """A lower bound on the curvature of M: min_u d_u c_u mu_u^loc."""
        return float((self.degrees * self.confidences * local).min())

    def factor(self, smoothness: Array, local: Array) -> float:
        """C = 1 - mu / (n L_max): the expected gap of coordinate descent shrinks by C a wake-up
        (perso:PERSO-3)."""
        largest = float(self.block_constants(smoothness).max())
        return 1 - self.strong_convexity(local) / (len(self.confidences) * largest)


def confidences(sizes: Ints) -> tuple[float, ...]:
    """c_u = m_u / max m: peers with more records are trusted more with their own model. Sizes are
    public."""
    if sizes.ndim != 1 or len(sizes) == 0 or int(sizes.min()) < 0 or int(sizes.max()) < 1:
        raise ConfigError(
            "confidences need the number of records of every peer, at least one of them positive"
        )
    return tuple((sizes / sizes.max()).tolist())


def gap_bound(factor: float, wakes: int, gap: float) -> float:
    """The expected gap after so many wake-ups from this gap (perso:PERSO-3)."""
    return factor**wakes * gap


def wakes_for(factor: float, gap: float, goal: float) -> int:
    """How many wake-ups guarantee an expected gap of `goal` from this gap."""
    if not 0 < factor < 1:
        raise ConfigError(
            f"a rate needs a factor between 0 and 1, found {factor}: not strongly convex"
        )
    return max(0, ceil(log(goal / gap) / log(factor)))
