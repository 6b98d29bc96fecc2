"""The loss of one record as a function of its scores, the shape every linear task shares.

A record (x, y) and a model W (c rows of p numbers) meet only in the scores s = W x, so a task is
known once value, slope and curvature of loss(s, y) are. Scores of a batch are (k, m, c): peer,
record, output; targets are (k, m).
"""

from abc import ABC, abstractmethod

from bruit.arrays import Array


class Loss(ABC):
    """A convex loss of the scores, with bounds on its slope and curvature."""

    @property
    @abstractmethod
    def lipschitz(self) -> float:
        """Bound on the norm of the slope; infinite if there is none."""

    @property
    @abstractmethod
    def smoothness(self) -> float:
        """Bound on the curvature."""

    @abstractmethod
    def value(self, scores: Array, targets: Array) -> Array:
        """The loss of each record."""  # (k, m)

    @abstractmethod
    def slope(self, scores: Array, targets: Array) -> Array:
        """Its derivative in the scores; may overwrite `scores`."""  # (k, m, c)

    @abstractmethod
    def curvature(self, scores: Array, targets: Array) -> Array:
        """What `bend` needs to know of the second derivative."""  # (k, m, c)

    @abstractmethod
    def bend(self, curvature: Array, direction: Array) -> Array:
        """The second derivative applied to a direction in the scores."""  # (k, m, c)
