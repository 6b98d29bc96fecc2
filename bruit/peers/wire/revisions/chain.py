"""The book that stands: version 1 as it is, a later one with its quorum and the books before beside
it.

    book.toml, version 3  <-- signed by members of --  version 2  <-- signed by members of --  version 1

The books before lie in the same folder, under any name ending in .toml, and are found by their
digest. They are read as on the day their newest certificate began, since others may have expired
after.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from bruit.errors import ConfigError
from bruit.peers.wire.address_book import AddressBook
from bruit.peers.wire.revisions.quorum import standing

FILES = 1024  # files that are looked at
LONGEST = 4 * 2**20  # bytes of one of them


@dataclass(frozen=True)
class KnownVersion:
    """The newest version of a consortium under which this participant has taken part."""

    version: int
    digest: str


def standing_book(path: Path, known: Mapping[str, KnownVersion] | None = None) -> AddressBook:
    """The book in a file, if it stands; `known` are the versions that this participant has seen, by
    founding. An older one is refused, and one that does not go back to what was seen."""
    return check_standing(AddressBook.read(path), path, known)


def check_standing(
    book: AddressBook, path: Path, known: Mapping[str, KnownVersion] | None = None
) -> AddressBook:
    """The same book, if it stands with those in the folder of its file."""
    where = f"the address book {path}"
    seen = (known or {}).get(book.founding)
    if seen is not None and book.version < seen.version:
        raise ConfigError(
            f"{where} is version {book.version}, but version {seen.version} has been seen here; "
            f"put back the newer one"
        )
    one, here = book, where
    while True:
        _check_seen(one, seen, here)
        if one.revision is None:
            return book
        previous = previous_of(one, path)
        standing(one, previous, here).check(here)
        if seen is not None and previous.digest == seen.digest:
            return book
        one, here = previous, f"version {previous.version} before {path}"


def previous_of(book: AddressBook, path: Path) -> AddressBook:
    """The version before, out of the folder in which the file of this one lies."""
    if book.revision is None:
        raise ConfigError(f"the address book {path} is version 1, which follows no other")
    wanted = book.revision.previous
    found = next((one for _, one in books_beside(path) if one.digest == wanted), None)
    if found is None:
        raise ConfigError(
            f"version {book.version} of the address book {path} follows a book {wanted[:16]}, which"
            f" is not beside it; put version {book.version - 1} into {path.parent}"
        )
    return found


def books_beside(path: Path, saying: str = "") -> Iterator[tuple[Path, AddressBook]]:
    """The books in the folder of a file, as they were when they were made, in whose text that word
    stands; other files are passed over."""
    for file in sorted(path.parent.glob("*.toml"))[:FILES]:
        try:
            text = file.read_bytes().decode() if file.stat().st_size <= LONGEST else ""
            if text and saying in text:
                yield file, _read_before(text)
        except (ConfigError, OSError, UnicodeDecodeError):
            continue


@lru_cache(maxsize=8)
def _read_before(text: str) -> AddressBook:
    """Hosts of one process have the same books: each is checked once."""
    return AddressBook.as_it_was(text, "a book of before")


def book_as_it_was(path: Path) -> AddressBook:
    """One book, whatever has expired in it since."""
    try:
        text = path.read_bytes().decode()
    except OSError as error:
        raise ConfigError(f"cannot read the address book {path}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise ConfigError(f"the address book {path} is not UTF-8 text ({error})") from None
    return AddressBook.as_it_was(text, f"the address book {path}")


def _check_seen(book: AddressBook, seen: KnownVersion | None, where: str) -> None:
    if seen is not None and book.version == seen.version and book.digest != seen.digest:
        raise ConfigError(
            f"{where}: there are two books of version {book.version}, {book.digest[:16]} and "
            f"{seen.digest[:16]}, which this peer has seen: somebody signed both; ask the others "
            f"which one they have"
        )
