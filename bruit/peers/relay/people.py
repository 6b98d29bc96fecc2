"""Whom a relay serves: the members of its books, whoever they have become since.

A member that changes its key is still the one in the book. The relay hears of it from any member
that is connected, believes what old and new key have both signed, and keeps it in its folder; an
operator may put a succession there, too.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path

from bruit.errors import BruitError, RemoteProtocolError
from bruit.files import write_whole
from bruit.peers.wire.address_book import AddressBook
from bruit.peers.wire.members import FILES, FOLDER, Members
from bruit.peers.wire.said_once import SaidOnce
from bruit.peers.wire.succession import LONGEST, Succession

log = logging.getLogger("bruit.peers")


class People:
    """Everybody is called by the fingerprint in the book."""

    def __init__(self, folder: Path, books: Sequence[AddressBook]) -> None:
        self.folder = folder / FOLDER
        self._each = [Members(book) for book in books]
        self._files: set[str] = set()
        self._told = SaidOnce(log)
        self.look()

    def of(self, shown: str) -> str:
        """Who shows that certificate, or "": nobody who may speak with it now."""
        found = (members.by_fingerprint(shown) for members in self._each)
        return next((entry.fingerprint for entry in found if entry is not None), "")

    def certificates(self) -> list[str]:
        """All that may be shown now."""
        return [
            one
            for members in self._each
            for entry in members.book.entries
            for one in members.taken(entry.peer)
        ]

    def learn(self, data: bytes) -> bool:
        """Take note of a succession: whether it was news. RemoteProtocolError if no book has such a
        member, or it is not signed by both keys."""
        news, refused = False, []
        for members in self._each:
            try:
                news = members.learn(data) or news
            except RemoteProtocolError as error:
                refused.append(error)
        if len(refused) == len(self._each):
            raise refused[0]
        if news:
            self._keep(data)
        return news

    def _keep(self, data: bytes) -> None:
        name = Succession.parse(data).new.replace(":", "")[:32] + ".toml"
        self._files.add(name)
        if (self.folder / name).exists():
            return
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            write_whole(self.folder / name, lambda file: file.write(data))
        except (BruitError, OSError) as error:  # it holds all the same, as long as this relay runs
            text = "the new key of a member is forgotten when this relay ends: %s"
            self._told.warn((name, "kept"), text, error)

    def look(self) -> bool:
        """Read what is new in the folder: whether there was news."""
        there = {path.name for path in self.folder.glob("*.toml")} - self._files
        left, news, again = sorted(there)[:FILES], False, True
        while again:  # a succession may follow one that is read later
            again = False
            for name in [one for one in left if one not in self._files]:
                if self._read(name):
                    news = again = True
        return news

    def _read(self, name: str) -> bool:
        try:
            with open(self.folder / name, "rb") as file:
                news = self.learn(file.read(LONGEST + 1))
        except (BruitError, OSError) as error:
            self._told.warn((name, str(error)), "%s in %s: %s", name, self.folder, error)
            return False
        self._files.add(name)
        return news
