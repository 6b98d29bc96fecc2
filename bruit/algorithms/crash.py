"""Where it hurts: the call of an algorithm's function that raised, cut down to the peer that did it.

A peer is a batch of one, so the guilty rows of a batch are found by calling the function again on
halves of it, and on halves of those that fail: 2 log2(n) calls for the first one. Nothing is kept
for this while all is well.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from scipy.sparse import csr_array

from bruit.algorithms.doorway import lanes_of
from bruit.algorithms.home import Home
from bruit.algorithms.messages import AllLinks, Edges, Inbox, Links, spans, take
from bruit.arrays import Array, Ints
from bruit.errors import AlgorithmError
from bruit.graphs import Graph

if TYPE_CHECKING:
    from bruit.algorithms.algorithm import Algorithm

Function = Literal["start", "resume", "emit", "absorb", "adopt", "estimate"]
SHOWN = 3  # guilty peers that an error names


@dataclass(frozen=True, kw_only=True)
class FailedCall:
    """A function of an algorithm and what it was given: `home` has asked nothing yet, so the same
    call can be made again. `rows` are the rows of the batch it was cut out of; None: all of it."""

    algorithm: Algorithm[Any]
    function: Function
    state: Any = None
    inbox: Inbox | None = None
    home: Home | None = None
    edges: Edges | None = None
    token: Any = None
    public: Any = None
    rows: Ints | None = None

    @property
    def ids(self) -> Ints:
        """Which peers the rows are; of states alone, peer after peer."""
        known = self.home or self.edges
        if known is not None:
            return known.ids
        return np.arange(lanes_of(self.state)) if self.rows is None else self.rows

    def make(self, home: Home | None = None) -> Any:
        """Call the function again, by default at its own home."""
        algorithm, at = self.algorithm, home or self._fresh()
        if self.function == "start":
            return algorithm.start(at)
        if self.function == "resume":
            return algorithm.resume(self.state, at)
        if self.function == "absorb":
            return algorithm.absorb(self.state, self.inbox, at)  # type: ignore[arg-type]
        if self.function == "emit":
            return algorithm.emit(algorithm.blank(self.state), self.edges)  # type: ignore[arg-type]
        if self.function == "adopt":
            return algorithm.adopt(self.state, self.token, self.public)
        return algorithm.estimate(self.state)

    def _fresh(self) -> Any:
        return None if self.home is None else self.home.again(self.home.doorway)

    def take(self, rows: Ints) -> FailedCall:
        """The same call for some rows of the batch."""
        return replace(
            self,
            state=None if self.state is None else take(self.state, rows),
            inbox=None if self.inbox is None else taken(self.inbox, rows),
            home=None if self.home is None else self.home.take(rows),
            edges=None if self.edges is None else self.edges.take(rows),
            token=None if self.token is None else take(self.token, rows),
            rows=self.ids[rows] if self.rows is None else self.rows[rows],
        )

    def guilty(self, error: Exception) -> list[int]:
        """The first rows that raise such an error when they are called alone, some of them."""
        everybody = np.arange(len(self.ids))
        return list(islice(self._alone(everybody, type(error)), SHOWN + 1))

    def _alone(self, rows: Ints, kind: type[Exception]) -> Iterator[int]:
        if not len(rows) or not self.take(rows).fails(kind):
            return
        if len(rows) == 1:
            yield int(rows[0])
            return
        middle = len(rows) // 2
        yield from self._alone(rows[:middle], kind)
        yield from self._alone(rows[middle:], kind)

    def fails(self, kind: type[Exception]) -> bool:
        """Whether the call raises such an error (again)."""
        try:
            self.make()
        except Exception as found:
            return type(found) is kind
        return False

    def named(self, error: Exception) -> AlgorithmError:
        """The error to raise: which algorithm, function, peer and step; its call is that of the
        first guilty peer alone, or the whole one if nobody alone is to blame."""
        if len(self.ids) == 1:  # a real peer, say: nothing is called again
            return AlgorithmError(self._sentence(error), self)
        guilty = self.guilty(error)
        if not guilty:
            return AlgorithmError(self._sentence(error), self)
        others = [str(self.ids[row]) for row in guilty[1:SHOWN]]
        more = " and more" if len(guilty) > SHOWN else ""
        also = f", as at peers {', '.join(others)}{more}" if others else ""
        first = self.take(np.array(guilty[:1]))
        return AlgorithmError(first._sentence(error) + also, first)

    def _sentence(self, error: Exception) -> str:
        return f"{self.algorithm.name()}: {self.function} raised {error!r} at {self.where()}"

    def where(self) -> str:
        """Who, at which step; as far as the call itself knows."""
        ids = self.ids
        if len(ids) != 1:
            return f"{len(ids)} peers together, and at none of them alone"
        if self.home is None:
            alone = self.edges is None and self.rows is None  # states do not say whose they are
            return "a batch of one" if alone else f"peer {int(ids[0])}"
        step, clock = int(self.home.step[0]), int(self.home.clock[0])
        position = "" if clock == step else f", position {clock} of the schedule"
        return f"peer {int(ids[0])}, step {step}{position}"


@dataclass(frozen=True)
class MixingRows:
    """Some rows of the weights of a graph whose links are too many to be listed."""

    graph: Graph
    lanes: Ints

    def __matmul__(self, rows: Array) -> Array:
        return self.graph.mix(rows)[self.lanes]


def some_of_all(graph: Graph, lanes: Ints) -> AllLinks:
    """These peers hear everybody else in such a graph, and can mix what they heard."""
    links = AllLinks(graph, lanes)
    object.__setattr__(links, "full", MixingRows(graph, lanes))
    return links


def taken(inbox: Inbox, lanes: Ints) -> Inbox:
    """What some lanes received, without the rows that nobody of them heard."""
    links = inbox.links
    own = None if inbox.own is None else take(inbox.own, lanes)
    late = None if inbox.late is None else inbox.late[lanes]
    if isinstance(links, AllLinks):
        return Inbox(some_of_all(links.graph, links.ids[lanes]), inbox.rows, inbox.each, own, late)
    where, full = spans(links.start, lanes), None
    start = np.concatenate(([0], np.cumsum(np.diff(links.start)[lanes])))
    if inbox.each:
        rows, columns = take(inbox.rows, where), np.arange(len(where))
    else:
        some = None if links.full is None else links.full[lanes]
        heard = links.columns[where]
        used = np.unique(heard if some is None else np.concatenate((heard, some.indices)))
        rows, columns = take(inbox.rows, used), np.searchsorted(used, heard)
        if some is not None:
            parts = (some.data, np.searchsorted(used, some.indices), some.indptr)
            full = csr_array(parts, shape=(len(lanes), len(used)))
    kept = Links(
        ids=links.ids[lanes],
        start=start,
        senders=links.senders[where],
        columns=columns,
        weights=links.weights[where],
        own=links.own[lanes],
        full=full,
    )
    return Inbox(kept, rows, inbox.each, own, late)
