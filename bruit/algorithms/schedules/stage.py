"""Stage: all peers of a run at once, for the loop of a schedule to play on.

A loop takes rows of states, lets peers speak and absorb, and says what happened: how many messages
were sent, what watched peers received, how far the run is. The stage knows the rest: homes, links,
the trace, and whom to tell. It may hold several independent copies of the run as one batch, copy
after copy. Kernels see the peers' own numbers. The door sees *lanes*, c n + i for peer i of copy c,
so that every copy reads its own data and draws its own noise. Meetings, tokens and faults are those
of one trace, shared by all copies.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import csr_array

from bruit.algorithms.door import Door
from bruit.algorithms.doorway import begun, resumed
from bruit.algorithms.home import Home
from bruit.algorithms.messages import AllLinks, Edges, Inbox, Links, row_bytes, spans, take
from bruit.arrays import Bools, Ints
from bruit.graphs import Graph, GraphSequence
from bruit.trace import Meetings, Received, Trace

if TYPE_CHECKING:
    from bruit.algorithms.algorithm import Algorithm


@dataclass(kw_only=True)
class Stage:
    """One run in the making. `trace` grows as it is played: its faults and watched peers are what
    was asked for. `meetings` are to be played, at which the words named by `reads` are read, if
    any are named. `look` is told how much is done, of how much, and the states, and may stop it."""

    algorithm: Algorithm[Any]
    graph: Graph | GraphSequence
    steps: int
    door: Door
    public: Any
    trace: Trace
    meetings: Meetings
    look: Callable[[int, int, Any], None]
    reads: list[dict[int, int]] = field(default_factory=list)
    states: Any = None  # where an earlier run left the peers
    copies: int = 1
    first: int = 0  # the number of the first copy
    played: Ints | None = None  # the order in which the meetings are played
    reached: tuple[Any, int, int] = (None, 0, 0)  # the states after so much, of how much

    @property
    def n(self) -> int:
        return self.graph.n

    @property
    def everybody(self) -> Ints:
        return np.arange(self.n)

    @property
    def one_graph(self) -> Graph:
        return self.algorithm.schedule.one_graph(self.graph)

    def rows(self, rows: Ints, stride: int) -> Ints:
        """These rows in every copy, copy after copy, `stride` rows apart."""
        if self.copies == 1:
            return rows
        return (np.arange(self.copies)[:, None] * stride + rows).ravel()

    def tiled(self, links: Links, stride: int | None = None) -> Links:
        """The links of every copy, whose broadcast rows are `stride` apart (n by default)."""
        if self.copies == 1:
            return links
        return _tiled(links, self.copies, self.n if stride is None else stride)

    def met(self, peers: Ints, partners: Ints) -> Links:
        """Who hears whom in a meeting, in every copy."""
        return Links.of_meetings(np.tile(peers, self.copies), np.tile(partners, self.copies))

    def home(self, peers: Ints, step: Ints, clock: Ints, last: Bools, edges: Edges) -> Home:
        """The home of these peers in every copy."""
        if self.copies == 1 and not self.first:
            return Home(self.door, peers, step, clock, last, edges, self.public)
        lanes = self.rows(peers, self.n) + self.first * self.n
        k = self.copies
        return Home(
            self.door,
            np.tile(peers, k),
            np.tile(step, k),
            np.tile(clock, k),
            np.tile(last, k),
            edges,
            self.public,
            lanes,
        )

    def begin(self, links: Links, last: bool = False) -> Any:
        """The states before anything was heard; `last`: nobody will hear anything."""
        zero = np.zeros(self.n, np.int64)
        edges = links.edges.none() if last else links.edges
        home = self.home(self.everybody, zero, zero, np.full(self.n, last), edges)
        if self.states is None:
            return begun(self.algorithm, home)
        return resumed(self.algorithm, self.states, home)

    def in_levels(self, level: Ints) -> Iterator[Ints]:
        """The numbers of all meetings, level by level; those of a level do not touch each other, so
        playing them as one batch gives exactly the sequential result."""
        self.played = np.argsort(level, kind="stable")
        ends = np.flatnonzero(np.diff(level[self.played])) + 1
        return (batch for batch in np.split(self.played, ends) if len(batch))

    def one_by_one(self) -> Iterator[int]:
        """The numbers of all meetings, in order of time."""
        self.played = np.arange(len(self.meetings.a))
        return iter(range(len(self.meetings.a)))

    # what happened

    def tell(self, done: int, total: int, state: Any) -> None:
        """So much is done, of so much: the next one who stops the run finds these states."""
        self.reached = (state, done, total)
        self.look(done, total, state)

    def done(self) -> Meetings:
        """The meetings that were played so far, in order of time."""
        if self.played is None:
            return Meetings.none()
        some = np.sort(self.played[: self.reached[1]])
        time, a, b = self.meetings
        return Meetings(time[some], a[some], b[some])

    def sent(self, messages: int, rows: Any) -> None:
        """So many messages were sent, with such rows."""
        self.trace.messages += messages
        self.trace.bytes += messages * row_bytes(rows)

    def exchanged(self, clock: int, links: Links, inbox: Inbox) -> None:
        """Everybody heard all neighbors: keep what the watched observers received."""
        if not self.trace.watched:
            return
        receivers = np.repeat(links.ids, np.diff(links.start))
        stride = len(links.senders) if inbox.each else self.n
        for entry in np.flatnonzero(np.isin(receivers, list(self.trace.watched))):
            place = int(entry if inbox.each else links.columns[entry])
            self._keep(clock, links.senders[entry], receivers[entry], inbox.rows, place, stride)

    def told(self, clock: Ints, peers: Ints, partners: Ints, inbox: Inbox) -> None:
        """Each of these peers heard one partner: keep what the watched ones received."""
        if not self.trace.watched:
            return
        for at in np.flatnonzero(np.isin(peers, list(self.trace.watched))):
            self._keep(int(clock[at]), partners[at], peers[at], inbox.rows, int(at), len(peers))

    def posted(self, clock: Ints, peers: Ints, links: Links, said: Any) -> None:
        """These peers spoke to all neighbors: keep what watched ones were posted; all of it is
        heard, whether it is read or not."""
        for place, u in enumerate(peers.tolist() if self.trace.watched else ()):
            near = links.senders[links.start[u] : links.start[u + 1]]
            for v in near[np.isin(near, list(self.trace.watched))].tolist():
                self._keep(int(clock[place]), u, v, said, place, len(peers))

    def _keep(
        self, clock: int, sender: int, receiver: int, rows: Any, place: int, stride: int
    ) -> None:
        row = take(rows, self.rows(np.array([place]), stride))
        self.trace.received.append(Received(clock, int(sender), int(receiver), row))


def rows_of(links: Links, lanes: Ints) -> Links:
    """The links of some lanes only; broadcast rows stay indexed by peer."""
    if isinstance(links, AllLinks):
        return AllLinks(graph=links.graph, ids=lanes)
    where = spans(links.start, lanes)
    start = np.concatenate(([0], np.cumsum(links.start[lanes + 1] - links.start[lanes])))
    return Links(
        ids=lanes,
        start=start,
        senders=links.senders[where],
        columns=links.columns[where],
        weights=links.weights[where],
        own=links.own[lanes],
    )


def _tiled(links: Links, copies: int, stride: int) -> Links:
    """The exchange of every copy at once: block-diagonal weights over rows `stride` apart; ids are
    the peers' own."""
    shift = np.repeat(np.arange(copies) * stride, len(links.senders))
    start = np.concatenate(([0], np.cumsum(np.tile(np.diff(links.start), copies))))
    full = None
    if links.full is not None:
        lanes = links.full.shape[0]
        indptr = np.concatenate(([0], np.cumsum(np.tile(np.diff(links.full.indptr), copies))))
        columns = np.tile(links.full.indices, copies) + np.repeat(
            np.arange(copies) * stride, links.full.nnz
        )
        full = csr_array(
            (np.tile(links.full.data, copies), columns, indptr),
            shape=(lanes * copies, stride * copies),
        )
    return Links(
        ids=np.tile(links.ids, copies),
        start=start,
        senders=np.tile(links.senders, copies),
        columns=np.tile(links.columns, copies) + shift,
        weights=np.tile(links.weights, copies),
        own=np.tile(links.own, copies),
        full=full,
    )
