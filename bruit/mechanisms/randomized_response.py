"""Randomized response over L values: the truth with probability 1 - gamma, else a uniform value
(gossip:DP-3).

    release(e_x) = e_y,   y = x with probability 1 - gamma, uniform on 0..L-1 otherwise;   gamma = L / (e**eps0 + L - 1)

A value x is the row e_x with one 1 and L - 1 zeros, and so is the release: counts of releases are
whole numbers, whose floating-point sums are exact and say nothing of the order in which they were
added. eps0-DP, exactly; nothing is clipped, a row that is no such row is refused. A spent budget
releases a uniform value.

The coin is a 64-bit word below t = ceil(2**64 gamma (1 + L 2**-49)). A uniform value is known to 52
bits, so that it is rarer than 1/L by a factor of up to 1 - 3 L 2**-52, or more frequent; with the
longer coin the ratio of any two probabilities is still at most e**eps0: u_x / u_y + (1 - t') / (t'
u_y) <= 1 + L (1 - gamma) / gamma for t' = t / 2**64.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from bruit.arrays import Array, Ints
from bruit.errors import ConfigError
from bruit.mechanisms.mechanism import LEVELS, Mechanism, check_rows
from bruit.mechanisms.releases_ahead import ReleasesAhead
from bruit.privacy.events import BoundedEvent, Event, Exact
from bruit.privacy.formulas.randomized_response import epsilon_of_gamma
from bruit.privacy.formulas.randomized_response import gamma as gamma_of
from bruit.randomness import Dice


@dataclass(frozen=True)
class RandomizedResponse(Mechanism):
    """A uniform one of `values` values with probability gamma, the truth otherwise; gamma = 0:
    always the truth."""

    values: int = 2
    gamma: float = 0.0
    level: str = "user"
    kind: ClassVar[str] = "randomized_response"
    keys: ClassVar[tuple[str, ...]] = ()
    sizes: ClassVar[tuple[str, ...]] = ("gamma", "epsilon")
    one_of_several: ClassVar[bool] = True
    norm: ClassVar[int] = 1

    def __post_init__(self) -> None:
        if self.values < 2:
            raise ConfigError(
                f"randomized response chooses among 2 values or more, found {self.values}"
            )
        if not 0 <= self.gamma < 1:
            raise ConfigError(
                f"gamma is the chance of a uniform answer, from 0 (no privacy) to below 1 (no "
                f"use), found {self.gamma}"
            )
        if self.level not in LEVELS:
            raise ConfigError(f"level must be 'user' or 'record', found {self.level!r}")

    @classmethod
    def of(cls, values: int, epsilon: float) -> "RandomizedResponse":
        """The one whose every release is epsilon-DP.

        >>> round(RandomizedResponse.of(10, 0.5).gamma, 9)          # walk:RW-2
        0.93907989
        """
        return cls(values, gamma_of(values, epsilon))

    @classmethod
    def from_keys(cls, given: Mapping[str, Any], dim: int) -> "RandomizedResponse":
        return cls(dim, **given)

    def sized_for(self, epsilon: float, delta: float, ahead: ReleasesAhead) -> "RandomizedResponse":
        """Answers compose by adding up."""
        return RandomizedResponse.of(self.values, epsilon / ahead.most())

    @property
    def clip(self) -> float:  # type: ignore[override]
        """The L1 norm of every row, by its form."""
        return 1.0

    @property
    def epsilon(self) -> float:
        """What one release costs."""
        return epsilon_of_gamma(self.values, self.gamma)

    @property
    def sigma(self) -> float:
        """No noise is added: what is uncertain is which value is told."""
        return 0.0

    @property
    def spacing(self) -> float:
        return 0.0

    def event(self) -> Event:
        return BoundedEvent(self.epsilon) if self.gamma > 0 else Exact()

    def noise(
        self, dice: Dice, lanes: Ints, steps: Ints | int, use: int, d: int, run: Ints | int = 0
    ) -> Array:
        """A uniform value for each lane."""
        return np.eye(d)[self._uniform(dice.uniform("noise", lanes, steps, use, 2, run)[:, 1], d)]

    def release(
        self,
        values: Array,
        dice: Dice,
        lanes: Ints,
        steps: Ints | int,
        use: int,
        run: Ints | int = 0,
    ) -> Array:
        rows = self.bare(values, lanes)
        words = dice.words("noise", lanes, steps, use, 2, run)
        chance = self.noise(dice, lanes, steps, use, self.values, run)
        return np.where(
            words[:, :1] <= np.uint64(self._threshold() - 1), chance, rows
        )  # (k, values)

    def _threshold(self) -> int:
        """t: so many of 2**64 words make the answer uniform; at least one, so that no word is
        refused."""
        longer = 1 + Fraction(self.values, 2**49)
        return max(1, min(2**64, math.ceil(Fraction(self.gamma) * longer * 2**64)))

    def bare(self, values: Array, lanes: Ints) -> Array:
        rows = check_rows(values, lanes)
        if rows.shape[1] != self.values:
            raise ConfigError(
                f"rows have {rows.shape[1]} numbers, but randomized response has {self.values} "
                f"values"
            )
        odd = ~(((rows == 0) | (rows == 1)).all(axis=1) & (rows.sum(axis=1) == 1))
        if odd.any():
            who = lanes[int(np.argmax(odd))]
            raise ConfigError(
                f"the row of peer {who} does not name one value: give a single 1 among zeros"
            )
        return rows

    @staticmethod
    def _uniform(draws: Array, values: int) -> Ints:
        return np.minimum((draws * values).astype(np.int64), values - 1)

    def describe(self) -> dict[str, Any]:
        return {"kind": self.kind, "values": self.values, "gamma": self.gamma, "level": self.level}
