"""How a peer behaves on the network: its patience, its pace, and for whom it waits."""

from __future__ import annotations

import math
from dataclasses import dataclass

from bruit.graphs import Graph, GraphSequence
from bruit.peers.wire.codec import (
    USUAL,
    Limits,
)
from bruit.peers.wire.waiting import EACH


def first_neighbors(graph: Graph | GraphSequence, me: int, steps: int) -> list[int]:
    """Whom a peer meets in the first rounds; a line to anybody else is laid with the first
    message."""
    parts = [graph] if isinstance(graph, Graph) else [graph.at(t) for t in range(min(steps, 64))]
    return sorted({int(peer) for part in parts for peer in part.neighbors(me)})


@dataclass(frozen=True, kw_only=True)
class Settings:
    """How a peer behaves on the network; `pace` is the length of one unit of the schedule's time,
    in seconds."""

    timeout: float = 30.0
    pace: float = 1.0
    horizon: float | None = (
        None  # until when meetings and wakes go on, in units of time; None for rounds and walks
    )
    limits: Limits = USUAL
    queue: int = EACH  # messages of one neighbor that may wait here
    kept: int = 2**20  # bytes of inputs that a snapshot replaces, at least
    wait_for: int | None = (
        None  # neighbors that must be connected before anything is released; None: all of them
    )
    start_timeout: float = 300.0  # how long they are waited for
    answer_seconds: float = 0.0  # an answer takes a whole number of these; 0: what it takes
    quorum: int = (
        0  # neighbors that must be connected before data is released in the middle of a run
    )
    own_budget: bool = False  # whether its operator allows less than was agreed on
    reads_until: float = (
        math.inf
    )  # the last position of the schedule at which the algorithm reads data
