"""How central peers are and how much pairs communicate, to set beside privacy losses (walk:RW-11).

communicability   G_uv = sum_{i >= 1} c_i (W^i)_uv,   c_i = 1 / i!  (exponential)   or   c_i = a^i  (resolvent)
Katz              (I - a A^T) x = 1 on the adjacency matrix A, a < 1 / rho(A)
eigenvector       A x = rho(A) x, the figures of the literature labelled Katz
"""

from __future__ import annotations

import numpy as np

from bruit.arrays import Array
from bruit.errors import ConfigError
from bruit.graphs.graph import Graph


def communicability(graph: Graph) -> Array:
    """exp(W) with a zero diagonal: walks of length i count 1 / i!  # (n, n).

    >>> from bruit.graphs import ring
    >>> communicability(ring(5))[0, :3].round(9).tolist()
    [0.0, 0.492268589, 0.089302838]
    """
    values, vectors = np.linalg.eigh(graph.weights.toarray())
    found = (vectors * np.exp(values)) @ vectors.T
    np.fill_diagonal(found, 0.0)
    return np.asarray(found)


def katz_communicability(graph: Graph, decay: float = 0.1) -> Array:
    """(I - a W)^-1 - I: walks of length i count a^i, 0 < a < 1  # (n, n).

    >>> from bruit.graphs import ring
    >>> katz_communicability(ring(5))[0, 1:3].round(9).tolist()
    [0.035801048, 0.001278609]
    """
    if not 0 < decay < 1:
        raise ConfigError(
            f"the sum of a^i W^i needs 0 < a < 1, since W is stochastic; found a = {decay}"
        )
    values, vectors = np.linalg.eigh(graph.weights.toarray())
    return np.asarray((vectors * (decay * values / (1 - decay * values))) @ vectors.T)


def katz_centrality(graph: Graph, decay: float = 0.1) -> Array:
    """The solution of (I - a A^T) x = 1 on the adjacency matrix, not normalized  # (n,).

    >>> from bruit.graphs import ring
    >>> katz_centrality(ring(5)).round(9).tolist()
    [1.25, 1.25, 1.25, 1.25, 1.25]
    """
    adjacency = _adjacency(graph)
    radius = float(np.linalg.eigvalsh(adjacency)[-1])
    if not 0 < decay * max(radius, 1e-300) < 1:
        raise ConfigError(
            f"Katz centrality needs 0 < a < 1 / rho(A) = {1 / radius if radius > 0 else np.inf:g},"
            f" found a = {decay}; lower the decay"
        )
    return np.asarray(
        np.linalg.solve(np.eye(graph.n) - decay * adjacency, np.ones(graph.n)), np.float64
    )


def eigenvector_centrality(graph: Graph) -> Array:
    """The positive eigenvector of the adjacency matrix with unit length; the graph must be
    connected  # (n,)."""
    if not graph.is_connected():
        raise ConfigError(
            f"eigenvector centrality needs a connected graph; {graph.name} is not: take one "
            f"component"
        )
    vector = np.linalg.eigh(_adjacency(graph))[1][:, -1]
    return np.asarray(np.abs(vector))


def _adjacency(graph: Graph) -> Array:
    adjacency = np.zeros((graph.n, graph.n))
    a, b = graph.edges().T
    adjacency[a, b] = adjacency[b, a] = 1.0
    return adjacency
