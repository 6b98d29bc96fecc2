"""exp(lambda / i) - 1 as a positive sum of exponentials of i, certified from above (walk:RW-8).

    exp(lambda / i) - 1 = integral over tau > 0 of exp(-i tau) sqrt(lambda / tau) I_1(2 sqrt(lambda tau))

I_1 the modified Bessel function. With it the expectation of exp(lambda / H) - 1 over a random time
H needs nothing of H but its generating function at a few points s = exp(-tau), which a resolvent
gives for all pairs of peers at once.

The integral becomes a trapezoid rule in log tau, which converges exponentially. For i above `head`
the rule is scaled so that it is never below the truth (checked on a dense grid of i). Up to `head`
the caller knows the law of H itself and adds the exact difference, so large lambda lose no digits
there.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bruit.arrays import Array
from bruit.errors import PrivacyError

LARGEST = 80.0
"""Beyond this lambda the rule would lose its digits; local DP is as good there."""

STEP, LOWEST, REACH, ROUNDING = 0.45, 1e-11, 5.3, 1e-12


@dataclass(frozen=True, eq=False)
class ExponentialSum:
    """For i > head:  value(i) <= sum_k weights[l, k] exp(-i rates[k]), almost equal; `excess`
    repairs i <= head.

    For a time H with generating function F and law f:  E[value(H)] <= weights @ F(exp(-rates)) +
    excess @ f + slack, where slack covers an error of 1e-12 in each F.
    """

    rates: Array  # (k,), the first is 0
    weights: Array  # (l, k)
    excess: Array  # (l, head)
    slack: Array  # (l,)

    @property
    def head(self) -> int:
        """Up to here the law of the time itself is needed."""
        return int(self.excess.shape[1])


def values(lambdas: Array, times: Array) -> Array:
    """exp(lambda / i) - 1 for every lambda and time; lambda = 0 stands for the slope there, 1 / i
    # (l, i)."""
    inverse = 1.0 / times
    return np.where(lambdas[:, None] > 0, np.expm1(lambdas[:, None] * inverse), inverse)


def exponential_sum(lambdas: Array) -> ExponentialSum:
    """One rule for all lambdas, which share the points s = exp(-tau)."""
    from scipy.special import i1

    largest = float(lambdas.max())
    if lambdas.min() < 0 or largest > LARGEST:
        raise PrivacyError(
            f"lambda = order (order - 1) / (2 z^2) must lie in [0, {LARGEST:g}], found"
            f" {lambdas.min():g} to {largest:g}; lower the orders or raise the noise multiplier"
        )
    head = int(np.clip(np.ceil(largest), 8, 64))
    top = (REACH + np.sqrt(largest / head)) ** 2 / head
    rates = np.exp(np.arange(np.log(LOWEST), np.log(top) + STEP, STEP))
    root = np.sqrt(lambdas[:, None])
    density = np.where(root > 0, root / np.sqrt(rates) * i1(2 * root * np.sqrt(rates)), 1.0)
    weights = density * rates * STEP
    below = weights[:, :1] / np.expm1(
        STEP
    )  # all the points left of the first, as if they were at tau = 0
    rates, weights = np.append(0.0, rates), np.hstack([below, weights])
    late = np.concatenate([np.arange(head + 1.0, 2000.0), np.geomspace(2000.0, 1e16, 4000)])
    found = weights @ np.exp(-np.outer(rates, late))
    weights = weights * (np.max(values(lambdas, late) / found, axis=1)[:, None] * (1 + 1e-10))
    early = np.arange(1.0, head + 1.0)
    excess = values(lambdas, early) - weights @ np.exp(-np.outer(rates, early))
    return ExponentialSum(rates, weights, excess, ROUNDING * weights.sum(axis=1))
