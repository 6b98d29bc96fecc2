"""Least noise for a target: a monotone search that returns the safe end of its last bracket, and a
little more.

Whoever prints the epsilon of that noise may add up the same numbers in another order, or stop an
iteration elsewhere: at the last float of the search such sums overshoot the target by up to 1e-12
of it. Noise is therefore enlarged by ROOM, more than any of these roundings, so that no printed
epsilon is above the one that was asked for.
"""

import math
from collections.abc import Callable

from bruit.errors import ConfigError, PrivacyError
from bruit.privacy.events import Adjacency, record_event

ROOM = 1.0 + 2.0**-36  # some 1.5e-11
NEAR = 1e-4  # how near the least noise is found where a cost takes long to compute


def least(
    parameter_to_epsilon: Callable[[float], float],
    target: float,
    start: float = 1.0,
    near: float = 0.0,
) -> float:
    """The least parameter whose epsilon (or delta, or any other cost) is at most the target.

        ROOM * min { p > 0 : cost(p) <= target }

    The cost must not grow with the parameter (more noise never costs more). The parameter is found
    to the last float, or to a part `near` of itself, before it is enlarged, and the answer is
    always one for which the inequality was checked.
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
        if not low < middle < high or high <= low * (1 + near):
            while not enough(ROOM * high):  # a cost that is not quite monotone
                high *= ROOM
            return ROOM * high
        if enough(middle):
            high = middle
        else:
            low = middle


def least_noise_multiplier(
    epsilon: float,
    delta: float,
    releases: int,
    rate: float = 1.0,
    adjacency: Adjacency = "replace",
    rounding: float = math.inf,
) -> float:
    """The least z = sigma / C for which so many noisy sums of clipped records, each of which joins
    by a secret coin of chance `rate`, are (epsilon, delta)-DP for one record (silo:SILO-2).

    Every release costs what `bruit.privacy.events.record_event` says, `rounding` included. At rate
    1 the Gaussian formula is inverted to the last float, below it the privacy loss distributions to
    a ten thousandth; what is returned was checked, and a little more.

    >>> round(least_noise_multiplier(1.0, 1e-5, 1), 4)
    7.4613
    """
    from bruit.privacy.toolbox.pld import compose_epsilon

    if isinstance(releases, bool) or not isinstance(releases, int) or releases < 1:
        raise ConfigError(f"noise is made for 1 or more releases, found {releases!r}")

    def cost(chance: float) -> Callable[[float], float]:
        return lambda z: compose_epsilon(
            [(record_event(z, chance, adjacency, rounding), releases)], delta
        )

    record_event(1.0, rate, adjacency, rounding)
    whole = least(cost(1.0), epsilon)
    return whole if rate == 1 else least(cost(rate), epsilon, start=whole, near=NEAR)


def _bracket(enough: Callable[[float], bool], start: float, target: float) -> tuple[float, float]:
    """Two positive parameters around the answer: not enough noise at the first, enough at the
    second."""
    low = high = start
    factor = 2.0
    while not enough(high):
        low, high, factor = high, high * factor, factor * factor
        if not math.isfinite(high):
            raise PrivacyError(
                f"no amount of noise reaches the target {target}; ask for a larger epsilon or delta"
            )
    factor = 2.0
    while low == high or enough(low):
        high, low, factor = low, low / factor, factor * factor
        if low == 0.0 or not math.isfinite(factor):
            raise ConfigError(
                f"the target {target} is met without noise; give a smaller one, or sigma = 0 on "
                f"purpose"
            )
    return low, high
