"""The space as the complement of its null vectors, when these are few and simple: no recurrence,
hardly any rounding.

    m(cell)  =  1 - |projection of the cell's unit vector on the null space|^2  <=  1 - the same for part of it

Near saturation of a sparse graph everything is known but a few local patterns, for instance on two
different branches that happen to share an eigenvalue; there a recurrence is at its worst and the
null space at its simplest. Its basis with unit entries at the free columns is found modulo three
primes and lifted to fractions of 20 bits; fractions found by chance have probability 2^-31 each
(gossip:REC-2).
"""

from typing import TYPE_CHECKING

import numpy as np
from scipy.linalg import qr

from bruit.arrays import Array
from bruit.privacy.exact.drift import UNIT
from bruit.privacy.exact.echelon import krylov_echelon
from bruit.privacy.exact.modular import THREE, Ranks
from bruit.privacy.exact.rational import from_residues
from bruit.privacy.exact.refined import Basis
from bruit.privacy.exact.span import KrylovSpan
from bruit.privacy.exact.twins import Cells

if TYPE_CHECKING:
    from bruit.graphs.graph import Graph

FEW = 32
"""Most null vectors that are lifted."""


def null_basis(
    graph: "Graph", span: KrylovSpan, cells: Cells, ranks: Ranks, whole: bool
) -> Basis | None:
    """A basis in coordinates of cells; None when there are many null vectors, or complicated ones.

    `whole` asks for the columns too, not only the lengths of their rows.
    """
    count = cells.count - ranks.total
    if count > FEW or ranks.exposed is None:
        return None
    found = _null_vectors(graph, span, cells, ranks)
    if found is None or found.shape[1] != count:
        return None
    away = qr(found, mode="economic", check_finite=False)[0]
    values = 1.0 - (away**2).sum(axis=1)
    columns = (
        (np.asarray(qr(found, check_finite=False)[0][:, count:], dtype=np.float64),)
        if whole
        else ()
    )
    # The unit entries bound the smallest singular value from below, by one over the largest root of
    # a size.
    drift = UNIT * np.sqrt(cells.count * cells.sizes.max()) * np.linalg.norm(found)
    return Basis(columns, np.maximum(values, 0.0), np.full(cells.count, drift), UNIT, ranks.total)


def _null_vectors(graph: "Graph", span: KrylovSpan, cells: Cells, ranks: Ranks) -> Array | None:
    """Columns that span the null space, in orthonormal coordinates of cells."""
    # Rows of the space are equal on the members of a cell: one column stands for all, and counts
    # for their number.
    names, first = np.unique(cells.cell, return_index=True)
    first = first[names >= 0]
    hidden = (
        np.flatnonzero(~ranks.exposed[first])
        if ranks.exposed is not None
        else np.arange(cells.count)
    )
    forms = [krylov_echelon(graph, span, prime).reduced(first[hidden]) for prime in THREE]
    pivots = forms[0][1]
    if any(not np.array_equal(other, pivots) for _, other in forms):
        return None
    free = np.setdiff1d(np.arange(hidden.size), pivots)
    vectors = np.zeros((cells.count, free.size))
    vectors[hidden[free], np.arange(free.size)] = 1.0
    residues = np.stack([rows[:, free] for rows, _ in forms]).astype(np.int64)
    for i, j in zip(*np.nonzero(residues.any(axis=0)), strict=True):
        weight = from_residues(residues[:, i, j].tolist(), THREE)
        if weight is None:
            return None
        vectors[hidden[pivots[i]], j] = -float(weight)
    return vectors / np.sqrt(cells.sizes)[:, None]
