"""Listening: the server of one peer. It checks who calls, queues messages in order, and gives
receipts.

Callers are told apart by their pinned certificates. What is refused ends the call, is counted and
logged, and changes nothing; a receipt says that a message is in the journal. A neighbor has one
line: a new one ends the one before it. Who is refused again and again is not listened to for a
while. What the neighbor is told is about what it sent, never about this machine.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import grpc

from bruit.errors import BrokenStateError, BruitError, RemoteProtocolError
from bruit.peers.journal.journal import Journal
from bruit.peers.wire.checkup import CHECK, answering, hearing
from bruit.peers.wire.codec import (
    CONTROL,
    METHOD,
    Conversation,
    Frame,
    Limits,
    decode,
    encode,
)
from bruit.peers.wire.entry import Entry
from bruit.peers.wire.identity import Identity
from bruit.peers.wire.members import Members
from bruit.peers.wire.said_once import SaidOnce
from bruit.peers.wire.serving import ServerDoor, Serving, caller_of, serve
from bruit.peers.wire.stamps import Scale
from bruit.peers.wire.succession import SUCCEED
from bruit.peers.wire.threshold import Threshold
from bruit.peers.wire.versions import SPOKEN, Versions
from bruit.peers.wire.waiting import EACH, Waiting

log = logging.getLogger("bruit.peers")
# frames in a row on one line that say nothing new; an honest line repeats what was in the queue and
# in a step that was not yet committed (`host.BATCH`), and no more
IDLE = 64 + EACH
SHUT, LONGEST_SHUT = (
    0.25,
    8.0,
)  # seconds that who was refused twice or more is not listened to, doubling
ABORTED, INVALID = grpc.StatusCode.ABORTED, grpc.StatusCode.INVALID_ARGUMENT
RECEIPTS = (
    1.0  # seconds until a receipt goes out on its own; messages the other way carry receipts too
)


@dataclass(kw_only=True)
class Listener:
    """The ears of a host; `news` is called with the peer whose receipts may let more leave.

    `carried` says up to which message of a peer our own words to it have already been a receipt.
    """

    identity: Identity
    members: Members
    me: int
    callers: Iterable[int]  # who may call: the neighbors
    voice: Callable[[int], Conversation]
    journal: Journal
    limits: Limits
    queue: Waiting
    refused: Counter[str]
    news: Callable[[int], None]
    carried: Callable[[int], int]
    scale: Scale
    elsewhere: Callable[[Threshold], None] | None = None  # opens no port: callers are brought
    learned: Callable[[], None] = lambda: None  # there is a succession that others should hear of
    checkup: Callable[[], bytes] | None = None  # what is told to who asks before a run
    due: Callable[[int, Frame], None] = lambda sender, frame: (
        None
    )  # refuses what is not of the agreed kinds and sizes
    left: set[int] = field(default_factory=set)  # who has said bye
    received_bytes: int = 0
    level: int = 0  # how far around this peer everybody is there, see `gathering`
    receipts: dict[int, asyncio.Event] = field(default_factory=dict)
    _last: dict[int, int] = field(default_factory=dict)  # the last message queued, by sender
    _later: set[int] = field(default_factory=set)  # who will get a receipt in a while
    _hurry: bool = False
    _told: SaidOnce = field(default_factory=lambda: SaidOnce(log))
    _lines: dict[int, asyncio.Future[tuple[grpc.StatusCode, str]]] = field(
        default_factory=dict
    )  # how to end each
    _shut: dict[int, tuple[float, float]] = field(
        default_factory=dict
    )  # until when nobody listens to it, and how long
    _threshold: Threshold | None = None
    _serving: Serving | None = None
    _calls: int = 0  # under way

    def committed(self, senders: set[int]) -> None:
        """There is more of these senders in the journal: receipts go out to them, in a while."""
        for peer in senders & self.receipts.keys():
            if self._hurry:
                self.receipts[peer].set()
            elif peer not in self._later:
                self._later.add(peer)
                asyncio.get_running_loop().call_later(RECEIPTS, self._remind, peer)

    def _remind(self, peer: int) -> None:
        self._later.discard(peer)
        if self.carried(peer) < self.journal.last_sequence(peer):
            self.receipts[peer].set()

    def announce(self, level: int) -> None:
        """Tell all callers, now, how far around this peer everybody is there."""
        self.level = level
        for receipt in self.receipts.values():
            receipt.set()

    def hurry(self) -> None:
        """Nothing more will be said that could carry receipts: from now on they go out at once."""
        self._hurry = True
        for receipt in self.receipts.values():
            receipt.set()

    async def serve(self) -> Serving:
        """Begin to listen; RuntimeError when the port cannot be had."""
        handlers: dict[str, Any] = {METHOD: grpc.stream_stream_rpc_method_handler(self._talk)}
        if self.checkup is not None:
            handlers[CHECK] = answering(self.checkup, self._caller)
        handlers[SUCCEED] = hearing(self._succeed, self._caller)
        door = ServerDoor(
            identity=self.identity,
            members=self.members,
            me=self.me,
            callers=list(self.callers),
            limits=self.limits,
            elsewhere=self.elsewhere,
        )
        serving = await serve(door, handlers, self._turned_away, self._end_lines)
        self._threshold, self._serving = serving.threshold, serving
        return serving

    async def renew(self) -> None:
        """Somebody has a new certificate: new lines are laid with it."""
        if self._serving is not None:
            await self._serving.renew()

    def _end_lines(self) -> bool:
        for line in self._lines.values():
            if not line.done():
                line.set_result(
                    (grpc.StatusCode.UNAVAILABLE, "this peer leaves")
                )  # an end, and no refusal
        return not self._calls

    def _turned_away(self, address: str, why: str) -> None:
        self.refused["stranger"] += 1
        self._told.warn(
            ("stranger", address),
            "closed a connection from %s on which no neighbor spoke (%s)",
            address,
            why,
        )

    def _succeed(self, data: bytes) -> None:
        """Hear of a new certificate of anybody; whoever hears news passes it on."""
        try:
            news = self.members.learn(data)
        except RemoteProtocolError as error:
            self.refused["succession"] += 1
            self._told.warn(("succession", str(error)), "refused a succession: %s", error)
            raise
        if news:
            self.learned()

    def _caller(self, context: Any) -> Entry:
        return caller_of(self.members, context)

    async def _talk(self, requests: Any, context: Any) -> None:
        """One neighbor's stream: check, queue, and send receipts for what is in the journal."""
        try:
            entry = self._caller(context)
        except BruitError as error:
            self.refused["caller"] += 1
            self._told.warn(("caller", str(error)), "refused: %s", error)
            await context.abort(grpc.StatusCode.UNAUTHENTICATED, str(error))
            return
        peer = entry.peer
        ended = (
            self._threshold.speaks(context.peer()) if self._threshold is not None else lambda: None
        )
        self._calls += 1
        try:
            code, why = await self._line(peer, requests, context)
        finally:
            self._calls -= 1
            ended()
        if why:
            await context.abort(code, why)

    async def _line(self, peer: int, requests: Any, context: Any) -> tuple[grpc.StatusCode, str]:
        """Hear one neighbor until it ends, another line takes the place of this one, or something
        is refused: why."""
        if time.monotonic() < self._shut.get(peer, (0.0, 0.0))[0]:
            self.refused["frame"] += 1
            return INVALID, "what this peer sent was refused more than once; call again later"
        over: asyncio.Future[tuple[grpc.StatusCode, str]] = (
            asyncio.get_running_loop().create_future()
        )
        before = self._lines.get(peer)
        if before is not None and not before.done():
            before.set_result(
                (ABORTED, "another line of this peer has taken the place of this one")
            )
        self._lines[peer] = over
        receipts, silent = asyncio.Event(), asyncio.Event()
        self.receipts[peer] = receipts
        writer = asyncio.create_task(self._confirm(peer, receipts, silent, context))
        reader = asyncio.create_task(self._hear(peer, requests, receipts))
        try:
            either: list[asyncio.Future[Any]] = [reader, over]
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
            return over.result() if over.done() else self._outcome(peer, reader)
        finally:
            reader.cancel()
            silent.set()
            receipts.set()
            await asyncio.gather(
                reader, writer, return_exceptions=True
            )  # no call ends in the middle of a receipt

    def _outcome(self, peer: int, reader: asyncio.Task[None]) -> tuple[grpc.StatusCode, str]:
        """Why a line has ended by itself; of trouble in this machine the neighbor hears nothing but
        that there is."""
        error = reader.exception()
        if error is None:
            return ABORTED, ""
        if isinstance(error, RemoteProtocolError):
            self.refused["frame"] += 1
            self._complain(peer, str(error))
            return INVALID, str(error)
        if isinstance(error, BrokenStateError):  # the host stops by itself, and says why
            return grpc.StatusCode.INTERNAL, "this peer has stopped"
        self._told.warn((peer, "trouble"), "cannot listen to peer %d: %s", peer, error)
        return grpc.StatusCode.INTERNAL, "this peer cannot listen now"

    def _complain(self, peer: int, why: str) -> None:
        """Tell the operator, not too often, and listen less to who is refused again and again."""
        now, (until, pause) = time.monotonic(), self._shut.get(peer, (0.0, 0.0))
        if now > until + 8 * LONGEST_SHUT:
            pause = 0.0
        self._shut[peer] = (now + pause, min(2 * pause, LONGEST_SHUT) or SHUT)
        self._told.warn((peer, "frame"), "refused what peer %d sent: %s", peer, why)

    def refuse(self, peer: int, why: str) -> None:
        """The machine has refused a message of that neighbor: its line is ended, and it is told
        why."""
        self._complain(peer, why)
        line = self._lines.get(peer)
        if line is not None and not line.done():
            line.set_result((INVALID, why))

    async def _hear(self, peer: int, requests: Any, receipts: asyncio.Event) -> None:
        idle = 0
        async for data in requests:
            self.received_bytes += len(data)
            if await self.accept(peer, decode(data, self.voice(peer), self.limits), data):
                receipts.set()
                idle += 1
            else:
                idle = 0
            if idle > IDLE:
                raise RemoteProtocolError(f"{idle} frames in a row said nothing new")

    async def accept(self, sender: int, frame: Frame, data: bytes) -> bool:
        """Take note of a control frame; queue the next message; drop what was queued before; refuse
        a gap.

        True when a receipt is due now; a message that was queued gets its receipt from the journal.
        """
        if frame.acknowledged:
            self.scale.weigh(sender, frame)
            if self._hurry:
                self.news(sender)
        if frame.kind in CONTROL:
            if frame.kind == "hello":
                SPOKEN.check(Versions.of(frame.number), f"peer {sender}")
            if frame.kind == "bye":
                self.left.add(sender)
            self.news(sender)
            return True
        self.due(sender, frame)
        if frame.sequence == self._heard(sender) + 1:
            await self.queue.room(
                sender
            )  # a call that ends here has queued nothing, and the message comes again
        last = self._heard(sender)  # another line of this neighbor may have been faster
        if frame.sequence > last + 1:
            raise RemoteProtocolError(f"message {frame.sequence} came where {last + 1} is due")
        if frame.sequence == last + 1:
            self._last[sender] = frame.sequence
            self.left.discard(sender)
            self.queue.put((sender, frame, data))
            return False
        self.refused["repeated"] += 1
        log.debug("peer %d repeated message %d, which changes nothing", sender, frame.sequence)
        return True

    def _heard(self, sender: int) -> int:
        """The last message of that neighbor that is in the journal or on its way there."""
        return max(self._last.get(sender, 0), self.journal.last_sequence(sender))

    async def _confirm(
        self, sender: int, receipts: asyncio.Event, over: asyncio.Event, context: Any
    ) -> None:
        """Receipts: "ack" for what is in the journal, "bye" for a bye; with the level this peer has
        reached."""
        said = (-1, False, 0)
        while not over.is_set():
            await receipts.wait()
            receipts.clear()
            now = (self.journal.last_sequence(sender), sender in self.left, self.level)
            if now != said:
                kind = "bye" if now[1] else "ack"
                echo = self.journal.last_stamp(sender)
                await context.write(
                    encode(
                        Frame(
                            conversation=self.voice(self.me),
                            sequence=0,
                            kind=kind,
                            number=now[2],
                            acknowledged=now[0],
                            echo=echo,
                        )
                    )
                )
                said = now
