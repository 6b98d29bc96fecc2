"""The classical Gaussian calibration, for comparison, and what local noise costs a mean
(gossip:DP-4, DP-8).

    z = sqrt(2 log(1.25 / delta)) / epsilon,      0 < epsilon <= 1          (perso:DP-6)

Never the default: `mu_of` inverts the exact curve, holds for every epsilon, and needs less noise.
Above 1 the formula is false: epsilon = 10, delta = 1e-5 gives z = 0.4845, whose true delta is
2.27e-5.
"""

import math

from bruit.errors import PrivacyError
from bruit.privacy.guarantee import REAL, Guarantee, Hypothesis
from bruit.privacy.profile import GaussianProfile, check_delta


def classical_multiplier(epsilon: float, delta: float) -> float:
    """Noise over sensitivity by the classical formula; refused above epsilon = 1.

    >>> round(classical_multiplier(0.5, 1e-5), 8)
    9.68961053
    """
    check_delta(delta)
    if not 0 < epsilon <= 1:
        raise PrivacyError(
            f"the classical calibration holds for 0 < epsilon <= 1, found {epsilon:g};"
            " use bruit.privacy.toolbox.gaussian.mu_of, which is exact for every epsilon"
        )
    return math.sqrt(2 * math.log(1.25 / delta)) / epsilon


def classical(epsilon: float, delta: float) -> Guarantee:
    """A Gaussian release calibrated so; its profile is the exact one, so it says less than
    (epsilon, delta)."""
    z = classical_multiplier(epsilon, delta)
    return Guarantee(
        theorem="the Gaussian mechanism with classical noise",
        spec="gossip:DP-4",
        status="ideal",
        level="user",
        of="one user",
        against="everybody",
        hypotheses=(Hypothesis(f"epsilon = {epsilon:g} is at most 1", checked=True), REAL),
        profile=GaussianProfile(1 / z),
        loss=1.0,
        noise_multiplier=z,
        seen="one release",
        advice=("exact calibration needs less noise for the same statement",),
    )


def mean_error(
    peers: int,
    order: float,
    divergence: float,
    sensitivity: float = 1.0,
    dimension: int = 1,
    central: bool = False,
) -> float:
    """Mean squared error of the mean of n values under (alpha, divergence)-RDP with Gaussian noise
    (gossip:DP-8).

        local:  d alpha Delta**2 / (2 n divergence),      central:  n times less

    >>> mean_error(100, 2.0, 1.0), mean_error(100, 2.0, 1.0, central=True)
    (0.01, 0.0001)
    """
    if peers < 1 or dimension < 1 or not (order > 1 and divergence > 0 and sensitivity >= 0):
        raise PrivacyError(
            "the error of a mean needs peers and a dimension >= 1, an order above 1, a divergence >"
            f" 0 and a sensitivity >= 0, found {peers}, {dimension}, {order}, {divergence} and"
            f" {sensitivity}"
        )
    local = dimension * order * sensitivity**2 / (2 * peers * divergence)
    return local / peers if central else local
