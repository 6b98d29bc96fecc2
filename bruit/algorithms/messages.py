"""What travels between peers, in batches: edges, messages, inboxes and per-neighbor slots.

A batch is a set of *lanes*, one per peer; the simulator uses all peers at once, a real peer is a
batch of one. Received messages are a CSR matrix (lanes x senders) of mixing weights and an array of
payload rows, so that mixing is one sparse product whatever the batch.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from math import prod
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np
from scipy.sparse import csr_array

from bruit.arrays import Array, Bools, Ints
from bruit.errors import ConfigError
from bruit.graphs import Graph

Rows = Any  # an array, or a NamedTuple of arrays, with one row per message
S = TypeVar("S")


def spans(start: Ints, lanes: Ints) -> Ints:
    """Positions of the CSR entries of the chosen lanes, in order: O(entries)."""
    counts = start[lanes + 1] - start[lanes]
    before = np.concatenate(([0], np.cumsum(counts)))
    return np.repeat(start[lanes] - before[:-1], counts) + np.arange(before[-1])


@dataclass(frozen=True)
class Slots:
    """One row per (peer, neighbor), keyed by the neighbor's id so that degrees may change."""

    start: Ints  # (lanes + 1,)
    peers: Ints  # (slots,) neighbor of each slot, sorted within a lane
    rows: Array  # (slots, d)

    def replace(self, rows: Array) -> Slots:
        return Slots(self.start, self.peers, rows)

    def sums(self) -> Array:
        """Sum of each lane's rows  # (lanes, d)."""
        totals = np.zeros((len(self.start) - 1, self.rows.shape[1]))
        np.add.at(totals, np.repeat(np.arange(len(totals)), np.diff(self.start)), self.rows)
        return totals

    def find(self, peers: Ints) -> Ints:
        """Position of the slot that each lane keeps for the one peer named, -1 if it has none."""
        lanes = np.repeat(np.arange(len(self.start) - 1), np.diff(self.start))
        hits = np.flatnonzero(self.peers == peers[lanes])
        found = np.full(len(peers), -1, np.int64)
        found[lanes[hits]] = hits
        return found

    def on(self, edges: Edges) -> Slots:
        """The same rows laid out on other edges; neighbors without a slot start from zero."""
        if np.array_equal(edges.start, self.start) and np.array_equal(edges.peers, self.peers):
            return self
        base = 1 + max(self.peers.max(initial=0), edges.peers.max(initial=0))
        here = np.repeat(np.arange(len(self.start) - 1), np.diff(self.start)) * base + self.peers
        there = (
            np.repeat(np.arange(len(edges.start) - 1), np.diff(edges.start)) * base + edges.peers
        )
        rows = np.zeros((len(there), self.rows.shape[1]))
        place = np.searchsorted(here, there)
        known = (
            (place < len(here)) & (here[np.minimum(place, len(here) - 1)] == there)
            if len(here)
            else there < 0
        )
        rows[known] = self.rows[place[known]]
        return Slots(edges.start, edges.peers, rows)

    def with_those(self, part: Slots) -> Slots:
        """The same slots, with the rows of `part` for the neighbors that it has  # part <= self."""
        if np.array_equal(part.start, self.start):
            return self.replace(part.rows)
        lanes = np.arange(len(self.start) - 1)
        base = 1 + self.peers.max(initial=0)
        here = np.repeat(lanes, np.diff(self.start)) * base + self.peers
        there = np.repeat(lanes, np.diff(part.start)) * base + part.peers
        rows = self.rows.copy()
        rows[np.searchsorted(here, there)] = part.rows
        return self.replace(rows)

    def take(self, lanes: Ints) -> Slots:
        where = spans(self.start, lanes)
        counts = self.start[lanes + 1] - self.start[lanes]
        return Slots(np.concatenate(([0], np.cumsum(counts))), self.peers[where], self.rows[where])

    def put(self, lanes: Ints, new: Slots) -> None:
        where = spans(self.start, lanes)
        if not np.array_equal(self.peers[where], new.peers):
            raise ConfigError(
                "per-neighbor slots changed their neighbors inside a partial update; lay them out "
                "first"
            )
        self.rows[where] = new.rows


