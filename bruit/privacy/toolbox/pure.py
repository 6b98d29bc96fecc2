"""Composition of (epsilon, delta) statements that know nothing of their mechanisms (gossip:DP-5).

basic:     (K epsilon, K delta)
advanced:  (sqrt(2 K log(1 / slack)) epsilon + K epsilon (exp(epsilon) - 1),  K delta + slack)
"""

import math

from bruit.errors import PrivacyError


def basic(epsilon: float, delta: float, count: int) -> tuple[float, float]:
    """What `count` mechanisms, each (epsilon, delta)-DP, cost together by adding up."""
    _check(epsilon, delta, count)
    return (count * epsilon if count else 0.0), min(1.0, count * delta)


def advanced(epsilon: float, delta: float, count: int, slack: float) -> tuple[float, float]:
    """The printed formula of advanced composition, at total delta = count * delta + slack."""
    _check(epsilon, delta, count)
    if not 0 < slack < 1:
        raise PrivacyError(
            f"the slack of advanced composition must be between 0 and 1, both excluded, found "
            f"{slack}"
        )
    if count == 0:
        return 0.0, slack
    growth = math.expm1(epsilon) if epsilon < 700 else math.inf
    total = math.sqrt(-2 * count * math.log(slack)) * epsilon + count * epsilon * growth
    return (0.0 if epsilon == 0 else total), min(1.0, count * delta + slack)


def compose(epsilon: float, delta: float, count: int, slack: float) -> tuple[float, float]:
    """The better of basic and advanced composition, with the total delta of the one that was taken
    (gossip:DP-5)."""
    return min(basic(epsilon, delta, count), advanced(epsilon, delta, count, slack))


def _check(epsilon: float, delta: float, count: int) -> None:
    if math.isnan(epsilon) or epsilon < 0:
        raise PrivacyError(f"epsilon must be a number >= 0, found {epsilon}")
    if not 0 <= delta <= 1:
        raise PrivacyError(f"delta must be between 0 and 1, found {delta}")
    if count < 0:
        raise PrivacyError(f"mechanisms are composed a whole number of times >= 0, found {count}")
