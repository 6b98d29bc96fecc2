"""A line between two parties who know each other: TLS 1.3 both ways, each certificate pinned by the
other.

    frames are those of `bruit.peers.wire.framed`; a message must arrive whole within `timeout_s`, and be no longer than
    what is due now can be

Keys are those of `bruit peer key`. Whoever shows another certificate than the expected one is
turned away and does not disturb. Handshakes of several callers go on side by side, each for a few
seconds, so many in all and fewer from one address; of more the oldest are hung up on. The listener
goes on waiting for the right one.
"""

from __future__ import annotations

import logging
import selectors
import socket
import ssl
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import NamedTuple, final

from cryptography.hazmat.primitives.serialization import Encoding

from bruit.errors import ConfigError, RemoteProtocolError
from bruit.peers.wire.address_book import merge
from bruit.peers.wire.framed import HANDSHAKE, HEADER, LARGEST, Doorstep, announced, framed, hang_up
from bruit.peers.wire.identity import TLS_NAME, check_dates, read_certificate
from bruit.peers.wire.pinned import pinned_context
from bruit.statistics.holders.machine import HolderMachine

log = logging.getLogger("bruit.statistics.holders")
PIECE = 2**16  # bytes sent between two looks at the clock
PAUSE = 0.1  # seconds between two attempts to connect
# seconds for which a caller that is hung up on tries again: strangers at the door leave by then
CROWDED = 20.0


@final
@dataclass(frozen=True)
class Parties:
    """folder: one's own identity. partner: the other's public.toml, or its certificate.pem."""

    folder: str | Path
    partner: str | Path

    def context(self, side: int) -> tuple[ssl.SSLContext, bytes]:
        """TLS settings for one side (ssl.PROTOCOL_...), and the partner's certificate as it must be
        shown."""
        pem = self._certificate()
        certificate = read_certificate(pem, str(self.partner))
        check_dates(certificate, str(self.partner))
        context = pinned_context(self.folder, [pem], side)
        return context, certificate.public_bytes(Encoding.DER)

    def _certificate(self) -> str:
        try:
            text = Path(self.partner).read_text()
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(
                f"cannot read the other holder's certificate {self.partner}: {error}"
            ) from None
        return merge([text]).entry(0).certificate if Path(self.partner).suffix == ".toml" else text


@final
class Channel:
    """An open line; `close` it, or use it in a `with` block."""

    def __init__(self, line: ssl.SSLSocket, timeout_s: float) -> None:
        self._line, self.timeout_s = line, timeout_s
        self.sent_bytes = self.received_bytes = 0

    def __enter__(self) -> Channel:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._line.close()

    def send(self, message: bytes) -> None:
        """All of it, or RemoteProtocolError."""
        deadline = time.monotonic() + self.timeout_s
        data = memoryview(framed(message))
        while data:
            try:
                self._line.settimeout(self._left(deadline, "took nothing"))
                data = data[self._line.send(data[:PIECE]) :]
            except OSError as error:
                raise self._broken(error, "took nothing") from None
        self.sent_bytes += len(message) + HEADER

    def receive(self, largest: int = LARGEST) -> bytes:
        """The next message, whole; a longer one is refused before it is read."""
        deadline = time.monotonic() + self.timeout_s
        message = self._exactly(announced(self._exactly(HEADER, deadline), largest), deadline)
        self.received_bytes += len(message) + HEADER
        return message

    def _exactly(self, size: int, deadline: float) -> bytes:
        data = bytearray()
        while len(data) < size:
            try:
                self._line.settimeout(self._left(deadline, "said nothing"))
                piece = self._line.recv(min(size - len(data), PIECE))
            except OSError as error:
                raise self._broken(error, "said nothing") from None
            if not piece:
                raise RemoteProtocolError(
                    "the other holder hung up before the end; see what it says on its side"
                )
            data += piece
        return bytes(data)

    def _left(self, deadline: float, what: str) -> float:
        left = deadline - time.monotonic()
        if left <= 0:
            raise self._broken(TimeoutError(), what)
        return left

    def _broken(self, error: OSError, what: str) -> RemoteProtocolError:
        if isinstance(error, TimeoutError):
            return RemoteProtocolError(f"the other holder {what} for {self.timeout_s:g} s")
        if isinstance(error, ssl.SSLError):
            return RemoteProtocolError(
                f"the other holder broke the line off ({error.reason or error}); does it expect our "
                "certificate, and we its?"
            )
        return RemoteProtocolError(f"the line to the other holder broke: {error.strerror or error}")


def listen(
    address: str,
    parties: Parties,
    timeout_s: float = 60.0,
    patience_s: float = 300.0,
    ready: Callable[[int], None] = lambda _: None,
) -> Channel:
    """Wait for the partner at HOST:PORT (port 0: any free one; `ready` is told which)."""
    context, expected = parties.context(ssl.PROTOCOL_TLS_SERVER)
    host, port = host_and_port(address)
    deadline = time.monotonic() + patience_s
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        listener = socket.create_server((host, port), family=family)
    except OSError as error:
        raise ConfigError(f"cannot listen at {address}: {error.strerror or error}") from None
    with listener:
        ready(listener.getsockname()[1])
        line = _first_pinned(listener, context, expected, deadline)
    if line is None:
        raise RemoteProtocolError(
            f"nobody with the expected certificate came to {address} within {patience_s:g} s"
        )
    return Channel(line, timeout_s)


