"""A line to one neighbor: everything in the outbox arrives, in order, however often the connection
breaks.

The caller opens a long-lived stream, says hello, learns what the other side has in its journal, and
sends the rest word for word; acknowledgments come back on the same stream. Nothing is ever made up
here: bytes come from the journal.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import grpc

from bruit.errors import BrokenStateError, RemoteProtocolError
from bruit.peers.journal.journal import Journal
from bruit.peers.wire.codec import METHOD, SERVICE, Conversation, Frame, Limits, decode, encode
from bruit.peers.wire.entry import Entry
from bruit.peers.wire.identity import TLS_NAME, Identity
from bruit.peers.wire.members import Members
from bruit.peers.wire.said_once import SaidOnce
from bruit.peers.wire.stamps import Scale
from bruit.peers.wire.succession import SUCCEED
from bruit.peers.wire.versions import SPOKEN

log = logging.getLogger("bruit.peers")
PATH = f"/{SERVICE}/{METHOD}"
Stream = Any  # grpc.aio's stream of bytes both ways
TELLING = 10.0  # seconds for a succession to be heard
FIRST_PAUSE, LONGEST_PAUSE = 0.05, 2.0  # seconds between two attempts to connect


def options(limits: Limits) -> list[tuple[str, int | str]]:
    """gRPC settings of both sides: sizes, keep-alive, no retries of its own."""
    return [
        ("grpc.max_send_message_length", limits.bytes),
        ("grpc.max_receive_message_length", limits.bytes),
        ("grpc.keepalive_time_ms", 10_000),
        ("grpc.keepalive_timeout_ms", 5_000),
        ("grpc.http2.max_pings_without_data", 0),
        ("grpc.http2.min_ping_interval_without_data_ms", 5_000),
        ("grpc.enable_retries", 0),
    ]


@dataclass(kw_only=True)
class Line:
    """The way to one neighbor; `connected` and the counters are for the operator."""

    identity: Identity
    entry: Entry
    members: Members
    journal: Journal
    mine: Conversation
    theirs: Conversation
    limits: Limits
    scale: Scale
    target: str = ""  # where gRPC finds it, if not at the address in the book
    no_way: Callable[[], str] = (
        str  # why a relay does not lead there, which was told; "" if it does
    )
    connected: bool = False
    tried: bool = False  # there was an answer, or there was none to be had
    level: int = 0  # how far around the neighbor everybody is there, see `gathering`
    sent_bytes: int = 0
    refused: int = 0
    said_bye: bool = False  # and the neighbor has confirmed it
    successions: asyncio.Event = field(default_factory=asyncio.Event)  # the neighbor may not know
    heard: set[str] = field(default_factory=set)  # new certificates that the neighbor knows of
    _news: asyncio.Event = field(default_factory=asyncio.Event)
    _closing: bool = False
    _told: SaidOnce = field(default_factory=lambda: SaidOnce(log))

    def notify(self) -> None:
        """There may be something new in the outbox."""
        self._news.set()

    def bye(self) -> None:
        """Say that nothing more will come, as soon as everything was acknowledged."""
        self._closing = True
        self._news.set()

    def left(self) -> bool:
        """Whether the neighbor, which has said bye itself, knows that this peer has nothing more
        for it."""
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
            except BrokenStateError as error:
                self.scale.stop(error)
                return
            finally:
                if self.connected:
                    pause = FIRST_PAUSE  # a line that was up is laid again at once
                self.connected, self.level, self.tried = False, 0, True
            await asyncio.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)

    def _tell(self, error: Exception) -> None:
        """Log why the line is down; what waiting does not heal is told to the operator, once."""
        reason = str(error.details() if isinstance(error, grpc.aio.AioRpcError) else error)
        kind = "receipt"
        if isinstance(error, RemoteProtocolError):
            self.refused += 1
        elif (
            isinstance(error, grpc.aio.AioRpcError)
            and error.code() == grpc.StatusCode.INVALID_ARGUMENT
        ):
            kind, reason = (
                "refused",
                f"it refuses what this peer says: {reason[:200]!r}",
            )  # the words of another
        elif self.no_way():  # nobody was reached, and so nobody's certificate is wrong
            return
        elif "handshake" in reason.lower() or "certificate" in reason.lower():
            kind = "certificate"
            reason = (
                f"who listens at {self.entry.address} does not show the certificate that the"
                " address book lists, or refuses ours; compare fingerprints and dates"
            )
        else:
            log.debug("line to peer %d is down: %s", self.entry.peer, reason)
            return
        self._told.warn((kind,), "line to peer %d is down: %s", self.entry.peer, reason)

    def _channel(self) -> grpc.aio.Channel:
        credentials = grpc.ssl_channel_credentials(
            self.members.roots([self.entry.peer]),
            self.identity.key,
            self.identity.certificate.encode(),
        )
        settings = [*options(self.limits), ("grpc.ssl_target_name_override", TLS_NAME)]
        return grpc.aio.secure_channel(self.target or self.entry.address, credentials, settings)

    def _control(self, kind: str) -> bytes:
        heard = self.journal.last_sequence(self.entry.peer)
        echo = self.journal.last_stamp(self.entry.peer)
        return encode(
            Frame(
                conversation=self.mine,
                sequence=0,
                kind=kind,
                number=SPOKEN.number if kind == "hello" else 0,
                acknowledged=heard,
                echo=echo,
            ),
            self.limits,
        )

    async def _talk(self, channel: grpc.aio.Channel) -> None:
        call: Stream = channel.stream_stream(PATH)(timeout=None)
        self.said_bye = False  # the neighbor may have started again and forgotten it
        await call.write(self._control("hello"))
        first = decode(await self._read(call), self.theirs, self.limits)
        self._confirm(first)
        self.connected = True
        reader = asyncio.create_task(self._listen(call))
        writer = asyncio.create_task(self._speak(call, first.acknowledged))
        teller = asyncio.create_task(self._tell_successions(channel))
        try:
            done, _ = await asyncio.wait({reader, writer}, return_when=asyncio.FIRST_COMPLETED)
        finally:  # also when this peer leaves: both have ended, and what they ended with is nobody's surprise
            reader.cancel()
            writer.cancel()
            teller.cancel()
            call.cancel()
            await asyncio.gather(reader, writer, teller, return_exceptions=True)
        for task in (reader, writer):
            if task in done:
                task.result()

    async def _tell_successions(self, channel: grpc.aio.Channel) -> None:
        """The neighbor hears of every new certificate this peer knows of, once."""
        call: Any = channel.unary_unary(f"/{SERVICE}/{SUCCEED}")
        while True:
            self.successions.clear()
            for one in self.members.known():
                if one.new not in self.heard:
                    try:
                        await call(one.text().encode(), timeout=TELLING)
                    except grpc.aio.AioRpcError as error:
                        if error.code() != grpc.StatusCode.INVALID_ARGUMENT:
                            return  # the line was cut: it is told when it is laid again
                        why = error.details()
                        self._told.warn(
                            (one.new,), "%s refuses a succession: %s", self.entry.name, why
                        )
                    else:
                        self.heard.add(one.new)
            await self.successions.wait()

    async def _read(self, call: Stream) -> bytes:
        data = await call.read()
        if not isinstance(data, bytes):
            raise RemoteProtocolError(f"peer {self.entry.peer} closed the line")
        return data

    def _confirm(self, frame: Frame) -> None:
        if frame.kind not in ("ack", "bye"):
            raise RemoteProtocolError(
                f"peer {self.entry.peer} answered {frame.kind!r} where only receipts are due"
            )
        self.scale.weigh(self.entry.peer, frame)
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
