"""A walk for all peers: a batch of one, hop after hop."""

from __future__ import annotations

from typing import Any

import numpy as np

from bruit.algorithms.doorway import absorbed, adopted, publishes, spoken, stored
from bruit.algorithms.messages import Inbox, Links, take
from bruit.algorithms.schedules.stage import Stage, rows_of
from bruit.arrays import Ints


def play(stage: Stage) -> Any:
    """The token's whole way; the final states."""
    algorithm, meetings, steps = stage.algorithm, stage.meetings, len(stage.meetings.b)
    static = Links.of_graph(stage.one_graph)
    state = stage.begin(stage.tiled(static))
    count = np.zeros(stage.n, np.int64)
    for hop in stage.one_by_one():
        source, here = meetings.a[hop : hop + 1], meetings.b[hop : hop + 1]
        links, place = stage.met(here, source), stage.rows(here, stage.n)
        handed = stage.met(source, here).edges  # the holder speaks to the next one
        messages = spoken(algorithm, take(state, stage.rows(source, stage.n)), handed)
        before = take(state, place)
        own = spoken(algorithm, before, links.edges)
        inbox = Inbox(links, messages.rows, messages.each, own.rows)
        count[here] += 1
        stage.sent(int(source[0] != here[0]), messages.rows)
        stage.told(np.array([hop]), here, source, inbox)
        last, edges = np.array([hop + 1 == steps]), stage.tiled(rows_of(static, here)).edges
        home = stage.home(here, count[here], np.array([hop]), last, edges)
        state = stored(state, place, absorbed(algorithm, before, inbox, home))
        if hop + 1 == steps:
            state = published(stage, state, here)
        stage.tell(hop + 1, steps, state)
    stage.trace.meetings = meetings
    return state


def published(stage: Stage, state: Any, holder: Ints) -> Any:
    """Everybody, in every copy, is told the last token of its walk, where that is published."""
    if not publishes(stage.algorithm):
        return state
    last = stage.rows(holder, stage.n)
    messages = spoken(stage.algorithm, take(state, last), stage.met(holder, holder).edges)
    token = take(messages.rows, np.repeat(np.arange(stage.copies), stage.n))
    return adopted(stage.algorithm, state, token, stage.public)
