"""The ways of one peer through relays: how it calls neighbors there, and how it is reached there.

To call, gRPC speaks to a socket in a private folder; each connection to it becomes a line to the
relay, and after a preamble bytes go to and fro. To be reached, the peer keeps a line on which the
relay names calls, and answers each by a line of its own, which then goes through the threshold like
any connection from outside: what the relay brings in is nobody's until TLS, inside, has shown whose
it is. Nothing that a relay says or sends is trusted; it can cut lines, and nothing more.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import ssl
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

from bruit.errors import RemoteProtocolError
from bruit.peers.relay.preamble import LONGEST, Ask, RelayWord, said
from bruit.peers.wire.address_book import AddressBook
from bruit.peers.wire.entry import Entry
from bruit.peers.wire.framed import Ends
from bruit.peers.wire.members import Members
from bruit.peers.wire.pinned import pinned_context
from bruit.peers.wire.relay_entry import RelayEntry
from bruit.peers.wire.said_once import SaidOnce

log = logging.getLogger("bruit.peers")
CONNECTING = 15.0  # seconds until a relay has answered
SILENT = 60.0  # seconds without a sign of life after which the line for calls is laid again
FIRST_PAUSE, LONGEST_PAUSE = 0.1, 5.0  # seconds between two attempts
LOOK = 1.0  # seconds between two looks for new keys that a relay has not heard of
AGAIN = 60.0  # seconds after which it is told all of them again: another may stand in its place
AT_ONCE = 16  # calls that are being taken; the relay has to wait with more
HELD = 2**16  # bytes that wait in one direction
Guest = Callable[[], asyncio.Protocol]


class RelayUnreachable(RemoteProtocolError):
    """The relay is not there, is another one, or says no; in words for the operator."""


async def ask_relay(folder: Path, relay: RelayEntry, ask: Ask, more: bytes = b"") -> Ends:
    """A line to a relay that has said ok, after `more` if something is to follow; else
    RelayUnreachable."""
    context = pinned_context(folder, [relay.certificate], ssl.PROTOCOL_TLS_CLIENT)
    try:
        async with asyncio.timeout(CONNECTING):
            ends = await asyncio.open_connection(relay.host, relay.port, ssl=context, limit=HELD)
    except TimeoutError:
        raise RelayUnreachable(f"the relay {relay.address} does not answer") from None
    except ssl.SSLError as error:
        raise RelayUnreachable(
            f"who listens at {relay.address} does not show the relay's certificate of the address "
            f"book ({error.reason or error})"
        ) from None
    except OSError as error:
        raise RelayUnreachable(
            f"the relay {relay.address} cannot be reached: {error.strerror or error}"
        ) from None
    try:
        ends[1].transport.set_write_buffer_limits(HELD)
        ends[1].write(ask.line() + more)
        async with asyncio.timeout(CONNECTING):
            word = await heard(ends[0])
    except (OSError, asyncio.IncompleteReadError):
        ends[1].transport.abort()
        raise RelayUnreachable(
            f"the relay {relay.address} hangs up: it does not know this peer's certificate, or "
            f"has no room"
        ) from None
    except (RemoteProtocolError, TimeoutError) as error:
        ends[1].transport.abort()
        raise RelayUnreachable(f"the relay {relay.address}: {error or 'no answer'}") from None
    if word.kind != "ok":
        ends[1].close()
        raise RelayUnreachable(f"the relay {relay.address} says: {word.what or word.kind}")
    return ends


async def heard(reader: asyncio.StreamReader) -> RelayWord:
    """The next word of a relay."""
    try:
        line = await reader.readuntil(b"\n")
    except asyncio.LimitOverrunError:
        raise RemoteProtocolError("it says a line that does not end") from None
    if len(line) > LONGEST:
        raise RemoteProtocolError(f"it says a line of {len(line)} bytes")
    return said(line)


async def splice(one: Ends, other: Ends) -> None:
    """Bytes to and fro until one side ends; then the other is ended too."""
    pumps = [
        asyncio.create_task(_pump(one[0], other[1])),
        asyncio.create_task(_pump(other[0], one[1])),
    ]
    try:
        await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for pump in pumps:
            pump.cancel()
        await asyncio.gather(*pumps, return_exceptions=True)
        one[1].close()
        other[1].close()


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while data := await reader.read(HELD):
            writer.write(data)
            await writer.drain()


@dataclass(kw_only=True)
class Ways:
    """The lines of one peer to relays; `folder` holds its identity."""

    folder: Path
    members: Members
    me: int
    connected: bool = False  # to the relay at which this peer is reached
    trouble: dict[int, str] = field(default_factory=dict)  # the last one, by neighbor
    told: dict[str, set[str]] = field(default_factory=dict)  # new certificates, by relay
    _servers: list[asyncio.Server] = field(default_factory=list)
    _work: set[asyncio.Task[None]] = field(default_factory=set)
    _told: SaidOnce = field(default_factory=lambda: SaidOnce(log))
    _places: tempfile.TemporaryDirectory[str] | None = None  # for its owner only

    @property
    def book(self) -> AddressBook:
        return self.members.book

    @property
    def relayed(self) -> RelayEntry | None:
        """Where this peer is reached, if it opens no port."""
        return self.book.way(self.book.entry(self.me))

    def address(self, entry: Entry) -> str:
        """Where gRPC finds a neighbor."""
        return f"unix:{self._place(entry)}" if entry.relay else entry.address

    def _place(self, entry: Entry) -> Path:
        if self._places is None:
            self._places = tempfile.TemporaryDirectory(prefix="bruit-")
        return Path(self._places.name) / str(entry.peer)

    async def open(self, callees: list[int]) -> None:
        """The sockets to those of these peers that are reached at a relay."""
        relays = {} if self.relayed is None else {self.relayed.address: self.relayed}
        for peer in callees:
            entry = self.book.entry(peer)
            relay = self.book.way(entry)
            if relay is not None:
                relays[relay.address] = relay
                self._servers.append(await self._socket_to(entry, relay))
        for address, relay in relays.items():
            self.told[address] = set()
            self._begin(self._tell(relay, self.told[address]))

    async def _tell(self, relay: RelayEntry, told: set[str]) -> None:
        """A relay hears of every new certificate this peer knows of, at once and from time to time:
        one that is started anew without its folder would let their owners in no more."""
        loop, said = asyncio.get_running_loop(), set[str]()
        began = loop.time()
        while True:
            if loop.time() - began > AGAIN:
                said, began = set(), loop.time()
            try:
                for one in [one for one in self.members.known() if one.new not in said]:
                    text = one.text().encode()
                    ask = Ask("succeed", str(len(text)))
                    ends = await ask_relay(self.folder, relay, ask, text)
                    ends[1].close()
                    said.add(one.new)
                    told.add(one.new)
            except RelayUnreachable as error:
                words = "a new key was not told to the relay: %s"
                self._told.warn((relay.address, "succession"), words, error)
            await asyncio.sleep(LOOK)

    async def _socket_to(self, entry: Entry, relay: RelayEntry) -> asyncio.Server:
        async def call(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.transport.set_write_buffer_limits(HELD)
            try:
                theirs = await ask_relay(self.folder, relay, Ask("call", entry.fingerprint))
            except RelayUnreachable as error:
                self.trouble[entry.peer] = str(error)
                self._told.warn((entry.peer, "relay"), "no way to peer %d: %s", entry.peer, error)
                writer.close()
                return
            self.trouble.pop(entry.peer, None)
            await splice((reader, writer), theirs)

        def begun(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            self._begin(call(reader, writer))  # a task of ours, so that `close` ends it

        return await asyncio.start_unix_server(begun, self._place(entry), limit=HELD)

    def listen(self, guest: Guest) -> None:
        """Be reached at the relay from now on; `guest` makes the protocol that meets a caller."""
        relay = self.relayed
        if relay is not None:
            self._begin(self._keep(relay, guest))

    def _begin(self, work: object) -> None:
        task: asyncio.Task[None] = asyncio.get_running_loop().create_task(work)  # type: ignore[arg-type]
        self._work.add(task)
        task.add_done_callback(self._work.discard)

    async def _keep(self, relay: RelayEntry, guest: Guest) -> None:
        pause = FIRST_PAUSE
        while True:
            try:
                ends = await ask_relay(self.folder, relay, Ask("listen"))
                self.connected, pause = True, FIRST_PAUSE
                try:
                    await self._hear_calls(relay, ends, guest)
                finally:
                    self.connected = False
                    ends[1].transport.abort()
            except (RemoteProtocolError, OSError, asyncio.IncompleteReadError) as error:
                why = str(error) or "the relay hung up"
                self._told.warn(("relay",), "not reached by others: %s", why)
            await asyncio.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)

    async def _hear_calls(self, relay: RelayEntry, ends: Ends, guest: Guest) -> None:
        room = asyncio.Semaphore(AT_ONCE)
        while True:
            try:
                async with asyncio.timeout(SILENT):
                    word = await heard(ends[0])
            except TimeoutError:
                raise RemoteProtocolError(f"the relay {relay.address} has fallen silent") from None
            if word.kind == "ping":
                ends[1].write(b"pong\n")
                await ends[1].drain()
            elif word.kind == "call":
                await room.acquire()
                self._begin(self._take(relay, word.what, guest, room))
            else:
                raise RemoteProtocolError(f"the relay {relay.address} says {word.kind} to nothing")

    async def _take(
        self, relay: RelayEntry, token: str, guest: Guest, room: asyncio.Semaphore
    ) -> None:
        """Answer one call: a line to the relay, whose bytes then go to our own threshold."""
        context = pinned_context(self.folder, [relay.certificate], ssl.PROTOCOL_TLS_CLIENT)
        try:
            async with asyncio.timeout(CONNECTING):
                loop = asyncio.get_running_loop()
                _, taking = await loop.create_connection(
                    lambda: _Taking(Ask("take", token), guest),
                    relay.host,
                    relay.port,
                    ssl=context,
                )
                await taking.begun
        except (RemoteProtocolError, OSError, TimeoutError) as error:
            log.debug("a call through the relay came to nothing: %s", error)
        finally:
            room.release()

    async def close(self) -> None:
        """End all lines."""
        for server in self._servers:
            server.close()
        for task in list(self._work):
            task.cancel()
        await asyncio.gather(*self._work, return_exceptions=True)
        if self._places is not None:
            with contextlib.suppress(OSError):
                self._places.cleanup()


class _Taking(asyncio.Protocol):
    """The first words of a line that answers a call; then it is the guest's."""

    def __init__(self, ask: Ask, guest: Guest) -> None:
        self._ask, self._guest, self._early = ask, guest, b""
        self.begun: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._transport.write(self._ask.line())

    def data_received(self, data: bytes) -> None:
        self._early += data
        line, end, rest = self._early.partition(b"\n")
        try:
            if end or len(self._early) > LONGEST:
                self._answered(said(line + end), rest)
        except RemoteProtocolError as error:
            self._fail(error)

    def _answered(self, word: RelayWord, rest: bytes) -> None:
        if word.kind != "ok":
            raise RemoteProtocolError(word.what or word.kind)
        guest = self._guest()
        self._transport.set_protocol(guest)
        guest.connection_made(self._transport)
        if rest:
            guest.data_received(rest)
        if not self.begun.done():
            self.begun.set_result(None)

    def _fail(self, error: Exception) -> None:
        self._transport.abort()
        if not self.begun.done():
            self.begun.set_exception(error)

    def connection_lost(self, exc: Exception | None) -> None:
        self._fail(exc if isinstance(exc, OSError) else RemoteProtocolError("the line was cut"))
