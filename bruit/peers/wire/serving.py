"""Serving: gRPC behind a threshold, for callers with pinned certificates and TLS 1.3."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import grpc

from bruit.errors import RemoteProtocolError
from bruit.peers.wire.codec import SERVICE, USUAL, Limits
from bruit.peers.wire.entry import Entry
from bruit.peers.wire.identity import Identity, fingerprint
from bruit.peers.wire.line import options
from bruit.peers.wire.members import Members
from bruit.peers.wire.threshold import PATIENCE, Threshold


@dataclass(frozen=True)
class Serving:
    """A server and the threshold before it."""

    server: grpc.aio.Server
    threshold: Threshold
    end_lines: Callable[[], bool]  # whether all of them have ended

    async def stop(self, grace: float | None) -> None:
        """End the lines by our own word: gRPC would cancel them, and log that as an error of
        ours."""
        deadline = time.monotonic() + (grace or 0.0)
        while not self.end_lines() and time.monotonic() < deadline:
            await asyncio.sleep(0.005)
        await self.server.stop(grace)
        await self.threshold.close()


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


async def serve(
    door: ServerDoor,
    handlers: Mapping[str, Any],
    turned_away: Callable[[str, str], None],
    end_lines: Callable[[], bool] = lambda: True,
) -> Serving:
    """Begin to listen; RuntimeError when the port cannot be had."""
    threshold = Threshold(len(door.callers), turned_away)
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
    credentials = grpc.dynamic_ssl_server_credentials(
        _who_may_call(door), lambda: _who_may_call(door), require_client_authentication=True
    )
    server.add_secure_port(f"unix:{threshold.private}", credentials)
    await server.start()
    serving = Serving(server, threshold, end_lines)
    try:
        if door.elsewhere is not None:
            door.elsewhere(threshold)
        else:
            await threshold.open(door.members.book.entry(door.me))
    except BaseException:
        await serving.stop(None)
        raise
    return serving


def _who_may_call(door: ServerDoor) -> Any:
    """What TLS takes at this moment: asked at every handshake."""
    own = (door.identity.key, door.identity.certificate.encode())
    return grpc.ssl_server_certificate_configuration([own], door.members.roots(door.callers))


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
