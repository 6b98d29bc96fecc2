"""What each block of a run is given: its peers, whom they hear, with which weights, and which of
their rows other blocks hear.

Rows of the own peers come first, in order; then those of each other block that is heard, block by
block. The weights of a row stay in the order of the graph, so that sums have the same bits as in
one process.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array

from bruit.algorithms.messages import Links
from bruit.arrays import Array, Ints
from bruit.graphs import Graph
from bruit.graphs.cut import Columns, Cut, rows_of
from bruit.runs.engines.held_part import HeldPart
from bruit.tasks.task import Task


@dataclass(frozen=True, kw_only=True)
class BlockShare:
    """One block. `near`: the blocks that are heard, and hear; `heard`: their peers, block by block;
    `said`: for each of them, which of the own rows it hears. `task`: what the own peers hold; None
    where all are given the whole."""

    peers: Ints
    heard: Ints
    start: Ints
    columns: Columns  # of the rows above
    weights: Array
    near: tuple[int, ...]
    said: tuple[Ints, ...]
    task: Task | None = None

    def links(self) -> Links:
        """Who hears whom in this block; as in the whole graph, with rows of this block's."""
        lanes = len(self.peers)
        everybody = np.concatenate((self.peers, self.heard)).astype(np.int32)
        off = self.columns != np.repeat(np.arange(lanes, dtype=np.int32), np.diff(self.start))
        columns = self.columns[off]
        full = csr_array(
            (self.weights, self.columns, self.start.astype(np.int32)),
            shape=(lanes, len(everybody)),
        )
        return Links(
            ids=self.peers,
            start=self.start - np.arange(lanes + 1),
            senders=everybody[columns],
            columns=columns,
            weights=self.weights[off],
            own=self.weights[~off],
            full=full,
        )


class BlockShares:
    """All of them, each made when it is asked for."""

    def __init__(self, graph: Graph, cut: Cut, task: Task) -> None:
        self._graph, self._cut, self._task = graph, cut, task
        self.copies = int(graph.degrees.sum())  # messages in one exchange
        self.divided = task.divided(np.arange(1)) is not None
        self._block = np.empty(graph.n, np.int32)
        for number, block in enumerate(cut.blocks):
            self._block[block.peers] = number
        self._heard = [self._by_block(block.heard) for block in cut.blocks]
        self.near = [tuple(int(k) for k in np.unique(self._block[one])) for one in self._heard]

    def _by_block(self, peers: Ints) -> Ints:
        return peers[np.argsort(self._block[peers], kind="stable")]

    def __call__(self, number: int) -> BlockShare:
        peers, heard = self._cut.blocks[number].peers, self._heard[number]
        start, columns, where = rows_of(self._graph, peers)
        row = np.empty(self._graph.n, np.int32)
        row[peers] = np.arange(len(peers))
        row[heard] = np.arange(len(peers), len(peers) + len(heard))
        return BlockShare(
            peers=peers,
            heard=heard,
            start=start,
            columns=row[columns],
            weights=self._graph.weights.data[where],
            near=self.near[number],
            said=tuple(self._said(number, other) for other in self.near[number]),
            task=self._held(peers),
        )

    def _held(self, peers: Ints) -> Task | None:
        inner = self._task.divided(peers)
        return None if inner is None else HeldPart(inner, peers, self._task.peers)

    def _said(self, number: int, other: int) -> Ints:
        """Which rows of a block another one hears, in the order in which that one has them."""
        heard = self._heard[other]
        rows: Ints = np.searchsorted(
            self._cut.blocks[number].peers, heard[self._block[heard] == number]
        )
        return rows
