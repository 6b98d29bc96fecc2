"""A crowd: many independent copies of one protocol, run as one batch.

A copy is n lanes; the kernels see the peers' own numbers, the door sees lanes, so every copy reads its own side of the
data and draws its own noise. Meetings, tokens and faults are those of one trace, shared by all copies: guarantees hold
given what happened. What the observers receive and draw is kept as one array, not as messages.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from bruit.algorithms.algorithm import Algorithm
from bruit.algorithms.home import Address, Door, Home
from bruit.algorithms.messages import Edges, Inbox, Links, Message, put, take
from bruit.algorithms.schedules import Pairs, Rounds, Wakes, Walk
from bruit.arrays import Array, Bools, Ints
from bruit.engines.bulk import rows_of
from bruit.engines.engine import Exchanges
from bruit.errors import ConfigError
from bruit.graphs import Graph, GraphSequence
from bruit.tasks.task import Task
from bruit.trace import Trace


@dataclass
class WatchedDoor(Door):
    """A door that keeps what the observers themselves drew: they know their own releases and noises.

    A noise is kept in units of the release's own (its level divided out), as `bruit.engines.forms` counts it."""

    inner: Door
    peers: int
    copies: int
    observers: tuple[int, ...]
    own: list[Array] = field(default_factory=list)  # each (copies, d)

    @property
    def dim(self) -> int:
        return self.inner.dim

    @property
    def sigma(self) -> float:
        return self.inner.sigma

    def _kept(self, lanes: Ints, rows: Array, levels: Array | None = None) -> Array:
        mine = np.isin(lanes % self.peers, self.observers)
        seen = rows[mine]
        if levels is not None:
            level = levels[mine, None]
            seen = np.where(level > 0, seen * self.sigma / np.where(level > 0, level, 1.0), 0.0)
        if len(seen):
            each = seen.reshape(self.copies, -1, seen.shape[1])
            self.own.extend(each[:, k] for k in range(each.shape[1]))
        return rows

    def value(self, at: Address) -> Array:
        return self._kept(at.ids, self.inner.value(at))

    def value_with(self, at: Address, levels: Array) -> Array:
        return self._kept(at.ids, self.inner.value_with(at, levels))

    def gradient(self, at: Address, x: Array, batch: int | None) -> Array:
        return self._kept(at.ids, self.inner.gradient(at, x, batch))

    def prox(self, at: Address, x: Array, rho: Array) -> Array:
        return self._kept(at.ids, self.inner.prox(at, x, rho))

    def envelope_gradient(self, at: Address, x: Array, rho: Array, level: float = 1.0) -> Array:
        return self._kept(at.ids, self.inner.envelope_gradient(at, x, rho, level))

    def descent(self, at: Address, x: Array, rate: float, count: int, batch: int | None) -> Array:
        return self._kept(at.ids, self.inner.descent(at, x, rate, count, batch))

    def keep(self, at: Address, query: Callable[[Task, Ints], Array]) -> Array:
        return self.inner.keep(at, query)

    def choice(self, at: Address, count: int) -> Array:
        return self.inner.choice(at, count)

    def common(self, clock: Ints, count: int) -> Array:
        return self.inner.common(clock, count)

    def noise(self, at: Address, sigma: Array, width: int) -> Array:
        return self._kept(at.ids, self.inner.noise(at, sigma, width), sigma)

    def copy_noise(self, at: Address, edges: Edges, sigma: Array, width: int) -> Array:
        counts = np.diff(edges.start)
        rows = self.inner.copy_noise(at, edges, sigma, width)
        return self._kept(np.repeat(at.ids, counts), rows, np.repeat(sigma, counts))

    def pair_noise(self, at: Address, edges: Edges, sigma: float, width: int) -> Array:
        lanes = np.repeat(at.ids, np.diff(edges.start))
        ends = Edges(at.ids, edges.start, edges.peers + (lanes // self.peers) * self.peers)  # of the same copy
        return self._kept(lanes, self.inner.pair_noise(at, ends, sigma, width))


class _CrowdHome(Home):
    """Kernels see peers, the door sees lanes."""

    def __init__(self, lanes: Ints, door: Door, ids: Ints, step: Ints, clock: Ints, last: Bools, edges: Edges,
                 public: Any) -> None:  # fmt: skip
        super().__init__(door, ids, step, clock, last, edges, public)
        self._lanes = lanes

    def _address(self) -> Address:
        return super()._address()._replace(ids=self._lanes)


def tiled(links: Links, copies: int, peers: int) -> Links:
    """The exchange of every copy at once: block-diagonal weights, the peers' own numbers as ids."""
    lanes = np.repeat(np.arange(copies), len(links.senders))
    start = np.concatenate(([0], np.cumsum(np.tile(np.diff(links.start), copies))))
    full = None
    if links.full is not None:
        entries, rows = links.full.nnz, links.full.shape[0]
        indptr = np.concatenate(([0], np.cumsum(np.tile(np.diff(links.full.indptr), copies))))
        columns = np.tile(links.full.indices, copies) + np.repeat(np.arange(copies), entries) * peers
        full = csr_array((np.tile(links.full.data, copies), columns, indptr), shape=(rows * copies, peers * copies))
    return Links(np.tile(links.ids, copies), start, np.tile(links.senders, copies),
                 np.tile(links.columns, copies) + lanes * peers, np.tile(links.weights, copies),
                 np.tile(links.own, copies), full)  # fmt: skip


@dataclass
class Crowd:
    """`copies` runs of one algorithm, the first of them number `first`; `views` gives what the observers saw."""

    algorithm: Algorithm[Any]
    graph: Graph | GraphSequence
    door: Door
    steps: int
    observers: tuple[int, ...]
    copies: int
    first: int = 0
    given: Trace | None = None
    heard: list[Array] = field(default_factory=list)

    def views(self) -> Array:
        """One row per copy: the observers' own releases and noises, then what they received  # (copies, rows, d)."""
        self.public = self.algorithm.prepare(self.graph, self.steps)
        self.n = self.graph.n
        self.watched = WatchedDoor(self.door, self.n, self.copies, self.observers)
        self.heard = []
        schedule = self.algorithm.schedule
        if isinstance(schedule, Rounds):
            self._rounds()
        elif isinstance(schedule, Pairs | Walk) and self.given is not None:
            (self._pairs if isinstance(schedule, Pairs) else self._walk)(self.given)
        elif isinstance(schedule, Wakes) and self.given is not None:
            self._wakes(self.given)
        else:
            kind = type(schedule).__name__.lower()
            raise ConfigError(f"an audit repeats rounds, meetings, a walk or wake-ups; {self.algorithm.name()} follows "
                              f"{kind}")  # fmt: skip
        rows = [*self.watched.own, *self.heard]
        width = max((row.shape[1] for row in rows), default=self.door.dim)
        padded = [np.pad(row, ((0, 0), (0, width - row.shape[1]))) for row in rows]
        return np.stack(padded, axis=1) if rows else np.zeros((self.copies, 0, width))

    def _home(self, peers: Ints, step: Ints, clock: Ints, last: bool, edges: Edges) -> Home:
        """The home of these peers in every copy, copy after copy."""
        lanes = (np.arange(self.first, self.first + self.copies)[:, None] * self.n + peers).ravel()
        every = self.copies * len(peers)
        return _CrowdHome(lanes, self.watched, np.tile(peers, self.copies), np.tile(step, self.copies),
                          np.tile(clock, self.copies), np.full(every, last), edges, self.public)  # fmt: skip

    def _emit(self, state: Any, edges: Edges) -> Message:
        return self.algorithm.emit(self.algorithm.blank(state), edges)

    def _rounds(self) -> None:
        everybody, zero = np.arange(self.n), np.zeros(self.n, np.int64)
        faults = self.given.faults if self.given is not None else Trace(self.n, self.steps).faults
        exchanges = Exchanges(self.graph, faults)
        small = exchanges.at(0)
        links = tiled(small, self.copies, self.n)
        begin = links.edges if self.steps else links.edges.none()
        state = self.algorithm.start(self._home(everybody, zero, zero, self.steps == 0, begin))
        for number in range(self.steps):
            message = self._emit(state, links.edges)
            inbox = self._delivered(small, links, message)
            self._watch(small, message.each, inbox)
            last = number + 1 == self.steps
            coming = small if last else exchanges.at(number + 1)
            following = links if coming is small else tiled(coming, self.copies, self.n)
            edges = links.edges.none() if last else following.edges
            count = np.full(self.n, number + 1, np.int64)
            state = self.algorithm.absorb(state, inbox, self._home(everybody, count, count, last, edges))
            small, links = coming, following

    def _delivered(self, small: Links, links: Links, message: Message) -> Inbox:
        if not message.each:
            return Inbox(links, message.rows, False, message.rows)
        entries = len(small.senders)
        flip = np.tile(small.flip, self.copies) + np.repeat(np.arange(self.copies), entries) * entries
        return Inbox(links, take(message.rows, flip), True, None)

    def _watch(self, small: Links, each: bool, inbox: Inbox) -> None:
        """What outsiders told the observers, one array per message, in the order of a view."""
        receivers = np.repeat(small.ids, np.diff(small.start))
        told = np.isin(receivers, self.observers) & ~np.isin(small.senders, self.observers)
        stride = len(small.senders) if each else self.n
        for entry in np.flatnonzero(told):
            row = int(entry if each else small.columns[entry])
            self.heard.append(flat_rows(take(inbox.rows, np.arange(self.copies) * stride + row)))

    def _pairs(self, given: Trace) -> None:
        state = self._begin()
        static, count = Links.of_graph(self._fixed()), np.zeros(self.n, np.int64)
        swap = np.arange(2 * self.copies) ^ 1
        for a, b in zip(given.meetings.a.tolist(), given.meetings.b.tolist(), strict=True):
            ends = np.array([a, b])
            local = (np.arange(self.copies)[:, None] * self.n + ends).ravel()
            links = Links.of_meetings(np.tile(ends, self.copies), np.tile(ends[::-1], self.copies))
            before = take(state, local)
            said = self._emit(before, links.edges)
            inbox = Inbox(links, take(said.rows, swap), said.each, said.rows)
            count[ends] += 1
            for side, (me, other) in enumerate(((a, b), (b, a))):
                if me in self.observers and other not in self.observers:
                    self.heard.append(flat_rows(take(inbox.rows, np.arange(self.copies) * 2 + side)))
            edges = tiled(rows_of(static, ends), self.copies, self.n).edges
            put(state, local, self.algorithm.absorb(before, inbox, self._home(ends, count[ends], count[ends], False,
                                                                              edges)))  # fmt: skip

    def _walk(self, given: Trace) -> None:
        state = self._begin()
        static, count = Links.of_graph(self._fixed()), np.zeros(self.n, np.int64)
        path, copies = list(zip(given.meetings.a.tolist(), given.meetings.b.tolist(), strict=True)), self.copies
        for hop, (source, here) in enumerate(path):
            place, lanes = np.array([here]), np.arange(copies) * self.n
            links = Links.of_meetings(np.full(copies, here), np.full(copies, source))
            said = self._emit(take(state, lanes + source), links.edges)
            before = take(state, lanes + here)
            inbox = Inbox(links, said.rows, said.each, self._emit(before, links.edges).rows)
            count[here] += 1
            if here in self.observers and source not in self.observers:
                self.heard.append(flat_rows(said.rows))
            edges = tiled(rows_of(static, place), copies, self.n).edges
            home = self._home(place, count[place], np.array([hop]), hop + 1 == len(path), edges)
            put(state, lanes + here, self.algorithm.absorb(before, inbox, home))

    def _wakes(self, given: Trace) -> None:
        """Observers hear what neighbors begin with, and then every neighbor that wakes."""
        state, small, count = self._begin(), Links.of_graph(self._fixed()), np.zeros(self.n, np.int64)
        latest = self._emit(state, tiled(small, self.copies, self.n).edges)
        watching = np.isin(np.arange(self.n), self.observers)
        near = {int(u) for v in self.observers for u in self._fixed().neighbors(v) if not watching[u]}
        copies = np.arange(self.copies) * self.n
        self.heard.extend(flat_rows(take(latest.rows, copies + u)) for u in sorted(near))
        for u in given.meetings.a.tolist():
            place, lanes = np.array([u]), copies + u
            links = tiled(rows_of(small, place), self.copies, self.n)
            inbox = Inbox(links, latest.rows, False, take(latest.rows, lanes))
            count[u] += 1
            home = self._home(place, count[place], count[place], False, links.edges)
            after = self.algorithm.absorb(take(state, lanes), inbox, home)
            put(state, lanes, after)
            put(latest.rows, lanes, self._emit(after, links.edges).rows)
            if u in near:
                self.heard.append(flat_rows(take(latest.rows, lanes)))

    def _begin(self) -> Any:
        everybody, zero = np.arange(self.n), np.zeros(self.n, np.int64)
        edges = tiled(Links.of_graph(self._fixed()), self.copies, self.n).edges
        return self.algorithm.start(self._home(everybody, zero, zero, False, edges))

    def _fixed(self) -> Graph:
        if not isinstance(self.graph, Graph):
            raise ConfigError(f"meetings and walks need one fixed graph, found the sequence {self.graph.name}")
        return self.graph


def flat_rows(rows: Any) -> Array:
    """A payload as one array: records are laid side by side  # (copies, width)."""
    if isinstance(rows, np.ndarray):
        return np.asarray(rows, np.float64).reshape(len(rows), -1)
    return np.concatenate([flat_rows(part) for part in rows], axis=1)
