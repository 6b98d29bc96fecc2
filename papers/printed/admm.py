"""The printed losses of private ADMM. NOT A GUARANTEE: kept to reproduce and to compare
(walk:ADMM-5, ADMM-6, ADMM-7).

    Thm 8.7  centralized     8 alpha K L^2 gamma^2 / (sigma^2 n^2)           refuted: one round of linear losses, exact
                             value n times larger (a block's noise is not divided by n)
    Thm 8.9  central model   16 alpha K L^2 gamma^2 / (sigma^2 n^2)          refuted: with m users a round the sum of
                             m noises has variance m sigma^2: the gain is 1/m, not 1/m^2; all users, one round of
                             linear losses: exact n/2 times larger
    Thm 8.12 by a token      8 alpha K_i L^2 gamma^2 log(n) / (sigma^2 n)    a factor 2 lost in its proof, which has
                             three gaps; no violation known once it is 16

`bruit.privacy.ahead.admm` has what holds.
"""

from __future__ import annotations

import math

from bruit.errors import PrivacyError
from bruit.privacy.ahead.admm import AdmmNoise
from bruit.privacy.guarantee import Guarantee, Hypothesis
from bruit.privacy.profile import RenyiProfile
from bruit.privacy.toolbox.sampled_renyi import ORDERS
from papers.printed.subsampling import second_condition

CENTRALIZED = (
    "refuted by one round of linear losses: the exact loss is n times larger (walk:ADMM-5)"
)
CENTRAL = (
    "refuted: m noises add up to variance m sigma^2, so the gain is 1/m and not 1/m^2 (walk:ADMM-6)"
)
TOKEN = "its proof loses a factor 2, freezes the duals and adds up contributions: 16 in place of 8 (walk:ADMM-7)"


def published_centralized(noise: AdmmNoise, n: int, rounds: int) -> Guarantee:
    """NOT A GUARANTEE. Thm 8.7, as printed.

    >>> round(published_centralized(AdmmNoise(1.0, 0.5, 1.0), 100, 50).profile.divergence(2.0), 9)
    0.02
    """
    _check_users(n)
    return _printed(
        "Theorem 8.7, centralized ADMM", "walk:ADMM-5", noise, rounds / n**2, ORDERS, CENTRALIZED
    )


def published_central(noise: AdmmNoise, n: int, sampled: int, rounds: int) -> Guarantee:
    """NOT A GUARANTEE. Thm 8.9 for outsiders who see the models, m < n / 5 users a round, as
    printed.

    >>> round(published_central(AdmmNoise(1.0, 0.5, 20.0), 1000, 100, 200).profile.divergence(4.0) * 1e6, 9)
    8.0
    """
    _check_users(n)
    if not 1 <= sampled < n / 5:
        raise PrivacyError(
            f"Thm 8.9 needs fewer than n / 5 = {n / 5:g} users a round, found {sampled}"
        )
    z = noise.noise_multiplier
    if z < 4:
        raise PrivacyError(f"Thm 8.9 needs sigma / (4 L gamma) >= 4, found {z:g}; add noise")
    orders = tuple(order for order in ORDERS if second_condition(order, sampled / n, z))
    return _printed(
        "Theorem 8.9, federated ADMM, central model",
        "walk:ADMM-6",
        noise,
        2 * rounds / n**2,
        orders,
        CENTRAL,
    )


def published_token(noise: AdmmNoise, n: int, participations: float) -> Guarantee:
    """NOT A GUARANTEE. Thm 8.12, as printed, for orders with sigma > 2 L gamma sqrt(alpha (alpha -
    1)).

    >>> round(published_token(AdmmNoise(1.0, 0.5, 4.0), 1000, 10).profile.divergence(2.0) * 100, 8)
    1.72693882
    """
    return _token("Theorem 8.12, ADMM by a token", noise, n, participations, 1.0, 2.0)


def corrected_token(noise: AdmmNoise, n: int, participations: float) -> Guarantee:
    """NOT A GUARANTEE. The same with its factor 16 and condition sigma >= 2 sqrt(2) L gamma
    sqrt(alpha (alpha - 1)).

    >>> round(corrected_token(AdmmNoise(1.0, 0.5, 4.0), 1000, 10).profile.divergence(2.0) * 100, 8)
    3.45387764
    """
    return _token(
        "Theorem 8.12, constant corrected", noise, n, participations, 2.0, 2.0 * math.sqrt(2.0)
    )


def _token(
    theorem: str, noise: AdmmNoise, n: int, participations: float, factor: float, needed: float
) -> Guarantee:
    _check_users(n)
    limit = (noise.sigma / (needed * noise.lipschitz * noise.gamma)) ** 2  # of alpha (alpha - 1)
    orders = tuple(order for order in ORDERS if order * (order - 1) < limit)
    if not orders:
        raise PrivacyError(
            f"Thm 8.12 needs sigma > {needed:g} L gamma sqrt(alpha (alpha - 1)), found sigma ="
            f" {noise.sigma:g}, which allows no order; add noise"
        )
    return _printed(
        theorem, "walk:ADMM-7", noise, factor * participations * math.log(n) / n, orders, TOKEN
    )


def _printed(
    theorem: str, spec: str, noise: AdmmNoise, loss: float, orders: tuple[float, ...], note: str
) -> Guarantee:
    z = noise.noise_multiplier
    if not z > 0:
        raise PrivacyError("the printed losses of ADMM need noise: sigma must be above 0")
    return Guarantee(
        theorem=theorem,
        spec=spec,
        status="published",
        level="user",
        of="any user",
        against="whoever sees the models",
        hypotheses=(Hypothesis("the printed statement, which is not proven", checked=False),),
        profile=RenyiProfile(lambda alpha: alpha * loss / (2 * z * z), orders),
        loss=loss,
        noise_multiplier=z,
        notes=(note,),
    )


def _check_users(n: int) -> None:
    if n < 2:
        raise PrivacyError(f"consensus needs at least two users, found {n}")
