"""From real numbers to the bits that are sent: what finite precision adds to epsilon and delta
(fp:FP-0).

A protocol on a grid draws numbers N_k = c_k + discrete Gaussian, a real one N'_k = c'_k + Gaussian
noise of the same deviation s_k. If c_k and c'_k never differ by more than b_k, given the same
rounded past, then with

    R = sum over all numbers drawn of (b_k + g/2)**2 / s_k**2,      g the grid

every Renyi divergence of order a between the two (the real one rounded), both ways, is at most a R
/ 2. A view that is (epsilon, delta)-DP in real numbers is therefore, on the grid, for every beta >
0

    (epsilon + 2 gamma, exp(gamma) delta + (1 + exp(epsilon + gamma)) beta)-DP,   gamma = R/2 + sqrt(2 R ln(1/beta))

The proof is in docs/theory/finite-precision.md. beta depends on delta alone, so that tables and
single answers agree. Beyond 64 deviations of any noise nothing is proven. Each number gets there
with a chance of 1e-889, which costs delta 1 + exp(epsilon) times as much: far below the 2**-30 that
is set aside here, up to epsilon = 1000. Beyond that, nothing is said.
"""

import math
from collections.abc import Callable
from functools import partial

import numpy as np

from bruit.arrays import Array
from bruit.privacy.toolbox.gaussian import epsilon_of, epsilons

ASIDE = 2.0**-30  # the part of delta that pays for beta
USUAL = 60.0  # epsilons up to which one beta serves all
FARTHEST = 1000.0  # epsilons up to which numbers too large for the arithmetic may be forgotten


def allowance(rounding: float, delta: float, epsilon: float = USUAL) -> tuple[float, float]:
    """gamma, and the delta that is left for the statement in real numbers, for statements up to
    `epsilon`.

    (1 + exp(epsilon + gamma)) beta <= delta ASIDE as long as gamma <= 2.
    """
    log_beta = math.log(delta) + math.log(ASIDE) - epsilon - 4.0
    gamma = rounding / 2 + math.sqrt(-2 * rounding * log_beta)
    return gamma, delta * (1 - ASIDE) * math.exp(-gamma)


def rounded_epsilon(epsilon_at: Callable[[float], float], rounding: float, delta: float) -> float:
    """The epsilon at delta of what is sent, given that of real numbers at every delta.

    >>> grown = rounded_epsilon(lambda delta: epsilon_of(1.0, delta), 1e-12, 1e-6) - epsilon_of(1.0, 1e-6)
    >>> round(grown * 1e6, 1)
    31.0
    """
    reach = USUAL
    while True:
        gamma, left = allowance(rounding, delta, reach)
        if gamma > 2:
            return math.inf
        found = epsilon_at(left)
        if found > FARTHEST:
            return math.inf
        if found <= reach:
            return found + 2 * gamma
        reach = found + 1.0


def rounded_epsilons(mu: Array, rounding: Array, delta: float) -> Array:
    """The same for many Gaussian pairs at once; mu = 0: nothing of them was in the view at all. nan
    stays nan."""
    if delta == 0:  # no Gaussian pair has a pure epsilon
        return np.where(np.isnan(mu), np.nan, np.where(mu > 0, np.inf, 0.0))
    found = np.full(mu.shape, np.nan)
    for amount in np.unique(rounding):
        here = (rounding == amount) & ~np.isnan(mu)
        if amount == 0:
            found[here] = epsilons(mu[here], delta)
            continue
        gamma, left = allowance(float(amount), delta)
        ideal = epsilons(mu[here], left) if gamma <= 2 else np.where(mu[here] > 0, np.inf, 0.0)
        found[here] = np.where(mu[here] > 0, ideal + 2 * gamma, 0.0)
        for place in zip(*np.nonzero(here & (found > USUAL) & np.isfinite(found)), strict=True):
            found[place] = rounded_epsilon(
                partial(epsilon_of, float(mu[place])), float(amount), delta
            )
    return found


def rounded_delta(delta_at: Callable[[float], float], rounding: float, epsilon: float) -> float:
    """The delta at epsilon of what is sent: the best of some beta, and of Pinsker's inequality,
    each of them a proof.

    The divergence of order 1 is at most R/2, so the two laws differ by at most sqrt(R)/2 in total
    variation, and delta(epsilon) + (1 + exp(epsilon)) sqrt(R) / 2 holds as well.
    """
    epsilon = min(epsilon, FARTHEST)
    best = min(
        1.0, delta_at(epsilon) + (1 + math.exp(min(700.0, epsilon))) * math.sqrt(rounding) / 2
    )
    for exponent in range(8, 80, 4):
        log_beta = -exponent * math.log(10.0) - max(0.0, epsilon - USUAL)
        gamma = rounding / 2 + math.sqrt(-2 * rounding * log_beta)
        if 2 * gamma > epsilon:
            continue
        inner = delta_at(epsilon - 2 * gamma)
        best = min(
            best,
            math.exp(gamma) * inner + math.exp(log_beta) + math.exp(epsilon - gamma + log_beta),
        )
    return best
