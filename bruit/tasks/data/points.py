"""Points: what peers show of themselves when a question is about pairs (perso:PAIR-1, LDP-5,
PAIR-10).

A peer owns one point of d numbers, or several, which then travel together with their weights 1/m: h
of two peers is the average over all pairs of their points. With a codebook of K points a peer shows
which of them is nearest, as a row with a single 1: the form that randomized response needs, and in
which noise of any mechanism can be undone, because

    E[(shown - uniform / K) / (1 - uniform)] = e_nearest       uniform: chance of a uniform answer, 0 for additive noise
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import product

import numpy as np

from bruit.arrays import Array, Ints
from bruit.digests import IF_SET
from bruit.errors import ConfigError
from bruit.tasks.counted import Counted

CHUNK = 1 << 20  # distances to codewords computed at once


@dataclass(frozen=True, eq=False)
class Points(Counted):
    """Points (r, d) with their owners 0..n-1; `codebook` (K, d), whose last `exact` columns must
    match exactly. `room`: these are the points of one peer of many, who all show room for so many
    points."""

    rows: Array
    owners: Ints
    codebook: Array | None = None
    exact: int = 0
    room: int | None = field(default=None, metadata=IF_SET)

    def __post_init__(self) -> None:
        if self.rows.ndim != 2 or 0 in self.rows.shape or self.owners.shape != self.rows.shape[:1]:
            raise ConfigError(
                f"points are {self.rows.shape} with owners {self.owners.shape};"
                " give rows (r, d), and one owner a row"
            )
        if not bool(np.isfinite(self.rows).all()):
            row = int(np.flatnonzero(~np.isfinite(self.rows).all(axis=1))[0])
            raise ConfigError(f"point {row} is {self.rows[row].tolist()}; remove such points")
        if self.owners.min() < 0 or np.bincount(self.owners).min() < 1:
            raise ConfigError("every peer needs a point; number the owners 0..n-1 without gaps")
        if self.room is None and self.peers < 2:
            raise ConfigError("a question about pairs needs at least two peers, found 1")
        if self.room is not None and self.held > self.room:
            raise ConfigError(
                f"this peer has {self.held} points, and there is room for {self.room}; agree on "
                "task.points, the most that any peer shows"
            )
        if self.codebook is not None:
            self._check_codebook(self.codebook)

    def _check_codebook(self, codebook: Array) -> None:
        if codebook.ndim != 2 or len(codebook) < 2 or codebook.shape[1] != self.rows.shape[1]:
            raise ConfigError(
                f"a codebook is at least two points of {self.rows.shape[1]} numbers, found "
                f"{codebook.shape}"
            )
        if not bool(np.isfinite(codebook).all()):
            raise ConfigError("a codebook holds finite numbers only; it has others")
        if self.most > 1:
            raise ConfigError(
                f"a peer shows one value of the codebook, but some own {self.most} points;"
                " give every peer one point"
            )

    @staticmethod
    def of(rows: Array, owners: Ints | None = None) -> Points:
        """Rows of numbers (a list of numbers is one column), one a peer unless owners are named."""
        table = np.asarray(rows, dtype=np.float64)
        table = table[:, None] if table.ndim == 1 else table
        named = np.arange(len(table)) if owners is None else np.asarray(owners, dtype=np.int64)
        return Points(table, named)

    def coded(self, codebook: Array, exact: int = 0) -> Points:
        """The same points, shown as values of a codebook."""
        return replace(self, codebook=np.asarray(codebook, dtype=np.float64), exact=exact)

    @property
    def peers(self) -> int:
        return int(self.owners.max()) + 1

    @property
    def columns(self) -> int:
        """Numbers of one point."""
        return int(self.rows.shape[1])

    @cached_property
    def held(self) -> int:
        """Points of the peer here that owns most."""
        return int(np.bincount(self.owners).max())

    @property
    def most(self) -> int:
        """Points that a peer shows room for: those of the peer that owns most."""
        return self.held if self.room is None else self.room

    @property
    def width(self) -> int:
        """Numbers a peer shows."""
        if self.codebook is not None:
            return len(self.codebook)
        return self.columns if self.most == 1 else self.most * (self.columns + 1)

    @cached_property
    def _shown(self) -> Array:
        """What all peers show, without noise  # (n, width)."""
        if self.codebook is not None:
            return np.eye(len(self.codebook))[self.codes()]
        order = np.argsort(self.owners, kind="stable")
        if self.most == 1:
            return self.rows[order]
        sizes = np.bincount(self.owners)
        place = np.arange(len(order)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        padded = np.zeros((self.peers, self.most, self.columns + 1))
        padded[self.owners[order], place, :-1] = self.rows[order]
        padded[self.owners[order], place, -1] = 1.0 / sizes[self.owners[order]]
        return padded.reshape(self.peers, self.width)

    def of_peer(self, peer: int) -> Points:
        """What one of the peers holds, alone."""
        mine = self.rows[self.owners == peer]
        return replace(self, rows=mine, owners=np.zeros(len(mine), np.int64), room=self.most)

    def show(self, ids: Ints) -> Array:
        """What these peers would show, without noise  # (k, width)."""
        if len(ids) and (ids.min() < 0 or ids.max() >= self.peers):
            guilty = int(ids[(ids < 0) | (ids >= self.peers)][0])
            raise ConfigError(
                f"peer {guilty} was asked for its point, but peers are 0..{self.peers - 1}"
            )
        return self._shown[ids]

    def read(self, shown: Array, uniform: float) -> tuple[Array, Array]:
        """The points behind what was shown, and their weights: (k or 1, m, d) and (k, m); weights
        may be negative."""
        if self.codebook is not None:
            return self.codebook[None], (shown - uniform / len(self.codebook)) / (1.0 - uniform)
        if self.most == 1:
            return shown[:, None, :], np.ones((len(shown), 1))
        rows = shown.reshape(len(shown), self.most, self.columns + 1)
        return rows[:, :, :-1], rows[:, :, -1]

    def codes(self) -> Ints:
        """The number of the nearest point of the codebook, for each peer, in order  # (n,)."""
        codebook = np.zeros((0, self.columns)) if self.codebook is None else self.codebook
        rows, found = (
            self.rows[np.argsort(self.owners, kind="stable")],
            np.empty(self.peers, np.int64),
        )
        step, free = max(1, CHUNK // len(codebook)), self.columns - self.exact
        for begin in range(0, len(rows), step):
            some = rows[begin : begin + step]
            apart = np.square(some[:, None, :free] - codebook[None, :, :free]).sum(axis=-1)
            apart[(some[:, None, free:] != codebook[None, :, free:]).any(axis=-1)] = np.inf
            found[begin : begin + step] = apart.argmin(axis=1)
            lost = np.flatnonzero(~np.isfinite(apart.min(axis=1)))
            if len(lost):
                raise ConfigError(
                    "no point of the codebook has the last numbers"
                    f" {some[lost[0], free:].tolist()}; add some that have"
                )
        return found


def grid_codebook(*levels: Sequence[float] | Array) -> Array:
    """All combinations of the given levels, one list a column  # (K, columns)."""
    return np.array(
        list(product(*(np.asarray(column, dtype=np.float64).tolist() for column in levels)))
    )


def middles(bins: int, low: float, high: float) -> Array:
    """The middles of equal bins: what numbers between low and high are rounded to  # (bins,)."""
    if bins < 2 or not low < high:
        raise ConfigError(
            f"numbers are rounded to at least 2 bins between low < high, found {bins}, {low}, "
            f"{high}"
        )
    return np.asarray(low + (high - low) * (np.arange(bins) + 0.5) / bins)
