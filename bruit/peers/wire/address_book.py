"""The address book: who takes part, where each one listens, and which certificate is whose.

A TOML file with one [[peer]] table per participant. Everybody sends the others one snippet
(`public_entry`); whoever merges the same snippets, in any order, gets the same book, byte for byte.
The fingerprints are compared by another channel (a call, a meeting): that comparison is the only
thing trust rests on.
"""

from __future__ import annotations

import hashlib
import json
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.serialization import Encoding

from bruit.errors import ConfigError
from bruit.files import write_whole
from bruit.peers.wire.identity import (
    Identity,
    check_dates,
    check_name,
    fingerprint,
    name_of,
    read_certificate,
)
from bruit.peers.wire.place import check_place, place_of, written
from bruit.peers.wire.relay_entry import RelayEntry, checked_relay, relay_of_table, relay_text

KEYS = {"peer": int, "name": str, "host": str, "port": int, "certificate": str}
MAY = {"relay": bool}
HEADER = "# Address book of a Bruit network. Compare the fingerprints with their owners before you trust it.\n"


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


@dataclass(frozen=True)
class AddressBook:
    """All participants, by number from 0, and the relays at which some of them are reached."""

    entries: tuple[Entry, ...]
    relays: tuple[RelayEntry, ...] = ()

    @classmethod
    def of(
        cls,
        entries: Iterable[Entry],
        where: str = "the address book",
        now: datetime | None = None,
        relays: Iterable[RelayEntry] = (),
    ) -> AddressBook:
        """A book of valid entries: numbers 0..n-1, no name, address or certificate twice, all
        certificates in date, and each relay that is used listed with its certificate."""
        found = sorted(
            (_checked(entry, where, now) for entry in entries), key=lambda entry: entry.peer
        )
        if not found:
            raise ConfigError(f"{where} lists nobody; merge the entries of all participants first")
        for what in ("peer", "name", "address", "fingerprint"):
            _refuse_twice(found, what, where)
        if found[-1].peer != len(found) - 1:
            raise ConfigError(
                f"{where} lists {len(found)} peers, so their numbers must be 0..{len(found) - 1}, "
                f"found {', '.join(str(entry.peer) for entry in found)}"
            )
        listed = tuple(
            sorted((checked_relay(one, where, now) for one in relays), key=lambda one: one.address)
        )
        book = cls(tuple(found), listed)
        for entry in found:
            book.way(entry, where)
        return book

    @classmethod
    def parse(
        cls, text: str, where: str = "the address book", now: datetime | None = None
    ) -> AddressBook:
        peers, relays = _tables(text, where)
        return cls.of(
            (_entry(table, where) for table in peers),
            where,
            now,
            [relay_of_table(table, where) for table in relays],
        )

    @classmethod
    def read(cls, path: str | Path, now: datetime | None = None) -> AddressBook:
        try:
            text = Path(path).read_bytes().decode()
        except OSError as error:
            raise ConfigError(
                f"cannot read the address book {path}: {error.strerror or error}"
            ) from error
        except UnicodeDecodeError as error:
            raise ConfigError(f"the address book {path} is not UTF-8 text ({error})") from error
        try:
            known = _read_before(text)
            if now is None and known.in_date():
                return known
        except ConfigError:
            pass  # it is told with the name of this file
        return cls.parse(text, f"the address book {path}", now)

    @cached_property
    def _dates(self) -> tuple[datetime, datetime]:
        listed = [one.certificate for one in self.entries]
        found = [
            read_certificate(one)
            for one in (*listed, *(relay.certificate for relay in self.relays))
        ]
        return max(one.not_valid_before_utc for one in found), min(
            one.not_valid_after_utc for one in found
        )

    def in_date(self) -> bool:
        """Whether all certificates are valid at this moment."""
        begins, ends = self._dates
        return begins <= datetime.now(UTC) <= ends

    def text(self) -> str:
        """The book as TOML, always the same for the same entries."""
        return (
            HEADER
            + "".join(f"\n{relay_text(relay)}" for relay in self.relays)
            + "".join(
                f"\n[[peer]]\npeer = {entry.peer}\n{_public(entry)}" for entry in self.entries
            )
        )

    def write(self, path: str | Path) -> None:
        write_whole(Path(path), lambda stream: stream.write(self.text().encode()))

    def entry(self, peer: int) -> Entry:
        if not 0 <= peer < len(self.entries):
            raise ConfigError(
                f"there is no peer {peer}: the address book lists 0..{len(self.entries) - 1}"
            )
        return self.entries[peer]

    def way(self, entry: Entry, where: str = "the address book") -> RelayEntry | None:
        """The relay at which somebody is reached; None for who listens itself."""
        if not entry.relay:
            return None
        found = next((one for one in self.relays if one.address == entry.address), None)
        if found is None:
            raise ConfigError(
                f"{where}: {entry.name!r} is reached at the relay {entry.address}, which is not "
                f"listed; merge the relay's public.toml too (`bruit relay key` writes it)"
            )
        return found

    def reached_at(self, peer: int, address: str) -> AddressBook:
        """The same book in which that peer is reached at a relay of this address."""
        host, port = place_of(address, "relay")
        entries = [
            replace(one, host=host, port=port, relay=True) if one.peer == peer else one
            for one in self.entries
        ]
        return AddressBook.of(entries, relays=self.relays)

    def by_fingerprint(self, full: str) -> Entry | None:
        """The entry with that full fingerprint, None if nobody listed has it."""
        return next((entry for entry in self.entries if entry.fingerprint == full), None)

    def certificates(self, of: Iterable[int] | None = None) -> bytes:
        """The certificates of these peers, or of all, one after the other, as TLS roots."""
        chosen = range(len(self.entries)) if of is None else frozenset(of)
        return "".join(entry.certificate for entry in self.entries if entry.peer in chosen).encode()


