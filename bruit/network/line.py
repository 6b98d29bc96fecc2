"""A line to one neighbor: everything in the outbox arrives, in order, however often the connection breaks.

The caller opens a long-lived stream, says hello, learns what the other side has in its journal, and sends the rest
word for word; acknowledgments come back on the same stream. Nothing is ever made up here: bytes come from the journal.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass, field
from typing import Any

import grpc

from bruit.errors import RemoteProtocolError
from bruit.network.address_book import Entry
from bruit.network.identity import TLS_NAME, Identity
from bruit.network.journal import Journal
from bruit.protocols.codec import METHOD, SERVICE, Conversation, Frame, Limits, decode, encode

log = logging.getLogger("bruit.network")
PATH = f"/{SERVICE}/{METHOD}"
Stream = Any  # grpc.aio's stream of bytes both ways
FIRST_PAUSE, LONGEST_PAUSE = 0.05, 2.0  # seconds between two attempts to connect


def options(limits: Limits) -> list[tuple[str, int | str]]:
    """gRPC settings of both sides: sizes, keep-alive, no retries of its own."""
    return [
        ("grpc.max_send_message_length", limits.bytes), ("grpc.max_receive_message_length", limits.bytes),
        ("grpc.keepalive_time_ms", 10_000), ("grpc.keepalive_timeout_ms", 5_000),
        ("grpc.http2.max_pings_without_data", 0), ("grpc.http2.min_ping_interval_without_data_ms", 5_000),
        ("grpc.enable_retries", 0),
    ]  # fmt: skip


@dataclass
class Line:
    """The way to one neighbor; `connected` and the counters are for the operator."""

    identity: Identity
    entry: Entry
    journal: Journal
    mine: Conversation
    theirs: Conversation
    limits: Limits
    connected: bool = False
    level: int = 0  # how far around the neighbor everybody is there, see `gathering`
    sent_bytes: int = 0
    refused: int = 0
    said_bye: bool = False  # and the neighbor has confirmed it
    _news: asyncio.Event = field(default_factory=asyncio.Event)
    _closing: bool = False
    _warned: str = ""

    def notify(self) -> None:
        """There may be something new in the outbox."""
        self._news.set()

    def bye(self) -> None:
        """Say that nothing more will come, as soon as everything was acknowledged."""
        self._closing = True
        self._news.set()

    def left(self) -> bool:
        """Whether the neighbor, which has said bye itself, knows that this peer has nothing more for it."""
        return self.said_bye or (self.settled() and not self.connected)

    def settled(self) -> bool:
        """Whether the neighbor has everything."""
        return self.journal.settled(self.entry.peer)

    async def keep(self) -> None:
        """Connect, talk, and connect again, until cancelled."""
        pause = FIRST_PAUSE
        while True:
            try:
                async with self._channel() as channel:
                    await self._talk(channel)
                pause = FIRST_PAUSE
            except (grpc.aio.AioRpcError, RemoteProtocolError, asyncio.InvalidStateError) as error:
                self._tell(error)
            finally:
                self.connected, self.level = False, 0
            await asyncio.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)

    def _tell(self, error: Exception) -> None:
        """Log why the line is down; what waiting does not heal is told to the operator, once."""
        reason = str(error.details() if isinstance(error, grpc.aio.AioRpcError) else error)
        if isinstance(error, RemoteProtocolError):
            self.refused += 1
        elif "handshake" in reason.lower() or "certificate" in reason.lower():
            reason = (f"who listens at {self.entry.address} does not show the certificate that the address book lists, "
                      f"or refuses ours; compare fingerprints and dates")  # fmt: skip
        else:
            log.debug("line to peer %d is down: %s", self.entry.peer, reason)
            return
        if reason != self._warned:
            log.warning("line to peer %d is down: %s", self.entry.peer, reason)
            self._warned = reason

    def _channel(self) -> grpc.aio.Channel:
        credentials = grpc.ssl_channel_credentials(
            self.entry.certificate.encode(), self.identity.key, self.identity.certificate.encode()
        )
        settings = [*options(self.limits), ("grpc.ssl_target_name_override", TLS_NAME)]
        return grpc.aio.secure_channel(self.entry.address, credentials, settings)

    def _control(self, kind: str) -> bytes:
        heard = self.journal.last_sequence(self.entry.peer)
        return encode(Frame(self.mine, 0, kind, acknowledged=heard), self.limits)

    async def _talk(self, channel: grpc.aio.Channel) -> None:
        call: Stream = channel.stream_stream(PATH)(timeout=None)
        self.said_bye = False  # the neighbor may have started again and forgotten it
        await call.write(self._control("hello"))
        first = decode(await self._read(call), self.theirs, self.limits)
        self._confirm(first)
        self.connected = True
        reader = asyncio.create_task(self._listen(call))
        writer = asyncio.create_task(self._speak(call, first.acknowledged))
        done, pending = await asyncio.wait({reader, writer}, return_when=asyncio.FIRST_COMPLETED)
        for task in pending:
            task.cancel()
        call.cancel()
        await asyncio.gather(*pending, return_exceptions=True)
        for task in done:
            task.result()

    async def _read(self, call: Stream) -> bytes:
        data = await call.read()
        if not isinstance(data, bytes):
            raise RemoteProtocolError(f"peer {self.entry.peer} closed the line")
        return data

    def _confirm(self, frame: Frame) -> None:
        if frame.kind not in ("ack", "bye"):
            raise RemoteProtocolError(f"peer {self.entry.peer} answered {frame.kind!r} where only receipts are due")
        self.journal.acknowledge(self.entry.peer, frame.acknowledged)
        self.level = frame.number
        self.said_bye = frame.kind == "bye" and self.settled()

    async def _listen(self, call: Stream) -> None:
        while True:
            self._confirm(decode(await self._read(call), self.theirs, self.limits))
            self._news.set()

    async def _speak(self, call: Stream, after: int) -> None:
        bye = False
        while True:
            self._news.clear()
            fresh = self.journal.last_sent(self.entry.peer) > after
            for sequence, data in self.journal.outbox(self.entry.peer, after) if fresh else ():
                await call.write(data)
                self.sent_bytes += len(data)
                after, bye = sequence, False
            if self._closing and not bye and self.settled():
                await call.write(self._control("bye"))
                bye = True
            await self._news.wait()
