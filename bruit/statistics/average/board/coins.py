"""Public coins that nobody chooses: everybody hides a contribution, and all are revealed after all
commitments.

    hidden = SHA-256(run, peer, contribution), beacon = SHA-256(run, all contributions), coins_u = SHAKE-256(beacon, u)

The coins are uniform if one contribution was and everybody revealed. Whoever reveals last knows
them before the others and may refuse: then there are no coins, no masked value is posted, and the
board shows who refused.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

import numpy as np

from bruit.arrays import Bools


def coin_hash(run: bytes, peer: int, contribution: bytes) -> bytes:
    return hashlib.sha256(b"bruit coin 1" + run + peer.to_bytes(8, "big") + contribution).digest()


def beacon_of(run: bytes, contributions: Mapping[int, bytes]) -> bytes:
    pieces = (peer.to_bytes(8, "big") + part for peer, part in sorted(contributions.items()))
    return hashlib.sha256(b"bruit beacon 1" + run + b"".join(pieces)).digest()


def coins_of(beacon: bytes, peer: int, count: int) -> Bools:
    """The public coins of one peer  # (count,)."""
    stream = hashlib.shake_256(b"bruit coins 1" + beacon + peer.to_bytes(8, "big")).digest(
        (count + 7) // 8
    )
    return np.unpackbits(np.frombuffer(stream, np.uint8))[:count].astype(bool)
