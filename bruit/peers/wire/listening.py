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
from bruit.peers.wire.address_book import AddressBook, Entry
from bruit.peers.wire.codec import (
    CONTROL,
    METHOD,
    SERVICE,
    Conversation,
    Frame,
    Limits,
    decode,
    encode,
)
from bruit.peers.wire.identity import Identity, fingerprint
from bruit.peers.wire.line import options
from bruit.peers.wire.said_once import SaidOnce
from bruit.peers.wire.stamps import Scale
from bruit.peers.wire.threshold import PATIENCE, Threshold
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


@dataclass(frozen=True)
class Serving:
    """A server and the threshold before it."""

    server: grpc.aio.Server
    threshold: Threshold
    end_lines: Callable[[], bool]  # whether all of them have ended

    async def stop(self, grace: float | None) -> None:
        """End the lines by our own word: gRPC would cancel them, and log that as an error of
        ours."""
        deadline = time.monotonic() + (grace or 0.0)
        while not self.end_lines() and time.monotonic() < deadline:
            await asyncio.sleep(0.005)
        await self.server.stop(grace)
        await self.threshold.close()


@dataclass(kw_only=True)
class Listener:
    """The ears of a host; `news` is called with the peer whose receipts may let more leave.

    `carried` says up to which message of a peer our own words to it have already been a receipt.
    """

    identity: Identity
    book: AddressBook
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
        callers = list(self.callers)
        threshold = self._threshold = Threshold(len(callers), self._turned_away)
        server = grpc.aio.server(
            options=[
                *options(self.limits),
                ("grpc.max_concurrent_streams", 4),
                ("grpc.server_handshake_timeout_ms", int(1000 * PATIENCE)),
            ]
        )
        handlers: dict[str, Any] = {METHOD: grpc.stream_stream_rpc_method_handler(self._talk)}
        server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, handlers),))
        credentials = grpc.ssl_server_credentials(
            [(self.identity.key, self.identity.certificate.encode())],
            self.book.certificates(callers),
            require_client_auth=True,
        )
        server.add_secure_port(f"unix:{threshold.private}", credentials)
        await server.start()
        serving = Serving(server, threshold, self._end_lines)
        try:
            if self.elsewhere is not None:
                self.elsewhere(threshold)
            else:
                await threshold.open(self.book.entry(self.me))
        except BaseException:
            await serving.stop(None)
            raise
        return serving

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

    def _caller(self, context: Any) -> Entry:
        """Who speaks, by the pinned certificate; anything but TLS 1.3 is refused."""
        facts = context.auth_context()
        version = facts.get("ssl_tls_version", [b"an unknown version of TLS"])[0]
        if version != b"TLSv1.3":
            raise RemoteProtocolError(
                f"a caller speaks {version.decode(errors='replace')}; here it is TLS 1.3 only"
            )
        shown = facts.get("x509_pem_cert", [b""])[0].decode(errors="replace")
        entry = self.book.by_fingerprint(fingerprint(shown)) if shown else None
        if entry is None:
            raise RemoteProtocolError("a caller whose certificate is not in the address book")
        return entry

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
