"""Pacts: what two neighbors say to agree on the keys of their canceling noise.

    pact of u with v:   my key K_u of this start, and the key H that I hold of you (zeros: none yet)
    agreed, for u:      the last pact of v says (K_v, K_u), with K_u the key of the present start of u

Each is signed for its receiver. It holds no value: keys are public.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bruit.algorithms.schedules.vouchers import SEAL, Bytes, Seals
from bruit.errors import RemoteProtocolError

KEY = 32  # bytes of a public key
NO_KEY = bytes(KEY)


class PactRow(NamedTuple):
    """A pact on a line."""

    key: Bytes  # (1, 32)
    held: Bytes  # (1, 32)
    seal: Bytes  # (1, 64)


EXAMPLE = PactRow(*(np.zeros((0, width), np.uint8) for width in (KEY, KEY, SEAL)))


def _row(content: bytes) -> Bytes:
    return np.frombuffer(content, np.uint8)[None].copy()


def _text(giver: int, receiver: int, key: bytes, held: bytes) -> str:
    return f"canceling noise of {giver} and {receiver}, key {key.hex()}, held {held.hex()}"


def made(giver: int, receiver: int, key: bytes, held: bytes, seals: Seals | None) -> PactRow:
    """What `giver` says to `receiver`; without seals everybody is believed."""
    text = _text(giver, receiver, key, held)
    return PactRow(_row(key), _row(held), _row(bytes(SEAL) if seals is None else seals.sign(text)))


def read(giver: int, receiver: int, row: PactRow, seals: Seals | None) -> tuple[bytes, bytes]:
    """The key shown and the key held; refused if `giver` has not signed them for `receiver`."""
    key, held = row.key.tobytes(), row.held.tobytes()
    text = _text(giver, receiver, key, held)
    if seals is not None and not seals.check(giver, text, row.seal.tobytes()):
        raise RemoteProtocolError(f"peer {giver} showed a key that it has not signed")
    return key, held
