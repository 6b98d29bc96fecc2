"""Seals of a run: signatures by the keys inside the certificates of the address book."""

from __future__ import annotations

from dataclasses import dataclass, field

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from bruit.algorithms.schedules.vouchers import Seals
from bruit.peers.wire.address_book import AddressBook
from bruit.peers.wire.identity import Identity, signing_key


@dataclass(frozen=True, eq=False)
class BookSeals(Seals):
    """One participant's own key, and the public ones of all others; a seal of another run, or of
    a rehearsal of this one, is none of this one."""

    identity: Identity
    book: AddressBook
    run: str
    rehearsal: bool = False
    _keys: dict[int, Ed25519PublicKey] = field(default_factory=dict, repr=False)

    def _text(self, text: str) -> bytes:
        walk = "rehearsed walk" if self.rehearsal else "walk"
        return f"bruit {walk} {self.run}: {text}".encode()

    def sign(self, text: str) -> bytes:
        return self.identity.sign(self._text(text))

    def check(self, peer: int, text: str, seal: bytes) -> bool:
        if peer not in self._keys:
            certificate = self.book.entry(peer).certificate
            self._keys[peer] = Ed25519PublicKey.from_public_bytes(signing_key(certificate))
        try:
            self._keys[peer].verify(seal, self._text(text))
        except InvalidSignature:
            return False
        return True
