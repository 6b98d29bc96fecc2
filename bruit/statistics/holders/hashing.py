"""The hash of garbling: a fixed-key block cipher, used twice so that relations between labels do
not show.

    H(x, i) = P(P(x) xor i) xor P(x),     P = AES-128 under a public random key of the session

This is TMMO of Guo, Katz, Wang, Yu (ePrint 2019/074): tweakable and circular correlation robust
when AES under a random key is an ideal permutation, which is what free XOR with half-gates asks of
it. The tweak i = (place, instance) never repeats within a session.
"""

from __future__ import annotations

from typing import cast, final

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from numpy.typing import NDArray

from bruit.arrays import Words
from bruit.randomness.dice import BlockCipher

BLOCK = 16  # bytes of a label


@final
class Hasher:
    """H for blocks of labels; one per session."""

    def __init__(self, key: bytes) -> None:
        self._cipher = cast(BlockCipher, Cipher(algorithms.AES(key), modes.ECB()).encryptor())

    def __call__(self, labels: Words, places: tuple[int, ...], instances: Words) -> Words:
        """Hashes of labels (places, N, 2): row k has the tweaks (places[k], instances)  # (places,
        N, 2)."""
        inner = self._permuted(labels)
        tweaked = inner.copy()
        tweaked[:, :, 0] ^= np.array(places, dtype=np.uint64)[:, None]
        tweaked[:, :, 1] ^= instances
        inner ^= self._permuted(tweaked)
        return inner

    def _permuted(self, blocks: Words) -> Words:
        blocks = np.ascontiguousarray(blocks)
        out = np.empty(blocks.size + 2, dtype=np.uint64)  # update_into asks for a block of slack
        if blocks.size:
            self._cipher.update_into(blocks.reshape(-1).view(np.uint8), out.view(np.uint8))
        return out[: blocks.size].reshape(blocks.shape)


def from_bytes(data: bytes | NDArray[np.uint8], *shape: int) -> Words:
    """Blocks of 16 bytes as pairs of words  # (*shape, 2)."""
    return np.frombuffer(data, dtype="<u8").astype(np.uint64).reshape(*shape, 2)


def to_bytes(blocks: Words) -> bytes:
    """The other way."""
    return blocks.astype("<u8").tobytes()
