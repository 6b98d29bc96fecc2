"""AgreedMasks: the secrets of pairs of real peers, agreed on by keys that live for one start.

    k_uv = HKDF-SHA256( X25519(private of u, public of v),  "bruit masked sum 1", u, v, keys of u and v )       u < v

A start makes its key in memory and never writes the private half anywhere; the public half is an
input of the journal, and in every promise that the start signs (silo:SILO-4, Keys). So neither a
restart nor a restored backup can make a mask a second time, and whoever takes the disk after the
run, journal and all, learns no mask from it.
"""

from __future__ import annotations

import os
import struct
from functools import lru_cache
from typing import NoReturn

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from bruit.algorithms.masks import Masks
from bruit.errors import PrivacyError

CONTEXT = b"bruit masked sum 1"
LENGTH = 32  # bytes of a key, and of a secret
PROBE = X25519PrivateKey.from_private_bytes(b"\x01" * LENGTH)  # hides nothing: it tries out keys


class AgreedMasks(Masks):
    """The secrets of one start of one peer.

    Before it has a key (`renew`) every secret is made of fresh bytes of the operating system: the
    inputs of an earlier start are executed again without its key, the words it said are in the
    journal, and what is computed in their place is noise that nobody is told."""

    def __init__(self, private: X25519PrivateKey | None = None) -> None:
        self.__private, self._secrets = private, dict[tuple[int, int], tuple[bytes, bytes]]()

    def renew(self) -> bytes:
        """A new key, in memory only; its public half."""
        self.__private, self._secrets = X25519PrivateKey.generate(), {}
        return self.__private.public_key().public_bytes_raw()

    def usable(self, key: bytes) -> bool:
        """Not with the few keys that make the same secret with everybody: all zeros."""
        return _hides(key)

    def secret(self, me: int, other: int, other_key: bytes) -> bytes:
        if self.__private is None:
            return os.urandom(LENGTH)
        known = self._secrets.get((me, other))
        if known is None or known[0] != other_key:
            known = (other_key, self._agreed(self.__private, me, other, other_key))
            self._secrets[me, other] = known
        return known[1]

    def _agreed(self, private: X25519PrivateKey, me: int, other: int, other_key: bytes) -> bytes:
        shared = _exchanged(private, other_key)
        if shared is None:
            raise PrivacyError(
                f"peer {other} shows a key with which everybody would agree on the same secret: "
                "nothing is masked by it; this should have been refused before (`usable`)"
            )
        mine = private.public_key().public_bytes_raw()
        ends = sorted(((me, mine), (other, other_key)))
        told = b"".join(struct.pack("<q", number) + key for number, key in ends)
        return HKDF(SHA256(), LENGTH, salt=None, info=CONTEXT + told).derive(shared)

    def __repr__(self) -> str:
        return "AgreedMasks()"

    def __reduce__(self) -> NoReturn:
        raise PrivacyError(
            "the secrets of a start cannot be copied or saved: two holders would make the same "
            "masks; let each start make its own key"
        )


@lru_cache(maxsize=4096)
def _hides(key: bytes) -> bool:
    """Whether a key makes secrets; asked of all who are on a list, in every attempt."""
    return _exchanged(PROBE, key) is not None


def _exchanged(private: X25519PrivateKey, key: bytes) -> bytes | None:
    """What the two agree on; None if that is all zeros, or the key is none."""
    try:
        shared = private.exchange(X25519PublicKey.from_public_bytes(key))
    except ValueError:
        return None
    return shared if any(shared) else None
