"""The chain of a run by ballots: one hash over its terms and over all lists and sums so far.

    root       = hash(terms)
    H          = hash("attempt", chain, ballot, round, P, keys of P)
    next chain = hash("sum", H, integers of the sum)

It is over integers, so that machines whose floating-point numbers differ in the last bit agree.
"""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from bruit.arrays import Words

if TYPE_CHECKING:
    from bruit.algorithms.algorithm import Algorithm

HASH = 32  # bytes of a hash, and of a key
NO_KEY = bytes(HASH)


def _hash(what: str, *parts: bytes) -> bytes:
    """The lengths of the parts are hashed with them: no two sequences of parts read alike."""
    found = hashlib.blake2b(digest_size=HASH, person=b"bruit ballots")
    for part in (what.encode(), *parts):
        found.update(struct.pack("<Q", len(part)))
        found.update(part)
    return found.digest()


def root(algorithm: Algorithm[Any], peers: int, steps: int) -> bytes:
    """The chain before the first sum: what everybody runs, and how long."""
    terms = json.dumps(algorithm.describe(), sort_keys=True, default=repr).encode()
    return _hash("terms", terms, struct.pack("<qq", peers, steps))


def binding(
    chain: bytes, ballot: int, number: int, members: Sequence[int], keys: Sequence[bytes]
) -> bytes:
    """H of one attempt (silo:SILO-4)."""
    people = np.array(members, "<i8").tobytes()
    return _hash("attempt", chain, struct.pack("<qq", ballot, number), people, b"".join(keys))


def digest(words: Words) -> bytes:
    """A name of the integers of a sum."""
    return _hash("words", np.ascontiguousarray(words, "<u8").tobytes())


def extended(bound: bytes, words: Words) -> bytes:
    """The chain after the sum of the attempt with this H."""
    return _hash("sum", bound, digest(words))


def total(rows: Words) -> Words:
    """The sum of rows modulo 2^64, over the axis before the last."""
    summed: Words = np.add.reduce(rows, axis=-2, dtype=np.uint64)
    return summed
