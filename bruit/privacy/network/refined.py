"""Block Lanczos in about 30 digits, for the observers whom double precision cannot decide.

Near saturation of slowly mixing graphs a Krylov space is so sensitive that rounding in double precision (even that of the weights
themselves) moves the losses by 1e-6 to 0.4. Here every matrix is an unevaluated sum of two doubles, made from the exact
rational weights, and products are split into slices of few bits, so that each product of slices is exact in ordinary
BLAS (Ozaki, Ogita, Oishi, Rump 2012, Error-free transformations of matrix multiplication); some 60 n r^2 operations.
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
from scipy.linalg import qr, solve_triangular
from scipy.sparse import csr_array

from bruit.arrays import Array, Ints
from bruit.privacy.network.span import KrylovSpan

if TYPE_CHECKING:
    from bruit.graphs.graph import Graph

SLICES = 5
"""Five slices of about 20 bits: 100 bits below the largest entry."""

LARGEST = 1.2e9
"""Largest n r^2 for which this is attempted: some seconds."""


@dataclass(frozen=True)
class Wide:
    """A matrix as high + low, each in double precision."""

    high: Array
    low: Array

    def plus(self, other: Array, low: Array | float = 0.0) -> "Wide":
        """This matrix plus other + low, rounded once to double-double."""
        total = self.high + other
        back = total - self.high
        error = (self.high - (total - back)) + (other - back) + (self.low + low)
        high = total + error
        return Wide(high, error - (high - total))

    def minus(self, other: "Wide") -> "Wide":
        """Their difference."""
        return self.plus(-other.high, -other.low)

    def at(self, columns: Ints) -> "Wide":
        """Some of the columns."""
        return Wide(self.high[:, columns], self.low[:, columns])

    def slices(self, terms: int) -> list[Array]:
        """Parts that add up to the matrix; inner products of two parts with so many terms are exact."""
        bits = (53 - max(1, int(terms)).bit_length()) // 2
        largest = float(np.abs(self.high).max(initial=0.0))
        unit = 2.0 ** (np.ceil(np.log2(largest)) if largest > 0.0 else 0.0)
        rest, parts = self, []
        for _ in range(SLICES):
            unit *= 2.0**-bits
            part = np.rint(rest.high / unit) * unit
            parts.append(part)
            rest = rest.plus(-part)
        return parts


@dataclass(frozen=True)
class Basis:
    """Orthonormal columns in blocks, squared norms of their rows, largest direction dropped, orthogonality error."""

    blocks: tuple[Array, ...]  # each (k, ...)
    values: Array  # (k,)
    dropped: float
    error: float

    def rows(self, places: Ints) -> Array:
        """The rows of some peers, all columns side by side."""
        return np.concatenate([block[places] for block in self.blocks], axis=1)


def refined_basis(graph: "Graph", span: KrylovSpan, profile: Ints, reverse: bool) -> Basis:
    """An orthonormal basis with exactly the given ranks, power by power; starts in reverse order if asked."""
    weights = _exact_slices(graph, span)
    starts = span.starts[::-1] if reverse else span.starts
    n, terms = span.peers.size, max(span.peers.size, int(profile[-1]))
    high = np.zeros((n, starts.size))
    high[starts, np.arange(starts.size)] = 1.0
    block, rank, dropped = Wide(high, np.zeros_like(high)), 0, 0.0
    basis = [np.zeros((n, int(profile[-1]))) for _ in range(SLICES)]
    columns = np.zeros((n, int(profile[-1])))
    for t in range(profile.size):
        kept = int(profile[t] - (profile[t - 1] if t else 0))
        if kept == 0:
            break
        if t:
            block = _mixed(weights, block, span.silent)
            known = [part[:, :rank] for part in basis]
            block, left = _directions(_outside(block, known, terms), kept)
            block = _orthonormal(_outside(block, known, terms), terms)
            dropped = max(dropped, left)
        for part, piece in zip(basis, block.slices(terms), strict=True):
            part[:, rank : rank + kept] = piece
        columns[:, rank : rank + kept] = block.high
        rank += kept
    error = float(np.abs(columns.T @ columns - np.eye(rank)).max())
    return Basis((columns,), (columns**2).sum(axis=1), dropped, error)


def _exact_slices(graph: "Graph", span: KrylovSpan) -> list[csr_array]:
    """The exact rational weights of the span's matrix, in slices; the diagonal is 1 - the rest of the row, in all digits."""
    whole = graph.weights
    exponents = np.zeros_like(graph.numerators) if graph.exponents is None else graph.exponents
    triples, where = np.unique(
        np.stack([graph.numerators, graph.denominators, exponents]), axis=1, return_inverse=True
    )
    exact = [Fraction(int(a), int(b) << int(c)) for a, b, c in triples.T]
    high = np.array([float(x) for x in exact])
    low = np.array([float(x - Fraction(float(x))) for x in exact])
    entries = Wide(high[where], low[where])
    rows = np.repeat(np.arange(graph.n), np.diff(whole.indptr))
    diagonal = np.flatnonzero(rows == whole.indices)
    rest = Wide(np.ones(graph.n), np.zeros(graph.n))
    for part in entries.slices(graph.n):
        rest = rest.plus(-np.add.reduceat(part, whole.indptr[:-1]))
    entries.high[diagonal], entries.low[diagonal] = rest.high, rest.low
    if span.entries is not None:
        entries = Wide(entries.high[span.entries], entries.low[span.entries])
    pattern = span.matrix
    return [
        csr_array((part, pattern.indices, pattern.indptr), shape=pattern.shape) for part in entries.slices(graph.n)
    ]


