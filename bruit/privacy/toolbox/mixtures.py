"""Mixtures whose index is drawn by a data-independent law: a hidden length, path or graph
(gossip:DP-10, walk:F-3).

    exact bound:      D <= log(1 + sum_i rho_i (exp((alpha - 1) D_i) - 1)) / (alpha - 1)
    weak convexity:   D <= (1 + c) sum_i rho_i D_i,   c = (alpha - 1) max_i D_i, only where c <= 1

The first has no condition, is never above the second, and is an equality when the index is revealed
and every D_i is attained. Weights that sum to less than one leave the rest to "nothing was seen".
The printed theorems use c = 1.
"""

import math
from collections.abc import Sequence

import numpy as np

from bruit.arrays import Array
from bruit.errors import PrivacyError
from bruit.privacy.profile import MixtureProfile

TAIL = 1e-15
"""Mass of a geometric law that is rounded up to its last kept index."""


def mixture(
    order: float, divergences: Sequence[float] | Array, weights: Sequence[float] | Array
) -> float:
    """The exact mixture bound, by log-sum-exp (walk:F-3).

    >>> round(mixture(2.0, [0.1, 0.2, 0.05], [0.5, 0.3, 0.2]), 9)
    0.121562999
    """
    from scipy.special import logsumexp

    values, law = _values_and_weights(order, divergences, weights)
    kept = (law > 0) & (values > 0)
    if not kept.any():
        return 0.0
    grown = (order - 1) * values[kept]
    if grown.max() == math.inf:
        return math.inf
    shares = np.maximum(law[kept] * -np.expm1(-grown), 1e-290)  # no subnormal numbers: rounded up
    excess = float(logsumexp(grown, b=shares))  # of the moment over 1: tiny losses keep digits
    return float(np.logaddexp(0.0, excess)) / (order - 1)


def weak_convexity(
    order: float, divergences: Sequence[float] | Array, weights: Sequence[float] | Array
) -> float:
    """(1 + c) times the mean divergence, or the largest one where c > 1 and the lemma does not
    apply (gossip:DP-10).

    >>> round(weak_convexity(2.0, [0.1, 0.2, 0.05], [0.5, 0.3, 0.2]), 12)
    0.144
    """
    values, law = _values_and_weights(order, divergences, weights)
    worst = float(values[law > 0].max(initial=0.0))
    c = (order - 1) * worst
    return worst if c > 1 else min(worst, (1 + c) * float(law @ values))


def geometric(order: float, chance: float, noise_multiplier: float) -> float:
    """The exact bound when a contribution is seen after i noisy steps with probability p (1 -
    p)**(i - 1), and then costs alpha / (2 z**2 i): amplification by iteration on the complete
    graph, p = 1/n or 2/n (walk:F-3).

    >>> round(geometric(2.0, 1 / 100, 2.0) * 100, 9), round(geometric(8.0, 2 / 2000, 12.0) * 1e4, 9)
    (1.209033473, 1.965841352)
    """
    return geometric_profile(chance, noise_multiplier).divergence(order)


def geometric_profile(chance: float, noise_multiplier: float) -> MixtureProfile:
    """The same as delta for every epsilon; the tail of the law is counted as if it came at the last
    kept index."""
    if not 0 < chance <= 1:
        raise PrivacyError(f"the chance to be seen at a step must be in (0, 1], found {chance}")
    if not noise_multiplier > 0:
        raise PrivacyError(
            f"a hidden length helps only with noise: the noise multiplier must be > 0, found"
            f" {noise_multiplier}"
        )
    kept = 1 if chance == 1 else max(1, math.ceil(math.log(TAIL) / math.log1p(-chance)))
    if kept > 10**8:
        raise PrivacyError(f"a chance of {chance} a step needs {kept} lengths; give at least 1e-6")
    i = np.arange(1, kept + 1, dtype=float)
    weights = chance * np.exp((i - 1) * math.log1p(-chance)) if chance < 1 else np.ones(1)
    weights[-1] += math.exp(kept * math.log1p(-chance)) if chance < 1 else 0.0
    return MixtureProfile(1 / (noise_multiplier**2 * i), weights)


def mean_inverse_length(peers: int) -> float:
    """E[1 / H] = log n / (n - 1) for a length H, geometric of chance 1 / n on 1, 2, ... (walk:F-3).

    >>> round(mean_inverse_length(100), 9), round(mean_inverse_length(2000), 9)
    (0.046516871, 0.003802352)
    """
    if peers < 2:
        raise PrivacyError(f"a walk needs at least 2 peers, found {peers}")
    return math.log(peers) / (peers - 1)


def published_geometric(
    order: float, peers: int, noise_multiplier: float, printed: bool = True
) -> float:
    """Weak convexity for the walk on the complete graph: factor 2 as printed, or 1 + c (walk:F-3).

    (1 + c) alpha / (2 z**2) log n / (n - 1), c = alpha (alpha - 1) / (2 z**2), which must be at
    most 1.
    """
    if not (order > 1 and noise_multiplier > 0):
        raise PrivacyError(
            f"weak convexity needs an order above 1 and noise, found {order} and {noise_multiplier}"
        )
    c = order * (order - 1) / (2 * noise_multiplier**2)
    if c > 1:
        raise PrivacyError(
            f"weak convexity needs z**2 >= alpha (alpha - 1) / 2, found z = {noise_multiplier:g} "
            f"at alpha = {order:g};"
            " use bruit.privacy.toolbox.mixtures.geometric, which has no condition"
        )
    return (
        (2.0 if printed else 1 + c) * order / (2 * noise_multiplier**2) * mean_inverse_length(peers)
    )


def _values_and_weights(
    order: float, divergences: Sequence[float] | Array, weights: Sequence[float] | Array
) -> tuple[Array, Array]:
    values, law = np.asarray(divergences, dtype=float), np.asarray(weights, dtype=float)
    if not 1 < order < math.inf:
        raise PrivacyError(f"a Renyi order must be a number above 1, found {order}")
    if values.shape != law.shape or values.ndim != 1:
        raise PrivacyError(
            f"a mixture needs one weight for each divergence, found {law.shape} and {values.shape}"
        )
    if np.any(np.isnan(values)) or np.any(values < 0):
        raise PrivacyError("the divergences of a mixture must be numbers >= 0")
    if not (np.all(law >= 0) and law.sum() <= 1 + 1e-9):
        raise PrivacyError(
            f"the weights of a mixture must be >= 0 and sum to at most 1, found a sum of "
            f"{law.sum()}"
        )
    return values, law
