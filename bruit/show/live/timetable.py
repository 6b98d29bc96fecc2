"""When which peers speak, and how much of it a watcher has heard: from the schedule alone, never
from data.

Rounds: everybody speaks along every link of the round. Walks, meetings and wakes are drawn from
schedule and seed, and done in the order of the bulk engine: by hops, or by levels of disjoint
meetings.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from bruit.arrays import Array
from bruit.graphs import Graph
from bruit.randomness import Replay
from bruit.trace import Meetings

SHOWN = 300  # messages that are drawn at a time


class Timetable:
    """Who speaks to whom between two reports of progress."""

    def __init__(self, built: Any, watcher: int) -> None:
        self._graph, self._schedule = built.graph, built.algorithm.schedule
        self._steps, self._watcher = int(built.steps), watcher
        self._meetings = self._draw_meetings(built.file.seed)
        self._heard: Array = self._hearing()  # (events,)

    def _draw_meetings(self, seed: int) -> Meetings:
        """All events, in the order in which they are done."""
        if self._schedule.synchronous or not isinstance(self._graph, Graph):
            return Meetings.none()
        found = self._schedule.meetings(self._graph, self._steps, Replay(seed))
        order = np.argsort(self._schedule.levels(self._graph, found), kind="stable")
        return Meetings(found.time[order], found.a[order], found.b[order])

    def _hearing(self) -> Array:
        """For every event, until which time the watcher has heard once it is done.

        Events of one peer are done in order of time, so what the watcher took part in, or heard a
        neighbor say, is all that came before; anything else tells it nothing.
        """
        time, a, b = self._meetings
        if not len(time):
            return np.zeros(0)
        near = self._schedule.earshot(self._graph, self._watcher)
        return np.asarray(np.maximum.accumulate(np.where(near[a] | near[b], time, 0.0)), np.float64)

    def position(self, done: int) -> int:
        """A step by whose end the watcher has heard at least what it has heard now."""
        if not self._schedule.timed:
            return done
        count = min(done, len(self._heard))
        return min(self._steps, math.ceil(self._heard[count - 1])) if count else 0

    def who_spoke(self, before: int, done: int) -> list[list[int]] | None:
        """Pairs (from, to) that spoke since `before`, the latest ones; None when it was everybody
        to all neighbors."""
        if self._schedule.synchronous:
            if isinstance(self._graph, Graph):
                return None
            links = self._graph.at(max(0, done - 1)).edges()
            return [[int(u), int(v)] for u, v in links[:SHOWN]]
        fresh = slice(max(before, done - SHOWN), done)
        spoken: list[list[int]] = []
        for a, b in zip(self._meetings.a[fresh], self._meetings.b[fresh], strict=True):
            heard = self._schedule.listeners(self._graph, int(a), int(b))
            spoken += [[int(a), int(v)] for v in heard]
        return spoken[-SHOWN:]
