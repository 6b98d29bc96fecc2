"""The printed formulas of the ring histogram and of shared noise. NOT A GUARANTEE, and useless:
kept to compare.

    gamma = L / (exp(12 epsilon sqrt(log(1 / delta) / n)) + L - 1)            (Thm 5.7; Thm 4.4 of the second source)

applies the amplification upside down: the more peers, the noisier each report. n = 10^4, epsilon =
0.2, delta = 1e-6, L = 4: gamma = 0.9772, more noise than plain local DP at epsilon (0.9476), where
0.8761 is enough. Its debiasing subtracts gamma / L from counts: (15, 9) of 20 answers become
(24.67, 14.67). Shares of noise of sigma / sqrt(n) per peer (Rem. 5.6) leave one share too little
between two visits: n = 5, K = 3 loses 3.5, not 3. (gossip:RING-2, RING-3, perso:NETDP-2, NETDP-3.)
"""

from __future__ import annotations

import math

import numpy as np

from bruit.arrays import Array, Ints
from bruit.errors import PrivacyError
from bruit.privacy.profile import check_delta


def published_gamma(epsilon: float, delta: float, peers: int, values: int) -> float:
    """NOT A CALIBRATION worth using: private, but noisier than local DP at the same epsilon.

    >>> round(published_gamma(0.2, 1e-6, 10_000, 10), 9), round(published_gamma(0.2, 1e-6, 10_000, 4), 10)
    (0.990755655, 0.9772052226)
    """
    check_delta(delta)
    if not (epsilon > 0 and peers >= 1 and values >= 1):
        raise PrivacyError(
            f"found epsilon = {epsilon}, {peers} peers and {values} values; all must be positive"
        )
    return values / (math.exp(12 * epsilon * math.sqrt(-math.log(delta) / peers)) + values - 1)


def published_debiased(token: Array | Ints, gamma: float) -> Array:
    """BIASED. (token_i - gamma / L) / (1 - gamma), right for one contribution and wrong for counts.

    >>> published_debiased(np.array([15, 9]), 0.4).round(6).tolist()
    [24.666667, 14.666667]
    """
    counts = np.asarray(token, dtype=np.float64)
    return np.asarray((counts - gamma / len(counts)) / (1 - gamma))


def published_shared_noise(n: int, cycles: int) -> Array:
    """NOT ENOUGH. Variance sigma^2 / n at every hop but the first, as printed in Rem. 5.6  # (n
    cycles,)."""
    variances = np.full(n * cycles, 1.0 / n)
    variances[0] = 1.0
    return variances
