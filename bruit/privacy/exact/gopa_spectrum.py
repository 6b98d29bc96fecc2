"""Diagonals of (a^2 I + b^2 L)^-1 for the Laplacian L of a graph: what canceling noise hides
(perso:GOPA-3).

    [(a^2 I + b^2 L)^-1]_vv = sum over eigenpairs of L of q_v^2 / (a^2 + b^2 lambda)

The constant vectors of the components are the null space of L and are taken out exactly: they give
1 / (a^2 m), m the size of v's component. What is left is well conditioned. Graphs of many peers use
Lanczos quadrature from e_v with one node fixed at 0 (Gauss-Radau): since all derivatives of 1 /
(a^2 + b^2 x) alternate in sign and no eigenvalue is below 0, its value is never below the truth.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from bruit.arrays import Array, Ints
from bruit.graphs import Graph

DENSE = 2500  # peers up to which one dense inverse is the fastest way
STEPS, CHUNK, SLACK = 12, 16, 1e-9


@dataclass(frozen=True, eq=False)
class Laplacian:
    """The Laplacian of the graph that some peers make among themselves, and the component of
    each."""

    matrix: csr_array  # (h, h)
    peers: Ints  # (h,) who they are
    component: Ints  # (h,)

    @property
    def sizes(self) -> Ints:
        """The size of each peer's component  # (h,)."""
        return np.asarray(np.bincount(self.component)[self.component], np.int64)

    @property
    def connected(self) -> bool:
        return int(self.component.max(initial=0)) == 0


def laplacian_among(graph: Graph, peers: Ints, parts: Array | None = None) -> Laplacian:
    """L of the subgraph induced by these peers, weights of mixing forgotten: an edge is an edge, or
    carries its part of the noise  # parts (edges,), all above 0."""
    place = np.full(graph.n, -1)
    place[peers] = np.arange(len(peers))
    ends = place[graph.edges()]
    kept = (ends >= 0).all(axis=1)
    sizes = np.ones(len(ends)) if parts is None else parts**2
    ends, sizes = ends[kept], np.tile(sizes[kept], 2)
    a, b = np.concatenate((ends[:, 0], ends[:, 1])), np.concatenate((ends[:, 1], ends[:, 0]))
    links = csr_array((sizes, (a, b)), shape=(len(peers), len(peers)))
    degree = np.bincount(a, sizes, minlength=len(peers)).astype(np.float64)
    diagonal = csr_array(
        (degree, np.arange(len(peers)), np.arange(len(peers) + 1)), shape=links.shape
    )
    component = connected_components(links, directed=False)[1].astype(np.int64)
    return Laplacian(csr_array(diagonal - links), peers, component)


def inverse_diagonal(found: Laplacian, own: float, pair: float, lanes: Ints | None = None) -> Array:
    """[(own^2 I + pair^2 L)^-1]_vv, rounded up; for all lanes or some of them  # (h,)."""
    lanes = np.arange(len(found.peers)) if lanes is None else lanes
    if pair == 0:
        return np.full(len(lanes), 1 / own**2)
    if len(found.peers) <= DENSE:
        return _dense(found, own, pair)[lanes]
    return Quadrature.of(found, lanes).at(own, pair)


def pseudo_inverse_diagonal(found: Laplacian) -> Array:
    """[L^+]_vv, rounded up  # (h,)."""
    if len(found.peers) <= DENSE:
        return np.maximum(
            np.diagonal(_inverse(found, 0.0, 1.0)) - _fill(found, 0.0, 1.0) / found.sizes, 0.0
        )
    return Quadrature.of(found, np.arange(len(found.peers))).pseudo()


def _fill(found: Laplacian, own: float, pair: float) -> float:
    """1 / (own^2 + s) with s put on the constant vectors in place of the eigenvalue 0."""
    return 1 / (own**2 + pair**2 * max(1.0, float(found.matrix.diagonal().mean())))


def _inverse(found: Laplacian, own: float, pair: float) -> Array:
    """The inverse with the constant vectors lifted into the middle of the spectrum."""
    same = found.component[:, None] == found.component[None, :]
    lift = (1 / _fill(found, own, pair) - own**2) / found.sizes
    whole = (
        pair**2 * found.matrix.toarray()
        + own**2 * np.eye(len(found.peers))
        + np.where(same, lift[:, None], 0.0)
    )
    return np.asarray(np.linalg.inv(whole))


