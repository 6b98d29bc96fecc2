"""A graph: who may talk to whom, as one CSR matrix of mixing weights with its exact rational
twin."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from scipy.sparse import csr_array

from bruit.arrays import Array, Ints
from bruit.errors import ConfigError
from bruit.graphs.validity import Validity, components_of, validity
from bruit.notebook_table import html_table

if TYPE_CHECKING:
    import networkx as nx

    Weights: TypeAlias = csr_array[np.float64, tuple[int, int]]
else:
    # an annotation is made of types, never of strings: `ArrayLike | "..."` fails on Python 3.12
    Weights = csr_array


@dataclass(frozen=True, eq=False, kw_only=True)
class Graph:
    """Peers 0..n-1, their neighbors, and the weight W[v, w] that peer v gives to the value of w
    (gossip:GM-1).

    Off the diagonal W[v, w] = numerators / (denominators * 2^exponents) exactly, entry by entry of
    the CSR arrays; exponents is None when all are zero. The diagonal is 1 - (sum of the row)
    exactly: its entry is always stored, with numerator 0 and denominator 1 as placeholders, and its
    float is the rounded value. `group` is set when the weights are invariant under the abelian
    group Z_r0 x Z_r1 x ... acting on peers by mixed-radix addition, the last digit running fastest:
    peer = (digit_0 * r_1 + digit_1) * r_2 + ...
    """

    weights: Weights  # (n, n) sorted int32 indices, diagonal always stored
    numerators: Ints  # (entries,)
    denominators: Ints  # (entries,)
    name: str
    labels: tuple[str, ...] | None = None
    positions: Array | None = None  # (n, 2)
    group: tuple[int, ...] | None = None
    exponents: Ints | None = None  # (entries,)

    def __repr__(self) -> str:
        return f"Graph({self.name}: {self.n} peers, {self.edge_count} edges)"

    def _repr_html_(self) -> str:
        few, many = (int(self.degrees.min()), int(self.degrees.max())) if self.n else (0, 0)
        facts = [
            ("peers", self.n),
            ("links", self.edge_count),
            ("fewest neighbors", few),
            ("most neighbors", many),
        ]
        return html_table(f"Graph {self.name}", [*facts, ("connected", self.is_connected())])

    @property
    def n(self) -> int:
        return int(self.weights.shape[0])

    @property
    def entries(self) -> int:
        """Weights that are not zero, and those of everybody for itself."""
        return int(self.weights.nnz)

    @property
    def implicit(self) -> bool:
        """Whether its weights are too many to be made one by one; then only a rule says them."""
        return False

    def row(self, v: int) -> tuple[Ints, Array]:
        """Whom v hears, itself included, in increasing order, and with which weights."""
        self._check_peer(v)
        low, high = self.weights.indptr[v], self.weights.indptr[v + 1]
        return self.weights.indices[low:high].astype(np.int64), self.weights.data[low:high]

    @cached_property
    def cumulative(self) -> Array:
        """Cumulative weights within each row, aligned with the entries of the matrix: the law of a
        token at a peer."""
        total = np.cumsum(self.weights.data)
        before = np.concatenate(([0.0], total))[self.weights.indptr[:-1]]
        return np.asarray(total - np.repeat(before, np.diff(self.weights.indptr)))

    @cached_property
    def alike(self) -> bool:
        """Whether everybody gives everybody the same weight, so that a walk needs no weights at
        all."""
        return self.entries == self.n**2 and bool(
            self.weights.data.min() == self.weights.data.max()
        )

    def mix(self, rows: Array) -> Array:
        """W rows, one row a peer."""
        return np.asarray(self.weights @ rows)

    @property
    def edge_count(self) -> int:
        return (int(self.weights.nnz) - self.n) // 2

    @cached_property
    def degrees(self) -> Ints:
        """Number of neighbors of each peer, itself not counted."""
        return np.diff(self.weights.indptr).astype(np.int64) - 1

    @cached_property
    def _rows(self) -> Ints:
        """The row of every CSR entry."""
        return np.repeat(np.arange(self.n), np.diff(self.weights.indptr))

    @cached_property
    def _diagonal(self) -> Ints:
        """Where the diagonal lies among the CSR entries, one place a row."""
        return np.flatnonzero(self._rows == self.weights.indices)

    def neighbors(self, v: int) -> Ints:
        """The peers v exchanges messages with, in increasing order, without v."""
        self._check_peer(v)
        row: Ints = self.weights.indices[
            self.weights.indptr[v] : self.weights.indptr[v + 1]
        ].astype(np.int64)
        others: Ints = row[row != v]
        return others

    def edges(self) -> Ints:
        """Every edge once, as (a, b) with a < b, in lexicographic order."""
        upper = self._rows < self.weights.indices
        return np.stack(
            [self._rows[upper], self.weights.indices[upper].astype(np.int64)], axis=1
        )  # (edges, 2)

    def has_edge(self, a: int, b: int) -> bool:
        self._check_peer(b)
        return bool(np.any(self.neighbors(a) == b))

    def self_weights(self) -> Array:
        """The diagonal of W: what each peer keeps of its own value."""
        return self.weights.data[self._diagonal]

    def fraction(self, a: int, b: int) -> Fraction:
        """The exact weight W[a, b]; zero off the edges."""
        self._check_peer(a)
        self._check_peer(b)
        start, stop = self.weights.indptr[a], self.weights.indptr[a + 1]
        row = {int(self.weights.indices[k]): self._entry(k) for k in range(start, stop)}
        return 1 - sum(row.values(), Fraction(0)) if a == b else row.get(b, Fraction(0))

    def _entry(self, k: int) -> Fraction:
        shift = 0 if self.exponents is None else int(self.exponents[k])
        return Fraction(int(self.numerators[k]), int(self.denominators[k]) << shift)

    def residues(self, p: int) -> Ints:
        """The exact weights modulo the prime p < 2^31, aligned with the CSR entries; the diagonal
        is 1 - sum mod p."""
        if not 2 <= p < 2**31:
            raise ConfigError(f"residues need a prime between 2 and 2^31, found {p}")
        values = self.numerators % p * _map_unique(self.denominators, lambda q: _inverse(q, p)) % p
        if self.exponents is not None:
            half = _inverse(2, p)
            values = values * _map_unique(self.exponents, lambda e: pow(half, e, p)) % p
        sums = np.add.reduceat(values, self.weights.indptr[:-1])
        values[self._diagonal] = (1 - sums) % p
        return values

    def distances(self, v: int) -> Ints:
        """Number of hops from v to every peer; -1 where no path leads.

        Breadth-first order lists peers level by level; the depth of a peer is the length of its
        chain of predecessors, found by pointer doubling, so long paths cost as little as expanders.
        """
        self._check_peer(v)
        from scipy.sparse.csgraph import breadth_first_order  # loads all of scipy.linalg

        order, predecessors = breadth_first_order(self.weights, v, directed=True)
        place = np.zeros(self.n, dtype=np.int64)
        place[order] = np.arange(len(order))
        ancestor = np.zeros(len(order), dtype=np.int64)
        ancestor[1:] = place[predecessors[order[1:]]]
        depth = np.ones(len(order), dtype=np.int64)
        depth[0] = 0
        while ancestor.any():
            depth += depth[ancestor]
            ancestor = ancestor[ancestor]
        hops = np.full(self.n, -1, dtype=np.int64)
        hops[order] = depth
        return hops

    def components(self) -> Ints:
        """The number of the connected component of each peer, counted from 0."""
        return components_of(self.weights)[1]

    def is_connected(self) -> bool:
        return components_of(self.weights)[0] == 1

    def validity(self) -> Validity:
        """The seven checks of gossip:GM-1."""
        return validity(self.weights)

    def translate(self, v: int) -> Ints:
        """The automorphism p[u] = u - v of a group graph: loss[u, v] = loss0[p[u]] when loss0 is
        what peer 0 sees."""
        self._check_peer(v)
        if self.group is None:
            raise ConfigError(
                f"{self.name} has no translation group: only ring, complete, torus, hypercube and "
                "exponential graphs have one"
            )
        peers = np.arange(self.n)
        if set(self.group) <= {1, 2}:
            return peers ^ v
        moved, stride = np.zeros(self.n, dtype=np.int64), 1
        for radix in reversed(self.group):
            moved += (peers // stride - v // stride) % radix * stride
            stride *= radix
        return moved

    def to_networkx(self) -> nx.Graph[int]:
        """The same graph for networkx: peers as integers, edge attribute `weight`, peer attribute
        `label`."""
        import networkx as nx

        g: nx.Graph[int] = nx.Graph(name=self.name)
        g.add_nodes_from(
            (v, {"label": self.labels[v]} if self.labels else {}) for v in range(self.n)
        )
        upper = self._rows < self.weights.indices
        g.add_weighted_edges_from(
            (int(a), int(b), float(w))
            for (a, b), w in zip(self.edges(), self.weights.data[upper], strict=True)
        )
        return g

    def reweighted(self, kind: str = "max", plus: int = 1) -> Graph:
        """The same edges with other weights of gossip:GM-2."""
        from bruit.graphs.mixing import from_edges

        kept = [part for part in self.name.split(",") if not part.startswith(("kind=", "plus="))]
        # A group set for given weights says nothing of the degrees, but all group graphs are
        # regular, so it stays true.
        return from_edges(
            self.n,
            self.edges(),
            kind=kind,
            plus=plus,
            name=",".join(kept),
            labels=self.labels,
            positions=self.positions,
            group=self.group,
        )

    def without_edges(self, a: Ints, b: Ints) -> Graph:
        """The graph of a round in which the links {a_k, b_k} were down: their weight returns to
        both ends, exactly."""
        low, high = np.minimum(a, b), np.maximum(a, b)
        rows, columns = self._rows, self.weights.indices.astype(np.int64)
        dead = np.isin(
            np.minimum(rows, columns) * self.n + np.maximum(rows, columns), low * self.n + high
        )
        data, numerators = self.weights.data.copy(), self.numerators.copy()
        data[self._diagonal] += np.bincount(rows[dead], data[dead], self.n)
        kept = csr_array((data[~dead], (rows[~dead], columns[~dead])), shape=(self.n, self.n))
        exponents = None if self.exponents is None else self.exponents[~dead]
        return Graph(
            weights=kept,
            numerators=numerators[~dead],
            denominators=self.denominators[~dead],
            name=f"{self.name}-faults",
            labels=self.labels,
            positions=self.positions,
            group=None,
            exponents=exponents,
        )

    def fingerprint(self) -> str:
        """SHA-256 of the structure and the exact weights; names, labels and positions do not
        count."""
        return self._fingerprint

    @cached_property
    def _fingerprint(self) -> str:
        digest = hashlib.sha256(f"graph {self.n}".encode())
        exponents = self.exponents if self.exponents is not None else np.zeros(1, dtype=np.int64)
        for part in (
            self.weights.indptr,
            self.weights.indices,
            self.numerators,
            self.denominators,
            exponents,
        ):
            digest.update(np.ascontiguousarray(part, dtype="<i8").data)
        return digest.hexdigest()

    def _check_peer(self, v: int) -> None:
        if not 0 <= v < self.n:
            raise ConfigError(f"{self.name} has peers 0 to {self.n - 1}, found {v}")


def _inverse(q: int, p: int) -> int:
    try:
        return pow(q, -1, p)
    except ValueError:
        raise ConfigError(
            f"the weights have no residues mod {p}, which divides the denominator {q}; take "
            f"another prime"
        ) from None


def _map_unique(values: Ints, function: Callable[[int], int]) -> Ints:
    """A Python function applied once to each distinct value."""
    unique, where = np.unique(values, return_inverse=True)
    return np.array([function(int(x)) for x in unique], dtype=np.int64)[where]
