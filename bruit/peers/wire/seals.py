"""Seals of a run: signatures by the keys inside the certificates of the address book."""

from __future__ import annotations

from dataclasses import dataclass, field

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from bruit.algorithms.schedules.vouchers import Seals
from bruit.peers.wire.identity import Identity, signing_key
from bruit.peers.wire.members import Members


@dataclass(frozen=True, eq=False)
class BookSeals(Seals):
    """One participant's own key, and the public ones of all others, former ones too; a seal of another run, or of
    a rehearsal of this one, is none of this one."""

    identity: Identity
    members: Members
    run: str
    rehearsal: bool = False
    _keys: dict[str, Ed25519PublicKey] = field(default_factory=dict, repr=False)

    def _text(self, text: str) -> bytes:
        walk = "rehearsed walk" if self.rehearsal else "walk"
        return f"bruit {walk} {self.run}: {text}".encode()

    def sign(self, text: str) -> bytes:
        return self.identity.sign(self._text(text))

    def check(self, peer: int, text: str, seal: bytes) -> bool:
        return any(
            self._signed_by(certificate, text, seal)
            for certificate in reversed(self.members.ever(peer))
        )

    def _signed_by(self, certificate: str, text: str, seal: bytes) -> bool:
        if certificate not in self._keys:
            self._keys[certificate] = Ed25519PublicKey.from_public_bytes(signing_key(certificate))
        try:
            self._keys[certificate].verify(seal, self._text(text))
        except InvalidSignature:
            return False
        return True
