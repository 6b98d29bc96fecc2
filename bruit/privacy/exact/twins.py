"""Peers that no message of a view can tell apart: cells, and the view's space in coordinates of
cells.

Begin with every start of a Krylov space in a cell of its own and all other peers in one; then
separate peers whose exact weights to some cell add up differently, again and again (color
refinement). If f is constant on the cells of round t, then W f is constant on those of round t + 1.
So W^t e_w, t < T, is constant on the cells of round T - 1, and

    m(u)  <=  1 / (number of peers in the cell of u),      rank  <=  number of cells,

with equality for all u when the rank is the number of cells: these losses need no floating point at
all. For the rest, W may be replaced by C^T W C with C the orthonormal indicators of cells: its
Krylov space from the same starts is the same space (gossip:MUF-2). What twins differ in, x_a - x_b,
is outside of it in every digit. In the coordinates of peers rounding leaks into it, grows with
every step, and ends as a direction of its own in the place of a true one.

Weights are compared by random combinations modulo two primes, mixed into words of 64 bits: peers
that differ are taken for alike with probability 2^-60 or so, and twins are never separated.
"""

from dataclasses import dataclass
from fractions import Fraction
from math import isqrt
from typing import TYPE_CHECKING

import numpy as np
from scipy.sparse import csr_array

from bruit.arrays import Array, Ints
from bruit.privacy.exact.modular import PRIMES, centered, mixed_words
from bruit.privacy.exact.span import KrylovSpan
from bruit.privacy.exact.wide import Wide

if TYPE_CHECKING:
    from bruit.graphs.graph import Graph

Residues = tuple[Array, ...]
"""The weights of a graph modulo each of the primes, in [-p/2, p/2], aligned with the CSR data."""


@dataclass(frozen=True)
class Cells:
    """A partition of the peers of a span: `cell` is -1 for silent peers, `sizes` counts the
    members."""

    cell: Ints  # (k,)
    sizes: Ints  # (c,)

    @property
    def count(self) -> int:
        """How many cells there are: the largest rank the space can have."""
        return int(self.sizes.size)

    def spread(self, values: Array) -> Array:
        """Squared lengths in coordinates of cells as those of peers: each member has its part
        # (k,)."""
        parts = np.append(values / self.sizes, 0.0)
        return np.asarray(parts[self.cell])

    def rows(self, basis: Array, places: Ints) -> Array:
        """Rows of peers from the rows of their cells."""
        return np.asarray(
            basis[self.cell[places]] / np.sqrt(self.sizes[self.cell[places]])[:, None]
        )


def graph_residues(graph: "Graph") -> Residues:
    """The exact weights modulo both primes, made once for all observers."""
    return tuple(centered(graph.residues(prime).astype(np.float64), prime) for prime in PRIMES)


def singletons(span: KrylovSpan) -> Cells:
    """Every peer alone: always allowed, and right when there are no twins."""
    cell = np.full(span.peers.size, -1, dtype=np.int64)
    heard = np.setdiff1d(np.arange(span.peers.size), span.silent)
    cell[heard] = np.arange(heard.size)
    return Cells(cell, np.ones(heard.size, dtype=np.int64))


def has_twins(graph: "Graph", residues: Residues) -> bool:
    """Whether some peers look alike in the whole graph; if not, no observer who hears of everybody
    has twins.

    The cells of an observer, with itself as one more, keep the sums of all weights, and the
    coarsest such partition of the graph is found here, from a single cell.
    """
    none = np.zeros(0, dtype=np.int64)
    everybody = KrylovSpan(
        peers=np.arange(graph.n),
        matrix=graph.weights,
        entries=None,
        silent=none,
        starts=none,
        powers=graph.n,
    )
    return int(_refined(everybody, residues).max()) + 1 < graph.n


def cells_of(span: KrylovSpan, residues: Residues) -> Cells:
    """The cells after as many rounds as the space has powers."""
    color = _refined(span, residues)
    heard = np.ones(span.peers.size, dtype=bool)
    heard[span.silent] = False
    cell = np.full(span.peers.size, -1, dtype=np.int64)
    _, cell[heard] = np.unique(color[heard], return_inverse=True)
    return Cells(cell, np.bincount(cell[heard]))