def _dense(found: Laplacian, own: float, pair: float) -> Array:
    inverse = np.diagonal(_inverse(found, own, pair))
    return _rounded_up(inverse + (1 / own**2 - _fill(found, own, pair)) / found.sizes, own)


def _rounded_up(diagonal: Array, own: float) -> Array:
    """More than rounding can have taken away, and never more than with own noise alone."""
    return np.asarray(np.minimum(diagonal * (1 + SLACK), 1 / own**2))


@dataclass(frozen=True, eq=False)
class Quadrature:
    """Nodes and weights of v's spectral measure, the null space apart: one Lanczos run serves all
    noises."""

    nodes: Array  # (lanes, steps)
    weights: Array  # (lanes, steps)
    constant: Array  # (lanes,) 1 / size of the component

    @classmethod
    def of(cls, found: Laplacian, lanes: Ints, steps: int = STEPS) -> Quadrature:
        parts = [_lanczos(found, lanes[i : i + CHUNK], steps) for i in range(0, len(lanes), CHUNK)]
        nodes, weights = (np.concatenate([part[k] for part in parts]) for k in (0, 1))
        return cls(nodes, weights, 1.0 / found.sizes[lanes])

    def at(self, own: float, pair: float) -> Array:
        """The diagonal for these noises, never below the truth."""
        rest = (self.weights / (own**2 + pair**2 * self.nodes)).sum(axis=1)
        return _rounded_up(self.constant / own**2 + rest, own)

    def pseudo(self) -> Array:
        """The diagonal of the pseudo-inverse of L by Gauss quadrature, converged on expanders."""
        safe = np.where(self.nodes > 1e-9, self.nodes, 1.0)
        return np.asarray(
            np.where(self.nodes > 1e-9, self.weights / safe, 0.0).sum(axis=1) * (1 + SLACK)
        )


def _lanczos(found: Laplacian, lanes: Ints, steps: int) -> tuple[Array, Array]:
    """Gauss-Radau nodes and weights, one node at 0, of the measures of e_v minus its constant
    part."""
    width = len(lanes)
    start = np.where(
        found.component[:, None] == found.component[lanes][None, :], -1.0 / found.sizes[lanes], 0.0
    )
    start[lanes, np.arange(width)] += 1.0
    total = (start**2).sum(axis=0)
    alpha, beta = np.zeros((steps, width)), np.zeros((steps, width))
    before, now = np.zeros_like(start), start / np.sqrt(np.where(total > 0, total, 1.0))
    for k in range(steps):
        image = np.asarray(found.matrix @ now)
        alpha[k] = np.einsum("ij,ij->j", now, image)
        image -= alpha[k] * now
        if k:
            image -= beta[k - 1] * before
        norm = np.sqrt(np.einsum("ij,ij->j", image, image))
        beta[k] = np.where(norm > 1e-9 * np.maximum(alpha[0], 1.0), norm, 0.0)
        image /= np.where(beta[k] > 0, beta[k], 1.0)
        before, now = now, image
    return _radau(alpha, beta, total)


def _radau(alpha: Array, beta: Array, total: Array) -> tuple[Array, Array]:
    """Eigenvalues and squared first components of the Jacobi matrices whose last entry puts a node
    at 0."""
    steps, width = alpha.shape
    jacobi = np.zeros((width, steps, steps))
    at = np.arange(steps)
    jacobi[:, at, at] = alpha.T
    jacobi[:, at[:-1], at[1:]] = jacobi[:, at[1:], at[:-1]] = beta[:-1].T
    pivot = alpha[0].copy()  # of the factorization of the matrix itself: det = 0 fixes the last one
    for k in range(1, steps):
        square = beta[k - 1] ** 2
        fixed = np.where(square > 0, square / np.where(pivot > 0, pivot, 1.0), 0.0)
        if k == steps - 1:
            jacobi[:, k, k] = np.where(square > 0, fixed, jacobi[:, k, k])
        pivot = np.maximum(alpha[k] - fixed, 0.0)
    nodes, vectors = np.linalg.eigh(jacobi)
    return np.maximum(nodes, 0.0), total[:, None] * vectors[:, 0, :] ** 2
