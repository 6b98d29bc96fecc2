"""Pedersen commitments: v G + r H, which hide v perfectly and bind to it while nobody knows log_G H
(perso:GOPA-9).

    Com(v, r) + Com(v', r') = Com(v + v', r + r'),     negative values modulo the order of the group

Binding rests on the discrete logarithm problem in secp256k1; H and all other generators are hashed
points, so that no participant can have chosen them. Vector commitments use one generator per place.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from bruit.arrays import Bools
from bruit.statistics.average.proofs.group import Point, generator, hashed_point
from bruit.statistics.average.proofs.multi_scalar import Table, subset_sum, table

LONGEST = 2**16  # bits of one proof


@lru_cache(maxsize=1)
def blinding_base() -> Point:
    """H."""
    return hashed_point(b"blinding")


@lru_cache(maxsize=1)
def inner_base() -> Point:
    """The generator that carries inner products in proofs."""
    return hashed_point(b"inner product")


@lru_cache(maxsize=32)
def vector_bases(length: int) -> tuple[Table, Table]:
    """G_1..G_N and H_1..H_N, for vectors."""
    left = [hashed_point(b"left %d" % place) for place in range(length)]
    right = [hashed_point(b"right %d" % place) for place in range(length)]
    return table(left), table(right)


def commitment(value: int, blinding: int) -> Point:
    """Com(value, blinding).

    >>> commitment(5, 7) + commitment(3, 11) == commitment(8, 18)
    True
    """
    return value * generator() + blinding * blinding_base()


def bit_commitment(bits: Bools, blinding: int) -> Point:
    """blinding H + sum_i bits_i G_i + (bits_i - 1) H_i: a commitment to bits and to what they lack
    to one."""
    left, right = vector_bases(len(bits))
    lacking = subset_sum(right, np.flatnonzero(~bits))
    return subset_sum(left, np.flatnonzero(bits)) - lacking + blinding * blinding_base()
