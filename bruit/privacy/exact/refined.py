"""Orthonormal bases in about 30 digits, for the observers whom double precision cannot decide.

Near saturation of slowly mixing graphs a Krylov space is so sensitive that rounding in double
precision (even that of the weights themselves) moves the losses by 1e-6 to 0.4; stacked rows of
changing graphs are worse. Here everything starts from exact rational numbers and is carried in
about 30 digits; some 60 n r^2 operations. How far the last digit still moves the result is told as
for doubles (bruit.privacy.exact.drift): the errors themselves are small numbers and need no more
digits than usual.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.sparse import csr_array

from bruit.arrays import Array, Ints
from bruit.privacy.exact.drift import HOPELESS, lengths, noise
from bruit.privacy.exact.span import KrylovSpan
from bruit.privacy.exact.twins import Cells, folded_wide
from bruit.privacy.exact.wide import (
    SLICES,
    Wide,
    directions,
    exact_weights,
    last_slice,
    orthonormal,
    outside,
    product_of,
    sparse_slices,
)

if TYPE_CHECKING:
    from bruit.graphs.graph import Graph

LARGEST = 1.2e9
"""Largest n r^2 for which this is attempted: some seconds."""

ROUNDINGS = 4.0
"""Errors of one step, in units of the last slice of each entry."""


@dataclass(frozen=True)
class Basis:
    """Orthonormal columns in blocks, squared norms of their rows, what rounding moved in each row,
    orthogonality error.

    The blocks are left out when they lay in borrowed memory, or when the basis was given up
    (infinite drift).
    """

    blocks: tuple[Array, ...]  # each (k, ...)
    values: Array  # (k,)
    drift: Array  # (k,)
    error: float
    rank: int


def given_up(n: int, rank: int) -> Basis:
    """No basis: rounding would have decided it."""
    return Basis((), np.zeros(n), np.full(n, np.inf), 1.0, rank)


def refined_basis(graph: "Graph", span: KrylovSpan, cells: Cells, profile: Ints) -> Basis:
    """A basis of a Krylov space in coordinates of cells with exactly the given ranks, power by
    power."""
    entries = exact_weights(graph)
    if span.entries is not None:
        entries = Wide(entries.high[span.entries], entries.low[span.entries])
    entries, pattern = folded_wide(span, cells, entries)
    growing = Growing(cells.count, int(profile[-1]))
    weights = sparse_slices(entries, pattern, growing.terms)
    plain = csr_array((entries.high, pattern.indices, pattern.indptr), shape=pattern.shape)
    high = np.zeros((cells.count, span.starts.size))
    high[cells.cell[span.starts], np.arange(span.starts.size)] = 1.0
    block = Wide(high, np.zeros_like(high))
    moved: Array = np.zeros_like(high)
    for t, kept in enumerate(np.diff(profile, prepend=0)):
        if kept == 0:
            break
        if t:
            block, moved = (
                product_of(weights, block.slices(growing.terms)),
                np.asarray(plain @ moved),
            )
        added = growing.add(block, moved, int(kept))
        if added is None:
            return given_up(cells.count, growing.rank)
        block, moved = added
    return growing.finished()


def refined_row_basis(rows: Wide, profile: Ints, group: int) -> Basis:
    """A basis of the space of given rows with exactly the given ranks, after each group of so many
    rows."""
    count, n = rows.high.shape
    # A power of two changes no digit.
    scale = (
        2.0
        ** -np.floor(np.log2(np.maximum(np.abs(rows.high).max(axis=1), np.finfo(float).tiny)))[
            :, None
        ]
    )
    growing = Growing(n, int(profile[-1]))
    growing.unit *= np.sqrt(
        count
    )  # rows are products themselves, of as many factors as there were steps
    rows = Wide(rows.high * scale, rows.low * scale)
    for number, kept in enumerate(np.diff(profile, prepend=0)):
        if kept:
            members = slice(number * group, min((number + 1) * group, count))
            block = Wide(rows.high[members].T, rows.low[members].T)
            if growing.add(block, np.zeros_like(block.high), int(kept)) is None:
                return given_up(n, growing.rank)
    return growing.finished()


class Growing:
    """An orthonormal basis that takes one block after the other, kept in slices for exact
    products."""

    def __init__(self, n: int, total: int) -> None:
        self.columns = np.zeros((n, total))
        self.slices = [np.zeros((n, total)) for _ in range(SLICES)]
        self.moved = np.zeros((n, total))
        self.rank = 0
        self.drawn = 0
        self.terms = max(n, total)
        self.unit = ROUNDINGS * last_slice(self.terms)

    def add(self, block: Wide, moved: Array, kept: int) -> tuple[Wide, Array] | None:
        """The given number of new orthonormal directions of a block; `moved` is what rounding did
        to it before.

        Returns both; None when rounding decides what the directions are.
        """
        known = [part[:, : self.rank] for part in self.slices]
        rest, along = outside(block, known, self.terms)
        found = directions(rest, kept, self.terms)
        if found is None:
            return None
        block, order, inverse = found
        block = orthonormal(outside(block, known, self.terms)[0], self.terms)
        new = slice(self.rank, self.rank + kept)
        for part, piece in zip(self.slices, block.slices(self.terms), strict=True):
            part[:, new] = piece
        self.columns[:, new] = block.high
        moved = moved - self.moved[:, : self.rank] @ along
        # Slices are cut at one place for a whole matrix: small entries keep no more digits than
        # large ones.
        moved += noise(np.full(len(moved), self.unit), moved.shape[1], self.drawn)
        self.drawn += moved.size
        self.rank += kept
        moved = moved[:, order] @ inverse
        moved -= self.columns[:, : self.rank] @ (self.columns[:, : self.rank].T @ moved)
        self.moved[:, new] = moved
        return (block, moved) if np.linalg.norm(moved) <= HOPELESS else None

    def finished(self) -> Basis:
        """The basis in double precision."""
        error = float(np.abs(self.columns.T @ self.columns - np.eye(self.rank)).max())
        return Basis(
            (self.columns,), (self.columns**2).sum(axis=1), lengths(self.moved), error, self.rank
        )
