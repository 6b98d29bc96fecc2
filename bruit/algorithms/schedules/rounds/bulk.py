"""Rounds for all peers at once: one sparse product each, O(edges d)."""

from __future__ import annotations

from typing import Any

import numpy as np

from bruit.algorithms.doorway import absorbed, spoken
from bruit.algorithms.messages import Inbox, Links, Message, take
from bruit.algorithms.schedules.stage import Stage
from bruit.arrays import Bools, Ints
from bruit.graphs import Graph, GraphSequence
from bruit.trace import Faults


def play(stage: Stage) -> Any:
    """Everybody speaks, then everybody absorbs, round after round; the final states."""
    algorithm, steps, n = stage.algorithm, stage.steps, stage.n
    exchanges = Exchanges(stage.graph, stage.trace.faults)
    small = exchanges.at(0)
    links = stage.tiled(small)
    state = stage.begin(links, last=steps == 0)
    for number in range(steps):
        message = spoken(algorithm, state, links.edges)
        inbox = _deliver(stage, small, links, message)
        stage.sent(small.copies, message.rows)
        stage.exchanged(number, small, inbox)
        last = number + 1 == steps
        coming = small if last else exchanges.at(number + 1)
        following = links if coming is small else stage.tiled(coming)
        edges = links.edges.none() if last else following.edges
        count = np.full(n, number + 1, np.int64)
        home = stage.home(stage.everybody, count, count, np.full(n, last), edges)
        state = absorbed(algorithm, state, inbox, home)
        small, links = coming, following
        stage.tell(number + 1, steps, state)
    return state


def _deliver(stage: Stage, small: Links, links: Links, message: Message) -> Inbox:
    """All peers hear what all peers said: per-copy rows are reordered from sender to receiver."""
    if not message.each:
        return Inbox(links, message.rows, False, message.rows)
    rows = take(message.rows, stage.rows(small.flip, len(small.senders)))
    return Inbox(links, rows, True, None)


class Exchanges:
    """The links of every round, with that round's dead links taken out; built once per graph."""

    def __init__(self, graph: Graph | GraphSequence, faults: Faults) -> None:
        self._graph, self._faults = graph, faults
        self._built: tuple[Graph, Links] | None = None

    def graph(self, number: int) -> Graph:
        return self._graph if isinstance(self._graph, Graph) else self._graph.at(number)

    def at(self, number: int) -> Links:
        graph = self.graph(number)
        if self._built is None or self._built[0] is not graph:
            self._built = (graph, Links.of_graph(graph))
        links = self._built[1]
        a, b = self._faults.in_round(number)
        return links.without(_dead_copies(links, a, b)) if len(a) else links


def _dead_copies(links: Links, a: Ints, b: Ints) -> Bools:
    """Which received copies cross one of the dead links {a_k, b_k}."""
    receivers = np.repeat(links.ids, np.diff(links.start))
    base = 1 + max(
        int(links.senders.max(initial=0)), int(receivers.max(initial=0)), int(b.max(initial=0))
    )
    low, high = np.minimum(receivers, links.senders), np.maximum(receivers, links.senders)
    return np.isin(low * base + high, np.minimum(a, b) * base + np.maximum(a, b))
