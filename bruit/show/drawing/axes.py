"""Axes of a figure: from numbers to places, and ticks at round numbers."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from bruit.arrays import Array


@dataclass(frozen=True, kw_only=True)
class Axis:
    """Numbers from low to high, laid out from `start` to `stop` (in units of the drawing)."""

    low: float
    high: float
    start: float
    stop: float
    log: bool = False
    whole: bool = False  # ticks at whole numbers only

    def at(self, values: Array) -> Array:
        """Where numbers lie; on a logarithmic axis, numbers below it lie at its foot."""
        low, high = self.low, self.high
        numbers = np.asarray(values, np.float64)
        if self.log:
            low, high, numbers = (
                math.log10(low),
                math.log10(high),
                np.log10(np.maximum(numbers, low)),
            )
        return self.start + (numbers - low) / (high - low) * (self.stop - self.start)

    def ticks(self) -> list[float]:
        """Round numbers along the axis."""
        if not self.log:
            return self._even()
        exponents = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1)
        leading = (1.0, 2.0, 5.0) if len(exponents) <= 3 else (1.0,)
        found = [lead * 10.0**e for e in exponents for lead in leading]
        kept = [
            tick
            for tick in found
            if self.low <= tick * (1 + 1e-9) and tick <= self.high * (1 + 1e-9)
        ]
        return kept[:: max(1, math.ceil(len(kept) / 7))] if len(kept) > 1 else self._even()

    def _even(self) -> list[float]:
        found = _round_steps(self.low, self.high)
        return [tick for tick in found if tick == round(tick)] if self.whole else found


def axis(
    values: Array,
    start: float,
    stop: float,
    log: bool = False,
    whole: bool = False,
    air: bool = True,
) -> Axis:
    """An axis that holds all finite numbers (all positive ones when logarithmic), with a little air
    if wanted."""
    finite = np.asarray(values, np.float64)
    finite = finite[np.isfinite(finite) & ((finite > 0) | (not log))]
    low, high = (float(finite.min()), float(finite.max())) if finite.size else (1.0, 2.0)
    if log:
        factor = max((high / low) ** 0.06, 1.1) if air or high == low else 1.0
        return Axis(
            low=low / factor, high=high * factor, start=start, stop=stop, log=True, whole=whole
        )
    more = 0.06 * (high - low) if air else 0.0
    more = max(abs(high) * 0.1, 0.5) if high == low else more
    return Axis(low=low - more, high=high + more, start=start, stop=stop, log=False, whole=whole)


def _round_steps(low: float, high: float) -> list[float]:
    rough = (high - low) / 5
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(lead * power for lead in (1, 2, 5, 10) if lead * power >= rough * (1 - 1e-9))
    first = math.ceil(low / step - 1e-9)
    return [round(k * step, 12) for k in range(first, math.floor(high / step + 1e-9) + 1)]
