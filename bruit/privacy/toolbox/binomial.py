"""Exact accounting of binomial noise: the sum of fair coins, against the same sum shifted by an
integer.

    P = Binomial(N, 1/2),  Q = P shifted by B:   delta(epsilon) = sum_s P(s) max(0, 1 - exp(epsilon - L(s))),
    L(s) = log P(s) / Q(s) = sum_{j < B} log((N - s + 1 + j) / (s - j)),  infinite for s < B

Beside an independent Gaussian pair of shift mu, the hockey-stick of the product is sum_s P(s)
delta_mu(epsilon - L(s)). P is log-concave, so L falls with s and a smaller shift never tells more;
by reflection both directions are equal. Log-probabilities are sums of log ratios from the center
out, 45 standard deviations far (what is beyond weighs less than 1e-400), which keeps 12 digits; the
result is rounded up by 1e-9 of itself.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from bruit.arrays import Array
from bruit.errors import PrivacyError

SIGMAS, SLACK, MOST = 45.0, 1e-9, 2**26


def log_law(trials: int) -> tuple[Array, Array]:
    """Outcomes of Binomial(trials, 1/2) and their log-probabilities, as far as they weigh anything
    # (k,), (k,)."""
    center = trials // 2
    reach = math.ceil(SIGMAS * math.sqrt(trials) / 2) + 1
    low, high = max(0, center - reach), min(trials, center + reach)
    outcomes = np.arange(low, high + 1, dtype=np.float64)
    steps = np.log((trials - outcomes[1:] + 1) / outcomes[1:])  # log P(s) / P(s - 1)
    place = center - low
    above, below = np.cumsum(steps[place:]), -np.cumsum(steps[:place][::-1])[::-1]
    logs = np.concatenate((below, np.zeros(1), above))
    return outcomes, logs - math.log(float(np.exp(logs).sum()))


@lru_cache(maxsize=16)
def losses(trials: int, shift: int) -> tuple[Array, Array]:
    """L(s) of every outcome, infinite where the shifted law has nothing, and P(s)  # (k,), (k,)."""
    check_binomial(trials, shift)
    _, logs = log_law(trials)
    found = np.full(len(logs), np.inf)
    if shift == 0:
        found[:] = 0.0
    elif shift < len(logs):
        found[shift:] = logs[shift:] - logs[:-shift]
    return found, np.exp(logs)


def binomial_delta(epsilon: float, trials: int, shift: int, mu: float = 0.0) -> float:
    """delta at epsilon >= 0 of a number moved by at most `shift` under `trials` coins, beside a
    Gaussian pair mu.

    >>> round(binomial_delta(0.5, 100, 4), 9), binomial_delta(0.0, 2, 1) > 0.5
    (0.158566402, True)
    """
    if not epsilon >= 0 or not 0 <= mu < math.inf:
        raise PrivacyError(f"epsilon and mu are numbers >= 0, found {epsilon} and {mu}")
    loss, chances = losses(trials, shift)
    if mu == 0:
        excess = -np.expm1(np.minimum(epsilon - loss, 0.0))
    else:
        excess = _gaussian_delta(epsilon - loss, mu)
    return min(1.0, float(chances @ excess) * (1 + SLACK))


def _gaussian_delta(epsilon: Array, mu: float) -> Array:
    """Phi(mu/2 - e/mu) - exp(e) Phi(-mu/2 - e/mu), for any e of the line, -inf included."""
    from scipy.special import log_ndtr, ndtr

    safe = np.maximum(epsilon, -1e6 * (1 + mu))
    deltas = ndtr(mu / 2 - safe / mu) - np.exp(
        np.minimum(safe + log_ndtr(-mu / 2 - safe / mu), 0.0)
    )
    return np.clip(np.where(np.isneginf(epsilon), 1.0, deltas), 0.0, 1.0)


def check_binomial(trials: int, shift: int) -> None:
    """Refuse numbers of coins and shifts that mean nothing, or are beyond the numerics."""
    if not 1 <= trials <= MOST:
        raise PrivacyError(f"binomial noise is the sum of 1 to 2**26 coins, found {trials}")
    if shift < 0:
        raise PrivacyError(f"a shift is a number of levels >= 0, found {shift}")
