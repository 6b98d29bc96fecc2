"""Rational arithmetic for small answers: reduced forms over the fractions, and fractions from their
residues."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

SIZE = 1 << 20
"""Largest numerator and denominator that a fraction is recovered with: by chance it would be one
time in 2^31."""


def reduced_form(rows: Sequence[Sequence[Fraction]]) -> list[list[Fraction]]:
    """The non-zero rows of the reduced row echelon form, by Gauss-Jordan (gossip:REC-2, backend
    `exact`)."""
    found = [list(row) for row in rows]
    rank = 0
    for column in range(len(found[0]) if found else 0):
        pivot = next((i for i in range(rank, len(found)) if found[i][column]), None)
        if pivot is None:
            continue
        found[rank], found[pivot] = found[pivot], found[rank]
        lead = found[rank][column]
        found[rank] = [x / lead for x in found[rank]]
        for i, row in enumerate(found):
            if i != rank and row[column]:
                factor = row[column]
                found[i] = [x - factor * y for x, y in zip(row, found[rank], strict=True)]
        rank += 1
    return found[:rank]


def unit_columns(reduced: Sequence[Sequence[Fraction]]) -> list[int]:
    """The peers v for which some row of a reduced form is e_v: the reconstructible ones."""
    ones = [[v for v, x in enumerate(row) if x] for row in reduced]
    return sorted(places[0] for places in ones if len(places) == 1)


def from_residues(residues: Sequence[int], primes: Sequence[int]) -> Fraction | None:
    """The fraction a/b with |a|, b <= SIZE and a = b r modulo every prime, or None if there is
    none.

    Chinese remainders, then the extended Euclidean algorithm stopped halfway (rational
    reconstruction).
    """
    value, modulus = 0, 1
    for residue, prime in zip(residues, primes, strict=True):
        value += (residue - value) * pow(modulus, -1, prime) % prime * modulus
        modulus *= prime
    a, b, u, v = modulus, value % modulus, 0, 1
    while b > SIZE:
        quotient = a // b
        a, b, u, v = b, a - quotient * b, v, u - quotient * v
    if v == 0 or abs(v) > SIZE:
        return None
    return Fraction(b, v)
