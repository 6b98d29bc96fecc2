"""A round of GOPA between participants and a board on a virtual clock, every message on record.

Delays are given in turn, messages may arrive twice, and a peer may fall silent for ever after any
number of messages: the same machines that real peers run, without sockets. What a machine refuses
is on record too, and stops nobody.
"""

from __future__ import annotations

import heapq
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count

from bruit.errors import ConfigError, RemoteProtocolError
from bruit.statistics.average.canceling.simulation import SimulatedAverage
from papers.baselines.canceling.board import Board
from papers.baselines.canceling.messages import (
    Alarm,
    Effect,
    Exposed,
    Failed,
    Message,
    Post,
    Send,
    WakeAt,
    Withdrawn,
    payload_bytes,
)
from papers.baselines.canceling.participant import Participant

BOARD = -1
"""The name of the board among peers 0, 1, ..."""


@dataclass(frozen=True)
class Record:
    """A message that arrived: when, from whom, to whom."""

    time: float
    sender: int
    to: int
    message: Message


@dataclass(frozen=True, eq=False)
class Rehearsal:
    """What came out, and all that was said: `notes` are withdrawals and exposures, `refused` what
    machines refused."""

    outcome: SimulatedAverage | Failed
    records: tuple[Record, ...]
    notes: tuple[tuple[int, Withdrawn | Exposed], ...]
    refused: tuple[tuple[int, str], ...]
    seconds: Mapping[int, float]  # of CPU, by peer; BOARD is the board

    def sent_bytes(self, peer: int) -> int:
        """Payload that this peer, or the board, sent; repeated deliveries count."""
        return sum(
            payload_bytes(record.message) for record in self.records if record.sender == peer
        )


def rehearse(
    people: Mapping[int, Participant],
    board: Board,
    delays: Sequence[float] = (0.01,),
    leaving: Mapping[int, int] | None = None,
    repeat: int = 0,
) -> Rehearsal:
    """Run everybody to the end. `leaving[u]` is how many events u still handles before it falls
    silent (0: it never begins), and every `repeat`-th message arrives a second time."""
    if not delays or min(delays) < 0:
        raise ConfigError(f"delays are numbers >= 0, at least one, found {list(delays)}")
    return _Village(
        people=people, board=board, delays=delays, left=dict(leaving or {}), repeat=repeat
    ).run()


@dataclass(kw_only=True)
class _Village:
    people: Mapping[int, Participant]
    board: Board
    delays: Sequence[float]
    left: dict[int, int]
    repeat: int
    queue: list[tuple[float, int, int, Record | Alarm]] = field(default_factory=list)
    order: count[int] = field(default_factory=count)
    results: list[SimulatedAverage | Failed] = field(default_factory=list)
    records: list[Record] = field(default_factory=list)
    notes: list[tuple[int, Withdrawn | Exposed]] = field(default_factory=list)
    refused: list[tuple[int, str]] = field(default_factory=list)
    seconds: dict[int, float] = field(default_factory=dict)

    def run(self) -> Rehearsal:
        for who in (BOARD, *self.people):
            if self.left.get(who, 1) > 0:
                self._act(0.0, who, None)
        while self.queue:
            now, _, who, event = heapq.heappop(self.queue)
            if self.left.get(who, 1) <= 0:
                continue
            if who in self.left:
                self.left[who] -= 1
            self._act(now, who, event)
        result = (
            self.results[0]
            if self.results
            else Failed("the board fell silent before the round was over")
        )
        return Rehearsal(
            result, tuple(self.records), tuple(self.notes), tuple(self.refused), self.seconds
        )

    def _act(self, now: float, who: int, event: Record | Alarm | None) -> None:
        """One event at one machine, its CPU time on its account."""
        begin = time.process_time()
        try:
            effects = self._answer(now, who, event)
        except RemoteProtocolError as error:
            self.refused.append((who, str(error)))
            effects = []
        self.seconds[who] = self.seconds.get(who, 0.0) + time.process_time() - begin
        for effect in effects:
            self._carry_out(now, who, effect)

    def _answer(self, now: float, who: int, event: Record | Alarm | None) -> list[Effect]:
        machine = self.board if who == BOARD else self.people[who]
        if event is None:
            return machine.begin(now)
        if not isinstance(event, Record):
            return machine.wake(now, event)
        self.records.append(event)
        if who == BOARD:
            return self.board.receive(now, event.sender, event.message)
        return self.people[who].receive(
            now, None if event.sender == BOARD else event.sender, event.message
        )

    def _carry_out(self, now: float, who: int, effect: Effect) -> None:
        if isinstance(effect, WakeAt):
            self._push(effect.time, who, effect.alarm)
        elif isinstance(effect, Send | Post):
            number = next(self.order)
            late = now + self.delays[number % len(self.delays)]
            record = Record(
                late, who, effect.to if isinstance(effect, Send) else BOARD, effect.message
            )
            self._push(late, record.to, record)
            if self.repeat and number % self.repeat == 0:
                self._push(late + 1, record.to, record)
        elif isinstance(effect, SimulatedAverage | Failed):
            self.results.append(effect)
        else:
            self.notes.append((who, effect))

    def _push(self, time: float, who: int, event: Record | Alarm) -> None:
        heapq.heappush(self.queue, (time, next(self.order), who, event))
