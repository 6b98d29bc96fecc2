"""Fiat-Shamir: challenges are hashes of everything said so far, so a proof is bound to its whole
statement.

    state <- BLAKE2b(state | label | length | data),    challenge = BLAKE2b(state | label) as 64 bytes, modulo ORDER

Every piece carries its label and length, so no two sequences of pieces hash alike. A challenge
becomes part of the state. Assumption: the hash behaves as a random oracle. 512 bits modulo a
256-bit order are uniform to 2**-256.
"""

from __future__ import annotations

import hashlib

from bruit.statistics.average.proofs.group import ORDER, Point, encoded_scalar


class Transcript:
    """What prover and verifier hash in the same order."""

    def __init__(self, domain: bytes) -> None:
        self._state = hashlib.blake2b(domain, person=b"bruit transcript").digest()

    def append(self, label: bytes, data: bytes) -> None:
        self._state = self._hash(b"append", label, data)

    def append_point(self, label: bytes, point: Point) -> None:
        self.append(label, point.encoded())

    def append_scalar(self, label: bytes, scalar: int) -> None:
        self.append(label, encoded_scalar(scalar))

    def append_number(self, label: bytes, number: int) -> None:
        self.append(label, number.to_bytes(8, "big", signed=True))

    def challenge(self, label: bytes) -> int:
        """A nonzero scalar that nobody could know before everything above was said."""
        drawn = self._hash(b"challenge", label, b"")
        self._state = self._hash(b"drawn", label, drawn)
        return int.from_bytes(drawn, "big") % (ORDER - 1) + 1

    def _hash(self, kind: bytes, label: bytes, data: bytes) -> bytes:
        pieces = b"".join(len(piece).to_bytes(8, "big") + piece for piece in (kind, label, data))
        return hashlib.blake2b(self._state + pieces).digest()