@lru_cache(maxsize=2)
def _read_before(text: str) -> AddressBook:
    """Hosts of one process have books of the same words: they are checked once. What is refused is
    not remembered."""
    return AddressBook.parse(text)


def public_entry(identity: Identity, host: str, port: int, relay: bool = False) -> str:
    """What a participant sends to all others: everything public about it, no peer number yet."""
    entry = Entry(
        peer=0,
        name=identity.name,
        host=host,
        port=port,
        certificate=identity.certificate,
        relay=relay,
    )
    entry = _checked(entry, f"the entry of {identity.name}", None)
    return f"# fingerprint {entry.fingerprint}\n[[peer]]\n{_public(entry)}"


def merge(snippets: Iterable[str], now: datetime | None = None) -> AddressBook:
    """One book from everybody's snippets, and those of relays; peers are numbered by the
    alphabetical order of their names."""
    found: list[dict[str, Any]] = []
    relays: list[RelayEntry] = []
    for count, snippet in enumerate(snippets, 1):
        where = f"snippet {count}"
        tables, others = _tables(snippet, where)
        if len(others) == 1 and not tables:
            relays.append(relay_of_table(others[0], where))
            continue
        if len(tables) != 1 or "peer" in tables[0]:
            raise ConfigError(
                f"{where} must be one unnumbered [[peer]] table, as `bruit network join` prints it"
            )
        _entry(tables[0] | {"peer": 0}, where)
        found += tables
    found.sort(key=lambda table: str(table["name"]))
    return AddressBook.of(
        (_entry(table | {"peer": k}, "a snippet") for k, table in enumerate(found)),
        "the merged address book",
        now,
        relays,
    )


def run_id(book: AddressBook, experiment: str) -> str:
    """The name of a run: SHA-256 over the fingerprints, in the order of the peers, and the
    experiment's text.

    Equal for all who agreed on both, different as soon as anybody changed a certificate, a seat, or
    the experiment. Addresses are left out, since a peer may be reached differently from different
    places, and so is the kind of line ending, which mail programs change.
    """
    digest = hashlib.sha256(f"bruit run\n{_people(book)}".encode())
    digest.update(experiment.replace("\r\n", "\n").encode())
    return digest.hexdigest()


def people_digest(book: AddressBook) -> str:
    """Alike for all whose books list the same certificates on the same seats."""
    return hashlib.sha256(f"bruit people\n{_people(book)}".encode()).hexdigest()


def _people(book: AddressBook) -> str:
    lines = "".join(f"{entry.peer} {entry.fingerprint}\n" for entry in book.entries)
    return f"{len(book.entries)}\n{lines}"


def _tables(text: str, where: str) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The tables of peers, and those of relays."""
    try:
        content = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{where} is not TOML: {error}") from error
    unknown = sorted(set(content) - {"peer", "relay"})
    peers, relays = content.get("peer", []), content.get("relay", [])
    if unknown or not _are_tables(peers) or not _are_tables(relays):
        raise ConfigError(
            f"{where} may hold [[peer]] and [[relay]] tables only, found "
            f"{', '.join(unknown) or 'another peer or relay'}"
        )
    return peers, relays


def _are_tables(found: object) -> bool:
    return isinstance(found, list) and all(isinstance(table, dict) for table in found)


def _entry(table: Mapping[str, Any], where: str) -> Entry:
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


def _checked(entry: Entry, where: str, now: datetime | None) -> Entry:
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


def _refuse_twice(entries: list[Entry], what: str, where: str) -> None:
    owners: dict[object, Entry] = {}
    for entry in entries:
        value = getattr(entry, what)
        if what == "address" and entry.relay:
            continue  # many are reached at one relay
        if value in owners:
            raise ConfigError(
                f"{where}: {owners[value].name!r} and {entry.name!r} have the same {what}, {value}"
            )
        owners[value] = entry


def _public(entry: Entry) -> str:
    # Printable JSON strings are TOML strings, and so is base64 between triple quotes.
    name, host = (json.dumps(text, ensure_ascii=False) for text in (entry.name, entry.host))
    relay = "relay = true\n" if entry.relay else ""
    return (
        f"name = {name}\nhost = {host}\nport = {entry.port}\n{relay}"
        f'certificate = """\n{entry.certificate}"""\n'
    )
