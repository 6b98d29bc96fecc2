"""A graph cut into blocks of about the same work, so that few rows cross: consecutive peers in the
order of the graph, or in an order that keeps neighbors near each other; whichever cuts less.

    rows that cross = sum over blocks of |peers of other blocks that are heard in it|
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from bruit.arrays import Ints
from bruit.errors import ConfigError
from bruit.graphs.graph import Graph

Columns: TypeAlias = NDArray[np.int32]
FEW = 0.05  # rows that cross, for each peer: with no more, no other order is looked for


class PeerGroup(NamedTuple):
    """The peers of one block, and those of others that are heard in it; both in order."""

    peers: Ints
    heard: Ints


class Cut(NamedTuple):
    """The blocks, what they were cut by, and how many rows cross in every exchange."""

    blocks: tuple[PeerGroup, ...]
    by: str
    rows: int


def cut(graph: Graph, count: int) -> Cut:
    """At most so many blocks, none of them empty.

    >>> from bruit.graphs import ring
    >>> cut(ring(12), 3).rows
    6
    """
    if graph.implicit:
        raise ConfigError(
            f"in {graph.name} everybody hears everybody, so all rows would cross; run it in one"
            " process"
        )
    count = min(count, graph.n)
    found = _consecutive(graph, np.arange(graph.n), count, "the order of its peers")
    if found.rows <= FEW * graph.n:
        return found
    from scipy.sparse.csgraph import reverse_cuthill_mckee  # loads all of scipy.linalg

    near = np.asarray(reverse_cuthill_mckee(graph.weights, symmetric_mode=True), np.int64)
    other = _consecutive(graph, near, count, "reverse Cuthill-McKee")
    return other if other.rows < found.rows else found


def _consecutive(graph: Graph, order: Ints, count: int, by: str) -> Cut:
    """Blocks of consecutive peers of that order, with about the same number of weights."""
    entries = np.cumsum(np.diff(graph.weights.indptr)[order])
    bounds = np.searchsorted(entries, entries[-1] * np.arange(1, count) / count) + 1
    bounds = np.maximum.accumulate(bounds - np.arange(1, count)) + np.arange(1, count)
    bounds = np.clip(bounds, np.arange(1, count), graph.n - count + np.arange(1, count))
    blocks = tuple(_block(graph, np.sort(peers)) for peers in np.split(order, bounds))
    return Cut(blocks, by, sum(len(block.heard) for block in blocks))


def _block(graph: Graph, peers: Ints) -> PeerGroup:
    inside = np.zeros(graph.n, bool)
    inside[peers] = True
    columns = rows_of(graph, peers)[1]
    return PeerGroup(peers, np.unique(columns[~inside[columns]]).astype(np.int64))


def rows_of(graph: Graph, peers: Ints) -> tuple[Ints, Columns, slice | Ints]:
    """Where the rows of these peers begin among themselves, whom they hear, and where that is
    among the weights."""
    matrix = graph.weights
    counts = np.diff(matrix.indptr)[peers].astype(np.int64)
    start = np.concatenate(([0], np.cumsum(counts)))
    if len(peers) and peers[-1] - peers[0] + 1 == len(peers):  # in a row: no copy
        where: slice | Ints = slice(int(matrix.indptr[peers[0]]), int(matrix.indptr[peers[-1] + 1]))
    else:
        begin = matrix.indptr[peers].astype(np.int64)
        where = np.repeat(begin - start[:-1], counts) + np.arange(start[-1])
    return start, np.asarray(matrix.indices[where]), where
