"""The host of one real peer: sockets and timers around a machine and its journal, nothing else.

Inputs (messages, alarms) are given to the machine in batches; one step of the journal commits the inputs, the spend
and the messages they caused; only then do messages leave and receipts go out. What is refused is counted and logged
and changes nothing. After a crash the host recalls what its journal holds, and goes on. Before its first word it waits
for its neighbors (`gathering`).
"""

from __future__ import annotations

import asyncio
import heapq
import logging
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from bruit.algorithms.home import LeftOut
from bruit.algorithms.messages import row_bytes
from bruit.errors import RemoteProtocolError
from bruit.graphs import Graph, GraphSequence
from bruit.network.address_book import AddressBook
from bruit.network.gathering import Gathering
from bruit.network.identity import Identity
from bruit.network.journal import Journal, Step
from bruit.network.line import Line
from bruit.network.listening import Listener
from bruit.network.recalling import TIME, keep, recall
from bruit.network.receipts import Receipts
from bruit.privacy.ledger import Ledger
from bruit.protocols.codec import USUAL, Conversation, Frame, Limits, decode, encode, encode_parts
from bruit.protocols.machine import Alarm, Done, Effect, Envelope, Met, Missed, Send, Skipped, WakeAt
from bruit.protocols.peer import EMPTY, PeerMachine

log = logging.getLogger("bruit.network")
BATCH = 64  # inputs committed together at most
Entry = tuple[float, int, Alarm, int]  # when an alarm is due, a count, which alarm, and its number
LINGER = 1.0  # seconds that inputs which cause nothing wait for company; a crash meanwhile costs a retransmission


def first_neighbors(graph: Graph | GraphSequence, me: int, steps: int) -> list[int]:
    """Whom a peer meets in the first rounds; a line to anybody else is laid with the first message."""
    parts = [graph] if isinstance(graph, Graph) else [graph.at(t) for t in range(min(steps, 64))]
    return sorted({int(peer) for part in parts for peer in part.neighbors(me)})


@dataclass(frozen=True)
class Settings:
    """How a peer behaves on the network; `pace` is the length of one unit of the schedule's time, in seconds."""

    timeout: float = 30.0
    pace: float = 1.0
    horizon: float | None = None  # until when meetings and wakes go on, in units of time; None for rounds and walks
    limits: Limits = USUAL
    queue: int = 4096  # messages of neighbors that may wait here
    kept: int = 2**20  # bytes of inputs that a snapshot replaces, at least
    wait_for: int | None = None  # neighbors that must be connected before anything is released; None: all of them
    start_timeout: float = 300.0  # how long they are waited for


