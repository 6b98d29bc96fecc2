"""Wakes for all peers at once: peers that do not hear each other wake together; where a trace says
how late words were read, one after the other."""

from __future__ import annotations

from typing import Any

import numpy as np

from bruit.algorithms.doorway import absorbed, spoken, stored
from bruit.algorithms.messages import Inbox, Links, Message, join, put, take
from bruit.algorithms.schedules.stage import Stage, rows_of
from bruit.arrays import Ints
from bruit.errors import ConfigError


def play(stage: Stage) -> Any:
    """Everybody speaks once, then all wakes of the stage; the final states."""
    meetings, static, done = stage.meetings, Links.of_graph(stage.one_graph), 0
    wide = stage.tiled(static)
    state = stage.begin(wide)
    latest = spoken(stage.algorithm, state, wide.edges)
    if latest.each:
        raise ConfigError("a peer that wakes broadcasts one message; noise per copy needs rounds")
    count = np.zeros(stage.n, np.int64)
    stage.posted(np.full(stage.n, -1), stage.everybody, static, latest.rows)
    if stage.reads:
        state = _read_late(stage, state, latest, static)
    else:
        levels = stage.algorithm.schedule.levels(stage.one_graph, meetings)
        for batch in stage.in_levels(levels):
            state = _wake(stage, state, latest, meetings.a[batch], count, static, batch)
            done += len(batch)
            stage.tell(done, len(meetings.a), state)
    stage.trace.meetings = meetings
    stage.trace.received.sort(key=lambda message: message.clock)
    return state


def _wake(
    stage: Stage, state: Any, latest: Message, peers: Ints, count: Ints, static: Links, clock: Ints
) -> Any:
    """Peers that do not hear each other wake together: read, absorb, then speak."""
    rows, small = stage.rows(peers, stage.n), rows_of(static, peers)
    links = stage.tiled(small)
    inbox = Inbox(links, latest.rows, False, take(latest.rows, rows))
    count[peers] += 1
    stage.sent(len(small.senders), latest.rows)
    home = stage.home(peers, count[peers], count[peers], np.zeros(len(peers), bool), links.edges)
    after = absorbed(stage.algorithm, take(state, rows), inbox, home)
    messages = spoken(stage.algorithm, after, links.edges).rows
    put(latest.rows, rows, messages)
    stage.posted(clock, peers, static, messages)
    return stored(state, rows, after)


def _read_late(stage: Stage, state: Any, first: Message, static: Links) -> Any:
    """Wakes that read messages as late as the trace says, one after the other."""
    graph, count = stage.one_graph, np.zeros(stage.n, np.int64)
    messages = {
        (peer, 0): take(first.rows, stage.rows(np.array([peer]), stage.n))
        for peer in range(stage.n)
    }
    events = zip(stage.meetings.a.tolist(), stage.reads, strict=True)
    for event, (peer, versions) in enumerate(events):
        small, lane = Links.of_peer(graph, peer), np.array([peer])
        around = np.sort(np.append(small.senders, peer)).tolist()
        links, place = stage.tiled(small, len(around)), stage.rows(lane, stage.n)
        now = int(count[peer])
        heard = [messages[other, now if other == peer else versions[other]] for other in around]
        copy_after_copy = np.arange(len(around) * stage.copies).reshape(len(around), -1).T.ravel()
        rows = take(join(heard), copy_after_copy)
        inbox = Inbox(links, rows, False, messages[peer, now])
        stage.sent(len(small.senders), rows)
        count[peer] += 1
        home = stage.home(lane, count[lane], count[lane], np.array([False]), links.edges)
        after = absorbed(stage.algorithm, take(state, place), inbox, home)
        state = stored(state, place, after)
        messages[peer, now + 1] = spoken(stage.algorithm, after, links.edges).rows
        stage.posted(np.array([event]), lane, static, messages[peer, now + 1])
    stage.trace.reads = stage.reads
    return state
