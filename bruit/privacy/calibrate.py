"""Least noise for a target: a monotone search that returns the safe end of its last bracket, and a little more.

Whoever prints the epsilon of that noise may add up the same numbers in another order, or stop an iteration elsewhere:
at the last float of the search such sums overshoot the target by up to 1e-12 of it. Noise is therefore enlarged by
ROOM, more than any of these roundings, so that no printed epsilon is above the one that was asked for.
"""

import math
from collections.abc import Callable

from bruit.errors import ConfigError, PrivacyError

ROOM = 1.0 + 2.0**-36  # some 1.5e-11


def least(parameter_to_epsilon: Callable[[float], float], target: float, start: float = 1.0) -> float:
    """The least parameter whose epsilon (or delta, or any other cost) is at most the target.

        ROOM * min { p > 0 : cost(p) <= target }

    The cost must not grow with the parameter (more noise never costs more). The parameter is found to the last
    float before it is enlarged, and the answer is always one for which the inequality was checked.
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
            while not enough(ROOM * high):  # a cost that is not quite monotone
                high *= ROOM
            return ROOM * high
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
