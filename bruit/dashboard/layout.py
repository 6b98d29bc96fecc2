"""Where peers stand in a drawing: given places, else a spring layout from a spectral start; the same every time.

Up to 1000 peers springs pull neighbors together and push all others apart (Fruchterman and Reingold 1991), vectorized
over pairs. Above, peers stand where the second and third eigenvectors of the weights put them.
"""

from __future__ import annotations

import numpy as np

from bruit.arrays import Array
from bruit.graphs import Graph

SPRING = 1000  # peers
DENSE = 512  # peers whose eigenvectors are found densely
ITERATIONS = 60
GOLDEN = np.pi * (3 - np.sqrt(5.0))


def places(graph: Graph) -> Array:
    """Every peer's place in the unit square  # (n, 2)."""
    if graph.positions is not None and np.isfinite(graph.positions).all():
        return _fitted(np.asarray(graph.positions, np.float64))
    if graph.n <= 3:
        return _fitted(_circle(graph.n))
    start = _spectral(graph)
    return _fitted(_springs(graph, start) if graph.n <= SPRING else start)


def _circle(n: int) -> Array:
    angles = 2 * np.pi * np.arange(n) / max(n, 1)
    return np.stack([np.cos(angles), np.sin(angles)], axis=1)


def _spiral(n: int) -> Array:
    """Distinct places in the unit disk, evenly spread."""
    peers = np.arange(n)
    radius = np.sqrt((peers + 0.5) / n)
    return np.stack([radius * np.cos(GOLDEN * peers), radius * np.sin(GOLDEN * peers)], axis=1)


def _spectral(graph: Graph) -> Array:
    """The two slowest eigenvectors, with their signs fixed; a circle when they cannot be found."""
    if graph.n <= DENSE:
        vectors = np.linalg.eigh(graph.weights.toarray())[1][:, -3:-1]
    else:
        from scipy.sparse.linalg import ArpackError, eigsh

        try:
            begin = np.cos(GOLDEN * np.arange(graph.n))
            vectors = eigsh(graph.weights, k=3, which="LA", v0=begin, tol=1e-3, maxiter=60 * 20)[1][:, :2]
        except ArpackError:
            return _circle(graph.n)
    largest = np.take_along_axis(vectors, np.abs(vectors).argmax(axis=0)[None, :], axis=0)
    return np.asarray(vectors * np.where(largest < 0, -1.0, 1.0), np.float64)


def _springs(graph: Graph, start: Array) -> Array:
    n = graph.n
    place = _fitted(start) + 0.01 * _spiral(n)
    rest = np.sqrt(1.0 / n)
    a, b = graph.edges().T if graph.edge_count else (np.zeros(0, np.int64), np.zeros(0, np.int64))
    for heat in np.linspace(0.1, 0.002, ITERATIONS):
        across = place[:, 0, None] - place[None, :, 0]
        up = place[:, 1, None] - place[None, :, 1]
        push = rest**2 / np.maximum(across**2 + up**2, 1e-6)
        force = np.stack([(across * push).sum(axis=1), (up * push).sum(axis=1)], axis=1)
        gap = place[a] - place[b]
        pull = gap * np.linalg.norm(gap, axis=1, keepdims=True) / rest
        for column in range(2):
            force[:, column] += np.bincount(b, pull[:, column], n) - np.bincount(a, pull[:, column], n)
        force -= 0.5 * (place - place.mean(axis=0))  # keeps separate components in sight of each other
        length = np.maximum(np.linalg.norm(force, axis=1, keepdims=True), 1e-12)
        place = place + force / length * np.minimum(length, heat)
    return place


def _fitted(place: Array) -> Array:
    """The same picture in the unit square."""
    low, high = place.min(axis=0), place.max(axis=0)
    size = np.where(high - low > 1e-12, high - low, 1.0)
    return np.asarray((place - low) / size + np.where(high - low > 1e-12, 0.0, 0.5), np.float64)
