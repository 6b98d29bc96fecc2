"""Allowances: how much a peer may pass through a relay, and how often it may come."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass
class Allowance:
    """A bucket that fills by `rate` units a second and holds `most`; it is full at first."""

    rate: float
    most: float
    clock: Callable[[], float] = time.monotonic
    _level: float = field(init=False)
    _when: float = field(init=False)

    def __post_init__(self) -> None:
        self._level, self._when = self.most, self.clock()

    def _fill(self) -> None:
        now = self.clock()
        self._level = min(self.most, self._level + self.rate * (now - self._when))
        self._when = now

    def take(self, units: float) -> float:
        """Take that much, on credit if need be: the seconds to wait before any more."""
        self._fill()
        self._level -= units
        return max(0.0, -self._level / self.rate)

    def try_to_take(self, units: float) -> bool:
        """Take that much if it is there."""
        self._fill()
        if self._level < units:
            return False
        self._level -= units
        return True
