"""A line between two parties who know each other: TLS 1.3 both ways, each certificate pinned by the other.

    frame = 4 bytes of length, then the message; a message must arrive whole within `timeout_s`

Keys are those of `bruit peer key`. Whoever shows another certificate than the expected one is turned away and does
not disturb: the listener goes on waiting for the right one.
"""

from __future__ import annotations

import logging
import socket
import ssl
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import final

from cryptography.hazmat.primitives.serialization import Encoding

from bruit.errors import ConfigError, RemoteProtocolError
from bruit.network.address_book import merge
from bruit.network.identity import TLS_NAME, check_dates, read_certificate
from bruit.network.pinned import pinned_context
from bruit.two_party.machine import Machine

log = logging.getLogger("bruit.two_party")
LARGEST = 2**26     # bytes of a message; the largest honest one is a batch of tables, below 2^24
PIECE = 2**16       # bytes sent between two looks at the clock
HANDSHAKE = 5.0     # seconds a caller has to show who it is
PAUSE = 0.1         # seconds between two attempts to connect


@final
@dataclass(frozen=True)
class Parties:
    """folder: one's own identity. partner: the other's public.toml, or its certificate.pem."""

    folder: str | Path
    partner: str | Path

    def context(self, side: int) -> tuple[ssl.SSLContext, bytes]:
        """TLS settings for one side (ssl.PROTOCOL_...), and the partner's certificate as it must be shown."""
        pem = self._certificate()
        certificate = read_certificate(pem, str(self.partner))
        check_dates(certificate, str(self.partner))
        context = pinned_context(self.folder, [pem], side)
        return context, certificate.public_bytes(Encoding.DER)

    def _certificate(self) -> str:
        try:
            text = Path(self.partner).read_text()
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(f"cannot read the other party's certificate {self.partner}: {error}") from None
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
        data = memoryview(len(message).to_bytes(4, "big") + message)
        while data:
            try:
                self._line.settimeout(self._left(deadline, "took nothing"))
                data = data[self._line.send(data[:PIECE]) :]
            except OSError as error:
                raise self._broken(error, "took nothing") from None
        self.sent_bytes += len(message) + 4

    def receive(self) -> bytes:
        """The next message, whole."""
        deadline = time.monotonic() + self.timeout_s
        size = int.from_bytes(self._exactly(4, deadline), "big")
        if not 1 <= size <= LARGEST:
            raise RemoteProtocolError(f"the other party announces a message of {size} bytes; there are 1 to {LARGEST}")
        message = self._exactly(size, deadline)
        self.received_bytes += size + 4
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
                raise RemoteProtocolError("the other party hung up before the end; see what it says on its side")
            data += piece
        return bytes(data)

    def _left(self, deadline: float, what: str) -> float:
        left = deadline - time.monotonic()
        if left <= 0:
            raise self._broken(TimeoutError(), what)
        return left

    def _broken(self, error: OSError, what: str) -> RemoteProtocolError:
        if isinstance(error, TimeoutError):
            return RemoteProtocolError(f"the other party {what} for {self.timeout_s:g} s")
        if isinstance(error, ssl.SSLError):
            return RemoteProtocolError(f"the other party broke the line off ({error.reason}); does it expect our "
                                       "certificate, and we its?")
        return RemoteProtocolError(f"the line to the other party broke: {error.strerror or error}")


def listen(
    address: str, parties: Parties, timeout_s: float = 60.0, patience_s: float = 300.0,
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
        while (left := deadline - time.monotonic()) > 0:
            listener.settimeout(left)
            try:
                raw, caller = listener.accept()
            except TimeoutError:
                break
            try:
                return Channel(_pinned(raw, context, expected, server=True), timeout_s)
            except (OSError, RemoteProtocolError) as error:
                raw.close()
                log.warning("turned a caller from %s away: %s", caller[0], error)
    raise RemoteProtocolError(f"nobody with the expected certificate came to {address} within {patience_s:g} s")


def connect(address: str, parties: Parties, timeout_s: float = 60.0, patience_s: float = 300.0) -> Channel:
    """Call the partner at HOST:PORT; it may start later than we do."""
    context, expected = parties.context(ssl.PROTOCOL_TLS_CLIENT)
    where = host_and_port(address)
    deadline = time.monotonic() + patience_s
    while True:
        try:
            raw = socket.create_connection(where, timeout=max(0.1, min(HANDSHAKE, deadline - time.monotonic())))
            break
        except OSError as error:
            if time.monotonic() + PAUSE > deadline or isinstance(error, socket.gaierror):
                raise RemoteProtocolError(f"nobody answers at {address}: {error.strerror or error}; does the other "
                                          "party listen there?") from None
            time.sleep(PAUSE)
    try:
        return Channel(_pinned(raw, context, expected, server=False), timeout_s)
    except OSError as error:
        raw.close()
        said = error.reason if isinstance(error, ssl.SSLError) else error.strerror or error
        raise RemoteProtocolError(f"whoever listens at {address} does not show the expected certificate ({said})"
                                  ) from None


def run(machine: Machine, channel: Channel, tell: Callable[[], None] = lambda: None) -> None:
    """The conversation from start to end; `tell` is called after every message."""
    for message in machine.start():
        channel.send(message)
    while not machine.done:
        for answer in machine.receive(channel.receive()):
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


def _pinned(raw: socket.socket, context: ssl.SSLContext, expected: bytes, server: bool) -> ssl.SSLSocket:
    """The handshake, and the certificate itself compared."""
    raw.settimeout(HANDSHAKE)
    raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    line = context.wrap_socket(raw, server_side=server, server_hostname=None if server else TLS_NAME)
    if line.getpeercert(binary_form=True) != expected:
        line.close()
        raise RemoteProtocolError("another certificate than the expected one was shown")
    return line
