"""The printed losses of SGD by a walk on the complete graph. NOT A GUARANTEE: kept to reproduce and
to compare.

    divergence(alpha) = N alpha log n / (z^2 n)   for z^2 >= alpha (alpha - 1) / 2,  N contributions

The losses of the N contributions are added up, although contributions between two visits of the
observer are hidden by the same noise: on a clique with a pendant peer the exact divergence is three
times the value so obtained (walk:RW-15). On the complete graph the value is justified for small
lambda by another argument (walk:RW-V2), not by its proof. For a bound that holds, with
less noise, see bruit.privacy.ahead.walk_ahead. (Cyffers, Bellet, arXiv:2012.05326; walk:RW-3, RW-4,
RW-5.)
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from bruit.errors import PrivacyError
from bruit.privacy.calibrate import least
from bruit.privacy.guarantee import Guarantee, Hypothesis
from bruit.privacy.profile import StatementProfile, check_delta
from bruit.privacy.toolbox.contributions import binomial_quantile, chernoff, chernoff_mean
from papers.printed.walk_sum import advanced

REFUTED = "refuted: adding losses of contributions that share noise is 3.06 times too little on the graph of walk:RW-15"


def printed_divergence(
    order: float, noise_multiplier: float, n: float, contributions: float
) -> float:
    """NOT A GUARANTEE. N alpha log n / (z^2 n), where the weak convexity behind it applies (Prop.
    D.11)."""
    _check(n, contributions, noise_multiplier)
    if not order > 1:
        raise PrivacyError(f"a Renyi order must be above 1, found {order}")
    if noise_multiplier**2 < order * (order - 1) / 2:
        raise PrivacyError(
            "the printed divergence needs z^2 >= alpha (alpha - 1) / 2 ="
            f" {order * (order - 1) / 2:g}, found z = {noise_multiplier:g};"
            f" lower the order to {largest_order(noise_multiplier):.6g} or add noise"
        )
    return contributions * order * math.log(n) / (noise_multiplier**2 * n)


def printed_collusion(order: float, noise_multiplier: float, n: int, colluders: int) -> float:
    """NOT A GUARANTEE. One contribution seen by c colluders: as by one peer among n / c
    (walk:RW-4).

    >>> round(printed_collusion(8.0, 5.0, 2000, 5), 12)
    0.004793171638
    """
    if not 1 <= colluders < n:
        raise PrivacyError(f"the colluders are 1 to {n - 1} of the {n} peers, found {colluders}")
    _check(n, 1, noise_multiplier)
    return order / noise_multiplier**2 * math.log(n / colluders) / (n / colluders)


def largest_order(noise_multiplier: float) -> float:
    """alpha_max = (1 + sqrt(1 + 8 z^2)) / 2, the largest order at which weak convexity applies."""
    return (1 + math.sqrt(1 + 8 * noise_multiplier**2)) / 2


@dataclass(frozen=True)
class Printed:
    """A printed epsilon and the order it is attained at."""

    epsilon: float
    order: float


def printed_epsilon(noise_multiplier: float, n: int, contributions: float, delta: float) -> Printed:
    """NOT A GUARANTEE. The numeric procedure of Remark D.12: the best order, no larger than
    alpha_max.

    >>> found = printed_epsilon(10.0, 2000, 12, 1e-6)
    >>> round(found.epsilon, 9), round(found.order, 9)
    (1.018734907, 14.650971698)
    """
    _check(n, contributions, noise_multiplier)
    check_delta(delta)
    slope = contributions * math.log(n) / (noise_multiplier**2 * n)
    order = min(1 + math.sqrt(-math.log(delta) / slope), largest_order(noise_multiplier))
    return Printed(slope * order - math.log(delta) / (order - 1), order)


def least_printed_noise(epsilon: float, delta: float, n: int, contributions: float) -> float:
    """NOT A GUARANTEE. The least noise multiplier of the numeric procedure; sigma = 2 L z in its
    units.

    >>> round(2 * least_printed_noise(1.0, 1e-6, 2000, 12), 8)
    20.36190665
    """
    return least(lambda z: printed_epsilon(z, n, contributions, delta).epsilon, epsilon)


@dataclass(frozen=True)
class ClosedForm:
    """The numbers of the printed closed form; sigma is in units of the Lipschitz constant L."""

    contributions: float
    q: float
    sigma: float
    order: float
    epsilon: float


def printed_closed_form(
    n: int,
    epsilon: float,
    delta: float,
    *,
    steps: int | None = None,
    contributions: float | None = None,
    failure: float | None = None,
) -> ClosedForm:
    """NOT A GUARANTEE. Theorem 7.2: epsilon' = sqrt(2 q log(1/delta) / log(1.25/delta)) epsilon, q
    as printed.

    The number of contributions is given, or bounded from the steps with the failure probability
    (delta by default).
    """
    check_delta(delta)
    if not 0 < epsilon < 1:
        raise PrivacyError(
            f"the printed closed form needs 0 < epsilon < 1 for one message, found {epsilon}"
        )
    if (steps is None) == (contributions is None):
        raise PrivacyError(
            "give either the number of steps or the number of contributions of one peer"
        )
    count = (
        chernoff(steps, n, failure or delta) if steps is not None else float(contributions or 0.0)
    )
    _check(n, count, 1.0)
    log = -math.log(delta)
    q = max(2 * count * math.log(n) / n, 2 * log)
    sigma = math.sqrt(8 * math.log(1.25 / delta)) / epsilon
    order = sigma * math.sqrt(log / q)
    if order < 2:
        raise PrivacyError(
            f"the printed closed form is attained at order {order:.4g}, below the 2 it needs;"
            f" lower epsilon below {epsilon * order / 2:.4g}, or use the numeric procedure"
        )
    return ClosedForm(count, q, sigma, order, 4 * math.sqrt(q * log) / sigma)


@dataclass(frozen=True)
class Spotted:
    """Contributions seen by a neighbor in time, and what they add: simply, by advanced composition,
    as printed."""

    count: float
    simple: float
    advanced: float
    as_printed: float


def printed_spotted(
    n: int, contributions: int, epsilon: float, failure: float, slack: float, exact: bool = False
) -> Spotted:
    """NOT A GUARANTEE. Extra loss when sender and receiver are known: contributions just before or
    after a visit of v.

    Their number is at most 2 N/n + sqrt(6 N/n log(1/failure)), where that holds, or the exact
    quantile of Bin(N, 2/n). The proven accountants reveal the whole walk already and add nothing
    (walk:RW-5).
    """
    _check(n, contributions, 1.0)
    if not epsilon > 0:
        raise PrivacyError(f"epsilon of one contribution must be positive, found {epsilon}")
    if exact:
        count = float(binomial_quantile(contributions, min(1.0, 2 / n), failure))
    else:
        count = chernoff_mean(2 * contributions / n, failure)
    full = advanced(count, epsilon, slack)
    missing = (
        math.sqrt(-count * math.log(slack)) * epsilon * (math.sqrt(2) - 1)
    )  # the print forgets a 2 under the root
    return Spotted(count, count * epsilon, full, full - missing)


def published_walk(n: int, contributions: int, noise_multiplier: float, delta: float) -> Guarantee:
    """NOT A GUARANTEE. The numeric procedure in the form of a guarantee, with status `published`.

    >>> published_walk(2000, 12, 10.0, 1e-6).status
    'published'
    """
    found = printed_epsilon(noise_multiplier, n, contributions, delta)
    return Guarantee(
        theorem="the printed walk on the complete graph (Remark D.12)",
        spec="walk:RW-3",
        status="published",
        level="user",
        of="any peer",
        against="another peer",
        profile=StatementProfile(found.epsilon, delta),
        noise_multiplier=noise_multiplier,
        notes=(REFUTED, f"attained at order {found.order:.6g}"),
        hypotheses=(
            Hypothesis(
                f"at most {contributions} contributions, z^2 >= alpha (alpha - 1) / 2", checked=True
            ),
            Hypothesis("sender and receiver are hidden from the observer", checked=False),
        ),
        seen="the token at every visit",
        advice=("bruit.privacy.ahead.walk_ahead proves more with less noise",),
    )


def excess_loss(diameter: float, lipschitz: float, dim: int, sigma: float, steps: int) -> float:
    """2 D G (2 + log T) / sqrt T with G^2 = L^2 + d sigma^2: expected excess objective of the last
    token (Prop. 7.3).

    For step sizes D / (G sqrt t); sigma is the noise of each coordinate of the gradient. Constant
    steps, which the walk accountants need, are not covered.
    """
    if not (diameter > 0 and lipschitz > 0 and dim >= 1 and sigma >= 0 and steps >= 1):
        raise PrivacyError(
            "diameter, Lipschitz constant, dimension and steps must be above 0 and sigma >= 0,"
            f" found {diameter}, {lipschitz}, {dim}, {steps} and {sigma}"
        )
    return (
        2
        * diameter
        * math.sqrt(lipschitz**2 + dim * sigma**2)
        * (2 + math.log(steps))
        / math.sqrt(steps)
    )


def _check(n: float, contributions: float, noise_multiplier: float) -> None:
    if n < 2:
        raise PrivacyError(f"a walk needs at least two peers, found {n}")
    if not contributions > 0:
        raise PrivacyError(f"the number of contributions must be positive, found {contributions}")
    if not noise_multiplier > 0:
        raise PrivacyError(f"the noise multiplier must be positive, found {noise_multiplier}")
