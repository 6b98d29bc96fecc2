"""Meetings for all peers at once: sorted by time and cut into levels of disjoint ones.

Disjoint meetings commute, so a level is one batch. Cost: O(meetings d), in as many batches as the
longest chain of dependencies.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bruit.algorithms.doorway import absorbed, spoken, stored
from bruit.algorithms.messages import Inbox, Links, take
from bruit.algorithms.schedules.stage import Stage, rows_of
from bruit.arrays import Ints


def play(stage: Stage) -> Any:
    """All meetings of the stage; the final states."""
    graph, meetings, done = stage.one_graph, stage.meetings, 0
    static = Links.of_graph(graph)
    state = stage.begin(stage.tiled(static))
    count = np.zeros(stage.n, np.int64)
    for batch in stage.in_levels(stage.algorithm.schedule.levels(graph, meetings)):
        a, b = meetings.a[batch], meetings.b[batch]
        state = _meet(stage, state, a, b, count, static, batch)
        done += len(batch)
        stage.tell(done, len(meetings.a), state)
    stage.trace.meetings = meetings
    stage.trace.received.sort(key=lambda message: message.clock)
    return state


def _meet(
    stage: Stage, state: Any, a: Ints, b: Ints, count: Ints, static: Links, clock: Ints
) -> Any:
    """One level of disjoint meetings: both sides speak, then both absorb."""
    peers, partners = np.concatenate((a, b)), np.concatenate((b, a))
    rows, links = stage.rows(peers, stage.n), stage.met(peers, partners)
    before = take(state, rows)
    messages = spoken(stage.algorithm, before, links.edges)
    swapped = np.concatenate((np.arange(len(a), len(peers)), np.arange(len(a))))
    inbox = Inbox(
        links, take(messages.rows, stage.rows(swapped, len(peers))), messages.each, messages.rows
    )
    count[peers] += 1
    stage.sent(len(peers), messages.rows)
    stage.told(np.concatenate((clock, clock)), peers, partners, inbox)
    never = np.zeros(len(peers), bool)
    edges = stage.tiled(rows_of(static, peers)).edges
    home = stage.home(peers, count[peers], count[peers], never, edges)
    return stored(state, rows, absorbed(stage.algorithm, before, inbox, home))
