"""Terms: what everybody agrees on before a round of GOPA, checked once."""

from __future__ import annotations

import hashlib
import math
from dataclasses import asdict, dataclass
from functools import cached_property

from bruit.errors import ConfigError
from bruit.statistics.average.canceling.fixed_point import FixedPoint


@dataclass(frozen=True, kw_only=True)
class Terms:
    """One round: `width` numbers per peer of L2 norm at most `clip`, own and pair noise, and how
    sums are written.

    `number` counts the rounds of the same peers: noise is never derived twice for one. `degree` is
    the most neighbors anybody has, `partners` the fewest exchanges with which a peer still
    publishes, `online` the fewest peers that must have published before any exchange with a dropped
    peer is opened.
    """

    number: int
    peers: int
    width: int
    clip: float
    own_sigma: float
    pair_sigma: float
    degree: int
    bits: int = 24
    partners: int = 1
    online: int = 2

    def __post_init__(self) -> None:
        if not 0 <= self.number < 2**32:
            raise ConfigError(f"rounds are numbered 0..2**32 - 1, found {self.number}")
        if self.peers < 2 or self.width < 1 or not 0 <= self.degree < self.peers:
            raise ConfigError(
                "a round needs two peers, one number and a degree below the peers, found"
                f" {self.peers}, {self.width} and {self.degree}"
            )
        if not (self.clip > 0 and math.isfinite(self.clip)):
            raise ConfigError(f"clip bounds the norm of a value and is positive, found {self.clip}")
        if not (self.own_sigma > 0 and self.pair_sigma > 0):
            raise ConfigError(
                f"both noises are positive, found own {self.own_sigma} and pair {self.pair_sigma}"
            )
        if self.partners < 0 or self.online < 1:
            raise ConfigError(
                f"partners >= 0 and online >= 1, found {self.partners} and {self.online}"
            )
        self.field.check_room(self.peers, self.clip, self.own_sigma, self.pair_sigma, self.degree)

    @property
    def field(self) -> FixedPoint:
        return FixedPoint(self.bits)

    @cached_property
    def digest(self) -> bytes:
        """A name of the terms: whoever agrees on other ones agrees on no seed."""
        return hashlib.blake2b(
            repr(sorted(asdict(self).items())).encode(), person=b"bruit gopa"
        ).digest()[:16]
