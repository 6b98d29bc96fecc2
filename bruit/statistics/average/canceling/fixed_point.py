"""Fixed point: numbers as multiples of 2**-bits in 64-bit words, whose sums wrap around and cancel
to the bit.

    encode(x) = round_to_zero(x 2**bits) mod 2**64,    decode(w) = signed(w) 2**-bits

Addition of words is exact and associative, so noise that two peers add with opposite signs
disappears from the sum without a trace, in any order. What may overflow is only the decoded sum:
`check_room` refuses before anything is sent. Rounding toward zero shortens every row, so the norm
bound of a vector still holds (perso:GOPA-8).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from bruit.arrays import Array, Words
from bruit.errors import ConfigError

SIGMAS = 10.0
"""How far noise is expected to reach, in standard deviations: beyond with probability below
1e-22."""

COARSEST = 10
"""Noise is at least 2**10 grid points wide, so that its rounding does not matter (perso:GOPA-8)."""


@dataclass(frozen=True)
class FixedPoint:
    """Multiples of 2**-bits between -2**(63 - bits) and 2**(63 - bits)."""

    bits: int

    def __post_init__(self) -> None:
        if not 1 <= self.bits <= 52:
            raise ConfigError(f"a fixed point has 1 to 52 bits after the point, found {self.bits}")

    @property
    def spacing(self) -> float:
        return math.ldexp(1.0, -self.bits)

    @property
    def most(self) -> float:
        """The first number that does not fit any more."""
        return math.ldexp(1.0, 63 - self.bits)

    def encode(self, values: Array) -> Words:
        """Values rounded toward zero; nan and what does not fit is refused."""
        values = np.asarray(values, np.float64)
        if not np.isfinite(values).all():
            raise ConfigError("a value is nan or infinite; look for missing numbers in the records")
        return self._words(np.trunc(values / self.spacing))

    def noise(self, draws: Array, sigma: float) -> Words:
        """Standard normal draws as noise of that size, rounded to the nearest grid point."""
        return self._words(np.rint(draws * (sigma / self.spacing)))

    def _words(self, multiples: Array) -> Words:
        if np.abs(multiples).max(initial=0.0) >= 2.0**62:
            raise ConfigError(
                f"a number of {np.abs(multiples).max() * self.spacing:.3g} overflows the fixed"
                f" point with {self.bits} bits; use fewer bits"
            )
        return multiples.astype(np.int64).view(np.uint64)

    def decode(self, words: Words) -> Array:
        """The numbers that words stand for; exact up to 53 significant bits."""
        return (
            np.ascontiguousarray(words, np.uint64).view(np.int64).astype(np.float64) * self.spacing
        )

    def check_room(
        self, peers: int, clip: float, own_sigma: float, pair_sigma: float, degree: int
    ) -> None:
        """Refuse terms under which a sum could overflow, or whose noise is too small for the
        grid."""
        for name, sigma in (("own", own_sigma), ("pair", pair_sigma)):
            if 0 < sigma < math.ldexp(1.0, COARSEST - self.bits):
                raise ConfigError(
                    f"{name} noise of {sigma:g} is too fine for {self.bits} bits after the point;"
                    f" use at least {COARSEST + math.ceil(-math.log2(sigma))} bits"
                )
        reach = reach_of(peers, clip, own_sigma, pair_sigma, degree)
        if reach >= self.most:
            fitting = 63 - math.frexp(reach)[1]
            raise ConfigError(
                f"sums of {peers} peers may reach {reach:.3g}, and the fixed point with {self.bits}"
                f" bits ends at {self.most:.3g}: it would overflow; use at most {fitting} bits"
            )


def reach_of(peers: int, clip: float, own_sigma: float, pair_sigma: float, degree: int) -> float:
    """How large a sum of masked values can get, partial sums with noise that has not canceled yet
    included."""
    noise = math.sqrt(peers) * own_sigma + math.sqrt(peers * degree) * pair_sigma
    return peers * clip + SIGMAS * noise


def finest_bits(reach: float) -> int:
    """Bits after the point with which sums up to that reach stay exact in double precision."""
    return 52 - math.frexp(max(reach, 1e-300))[1]
