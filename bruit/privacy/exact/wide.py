"""Matrices in about 30 digits: unevaluated sums of two doubles, multiplied exactly slice by slice
in ordinary BLAS.

A product of slices with few enough bits is exact (Ozaki, Ogita, Oishi, Rump 2012, Error-free
transformations of matrix multiplication), so twenty-five digits cost fifteen ordinary products
instead of a slow arithmetic of its own.
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
from scipy.linalg import qr, solve_triangular
from scipy.sparse import csr_array

from bruit.arrays import Array, Ints

if TYPE_CHECKING:
    from bruit.graphs.graph import Graph

FUSED = 4096
"""Entries from which sums of two doubles are taken by compiled loops, equal to the digit."""

SLICES = 5
"""Five slices of about 20 bits: 100 bits below the largest entry."""


TINY = 1e-14
"""Smallest part of the largest remainder that a QR in doubles can still tell from nothing."""


def slice_bits(terms: int) -> int:
    """Bits of a slice that leave inner products of so many terms exact."""
    return (53 - (SLICES * max(1, int(terms))).bit_length()) // 2


def last_slice(terms: int) -> float:
    """The unit of the last slice, relative to the largest entry."""
    return float(2.0 ** -(SLICES * slice_bits(terms)))


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
        """Parts that add up to the matrix; sums of five inner products of parts, with so many terms
        each, are exact."""
        bits = slice_bits(terms)
        largest = float(np.abs(self.high).max(initial=0.0))
        unit = 2.0 ** (np.ceil(np.log2(largest)) if largest > 0.0 else 0.0)
        if self.high.size >= FUSED:
            from bruit.privacy.exact.compiled.wide import sliced

            return list(sliced(self.high, self.low, unit, 2.0**-bits, SLICES))
        rest, parts = self, []
        for _ in range(SLICES):
            unit *= 2.0**-bits
            part = np.rint(rest.high / unit) * unit
            parts.append(part)
            rest = rest.plus(-part)
        return parts


def exact_weights(graph: "Graph") -> Wide:
    """The exact rational weights, entry by entry of the CSR data; the diagonal is 1 - the rest of
    its row."""
    whole = graph.weights
    exponents = np.zeros_like(graph.numerators) if graph.exponents is None else graph.exponents
    triples = np.stack([graph.numerators, graph.denominators, exponents])
    if triples.min() >= 0 and triples[:2].max() < 2**24 and triples[2].max() < 2**15:
        keys = triples[0] << 39 | triples[1] << 15 | triples[2]
        _, first, where = np.unique(keys, return_index=True, return_inverse=True)
    else:
        _, first, where = np.unique(triples, axis=1, return_index=True, return_inverse=True)
    exact = [Fraction(int(a), int(b) << int(c)) for a, b, c in triples[:, first].T]
    high = np.array([float(x) for x in exact])
    low = np.array([float(x - Fraction(float(x))) for x in exact])
    entries = Wide(high[where], low[where])
    rows = np.repeat(np.arange(graph.n), np.diff(whole.indptr))
    diagonal = np.flatnonzero(rows == whole.indices)
    rest = Wide(np.ones(graph.n), np.zeros(graph.n))
    for part in entries.slices(graph.n):
        rest = rest.plus(-np.add.reduceat(part, whole.indptr[:-1]))
    entries.high[diagonal], entries.low[diagonal] = rest.high, rest.low
    return entries


def sparse_slices(entries: Wide, pattern: csr_array, terms: int) -> list[csr_array]:
    """A sparse matrix in slices, from its entries and their places."""
    parts = entries.slices(terms)
    return [
        csr_array((part, pattern.indices, pattern.indptr), shape=pattern.shape) for part in parts
    ]


def product_of(left: list[Array] | list[csr_array], right: list[Array]) -> Wide:
    """left times right from their slices, small terms first."""
    # All right slices side by side: few wide products instead of many thin ones. Products of one
    # level share their
    # unit, and the slices leave room for their sum: these additions are exact.
    width, side = right[0].shape[1], np.concatenate(right, axis=1)
    totals: list[Array] = []
    for i in range(SLICES):
        part: Array | csr_array = left[i]
        found = np.asarray(part @ side[:, : (SLICES - i) * width])
        for j in range(SLICES - i):
            block = found[:, j * width : (j + 1) * width]
            if i == 0:
                totals.append(block)
            else:
                totals[i + j] = totals[i + j] + block
    levels = totals[::-1]
    if levels[0].size >= FUSED:
        from bruit.privacy.exact.compiled.wide import summed

        return Wide(*summed(levels))
    total = Wide(levels[0], np.zeros_like(levels[0]))
    for term in levels[1:]:
        total = total.plus(term)
    return total


def outside(block: Wide, known: list[Array], terms: int) -> tuple[Wide, Array]:
    """What is left of a block beside an orthonormal basis given in slices, and the coefficients
    along it."""
    coefficients = product_of([part.T for part in known], block.slices(terms))
    return block.minus(product_of(known, coefficients.slices(terms))), coefficients.high


def directions(rest: Wide, kept: int, terms: int) -> tuple[Wide, Ints, Array] | None:
    """As many columns as the rank allows, nearly orthonormalized by a pivoted QR in double
    precision.

    Also how: rest at the columns `order`, times `inverse`. None when there are not so many.
    """
    _, r, order = qr(rest.high, mode="economic", pivoting=True, check_finite=False)
    sizes = np.abs(np.diagonal(r))
    if not (sizes.size >= kept and np.isfinite(sizes).all() and sizes[kept - 1] > TINY * sizes[0]):
        return None
    inverse = solve_triangular(r[:kept, :kept], np.eye(kept), check_finite=False)
    chosen = np.asarray(order[:kept], dtype=np.int64)
    block = product_of(
        rest.at(chosen).slices(terms), Wide(inverse, np.zeros_like(inverse)).slices(terms)
    )
    return block, chosen, inverse


def orthonormal(block: Wide, terms: int) -> Wide:
    """Newton's iteration X <- X (I - E / 2), E = X^T X - I: the error is squared each time and the
    span unchanged."""
    for _ in range(6):
        parts = block.slices(terms)
        gram = product_of([part.T for part in parts], parts)
        excess = gram.plus(-np.eye(gram.high.shape[0])).high
        if np.abs(excess).max() < 1e-26:
            break
        half = Wide(excess / 2, np.zeros_like(excess))
        block = block.minus(product_of(parts, half.slices(terms)))
    return block
