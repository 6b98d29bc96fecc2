"""Power: had the claim been half as large, would this many trials have shown it?

Suppose the claim is tight, so that some observer attains its trade-off curve. Then hits and false alarms of the best
test are binomial, and for Gaussian views the gap and the variance of the scores are normal and chi-square: the bounds
of simulated audits are compared with half the claim. The fraction that exceeds it is the power.
"""

from __future__ import annotations

import math

import numpy as np

from bruit.arrays import Array
from bruit.audits.bounds import count_bound
from bruit.privacy.accountants.gaussian import mu_of
from bruit.privacy.guarantee import Guarantee
from bruit.privacy.profile import GaussianProfile
from bruit.randomness import Replay

AUDITS = 1000  # simulated
DELTAS = (1e-9, 1e-6, 1e-4, 1e-3, 1e-2, 1e-1)  # where a claim that is not Gaussian is asked what it says
ALARMS = np.logspace(-4, -0.31, 60)  # false-alarm rates of tests


def power(claim: Guarantee, epsilon: float, delta: float, trials: int, confidence: float, gaussian: bool) -> float:
    """The fraction of audits with this many paired trials that would refute half of the epsilon claimed at delta, if
    the claim is tight."""
    if epsilon == 0 or epsilon == math.inf:
        return 0.0
    draws = Replay(23).uniform("power", np.arange(AUDITS), 0, 0, 2)
    counted = _counting(claim, delta, trials - trials // 2, confidence, epsilon / 2, draws)
    return max(counted, _fitting(claim, delta, trials, confidence, epsilon, draws) if gaussian else 0.0)


def _counting(claim: Guarantee, delta: float, trials: int, confidence: float, target: float, draws: Array) -> float:
    from scipy.stats import binom

    hits = best_hits(claim, ALARMS)
    expected = count_bound(hits * trials, trials, ALARMS * trials, trials, delta, confidence)
    best = int(np.argmax(expected))
    found = count_bound(binom.ppf(draws[:, 0], trials, min(1.0, hits[best])), trials,
                        binom.ppf(draws[:, 1], trials, ALARMS[best]), trials, delta, confidence)  # fmt: skip
    return float((found > target).mean())


def _fitting(claim: Guarantee, delta: float, trials: int, confidence: float, epsilon: float, draws: Array) -> float:
    from scipy.special import ndtri
    from scipy.stats import chi2, norm

    profile = claim.profile
    mu = profile.mu if isinstance(profile, GaussianProfile) else mu_of(epsilon, delta)
    freedom, level = 2 * trials - 2, (1.0 - confidence) / 4
    gap = mu + ndtri(draws[:, 0]) * math.sqrt(2 / trials)
    measured = gap / np.sqrt(chi2.ppf(draws[:, 1], freedom) / freedom)
    shrunk = measured * math.sqrt(chi2.ppf(level, freedom) / freedom) - norm.isf(level) * math.sqrt(2 / trials)
    return float((shrunk > mu_of(epsilon / 2, delta)).mean())


def best_hits(claim: Guarantee, alarms: Array) -> Array:
    """The most hits that tests with these false-alarm rates can have under the claim.

        min over epsilon of exp(epsilon) q + delta(epsilon), and of 1 - exp(-epsilon) (1 - q - delta(epsilon))
    """
    from scipy.special import ndtr, ndtri

    if isinstance(claim.profile, GaussianProfile):
        return np.asarray(ndtr(ndtri(alarms) + claim.profile.mu))
    best = np.ones_like(alarms)
    for failure in DELTAS:
        epsilon = claim.profile.epsilon(failure)
        if epsilon < 700:
            best = np.minimum(best, math.exp(epsilon) * alarms + failure)
            best = np.minimum(best, 1 - math.exp(-epsilon) * np.maximum(1 - alarms - failure, 0.0))
    return best
