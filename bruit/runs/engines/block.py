"""One block of a run by rounds: its peers at once, and what they hear of others, handed over row by
row.

It does to its rows what `schedules.rounds.bulk` does to all rows: a peer is a batch of one, so a
block is a batch like any other, and its draws have the same addresses.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bruit.algorithms.algorithm import Algorithm
from bruit.algorithms.doorway import Twinned, absorbed, begun, believed, spoken
from bruit.algorithms.home import Home
from bruit.algorithms.messages import Edges, Inbox, join, row_bytes, take
from bruit.algorithms.task_door import TaskDoor
from bruit.errors import ConfigError
from bruit.mechanisms.mechanism import Mechanism
from bruit.on.team import Handed
from bruit.privacy.ledger import Ledger
from bruit.randomness import Dice
from bruit.runs.engines.engine import Job
from bruit.runs.engines.shares import BlockShare
from bruit.tasks.task import Task


@dataclass(frozen=True, kw_only=True)
class BlocksJob:
    """What all blocks of a run are given; called with what is a block's own, it is that block.
    `task` is None where each block has what its own peers hold."""

    algorithm: Algorithm[Any]
    facts: Any  # public, as the algorithm prepared them
    steps: int
    peers: int
    task: Task | None
    mechanism: Mechanism | None
    dice: Dice
    public: Dice | None
    phase: int
    origin: int | None

    @classmethod
    def of(cls, job: Job, door: TaskDoor, divided: bool) -> BlocksJob:
        """What is common to the blocks of that job."""
        return cls(
            algorithm=job.algorithm,
            facts=job.public,
            steps=job.steps,
            peers=job.n,
            task=None if divided else door.task,
            mechanism=door.mechanism,
            dice=door.dice,
            public=door.public,
            phase=door.run,
            origin=door.origin,
        )

    def __call__(self, share: BlockShare) -> PeerBlock:
        return PeerBlock(self, share)

    def door(self, held: Task | None, ledger: Ledger) -> TaskDoor:
        """The door to what the peers of one block hold, which writes into this ledger."""
        task = held or self.task
        if task is None:
            raise ConfigError("a block was given no task")
        return TaskDoor(
            task=task,
            mechanism=self.mechanism,
            dice=self.dice,
            ledger=ledger,
            run=self.phase,
            public=self.public,
            origin=self.origin,
        )


class PeerBlock:
    """The state of a block, between two questions. What it hands over is in the order of
    `share.near`."""

    def __init__(self, job: BlocksJob, share: BlockShare) -> None:
        self._job, self._share, self._links = job, share, share.links()
        self._state: Any = None
        self._rows: Any = None  # what the own peers said last
        self._heard: Any = None  # the same, and what they heard; written over in every round
        self._open(Ledger(peers=job.peers))

    def begin(self) -> Handed:
        """The states before anything was heard, and the first words."""
        self._open(Ledger(peers=self._ledger.peers))
        self._state = begun(self._job.algorithm, self._home(0))
        if isinstance(self._state, Twinned):
            raise ConfigError(
                f"{self._job.algorithm.name()} keeps raw data, which is watched in one process"
                " only; run it there"
            )
        return self._said() if self._job.steps else Handed(0)

    def advance(self, number: int, *heard: Any) -> Handed:
        """Hear what the near blocks handed over, absorb it as round `number`, speak again."""
        self._heard = _joined(self._heard, [self._rows, *heard])
        inbox = Inbox(self._links, self._heard, False, self._rows)
        self._state = absorbed(self._job.algorithm, self._state, inbox, self._home(number + 1))
        return self._said() if number + 1 < self._job.steps else Handed(0)

    def believed(self) -> Handed:
        """What its peers hold as their results."""
        return Handed(believed(self._job.algorithm, self._state))

    def ended(self) -> Handed:
        """Its states and its lines of the ledger."""
        return Handed((self._state, self._ledger))

    def kept(self) -> Handed:
        """The same, to go on from."""
        return Handed(None, [(self._state, self._ledger.head(self._ledger.calls))])

    def go_on(self, kept: tuple[Any, Ledger]) -> Handed:
        """From there, with the words that were said then."""
        self._state, ledger = kept
        self._open(ledger.head(ledger.calls))  # it may be gone back to again
        return self._said()

    def _open(self, ledger: Ledger) -> None:
        self._ledger, self._door = ledger, self._job.door(self._share.task, ledger)

    def _home(self, count: int) -> Home:
        """The home of all its peers, after so many rounds."""
        job, lanes = self._job, len(self._share.peers)
        last = count == job.steps
        edges: Edges = self._links.edges.none() if last else self._links.edges
        counts = np.full(lanes, count, np.int64)
        here = np.full(lanes, last)
        return Home(self._door, self._share.peers, counts, counts, here, edges, job.facts)

    def _said(self) -> Handed:
        """What its peers say next; told: how long one message is."""
        message = spoken(self._job.algorithm, self._state, self._links.edges)
        if message.each:
            raise ConfigError(
                f"{self._job.algorithm.name()} says something else to each neighbor, and blocks"
                " hand over what is said to all; run it in one process"
            )
        self._rows = message.rows
        return Handed(
            row_bytes(message.rows), [take(message.rows, rows) for rows in self._share.said]
        )


def _joined(into: Any, rows: Sequence[Any]) -> Any:
    """The rows, one after the other, in the same memory as before; new memory would cost as much
    as the product."""
    if into is None:
        return join(list(rows))
    if isinstance(into, np.ndarray):
        return np.concatenate(rows, out=into)
    return type(into)(*map(_joined, into, zip(*rows, strict=True)))
