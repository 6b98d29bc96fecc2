"""Blocks: one run by rounds whose peers are divided among long-lived workers, of which only the rows
at the borders travel.

    block b at its worker:   own rows, and rows handed over --> absorb --> own rows --> rows for others

The bits are those of `Bulk(fused=False)`: a draw has an address, a row of weights is summed in the
order of the graph, and scores are computed where all records are. If a worker is lost, everybody
goes back to the last states that were kept, and plays on from there: the same draws fall again.
(Gradients of networks of torch are equal to 1e-12: torch may sum a batch of another size in another
order.)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np

from bruit.algorithms.messages import join, take
from bruit.algorithms.task_door import TaskDoor
from bruit.arrays import Array
from bruit.errors import AlgorithmError, ConfigError
from bruit.graphs import Graph
from bruit.graphs.cut import Cut, cut
from bruit.how_many import how_many
from bruit.on.names import named_place
from bruit.on.place import Workplace
from bruit.on.team import Broken, Handed, PartCall, Team
from bruit.runs.engines.block import BlocksJob
from bruit.runs.engines.bulk import Bulk
from bruit.runs.engines.engine import Engine, Job, Onlooker, Outcome, Stop
from bruit.runs.engines.shares import BlockShares
from bruit.trace import Faults, Trace

Found = TypeVar("Found")
TRIES = 3  # losses in a row without a new round in between


@dataclass(frozen=True)
class Blocks(Engine):
    """The vectorized simulator at a place, in `count` blocks: one for each of its workers, unless
    given. `tell` is told where that is."""

    on: Workplace
    count: int | None = None
    tell: Callable[[str], None] | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        if self.count is not None and self.count < 1:
            raise ConfigError(f"a run has at least one block, found {self.count}")

    def describe(self) -> dict[str, Any]:
        return {"name": "bulk", "fused": False}

    def execute(self, job: Job) -> Outcome:
        graph, door = _playable(job)
        team, now = self.on.team(), True
        try:
            if self.tell is not None:
                self.tell(team.words)
            found = cut(graph, team.size if self.count is None else self.count)
            outcome = _BlocksRun(
                job, door, team, BlockShares(graph, found, door.task), found
            ).play()
            now = False
        finally:
            team.stop(now)
        return outcome


def in_blocks(
    engine: Engine, on: Workplace | str, tell: Callable[[str], None] | None = None
) -> Blocks:
    """The bulk engine in blocks there; other engines, and what bulk does by itself, are refused."""
    if engine not in (Bulk(), Bulk(fused=False)):
        raise ConfigError(
            f"blocks are a way to run Bulk(), found {engine}; leave out `on`, or the engine"
        )
    return Blocks(named_place(on) if isinstance(on, str) else on, tell=tell)


def blocks_words(ran: Mapping[str, Any]) -> str:
    """What of a run went between its blocks, for people; empty where it was played in one."""
    if "blocks" not in ran:
        return ""
    rows, crossed, lost = (int(ran[key]) for key in ("rows_crossing", "bytes_crossed", "lost"))
    again = f"; {how_many(lost, 'worker')} lost, rounds played again" if lost else ""
    return (
        f"{how_many(int(ran['blocks']), 'block')} of peers, cut by {ran['cut_by']}: "
        f"{how_many(rows, 'row')} a round and {how_many(crossed, 'byte')} in all crossed{again}"
    )


def _playable(job: Job) -> tuple[Graph, TaskDoor]:
    """The graph and the door of a job that can be played in blocks; else why it cannot."""
    door, graph, why = job.door, job.graph, ""
    if not vars(type(job.algorithm)).get("in_blocks"):  # what a parent claims says nothing
        why = f"{job.algorithm.name()} is not known to be the same in blocks"
    elif job.given is not None:
        why = "a trace is replayed in one process"
    elif job.watch:
        why = f"nobody keeps what peer {min(job.watch)} hears"
    elif not isinstance(graph, Graph):
        why = f"{graph.name} changes from round to round"
    elif type(door) is not TaskDoor or door.budget is not None:
        why = "its data is behind a door of its own"
    elif job.states is not None or door.warm:
        why = "it goes on from an earlier run, or from a model"
    elif door.mechanism is not None and door.mechanism.deviations():
        why = "every peer has noise of its own size"
    if why or not isinstance(graph, Graph) or not isinstance(door, TaskDoor):
        raise ConfigError(
            f"this run cannot be played in blocks: {why}; run it in one process (leave out `on`)"
        )
    return graph, door


class _BlocksRun:
    """One run in the making: how far it is, what is on its way, what was kept, and what it took."""

    def __init__(
        self, job: Job, door: TaskDoor, team: Team, shares: BlockShares, found: Cut
    ) -> None:
        self.job, self.door, self.team, self.shares, self.cut = job, door, team, shares, found
        self.onlooker = Onlooker(job=job)
        self.number = self.farthest = self.row = self.crossed = self.lost = self.tries = 0
        self.parcels: dict[int, Handed] = {}
        self.kept: tuple[int, dict[int, Any]] = (0, {})

    def play(self) -> Outcome:
        """To the end, or until somebody stops it."""
        steps, every, stopped = self.job.steps, self.team.checkpoint, None
        self._begin()
        try:
            while self.farthest < steps:
                self._surely(self.farthest + 1, lambda: None)
                self.onlooker.look(self.farthest, steps, self._believed)
                if every and self.farthest % every == 0 and self.farthest < steps:
                    self.kept = self._surely(self.farthest, self._keep)
        except AlgorithmError as error:
            raise AlgorithmError(
                f"{error}; after {self.farthest} of {steps} rounds; a run in one process keeps what"
                " it was given"
            ) from error
        except Stop:
            stopped = (self.farthest, steps)
            self.onlooker.stopped(self.farthest, self._believed)
        return self._outcome(stopped)

    # one round after the other

    def _begin(self) -> None:
        made = BlocksJob.of(self.job, self.door, self.shares.divided)
        try:
            self.team.begin(made, self.shares, len(self.cut.blocks))
            self._start()
        except Broken as loss:
            self._go_back(loss)

    def _surely(self, number: int, do: Callable[[], Found]) -> Found:
        """Do it after so many rounds, whoever is lost on the way."""
        while True:
            try:
                while self.number < number:
                    self._advance()
                return do()
            except Broken as loss:
                self._go_back(loss)

    def _advance(self) -> None:
        near, hands = self.shares.near, self.number + 1 < self.job.steps
        asked = {
            block: PartCall(
                (self.number,),
                [self.parcels[other].parcels[near[other].index(block)] for other in near[block]],
                len(near[block]) if hands else 0,
            )
            for block in range(len(near))
        }
        self.crossed += self.row * self.cut.rows
        self._on_its_way(self.team.ask("advance", asked))
        self.number += 1
        if self.number > self.farthest:
            self.farthest, self.tries = self.number, 0

    def _on_its_way(self, said: Mapping[int, Handed]) -> None:
        self.parcels = dict(said)
        self.row = max((one.told for one in said.values()), default=0) or self.row

    def _start(self) -> None:
        """All blocks as they were when states were kept last, or as they begin."""
        number, kept = self.kept
        near = self.shares.near
        hands = {block: len(near[block]) if self.job.steps else 0 for block in range(len(near))}
        if number:
            told = self.team.ask(
                "go_on", {block: PartCall((), [kept[block]], hands[block]) for block in hands}
            )
        else:
            told = self.team.ask(
                "begin", {block: PartCall((), [], hands[block]) for block in hands}
            )
        self.number = number
        self._on_its_way(told)

    def _keep(self) -> tuple[int, dict[int, Any]]:
        told = self.team.ask("kept", self._everybody(hands=1))
        return self.number, {block: self.team.safe(one.parcels[0]) for block, one in told.items()}

    def _go_back(self, loss: Broken) -> None:
        self.lost, self.tries = self.lost + 1, self.tries + 1
        if self.tries > TRIES:
            raise ConfigError(
                f"workers were lost {self.tries} times after round {self.number}: {loss}"
            ) from loss
        try:
            self.team.mend()
            self._start()
        except Broken as again:
            self._go_back(again)

    # what came of it

    def _everybody(self, hands: int = 0) -> dict[int, PartCall]:
        return {block: PartCall((), [], hands) for block in range(len(self.cut.blocks))}

    def _believed(self) -> Array:
        """What all peers hold as their results by now."""
        told = self._surely(self.farthest, lambda: self.team.ask("believed", self._everybody()))
        found: Array = self._together({block: one.told for block, one in told.items()})
        return found

    def _together(self, parts: dict[int, Any]) -> Any:
        """The rows of all peers, in order."""
        peers = np.concatenate([block.peers for block in self.cut.blocks])
        rows = join([parts.pop(block) for block in range(len(self.cut.blocks))])
        return rows if bool((np.diff(peers) > 0).all()) else take(rows, np.argsort(peers))

    def _outcome(self, stopped: tuple[int, int] | None) -> Outcome:
        job, found, number = self.job, self.cut, self.farthest
        told = self._surely(number, lambda: self.team.ask("ended", self._everybody()))
        job.ledger.merge([one.told[1] for one in told.values()])
        messages = number * self.shares.copies
        trace = Trace(peers=job.n, steps=job.steps, faults=Faults.none(), watched=job.watch)
        trace.messages, trace.bytes = messages, messages * self.row
        return Outcome(
            state=self._together({block: one.told[0] for block, one in told.items()}),
            trace=trace,
            metrics=self.onlooker.metrics,
            public=job.public,
            unwatched="",
            stopped=stopped,
            ran={
                "blocks": len(found.blocks),
                "cut_by": found.by,
                "rows_crossing": found.rows,
                "bytes_crossed": self.crossed,
                "lost": self.lost,
            },
        )
