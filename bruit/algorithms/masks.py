"""Masks: words that two peers add with opposite signs, so that they cancel in a sum (silo:SILO-4).

    mask of (u, v) in one attempt = AES-256-CTR keyed by HKDF(k_uv, H),       + for the smaller number, - for the larger

k_uv is known to the two only, and H names the attempt: terms, ballot, list and its keys, all sums so
far. The mask graph on the list stays connected when any `colluders` are taken out of it: complete,
or the next ceil((colluders + 1) / 2) on each side of a circle of its members in order.

In a simulation masks are drawn from the dice, one address a pair and attempt: the first 32 bits of
H and the last 8 of the ballot.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

import numpy as np

from bruit.arrays import Ints, Words
from bruit.errors import LocalProtocolError
from bruit.randomness import Dice, Secure

if TYPE_CHECKING:
    from bruit.algorithms.schedules.ballots.attempt import Attempt

SECRET = 32  # bytes of what two peers share


class Masks(ABC):
    """What one peer shares with each of the others, for the time of one start."""

    @abstractmethod
    def secret(self, me: int, other: int, other_key: bytes) -> bytes:
        """32 bytes that only these two know; `other_key` is what the other one showed."""

    def usable(self, key: bytes) -> bool:
        """Whether a secret can be agreed on with who shows this key."""
        return True


def mask_words(secret: bytes, binding: bytes, width: int) -> Words:
    """The mask of one pair in one attempt  # (width,)."""
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
    from cryptography.hazmat.primitives.hashes import SHA256
    from cryptography.hazmat.primitives.kdf.hkdf import HKDF

    if len(secret) != SECRET:
        raise LocalProtocolError(f"a mask is made of {SECRET} secret bytes, found {len(secret)}")
    key = HKDF(SHA256(), SECRET, salt=None, info=b"bruit mask of an attempt " + binding).derive(
        secret
    )
    stream = Cipher(algorithms.AES256(key), modes.CTR(bytes(16))).encryptor()
    return np.frombuffer(stream.update(bytes(8 * width)), "<u8").astype(np.uint64)


def pair_dice(secret: bytes) -> Dice:
    """The dice of one pair of real neighbors, alike at both ends: of their canceling noise
    (perso:GOPA-1). The secret is of two starts only, and so are these."""
    from cryptography.hazmat.primitives.hashes import SHA256
    from cryptography.hazmat.primitives.kdf.hkdf import HKDF

    if len(secret) != SECRET:
        raise LocalProtocolError(f"noise is made of {SECRET} secret bytes, found {len(secret)}")
    return Secure(HKDF(SHA256(), 16, salt=None, info=b"bruit canceling noise").derive(secret))


def mask_edges(members: Ints, colluders: int) -> tuple[Ints, Ints]:
    """The pairs (smaller, larger) of the mask graph of a list, each once  # (pairs,), (pairs,)."""
    people = np.sort(np.asarray(members, np.int64))
    size, beside = len(people), (colluders + 2) // 2
    if size < 2:
        return people[:0], people[:0]
    if size <= 2 * beside + 1:
        first, second = np.triu_indices(size, 1)
    else:
        first = np.repeat(np.arange(size), beside)
        second = (first + np.tile(np.arange(1, beside + 1), size)) % size
    low, high = np.minimum(first, second), np.maximum(first, second)
    return people[low], people[high]


def agreed_masks(masks: Masks, ids: Ints, attempt: Attempt, colluders: int, width: int) -> Words:
    """The sum of the masks of one real peer, from what it shares with each neighbor in the mask
    graph  # (1, width)."""
    if len(ids) != 1:
        raise LocalProtocolError(f"agreed masks are those of one peer, found {len(ids)}")
    me, found = int(ids[0]), np.zeros((1, width), np.uint64)
    keys = dict(zip(attempt.members, attempt.keys, strict=True))
    low, high = mask_edges(np.array(attempt.members, np.int64), colluders)
    mine = (low == me) | (high == me)
    for other in (low[mine] + high[mine] - me).tolist():
        words = mask_words(masks.secret(me, other, keys[other]), attempt.binding, width)
        found[0] += words if me < other else np.uint64(0) - words
    return found


def drawn_masks(
    dice: Dice, run: int, ids: Ints, attempt: Attempt, colluders: int, width: int
) -> Words:
    """The same for simulated peers. In several copies of a run everybody is in every list, and peer
    i of copy c is lane c n + i  # (lanes, width)."""
    n = len(attempt.members)
    everybody = attempt.members == tuple(range(n))
    copies = np.unique(ids // n) if everybody else np.zeros(1, np.int64)
    low, high = mask_edges(np.array(attempt.members, np.int64), colluders)
    shift = n * np.repeat(copies, len(low))
    low, high = np.tile(low, len(copies)) + shift, np.tile(high, len(copies)) + shift
    found = np.zeros((len(ids), width), np.uint64)
    here = np.isin(low, ids) | np.isin(high, ids)
    if not here.any():
        return found
    low, high = low[here], high[here]
    bound = np.array([int.from_bytes(one[:4], "little") for one in attempt.bindings])
    place = bound[low // n - attempt.first if everybody else np.zeros_like(low)]
    words = dice.words("masks", dice.pair(low, high), place, attempt.ballot % 256, width, run)
    lanes = np.argsort(ids)
    for ends, opposite in ((low, False), (high, True)):
        mine = np.flatnonzero(np.isin(ends, ids))
        rows = lanes[np.searchsorted(ids, ends[mine], sorter=lanes)]
        by_lane = np.argsort(rows, kind="stable")
        taken, begin = np.unique(rows[by_lane], return_index=True)
        sums = np.add.reduceat(words[mine[by_lane]], begin)
        found[taken] += np.uint64(0) - sums if opposite else sums
    return found
