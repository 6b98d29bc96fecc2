"""Renyi divergences of Gaussian noise on a secret random sample of the records (gossip:DP-6,
walk:ADMM-9).

    Poisson, add/remove:   D(alpha) = log(1 + S) / (alpha - 1),
                           S = sum_{k=2..alpha} C(alpha, k) (1 - q)**(alpha - k) q**k (exp(k (k - 1) / (2 z**2)) - 1)
    Poisson, replace:      log(1 + 2 S) / (alpha - 1), and S alone at alpha = 2
    fixed size, replace:   S = C(alpha, 2) q**2 min(4 (e**E(2) - 1), 2 e**E(2))
                               + sum_{j=3..alpha} 2 C(alpha, j) q**j exp((j - 1) E(j)),      E(j) = j / (2 z**2)

all at integer alpha, never above the unsampled alpha / (2 z**2). The first is an equality (Mironov,
Talwar, Zhang, arXiv:1908.10530); the last is by Wang, Balle, Kasiviswanathan, arXiv:1808.00087.
Between integers (alpha - 1) D(alpha) is convex and 0 at alpha = 1, so its chord is a bound.

z = sigma / sensitivity, and the sensitivity of a *sum over a sample* is a norm, not a difference:
`clip` when a contribution comes or goes, 2 * clip when it is replaced. Contributions of norm 40 and
41 differ by 1 only, but whether one of them is in the sample shows: q = 0.01, sigma = 4, alpha = 2:
6.447e-4, a hundred times the value for a clip of 1.

Why replacing costs 2 S: let mu_0, mu_1, mu_2 be the outputs without, with the old and with the new
contribution. Advanced joint convexity bounds the hockey-stick divergence of the two mixtures, in
both directions, by q times that of two Gaussians 2 * clip apart. That is the one of "add" at twice
the sensitivity. exp((alpha - 1) D) - 1 is an integral of both directions, and the second has the
smaller weights.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from bruit.arrays import Array
from bruit.errors import PrivacyError
from bruit.privacy.events import Adjacency

ORDERS = (
    1.25,
    1.5,
    1.75,
    *map(float, range(2, 65)),
    *(float(round(64 * 1.15**k)) for k in range(1, 30)),
)
"""Renyi orders at which a sampled release is known."""


def poisson(
    order: float, rate: float, noise_multiplier: float, adjacency: Adjacency = "add-remove"
) -> float:
    """Renyi divergence when every record joins the sample with probability `rate`, on its own
    (gossip:DP-6).

    >>> round(poisson(8, 0.01, 4.0) * 1e5, 7), round(poisson(2, 0.01, 4.0) * 1e6, 9)
    (2.5899123, 6.449425094)
    """
    if adjacency not in ("add-remove", "replace"):
        raise PrivacyError(
            f"the adjacency of a sampled release is 'add-remove' or 'replace', found {adjacency!r}"
        )
    return _sampled(order, rate, noise_multiplier, f"poisson, {adjacency}")


def fixed_size(order: float, rate: float, noise_multiplier: float) -> float:
    """Renyi divergence when `rate` = m / n and exactly m of n records are drawn, one of the n
    replaced (walk:ADMM-9).

    >>> round(fixed_size(2, 0.01, 4.0) * 1e5, 9), round(fixed_size(8, 0.01, 4.0) * 1e4, 9)
    (2.579745081, 1.227320901)
    """
    return _sampled(order, rate, noise_multiplier, "fixed size")


def unsampled(order: float, noise_multiplier: float) -> float:
    """What the release costs when the sample is no secret: alpha / (2 z**2) (gossip:DP-4)."""
    return math.inf if noise_multiplier == 0 else order / (2 * noise_multiplier**2)


@lru_cache(maxsize=2**14)
def _sampled(order: float, rate: float, noise_multiplier: float, how: str) -> float:
    check(order, rate, noise_multiplier)
    if rate == 0 or noise_multiplier == math.inf:
        return 0.0
    if rate == 1 or noise_multiplier == 0:
        return unsampled(order, noise_multiplier)
    low, high = math.floor(order), math.ceil(order)
    above = _moment(high, rate, noise_multiplier, how)
    below = 0.0 if low == 1 else _moment(low, rate, noise_multiplier, how)
    chord = above if low == high else (high - order) * below + (order - low) * above
    return min(chord / (order - 1), unsampled(order, noise_multiplier))


def _moment(order: int, rate: float, z: float, how: str) -> float:
    """(alpha - 1) D(alpha) = log(1 + S) at an integer order, rounded up: S is a sum of positive
    terms, so nothing cancels even where the loss is tiny."""
    from scipy.special import gammaln, logsumexp

    k = np.arange(2, order + 1, dtype=float)
    chances = gammaln(order + 1) - gammaln(k + 1) - gammaln(order - k + 1) + k * math.log(rate)
    if how == "fixed size":
        first = 1 / z**2  # E(2)
        cost = (k - 1) * k / (2 * z**2) + math.log(2)
        cost[0] = min(math.log(4) + float(_log_expm1(np.array([first]))[0]), math.log(2) + first)
    else:
        chances = chances + (order - k) * math.log1p(-rate)
        cost = _log_expm1(k * (k - 1) / (2 * z**2))
        cost += math.log(2) if how == "poisson, replace" and order > 2 else 0.0
    slack = 1e-14 + 2e-15 * (
        float(gammaln(order + 1)) + order * abs(math.log(rate)) + order**2 / z**2
    )
    total = float(logsumexp(chances + cost)) + slack
    return float(np.logaddexp(0.0, total))


def _log_expm1(x: Array) -> Array:
    """log(exp(x) - 1) without overflow."""
    return np.where(x > 30, x, np.log(np.expm1(np.minimum(x, 31.0))))


def check(order: float, rate: float, noise_multiplier: float) -> None:
    """Refuse what is no order, no rate or no multiplier."""
    if not 1 < order < math.inf:
        raise PrivacyError(f"a Renyi order must be a number above 1, found {order}")
    if not 0 <= rate <= 1:
        raise PrivacyError(
            f"a sampling rate is a probability, found {rate}; it is batch size / records"
        )
    if not noise_multiplier >= 0:
        raise PrivacyError(f"a noise multiplier must be a number >= 0, found {noise_multiplier}")
