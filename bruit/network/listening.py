"""Listening: the server of one peer. It checks who calls, queues messages in order, and gives receipts.

Callers are told apart by their pinned certificates. What is refused ends the call, is counted and logged, and changes
nothing; a receipt says that a message is in the journal.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import grpc

from bruit.errors import BruitError, RemoteProtocolError
from bruit.network.address_book import AddressBook, Entry
from bruit.network.identity import Identity, fingerprint
from bruit.network.journal import Journal
from bruit.network.line import options
from bruit.protocols.codec import CONTROL, METHOD, SERVICE, Conversation, Frame, Limits, decode, encode

log = logging.getLogger("bruit.network")
RECEIPTS = 1.0  # seconds until a receipt goes out on its own; messages the other way carry receipts too


@dataclass
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
    queue: asyncio.Queue[tuple[int, Frame, bytes]]
    refused: Counter[str]
    news: Callable[[int], None]
    carried: Callable[[int], int]
    left: set[int] = field(default_factory=set)  # who has said bye
    received_bytes: int = 0
    level: int = 0  # how far around this peer everybody is there, see `gathering`
    receipts: dict[int, asyncio.Event] = field(default_factory=dict)
    _last: dict[int, int] = field(default_factory=dict)  # the last message queued, by sender
    _later: set[int] = field(default_factory=set)  # who will get a receipt in a while
    _hurry: bool = False
    _warned: dict[int, str] = field(default_factory=dict)  # the last refusal that the operator heard of, by sender

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

    async def serve(self) -> grpc.aio.Server:
        """Begin to listen; RuntimeError when the port cannot be had."""
        server = grpc.aio.server(options=[*options(self.limits), ("grpc.so_reuseport", 0)])
        handlers: dict[str, Any] = {METHOD: grpc.stream_stream_rpc_method_handler(self._talk)}
        server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, handlers),))
        credentials = grpc.ssl_server_credentials(
            [(self.identity.key, self.identity.certificate.encode())], self.book.certificates(self.callers),
            require_client_auth=True,
        )  # fmt: skip
        entry = self.book.entry(self.me)
        server.add_secure_port(entry.address, credentials)
        await server.start()
        return server

    def _caller(self, context: Any) -> Entry:
        """Who speaks, by the pinned certificate; anything but TLS 1.3 is refused."""
        facts = context.auth_context()
        version = facts.get("ssl_tls_version", [b"an unknown version of TLS"])[0]
        if version != b"TLSv1.3":
            raise RemoteProtocolError(f"a caller speaks {version.decode(errors='replace')}; here it is TLS 1.3 only")
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
            log.warning("refused: %s", error)
            await context.abort(grpc.StatusCode.UNAUTHENTICATED, str(error))
            return
        receipts, over = asyncio.Event(), asyncio.Event()
        self.receipts[entry.peer] = receipts
        writer = asyncio.create_task(self._confirm(entry.peer, receipts, over, context))
        wrong = ""
        try:
            async for data in requests:
                self.received_bytes += len(data)
                if await self.accept(entry.peer, decode(data, self.voice(entry.peer), self.limits), data):
                    receipts.set()
        except RemoteProtocolError as error:
            wrong = str(error)
            self.refused["frame"] += 1
            level = logging.DEBUG if self._warned.get(entry.peer) == wrong else logging.WARNING
            log.log(level, "refused what peer %d sent: %s", entry.peer, wrong)
            self._warned[entry.peer] = wrong  # it will try again and again: the operator hears of it once
        finally:
            over.set()
            receipts.set()
            await asyncio.gather(writer, return_exceptions=True)  # a call may not end in the middle of a receipt
        if wrong:
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, wrong)

    async def accept(self, sender: int, frame: Frame, data: bytes) -> bool:
        """Take note of a control frame; queue the next message; drop what was queued before; refuse a gap.

        True when a receipt is due now; a message that was queued gets its receipt from the journal.
        """
        if frame.acknowledged:
            self.journal.acknowledge(sender, frame.acknowledged)
            if self._hurry:
                self.news(sender)
        if frame.kind in CONTROL:
            if frame.kind == "bye":
                self.left.add(sender)
            self.news(sender)
            return True
        last = max(self._last.get(sender, 0), self.journal.last_sequence(sender))
        if frame.sequence > last + 1:
            raise RemoteProtocolError(f"message {frame.sequence} came where {last + 1} is due")
        if frame.sequence == last + 1:
            self._last[sender] = frame.sequence
            self.left.discard(sender)
            await self.queue.put((sender, frame, data))
            return False
        self.refused["repeated"] += 1
        log.info("peer %d repeated message %d, which changes nothing", sender, frame.sequence)
        return True

    async def _confirm(self, sender: int, receipts: asyncio.Event, over: asyncio.Event, context: Any) -> None:
        """Receipts: "ack" for what is in the journal, "bye" for a bye; with the level this peer has reached."""
        said = (-1, False, 0)
        while not over.is_set():
            await receipts.wait()
            receipts.clear()
            now = (self.journal.last_sequence(sender), sender in self.left, self.level)
            if now != said:
                kind = "bye" if now[1] else "ack"
                await context.write(encode(Frame(self.voice(self.me), 0, kind, now[2], acknowledged=now[0])))
                said = now