def take(state: S, lanes: Ints) -> S:
    """The rows of the chosen lanes, of an array, of slots, or of a NamedTuple of them."""
    if isinstance(state, np.ndarray):
        return cast(S, state[lanes])
    if isinstance(state, Slots):
        return cast(S, state.take(lanes))
    parts = cast(tuple[Any, ...], state)
    return type(state)(*(take(part, lanes) for part in parts))


def put(state: S, lanes: Ints, new: S) -> None:
    """Write the rows of the chosen lanes back, in place."""
    if isinstance(state, np.ndarray):
        state[lanes] = cast(Any, new)
    elif isinstance(state, Slots):
        state.put(lanes, cast(Slots, new))
    else:
        for part, fresh in zip(
            cast(tuple[Any, ...], state), cast(tuple[Any, ...], new), strict=True
        ):
            put(part, lanes, fresh)


def join(states: list[S]) -> S:
    """One batch from batches of one, in order."""
    first = states[0]
    if isinstance(first, np.ndarray):
        return cast(S, np.concatenate(cast(list[Array], states)))
    if isinstance(first, Slots):
        parts = cast(list[Slots], states)
        counts = np.concatenate([np.diff(part.start) for part in parts])
        start = np.concatenate(([0], np.cumsum(counts)))
        peers, rows = (
            np.concatenate([getattr(part, name) for part in parts]) for name in ("peers", "rows")
        )
        return cast(S, Slots(start, peers, rows))
    columns = zip(*cast(list[tuple[Any, ...]], states), strict=True)
    return type(first)(*(join(list(column)) for column in columns))


def row_bytes(rows: Rows) -> int:
    """Bytes of the payload of one message, its arrays as they travel: eight a number, one a truth
    value or byte."""
    parts = (rows,) if isinstance(rows, np.ndarray) else rows
    return sum(part.dtype.itemsize * prod(part.shape[1:]) for part in parts)


class Message(NamedTuple):
    """What `emit` returns: one row per sender (a broadcast) or one row per message copy."""

    rows: Rows
    each: bool


@dataclass(frozen=True)
class Edges:
    """To whom each lane speaks next: targets in CSR layout."""

    ids: Ints  # (lanes,) own peer id
    start: Ints  # (lanes + 1,)
    peers: Ints  # (copies,) target of each copy

    def broadcast(self, rows: Rows) -> Message:
        """The same row to every target: O(lanes d)."""
        return Message(rows, each=False)

    def each(self, slots: Slots) -> Message:
        """Its own row for every target."""
        return Message(slots.on(self).rows, each=True)

    def expand(self, rows: Array) -> Slots:
        """One copy per target of each lane's row, as slots."""
        return Slots(self.start, self.peers, np.repeat(rows, np.diff(self.start), axis=0))

    def take(self, lanes: Ints) -> Edges:
        """Those of some lanes."""
        start = np.concatenate(([0], np.cumsum(np.diff(self.start)[lanes])))
        return Edges(self.ids[lanes], start, self.peers[spans(self.start, lanes)])

    def none(self) -> Edges:
        """No target at all: the peers have spoken for the last time."""
        return Edges(self.ids, np.zeros_like(self.start), self.peers[:0])


