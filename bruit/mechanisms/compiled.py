"""The compiled bulk form of the exact discrete Laplace sampler of
bruit.mechanisms.discrete_laplace: the same numbers.

A row that floats cannot decide, or whose number is so rare that it would not fit, is left to exact
whole numbers.
"""

import math
from typing import Any

import numpy as np
from numba import njit

from bruit.arrays import Ints, Words
from bruit.randomness.compiled import DONE, SHORT, UNSURE, U

EXP_LOW, EXP_HIGH = U(6786177901268885274 - 4), U(6786177901268885274 + 4)  # around 2**64 / e
MOST_TURNS = 1000  # times top < 2**53: still below 2**63; one number in e**1000 needs more


@njit(cache=True, nogil=True, inline="always")
def _below_exp(word: Any, gamma: Any) -> Any:
    """1 if word / 2**64 is surely below exp(-gamma), 0 if surely above, 2 if floats cannot tell."""
    bound = math.exp(-gamma) * 2.0**63
    x = float(np.int64(word >> U(1)))  # signed integers convert faster
    if x < bound * (1.0 - 1e-12) - 4096.0:
        return 1
    if x > bound * (1.0 + 1e-12) + 4096.0:
        return 0
    return 2


@njit(cache=True, nogil=True, boundscheck=False, error_model="numpy")
def laplace_row(words: Words, out: Ints, top: int, shift: int) -> int:
    """Fill one row with discrete Laplace numbers of scale top / 2**shift; DONE, SHORT of words, or
    UNSURE."""
    modulus, width = U(top), float(top)
    last = U(2**64 - 1) - (U(2**64 - 1) % modulus + U(1)) % modulus
    p, n, limit = 0, 0, words.size - 3
    while n < out.size:
        if p > limit:
            return SHORT
        if words[p] > last:
            p += 1
            continue
        u = np.int64(words[p] % modulus)
        verdict = _below_exp(words[p + 1], u / width)
        p += 2
        if verdict == 2:
            return UNSURE
        if verdict == 0:
            continue
        turns = 0
        while p <= limit and words[p] < EXP_LOW:
            turns += 1
            p += 1
        if p > limit:
            return SHORT
        if words[p] <= EXP_HIGH or turns > MOST_TURNS:
            return UNSURE
        x = (u + top * turns) >> shift
        negative = (words[p + 1] & U(1)) != U(0)
        p += 2
        if negative and x == 0:
            continue
        out[n] = -x if negative else x
        n += 1
    return DONE


@njit(cache=True, nogil=True, boundscheck=False)
def laplace_rows(words: Words, out: Ints, tops: Ints, shifts: Ints, states: Ints) -> None:
    """laplace_row for each row of words (k, w) and out (k, d), each with its own scale."""
    for i in range(out.shape[0]):
        states[i] = laplace_row(words[i], out[i], tops[i], shifts[i])
