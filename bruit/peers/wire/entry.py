"""A participant in an address book: its number, its name, where it listens, and its certificate."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from typing import Any

from cryptography.hazmat.primitives.serialization import Encoding

from bruit.errors import ConfigError
from bruit.peers.wire.identity import (
    check_dates,
    check_name,
    fingerprint,
    name_of,
    read_certificate,
)
from bruit.peers.wire.place import check_place, written

KEYS = {"peer": int, "name": str, "host": str, "port": int, "certificate": str}
MAY = {"relay": bool}


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One participant: its number in the graph, its name, where it listens, and its certificate
    (PEM). With `relay` it listens nowhere, and is reached through the relay at that address."""

    peer: int
    name: str
    host: str
    port: int
    certificate: str
    relay: bool = False

    @cached_property
    def fingerprint(self) -> str:
        return fingerprint(self.certificate)

    @property
    def address(self) -> str:
        """host:port as gRPC wants it, with brackets around an IPv6 host."""
        return written(self.host, self.port)


def entry_of_table(table: Mapping[str, Any], where: str) -> Entry:
    """The participant that a table describes; its certificate is not checked yet."""
    name = table.get("name", "?")
    unknown = sorted(set(table) - set(KEYS) - set(MAY))
    missing = [key for key in KEYS if key not in table]
    if unknown or missing:
        said = f"unknown key {unknown[0]!r}" if unknown else f"no {missing[0]}"
        raise ConfigError(
            f"{where}: the entry of {name!r} has {said}; an entry has {', '.join(KEYS)}"
        )
    for key, kind in (KEYS | MAY).items():
        if key in table and type(table[key]) is not kind:
            raise ConfigError(
                f"{where}: {key} of {name!r} must be of type {kind.__name__}, found {table[key]!r}"
            )
    return Entry(**table)


def checked_entry(entry: Entry, where: str, now: datetime | None) -> Entry:
    """The same entry, its certificate in the one canonical spelling, once everything in it has been
    found valid."""
    check_name(entry.name)
    here = f"{where}: the certificate of {entry.name!r}"
    certificate = read_certificate(entry.certificate, here)
    if name_of(certificate) != entry.name:
        raise ConfigError(
            f"{here} says {name_of(certificate)!r}; an entry bears the name in its certificate"
        )
    check_dates(certificate, here, now)
    check_place(entry.host, entry.port, repr(entry.name), where)
    return replace(entry, certificate=certificate.public_bytes(Encoding.PEM).decode())


def entry_text(entry: Entry) -> str:
    """As TOML, without the number and the table's name."""
    # Printable JSON strings are TOML strings, and so is base64 between triple quotes.
    name, host = (json.dumps(text, ensure_ascii=False) for text in (entry.name, entry.host))
    relay = "relay = true\n" if entry.relay else ""
    return (
        f"name = {name}\nhost = {host}\nport = {entry.port}\n{relay}"
        f'certificate = """\n{entry.certificate}"""\n'
    )