@dataclass
class Host:
    """One peer on the network; `run` returns when the experiment has ended for everybody it can reach."""

    identity: Identity
    book: AddressBook
    run_id: str
    machine: PeerMachine
    journal: Journal
    ledger: Ledger
    settings: Settings = field(default_factory=Settings)
    refused: Counter[str] = field(default_factory=Counter)
    meetings: list[tuple[float, int, int, dict[int, int]]] = field(default_factory=list)
    missed: list[Missed] = field(default_factory=list)
    skipped: int = 0  # calls of the own clock that led to nothing
    skipped_for: dict[int, int] = field(default_factory=dict)  # and for whom it waited then, how often
    sent: int = 0  # messages put into the outbox; see `receipts` for those that arrived
    payloads: int = 0  # how many of those carried values
    payload_bytes: int = 0
    done: bool = False
    ended: bool = False  # nothing is left to do in a next start
    gave_up: str = ""  # why it did not begin, or not go on

    def __post_init__(self) -> None:
        self.me = self.machine.seat.me
        self.algorithm = self.machine.seat.algorithm.name()
        self.lines: dict[int, Line] = {}
        self.receipts = Receipts()
        self._queue: asyncio.Queue[tuple[int, Frame, bytes]] = asyncio.Queue(self.settings.queue)
        self._alarms: list[Entry] = []
        self._own: list[Envelope] = []
        self._alarm_count, self._spent = 0, 0
        self._behind = 0.0  # seconds that the clock of calls is late
        self._bound: float | None = None  # since when this peer is in a meeting
        self._gone: set[int] = set()  # whom the operator knows to be missing
        self._told: set[int] = set()  # to whom this step says something
        self._heard: set[int] = set()  # from whom this step has heard something
        self.ears = Listener(self.identity, self.book, self.me, self._callers(), self._voice, self.journal,
                             self.settings.limits, self._queue, self.refused, self._news,
                             self._has_carried)  # fmt: skip
        self.gathering = Gathering(self.lines, lambda peer: self.book.entry(peer).name, self.settings.wait_for,
                                   self.ears.announce)  # fmt: skip
        self._carried: dict[int, int] = {}  # up to which message of a peer our words to it are a receipt
        self._body: tuple[Any, bytes] = (None, b"")  # the last row that was said, and its bytes
        self._draft: tuple[Step, float] | None = None  # inputs not yet committed, and since when
        self.enough = self.settings.kept  # bytes of steps after which a snapshot is taken
        self._tasks: set[asyncio.Task[None]] = set()
        self._stop = asyncio.Event()
        self._began = 0.0
        self._paused: float | None = None  # since when its clock stands still, if it does

    # inputs and effects

    def _voice(self, peer: int) -> Conversation:
        return Conversation(self.run_id, self.algorithm, peer)

    def _news(self, peer: int) -> None:
        if peer in self.lines:
            self.lines[peer].notify()

    def _has_carried(self, peer: int) -> int:
        return self._carried.get(peer, 0) if peer in self.lines and self.lines[peer].connected else 0

    def _line(self, peer: int) -> Line:
        if peer not in self.lines:
            entry = self.book.entry(peer)
            self.lines[peer] = Line(self.identity, entry, self.journal, self._voice(self.me), self._voice(peer),
                                    self.settings.limits)  # fmt: skip
            self._spawn(self.lines[peer].keep())
        return self.lines[peer]

    def _spawn(self, work: Any) -> None:
        task: asyncio.Task[None] = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _react(self, kind: str, sender: int, now: float, payload: bytes, known: Frame | None = None) -> list[Effect]:
        """What the machine does with one input; the same on the first and on every later execution."""
        if kind == "begin":
            return self.machine.begin(now)
        if kind == "alarm":
            alarm, number = payload.decode().split(":")
            return self.machine.wake(now, alarm, int(number))  # type: ignore[arg-type]
        frame = known or decode(payload, self._voice(sender), self.settings.limits)
        example = None if frame.kind in EMPTY else self.machine.example
        return self.machine.receive(now, sender, frame.envelope(example))

    def _feed(self, step: Step, kind: str, sender: int, sequence: int, payload: bytes,
              known: Frame | None = None) -> None:  # fmt: skip
        """One input, committed with all it causes when the step ends."""
        now = self._now()
        try:
            effects = self._react(kind, sender, now, payload, known)
        except RemoteProtocolError as error:
            self.refused["message"] += 1
            log.warning("refused a message of peer %d: %s", sender, error)
            step.input("refused", sender, sequence, b"")
            return
        if kind == "alarm" and not effects and not payload.startswith(b"call"):
            return  # the end of a patience that nobody tried: nothing has changed, so there is nothing to remember
        step.input(kind, sender, sequence, TIME.pack(now) + payload)
        self._carry_out(effects, step)
        self.count_meeting_time(kind, now)
        for peer, own_step, clock, event in self.ledger.since(self._spent):
            step.spend(peer, own_step, clock, event.to_json())
        self._spent = self.ledger.calls

    def _carry_out(self, effects: list[Effect], step: Step | None) -> None:
        for effect in effects:
            if isinstance(effect, Send) and effect.to == self.me:
                self._own.append(effect.envelope)
            elif isinstance(effect, Send):
                self._post(effect, step)
            elif isinstance(effect, WakeAt):
                due = effect.time * self.settings.pace + self._behind if effect.alarm == "call" else effect.time
                self._alarm_count += 1
                heapq.heappush(self._alarms, (due, self._alarm_count, effect.alarm, effect.number))
            elif isinstance(effect, Met):
                self.meetings.append((self._now(), effect.other, self.me, dict(effect.reads)))
            elif isinstance(effect, Missed):
                self.missed.append(effect)
                if step is not None:
                    self._tell(effect)
            elif isinstance(effect, Skipped):
                self._skip(effect)
            elif isinstance(effect, Done):
                self.done = True

    def _skip(self, call: Skipped) -> None:
        self.skipped += 1
        for peer in call.others:
            if peer not in self.skipped_for:
                log.warning("peer %d has said nothing yet: this peer's clock calls in vain", peer)
            self.skipped_for[peer] = self.skipped_for.get(peer, 0) + 1

    def _tell(self, missed: Missed) -> None:
        """Tell the operator, once until it is back, who is gone on without."""
        if missed.late:
            log.info("made up for peer %d in exchange %d", missed.other, missed.number)
            self._gone.discard(missed.other)
        elif missed.other not in self._gone:
            log.warning("going on without peer %d, since exchange %d", missed.other, missed.number)
            self._gone.add(missed.other)

    def _post(self, effect: Send, step: Step | None) -> None:
        """Into the outbox; when inputs are executed again it is there already."""
        self._line(effect.to)
        self._told.add(effect.to)
        self.sent += 1
        self.receipts.posted(effect.to, self.ledger.calls if effect.envelope.row is not None else 0)
        if effect.envelope.row is not None:
            self.payloads += 1
            self.payload_bytes += row_bytes(effect.envelope.row)
        if step is not None:
            heard, row = step.last_sequence(effect.to), effect.envelope.row
            frame = Frame.of(self._voice(self.me), step.next_sequence(effect.to), effect.envelope, heard)
            known = self._body[1] if row is not None and row is self._body[0] else None
            head, body = encode_parts(frame, known, self.settings.limits)
            step.send(effect.to, head, body)
            self._body, self._carried[effect.to] = (row, body), heard

    def _now(self) -> float:
        return (time.monotonic() if self._paused is None else self._paused) - self._began

    @property
    def origin(self) -> float:
        """When this peer's clock showed 0, by the clock of the machine."""
        return self._began

    # the peer's life

    async def run(self) -> None:
        """Serve, take part until the end, and leave when the neighbors have everything."""
        server = await self.ears.serve()
        try:
            recall(self)
            for peer in first_neighbors(self.machine.seat.graph, self.me, self.machine.seat.steps):
                self._line(peer)
            if await self._gather():
                await self._live()
            if self._finished():
                await self._leave()
            told = not self._stop.is_set() or all(line.settled() for line in self.lines.values())
            self.ended = self._finished() and told
        finally:
            for task in list(self._tasks):
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)
            await server.stop(grace=0.2)

    def stop(self) -> None:
        """Leave now, in a state from which the next start goes on."""
        self._stop.set()

    def _callers(self) -> list[int]:
        """Who may ever call this peer: its neighbors, or, on a graph that changes, all the others."""
        graph = self.machine.seat.graph
        chosen = graph.neighbors(self.me) if isinstance(graph, Graph) else range(len(self.book.entries))
        return [int(peer) for peer in chosen if peer != self.me]

    @property
    def left_out(self) -> Sequence[LeftOut]:
        """The releases that the budget left out, in order."""
        return self.machine.seat.door.left_out

    async def _gather(self) -> bool:
        """Wait until the neighbors are there, then begin, or go on; False if this peer was stopped or gave up."""
        begun = bool(self.journal.last_sequence(self.me))
        silent = self._finished() or (self.settings.horizon is not None and not self.machine.calls_left)
        if not (begun and silent):  # who has nothing more to say of its own waits for nobody
            before = time.monotonic()
            self.gave_up = await self.gathering.wait(self.settings.timeout, self.settings.start_timeout,
                                                     self._stop.is_set, begun)  # fmt: skip
            self._began += time.monotonic() - before  # the peer's own clock stands still meanwhile
        if self._stop.is_set() or self.gave_up:
            return False
        self.gathering.begun()
        if not begun:
            self._began = self._paused = time.monotonic()
            with self.journal.step() as step:
                self._feed(step, "begin", self.me, step.last_sequence(self.me) + 1, b"")
            self._flush()
        elif not self.machine.called:
            self._paused = time.monotonic()
        return True

    def _look_at_clock(self) -> None:
        """The clock of calls starts when every neighbor has spoken once, so that no call is in vain; or after one
        patience."""
        if self._paused is None:
            return
        now = time.monotonic()
        if not self.machine.unheard() or now > self._paused + self.settings.timeout:
            self._began += now - self._paused
            self._paused = None

    async def _live(self) -> None:
        while not self._finished() and not self._stop.is_set():
            self._look_at_clock()
            first = await self._next_message()
            self._work(first)
        if self._draft is not None:
            self._work(None, commit=True)

    def _work(self, first: tuple[int, Frame, bytes] | None, commit: bool = False) -> None:
        """React to what has come; commit it if anybody waits for that, or if it has lingered long enough."""
        step, since = self._draft or (self.journal.begin(), time.monotonic())
        self._draft = (step, since)
        try:
            if first is not None:
                self._take(step, *first)
            while not self._queue.empty() and len(step.inputs) < BATCH:
                self._take(step, *self._queue.get_nowait())
            while self._own:
                self._hear_oneself(step)
            while (entry := self._next_alarm()) is not None and entry[0] <= self._now():
                self.take_alarm(entry, self._now())
                self._feed(step, "alarm", self.me, step.last_sequence(self.me) + 1, f"{entry[2]}:{entry[3]}".encode())
            lingered = len(step.inputs) >= BATCH or time.monotonic() > since + LINGER
            if not (commit or lingered or self.done or step.speaks()):
                return
            self.journal.commit(step)
        except BaseException as error:
            self.journal.fail(step, error)
            raise
        self._draft = None
        self._flush()
        keep(self)

    def _next_alarm(self) -> Entry | None:
        """The next alarm. A call waits while this peer is in a meeting with one who is there: meetings are meant to
        take no time, and a call that came in the middle of one would be lost."""
        other = self.machine.bound_to
        if other is None or not self.lines[other].connected:
            return self._alarms[0] if self._alarms else None
        return min((entry for entry in self._alarms if entry[2] != "call"), default=None)

    def take_alarm(self, entry: Entry, now: float) -> None:
        """An alarm rings. A call that rings late makes those after it later: the clock of a peer that is too slow for
        it goes slower, instead of calling again and again at the same moment."""
        self._alarms.remove(entry)
        heapq.heapify(self._alarms)
        if entry[2] == "call":
            self._behind += max(0.0, now - entry[0])

    def count_meeting_time(self, kind: str, now: float) -> None:
        """After an input: the clock of calls has stood still during a meeting that is over; not for one who never came,
        for whom patience ended."""
        if self.machine.waiting:
            self._bound = now if self._bound is None else self._bound
            return
        lasted, self._bound = 0.0 if self._bound is None else now - self._bound, None
        if lasted and kind != "alarm":
            self._behind += lasted
            self._alarms = [(due + lasted * (alarm == "call"), count, alarm, number)
                            for due, count, alarm, number in self._alarms]  # fmt: skip
            heapq.heapify(self._alarms)

    def _finished(self) -> bool:
        if self.settings.horizon is None:
            return self.done
        if self.machine.state is None or self.machine.calls_left:
            return False  # a call that is overdue, because the machine was busy, is made all the same
        over = self.settings.horizon * self.settings.pace + self._behind
        return self._now() > over and not self.machine.waiting

    async def _next_message(self) -> tuple[int, Frame, bytes] | None:
        """The next message, or None when an alarm rings or the host should look around."""
        if self._own:
            return None
        if not self._queue.empty():
            return self._queue.get_nowait()
        entry = self._next_alarm()
        due = min(entry[0] - self._now() if entry is not None else 0.2, 0.2)
        try:
            async with asyncio.timeout(max(due, 0.0)):
                return await self._queue.get()
        except TimeoutError:
            return None

    def _take(self, step: Step, sender: int, frame: Frame, data: bytes) -> None:
        self._heard.add(sender)
        if frame.sequence == step.last_sequence(sender) + 1:
            self._feed(step, "message", sender, frame.sequence, data, frame)

    def _hear_oneself(self, step: Step) -> None:
        envelope = self._own.pop(0)
        sequence = step.last_sequence(self.me) + 1
        self._feed(step, "own", self.me, sequence, encode(Frame.of(self._voice(self.me), 1, envelope)))

    def _flush(self) -> None:
        """After a commit: messages may leave, receipts may go out, to those whom the step concerned."""
        for peer in self._told:
            self.lines[peer].notify()
        self.ears.committed(self._heard)
        self._told, self._heard = set(), set()

    async def _leave(self) -> None:
        """Stay until every neighbor has our words and has said bye, or patience ends."""
        self.ears.hurry()
        for line in self.lines.values():
            line.bye()
        deadline = time.monotonic() + self.settings.timeout
        while time.monotonic() < deadline and not self._stop.is_set():
            if not self._queue.empty():
                with self.journal.step() as step:
                    while not self._queue.empty():
                        self._take(step, *self._queue.get_nowait())
                self._flush()
            if all(peer in self.ears.left and line.left() for peer, line in self.lines.items()):
                return
            await asyncio.sleep(0.01)
