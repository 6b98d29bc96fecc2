"""Serving: gRPC behind a threshold, for callers with pinned certificates and TLS 1.3."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import grpc

from bruit.errors import RemoteProtocolError
from bruit.peers.wire.codec import SERVICE, USUAL, Limits
from bruit.peers.wire.entry import Entry
from bruit.peers.wire.identity import Identity, fingerprint
from bruit.peers.wire.line import options
from bruit.peers.wire.members import Members
from bruit.peers.wire.threshold import PATIENCE, Threshold

KEPT = 4  # servers with certificates of before, at most


@dataclass(frozen=True, kw_only=True)
class ServerDoor:
    """Who listens, who may call, and where callers come in: at the port of the book, or where
    `elsewhere` brings them from."""

    identity: Identity
    members: Members
    me: int
    callers: Sequence[int]
    limits: Limits = USUAL
    elsewhere: Callable[[Threshold], None] | None = None


@dataclass
class Serving:
    """A threshold and what is behind it: one server, and one more for each time that certificates
    changed. Old ones serve the lines they have.

    gRPC can also ask for certificates at each handshake (`dynamic_ssl_server_credentials`). Its
    asyncio part crashes then now and again, in Python's own memory.
    """

    door: ServerDoor
    handlers: Mapping[str, Any]
    threshold: Threshold
    end_lines: Callable[[], bool]  # whether all of them have ended
    servers: list[grpc.aio.Server] = field(default_factory=list)

    async def renew(self) -> None:
        """From now on new lines are laid with the certificates of this moment."""
        server, number = _server(self.door, self.handlers), len(self.servers)
        self.servers.append(server)
        credentials = grpc.ssl_server_credentials(
            [(self.door.identity.key, self.door.identity.certificate.encode())],
            self.door.members.roots(self.door.callers),
            require_client_auth=True,
        )
        server.add_secure_port(f"unix:{self.threshold.place(number)}", credentials)
        await server.start()
        self.threshold.lead_to(number)
        if number >= KEPT:  # whose lines are laid again, with newer certificates
            await self.servers[number - KEPT].stop(None)

    async def stop(self, grace: float | None) -> None:
        """End the lines by our own word: gRPC would cancel them, and log that as an error of
        ours."""
        deadline = time.monotonic() + (grace or 0.0)
        while not self.end_lines() and time.monotonic() < deadline:
            await asyncio.sleep(0.005)
        for server in self.servers:
            await server.stop(grace)
        await self.threshold.close()


async def serve(
    door: ServerDoor,
    handlers: Mapping[str, Any],
    turned_away: Callable[[str, str], None],
    end_lines: Callable[[], bool] = lambda: True,
) -> Serving:
    """Begin to listen; RuntimeError when the port cannot be had."""
    threshold = Threshold(len(door.callers), turned_away)
    serving = Serving(door, handlers, threshold, end_lines)
    await serving.renew()
    try:
        if door.elsewhere is not None:
            door.elsewhere(threshold)
        else:
            await threshold.open(door.members.book.entry(door.me))
    except BaseException:
        await serving.stop(None)
        raise
    return serving


def _server(door: ServerDoor, handlers: Mapping[str, Any]) -> grpc.aio.Server:
    server = grpc.aio.server(
        options=[
            *options(door.limits),
            ("grpc.max_concurrent_streams", 4),
            ("grpc.server_handshake_timeout_ms", int(1000 * PATIENCE)),
        ]
    )
    server.add_generic_rpc_handlers(
        (grpc.method_handlers_generic_handler(SERVICE, dict(handlers)),)
    )
    return server


def caller_of(members: Members, context: Any) -> Entry:
    """Who speaks, by the pinned certificate; anything but TLS 1.3 is refused."""
    facts = context.auth_context()
    version = facts.get("ssl_tls_version", [b"an unknown version of TLS"])[0]
    if version != b"TLSv1.3":
        raise RemoteProtocolError(
            f"a caller speaks {version.decode(errors='replace')}; here it is TLS 1.3 only"
        )
    shown = facts.get("x509_pem_cert", [b""])[0].decode(errors="replace")
    entry = members.by_fingerprint(fingerprint(shown)) if shown else None
    if entry is None:
        raise RemoteProtocolError("a caller whose certificate is not in the address book")
    return entry
