"""The host of one real peer: sockets and timers around a machine and its journal, nothing else.

Inputs (messages, alarms) are given to the machine in batches; one step of the journal commits the
inputs, the spend and the messages they caused; only then do messages leave and receipts go out.
What is refused is counted and logged and changes nothing. After a crash the host recalls what its
journal holds, and goes on. Before its first word it waits for its neighbors, and before each later
release for a quorum of them (`gathering`): inputs are then kept waiting, and the peer's clock
stands still.

A neighbor costs memory by what was agreed on, not by what it sends: frames are as large as the
agreed row and a header (the row's types and widths are known before the start), `waiting` keeps a
few of them for each neighbor, the machine takes them when they are due, and what it refuses ends
the line it came on. A step holds BATCH inputs at most, and takes no further one after VOLUME bytes
of messages or BUSY seconds.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from bruit.algorithms.door import LeftOut
from bruit.algorithms.schedules.machine import (
    Done,
    Effect,
    Envelope,
    GaveUp,
    Met,
    Missed,
    Send,
    Skipped,
    WakeAt,
)
from bruit.algorithms.schedules.peer import PeerMachine
from bruit.errors import BrokenStateError, RemoteProtocolError
from bruit.graphs import Graph
from bruit.peers.absences import Absences
from bruit.peers.agreed_masks import AgreedMasks
from bruit.peers.gathering import Gathering
from bruit.peers.held_answers import hold
from bruit.peers.journal.journal import Journal
from bruit.peers.journal.step import Step
from bruit.peers.own_clock import Entry, OwnClock
from bruit.peers.recalling import STARTS, TIME, keep, recall
from bruit.peers.relay.way import Ways
from bruit.peers.settings import Settings, first_neighbors
from bruit.peers.speech import Speech
from bruit.peers.wire.address_book import AddressBook
from bruit.peers.wire.codec import (
    Conversation,
    Frame,
    decode,
    encode,
    frame_bytes,
    like,
)
from bruit.peers.wire.identity import Identity
from bruit.peers.wire.line import Line
from bruit.peers.wire.listening import Listener
from bruit.peers.wire.members import Members
from bruit.peers.wire.stamps import Scale, Stamps
from bruit.peers.wire.threshold import Threshold
from bruit.peers.wire.waiting import Waiting
from bruit.privacy.ledger import Ledger
from bruit.randomness import Secure

log = logging.getLogger("bruit.peers")
# when by the own clock, with whom, who tells it, and what was read of whom
Meeting = tuple[float, int, int, dict[int, int]]
BATCH = 64  # inputs committed together at most
VOLUME = 4 * 2**20  # bytes of messages after which a step takes no further input
BUSY = 0.1  # seconds after which it takes none either, so that lines, status and signals get a turn
# seconds that inputs which cause nothing wait for company; a crash meanwhile costs a retransmission
LINGER = 1.0
LOOK = 1.0  # seconds between two looks for successions


@dataclass(kw_only=True)
class Host:
    """One peer on the network; `run` returns when the experiment has ended for everybody it can
    reach."""

    identity: Identity
    book: AddressBook
    run_id: str
    machine: PeerMachine
    journal: Journal
    ledger: Ledger
    settings: Settings = field(default_factory=Settings)
    masks: AgreedMasks | None = None  # where every start has a key of its own
    members: Members | None = None  # of the book; None: nobody has a new certificate
    ways: Ways | None = None  # through relays, if somebody is reached there
    checkup: Callable[[], bytes] | None = None  # what a participant is told that asks
    refused: Counter[str] = field(default_factory=Counter)
    met: int = 0  # meetings so far
    on_met: Callable[[Meeting], None] = lambda _: None  # hears of each
    absences: Absences = field(default_factory=Absences)
    done: bool = False
    ended: bool = False  # nothing is left to do in a next start
    gave_up: str = ""  # why it did not begin, or not go on
    broken: bool = False  # its journal is an old copy, or damaged: no later start goes on

    def __post_init__(self) -> None:
        self.me = self.machine.seat.me
        self.algorithm = self.machine.seat.algorithm.name()
        self.lines: dict[int, Line] = {}
        rehearsal = not isinstance(self.machine.seat.dice, Secure)
        self.stamps = Stamps(self.identity, self.run_id, self.me, rehearsal)
        self.scale = Scale(self.journal, self.stamps, self._break_off)
        self.key = b""  # of the dice of this start; empty in a rehearsal
        self.row = self.machine.expected()  # no row, but of the types and widths of one
        longest = max(frame_bytes(self._due(kind)) for kind in self.machine.kinds)
        self.limits = replace(self.settings.limits, bytes=min(self.settings.limits.bytes, longest))
        self.speech = Speech(
            machine=self.machine,
            journal=self.journal,
            ledger=self.ledger,
            stamps=self.stamps,
            voice=self._voice(self.me),
            limits=self.limits,
        )
        self._queue = Waiting(self._early, self.settings.queue)
        self.clock = OwnClock(pace=self.settings.pace)
        self._own: list[Envelope] = []
        self._spent = 0
        self.cover: Callable[[], None] = lambda: None  # asked before releases are committed
        self._heard_from: set[int] = set()  # from whom this step has heard something
        self.people = self.members or Members(self.book)
        self._open_ears()
        self._until = 0.0  # when others get a turn
        self._draft: tuple[Step, float] | None = None  # inputs not yet committed, and since when
        self.enough = self.settings.kept  # bytes of steps after which a snapshot is taken
        self._tasks: set[asyncio.Task[None]] = set()
        self._stop = asyncio.Event()

    def _open_ears(self) -> None:
        """Who may speak to this peer, and for whom it waits."""
        self.ears = Listener(
            identity=self.identity,
            members=self.people,
            me=self.me,
            callers=self._callers(),
            voice=self._voice,
            journal=self.journal,
            limits=self.limits,
            queue=self._queue,
            refused=self.refused,
            news=self._news,
            carried=self._has_carried,
            scale=self.scale,
            due=self._check,
            elsewhere=self._be_reached if self.ways is not None and self.ways.relayed else None,
            checkup=self.checkup,
            learned=self._pass_on,
        )
        self.gathering = Gathering(
            lines=self.lines,
            names=lambda peer: self.book.entry(peer).name,
            wait_for=self.settings.wait_for,
            announce=self.ears.announce,
            quorum=self.settings.quorum,
        )

    def _pass_on(self) -> None:
        """Everybody hears of all successions that this peer knows of, and may call with the new
        certificates."""
        self._spawn(self.ears.renew())
        for line in self.lines.values():
            line.successions.set()

    async def _look_for_successions(self) -> None:
        """An operator may have put one into the folder."""
        while True:
            await asyncio.sleep(LOOK)
            if self.people.look():
                self._pass_on()

    def _be_reached(self, threshold: Threshold) -> None:
        """Callers come through a relay, and no port is open."""
        if self.ways is not None:
            self.ways.listen(threshold.visitor)

    # inputs and effects

    def _voice(self, peer: int) -> Conversation:
        return Conversation(self.run_id, self.algorithm, peer)

    def _news(self, peer: int) -> None:
        if peer in self.lines:
            self.lines[peer].notify()

    def _has_carried(self, peer: int) -> int:
        there = peer in self.lines and self.lines[peer].connected
        return self.speech.carried.get(peer, 0) if there else 0

    def _early(self, sender: int, frame: Frame) -> bool:
        return self.machine.listening and self.machine.early(sender, frame.kind, frame.number)

    def _check(self, sender: int, frame: Frame) -> None:
        """Refuse what no neighbor in this run says, before it waits for its turn."""
        if frame.kind not in self.machine.kinds:
            raise RemoteProtocolError(
                f"peer {sender} sent a message of kind {frame.kind!r}, which nobody expects"
            )
        like(
            self.machine.row_of(frame.kind)
            if self.machine.state is not None
            else self._due(frame.kind),
            frame.fields,
        )

    def _due(self, kind: str) -> Any:
        """The row of a message of this kind, before this peer has begun."""
        self.machine.example, before = self.row, self.machine.example
        try:
            return self.machine.row_of(kind)
        finally:
            self.machine.example = before

    def _line(self, peer: int) -> Line:
        if peer not in self.lines:
            entry = self.book.entry(peer)
            self.lines[peer] = Line(
                identity=self.identity,
                entry=entry,
                members=self.people,
                journal=self.journal,
                mine=self._voice(self.me),
                theirs=self._voice(peer),
                limits=self.limits,
                scale=self.scale,
                target=entry.address if self.ways is None else self.ways.address(entry),
                no_way=lambda: "" if self.ways is None else self.ways.trouble.get(peer, ""),
            )
            self._spawn(self.lines[peer].keep())
        return self.lines[peer]

    def _spawn(self, work: Any) -> None:
        task: asyncio.Task[None] = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _react(
        self, kind: str, sender: int, now: float, payload: bytes, known: Frame | None = None
    ) -> list[Effect]:
        """What the machine does with one input; the same on the first and on every later
        execution."""
        if kind == "begin":
            return self.machine.begin(now)
        if kind == "alarm":
            alarm, number = payload.decode().split(":")
            return self.machine.wake(now, alarm, int(number))  # type: ignore[arg-type]
        if kind == "key":
            return self.machine.renew(now, payload)
        frame = known or decode(payload, self._voice(sender), self.limits)
        return self.machine.hear(now, sender, frame.envelope(self.machine.row_of(frame.kind)))

    def _feed(
        self,
        step: Step,
        kind: str,
        sender: int,
        sequence: int,
        payload: bytes,
        known: Frame | None = None,
    ) -> None:
        """One input, committed with all it causes when the step ends."""
        now, began = self.clock.now(), time.monotonic()
        try:
            effects = self._react(kind, sender, now, payload, known)
        except RemoteProtocolError as error:
            self.refused["message"] += 1
            own = b"own" if kind == "own" else b""  # it was taken from what this peer owes itself
            step.input("refused", sender, sequence, own, b"" if known is None else known.stamp)
            self.ears.refuse(sender, str(error))
            return
        if self.ledger.calls > self._spent:  # before it is kept, let alone told
            hold(began, self.settings.answer_seconds)
        if kind == "alarm" and not effects and not payload.startswith((b"call", b"grace")):
            # the end of a patience that nobody tried: nothing has changed, so there is nothing to
            # remember
            return
        for word in self.machine.uttered():  # no later start can make it again: it is read here
            said = encode(Frame.of(self._voice(self.me), 1, word), self.limits)
            step.input("words", STARTS, step.last_sequence(STARTS) + 1, said)
        step.input(
            kind, sender, sequence, TIME.pack(now) + payload, b"" if known is None else known.stamp
        )
        self._carry_out(effects, step)
        self.count_meeting_time(kind, now)
        for peer, own_step, clock, event in self.ledger.since(self._spent):
            step.spend(peer, own_step, clock, event.to_json())
        if self._spent < self.ledger.calls:
            self.cover()
        self._spent = self.ledger.calls

    def _carry_out(self, effects: list[Effect], step: Step | None) -> None:
        for effect in effects:
            if isinstance(effect, Send) and effect.to == self.me:
                self._own.append(effect.envelope)
            elif isinstance(effect, Send):
                self._post(effect, step)
            elif isinstance(effect, WakeAt):
                self.clock.wake_at(effect)
            elif isinstance(effect, Met):
                self.met += 1
                self.on_met((self.clock.now(), effect.other, self.me, dict(effect.reads)))
            elif isinstance(effect, Missed):
                self.absences.note_missed(effect, again=step is None)
            elif isinstance(effect, Skipped):
                self.absences.note_skipped(effect)
            elif isinstance(effect, Done):
                self.done = True
            elif isinstance(effect, GaveUp) and step is not None:
                self.gave_up = self.gave_up or effect.why

    def _post(self, effect: Send, step: Step | None) -> None:
        self._line(effect.to)
        self.speech.post(effect, step)

    @property
    def origin(self) -> float:
        """When this peer's clock showed 0, by the clock of the machine."""
        return self.clock.began

    # the peer's life

    async def run(self) -> None:
        """Serve, take part until the end, and leave when the neighbors have everything."""
        server = await self.ears.serve()
        try:
            if self.ways is not None:
                await self.ways.open(self._callers())
            self._spawn(self._look_for_successions())
            recall(self)
            for peer in first_neighbors(self.machine.seat.graph, self.me, self.machine.seat.steps):
                self._line(peer)
            if await self._gather():
                await self._live()
            if self._finished():
                await self._leave()
            told = not self._stop.is_set() or all(line.settled() for line in self.lines.values())
            self.ended = self._finished() and told and not self.broken
        except BrokenStateError as error:
            self._break_off(error)
        finally:
            for task in list(self._tasks):
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)
            await server.stop(grace=0.2)
            if self.ways is not None:
                await self.ways.close()

    def stop(self) -> None:
        """Leave now, in a state from which the next start goes on."""
        self._stop.set()

    def _break_off(self, error: BrokenStateError) -> None:
        """The journal is an old copy or damaged: stop at once, release nothing more, and say so."""
        if not self.broken:
            self.broken, self.gave_up = True, str(error)
            log.error("peer %d stops: %s", self.me, error)
            self.journal.condemn(error)
            self._stop.set()

    def _callers(self) -> list[int]:
        """Who may ever call this peer: its neighbors, or, on a graph that changes, all the
        others."""
        graph = self.machine.seat.graph
        chosen = (
            graph.neighbors(self.me) if isinstance(graph, Graph) else range(len(self.book.entries))
        )
        return [int(peer) for peer in chosen if peer != self.me]

    @property
    def left_out(self) -> Sequence[LeftOut]:
        """The releases that the budget left out, in order."""
        return self.machine.seat.door.left_out

    async def _gather(self) -> bool:
        """Wait until the neighbors are there, then begin, or go on; False if this peer was stopped
        or gave up."""
        begun = bool(self.journal.last_sequence(self.me))
        silent = self._finished() or (
            self.settings.horizon is not None and not self.machine.calls_left
        )
        if not (begun and silent):  # who has nothing more to say of its own waits for nobody
            before = time.monotonic()
            why = await self.gathering.wait(
                self.settings.timeout, self.settings.start_timeout, self._stop.is_set, begun
            )
            self.gave_up = (
                self.gave_up or why
            )  # while it waited it may have found that its journal is an old copy
            self.clock.stood_still_since(before)
        if self._stop.is_set() or self.gave_up:
            return False
        self.gathering.begun()
        if not begun:
            self.clock.start()
            with self.journal.step() as step:
                self._show_key(step)
                self._feed(step, "begin", self.me, step.last_sequence(self.me) + 1, b"")
            self._flush()
            return True
        if not self.machine.called:
            self.clock.pause()
        if not self._finished():
            with self.journal.step() as step:
                self._show_key(step)
            self._flush()
        return True

    def _show_key(self, step: Step) -> None:
        """This start has a key of its own, where peers need some: in memory only, but for its
        public half."""
        if self.masks is not None and self.machine.keyed:
            place = step.last_sequence(self.me) + 1
            self._feed(step, "key", self.me, place, self.masks.renew())

    def _start_clock_when_all_spoke(self) -> None:
        """The clock of calls starts when every neighbor has spoken once, so that no call is in
        vain; or after one patience, which the machine then hears of."""
        since = self.clock.paused
        if since is None:
            return
        if not self.machine.unheard():
            self.clock.unpause()
        elif time.monotonic() > since + self.settings.timeout:
            self.clock.unpause()
            self.clock.ring("grace")

    def _lonely(self) -> bool:
        """Whether the next input may release data, and too few neighbors are there to hear it."""
        settings = self.settings
        if (
            not settings.quorum
            or self.clock.paused is not None
            or not self.machine.reads_on(settings.reads_until)
        ):
            return False
        if (
            self.machine.reads_with_one
        ):  # what a neighbor brings is taken; alone with oneself one waits
            return self.gathering.connected() < 1 and (bool(self._own) or self._queue.empty())
        return self.gathering.connected() < settings.quorum

    async def _wait_for_quorum(self) -> None:
        """Until enough neighbors are there again; the clock stands still, and inputs wait. Else
        this peer gives up."""
        if self._draft is not None:
            self._work(None, commit=True)
        before = time.monotonic()
        quorum = 1 if self.machine.reads_with_one else self.settings.quorum
        why = await self.gathering.wait_again(
            quorum, self.settings.start_timeout, self._stop.is_set, self.ears.left
        )
        self.gave_up = self.gave_up or why  # meanwhile its journal may have been found to be old
        self.clock.stood_still_since(before)

    async def _live(self) -> None:
        while not self._finished() and not self._stop.is_set() and not self.gave_up:
            self._start_clock_when_all_spoke()
            if not self._lonely():
                first = await self._next_message()
                if not self._lonely() or (first is not None and self.machine.reads_with_one):
                    self._work(first)
                    continue
                if first is not None:  # they left while this peer waited for its next input
                    self._queue.put_back(first)
            await self._wait_for_quorum()
        if self._draft is not None:
            self._work(None, commit=True)

    def _work(self, first: tuple[int, Frame, bytes] | None, commit: bool = False) -> None:
        """React to what has come; commit it if anybody waits for that, or if it has lingered long
        enough."""
        step, since = self._draft or (self.journal.begin(), time.monotonic())
        self._until = time.monotonic() + BUSY
        self._draft = (step, since)
        alone = (
            commit and self._lonely()
        )  # what has come already is kept, and nothing more is reacted to
        try:
            if first is not None:
                self._take(step, *first)
            while not alone and not self._full(step) and not self._queue.empty():
                self._take(step, *self._queue.get_nowait())
            while self._own and not self._lonely() and self.speech.volume < VOLUME:
                self._hear_oneself(step)
            while (
                not alone
                and not self._full(step)
                and (entry := self._next_alarm()) is not None
                and entry[0] <= self.clock.now()
            ):
                self.clock.take_alarm(entry, self.clock.now())
                self._feed(
                    step,
                    "alarm",
                    self.me,
                    step.last_sequence(self.me) + 1,
                    f"{entry[2]}:{entry[3]}".encode(),
                )
            lingered = len(step.inputs) >= BATCH or time.monotonic() > since + LINGER
            if not (commit or lingered or self.done or step.speaks()):
                return
            self.journal.commit(step)
        except BaseException as error:
            self.journal.fail(step, error)
            raise
        self._draft, self.speech.volume = None, 0
        self._flush()
        keep(self)

    def _full(self, step: Step) -> bool:
        return (
            len(step.inputs) >= BATCH
            or self.speech.volume >= VOLUME
            or time.monotonic() > self._until
        )

    def _next_alarm(self) -> Entry | None:
        """The next alarm; calls wait while this peer is in a meeting with one who is there."""
        other = self.machine.bound_to
        return self.clock.next_alarm(other is not None and self.lines[other].connected)

    def count_meeting_time(self, kind: str, now: float) -> None:
        """After an input: calls have stood still during a meeting that is over."""
        self.clock.count_meeting_time(self.machine.waiting, kind, now)

    def _finished(self) -> bool:
        if self.settings.horizon is None:
            return self.done
        if self.machine.state is None or self.machine.calls_left:
            return (
                False  # a call that is overdue, because the machine was busy, is made all the same
            )
        over = self.settings.horizon * self.settings.pace + self.clock.behind
        return self.clock.now() > over and not self.machine.waiting

    async def _next_message(self) -> tuple[int, Frame, bytes] | None:
        """The next message, or None when an alarm rings or the host should look around."""
        if self._own:
            return None
        if not self._queue.empty():
            return self._queue.get_nowait()
        entry = self._next_alarm()
        due = min(entry[0] - self.clock.now() if entry is not None else 0.2, 0.2)
        try:
            async with asyncio.timeout(max(due, 0.0)):
                return await self._queue.get()
        except TimeoutError:
            return None

    def _take(self, step: Step, sender: int, frame: Frame, data: bytes) -> None:
        self._heard_from.add(sender)
        if frame.sequence == step.last_sequence(sender) + 1:
            self._feed(step, "message", sender, frame.sequence, data, frame)

    def _hear_oneself(self, step: Step) -> None:
        envelope = self._own.pop(0)
        sequence = step.last_sequence(self.me) + 1
        self._feed(
            step, "own", self.me, sequence, encode(Frame.of(self._voice(self.me), 1, envelope))
        )

    def _flush(self) -> None:
        """After a commit: messages may leave, receipts may go out, to those whom the step
        concerned."""
        for peer in self.speech.committed():
            self.lines[peer].notify()
        self.ears.committed(self._heard_from)
        self.gathering.heed(self.absences.missed > 0)
        self._heard_from = set()

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
            self.gathering.heed(self.absences.missed > 0)
            if all(peer in self.ears.left and line.left() for peer, line in self.lines.items()):
                return
            await asyncio.sleep(0.01)
