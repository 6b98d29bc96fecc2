"""A relay in an address book: where it listens, and its certificate, by which peers know it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from typing import Any

from cryptography.hazmat.primitives.serialization import Encoding

from bruit.errors import ConfigError
from bruit.peers.wire.identity import Identity, check_dates, fingerprint, read_certificate
from bruit.peers.wire.place import check_place, written

KEYS = {"host": str, "port": int, "certificate": str}


@dataclass(frozen=True)
class RelayEntry:
    """A relay: whom it serves is its own affair, who may trust it is nobody's: it is blind."""

    host: str
    port: int
    certificate: str

    @cached_property
    def fingerprint(self) -> str:
        return fingerprint(self.certificate)

    @property
    def address(self) -> str:
        return written(self.host, self.port)


def public_relay(identity: Identity, host: str, port: int) -> str:
    """What the operator of a relay sends to all participants."""
    entry = checked_relay(RelayEntry(host, port, identity.certificate), "the entry of the relay")
    return f"# fingerprint {entry.fingerprint}\n{relay_text(entry)}"


def relay_text(relay: RelayEntry) -> str:
    """As TOML, always the same for the same relay."""
    return (
        f"[[relay]]\nhost = {json.dumps(relay.host)}\nport = {relay.port}\n"
        f'certificate = """\n{relay.certificate}"""\n'
    )


def relay_of_table(table: Mapping[str, Any], where: str) -> RelayEntry:
    """The relay that a table of a book describes, not yet checked."""
    if set(table) != set(KEYS):
        raise ConfigError(f"{where}: a relay has {', '.join(KEYS)}, found {', '.join(table)}")
    for key, kind in KEYS.items():
        if type(table[key]) is not kind:
            raise ConfigError(
                f"{where}: {key} of a relay must be of type {kind.__name__}, found {table[key]!r}"
            )
    return RelayEntry(**table)


def checked_relay(relay: RelayEntry, where: str, now: datetime | None = None) -> RelayEntry:
    """The same relay, its certificate in the one canonical spelling, if everything in it is
    valid."""
    check_place(relay.host, relay.port, "a relay", where)
    here = f"{where}: the certificate of the relay {relay.address}"
    certificate = read_certificate(relay.certificate, here)
    check_dates(certificate, here, now)
    return replace(relay, certificate=certificate.public_bytes(Encoding.PEM).decode())
