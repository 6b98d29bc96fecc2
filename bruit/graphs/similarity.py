"""Similarity graphs: whose models should be close to whose, as a graph peers can talk over
(perso:PERSO-1).

    W[u, v] = w_uv / max_t d_t,    W[u, u] = 1 - sum of the row,    d_u = sum_v w_uv

The joint objective of personalized models grows with w as a whole, so its minimizer, the relative
weights w_uv / d_u and every step made of them depend on w up to a factor only: dividing by the
largest degree loses nothing.
"""

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import coo_array, csr_array, issparse

from bruit.arrays import Array
from bruit.errors import ConfigError
from bruit.graphs.graph import Graph, Weights
from bruit.graphs.mixing import from_matrix
from bruit.graphs.validity import TOLERANCE


def similarity(weights: ArrayLike | Weights, name: str | None = None) -> Graph:
    """The graph of symmetric weights w >= 0; peers without any weight stay alone, a diagonal is
    left out."""
    W = similarity_weights(weights)
    n = W.shape[0]
    degrees = np.asarray(W @ np.ones(n))
    largest = float(degrees.max())
    scaled = W * (1.0 / largest) if largest > 0 else W
    kept = np.maximum(0.0, 1.0 - np.asarray(scaled @ np.ones(n)))
    diagonal = csr_array((kept, np.arange(n), np.arange(n + 1)), shape=(n, n))
    return from_matrix(csr_array(scaled + diagonal), name=name or f"similarity:{n}")


def similarity_weights(weights: ArrayLike | Weights) -> Weights:
    """The weights without diagonal and zeros, checked: square, finite, not negative, symmetric."""
    dense = weights if issparse(weights) else np.asarray(weights, dtype=np.float64)
    if dense.ndim != 2 or dense.shape[0] != dense.shape[1] or dense.shape[0] == 0:
        raise ConfigError(
            f"similarity weights are a square matrix, one row a peer, found shape {dense.shape}"
        )
    entries = coo_array(dense, dtype=np.float64)
    rows, columns = entries.coords
    bad = np.flatnonzero(~np.isfinite(entries.data) | (entries.data < 0))
    if len(bad):
        k = bad[0]
        raise ConfigError(
            f"the weight of peers {rows[k]} and {columns[k]} is {entries.data[k]}; "
            "similarity weights are finite and not negative"
        )
    keep = (rows != columns) & (entries.data > 0)
    W = csr_array(coo_array((entries.data[keep], (rows[keep], columns[keep])), shape=entries.shape))
    gap = coo_array(abs(W - W.T))
    odd = np.flatnonzero(gap.data > TOLERANCE * max(1.0, float(W.data.max(initial=0.0))))
    if len(odd):
        i, j = int(gap.row[odd[0]]), int(gap.col[odd[0]])
        raise ConfigError(
            f"peers {i} and {j} give each other different weights, {W[i, j]:g} and {W[j, i]:g}; "
            "similarity is mutual: make the matrix symmetric"
        )
    W.sort_indices()
    return W


def angular_weights(models: Array, width: float = 0.1, least: float = 1e-4) -> Weights:
    """w_uv = exp((cos(angle of the models of u and v) - 1) / width), weights below `least` dropped
    (perso:EXP-1)."""
    if not width > 0:
        raise ConfigError(f"the width of angular weights must be positive, found {width}")
    norms = np.sqrt((models * models).sum(axis=1))
    unit = models / np.where(norms > 0, norms, 1.0)[:, None]
    weights = np.exp((np.clip(unit @ unit.T, -1.0, 1.0) - 1.0) / width)
    weights = (weights + weights.T) / 2
    weights[weights < least] = 0.0
    return similarity_weights(weights)