def connect(
    address: str, parties: Parties, timeout_s: float = 60.0, patience_s: float = 300.0
) -> Channel:
    """Call the partner at HOST:PORT; it may start later than we do."""
    context, expected = parties.context(ssl.PROTOCOL_TLS_CLIENT)
    where = host_and_port(address)
    deadline = time.monotonic() + patience_s
    crowded = min(deadline, time.monotonic() + CROWDED)
    while True:
        raw = _called(address, where, deadline)
        try:
            return Channel(_pinned(raw, context, expected), timeout_s)
        except OSError as error:
            raw.close()
            hung_up = isinstance(error, ConnectionError | ssl.SSLEOFError | ssl.SSLZeroReturnError)
            if hung_up and time.monotonic() + PAUSE < crowded:  # others may be at its door
                time.sleep(PAUSE)
                continue
            reason = error.reason if isinstance(error, ssl.SSLError) else error.strerror or error
            raise RemoteProtocolError(
                f"whoever listens at {address} does not show the expected certificate ({reason})"
            ) from None


def _called(address: str, where: tuple[str, int], deadline: float) -> socket.socket:
    """A connection, as soon as somebody answers."""
    while True:
        try:
            return socket.create_connection(
                where, timeout=max(0.1, min(HANDSHAKE, deadline - time.monotonic()))
            )
        except OSError as error:
            if time.monotonic() + PAUSE > deadline or isinstance(error, socket.gaierror):
                raise RemoteProtocolError(
                    f"nobody answers at {address}: {error.strerror or error}; does the other "
                    "party listen there?"
                ) from None
            time.sleep(PAUSE)


def run(machine: HolderMachine, channel: Channel, tell: Callable[[], None] = lambda: None) -> None:
    """The conversation from start to end; `tell` is called after every message."""
    for message in machine.start():
        channel.send(message)
    while not machine.done:
        for answer in machine.receive(channel.receive(machine.largest)):
            channel.send(answer)
        tell()


def host_and_port(address: str) -> tuple[str, int]:
    """HOST:PORT, with brackets around an IPv6 host.

    >>> host_and_port("[::1]:7000"), host_and_port("clinic.example:7000")
    (('::1', 7000), ('clinic.example', 7000))
    """
    host, colon, port = address.rpartition(":")
    host = host[1:-1] if host.startswith("[") and host.endswith("]") else host
    if not colon or not host or not port.isdecimal() or not int(port) < 2**16:
        raise ConfigError(f"an address is HOST:PORT, say 192.0.2.7:7000, found {address!r}")
    return host, int(port)


class _Caller(NamedTuple):
    """Somebody in a handshake."""

    line: ssl.SSLSocket
    address: str
    deadline: float
    ticket: int  # at the door


def _first_pinned(
    listener: socket.socket, context: ssl.SSLContext, expected: bytes, deadline: float
) -> ssl.SSLSocket | None:
    """The first caller that shows the expected certificate; None if nobody does in time."""
    door, callers = Doorstep(), dict[int, _Caller]()
    listener.setblocking(False)
    with selectors.DefaultSelector() as waiting:
        waiting.register(listener, selectors.EVENT_READ)

        def drop(caller: _Caller, why: object) -> None:
            waiting.unregister(caller.line)
            callers.pop(caller.line.fileno())
            caller.line.close()
            door.leave(caller.ticket)
            log.warning("turned a caller from %s away: %s", caller.address, why)

        try:
            while (now := time.monotonic()) < deadline:
                for caller in [caller for caller in callers.values() if caller.deadline < now]:
                    drop(caller, "it did not show who it is in time")
                soonest = min([deadline, *(caller.deadline for caller in callers.values())])
                for key, _ in waiting.select(max(0.0, soonest - now) + 0.01):
                    if key.fileobj is listener:
                        _greet(listener, context, door, callers, waiting)
                        continue
                    caller = callers[key.fd]
                    try:
                        caller.line.do_handshake()
                        if caller.line.getpeercert(binary_form=True) == expected:
                            waiting.unregister(caller.line)
                            return callers.pop(caller.line.fileno()).line
                        drop(caller, "it shows another certificate than the expected one")
                    except ssl.SSLWantReadError:
                        waiting.modify(caller.line, selectors.EVENT_READ)
                    except ssl.SSLWantWriteError:
                        waiting.modify(caller.line, selectors.EVENT_WRITE)
                    except OSError as error:
                        drop(caller, error)
        finally:
            for caller in callers.values():
                caller.line.close()
    return None


def _greet(
    listener: socket.socket,
    context: ssl.SSLContext,
    door: Doorstep,
    callers: dict[int, _Caller],
    waiting: selectors.BaseSelector,
) -> None:
    """Let the next caller begin its handshake; of too many the oldest is hung up on."""
    try:
        raw, where = listener.accept()
    except OSError:
        time.sleep(0.01)  # gone again, or no more files
        return
    raw.setblocking(False)
    raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    line = context.wrap_socket(raw, server_side=True, do_handshake_on_connect=False)
    ticket = door.enter(where[0], partial(hang_up, line))
    if door.turned_away == 1:
        log.warning("too many callers at once: the oldest ones are hung up on")
    callers[line.fileno()] = _Caller(line, where[0], time.monotonic() + HANDSHAKE, ticket)
    waiting.register(line, selectors.EVENT_READ)


def _pinned(raw: socket.socket, context: ssl.SSLContext, expected: bytes) -> ssl.SSLSocket:
    """The handshake of whoever calls, and the certificate itself compared."""
    raw.settimeout(HANDSHAKE)
    raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    line = context.wrap_socket(raw, server_hostname=TLS_NAME)
    if line.getpeercert(binary_form=True) != expected:
        line.close()
        raise RemoteProtocolError("another certificate than the expected one was shown")
    return line