@dataclass(frozen=True, kw_only=True)
class Links:
    """Who hears whom in one exchange: senders, weights, and where the senders' rows lie.

    `columns` locates the broadcast row of each sender, `own` is the weight a lane gives itself.
    `full` holds the same weights as one matrix with the lane's own row included, for broadcasts
    whose rows include the receivers.
    """

    ids: Ints  # (lanes,)
    start: Ints  # (lanes + 1,)
    senders: Ints  # (copies,)
    columns: Ints  # (copies,) row of the sender in a broadcast
    weights: Array  # (copies,)
    own: Array  # (lanes,)
    full: csr_array | None = None

    @classmethod
    def of_graph(cls, graph: Graph) -> Links:
        """All peers at once: broadcast rows are indexed by peer."""
        if graph.implicit:
            return AllLinks(graph=graph, ids=np.arange(graph.n))
        matrix = graph.weights
        owners = np.repeat(np.arange(graph.n), np.diff(matrix.indptr))
        off = matrix.indices != owners
        start = np.concatenate(([0], np.cumsum(graph.degrees)))
        senders = matrix.indices[off].astype(np.int64)
        return cls(
            ids=np.arange(graph.n),
            start=start,
            senders=senders,
            columns=senders,
            weights=matrix.data[off],
            own=graph.self_weights(),
            full=matrix,
        )

    @classmethod
    def alone(cls, n: int) -> Links:
        """Nobody hears anybody: what fused walks begin with, since a token asks for no slots."""
        return cls.alone_at(np.arange(n))

    @classmethod
    def alone_at(cls, lanes: Ints) -> Links:
        """The same for some lanes."""
        none = np.zeros(0, np.int64)
        return cls(
            ids=lanes,
            start=np.zeros(len(lanes) + 1, np.int64),
            senders=none,
            columns=none,
            weights=np.zeros(0),
            own=np.ones(len(lanes)),
        )

    @classmethod
    def of_peer(cls, graph: Graph, peer: int) -> Links:
        """One peer: broadcast rows are its neighbors' and its own, sorted by id, as it would
        receive them."""
        around, weights = graph.row(peer)
        off = around != peer
        full = csr_array(
            (weights, np.arange(len(around)), np.array([0, len(around)])), shape=(1, len(around))
        )
        start = np.array([0, int(off.sum())])
        return cls(
            ids=np.array([peer]),
            start=start,
            senders=around[off],
            columns=np.flatnonzero(off),
            weights=weights[off],
            own=weights[~off],
            full=full,
        )

    @classmethod
    def of_meetings(cls, lanes: Ints, partners: Ints) -> Links:
        """Each lane hears one partner and gives both values the weight one half (gossip:GO-3)."""
        half = np.full(len(lanes), 0.5)
        order = np.arange(len(lanes))
        return cls(
            ids=lanes,
            start=np.arange(len(lanes) + 1),
            senders=partners,
            columns=order,
            weights=half,
            own=half,
        )

    @property
    def copies(self) -> int:
        """How many messages are heard."""
        return len(self.senders)

    @property
    def edges(self) -> Edges:
        """Whom the lanes speak to: exchanges are mutual, so the senders are the targets."""
        return Edges(self.ids, self.start, self.senders)

    @cached_property
    def flip(self) -> Ints:
        """Where the copy (i hears j) lies among the copies ordered by sender; for all peers at
        once."""
        order = csr_array(
            (np.arange(len(self.senders)) + 1, self.senders, self.start), shape=(len(self.ids),) * 2
        )
        return order.T.tocsr().data.astype(np.int64) - 1

    def matrix(self, each: bool, rows: int) -> csr_array:
        """Weights of what was received, without the lane's own row  # (lanes, rows)."""
        columns = np.arange(len(self.senders)) if each else self.columns
        return csr_array((self.weights, columns, self.start), shape=(len(self.ids), rows))

    def without(self, dead: Bools) -> Links:
        """The exchange with some copies missing in both directions: their weight goes back to the
        receiver itself."""
        lanes = np.repeat(np.arange(len(self.ids)), np.diff(self.start))
        own = self.own + np.bincount(lanes, np.where(dead, self.weights, 0.0), len(self.ids))
        start = np.concatenate(([0], np.cumsum(np.bincount(lanes[~dead], minlength=len(self.ids)))))
        kept = Links(
            ids=self.ids,
            start=start,
            senders=self.senders[~dead],
            columns=self.columns[~dead],
            weights=self.weights[~dead],
            own=own,
        )
        if self.full is None:
            return kept
        mine = (
            self.ids
            if self.full.shape[0] > 1
            else np.setdiff1d(np.arange(self.full.shape[1]), self.columns)
        )
        diagonal = csr_array((own, mine, np.arange(len(own) + 1)), shape=self.full.shape)
        return replace(kept, full=csr_array(kept.matrix(False, self.full.shape[1]) + diagonal))