def _refined(span: KrylovSpan, residues: Residues) -> Ints:
    """Colors of the peers: the starts have their own from the beginning, and the silent ones share
    one."""
    from bruit.privacy.exact.compiled.modular import multiply

    matrix, size = span.matrix, span.peers.size
    weights = [values if span.entries is None else values[span.entries] for values in residues]
    color = np.ones(size, dtype=np.int64)
    color[span.silent] = 0
    color[span.starts] = 2 + np.arange(span.starts.size)
    words = mixed_words(2 * (size + 2)).reshape(2, -1)
    drawn = [centered((words % np.uint64(prime)).astype(np.float64), prime).T for prime in PRIMES]
    odd, out = np.uint64(0x9E3779B97F4A7C15), np.empty((size, 2))
    for _ in range(span.powers - 1):
        before = int(np.unique(color).size)
        key = color.astype(np.uint64)
        for prime, values, numbers in zip(PRIMES, weights, drawn, strict=True):
            named = np.ascontiguousarray(numbers[color])
            named[span.silent] = 0.0
            multiply(matrix.indptr, matrix.indices, values, named, out, float(prime))
            out[span.silent] = 0.0
            for column in (out[:, 0], out[:, 1]):
                key = (key ^ (key >> np.uint64(29))) * odd + column.astype(np.int64).astype(
                    np.uint64
                )
        # Keys of one color differ by what the peers weigh; colors are places in a sorted list of
        # keys.
        _, color = np.unique(key, return_inverse=True)
        if int(color.max()) + 1 in (before, size):
            break
    return color


def folded(span: KrylovSpan, cells: Cells) -> csr_array:
    """C^T W C in doubles."""
    row, column, inside = _places(span, cells)
    values = span.matrix.data[inside] / np.sqrt(
        (cells.sizes[row] * cells.sizes[column]).astype(np.float64)
    )
    return csr_array((values, (row, column)), shape=(cells.count, cells.count))


def folded_wide(span: KrylovSpan, cells: Cells, entries: Wide) -> tuple[Wide, csr_array]:
    """C^T W C in about 30 digits: its entries, and their places."""
    row, column, inside = _places(span, cells)
    pattern = csr_array((np.ones(row.size), (row, column)), shape=(cells.count, cells.count))
    pattern.sort_indices()
    where = np.repeat(np.arange(cells.count), np.diff(pattern.indptr))
    key = row * cells.count + column
    place = np.searchsorted(where * cells.count + pattern.indices, key)
    total = Wide(np.zeros(pattern.nnz), np.zeros(pattern.nnz))
    for part in Wide(entries.high[inside], entries.low[inside]).slices(row.size):
        total = total.plus(np.bincount(place, part, pattern.nnz).astype(np.float64))
    members = (cells.sizes[where] * cells.sizes[pattern.indices]).astype(np.float64)
    _, first, again = np.unique(
        np.stack([total.high, total.low, members]), axis=1, return_index=True, return_inverse=True
    )
    exact = [_divided_by_root(total.high[k], total.low[k], int(members[k])) for k in first]
    high = np.array([float(x) for x in exact])
    low = np.array([float(x - Fraction(float(x))) for x in exact])
    return Wide(high[again], low[again]), pattern


def _places(span: KrylovSpan, cells: Cells) -> tuple[Ints, Ints, Ints]:
    """The cells of rows and columns of all entries between cells, and which entries these are."""
    row = cells.cell[np.repeat(np.arange(span.peers.size), np.diff(span.matrix.indptr))]
    column = cells.cell[span.matrix.indices]
    inside = np.flatnonzero((row >= 0) & (column >= 0))
    return row[inside], column[inside], inside


def _divided_by_root(high: float, low: float, members: int) -> Fraction:
    """(high + low) / sqrt(members) to 40 digits."""
    scale = 10**40
    return (Fraction(high) + Fraction(low)) * Fraction(isqrt(scale**2 // members), scale)
