"""What makes a matrix a gossip matrix: the seven checks, one boolean each (gossip:GM-1)."""

from __future__ import annotations

from dataclasses import astuple, dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.sparse import coo_array

from bruit.arrays import Ints

if TYPE_CHECKING:
    from bruit.graphs.graph import Weights

TOLERANCE = 1e-9


@dataclass(frozen=True, kw_only=True)
class Validity:
    """The seven booleans of gossip:GM-1; one matrix of a time-varying sequence needs only the first
    five."""

    nonnegative: bool
    symmetric: bool
    row_stochastic: bool
    col_stochastic: bool
    support_ok: bool
    irreducible: bool
    aperiodic: bool

    @property
    def ok(self) -> bool:
        """A gossip matrix on its own: repeated mixing reaches the average."""
        return all(astuple(self))

    @property
    def ok_in_sequence(self) -> bool:
        """Good enough for one round of a public sequence of graphs."""
        return all(astuple(self)[:5])


SMALL = 4096  # peers up to which a plain search is quick enough, and a real peer stays light


def components_of(pattern: Weights) -> tuple[int, Ints]:
    """How many parts never hear of each other, and which part each peer is in; directions do not
    count."""
    if pattern.shape[0] > SMALL:
        from scipy.sparse.csgraph import connected_components  # fast, but loads all of scipy.linalg

        count, labels = connected_components(pattern, directed=False)
        return int(count), labels.astype(np.int64)
    both = (abs(pattern) + abs(pattern.T)).tocsr()
    start, neighbors = both.indptr, both.indices
    part, count = np.full(pattern.shape[0], -1, np.int64), 0
    for first in range(len(part)):
        if part[first] < 0:
            reached = [first]
            part[first] = count
            while reached:
                v = reached.pop()
                fresh = neighbors[start[v] : start[v + 1]]
                fresh = fresh[part[fresh] < 0]
                part[fresh] = count
                reached.extend(fresh.tolist())
            count += 1
    return count, part


def validity(weights: Weights, edges: Ints | None = None) -> Validity:
    """Check any matrix; `edges` (E, 2) are those allowed, by default the stored entries of the
    matrix."""
    n = weights.shape[0]
    ones = np.ones(n)
    data = np.asarray(weights.data)
    gap = (weights - weights.T).tocsr()
    pattern = weights.copy()  # zeros are eliminated in place: not in the graph itself
    pattern.eliminate_zeros()
    parts = int(components_of(pattern)[0])
    return Validity(
        nonnegative=bool(np.all(data >= -TOLERANCE)),
        symmetric=bool(np.all(np.abs(gap.data) <= TOLERANCE)),
        row_stochastic=bool(np.all(np.abs(np.asarray(weights @ ones) - 1) <= TOLERANCE)),
        col_stochastic=bool(np.all(np.abs(np.asarray(weights.T @ ones) - 1) <= TOLERANCE)),
        support_ok=edges is None or _supported(weights, edges),
        irreducible=parts == 1,
        aperiodic=bool(np.any(weights.diagonal() > 0)) or _has_odd_cycle(pattern, parts),
    )


def _supported(weights: Weights, edges: Ints) -> bool:
    """Whether every positive weight off the diagonal lies on an allowed edge."""
    n = weights.shape[0]
    entries = coo_array(weights)
    rows, cols = entries.row.astype(np.int64), entries.col.astype(np.int64)
    used = (rows != cols) & (entries.data > TOLERANCE)
    allowed = np.concatenate([edges[:, 0] * n + edges[:, 1], edges[:, 1] * n + edges[:, 0]])
    return bool(np.isin((rows * n + cols)[used], allowed).all())


def _has_odd_cycle(pattern: Weights, parts: int) -> bool:
    """A component splits in two in the double cover (v, side) ~ (w, other side) exactly when it is
    bipartite."""
    n = pattern.shape[0]
    rows, cols = pattern.nonzero()
    cover = coo_array((np.ones(len(rows)), (rows, cols + n)), shape=(2 * n, 2 * n)).tocsr()
    return int(components_of(cover)[0]) < 2 * parts
