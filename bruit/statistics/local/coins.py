"""Exact coins: randomized answers decided by whole numbers, so that the promised epsilon holds
without rounding.

    flip if word < t,   t = ceil(2^64 / (e^epsilon + 1)) and a little more:   (2^64 - t) / t <= e^epsilon, exactly

A threshold is rounded to the private side; the chances that the estimators use are those of the
rounded thresholds, so that estimates stay unbiased (perso:LDP-11 has the same rounding inside a
circuit).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction

import numpy as np

from bruit.arrays import Ints, Words
from bruit.errors import ConfigError, PrivacyError

WORDS = 2**64
LEAST, MOST = (
    1e-9,
    40.0,
)  # epsilons between which 64-bit coins can keep their promise and still say something
CHUNK = 2**18  # users whose words are drawn at once
_SAFE = Fraction(2**48 + 1, 2**48)  # more than the rounding of exp and of the quotient


def check_epsilon(epsilon: float) -> None:
    """Local protocols work for epsilon in 1e-9..40."""
    if (
        isinstance(epsilon, bool)
        or not isinstance(epsilon, int | float)
        or not LEAST <= epsilon <= MOST
    ):
        raise PrivacyError(
            f"the epsilon of a local report must be between {LEAST:g} and {MOST:g}, found"
            f" {epsilon!r}; below, a report says nothing; above, it hides nothing"
        )


def flip_threshold(epsilon: float) -> int:
    """The coin of a yes/no answer: t words of 2^64 flip it, and (2^64 - t) / t <= e^epsilon.

    >>> abs(flip_threshold(math.log(3)) / 2**64 - 0.25) < 1e-14
    True
    """
    check_epsilon(epsilon)
    return min(WORDS // 2, math.ceil(Fraction(WORDS) / Fraction(1 + math.exp(epsilon)) * _SAFE))


def uniform_threshold(values: int, epsilon: float) -> int:
    """The coin of a K-ary answer: t words of 2^64 make it uniform over all K values (perso:LDP-2).

    1 + (1 - beta) / (beta u) <= e^epsilon,   beta = t / 2^64,   u = floor(2^64 / K) / 2^64
    """
    check_epsilon(epsilon)
    rarest = Fraction(WORDS // values, WORDS)
    beta = 1 / (1 + Fraction(math.expm1(epsilon)) * rarest)
    least = math.ceil(WORDS * beta * _SAFE)
    if least >= WORDS:
        raise PrivacyError(
            f"epsilon = {epsilon:g} over {values} values is below what 64-bit coins can show; "
            "give a larger epsilon or fewer values"
        )
    return least


def chunks(users: Ints) -> Iterator[slice]:
    """Slices of users whose draws fit in cache."""
    for start in range(0, len(users), CHUNK):
        yield slice(start, start + CHUNK)


def odd_parity(words: Words) -> Words:
    """1 where the number of ones is odd: the exponent of a Hadamard sign (-1)^popcount."""
    folded = words ^ (words >> np.uint64(32))
    for shift in (16, 8, 4, 2, 1):
        folded ^= folded >> np.uint64(shift)
    return folded & np.uint64(1)


def lanes_of(users: Ints | None, count: int) -> Ints:
    """Whose draws these are: the users named, or 0, 1, 2, ..."""
    if users is None:
        return np.arange(count, dtype=np.int64)
    lanes = np.asarray(users, dtype=np.int64)
    if lanes.shape != (count,):
        raise ConfigError(
            f"each value belongs to one user, found {count} values for users of shape {lanes.shape}"
        )
    if len(np.unique(lanes)) != count:
        raise PrivacyError(
            "a user is named twice in one batch of reports; the second report would repeat the"
            " noise of the first: report once, or in another step"
        )
    return lanes
