"""What schedules draw in common: activations from sheets of uniform numbers, and where a uniform
number leads."""

from __future__ import annotations

import numpy as np

from bruit.arrays import Array, Ints
from bruit.graphs import Graph
from bruit.randomness import Dice

SHEET = 1024  # activations whose draws share one address


def activation_draws(dice: Dice, first: int, sheets: int) -> Array:
    """The uniform numbers of the activations on these sheets: activation k is number k % SHEET of
    sheet k // SHEET  # (sheets * SHEET,)."""
    return dice.uniform("meeting", np.arange(first, first + sheets), 0, 0, SHEET).reshape(-1)


def uniform_peer(n: int, uniform: Array) -> Ints:
    """One of n peers, for each uniform draw; draws are above 0."""
    return np.asarray(np.minimum(np.ceil(uniform * n) - 1, n - 1), np.int64)


def hop(graph: Graph, at: Ints, uniform: Array) -> Ints:
    """Where a token at each given peer goes, for one uniform draw each: vectorized inverse of the
    row's law."""
    if graph.implicit and graph.alike:
        return uniform_peer(graph.n, uniform)
    total = np.concatenate(([0.0], np.cumsum(graph.weights.data)))
    low, high = graph.weights.indptr[at], graph.weights.indptr[at + 1]
    entry = (
        np.searchsorted(total, total[low] + uniform * (total[high] - total[low]), side="right") - 1
    )
    return np.asarray(graph.weights.indices[np.clip(entry, low, high - 1)], np.int64)
