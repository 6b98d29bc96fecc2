"""Members: the people of an address book, whoever they have become since.

The book names a run, and never changes in it. A member may go on under a new certificate
(`succession`); from the moment a peer learns of that, both are taken, and the old one until the
overlap ends. Successions lie in a folder, one file each; what comes over the wire is kept there,
and what an operator puts there is read while the peer runs.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from bruit.errors import BruitError, ConfigError, RemoteProtocolError
from bruit.files import write_whole
from bruit.peers.wire.address_book import AddressBook
from bruit.peers.wire.entry import Entry
from bruit.peers.wire.said_once import SaidOnce
from bruit.peers.wire.succession import LONGEST, Succession

log = logging.getLogger("bruit.peers")
MOST = 16  # successions of one member that are taken
FILES = 1024  # files of the folder that are looked at
FOLDER = "successions"


@dataclass
class Members:
    """A book and what is known of successions; without a folder nothing is kept."""

    book: AddressBook
    folder: Path | None = None
    _chains: dict[int, list[Succession]] = field(default_factory=dict)
    _files: set[str] = field(default_factory=set)
    _told: SaidOnce = field(default_factory=lambda: SaidOnce(log))

    def ever(self, peer: int) -> list[str]:
        """All certificates of a member, from the book's to the present one."""
        later = [one.certificate for one in self._chains.get(peer, [])]
        return [self.book.entry(peer).certificate, *later]

    def taken(self, peer: int, now: datetime | None = None) -> list[str]:
        """Those with which it may speak now."""
        moment, chain, all_of_them = now or datetime.now(UTC), self._chains.get(peer, []), []
        for certificate, next_one in zip(self.ever(peer), [*chain, None], strict=True):
            if next_one is None or next_one.takes_old(moment):
                all_of_them.append(certificate)
        return all_of_them

    def fingerprints(self, peer: int) -> list[str]:
        chain = [one.new for one in self._chains.get(peer, [])]
        return [self.book.entry(peer).fingerprint, *chain]

    def since(self, peer: int, full: str) -> list[Succession]:
        """The successions that lead from the book's certificate of a member to that fingerprint."""
        chain = self._chains.get(peer, [])
        prints = self.fingerprints(peer)
        return chain[: prints.index(full)] if full in prints else []

    def roots(self, of: Iterable[int]) -> bytes:
        """The certificates with which these may speak now, as TLS roots."""
        return "".join(one for peer in sorted(of) for one in self.taken(peer)).encode()

    def by_fingerprint(self, full: str) -> Entry | None:
        """Whose certificate that is, if it may speak with it now."""
        found = self.book.by_fingerprint(full)
        if found is None:
            owners = (
                peer for peer, chain in self._chains.items() if full in [one.new for one in chain]
            )
            peer = next(owners, None)
            found = None if peer is None else self.book.entry(peer)
        if found is None or found.peer not in self._chains:
            return found
        place, now = self.fingerprints(found.peer).index(full), datetime.now(UTC)
        chain = self._chains[found.peer]
        return found if place == len(chain) or chain[place].takes_old(now) else None

    def known(self) -> list[Succession]:
        """All successions, so that each comes after the one before it."""
        return [one for peer in sorted(self._chains) for one in self._chains[peer]]

    def learn(self, data: bytes) -> bool:
        """Take note of a succession: whether it was news. RemoteProtocolError if it cannot be."""
        one = Succession.parse(data)
        if one.new in self.book.revoked:
            raise RemoteProtocolError("a succession to a certificate that the book has revoked")
        for entry in self.book.entries:
            prints = self.fingerprints(entry.peer)
            if one.new in prints[1:] and one.old in prints:
                return False
            if one.old == prints[-1] and self._is_new(one):
                self._follow(entry, one)
                return True
            if one.old in prints:
                raise RemoteProtocolError(
                    f"{entry.name} has another successor already: ask its owner by another "
                    f"channel whether its key was stolen"
                )
        raise RemoteProtocolError("a succession of nobody in the address book")

    def _is_new(self, one: Succession) -> bool:
        """Whether nobody has its certificate yet."""
        peers = range(len(self.book.entries))
        return all(one.new not in self.fingerprints(peer) for peer in peers)

    def _follow(self, entry: Entry, one: Succession) -> None:
        chain = self._chains.setdefault(entry.peer, [])
        try:
            if len(chain) >= MOST:
                raise ConfigError(f"{entry.name} has changed its key {MOST} times in this run")
            one.check(self.ever(entry.peer)[-1])
        except BruitError as error:
            if not chain:
                del self._chains[entry.peer]
            raise RemoteProtocolError(str(error)) from None
        chain.append(one)
        log.warning("%s goes on under the certificate %s", entry.name, one.new[:24])
        if self.folder is not None:
            self.folder.mkdir(parents=True, exist_ok=True)
            name = one.new.replace(":", "")[:32] + ".toml"
            if not (self.folder / name).exists():
                write_whole(self.folder / name, lambda file: file.write(one.text().encode()))
            self._files.add(name)

    def look(self) -> bool:
        """Read what has come into the folder: whether there was news."""
        if self.folder is None or not self.folder.is_dir():
            return False
        fresh = sorted({path.name for path in self.folder.glob("*.toml")} - self._files)[:FILES]
        news, again = False, True
        while again:  # a succession may follow one that is read later
            again = False
            for name in [one for one in fresh if one not in self._files]:
                if self._read(name):
                    news = again = True
        return news

    def _read(self, name: str) -> bool:
        try:
            with open(Path(self.folder or "") / name, "rb") as file:
                known = self.learn(file.read(LONGEST + 1))
        except (BruitError, OSError) as error:
            self._told.warn((name, str(error)), "%s in %s: %s", name, self.folder, error)
            return False
        self._files.add(name)
        return known
