"""A blind relay: it connects members of an address book who cannot reach each other, and passes bytes on.

Peers come by TLS 1.3 with their own certificates, so the relay knows *who*; inside that line two
peers speak TLS with each other, end to end, under keys that the relay does not have. A call:

    B --listen--> relay                      B keeps this line, and opens no port
    A --call B--> relay --call TOKEN--> B    the token is drawn for this call
    B --take TOKEN--> relay                  a second line of B; from here on bytes go to and fro

Whoever is in no book does not get through the handshake; whoever is in none together with the
called one is refused. What a member can cost is bounded: one line for calls, `EACH` lines of bytes
to every other member, which keep nobody else from calling it, HELD bytes waiting in each direction
of each, `rate` bytes a second (faster senders wait), `CALLS` new lines a second, and `ASKING` lines,
one more for every other member, on which it has asked nothing yet or was told no: with one more the
oldest of them ends.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import secrets
import ssl
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from bruit.errors import RemoteProtocolError
from bruit.peers.relay.allowance import Allowance
from bruit.peers.relay.people import People
from bruit.peers.relay.preamble import LONGEST, Ask, asked
from bruit.peers.relay.seen import Pair, Seen
from bruit.peers.wire.address_book import AddressBook
from bruit.peers.wire.entry import Entry
from bruit.peers.wire.framed import AT_DOOR, AT_DOOR_EACH, Doorstep, Ends, Reception
from bruit.peers.wire.identity import fingerprint
from bruit.peers.wire.pinned import pinned_context
from bruit.peers.wire.said_once import SaidOnce
from bruit.peers.wire.succession import LONGEST as SUCCESSION

log = logging.getLogger("bruit.peers")
RATE = 16 * 2**20  # bytes a second that one peer may send through
CALLS = 4.0  # new lines a second of one peer
EACH = 4  # lines of bytes that a peer may have to each other member
ASKING = 8  # lines of a peer that wait for its first words, or for the end of a refusal
HELD = 2**16  # bytes that are read at once, and that wait in one direction
GREETING = 10.0  # seconds for the first words
TAKING = 10.0  # seconds until the called one has come
PING, SILENT = 20.0, 60.0  # seconds between signs of life; until a line for calls is given up
STILL = 300.0  # seconds without a byte after which a call is ended; gRPC gives signs of life


@dataclass(eq=False, kw_only=True)
class _Member:
    """What one peer has at the relay; there is one record for each member and no more."""

    rate: Allowance
    calls: Allowance
    lines: Counter[str] = field(default_factory=Counter)  # its calls, by whom it calls
    control: asyncio.StreamWriter | None = None
    writers: set[asyncio.StreamWriter] = field(default_factory=set)
    most_asking: int
    asking: dict[asyncio.StreamWriter, None] = field(default_factory=dict)  # the oldest first

    def asks(self, writer: asyncio.StreamWriter) -> None:
        """One more line of it that is nothing yet."""
        self.asking[writer] = None
        if len(self.asking) > self.most_asking:
            oldest = next(iter(self.asking))
            del self.asking[oldest]
            oldest.transport.abort()

    def hang_up(self) -> None:
        """End all it has here."""
        for writer in list(self.writers):
            writer.transport.abort()


@dataclass(eq=False)
class _Call:
    """A caller that waits for the one it called."""

    caller: str
    callee: str
    taken: asyncio.Future[Ends]
    over: asyncio.Event = field(default_factory=asyncio.Event)


class Relay:
    """Serves the members of some address books."""

    def __init__(self, folder: Path, books: Iterable[AddressBook], rate: float = RATE) -> None:
        self.folder, self.rate, self.seen = folder, rate, Seen()
        self.books: list[AddressBook] = []
        self.people: People
        self._members: dict[str, _Member] = {}
        self._calls: dict[str, _Call] = {}
        self._told = SaidOnce(log)
        self._reception: Reception | None = None
        self._take_books(list(books))

    @property
    def names(self) -> dict[str, str]:
        return {one.fingerprint: one.name for book in self.books for one in book.entries}

    @property
    def listening(self) -> int:
        """How many peers can be reached here now."""
        return sum(member.control is not None for member in self._members.values())

    def _take_books(self, books: list[AddressBook]) -> None:
        self.books, self.people = books, People(self.folder, books)
        entries: dict[str, Entry] = {one.fingerprint: one for book in books for one in book.entries}
        for gone in set(self._members) - set(entries):
            self._members.pop(gone).hang_up()
        for one in entries:
            others = max(len(book.entries) for book in books if book.by_fingerprint(one))
            if one not in self._members:
                self._members[one] = _Member(
                    rate=Allowance(self.rate, 2 * self.rate),
                    calls=Allowance(CALLS, 4.0 * EACH * others),
                    most_asking=ASKING + others,
                )
        self._take_certificates()

    def _take_certificates(self) -> None:
        """From now on those that members may show now are let in, and no others."""
        shown = self.people.certificates()
        self._context = pinned_context(self.folder, shown, ssl.PROTOCOL_TLS_SERVER)
        if self._reception is not None:
            self._reception.renew(self._context)

    def renew(self, books: Iterable[AddressBook]) -> None:
        """Other books from now on: who is in none of them any more can call and be called no
        more."""
        self._take_books(list(books))

    def look(self) -> None:
        """An operator may have put a succession into the folder."""
        if self.people.look():
            self._take_certificates()

    def open(self, host: str, port: int) -> int:
        """Begin to listen, within a running loop; gives the port (0: any free one)."""
        several = len(self._members)  # all of them may be behind one address
        door = Doorstep(AT_DOOR + several, AT_DOOR_EACH + several)
        self._reception = Reception(self._context, self._greet, door)
        return self._reception.open(host, port)

    async def close(self) -> None:
        if self._reception is not None:
            self._reception.close()
        for member in self._members.values():
            member.hang_up()
        await asyncio.sleep(0)

    async def _greet(self, ends: Ends) -> None:
        """One line: who it is, what it wants, and that until its end."""
        reader, writer = ends
        writer.transport.set_write_buffer_limits(HELD)
        who = self._who(writer)
        member = self._members.get(who)
        if member is None:  # it passed the handshake, and then the books changed
            writer.close()
            return
        member.writers.add(writer)
        member.asks(writer)
        try:
            async with asyncio.timeout(GREETING):
                ask = asked(await _line(reader))
            await self._serve(ask, who, member, ends)
        except RemoteProtocolError as error:
            self._refuse(writer, who, str(error))
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()  # who does not take a no has a line more that asks
        except (OSError, TimeoutError, asyncio.IncompleteReadError):
            pass  # it has gone
        finally:
            member.asking.pop(writer, None)
            member.writers.discard(writer)
            writer.close()

    def _who(self, writer: asyncio.StreamWriter) -> str:
        shown = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
        return self.people.of(fingerprint(ssl.DER_cert_to_PEM_cert(shown)))

    def _refuse(self, writer: asyncio.StreamWriter, who: str, why: str) -> None:
        name = self.names.get(who, "somebody")
        self.seen.refused[name] += 1
        self._told.warn((who, why), "refused %s: %s", name, why)
        writer.write(f"no {why[:200]}\n".encode("ascii", "replace"))

    async def _serve(self, ask: Ask, who: str, member: _Member, ends: Ends) -> None:
        call = self._calls.get(
            ask.what
        )  # who is called pays nothing for it, whoever calls how often
        called = ask.kind == "take" and call is not None and call.callee == who
        if not called and not member.calls.try_to_take(1):
            raise RemoteProtocolError("too many lines in a short time; come again in some seconds")
        member.asking.pop(ends[1], None)
        if ask.kind == "listen":
            await self._listen(who, member, ends)
        elif ask.kind == "take":
            await self._taken(ask.what, who, ends)
        elif ask.kind == "succeed":
            await self._succeed(int(ask.what), ends)
        else:
            await self._call(who, ask.what, member, ends)

    async def _listen(self, who: str, member: _Member, ends: Ends) -> None:
        """The line on which a peer is told of calls; a new one ends the one before it."""
        reader, writer = ends
        if member.control is not None:
            member.control.transport.abort()
        member.control = writer
        writer.write(b"ok\n")
        pinging = asyncio.create_task(_ping(writer))
        try:
            while True:
                async with asyncio.timeout(SILENT):
                    if await _line(reader) != b"pong\n":
                        raise RemoteProtocolError("a peer that listens says nothing but pong")
        finally:
            pinging.cancel()
            if member.control is writer:
                member.control = None

    async def _succeed(self, size: int, ends: Ends) -> None:
        """Hear of a new key of anybody; whose it is, its signatures say."""
        if size > SUCCESSION:
            raise RemoteProtocolError(f"a succession has no {size} bytes")
        async with asyncio.timeout(GREETING):
            data = await ends[0].readexactly(size)
        if self.people.learn(data):
            self._take_certificates()
        ends[1].write(b"ok\n")

    async def _call(self, who: str, whom: str, member: _Member, ends: Ends) -> None:
        other = self._members.get(whom)
        together = any(
            book.by_fingerprint(who) and book.by_fingerprint(whom) for book in self.books
        )
        if other is None or not together or who == whom:
            raise RemoteProtocolError("nobody of that fingerprint is in an address book with you")
        if other.control is None:
            ends[1].write(b"no the peer you call is not connected to this relay\n")
            return
        if member.lines[whom] >= EACH:
            raise RemoteProtocolError("too many lines at once to that peer")
        token = secrets.token_hex(16)
        call = self._calls[token] = _Call(who, whom, asyncio.get_running_loop().create_future())
        member.lines[whom] += 1
        try:
            other.control.write(f"call {token}\n".encode())
            async with asyncio.timeout(TAKING):
                theirs = await call.taken
            for one in (ends, theirs):
                one[1].write(b"ok\n")
            await self._splice(ends, theirs, self.seen.call(who, whom), (member, other))
        except TimeoutError:
            ends[1].write(b"no the peer you call does not answer\n")
        finally:
            del self._calls[token]
            member.lines[whom] -= 1
            call.over.set()

    async def _taken(self, token: str, who: str, ends: Ends) -> None:
        call = self._calls.get(token)
        if call is None or call.callee != who or call.taken.done():
            raise RemoteProtocolError("there is no such call, or it is over")
        call.taken.set_result(ends)
        await call.over.wait()

    async def _splice(
        self, caller: Ends, callee: Ends, pair: Pair, members: tuple[_Member, _Member]
    ) -> None:
        """Bytes to and fro, until one side ends."""
        going = asyncio.create_task(_pump(caller[0], callee[1], members[0].rate, pair, True))
        coming = asyncio.create_task(_pump(callee[0], caller[1], members[1].rate, pair, False))
        try:
            await asyncio.wait((going, coming), return_when=asyncio.FIRST_COMPLETED)
        finally:
            going.cancel()
            coming.cancel()
            await asyncio.gather(going, coming, return_exceptions=True)
            pair.last = time.time()


async def _line(reader: asyncio.StreamReader) -> bytes:
    """One line of words, or RemoteProtocolError."""
    try:
        line = await reader.readuntil(b"\n")
    except asyncio.LimitOverrunError:
        raise RemoteProtocolError("a line came that does not end") from None
    if len(line) > LONGEST:
        raise RemoteProtocolError(f"a line of {len(line)} bytes came")
    return line


async def _ping(writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while True:
            await asyncio.sleep(PING)
            writer.write(b"ping\n")
            await writer.drain()


async def _pump(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    rate: Allowance,
    pair: Pair,
    going: bool,
) -> None:
    with contextlib.suppress(OSError, TimeoutError):
        while True:
            async with asyncio.timeout(STILL):
                data = await reader.read(HELD)
            if not data:
                return
            if going:
                pair.to_callee += len(data)
            else:
                pair.to_caller += len(data)
            writer.write(data)
            await asyncio.sleep(rate.take(len(data)))
            async with asyncio.timeout(STILL):
                await writer.drain()
