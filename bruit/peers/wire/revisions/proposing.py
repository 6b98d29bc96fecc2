"""A proposal: the next version of an address book, and what it changes, in words.

Who stays keeps its order, whoever comes gets the seats after, in the order of names.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from bruit.errors import ConfigError
from bruit.peers.wire.address_book import AddressBook, parts
from bruit.peers.wire.entry import Entry
from bruit.peers.wire.revisions.revision import FINGERPRINT, Revision, check_run_name

SHORTEST = 24  # characters of a fingerprint that name a listed certificate


@dataclass(frozen=True, kw_only=True)
class Changes:
    """What a proposal asks for: public parts of who comes, moves or has a new key; names of who
    leaves; fingerprints of certificates to be refused."""

    add: Sequence[str] = ()
    remove: Sequence[str] = ()
    revoke: Sequence[str] = ()
    from_run: str
    quorum: int | None = None


def revise(previous: AddressBook, changes: Changes) -> AddressBook:
    """The next version, signed by nobody yet."""
    check_run_name(changes.from_run, "--from-run")
    coming, relays = parts(changes.add)
    revoked = {_revoked(one, previous) for one in changes.revoke}
    by_name = {one.name: one for one in coming}
    if len(by_name) < len(coming):
        raise ConfigError("two of the public parts to add have the same name")
    for name in changes.remove:
        if name not in {one.name for one in previous.entries}:
            raise ConfigError(f"there is no {name!r} in the version before")
        if name in by_name:
            raise ConfigError(f"{name!r} cannot be added and removed at once")
    stay = [
        by_name.pop(one.name, one)
        for one in previous.entries
        if one.name not in changes.remove
        and (one.name in by_name or one.fingerprint not in revoked)
    ]
    entries = [*stay, *sorted(by_name.values(), key=lambda one: one.name)]
    kept = [one for one in previous.relays if one.address not in {two.address for two in relays}]
    used = [one for one in kept if one.fingerprint not in revoked]
    stated = None if previous.revision is None else previous.revision.quorum
    book = AddressBook.of(
        [replace(one, peer=k) for k, one in enumerate(entries)],
        "the proposed address book",
        relays=[*used, *relays],
        revision=Revision(
            version=previous.version + 1,
            founding=previous.founding,
            previous=previous.digest,
            from_run=changes.from_run,
            quorum=stated if changes.quorum is None else changes.quorum,
            revoked=tuple(sorted({*previous.revoked, *revoked})),
        ),
    )
    if not differences(book, previous):
        raise ConfigError("the proposal changes nothing; say --add, --remove, --revoke or --quorum")
    return book


def differences(book: AddressBook, previous: AddressBook) -> list[str]:
    """What changes from one version to the next, a line each."""
    before = {one.name: one for one in previous.entries}
    after = {one.name: one for one in book.entries}
    lines = [f"joins    {_shown(one)}" for name, one in after.items() if name not in before]
    lines += [f"leaves   {_shown(one)}" for name, one in before.items() if name not in after]
    for name, one in after.items():
        old = before.get(name)
        if old is not None and old.fingerprint != one.fingerprint:
            lines.append(f"new key  {_shown(one)}, before {old.fingerprint[:SHORTEST]}")
        if old is not None and (old.address, old.relay) != (one.address, one.relay):
            lines.append(f"moves    {name} from {old.address} to {one.address}")
        if old is not None and old.peer != one.peer:
            lines.append(f"seat     {name} was peer {old.peer}, is peer {one.peer}")
    lines += [f"revoked  {one}" for one in sorted(set(book.revoked) - set(previous.revoked))]
    lines += [
        f"relay    {one.address} {one.fingerprint[:SHORTEST]} is {word}"
        for word, some, others in (
            ("new", book.relays, previous.relays),
            ("gone", previous.relays, book.relays),
        )
        for one in some
        if one not in others
    ]
    asks = [one.revision and one.revision.quorum for one in (previous, book)]
    if asks[0] != asks[1]:
        lines.append(
            f"quorum   {asks[0] or 'more than half'} before, {asks[1] or 'more than half'}"
        )
    return lines


def _shown(one: Entry) -> str:
    return f"{one.name} {one.fingerprint[:SHORTEST]}"


def _revoked(said: str, previous: AddressBook) -> str:
    """A full fingerprint, or the first five groups of a listed one."""
    if FINGERPRINT.fullmatch(said):
        return said
    found = [
        one for one in previous.fingerprints() if len(said) >= SHORTEST and one.startswith(said)
    ]
    if len(found) != 1:
        raise ConfigError(
            f"{said!r} is neither a full fingerprint (3fa2:09c1:..., 16 groups) nor the first five "
            f"groups of one in the book"
        )
    return found[0]
