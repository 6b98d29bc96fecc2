"""Lower bounds on epsilon from paired trials, each with its confidence.

(epsilon, delta)-DP means P_right(S) <= exp(epsilon) P_left(S) + delta for every set S of views, and
the same with the sides exchanged. A test that is too often right therefore refutes an epsilon:

    Clopper-Pearson   epsilon >= log((p - delta) / q)      p, q: exact binomial bounds of hits and false alarms
    Gaussian fit      epsilon >= epsilon(mu, delta)        mu: lower bound of (mean gap) / (standard deviation)

The first holds whatever the law of the scores. The second needs scores that are normal with equal
variances, as those of linear-Gaussian views are; it reaches epsilons that no count can. Both err
with probability at most 1 - confidence.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from bruit.arrays import Array
from bruit.errors import ConfigError
from bruit.privacy.profile import check_delta
from bruit.privacy.toolbox.gaussian import epsilon_of, mu_of

GRID = 200  # thresholds tried on the training half


@dataclass(frozen=True, kw_only=True)
class Bound:
    """epsilon(delta) is at least `epsilon`, unless an event of probability 1 - confidence
    happened."""

    method: str
    epsilon: float
    delta: float
    confidence: float
    trials: int
    hits: tuple[int, int] = (0, 0)  # of a counted test, out of so many
    alarms: tuple[int, int] = (0, 0)
    reach: float = math.nan  # of a fit: the measured (mean gap) / (standard deviation)


def check_confidence(confidence: float) -> None:
    if not 0.5 <= confidence < 1:
        raise ConfigError(
            "confidence is a probability between 0.5 and 1, both sides judged by it, found"
            f" {confidence}; 0.999999 lets one audit in a million raise a false alarm"
        )


def needed_trials(epsilon: float, delta: float, confidence: float) -> int:
    """The least number of paired trials with which Clopper-Pearson could ever show more than
    epsilon.

        p >= (exp(epsilon) + delta) / (1 + exp(epsilon)) with p = alpha^(1/N), alpha = (1 - confidence) / 2

    that is, N >= log(alpha) / log(p) trials in the half that is judged, when the test is right
    every time.

    >>> needed_trials(1.0, 1e-6, 0.95)
    24
    """
    check_delta(delta)
    check_confidence(confidence)
    if math.isnan(epsilon) or epsilon < 0:
        raise ConfigError(f"trials are counted for an epsilon >= 0, found {epsilon}")
    if epsilon > 700:
        return 2**62
    miss = (1.0 - delta) / (1.0 + math.exp(epsilon))
    return 2 * (math.floor(math.log((1.0 - confidence) / 2) / math.log1p(-miss)) + 1)


def needed_for_fit(epsilon: float, delta: float, confidence: float) -> int:
    """The least number of paired trials with which the Gaussian fit expects to see that a view of
    twice the epsilon has more than epsilon."""
    check_delta(delta)
    check_confidence(confidence)
    if not 0 <= epsilon < math.inf:
        return 2**62
    low, high = mu_of(epsilon, delta), mu_of(max(2 * epsilon, 1e-3), delta)
    trials = 4
    while mu_bound(high, trials, confidence) <= low:
        trials *= 2
        if trials > 2**40:
            return trials
    below = trials // 2
    while trials - below > 1:
        middle = (below + trials) // 2
        below, trials = (
            (below, middle) if mu_bound(high, middle, confidence) > low else (middle, trials)
        )
    return trials


def clopper_pearson(
    training: tuple[Array, Array],
    scores: tuple[Array, Array],
    delta: float,
    confidence: float,
) -> Bound:
    """The bound of one threshold test, chosen on the training scores (left, right), counted on the
    judged ones."""
    return count_against(training, scores, {delta: 0.0}, confidence)


def count_against(
    training: tuple[Array, Array],
    scores: tuple[Array, Array],
    claimed: Mapping[float, float],
    confidence: float,
) -> Bound:
    """One threshold test against a claim that says epsilon = claimed[delta] at every delta: the
    training scores choose delta and threshold where the proof would exceed the claim most, the
    judged ones are counted once."""
    for delta in claimed:
        check_delta(delta)
    check_confidence(confidence)
    left, right = _finite(*scores)
    trials = min(len(left), len(right))
    least = needed_trials(0.0, min(claimed), confidence)
    if 2 * trials < least:
        raise ConfigError(
            f"{2 * trials} paired trials cannot show anything at confidence {confidence:g};"
            f" at least {least} are needed"
        )
    test = _chosen(*_finite(*training), (len(left), len(right)), claimed, confidence)
    sides = [(side > test.threshold) == test.above for side in (left, right)]
    hits, alarms = (
        (int(side.sum()), len(side)) for side in (sides[::-1] if test.of_right else sides)
    )
    found = count_bound(
        np.array([hits[0]]), hits[1], np.array([alarms[0]]), alarms[1], test.delta, confidence
    )
    return Bound(
        method="Clopper-Pearson",
        epsilon=float(found[0]),
        delta=test.delta,
        confidence=confidence,
        trials=trials,
        hits=hits,
        alarms=alarms,
    )


class _Test(NamedTuple):
    """Scores above the threshold (or below) tell the right data (or the left); judged at this
    delta."""

    threshold: float
    above: bool
    of_right: bool
    delta: float


def _chosen(
    left: Array,
    right: Array,
    sizes: tuple[int, int],
    claimed: Mapping[float, float],
    confidence: float,
) -> _Test:
    """The test that exceeds the claim most if the judged half looks like the training one."""
    pooled = np.sort(np.concatenate((left, right)))
    grid = np.unique(pooled[np.linspace(0, len(pooled) - 1, GRID).astype(np.int64)])
    shares = [
        1 - np.searchsorted(np.sort(side), grid, side="right") / len(side) for side in (left, right)
    ]
    best, found = -math.inf, _Test(float(grid[0]), True, True, min(claimed))
    for above in (True, False):
        one, two = (
            count * (share if above else 1 - share)
            for count, share in zip(sizes, shares, strict=True)
        )
        for of_right in (True, False):
            hits, alarms = (
                ((two, sizes[1]), (one, sizes[0]))
                if of_right
                else ((one, sizes[0]), (two, sizes[1]))
            )
            p, q = _limits(*hits, *alarms, confidence)
            for delta, epsilon in claimed.items():
                proven = _odds(p, q, delta)
                place = int(np.argmax(proven))
                if proven[place] - epsilon > best:
                    best, found = (
                        float(proven[place]) - epsilon,
                        _Test(float(grid[place]), above, of_right, delta),
                    )
    return found


def count_bound(
    hits: Array, of_hits: int, alarms: Array, of_alarms: int, delta: float, confidence: float
) -> Array:
    """log((p - delta) / q) floored at 0, p and q the one-sided Clopper-Pearson bounds, each at half
    of the error."""
    return _odds(*_limits(hits, of_hits, alarms, of_alarms, confidence), delta)


def _odds(p: Array, q: Array, delta: float) -> Array:
    with np.errstate(divide="ignore"):
        return np.asarray(np.maximum(0.0, np.log(np.maximum(p - delta, 0.0)) - np.log(q)))


def _limits(
    hits: Array, of_hits: int, alarms: Array, of_alarms: int, confidence: float
) -> tuple[Array, Array]:
    """Lower limits of the chance of a hit, upper ones of a false alarm."""
    from scipy.special import betaincinv

    alpha = (1.0 - confidence) / 2
    k, f = np.asarray(hits, np.float64), np.asarray(alarms, np.float64)
    p = np.where(k > 0, betaincinv(np.maximum(k, 1e-9), of_hits - k + 1, alpha), 0.0)
    q = np.where(
        f < of_alarms, betaincinv(f + 1, np.maximum(of_alarms - f, 1e-9), 1.0 - alpha), 1.0
    )
    return np.asarray(p), np.asarray(q)


def gaussian_fit(left: Array, right: Array, delta: float, confidence: float) -> Bound:
    """The bound of two normal samples with equal variances: mu from their gap, then epsilon(mu,
    delta) exactly."""
    check_delta(delta)
    left, right = _finite(left, right)
    trials = min(len(left), len(right))
    if trials < 4:
        raise ConfigError(f"a Gaussian fit needs at least 4 paired trials, found {trials}")
    freedom = len(left) + len(right) - 2
    spread = math.sqrt(
        (((left - left.mean()) ** 2).sum() + ((right - right.mean()) ** 2).sum()) / freedom
    )
    gap = abs(float(right.mean() - left.mean()))
    size = max(abs(float(left.mean())), abs(float(right.mean())))
    if gap <= 1e-9 * size:
        return Bound(
            method="Gaussian fit",
            epsilon=0.0,
            delta=delta,
            confidence=confidence,
            trials=trials,
            reach=0.0,
        )
    reach = gap / spread if spread > 1e-12 * gap else math.inf
    mu = mu_bound(reach, trials, confidence) if reach < math.inf else math.inf
    return Bound(
        method="Gaussian fit",
        epsilon=epsilon_of(max(mu, 0.0), delta),
        delta=delta,
        confidence=confidence,
        trials=trials,
        reach=reach,
    )


def mu_bound(measured: float, trials: int, confidence: float) -> float:
    """A lower bound on mu = gap / sd from the measured ratio of `trials` pairs.

        mu >= measured * sqrt(chi2_a(2N - 2) / (2N - 2)) - z_a sqrt(2 / N),        a = (1 - confidence) / 4

    a quarter: the sign of the gap is free, and both the gap and the variance are estimated.
    """
    from scipy.stats import chi2, norm

    check_confidence(confidence)
    level, freedom = (1.0 - confidence) / 4, 2 * trials - 2
    return float(
        measured * math.sqrt(chi2.ppf(level, freedom) / freedom)
        - norm.isf(level) * math.sqrt(2 / trials)
    )


def _finite(left: Array, right: Array) -> tuple[Array, Array]:
    one, two = np.asarray(left, np.float64), np.asarray(right, np.float64)
    if one.ndim != 1 or two.ndim != 1 or not (np.isfinite(one).all() and np.isfinite(two).all()):
        raise ConfigError(
            f"scores are finite numbers, one per trial, found shapes {one.shape} and {two.shape}"
        )
    return one, two
