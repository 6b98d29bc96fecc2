"""The largest quadratic form of scalars that move together: max d^T Q d over |d_s| <= 1 (gossip:LG-1, MUF-12).

    max d^T Q d <= min { sum_s D_s : diag(D) - Q positive semidefinite } <= sum_{s, s'} |Q|_{ss'}

The middle is the dual of a semidefinite program; any feasible D is a proof, also when every d_s is a vector of length
at most one. D comes from a few sweeps of v_s <- normalize(sum_{s' != s} Q_{ss'} v_{s'}) over unit vectors, and is made
feasible by lifting it by the lowest eigenvalue: sound whatever the sweeps found.
"""

from __future__ import annotations

import numpy as np

from bruit.arrays import Array

SWEEPS, LENGTH = 60, 8


def largest_form(form: Array) -> float:
    """An upper bound of max d^T Q d over |d_s| <= 1 for symmetric positive semidefinite Q, nearly tight.

    >>> float(largest_form(np.array([[1.0, 0.5], [0.5, 1.0]])))
    3.0
    """
    plain = float(np.abs(form).sum())
    count = len(form)
    if count < 3 or np.all(form >= 0) or not np.isfinite(plain):
        return plain
    off = form - np.diag(np.diagonal(form))
    angles = np.outer(np.arange(1, count + 1), np.arange(1, LENGTH + 1))
    vectors = np.cos(angles)  # any start does; this one is deterministic and in general position
    for _ in range(SWEEPS):
        pulls = off @ vectors
        lengths = np.linalg.norm(pulls, axis=1, keepdims=True)
        moved = np.where(lengths > 0, pulls / np.where(lengths > 0, lengths, 1.0), vectors)
        vectors = moved + np.diagonal(form)[:, None] * vectors  # inertia: sweeps of all at once must not oscillate
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    weights = np.diagonal(form) + np.linalg.norm(off @ vectors, axis=1)
    lowest = float(np.linalg.eigvalsh(np.diag(weights) - form)[0])
    rounding = 1e-12 * max(1.0, float(weights.max())) * count
    return min(plain, float(weights.sum()) + count * max(0.0, rounding - lowest))
