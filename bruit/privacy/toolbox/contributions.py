"""How often one peer contributes to a walk: a bound that may fail, an exact quantile, or a hard cap
(walk:F-4)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from bruit.arrays import Array
from bruit.errors import ConfigError, PrivacyError

SLACK = 1 + 1e-10  # above the rounding errors of the incomplete beta function: tails are rounded up


def chernoff(steps: int, n: int, failure: float) -> float:
    """N = T/n + sqrt(3 T/n log(1/failure)), exceeded with probability at most `failure` on the
    complete graph, where the first holder is uniform too.

    The form exp(-a^2 mean / 3) needs a <= 1, that is T/n >= 3 log(1/failure): anything else is
    refused.

    >>> round(chernoff(10_000, 100, 1e-7), 6)
    169.537247
    """
    _check_walk(steps, n)
    _check_failure(failure)
    return chernoff_mean(steps / n, failure)


def chernoff_mean(mean: float, failure: float) -> float:
    """mean + sqrt(3 mean log(1/failure)) for a sum of independent 0/1 variables; refused where it
    does not hold."""
    _check_failure(failure)
    needed = -3 * math.log(failure)
    if mean < needed:
        raise PrivacyError(
            f"the Chernoff bound needs a mean of at least 3 log(1/{failure:g}) = {needed:.4g},"
            f" found {mean:.4g}; use the exact quantile, or cap the contributions"
        )
    return mean + math.sqrt(mean * needed)


def binomial_tail(trials: int, chance: float, count: int) -> float:
    """Pr[Bin(trials, chance) > count], rounded up."""
    from scipy.special import bdtrc

    if trials < 0 or not 0 <= chance <= 1:
        raise ConfigError(
            f"a binomial law needs trials >= 0 and a chance in [0, 1], found {trials} and {chance}"
        )
    if count < 0:
        return 1.0
    return 0.0 if count >= trials else min(1.0, float(bdtrc(count, trials, chance)) * SLACK)


def binomial_quantile(trials: int, chance: float, failure: float) -> int:
    """The least N with Pr[Bin(trials, chance) > N] <= failure.

    >>> binomial_quantile(10_000, 1 / 100, 1e-7), binomial_quantile(20_000, 1 / 2000, 1e-6)
    (156, 28)
    """
    _check_failure(failure)
    low, high = -1, trials
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (
            (low, middle) if binomial_tail(trials, chance, middle) <= failure else (middle, high)
        )
    return high


def most_visits(steps: int, n: int, failure: float, first: int | str = 0) -> int:
    """How often a peer of the complete graph holds the token, but for a chance of `failure`
    (walk:F-4).

    The visits are Bin(T, 1/n) where the first holder is drawn too (first = "uniform"). Where it is
    known by its number they are 1 + Bin(T - 1, 1/n) for that peer, who is worst off.

    >>> most_visits(20_000, 2000, 1e-6, first="uniform"), most_visits(20_000, 2000, 1e-6)
    (28, 29)
    """
    _check_walk(steps, n)
    drawn = is_drawn(first)
    return int(not drawn) + binomial_quantile(steps - int(not drawn), 1 / n, failure)


def is_drawn(first: int | str) -> bool:
    """Whether the first holder of a walk is drawn uniformly, and not known by its number: the
    `first` of `Walk`."""
    if isinstance(first, str) and first != "uniform":
        raise ConfigError(
            f"the first holder of a walk is a peer's number or 'uniform', found {first!r}"
        )
    return first == "uniform"


def visits_tail(weights: Any, start: int | Array, u: int, steps: int, count: int) -> float:
    """Pr[u is visited more than `count` times at steps 0..T-1] for any transition matrix, by
    forward recursion.

    p[x, k]: the walk is at x after k visits to u; k above `count` is absorbed. `start` is a peer or
    a law over peers.
    """
    from scipy.sparse import csr_array

    step = csr_array(weights, dtype=np.float64).T.tocsr()
    n = step.shape[0]
    if step.shape != (n, n) or not np.allclose(
        np.asarray(step.sum(axis=0)), 1.0, rtol=0, atol=1e-12
    ):
        raise PrivacyError("a walk needs a square transition matrix whose rows sum to one")
    _check_walk(steps, n)
    if not 0 <= u < n or count < 0:
        raise ConfigError(
            f"peers are 0..{n - 1} and a count is >= 0, found peer {u} and count {count}"
        )
    law = np.zeros((n, count + 1))
    law[:, 0] = np.eye(n)[int(start)] if np.ndim(start) == 0 else np.asarray(start, np.float64)
    if abs(law.sum() - 1) > 1e-9 or np.any(law < 0):
        raise ConfigError(
            f"the law of the start sums to {law.sum():g}; give a peer, or probabilities that sum "
            f"to one"
        )
    exceeded = 0.0
    for t in range(steps):
        exceeded += float(law[u, -1])
        law[u, 1:], law[u, 0] = law[u, :-1].copy(), 0.0
        if t + 1 < steps:
            law = np.asarray(step @ law)
    return exceeded


def budget(steps: int, n: int, factor: float = 1.2) -> int:
    """The cap N = ceil(factor T / n): after N contributions a peer adds noise only, so nothing can
    fail.

    >>> budget(20_000, 2000)
    12
    """
    _check_walk(steps, n)
    if not factor > 0:
        raise ConfigError(
            f"the cap is a positive multiple of the mean number of visits, found the factor "
            f"{factor}"
        )
    return max(1, math.ceil(factor * steps / n - 1e-9))


def averaging_time(variance: float, accuracy: float, failure: float, gap: float) -> int:
    """Steps after mixing within which a time average is `accuracy` close to its mean, but for
    `failure` (walk:F-4).

    t = 4 variance / (accuracy^2 failure gap), after tau_mix(failure / 2) steps (Levin and Peres
    2017, Theorem 12.21).
    """
    _check_failure(failure)
    if not (variance >= 0 and accuracy > 0 and 0 < gap <= 1):
        raise ConfigError(
            "a time average needs variance >= 0, accuracy > 0 and a spectral gap in (0, 1], found"
            f" {variance}, {accuracy} and {gap}"
        )
    return math.ceil(4 * variance / (accuracy**2 * failure * gap))


def _check_walk(steps: int, n: int) -> None:
    if steps < 1 or n < 2:
        raise ConfigError(
            f"a walk has at least one step and two peers, found {steps} steps and {n} peers"
        )


def _check_failure(failure: float) -> None:
    if not 0 < failure < 1:
        raise PrivacyError(
            f"a failure probability must lie strictly between 0 and 1, found {failure}"
        )
