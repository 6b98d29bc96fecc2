"""What an aggregator can say: an estimate, its error, an interval, and how many reports were
refused.

    share of a value:   |estimate - h| <= z sqrt(A + B h) + s  solved for h     (A + B h: the exact variance)
                        s: what one report moves the estimate by, since counts are whole; half of it is not enough
    sum of n Laplaces:  P(|S| > s) = sum over m of C(2n-m-1, n-1) 2^(m+1-2n) Q(m, s)     Q: upper regularized gamma
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from bruit.arrays import Array
from bruit.errors import ConfigError

EXACT = 1000  # Laplaces up to which their sum is not taken as normal


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """One number: its standard error and an interval that holds with the given confidence."""

    value: float
    error: float
    low: float
    high: float
    confidence: float
    reports: int
    refused: int = 0


@dataclass(frozen=True, eq=False, kw_only=True)
class Shares:
    """Shares of k values: unbiased, summing to about one, possibly negative; one interval for each
    value alone."""

    shares: Array  # (k,)
    errors: Array  # (k,) standard errors
    low: Array  # (k,)
    high: Array  # (k,)
    confidence: float
    reports: int
    refused: int = 0


def quantile(confidence: float) -> float:
    """The z of a two-sided normal interval."""
    from scipy.special import ndtri

    if not 0 < confidence < 1:
        raise ConfigError(f"a confidence is a probability between 0 and 1, found {confidence}")
    return float(ndtri(0.5 + confidence / 2))


def share_interval(
    shares: Array, fixed: float, slope: float, z: float, step: float
) -> tuple[Array, Array]:
    """All h with |share - h| <= z sqrt(fixed + slope h) + step, cut to [0, 1]; fixed and slope make
    the exact variance, step is what one report moves a share by. A share outside of [0, 1] is first
    moved to the nearest end, which is no farther from any h: no interval is empty."""
    ends = []
    for sign in (-1.0, 1.0):
        moved = np.clip(shares, 0.0, 1.0) + sign * step
        half = z * np.sqrt(np.maximum(fixed + slope * moved + (z * slope / 2) ** 2, 0.0))
        reached = moved + z * z * slope / 2 + sign * half
        # Where moved left [0, 1] so far that its own variance would be negative, every h on this
        # side is near enough.
        ends.append(np.clip(np.where(sign * (reached - moved) >= 0, reached, moved), 0.0, 1.0))
    return ends[0], ends[1]


def score_interval(
    value: float, weight: float, noise: float, ends: tuple[float, float], z: float, step: float
) -> tuple[float, float]:
    """All t in low..high with |value - t| <= z sqrt(weight (high - t) (t - low) + noise) + step,
    value in low..high.

    The first term bounds the variance of anything between low and high whose mean is t (Bhatia and
    Davis).
    """
    low, high = ends
    k, found = z * z * weight, []
    for sign in (-1.0, 1.0):
        moved = value + sign * step
        middle = (moved + k * (low + high) / 2) / (1 + k)
        rest = middle**2 - (moved**2 + k * low * high - z * z * noise) / (1 + k)
        reached = middle + sign * math.sqrt(max(rest, 0.0))
        found.append(min(max(reached if sign * (reached - moved) >= 0 else moved, low), high))
    return found[0], found[1]


def laplace_quantile(count: int, confidence: float) -> float:
    """The s that the absolute sum of `count` Laplaces of scale 1 stays below with this confidence.

    >>> round(laplace_quantile(1, 0.95), 6)
    2.995732
    """
    if count > EXACT:
        return quantile(confidence) * math.sqrt(2.0 * count)
    from scipy.optimize import brentq
    from scipy.special import gammaincc, gammaln

    quantile(confidence)
    m = np.arange(1, count + 1)
    binomial = gammaln(2 * count - m) - gammaln(count) - gammaln(count - m + 1)
    weights = np.exp(binomial + (m + 1 - 2 * count) * math.log(2))
    missing = 1 - confidence
    top = 2.0 * math.sqrt(2.0 * count) / math.sqrt(missing)  # Chebyshev
    return float(
        brentq(
            lambda s: float(weights @ gammaincc(m, s)) - missing, 0.0, top, xtol=1e-12, rtol=1e-13
        )
    )
