"""Known linear forms modulo a prime, eliminated as they arrive: rank, exposed peers, and what else
they say.

    peer v is exposed   iff   e_v is in the row space   iff   every null vector is zero at v

so two random null vectors, found by back substitution, name the exposed peers: a hidden one is
missed with probability p^-2 only. When the rank modulo p is the true rank, an exposed peer is never
missed: the form with the pivots found modulo p has no denominator that p divides, and its reduction
modulo p still contains e_v (gossip:REC-2).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from bruit.arrays import Array, Bools, Ints
from bruit.privacy.exact.modular import NULLS, random_residues
from bruit.privacy.exact.span import KrylovSpan

if TYPE_CHECKING:
    from bruit.graphs.graph import Graph


@dataclass(frozen=True)
class Echelon:
    """A row echelon form modulo `prime` that grows in place, in the layout of
    bruit.privacy.exact.compiled.modular.insert."""

    prime: int
    rows: Array  # (capacity, width)
    columns: Ints  # (capacity,)
    groups: Ints  # (capacity, 3)
    state: Ints  # rank, groups

    @classmethod
    def empty(cls, prime: int, width: int, most: int) -> Echelon:
        """No row yet; `most` bounds the rank."""
        from bruit.privacy.exact.compiled.modular import GROUP

        capacity = most + GROUP
        rows, columns = np.zeros((capacity, width)), np.zeros(capacity, dtype=np.int64)
        return cls(
            prime,
            rows,
            columns,
            np.zeros((capacity, 3), dtype=np.int64),
            np.zeros(2, dtype=np.int64),
        )

    @property
    def rank(self) -> int:
        return int(self.state[0])

    def insert(self, rows: Array, most: int) -> Bools:
        """Add residues in [-prime/2, prime/2], one form a row, until the rank is `most`; which were
        independent."""
        from bruit.privacy.exact.compiled.modular import GROUP, insert

        new = np.zeros(len(rows), dtype=bool)
        for first in range(0, len(rows), GROUP):
            if self.rank == most:
                break
            block = np.array(rows[first : first + GROUP], order="C")
            alive = np.ones(len(block), dtype=bool)
            insert(
                block, self.rows, self.columns, self.groups, self.state, alive, float(self.prime)
            )
            new[first : first + GROUP] = alive
        return new

    def exposed(self) -> Bools:
        """The columns at which random null vectors are zero  # (width,)."""
        from bruit.privacy.exact.compiled.reduction import complete_null_vector

        zero = np.ones(self.rows.shape[1], dtype=bool)
        # Never zero at a free column, so that chance concerns pivots only.
        for x in random_residues(self.prime, NULLS, self.rows.shape[1]):
            complete_null_vector(
                self.rows, self.columns, self.groups, int(self.state[1]), x, float(self.prime)
            )
            zero &= x == 0.0
        return zero

    def reduced(self, columns: Ints) -> tuple[Array, Ints]:
        """The reduced row echelon form of the rows cut to some columns (in order), and its pivots
        within them.

        Cutting is projecting: it loses nothing when the columns left out are those of exposed
        peers.
        """
        from bruit.privacy.exact.compiled.reduction import clear_column

        rows = np.ascontiguousarray(self.rows[: self.rank][:, columns])
        pivots: list[int] = []
        for column in range(rows.shape[1]):
            rank = len(pivots)
            left = np.flatnonzero(rows[rank:, column])
            if left.size:
                rows[[rank, rank + left[0]]] = rows[[rank + left[0], rank]]
                scale = pow(int(rows[rank, column]), -1, self.prime)
                clear_column(
                    rows,
                    rank,
                    column,
                    float(scale if 2 * scale < self.prime else scale - self.prime),
                    float(self.prime),
                )
                pivots.append(column)
        return rows[: len(pivots)], np.array(pivots, dtype=np.int64)


def krylov_echelon(
    graph: Graph, span: KrylovSpan, prime: int, profile: Ints | None = None
) -> Echelon:
    """Eliminate M^t e_w, t = 0, 1, ..., w in the starts, until nothing new comes or everything is
    known.

    The ranks after each power are written to `profile`.
    """
    from bruit.privacy.exact.compiled.modular import multiply

    residues, matrix = span.residues(graph, prime), span.matrix
    found = Echelon.empty(prime, span.peers.size, span.most)
    block = np.zeros((span.peers.size, span.starts.size))
    block[span.starts, np.arange(span.starts.size)] = 1.0
    for t in range(span.powers):
        new = found.insert(block.T, span.most)
        if profile is not None:
            profile[t:] = found.rank
        if found.rank == span.most or not new.any():
            break
        source = np.ascontiguousarray(block[:, new])
        block = np.empty_like(source)
        multiply(matrix.indptr, matrix.indices, residues, source, block, float(prime))
        block[span.silent] = 0.0
    return found
