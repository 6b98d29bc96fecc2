"""Least noise for a target: a monotone search that returns the safe end of its last bracket."""

import math
from collections.abc import Callable

from bruit.errors import ConfigError, PrivacyError


def least(parameter_to_epsilon: Callable[[float], float], target: float, start: float = 1.0) -> float:
    """The least parameter whose epsilon (or delta, or any other cost) is at most the target.

        least = min { p > 0 : cost(p) <= target }

    The cost must not grow with the parameter (more noise never costs more). The parameter is found to the last
    float, and the answer is always one for which the inequality was checked, never the end that violates it.
    """
    if math.isnan(target) or target < 0:
        raise ConfigError(f"a privacy target must be a number >= 0, found {target}")
    if not (start > 0 and math.isfinite(start)):
        raise ConfigError(f"a search for noise must start at a positive number, found {start}")

    def enough(parameter: float) -> bool:
        return parameter_to_epsilon(parameter) <= target

    low, high = _bracket(enough, start, target)
    while True:
        middle = math.sqrt(low) * math.sqrt(high) if high > 2 * low else low + (high - low) / 2
        if not low < middle < high:
            return high
        if enough(middle):
            high = middle
        else:
            low = middle


def _bracket(enough: Callable[[float], bool], start: float, target: float) -> tuple[float, float]:
    """Two positive parameters around the answer: not enough noise at the first, enough at the second."""
    low = high = start
    factor = 2.0
    while not enough(high):
        low, high, factor = high, high * factor, factor * factor
        if not math.isfinite(high):
            raise PrivacyError(f"no amount of noise reaches the target {target}; ask for a larger epsilon or delta")
    factor = 2.0
    while low == high or enough(low):
        high, low, factor = low, low / factor, factor * factor
        if low == 0.0 or not math.isfinite(factor):
            raise ConfigError(f"the target {target} is met without noise; give a smaller one, or sigma = 0 on purpose")
    return low, high
