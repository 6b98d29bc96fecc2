"""The largest quadratic form of scalars that move together: max d^T Q d over |d_s| <= 1
(gossip:LG-1, MUF-12).

    max d^T Q d <= min { sum_s D_s : diag(D) - Q positive semidefinite } <= sum_{s, s'} |Q|_{ss'}

The middle is the dual of a semidefinite program; any feasible D is a proof, also when every d_s is
a vector of length at most one, and then it is the maximum itself. D comes from sweeps of v_s <-
normalize(sum_{s' != s} Q_{ss'} v_{s'}), which climb to the best unit vectors, and is made feasible
by lifting it by the lowest eigenvalue: sound whatever the sweeps found.
"""

from __future__ import annotations

import numpy as np

from bruit.arrays import Array

SWEEPS, SETTLED, LENGTH, LARGEST = 200, 1e-9, 8, 2048
"""Sweeps at most, the movement that ends them, numbers in a unit vector, scalars beyond which sum
|Q| is given."""


def largest_form(form: Array) -> float:
    """An upper bound of max d^T Q d over |d_s| <= 1 for symmetric positive semidefinite Q, never above sum |Q|.

    >>> float(largest_form(np.array([[1.0, 0.5], [0.5, 1.0]])))
    3.0
    >>> round(largest_form(np.array([[2.0, -1.0, -1.0], [-1.0, 2.0, -1.0], [-1.0, -1.0, 2.0]])), 9)  # sum |Q| is 12
    9.0
    """
    plain = float(np.abs(form).sum())
    count = len(form)
    if not 3 <= count <= LARGEST or np.all(form >= 0) or not np.isfinite(plain):
        return plain
    own = np.diagonal(form)
    weights = own + _pulls(form - np.diag(own))
    lowest = float(np.linalg.eigvalsh(np.diag(weights) - form)[0])
    rounding = 1e-14 * float(np.abs(form).sum(axis=1).max()) * count
    return min(plain, float(weights.sum()) + count * max(0.0, rounding - lowest))


def _pulls(off: Array) -> Array:
    """Lengths of the pulls on the best unit vectors: the free part of the dual weights
    # (count,)."""
    count = len(off)
    vectors = np.cos(
        np.outer(np.arange(1, count + 1), np.arange(1, LENGTH + 1))
    )  # in general position
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    for _ in range(SWEEPS):
        before = vectors.copy()
        for s in range(count):
            pull = off[s] @ vectors
            length = np.sqrt(pull @ pull)
            if length > 0:
                vectors[s] = pull / length
        if np.abs(vectors - before).max() < SETTLED:
            break
    return np.asarray(np.linalg.norm(off @ vectors, axis=1))
