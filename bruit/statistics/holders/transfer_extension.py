"""From 128 base transfers to as many as needed, by symmetric encryption alone (Ishai, Kilian,
Nissim, Petrank 2003).

    receiver, bits c:  t_i = G(key_i0),  sends u_i = t_i xor G(key_i1) xor c          i < 128, columns of N bits
    sender, secret D:  q_i = G(key_i(D_i)) xor D_i u_i          then, by rows:  q_j = t_j xor c_j D

q_j is taken as the label of 0 on an evaluator's input wire and t_j is then the label of c_j, with
the garbler's own offset D: 16 bytes per transfer one way, nothing the other way. G is AES-128 in
counter mode, one counter range per batch. Secure against parties that follow the protocol; a
receiver that uses different bits in different columns could learn bits of D (no consistency check
is made).
"""

from __future__ import annotations

from typing import final

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from numpy.typing import NDArray

from bruit.arrays import Bools, Words
from bruit.errors import RemoteProtocolError
from bruit.statistics.holders.base_transfer import COUNT
from bruit.statistics.holders.hashing import from_bytes

Bytes = NDArray[np.uint8]


@final
class Receiver:
    """Holds both keys of each base transfer; its choices stay hidden."""

    def __init__(self, keys: list[tuple[bytes, bytes]]) -> None:
        self._keys = keys

    def extend(self, bits: Bools, batch: int) -> tuple[bytes, Words]:
        """The message to the sender, and the labels of the bits  # (N, 2)."""
        size = columns_bytes(len(bits)) // COUNT
        choice = np.packbits(bits, bitorder="little")
        own = np.stack([_stream(first, batch, size) for first, _ in self._keys])
        other = np.stack([_stream(second, batch, size) for _, second in self._keys])
        return (own ^ other ^ choice).tobytes(), _rows(own, len(bits))


@final
class Sender:
    """Holds the keys that its secret bits chose; gets a label of 0 per transfer."""

    def __init__(self, bits: Bools, keys: list[bytes]) -> None:
        self._bits, self._keys = bits, keys

    def extend(self, message: bytes, count: int, batch: int) -> Words:
        """The labels of 0  # (count, 2)."""
        size = columns_bytes(count) // COUNT
        if len(message) != size * COUNT:
            raise RemoteProtocolError(
                f"{count} transfers take {size * COUNT} bytes, found {len(message)}"
            )
        received = np.frombuffer(message, dtype=np.uint8).reshape(COUNT, size)
        own = np.stack([_stream(key, batch, size) for key in self._keys])
        return _rows(own ^ received * self._bits[:, None].astype(np.uint8), count)


def columns_bytes(count: int) -> int:
    """Bytes of the receiver's message for that many transfers."""
    return COUNT * ((count + 7) // 8)


def offset_of(bits: Bools) -> Words:
    """The secret bits as the offset D of garbling  # (2,)."""
    return from_bytes(np.packbits(bits, bitorder="little").tobytes()).reshape(2)


def _stream(key: bytes, batch: int, size: int) -> Bytes:
    cipher = Cipher(algorithms.AES(key), modes.CTR(batch.to_bytes(8, "big") + bytes(8))).encryptor()
    return np.frombuffer(cipher.update(bytes(size)), dtype=np.uint8)


def _rows(columns: Bytes, count: int) -> Words:
    """Bit j of 128 columns becomes label j."""
    bits = np.unpackbits(columns, axis=1, bitorder="little")[:, :count]
    return from_bytes(
        np.packbits(np.ascontiguousarray(bits.T), axis=1, bitorder="little").tobytes(), count
    )
