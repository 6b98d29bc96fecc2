"""Messages over TLS streams, the one way in which this package frames them, and the door before the
handshake.

    frame = 4 bytes of length, then the message, 1 to `largest` bytes: what the reader allows now, by agreement

A length that is not allowed is refused before a byte of the message is read. Strangers cost little:
only so many callers at once may be in a handshake, fewer of them from one address, each for
`HANDSHAKE` seconds; one more takes the place of the oldest, who is hung up on. Whoever has shown a
certificate of the list no longer counts at the door.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import ssl
import threading
from collections import Counter
from collections.abc import Awaitable, Callable
from functools import partial
from typing import final

from bruit.errors import ConfigError, RemoteProtocolError

log = logging.getLogger("bruit.peers")
HEADER = 4  # bytes
LARGEST = 2**26  # bytes of any message at all
HANDSHAKE = 5.0  # seconds a caller has to show who it is
GOODBYE = 2.0  # seconds for the end of a TLS stream
AT_DOOR, AT_DOOR_EACH = 64, 16  # callers in a handshake: all, and from one address
Ends = tuple[asyncio.StreamReader, asyncio.StreamWriter]


def framed(message: bytes) -> bytes:
    """A message as it is sent."""
    return len(message).to_bytes(HEADER, "big") + message


def announced(header: bytes, largest: int) -> int:
    """The length that a header announces, if it is allowed."""
    size = int.from_bytes(header, "big")
    most = min(largest, LARGEST)
    if not 1 <= size <= most:
        raise RemoteProtocolError(f"a message of {size} bytes is announced; there are 1 to {most}")
    return size


async def read_message(reader: asyncio.StreamReader, largest: int, patience_s: float) -> bytes:
    """The next message, whole and in time."""
    async with asyncio.timeout(patience_s):
        return await reader.readexactly(announced(await reader.readexactly(HEADER), largest))


async def write_message(writer: asyncio.StreamWriter, message: bytes, patience_s: float) -> None:
    """All of it, or TimeoutError: who takes nothing is not waited for."""
    writer.write(framed(message))
    async with asyncio.timeout(patience_s):
        await writer.drain()


@final
class Doorstep:
    """Callers who have not shown yet who they are; each can be hung up on. One more than there may be
    takes the place of the oldest of its address, or of the address that has most: whoever holds idle
    connections loses them to whoever comes next, and nobody is kept out. Safe among threads."""

    def __init__(self, most: int = AT_DOOR, each: int = AT_DOOR_EACH) -> None:
        self._most, self._each = most, each
        self._inside: dict[int, tuple[str, Callable[[], None]]] = {}  # the oldest first
        self._count = 0
        self._lock = threading.Lock()
        self.turned_away = 0

    def enter(self, address: str, hang_up: Callable[[], None]) -> int:
        """Let a caller from there begin; what it returns says who must `leave` when it is known, or
        gone."""
        with self._lock:
            one_too_many = self._make_room(address)
            self._count += 1
            self._inside[self._count] = (address, hang_up)
            ticket = self._count
        if one_too_many is not None:
            one_too_many()
        return ticket

    def _make_room(self, address: str) -> Callable[[], None] | None:
        """Who has to go, if anybody, before one more from that address comes in."""
        there = Counter(place for place, _ in self._inside.values())
        crowded = address if there[address] >= self._each else None
        if crowded is None and len(self._inside) >= self._most:
            crowded = there.most_common(1)[0][0]
        if crowded is None:
            return None
        self.turned_away += 1
        oldest = next(ticket for ticket, (place, _) in self._inside.items() if place == crowded)
        return self._inside.pop(oldest)[1]

    def leave(self, ticket: int) -> None:
        with self._lock:
            self._inside.pop(ticket, None)

    def __len__(self) -> int:
        return len(self._inside)


def hang_up(line: socket.socket) -> None:
    """End a connection both ways, whoever is reading from it: the next word on it is an error."""
    with contextlib.suppress(OSError):
        socket.socket.shutdown(line, socket.SHUT_RDWR)  # that of a TLS line forgets its state


@final
class Reception:
    """Listens, lets callers through the door and the handshake, and hands those who pass to
    `greet`."""

    def __init__(
        self, context: ssl.SSLContext, greet: Callable[[Ends], Awaitable[None]], door: Doorstep
    ) -> None:
        self._context, self._greet, self.door = context, greet, door
        self._work: set[asyncio.Task[None]] = set()
        self._listener: socket.socket | None = None
        self._said: set[str] = set()

    def open(self, host: str, port: int) -> int:
        """Begin to listen; gives the port (0: any free one)."""
        try:
            family, _, _, _, where = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
            self._listener = socket.create_server(
                where[:2],
                family=family,
                backlog=AT_DOOR,
                dualstack_ipv6=host == "::" and socket.has_dualstack_ipv6(),
            )
        except OSError as error:
            raise ConfigError(
                f"cannot listen at {host}:{port}: {error.strerror or error}"
            ) from None
        self._listener.setblocking(False)
        self._begin(self._accept(self._listener))
        return int(self._listener.getsockname()[1])

    def renew(self, context: ssl.SSLContext) -> None:
        """Whoever comes from now on is met by these settings; who is inside stays."""
        self._context = context

    def close(self) -> None:
        for task in self._work:
            task.cancel()
        if self._listener is not None:
            self._listener.close()

    def _begin(self, work: Awaitable[None]) -> None:
        async def whole() -> None:
            await work

        task = asyncio.get_running_loop().create_task(whole())
        self._work.add(task)
        task.add_done_callback(self._work.discard)

    async def _accept(self, listener: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                raw, caller = await loop.sock_accept(listener)
            except OSError as error:  # no more files, say: those at the door leave within seconds
                self._tell_once(f"cannot take callers: {error.strerror or error}")
                await asyncio.sleep(0.2)
                continue
            ticket = self.door.enter(caller[0], partial(hang_up, raw))
            self._begin(self._admit(raw, caller[0], ticket))
            if self.door.turned_away:
                self._tell_once("too many callers at the door: the oldest ones are hung up on")
            await asyncio.sleep(0)  # callers that wait in a row must not keep all others waiting

    async def _admit(self, raw: socket.socket, address: str, ticket: int) -> None:
        loop, reader = asyncio.get_running_loop(), asyncio.StreamReader()
        protocol = asyncio.StreamReaderProtocol(reader)
        try:
            transport, _ = await loop.connect_accepted_socket(
                lambda: protocol,
                raw,
                ssl=self._context,
                ssl_handshake_timeout=HANDSHAKE,
                ssl_shutdown_timeout=GOODBYE,
            )
        except OSError as error:
            raw.close()
            self._tell_once(f"turned a caller from {address} away: {type(error).__name__}")
            return
        finally:
            self.door.leave(ticket)
        await self._greet((reader, asyncio.StreamWriter(transport, protocol, reader, loop)))

    def _tell_once(self, words: str) -> None:
        if words not in self._said and len(self._said) < AT_DOOR:
            self._said.add(words)
            log.warning(words)
