"""What noise costs personal models, corrected, and how to spread a budget over time
(perso:PERSO-11, PERSO-12).

    E gap(T) <= C^T gap(0) + (p / (n L_min)) sum_t C^(T-1-t) sum_u (d_u c_u s_u(t))^2

Laplace noise of scale s_u(t) on every gradient of dimension p; for Gaussian noise s^2 is sigma^2 /
2. The print has C^t in the sum and no p: it is violated by simulation. Late noise is the expensive
one, because later steps contract what came before, so the best split of a budget gives later steps
more:

    epsilon(t) = total C^((T-1-t)/3) / sum_t' C^((T-1-t')/3)
"""

from math import isfinite

import numpy as np

from bruit.arrays import Array, Ints
from bruit.errors import ConfigError
from bruit.personal.objective import Joint


def noisy_gap_bound(factor: float, gap: float, dim: int, smallest: float, weighted: Array) -> float:
    """The corrected bound; weighted: (1/n) sum_u (d_u c_u s_u(t))^2 for every wake-up t  # (T,)."""
    later = np.power(factor, np.arange(len(weighted) - 1, -1, -1.0))
    return _bound(factor, gap, dim, smallest, weighted, later)


def published_noisy_gap_bound(factor: float, gap: float, smallest: float, weighted: Array) -> float:
    """The bound as printed, not a bound: weights reversed in time, dimension left out."""
    return _bound(
        factor, gap, 1, smallest, weighted, np.power(factor, np.arange(float(len(weighted))))
    )


def _bound(
    factor: float, gap: float, dim: int, smallest: float, weighted: Array, weights: Array
) -> float:
    if not 0 < factor < 1:
        raise ConfigError(
            f"the bound needs a factor between 0 and 1, found {factor}: not strongly convex"
        )
    return float(factor ** len(weighted) * gap + dim / smallest * (weights @ weighted))


def noise_weights(joint: Joint, scales: Array) -> Array:
    """(1/n) sum_u (d_u c_u s_u(t))^2 from the Laplace scales of every wake-up and peer (T, n)
    # (T,)."""
    return np.asarray(((joint.degrees * joint.confidences * scales) ** 2).mean(axis=1))


def allocate(total: float, times: Ints, factor: float, horizon: int) -> Array:
    """The best epsilon for each of a peer's own wake-ups, at these times of 0..horizon-1; they add
    up to the total."""
    return _shares(total, times, factor, horizon, horizon - 1 - times)


def published_allocate(total: float, times: Ints, factor: float, horizon: int) -> Array:
    """The split as printed, reversed in time: worse than an even one."""
    return _shares(total, times, factor, horizon, times)


def _shares(total: float, times: Ints, factor: float, horizon: int, distance: Ints) -> Array:
    if not 0 < factor < 1:
        raise ConfigError(
            f"a budget is spread over time by a factor between 0 and 1, found {factor}"
        )
    if not (total > 0 and isfinite(total)):
        raise ConfigError(
            f"a budget must be positive and finite to be spread, found epsilon = {total}"
        )
    if len(times) == 0 or int(times.min()) < 0 or int(times.max()) >= horizon:
        raise ConfigError(
            f"the wake-ups of a peer lie in 0..{horizon - 1}, and there is at least one"
        )
    weights = factor ** (distance / 3.0)
    return np.asarray(total * weights / weights.sum())


def expected_times(peers: int, updates: int) -> Ints:
    """When a peer wakes, on average: its k-th update at time n k, which needs no common clock
    (perso:PERSO-12)."""
    return np.arange(updates) * peers
