"""Who signed a version of an address book, and whether they are enough.

A version stands when more than half of the members of the one before signed it, or as many as that
one asks for, which is never less. So of two versions that follow the same book one member at least
signed both: while that one is honest and signs one only, there is no second version. A signature
counts if its certificate is in the book before, or follows one there by successions, and none of
them is revoked in either book; a member counts once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from bruit.errors import BruitError, ConfigError
from bruit.peers.wire.address_book import AddressBook
from bruit.peers.wire.identity import Identity, verify
from bruit.peers.wire.revisions.revision import BookSignature
from bruit.peers.wire.succession import Succession, led_on


@dataclass(frozen=True)
class Support:
    """How far a version is: names of members of the book before."""

    needed: int
    signed: tuple[str, ...]
    missing: tuple[str, ...]
    refused: tuple[str, ...]  # why signatures do not count

    @property
    def stands(self) -> bool:
        return len(self.signed) >= self.needed

    def check(self, where: str) -> None:
        """Refuse a version that is not signed by enough."""
        if not self.stands:
            raise ConfigError(
                f"{where} is signed by {len(self.signed)} members of the version before and needs "
                f"{self.needed}; not signed by {', '.join(self.missing)}: let them sign by "
                f"`bruit network sign`"
            )


def asked_for(book: AddressBook) -> int:
    """How many of its members must sign the next version."""
    stated = None if book.revision is None else book.revision.quorum
    return len(book.entries) // 2 + 1 if stated is None else stated


def standing(book: AddressBook, previous: AddressBook, where: str) -> Support:
    """Who of the version before signed this one; ConfigError if it does not follow that one."""
    check_follows(book, previous, where)
    signed: set[int] = set()
    refused: list[str] = []
    for one in () if book.revision is None else book.revision.signatures:
        try:
            signed.add(_signer(one, book, previous))
        except BruitError as error:
            refused.append(str(error))
    names = [(entry.name, entry.peer in signed) for entry in previous.entries]
    return Support(
        asked_for(previous),
        tuple(name for name, has in names if has),
        tuple(name for name, has in names if not has),
        tuple(refused),
    )


def check_follows(book: AddressBook, previous: AddressBook, where: str) -> None:
    """Refuse a book that is not the next version of the one before."""
    revision = book.revision
    if revision is None:
        raise ConfigError(f"{where} is version 1, which follows no other")
    if revision.previous != previous.digest:
        raise ConfigError(
            f"{where} follows the book {revision.previous[:16]}, and this one is "
            f"{previous.digest[:16]}"
        )
    if revision.version != previous.version + 1 or revision.founding != previous.founding:
        raise ConfigError(
            f"{where} says it is version {revision.version} of {revision.founding[:16]}, but it "
            f"follows version {previous.version} of {previous.founding[:16]}"
        )
    forgotten = sorted(set(previous.revoked) - set(revision.revoked))
    if forgotten:
        raise ConfigError(f"{where} forgets that {forgotten[0]} is revoked")


def signed_by(
    book: AddressBook, previous: AddressBook, identity: Identity, known: Sequence[Succession] = ()
) -> AddressBook:
    """The same proposal with the signature of this member of the version before."""
    if book.revision is None:
        raise ConfigError("version 1 is not signed: compare its fingerprints by another channel")
    certificate = identity.fingerprint()
    later: list[Succession] = []
    while previous.by_fingerprint(certificate) is None:
        one = next((one for one in known if one.new == certificate), None)
        if one is None or one in later:
            raise ConfigError(
                f"{identity.name} cannot sign: its certificate {identity.fingerprint()[:24]} is not "
                f"in the version before, and no succession leads there"
            )
        later.insert(0, one)
        certificate = one.old
    said = identity.sign(_said(book)).hex()
    mine = BookSignature(identity.fingerprint(), said, tuple(one.text() for one in later))
    _signer(mine, book, previous)
    return with_signatures(book, [mine])


def with_signatures(book: AddressBook, more: Sequence[BookSignature]) -> AddressBook:
    """The same proposal with more signatures, each once, in one order."""
    if book.revision is None:
        return book
    found = {(one.fingerprint, one.signature): one for one in (*more, *book.revision.signatures)}
    ordered = tuple(found[key] for key in sorted(found))
    return replace(book, revision=replace(book.revision, signatures=ordered))


def _said(book: AddressBook) -> bytes:
    """What a member signs."""
    return f"bruit book signature 1\n{book.digest}\n".encode()


def _signer(one: BookSignature, book: AddressBook, previous: AddressBook) -> int:
    """The member of the version before whose signature this is; ConfigError if it is of none."""
    chain = [Succession.parse(text.encode()) for text in one.successions]
    first = chain[0].old if chain else one.fingerprint
    member = previous.by_fingerprint(first)
    short = one.fingerprint[:24]
    if member is None:
        raise ConfigError(f"the signature of {short} is of nobody in the version before")
    certificate, prints = led_on(member.certificate, chain)
    if prints[-1] != one.fingerprint:
        raise ConfigError(f"the successions of {member.name!r} do not lead to {short}")
    if set(prints) & {*book.revoked, *previous.revoked}:
        raise ConfigError(f"the certificate {short} of {member.name!r} is revoked")
    if not verify(certificate, _said(book), bytes.fromhex(one.signature)):
        raise ConfigError(f"the signature of {member.name!r} does not hold")
    return member.peer
