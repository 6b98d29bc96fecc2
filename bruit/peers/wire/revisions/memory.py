"""What a participant remembers of address books: the newest versions seen, and what it signed.

A file beside its keys, `books.json`. An older version than one seen is refused, so that who was
removed or revoked does not come back with an old copy; and of the successors of one book it signs
one only.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bruit.errors import BrokenStateError, ConfigError
from bruit.files import to_json, write_whole
from bruit.peers.wire.address_book import AddressBook
from bruit.peers.wire.revisions.chain import KnownVersion
from bruit.peers.wire.revisions.revision import DIGEST

FILE = "books.json"


@dataclass
class BookMemory:
    """`seen` by founding; `signed` the digest of the successor, by that of the book before."""

    folder: Path
    seen: dict[str, KnownVersion] = field(default_factory=dict)
    signed: dict[str, str] = field(default_factory=dict)

    @classmethod
    def read(cls, folder: Path) -> BookMemory:
        path = folder / FILE
        try:
            content = json.loads(path.read_bytes())
        except FileNotFoundError:
            return cls(folder)
        except (OSError, ValueError, RecursionError) as error:
            raise _damaged(path, str(error)) from None
        if not isinstance(content, dict) or set(content) != {"seen", "signed"}:
            raise _damaged(path, "it has seen and signed")
        seen, signed = content["seen"], content["signed"]
        if not isinstance(seen, dict) or not all(_is_known(one) for one in seen.values()):
            raise _damaged(path, "a version that was seen is a number and a digest")
        if not isinstance(signed, dict) or not all(_is_digest(one) for one in signed.values()):
            raise _damaged(path, "what was signed is a digest")
        return cls(folder, {key: KnownVersion(*one) for key, one in seen.items()}, signed)

    def has_seen(self, book: AddressBook) -> None:
        """From now on no older version of this consortium is taken, and later ones may go back to
        it."""
        now = KnownVersion(book.version, book.digest)
        if self.seen.get(book.founding) != now:
            self.seen[book.founding] = now
            self._write()

    def will_sign(self, book: AddressBook, instead: bool) -> None:
        """Refuse a second successor of one book, unless that is meant, and one of a book that has a
        successor already."""
        if book.revision is None:
            return
        seen = self.seen.get(book.founding)
        if seen is not None and book.version <= seen.version and book.digest != seen.digest:
            raise ConfigError(
                f"version {seen.version} of this address book has been seen here already; propose "
                f"the one after it"
            )
        before = self.signed.get(book.revision.previous)
        if before not in (None, book.digest) and not instead:
            raise ConfigError(
                f"another version {book.version} ({str(before)[:16]}) was signed here: whoever signs "
                f"two lets the members part; if all have agreed to drop the other one, add --instead"
            )
        if before != book.digest:
            self.signed[book.revision.previous] = book.digest
            self._write()

    def _write(self) -> None:
        content = {
            "seen": {key: [one.version, one.digest] for key, one in self.seen.items()},
            "signed": self.signed,
        }
        write_whole(
            self.folder / FILE, lambda file: file.write(to_json(content).encode()), private=True
        )


def _is_digest(found: Any) -> bool:
    return type(found) is str and DIGEST.fullmatch(found) is not None


def _is_known(found: Any) -> bool:
    return (
        isinstance(found, list)
        and len(found) == 2
        and type(found[0]) is int
        and _is_digest(found[1])
    )


def _damaged(path: Path, why: str) -> BrokenStateError:
    return BrokenStateError(
        f"{path}, which remembers the versions of address books, is damaged ({why}); put back a "
        f"backup of it, and ask another member for the newest version"
    )
