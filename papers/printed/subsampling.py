"""Printed bounds of the subsampled Gaussian. NOT A GUARANTEE: for comparison. The two that can hold
say when; the others are refuted (gossip:DP-6, DP-9, walk:ADMM-9).

    gossip:DP-6  (Thm 3.10)   6 alpha q**2 / z**2    q < 1/5, z >= 4, no condition on alpha: false without one
    walk:ADMM-9  (Lem. E.5)   2 alpha q**2 / z**2    with half of the condition on alpha: false as well
    gossip:DP-9  (Thm 3.13)   alpha T / (2 n**2 z**2)   for noise on the *average* gradient: false for Alg. 3.2

Both first bounds follow from Mironov, Talwar, Zhang (arXiv:1908.10530, Thm 11), which has two
conditions, with C = log(1 + 1 / (q (alpha - 1))):

    alpha <= z**2 C / 2 - 2 log z,      alpha <= (z**2 C**2 / 2 - log(5 z**2)) / (C + log(q alpha) + 1 / (2 z**2))

Refutations, exact value against printed one: q = 0.1, z = 4, alpha = 83: 0.3256 > 0.3113 (DP-6); q
= 0.0001, z = 4, alpha = 300: 0.1339 > 3.8e-7 (E.5, whose own condition holds there); 100 full-batch
steps at z = 4, alpha = 8: 25 against 2.5e-5 (DP-9). `bruit.privacy.formulas.subsampled` has what
holds everywhere.
"""

import math

from bruit.errors import PrivacyError


def published_dp6(order: float, rate: float, noise_multiplier: float) -> float:
    """NOT A GUARANTEE. 6 alpha q**2 / z**2 as printed in Thm 3.10; a bound where `holds`
    (gossip:DP-6)."""
    _check_range(order, rate, noise_multiplier)
    return 6 * order * rate**2 / noise_multiplier**2


def published_e5(order: float, rate: float, noise_multiplier: float) -> float:
    """NOT A GUARANTEE. 2 alpha q**2 / z**2 as printed in Lem. E.5, under its printed condition
    (walk:ADMM-9)."""
    _check_range(order, rate, noise_multiplier)
    if not second_condition(order, rate, noise_multiplier):
        raise PrivacyError(
            f"the printed bound of subsampling needs a smaller order than {order:g} at rate "
            f"{rate:g} and noise"
            f" multiplier {noise_multiplier:g}; use bruit.privacy.toolbox.sampled_renyi.poisson"
        )
    return 2 * order * rate**2 / noise_multiplier**2


def closed_form(order: float, rate: float, noise_multiplier: float) -> float:
    """2 alpha q**2 / z**2 where both conditions hold: then it is a bound for Poisson samples,
    add/remove."""
    value = published_e5(order, rate, noise_multiplier)
    if not first_condition(order, rate, noise_multiplier):
        raise PrivacyError(
            f"order {order:g} exceeds z**2 C / 2 - 2 log z at rate {rate:g} and noise multiplier"
            f" {noise_multiplier:g}, where the printed bound of subsampling is false; use"
            " bruit.privacy.toolbox.sampled_renyi.poisson"
        )
    return value


def published_dp_sgd(order: float, records: int, noise_multiplier: float, steps: int) -> float:
    """NOT A GUARANTEE. alpha T / (2 n**2 z**2) as printed in Thm 3.13 (gossip:DP-9)."""
    return order * steps / (2 * records**2 * noise_multiplier**2)


def small_order_limit(order: float, rate: float, noise_multiplier: float) -> float:
    """NOT A GUARANTEE. alpha q**2 / (2 z**2), what the exact value tends to for small alpha and
    large z (walk 13)."""
    return order * rate**2 / (2 * noise_multiplier**2)


def first_condition(order: float, rate: float, noise_multiplier: float) -> bool:
    """alpha <= z**2 C / 2 - 2 log z: the one that Lem. E.5 leaves out."""
    return order <= noise_multiplier**2 * _c(order, rate) / 2 - 2 * math.log(noise_multiplier)


def second_condition(order: float, rate: float, noise_multiplier: float) -> bool:
    """alpha <= (z**2 C**2 / 2 - log(5 z**2)) / (C + log(q alpha) + 1 / (2 z**2))."""
    c, square = _c(order, rate), noise_multiplier**2
    return order <= (square * c * c / 2 - math.log(5 * square)) / (
        c + math.log(rate * order) + 1 / (2 * square)
    )


def holds(order: float, rate: float, noise_multiplier: float) -> bool:
    """Whether both conditions on alpha hold."""
    both = first_condition(order, rate, noise_multiplier) and second_condition(
        order, rate, noise_multiplier
    )
    return both and rate < 0.2 and noise_multiplier >= 4


def _c(order: float, rate: float) -> float:
    return math.log1p(1 / (rate * (order - 1)))


def _check_range(order: float, rate: float, noise_multiplier: float) -> None:
    if not (order > 1 and 0 < rate < 0.2 and noise_multiplier >= 4):
        raise PrivacyError(
            "the printed bounds of subsampling need an order above 1, a rate in (0, 1/5) and a"
            f" noise multiplier of at least 4, found {order}, {rate} and {noise_multiplier};"
            " use bruit.privacy.toolbox.sampled_renyi.poisson"
        )
