"""A lower bound on epsilon from guesses about many records at once, each inside or outside by a
fair coin.

If a learned model is (epsilon, delta)-DP about every record, and coins decide independently which
of m records it was learned from, then whoever guesses r of the coins from it is right at least v
times with probability at most

    P(B >= v) + 2 m delta max_{i >= 1} P(v > B >= v - i) / i,        B ~ Binomial(r, e^epsilon / (1 + e^epsilon))

(Steinke, Nasr, Jagielski 2023, arXiv:2305.08846, theorem 5.2: guesses need not be independent, one
run is enough.) Records of several independent runs count together: each coin touches one of them.
The bound is the largest epsilon for which that probability stays below 1 - confidence.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from bruit.adversary.audits.bounds import Bound, check_confidence
from bruit.arrays import Array, Bools
from bruit.errors import ConfigError
from bruit.privacy.profile import check_delta

SHARES = (1.0, 0.25, 1 / 16)
"""Parts of the records guessed about, the surest ones; the error probability is shared among
them."""

IMPOSSIBLE = 2**62
"""Guesses needed where no number of them is enough."""

MANY = (
    10**6
)  # guesses from which the part of delta is left out of the count: they are too many anyway
MOST = 40.0  # no number of guesses that fits into memory proves more


def chance_of(right: int, guesses: int, records: int, epsilon: float, delta: float) -> float:
    """The largest probability of so many right guesses about an (epsilon, delta)-DP model.

    >>> chance_of(10, 10, 10, 0.0, 0.0) == 2.0**-10
    True
    """
    from scipy.stats import binom

    if not 0 <= right <= guesses <= records:
        raise ConfigError(
            "right guesses, guesses and records are 0 <= right <= guesses <= records, found"
            f" {right}, {guesses} and {records}"
        )
    truth = 1.0 / (1.0 + math.exp(-epsilon))
    tail = float(binom.sf(right - 1, guesses, truth))
    if delta == 0 or right == 0:
        return min(tail, 1.0)
    below = np.cumsum(binom.pmf(np.arange(right - 1, -1, -1), guesses, truth))
    slack = float((below / np.arange(1, right + 1)).max())
    return min(1.0, tail + 2 * records * delta * slack)


def guessing_bound(
    right: int, guesses: int, records: int, delta: float, confidence: float
) -> Bound:
    """The largest epsilon these guesses refute, at this confidence; 0 when they refute nothing."""
    check_delta(delta)
    check_confidence(confidence)
    error = 1.0 - confidence
    low, high = 0.0, MOST
    if chance_of(right, guesses, records, 0.0, delta) > error:
        return Bound(
            method="guesses", epsilon=0.0, delta=delta, confidence=confidence, trials=records
        )
    while high - low > 1e-6:
        middle = (low + high) / 2
        refuted = chance_of(right, guesses, records, middle, delta) <= error
        low, high = (middle, high) if refuted else (low, middle)
    return Bound(method="guesses", epsilon=low, delta=delta, confidence=confidence, trials=records)


def best_guesses(
    odds: Sequence[Array], truth: Sequence[Bools], delta: float, confidence: float
) -> Bound:
    """The best bound of the surest guesses of several runs: log-odds of being inside, and who was.

    A guess is the sign of the odds; of all records, and of the parts `SHARES` with the largest
    absolute odds.
    """
    all_odds, inside = np.concatenate(odds), np.concatenate(truth)
    order = np.argsort(-np.abs(all_odds), kind="stable")
    hits = ((all_odds > 0) == inside)[order]
    each = 1.0 - (1.0 - confidence) / len(SHARES)
    found = []
    for share in SHARES:
        count = math.ceil(share * len(hits))
        found.append(guessing_bound(int(hits[:count].sum()), count, len(hits), delta, each))
    best = max(found, key=lambda bound: bound.epsilon)
    return Bound(
        method=best.method,
        epsilon=best.epsilon,
        delta=delta,
        confidence=confidence,
        trials=len(hits),
    )


def needed_guesses(epsilon: float, delta: float, confidence: float) -> int:
    """The least number of guesses that refute epsilon when every one of them is right.

        (e^epsilon / (1 + e^epsilon))^r + (the part of delta) <= (1 - confidence) / (number of shares)

    `IMPOSSIBLE` where delta alone, some 2 delta (1 + e^epsilon), allows more errors than that.

    >>> needed_guesses(0.0, 0.0, 0.95)
    6
    """
    check_confidence(confidence)
    if math.isnan(epsilon) or epsilon < 0:
        raise ConfigError(f"guesses are counted for an epsilon >= 0, found {epsilon}")
    error = (1.0 - confidence) / len(SHARES)
    if epsilon > MOST:
        return IMPOSSIBLE
    few = max(1, math.ceil(math.log(error) / -math.log1p(math.exp(-epsilon))))
    if not delta or few > MANY:
        return few
    many = few
    while chance_of(many, many, many, epsilon, delta) > error:
        many = math.ceil(1.2 * many) + 1
        if many > 20 * few + 1000:
            # what delta allows, about 2 delta (1 + e^epsilon), does not shrink with more records
            return IMPOSSIBLE
    while many - few > 1:
        middle = (few + many) // 2
        few, many = (
            (middle, many)
            if chance_of(middle, middle, middle, epsilon, delta) > error
            else (few, middle)
        )
    return few if chance_of(few, few, few, epsilon, delta) <= error else many
