"""The address book: who takes part, where each one listens, and which certificate is whose.

A TOML file with one [[peer]] table per participant. Everybody sends the others one snippet
(`public_entry`); whoever merges the same snippets, in any order, gets the same book, byte for byte.
The fingerprints are compared by another channel (a call, a meeting): that comparison is the only
thing trust rests on. Later versions of a book are signed by its members (`revision`).
"""

from __future__ import annotations

import hashlib
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

from bruit.errors import ConfigError
from bruit.files import write_whole
from bruit.peers.wire.entry import Entry, checked_entry, entry_of_table, entry_text
from bruit.peers.wire.identity import Identity, read_certificate
from bruit.peers.wire.place import place_of
from bruit.peers.wire.relay_entry import RelayEntry, checked_relay, relay_of_table, relay_text
from bruit.peers.wire.revisions.revision import KEYS as REVISED
from bruit.peers.wire.revisions.revision import Revision, revision_of

HEADER = "# Address book of a Bruit network. Compare the fingerprints with their owners before you trust it.\n"


@dataclass(frozen=True)
class AddressBook:
    """All participants, by number from 0, and the relays at which some of them are reached."""

    entries: tuple[Entry, ...]
    relays: tuple[RelayEntry, ...] = ()
    revision: Revision | None = None

    @classmethod
    def of(
        cls,
        entries: Iterable[Entry],
        where: str = "the address book",
        now: datetime | None = None,
        relays: Iterable[RelayEntry] = (),
        revision: Revision | None = None,
    ) -> AddressBook:
        """A book of valid entries: numbers 0..n-1, no name, address or certificate twice, all
        certificates in date and none revoked, and each relay that is used listed with its
        certificate."""
        found = sorted(
            (checked_entry(entry, where, now) for entry in entries), key=lambda entry: entry.peer
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
        book = cls(tuple(found), listed, revision)
        for entry in found:
            book.way(entry, where)
        if revision is not None:
            _check_revision(book, revision, where)
        return book

    @classmethod
    def parse(
        cls, text: str, where: str = "the address book", now: datetime | None = None
    ) -> AddressBook:
        peers, relays, rest = _tables(text, where)
        return cls.of(
            (entry_of_table(table, where) for table in peers),
            where,
            now,
            [relay_of_table(table, where) for table in relays],
            revision_of(rest, where),
        )

    @classmethod
    def as_it_was(cls, text: str, where: str) -> AddressBook:
        """A book of before: valid on the day on which its newest certificate began."""
        peers, relays, _ = _tables(text, where)
        found = [
            read_certificate(str(table.get("certificate", "")), where) for table in peers + relays
        ]
        made = max((one.not_valid_before_utc for one in found), default=None)
        return cls.parse(text, where, made)

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
            + ("" if self.revision is None else f"\n{self.revision.head()}")
            + "".join(f"\n{relay_text(relay)}" for relay in self.relays)
            + "".join(
                f"\n[[peer]]\npeer = {entry.peer}\n{entry_text(entry)}" for entry in self.entries
            )
            + ("" if self.revision is None else self.revision.tail())
        )

    @property
    def version(self) -> int:
        return 1 if self.revision is None else self.revision.version

    @property
    def revoked(self) -> tuple[str, ...]:
        """Fingerprints of certificates that are refused."""
        return () if self.revision is None else self.revision.revoked

    @cached_property
    def digest(self) -> str:
        """The name of this book: SHA-256 over its people and its revision. Addresses, relays and
        signatures are left out."""
        said = "" if self.revision is None else self.revision.words
        return hashlib.sha256(f"bruit book 1\n{_seats(self)}{said}\n".encode()).hexdigest()

    @property
    def founding(self) -> str:
        """The digest of the version 1 that this book goes back to."""
        return self.digest if self.revision is None else self.revision.founding

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
        return AddressBook.of(entries, relays=self.relays, revision=self.revision)

    def fingerprints(self) -> list[str]:
        """Of all that are listed, relays too."""
        return [one.fingerprint for one in self.entries] + [one.fingerprint for one in self.relays]

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
    entry = checked_entry(entry, f"the entry of {identity.name}", None)
    return f"# fingerprint {entry.fingerprint}\n[[peer]]\n{entry_text(entry)}"


def merge(snippets: Iterable[str], now: datetime | None = None) -> AddressBook:
    """One book from everybody's snippets, and those of relays; peers are numbered by the
    alphabetical order of their names."""
    found, relays = parts(snippets)
    found.sort(key=lambda entry: entry.name)
    return AddressBook.of(
        (replace(entry, peer=k) for k, entry in enumerate(found)),
        "the merged address book",
        now,
        relays,
    )


def parts(snippets: Iterable[str]) -> tuple[list[Entry], list[RelayEntry]]:
    """The people and the relays of snippets, in their order; certificates are not checked yet."""
    found: list[Entry] = []
    relays: list[RelayEntry] = []
    for count, snippet in enumerate(snippets, 1):
        where = f"snippet {count}"
        tables, others, rest = _tables(snippet, where)
        if len(others) == 1 and not tables and not rest:
            relays.append(relay_of_table(others[0], where))
            continue
        if len(tables) != 1 or "peer" in tables[0] or others or rest:
            raise ConfigError(
                f"{where} must be one unnumbered [[peer]] table, as `bruit network join` prints it"
            )
        found.append(entry_of_table(tables[0] | {"peer": 0}, where))
    return found, relays


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
    """Version 1 is its seats; a later one is also which version it is."""
    later = "" if book.revision is None else f"book {book.digest}\n"
    return f"{_seats(book)}{later}"


def _seats(book: AddressBook) -> str:
    lines = "".join(f"{entry.peer} {entry.fingerprint}\n" for entry in book.entries)
    return f"{len(book.entries)}\n{lines}"


def _tables(
    text: str, where: str
) -> tuple[list[dict[str, Any]], list[dict[str, Any]], dict[str, Any]]:
    """The tables of peers, those of relays, and what a later version says of itself."""
    try:
        content = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise ConfigError(f"{where} is not TOML: {error}") from error
    unknown = sorted(set(content) - {"peer", "relay", *REVISED})
    peers, relays = content.pop("peer", []), content.pop("relay", [])
    if unknown or not _are_tables(peers) or not _are_tables(relays):
        raise ConfigError(
            f"{where} may hold its version, signatures, [[peer]] and [[relay]] tables only, "
            f"found {', '.join(unknown) or 'another peer or relay'}"
        )
    return peers, relays, content


def _are_tables(found: object) -> bool:
    return isinstance(found, list) and all(isinstance(table, dict) for table in found)


def _check_revision(book: AddressBook, revision: Revision, where: str) -> None:
    """Refuse a book that lists what it revokes, or asks for fewer signatures than two of which any
    overlap."""
    for listed in book.fingerprints():
        if listed in revision.revoked:
            raise ConfigError(f"{where} lists {listed}, which it says is revoked")
    count, least = len(book.entries), len(book.entries) // 2 + 1
    if revision.quorum is not None and not least <= revision.quorum <= count:
        raise ConfigError(
            f"{where}: quorum is {least} to {count} of {count} members, found {revision.quorum}: "
            f"with half or fewer, two versions of one number could both be signed"
        )


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