def _sum_of_products(left: list[Array] | list[csr_array], right: list[Array]) -> Wide:
    """left times right from their slices, small terms first."""
    total: Wide | None = None
    for level in reversed(range(SLICES)):
        for i in range(level + 1):
            term = np.asarray(left[i] @ right[level - i])
            total = Wide(term, np.zeros_like(term)) if total is None else total.plus(term)
    if total is None:
        raise AssertionError("a product needs at least one slice")
    return total


def _mixed(weights: list[csr_array], block: Wide, silent: Ints) -> Wide:
    product = _sum_of_products(weights, block.slices(weights[0].shape[0]))
    product.high[silent] = 0.0
    product.low[silent] = 0.0
    return product


def _outside(block: Wide, known: list[Array], terms: int) -> Wide:
    """What is left of a block beside an orthonormal basis given in slices."""
    coefficients = _sum_of_products([part.T for part in known], block.slices(terms))
    return block.minus(_sum_of_products(known, coefficients.slices(terms)))


def _directions(rest: Wide, kept: int) -> tuple[Wide, float]:
    """As many columns as the rank allows, nearly orthonormalized by a pivoted QR in double precision."""
    _, r, order = qr(rest.high, mode="economic", pivoting=True, check_finite=False)
    sizes = np.abs(np.diagonal(r))
    left = float(sizes[kept]) if kept < sizes.size else 0.0
    inverse = solve_triangular(r[:kept, :kept], np.eye(kept))
    chosen = rest.at(order[:kept])
    terms = rest.high.shape[0]
    return _sum_of_products(chosen.slices(terms), Wide(inverse, np.zeros_like(inverse)).slices(terms)), left


def _orthonormal(block: Wide, terms: int) -> Wide:
    """Newton's iteration X <- X (I - E / 2), E = X^T X - I: the error is squared each time and the span unchanged."""
    for _ in range(6):
        parts = block.slices(terms)
        gram = _sum_of_products([part.T for part in parts], parts)
        excess = gram.plus(-np.eye(gram.high.shape[0])).high
        if np.abs(excess).max() < 1e-26:
            break
        half = Wide(excess / 2, np.zeros_like(excess))
        block = block.minus(_sum_of_products(parts, half.slices(terms)))
    return block
