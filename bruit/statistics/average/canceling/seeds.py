"""Seeds two peers agree on without meeting, and the noise that both derive from them
(perso:GOPA-1).

    secret = X25519(my private key, your public key)
    seed   = HKDF-SHA256(secret, both peers and both public keys, the terms)
    key    = HKDF-SHA256(seed, round number);   noise of the round = AES stream of that key, as normals on the grid

Nothing but public keys travels. Each round has its own key: opening one round (a rollback) says
nothing about others. Public keys must come over a channel that says whose they are, or somebody in
the middle agrees with both sides.
"""

from __future__ import annotations

import hmac
from dataclasses import dataclass, field

import numpy as np
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)

from bruit.arrays import Words
from bruit.errors import ConfigError, RemoteProtocolError
from bruit.randomness import Secure
from bruit.statistics.average.canceling.terms import Terms

ZERO = np.zeros(1, np.int64)


@dataclass(frozen=True)
class KeyPair:
    """The X25519 key of one peer; the private half never leaves and is never shown."""

    private: X25519PrivateKey = field(default_factory=X25519PrivateKey.generate, repr=False)

    @classmethod
    def from_bytes(cls, secret: bytes) -> KeyPair:
        if len(secret) != 32:
            raise ConfigError(f"an X25519 private key has 32 bytes, found {len(secret)}")
        return cls(X25519PrivateKey.from_private_bytes(secret))

    @property
    def public(self) -> bytes:
        return self.private.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)

    def secret_bytes(self) -> bytes:
        """The private key, for sharing it out among trustees (secure aggregation)."""
        return self.private.private_bytes(Encoding.Raw, PrivateFormat.Raw, NoEncryption())

    def agree(self, me: int, other: int, public: bytes, context: bytes) -> bytes:
        """The 32-byte seed shared with the other peer: the same from both ends, for these terms
        only."""
        try:
            secret = self.private.exchange(X25519PublicKey.from_public_bytes(public))
        except ValueError:
            raise RemoteProtocolError(
                f"peer {other} sent {len(public)} bytes that are no usable X25519 public key; "
                f"nothing was agreed on"
            ) from None
        ends = sorted(((me, self.public), (other, public)))
        info = b"".join(peer.to_bytes(8, "big") + key for peer, key in ends) + context
        return _derived(secret, b"bruit gopa seed" + info, 32)


def confirmation(seed: bytes, peer: int) -> bytes:
    """What a peer shows to prove that it holds the same seed, without showing it."""
    return hmac.digest(seed, b"confirm" + peer.to_bytes(8, "big"), "sha256")


def confirmed(seed: bytes, peer: int, tag: bytes) -> bool:
    return hmac.compare_digest(confirmation(seed, peer), tag)


def round_key(seed: bytes, number: int) -> bytes:
    """The 16-byte key of one round: what a rollback opens."""
    return _derived(seed, b"bruit gopa round" + number.to_bytes(8, "big"), 16)


def pair_noise(key: bytes, me: int, other: int, terms: Terms) -> Words:
    """What `me` adds against `other`: N(0, pair^2) on the grid, minus what `other` adds
    # (width,)."""
    if len(key) != 16:
        raise RemoteProtocolError(f"the key of a round has 16 bytes, found {len(key)}")
    words = terms.field.noise(
        Secure(key).normal("pair", ZERO, terms.number, 0, terms.width)[0], terms.pair_sigma
    )
    return words if me < other else np.zeros_like(words) - words


def uniform_mask(key: bytes, width: int) -> Words:
    """Uniform 64-bit words of a key: a mask that hides perfectly (secure aggregation)
    # (width,)."""
    words: Words = Secure(key).words("mask", ZERO, 0, 0, width)[0]
    return words


def _derived(secret: bytes, info: bytes, length: int) -> bytes:
    return HKDF(SHA256(), length, salt=None, info=info).derive(secret)
