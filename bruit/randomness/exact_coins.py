"""Coins whose chance of heads is exactly exp(-gamma), decided in integers where floats cannot tell.

A coin asks whether a uniform real number U, read from 64-bit words as many bits at a time as the
answer needs, lies below a real number y. A float of y decides nearly always; when U and y are too
close to tell, more words are read and y is enclosed by integers, ever more tightly. Every decision
is that of real numbers.
"""

import math
from collections.abc import Iterator


def coin(words: Iterator[int], numerator: int, denominator: int, band: float = 1e-12) -> bool:
    """True with probability exp(-numerator / denominator). A wide band sends every coin to the
    exact path."""
    word = next(words)
    bound = math.exp(-numerator / denominator) * 2.0**64
    if word < bound * (1 - band) - 4096:
        return True
    if word > bound * (1 + band) + 4096:
        return False
    return below_exponential(word, 64, 1, numerator, denominator, words)


def below_exponential(
    head: int,
    bits: int,
    factor: int,
    numerator: int,
    denominator: int,
    words: Iterator[int],
    scale: int = 1,
) -> bool:
    """Whether U scale < factor exp(-numerator / denominator), for a uniform U whose first `bits`
    bits are `head`."""
    while True:
        low, high = exp_interval(numerator, denominator, bits + 64)
        if (head + 1) * scale << 64 <= factor * low:
            return True
        if head * scale << 64 >= factor * high:
            return False
        head, bits = head << 64 | next(words), bits + 64


def exp_interval(numerator: int, denominator: int, bits: int) -> tuple[int, int]:
    """Integers around exp(-numerator / denominator) * 2**bits, at most 2 apart.

    Taylor series at a 2**k-th part of the exponent, at most 1/2, then k squarings, all rounded
    outward.
    """
    halvings = (numerator // denominator + 1).bit_length() + 1
    guard = bits + 3 * halvings + 64
    x = (numerator << guard) // (denominator << halvings)  # the true value lies in [x, x + 1)
    low, high = _taylor(x + 1, guard) - 1, _taylor(x, guard) + 2
    for _ in range(halvings):
        low, high = low * low >> guard, (high * high >> guard) + 1
    return low >> (guard - bits), (high >> (guard - bits)) + 1


def _taylor(x: int, guard: int) -> int:
    """exp(-x / 2**guard) * 2**guard, rounded down; the error of the 16 bits more it works with is
    below 1/100."""
    term = total = 1 << (guard + 16)
    k = 0
    while term:
        k += 1
        term = (term * x >> guard) // k
        total += -term if k % 2 else term
    return total >> 16
