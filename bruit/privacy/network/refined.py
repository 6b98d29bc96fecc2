"""Orthonormal bases in about 30 digits, for the observers whom double precision cannot decide.

Near saturation of slowly mixing graphs a Krylov space is so sensitive that rounding in double precision (even that of
the weights themselves) moves the losses by 1e-6 to 0.4; stacked rows of changing graphs are worse. Here everything
starts from exact rational numbers and is carried in about 30 digits; some 60 n r^2 operations. The coarse variant
keeps 5 bits less of everything, the given numbers included: how far the result then moves tells how far to trust it.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from bruit.arrays import Array, Ints
from bruit.privacy.network.span import KrylovSpan
from bruit.privacy.network.wide import (
    SLICES,
    Wide,
    directions,
    exact_weights,
    orthonormal,
    outside,
    product_of,
    sparse_slices,
)

if TYPE_CHECKING:
    from bruit.graphs.graph import Graph

LARGEST = 1.2e9
"""Largest n r^2 for which this is attempted: some seconds."""

ORTHONORMAL = 1e-12
"""Largest orthogonality error of a basis found by the short recurrence."""


@dataclass(frozen=True)
class Basis:
    """Orthonormal columns in blocks, squared norms of their rows, largest direction dropped, orthogonality error.

    The blocks are left out when they lay in borrowed memory.
    """

    blocks: tuple[Array, ...]  # each (k, ...)
    values: Array  # (k,)
    dropped: float
    error: float

    def rows(self, places: Ints) -> Array:
        """The rows of some peers, all columns side by side."""
        return np.concatenate([block[places] for block in self.blocks], axis=1)


def refined_basis(graph: "Graph", span: KrylovSpan, profile: Ints, coarse: bool) -> Basis:
    """A basis of a Krylov space with exactly the given ranks, power by power.

    W Q_t lies in the span of Q_0 .. Q_{t+1}, so by symmetry only its parts along Q_t and Q_{t-1} have to be removed.
    Rounding spoils that slowly, and thirty digits leave room for it; if the basis is not orthonormal in the end,
    everything is done again against all earlier blocks.
    """
    basis = _krylov_basis(graph, span, profile, coarse, short=True)
    return basis if basis.error <= ORTHONORMAL else _krylov_basis(graph, span, profile, coarse, short=False)


def _krylov_basis(graph: "Graph", span: KrylovSpan, profile: Ints, coarse: bool, short: bool) -> Basis:
    entries = exact_weights(graph)
    if span.entries is not None:
        entries = Wide(entries.high[span.entries], entries.low[span.entries])
    growing = Growing(span.peers.size, int(profile[-1]), coarse)
    weights = sparse_slices(entries, span.matrix, growing.terms)
    high = np.zeros((span.peers.size, span.starts.size))
    high[span.starts, np.arange(span.starts.size)] = 1.0
    block = Wide(high, np.zeros_like(high))
    ends = [0, 0, 0]  # of the blocks so far; the last but one begins where the one before it ends
    for t, kept in enumerate(np.diff(profile, prepend=0)):
        if kept == 0:
            break
        if t:
            block = product_of(weights, block.slices(growing.terms))
            block.high[span.silent], block.low[span.silent] = 0.0, 0.0
        block = growing.add(block, int(kept), since=ends[-3] if short else 0)
        ends.append(growing.rank)
    return growing.finished()


def refined_row_basis(rows: Wide, profile: Ints, group: int, coarse: bool) -> Basis:
    """A basis of the space of given rows with exactly the given ranks, after each group of so many rows."""
    count, n = rows.high.shape
    # A power of two changes no digit.
    scale = 2.0 ** -np.floor(np.log2(np.maximum(np.abs(rows.high).max(axis=1), np.finfo(float).tiny)))[:, None]
    growing = Growing(n, int(profile[-1]), coarse)
    rows = Wide(rows.high * scale, rows.low * scale).rounded(growing.terms)
    for number, kept in enumerate(np.diff(profile, prepend=0)):
        if kept:
            members = slice(number * group, min((number + 1) * group, count))
            growing.add(Wide(rows.high[members].T, rows.low[members].T), int(kept))
    return growing.finished()


class Growing:
    """An orthonormal basis that takes one block after the other, kept in slices for exact products."""

    def __init__(self, n: int, total: int, coarse: bool) -> None:
        self.columns = np.zeros((n, total))
        self.slices = [np.zeros((n, total)) for _ in range(SLICES)]
        self.rank = 0
        self.dropped = 0.0
        # Four times as many terms leave one bit less in each slice.
        self.terms = max(n, total) * (4 if coarse else 1)

    def add(self, block: Wide, kept: int, since: int = 0) -> Wide:
        """The given number of new orthonormal directions of a block, which has no part along columns before `since`."""
        known = [part[:, since : self.rank] for part in self.slices]
        block, left = directions(outside(block, known, self.terms), kept, self.terms)
        block = orthonormal(outside(block, known, self.terms), self.terms)
        new = slice(self.rank, self.rank + kept)
        for part, piece in zip(self.slices, block.slices(self.terms), strict=True):
            part[:, new] = piece
        self.columns[:, new] = block.high
        self.rank, self.dropped = self.rank + kept, max(self.dropped, left)
        return block

    def finished(self) -> Basis:
        """The basis in double precision."""
        error = float(np.abs(self.columns.T @ self.columns - np.eye(self.rank)).max())
        return Basis((self.columns,), (self.columns**2).sum(axis=1), self.dropped, error)