class _AllEdges(Edges):
    """Each of these lanes speaks to everybody else, in a graph whose links are too many to be
    listed."""

    def __init__(self, graph: Graph, ids: Ints) -> None:
        object.__setattr__(self, "ids", ids)
        object.__setattr__(self, "start", np.arange(len(ids) + 1) * (graph.n - 1))
        object.__setattr__(self, "_graph", graph)

    @property
    def peers(self) -> Ints:
        return cast(Ints, cast(Any, self)._graph.weights.indices)  # refused, with a sentence

    def take(self, lanes: Ints) -> Edges:
        return _AllEdges(cast(Any, self)._graph, self.ids[lanes])

    def none(self) -> Edges:
        return Links.alone_at(self.ids).edges


class AllLinks(Links):
    """Each of these lanes hears everybody else, in a graph whose links are too many to be listed:
    only what takes the mixed messages can be told them (`Inbox.mix`), anything that looks at single
    links is refused."""

    def __init__(self, graph: Graph, ids: Ints) -> None:
        edges = _AllEdges(graph, ids)
        for field, value in (
            ("ids", ids),
            ("start", edges.start),
            ("own", graph.self_weights()[ids]),
            ("graph", graph),
            ("full", _GraphOperator(graph) if len(ids) == graph.n else None),
        ):
            object.__setattr__(self, field, value)

    graph: Graph

    @property
    def senders(self) -> Ints:
        return self.edges.peers

    columns = weights = senders  # type: ignore[assignment]

    @property
    def copies(self) -> int:
        return int(self.start[-1])

    @property
    def edges(self) -> Edges:
        return _AllEdges(self.graph, self.ids)


@dataclass(frozen=True)
class _GraphOperator:
    """The weights of a graph as something to multiply with, and nothing else."""

    graph: Graph

    def __matmul__(self, rows: Array) -> Array:
        return self.graph.mix(rows)


@dataclass(frozen=True)
class Inbox:
    """What a batch of peers received in one exchange; `own` is what each lane itself had said.

    `late` holds flows W_ij (m_j - m_i) of earlier exchanges that arrive only now; mixing adds them.
    """

    links: Links
    rows: Rows
    each: bool
    own: Rows
    late: Array | None = None

    @property
    def senders(self) -> Ints:
        """Sender of each received copy."""
        return self.links.senders

    def aside(self) -> Inbox:
        """The same for whoever looks on: nothing that is noted there counts."""
        return self

    def copies(self, rows: Array | None = None) -> Array:
        """One row per received copy, of the payload or of one of its fields."""
        chosen: Array = self.rows if rows is None else rows
        return chosen if self.each else chosen[self.links.columns]

    def slots(self) -> Slots:
        """The received rows as per-neighbor slots."""
        return Slots(self.links.start, self.links.senders, self.copies())

    def only(self) -> Array:
        """The single row each lane received (meetings, tokens)."""
        if len(self.links.senders) != len(self.links.ids):
            raise ConfigError(
                "this algorithm expects exactly one message per peer and step; use Pairs or Walk"
            )
        return self.copies()

    def mix(self, own: Array | None = None) -> Array:
        """sum_j W_ij row_j, with the lane's own row taken from `own` when given (it never
        traveled)."""
        mixed = self._mixed(own)
        return mixed if self.late is None else mixed + self.late

    def whole(self, cell: int) -> Array:
        """sum_j (cell W_ij) row_j where all weights are multiples of 1/cell: a sum of rows, exact
        on a grid.

        The own row stands in for copies that are missing. What comes after its round is left out:
        it would be a part of another sum.
        """
        rows: Array = self.rows
        counts = np.rint(cell * self.links.weights)
        links = replace(self.links, weights=counts, own=np.rint(cell * self.links.own), full=None)
        return cast(
            Array, links.own[:, None] * self.own + links.matrix(self.each, len(rows)) @ rows
        )

    def _mixed(self, own: Array | None) -> Array:
        if own is None and not self.each and self.links.full is not None:
            return cast(Array, self.links.full @ self.rows)
        mine: Array = self.own if own is None else own
        return cast(
            Array,
            self.links.own[:, None] * mine
            + self.links.matrix(self.each, len(self.rows)) @ self.rows,
        )
