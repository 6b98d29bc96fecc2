"""The threshold: what happens to a connection before TLS has told who calls.

The public port is this file's; gRPC listens on a socket in a private folder, and bytes go to and
fro, so that TLS is between the two peers as before. A connection is *unknown* until a neighbor
speaks on it. Unknown ones have little room and little time:

    an address may have EACH + (number of callers) of them, all together four times as many, if half of the files that
    the process may open are enough for that; one more takes the place of the oldest of its address (or of the address
    that has most), so whoever holds idle sockets loses them to whoever comes next, and a neighbor gets in even from the
    same address;
    one that has not become a neighbor's line within PATIENCE seconds is closed.

A connection that says nothing costs one file descriptor, one that speaks three. A line that was
ended is unknown again.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import resource
import socket
import tempfile
from collections import Counter, OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import cast

from bruit.peers.wire.entry import Entry

EACH = 16  # unknown connections from one address, and one more for every caller there may be
AT_ONCE, QUEUE = (
    16,
    256,
)  # connections taken before the next look at those there are; that wait for that in the system
PATIENCE = 20.0  # seconds until an unknown connection is closed
HELD = 2**18  # bytes that wait in one direction before the other side is made to wait


class Threshold:
    """Counts and forwards; `turned_away` counts connections that were closed before anybody spoke
    on them."""

    def __init__(
        self, callers: int, turned_away: Callable[[str, str], None], patience: float = PATIENCE
    ) -> None:
        self.each = EACH + callers
        files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        self.total = max(self.each, min(4 * self.each, files // 6))
        self.turned_away, self.patience = turned_away, patience
        self._folder = tempfile.TemporaryDirectory(prefix="bruit-")  # readable by its owner only
        self._unknown: OrderedDict[int, Visitor] = OrderedDict()  # the oldest first
        self._visitors: dict[int, Visitor] = {}
        self._from: Counter[str] = Counter()  # unknown ones, by address
        self._count = 0
        self._servers: list[asyncio.Server] = []
        self._behind = 0  # how many servers gRPC has had here

    @property
    def private(self) -> str:
        """Where the gRPC server of new connections listens."""
        return self.place(self._behind)

    def place(self, number: int) -> str:
        """Where the gRPC server of that number listens."""
        return str(Path(self._folder.name) / f"s{number}")

    def lead_to(self, number: int) -> None:
        """From now on new connections go to that server; others stay where they are."""
        self._behind = number

    @property
    def unknown(self) -> int:
        """How many connections there are on which no neighbor speaks."""
        return len(self._unknown)

    async def open(self, entry: Entry) -> None:
        """Begin to listen; RuntimeError when the port cannot be had."""
        loop = asyncio.get_running_loop()
        try:
            found = await loop.getaddrinfo(
                entry.host, entry.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
            )
        except OSError as error:
            raise RuntimeError(
                f"cannot bind the address {entry.address}: {error.strerror or error}"
            ) from None
        wrong = ""
        for family, host in dict.fromkeys((place[0], str(place[4][0])) for place in found):
            try:
                self._servers.append(await self._listen(family, host, entry.port))
            except OSError as error:
                wrong = str(error.strerror or error)
        if not self._servers:
            raise RuntimeError(f"cannot bind the address {entry.address}: {wrong}")

    async def _listen(self, family: int, host: str, port: int) -> asyncio.Server:
        ears = socket.socket(family, socket.SOCK_STREAM)
        try:
            ears.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                ears.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            ears.bind((host, port))
            server = await asyncio.get_running_loop().create_server(
                self.visitor, sock=ears, backlog=AT_ONCE
            )
            ears.listen(
                QUEUE
            )  # the system keeps more in line than are let in before anybody is turned away
        except BaseException:
            ears.close()
            raise
        return server

    def visitor(self) -> Visitor:
        self._count += 1
        return Visitor(self, self._count)

    def entered(self, one: Visitor) -> None:
        """Somebody has connected, and nobody knows who."""
        if self._from[one.address] >= self.each:
            self._turn_away(
                next(old for old in self._unknown.values() if old.address == one.address),
                "too many",
            )
        elif len(self._unknown) >= self.total:
            most = self._from.most_common(1)[0][0]
            self._turn_away(
                next(old for old in self._unknown.values() if old.address == most), "too many"
            )
        self._visitors[one.number] = one
        self._forget_who(one)

    def _forget_who(self, one: Visitor) -> None:
        self._unknown[one.number] = one
        self._from[one.address] += 1
        one.timer = asyncio.get_running_loop().call_later(
            self.patience, self._turn_away, one, "silent"
        )

    def _turn_away(self, one: Visitor, why: str) -> None:
        self.turned_away(one.address, why)
        one.close()
        one.abort()
        self.left(one)

    def left(self, one: Visitor) -> None:
        self._visitors.pop(one.number, None)
        self._known(one)

    def _known(self, one: Visitor) -> None:
        if self._unknown.pop(one.number, None) is None:
            return
        one.timer.cancel()
        self._from[one.address] -= 1
        if not self._from[one.address]:
            del self._from[one.address]

    def speaks(self, place: str) -> Callable[[], None]:
        """A neighbor speaks on the connection that gRPC calls by this name; what it returns says
        that it has ended."""
        name = place.removeprefix(f"unix:{self._folder.name}/")
        one = self._visitors.get(int(name)) if name.isdecimal() else None
        if one is None:
            return lambda: None
        self._known(one)
        one.lines += 1

        def ended() -> None:
            one.lines -= 1
            if not one.lines and one.number in self._visitors:
                self._forget_who(one)

        return ended

    async def inside(self, number: int, other: asyncio.Protocol) -> asyncio.Transport:
        """A connection to gRPC, named after the visitor."""
        name = Path(self._folder.name) / str(number)
        line = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            line.setblocking(False)
            line.bind(str(name))
            os.unlink(name)
            loop = asyncio.get_running_loop()
            await loop.sock_connect(line, self.private)
            transport, _ = await loop.create_connection(lambda: other, sock=line)
        except BaseException:
            line.close()
            raise
        return transport

    async def close(self) -> None:
        for server in self._servers:
            server.close()
        for one in list(self._visitors.values()):
            one.close()
            one.abort()
            self.left(one)
        with contextlib.suppress(OSError):
            self._folder.cleanup()


class Visitor(asyncio.Protocol):
    """One connection from outside; what it says goes inside once it says anything."""

    def __init__(self, threshold: Threshold, number: int) -> None:
        self.threshold, self.number, self.address = threshold, number, ""
        self.timer: asyncio.TimerHandle
        self.lines = 0  # streams of a neighbor on this connection
        self._out: asyncio.Transport
        self._in: asyncio.Transport | None = None
        self._early: list[bytes] = []
        self._way: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._out = cast(asyncio.Transport, transport)
        self._out.set_write_buffer_limits(HELD)
        peer = transport.get_extra_info("peername") or ("somebody",)
        self.address = str(peer[0])
        self.threshold.entered(self)

    def data_received(self, data: bytes) -> None:
        if self._in is not None:
            self._in.write(data)
            return
        self._early.append(data)
        if self._way is None:
            self._out.pause_reading()
            self._way = asyncio.get_running_loop().create_task(self._go_in())

    async def _go_in(self) -> None:
        try:
            inside = await self.threshold.inside(self.number, Inside(self))
        except OSError:
            self.close()
            return
        inside.set_write_buffer_limits(HELD)
        self._in = inside
        for data in self._early:
            inside.write(data)
        self._early.clear()
        self.pause(False)

    def pause(self, full: bool) -> None:
        """Read no more while what was read cannot go on."""
        if self._out.is_closing():
            return
        if full:
            self._out.pause_reading()
        else:
            self._out.resume_reading()

    def answer(self, data: bytes) -> None:
        self._out.write(data)

    def pause_writing(self) -> None:
        if self._in is not None and not self._in.is_closing():
            self._in.pause_reading()

    def resume_writing(self) -> None:
        if self._in is not None and not self._in.is_closing():
            self._in.resume_reading()

    def eof_received(self) -> bool:
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        self.close()
        self.threshold.left(self)

    def close(self) -> None:
        """End it, both ways; what gRPC has already said still leaves."""
        if self._way is not None and self._in is None:
            self._way.cancel()
        if self._in is not None:
            self._in.close()
        self._out.close()

    def abort(self) -> None:
        """Do not wait for one who does not read."""
        self._out.abort()


class Inside(asyncio.Protocol):
    """The other end of the way, towards gRPC."""

    def __init__(self, visitor: Visitor) -> None:
        self.visitor = visitor

    def data_received(self, data: bytes) -> None:
        self.visitor.answer(data)

    def pause_writing(self) -> None:
        self.visitor.pause(True)

    def resume_writing(self) -> None:
        self.visitor.pause(False)

    def connection_lost(self, exc: Exception | None) -> None:
        self.visitor.close()
