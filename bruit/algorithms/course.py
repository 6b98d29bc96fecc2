"""Course: a whole run, told ahead to the compiled path of an algorithm.

An algorithm may offer one loop for the whole of a run (`Algorithm.fused`). It may skip messages and
inboxes, because it knows the algorithm, but not the door: noise has the same addresses and the
ledger the same lines as on the general path.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import numpy as np

from bruit.algorithms.door import Door
from bruit.arrays import Ints
from bruit.graphs import Graph
from bruit.randomness import Dice

Reads = Literal["nothing", "home", "unwatched"]
"""What a compiled path reads after `start`."""


class Stops(NamedTuple):
    """Where a compiled loop stops to be looked at: after every so many steps (0: only where it
    likes), `at` is told how many are done, and the state. `watched`: what it finds is given to
    `absorb`, which must say the same, so that all data leaves through the door and its ledger
    line."""

    every: int = 0
    at: Callable[[int, Any], None] = lambda done, state: None
    watched: bool = False

    def parts(self, total: int, longest: int) -> Iterator[slice]:
        """The steps in order, in parts of at most that length that end where somebody looks."""
        begin = 0
        while begin < total:
            due = (begin // self.every + 1) * self.every if self.every else total
            end = min(begin + longest, due, total)
            yield slice(begin, end)
            begin = end

    def pass_by(self, done: int, total: int, state: Any) -> None:
        """Tell the state after so many steps; the last one is the engine's to tell."""
        if done < total:
            self.at(done, state)


@dataclass(frozen=True, kw_only=True)
class Course:
    """What is to happen. `acting` are the peers that act, event by event: whom a token visits, or
    who wakes; empty where a schedule tells nothing ahead (rounds, meetings)."""

    graph: Graph
    steps: int
    public: Any
    door: Door
    dice: Dice
    acting: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    stops: Stops = Stops()
