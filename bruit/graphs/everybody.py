"""The complete graph without its n^2 weights: all links have one weight and all peers another, so
two fractions say it.

Degrees, rows, distances, components, validity and mixing are known in closed form. The matrix is
made when somebody asks for it, up to `MOST` peers; beyond, what needs it is refused with a
sentence, and the rest goes on in O(n).
"""

from __future__ import annotations

import hashlib
from fractions import Fraction
from functools import cached_property

import numpy as np

from bruit.arrays import Array, Ints
from bruit.errors import ConfigError
from bruit.graphs.graph import Graph, Weights
from bruit.graphs.validity import Validity

BLOCK = 1 << 17  # numbers of the matrix that are written down at once
MOST = 6_000  # peers whose n^2 weights are made when asked for: about a gigabyte


class Complete(Graph):
    """Everybody with everybody: W[v, w] = 1 / D off the diagonal, and (D - n + 1) / D on it."""

    _size: int
    _denominator: int
    _rule: tuple[str, int]

    def __init__(self, n: int, denominator: int, kind: str, plus: int, name: str) -> None:
        for field, value in (
            ("_size", n),
            ("_denominator", denominator),
            ("_rule", (kind, plus)),
            ("name", name),
            ("labels", None),
            ("positions", None),
            ("group", (n,)),
            ("exponents", None),
        ):
            object.__setattr__(self, field, value)

    @cached_property
    def _matrix(self) -> tuple[Weights, Ints, Ints]:
        from bruit.graphs.mixing import mixing

        if self.implicit:
            raise ConfigError(
                f"this needs the {self.n * self.n:,} weights of {self.name} one by one, which are "
                f"made"
                f" for up to {MOST} peers; walks, averages and questions about one pair do without"
            )
        return mixing(self.n, np.stack(np.triu_indices(self.n, 1), axis=1), *self._rule)

    @property
    def weights(self) -> Weights:
        return self._matrix[0]

    @property
    def numerators(self) -> Ints:
        return self._matrix[1]

    @property
    def denominators(self) -> Ints:
        return self._matrix[2]

    @property
    def implicit(self) -> bool:
        return self.n > MOST

    @property
    def n(self) -> int:
        return self._size

    @property
    def entries(self) -> int:
        return self.n * self.n

    @property
    def edge_count(self) -> int:
        return self.n * (self.n - 1) // 2

    @property
    def link_weight(self) -> float:
        """What everybody gives to everybody else."""
        return 1 / self._denominator

    @property
    def own_weight(self) -> float:
        """What everybody keeps of its own value."""
        return (self._denominator - self.n + 1) / self._denominator

    @cached_property
    def alike(self) -> bool:
        """Whether a peer gives itself what it gives to others: all weights are 1/n, and one step
        averages exactly."""
        return self._denominator == self.n

    @cached_property
    def degrees(self) -> Ints:
        return np.full(self.n, self.n - 1, np.int64)

    def row(self, v: int) -> tuple[Ints, Array]:
        self._check_peer(v)
        weights = np.full(self.n, self.link_weight)
        weights[v] = self.own_weight
        return np.arange(self.n), weights

    def mix(self, rows: Array) -> Array:
        """By one sum: off by at most n units of 2^-53 of the largest number, as a sum row by row
        is."""
        if not self.implicit:
            return super().mix(rows)
        mixed = (
            (self.own_weight - self.link_weight) * rows if not self.alike else np.zeros_like(rows)
        )
        mixed += self.link_weight * rows.sum(axis=0)
        return mixed

    def neighbors(self, v: int) -> Ints:
        self._check_peer(v)
        return np.delete(np.arange(self.n), v)

    def has_edge(self, a: int, b: int) -> bool:
        self._check_peer(a)
        self._check_peer(b)
        return a != b

    def self_weights(self) -> Array:
        return np.full(self.n, self.own_weight)

    def fraction(self, a: int, b: int) -> Fraction:
        self._check_peer(a)
        self._check_peer(b)
        return Fraction(self._denominator - self.n + 1 if a == b else 1, self._denominator)

    def distances(self, v: int) -> Ints:
        self._check_peer(v)
        hops = np.ones(self.n, np.int64)
        hops[v] = 0
        return hops

    def components(self) -> Ints:
        return np.zeros(self.n, np.int64)

    def is_connected(self) -> bool:
        return True

    def validity(self) -> Validity:
        """All hold, but for the two peers that only swap their values (plus = 0)."""
        return Validity(
            nonnegative=True,
            symmetric=True,
            row_stochastic=True,
            col_stochastic=True,
            support_ok=True,
            irreducible=True,
            aperiodic=self.n != 2 or self._denominator > self.n - 1,
        )

    @cached_property
    def _fingerprint(self) -> str:
        """That of the matrix, which is written down row by row; beyond `MOST` peers that of the
        rule."""
        if self.implicit:
            return hashlib.sha256(
                f"complete graph {self.n}, weights 1/{self._denominator}".encode()
            ).hexdigest()
        digest, n = hashlib.sha256(f"graph {self.n}".encode()), self.n
        digest.update(np.arange(0, n * n + 1, n, dtype="<i8").data)
        everybody, block = np.arange(n, dtype="<i8"), max(1, BLOCK // n)
        for rest, diagonal in (
            (everybody, None),
            (np.ones(n, "<i8"), 0),
            (np.full(n, self._denominator, "<i8"), 1),
        ):
            for low in range(0, n, block):
                rows = np.tile(rest, (min(block, n - low), 1))
                if diagonal is not None:
                    rows[np.arange(len(rows)), low + np.arange(len(rows))] = diagonal
                digest.update(rows.data)
        digest.update(np.zeros(1, dtype="<i8").data)
        return digest.hexdigest()
