"""The printed losses of a private sum on the complete graph. NOT A GUARANTEE: kept to reproduce and
to compare.

    a cycle of m <= n steps:   log(1 + (1 - (1 - 1/n)^m) (exp(epsilon / sqrt m) - 1)) <= 3 epsilon / sqrt n = epsilon_c
    all k = N_v + T/n cycles:  sqrt(2 k log(1/delta')) epsilon_c + k epsilon_c (exp(epsilon_c) - 1)

The print says that a cycle fails with probability delta_cycle <= delta. It does not: n = 2000,
epsilon = 1, delta = 1e-6 give delta_cycle = 3.2e-5. A cycle of length m is also said to hide by m
noises, the observer's own among them. For a bound that holds see bruit.privacy.ahead.walk_sum.
(Cyffers, Bellet, arXiv:2012.05326; walk:RW-1.)
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from bruit.errors import PrivacyError
from bruit.privacy.guarantee import Guarantee, Hypothesis
from bruit.privacy.profile import StatementProfile, check_delta
from bruit.privacy.toolbox.contributions import chernoff
from bruit.privacy.toolbox.gaussian import deltas

REFUTED = "refuted: n = 2000, epsilon = 1, delta = 1e-6: a cycle fails with probability 3.2e-5 > delta (walk:RW-1)"


def advanced(count: float, epsilon: float, slack: float) -> float:
    """Advanced composition: sqrt(2 k log(1/slack)) epsilon + k epsilon (exp(epsilon) - 1)."""
    check_delta(slack)
    return math.sqrt(-2 * count * math.log(slack)) * epsilon + count * epsilon * math.expm1(epsilon)


def cycle_epsilon(m: int, n: int, epsilon: float) -> float:
    """NOT A GUARANTEE. The printed epsilon of a cycle of m steps.

    >>> round(cycle_epsilon(10, 100, 0.1), 12)
    0.003067312188
    """
    _check_cycle(m, n, epsilon)
    return math.log1p(-math.expm1(m * math.log1p(-1 / n)) * math.expm1(epsilon / math.sqrt(m)))


def cycle_delta(m: int, n: int, epsilon: float, delta: float) -> float:
    """NOT A GUARANTEE. What the printed cycle of m steps fails with, its group terms computed
    exactly.

    sum_j C(m, j) n^-j (1 - 1/n)^(m-j) delta_GDP(j theta; epsilon / sqrt m), theta = 1 / (z sqrt m),
    z calibrated classically to (epsilon, delta) for one contribution.
    """
    from scipy.stats import binom

    _check_cycle(m, n, epsilon)
    check_delta(delta)
    count = np.arange(1, m + 1)
    theta = 1 / (classical_noise(epsilon, delta) * math.sqrt(m))
    return float(
        binom.pmf(count, m, 1 / n)
        @ deltas(epsilon / math.sqrt(m), np.asarray(count * theta, np.float64))
    )


def classical_noise(epsilon: float, delta: float) -> float:
    """z = sqrt(2 log(1.25 / delta)) / epsilon: the classical calibration of one Gaussian release,
    for epsilon <= 1."""
    check_delta(delta)
    if not 0 < epsilon <= 1:
        raise PrivacyError(
            f"the classical Gaussian calibration needs 0 < epsilon <= 1, found {epsilon}"
        )
    return math.sqrt(2 * math.log(1.25 / delta)) / epsilon


@dataclass(frozen=True, kw_only=True)
class PrintedSum:
    """The numbers of the printed theorem: cycles k, loss of one, loss and failure of all, and the
    local loss."""

    cycles: float
    cycle_epsilon: float
    cycle_delta: float
    epsilon: float
    delta: float
    local_epsilon: float


def printed_sum(
    n: int, steps: int, epsilon: float, delta: float, numeric: bool = False
) -> PrintedSum:
    """NOT A GUARANTEE. The printed theorem, all of its three failure probabilities equal to delta.

    numeric: the largest epsilon_cycle instead of its bound 3 epsilon / sqrt n; the largest is at m
    = n.

    >>> round(printed_sum(100, 10_000, 0.1, 1e-7).epsilon, 9)
    3.042679654
    """
    visits = chernoff(steps, n, delta)
    cycles = visits + steps / n
    one = cycle_epsilon(n, n, epsilon) if numeric else 3 * epsilon / math.sqrt(n)
    fails = cycle_delta(n, n, epsilon, delta)
    total = min(1.0, cycles * fails + 2 * delta)
    return PrintedSum(
        cycles=cycles,
        cycle_epsilon=one,
        cycle_delta=fails,
        epsilon=advanced(cycles, one, delta),
        delta=total,
        local_epsilon=advanced(visits, epsilon, delta),
    )


def published_sum(
    n: int, steps: int, epsilon: float, delta: float, numeric: bool = False
) -> Guarantee:
    """NOT A GUARANTEE. The printed theorem in the form of a guarantee, with status `published`.

    >>> published_sum(100, 10_000, 0.1, 1e-7).status
    'published'
    """
    printed = printed_sum(n, steps, epsilon, delta, numeric)
    return Guarantee(
        theorem="the printed private sum on the complete graph",
        spec="walk:RW-1",
        status="published",
        level="user",
        of="any peer",
        against="another peer",
        profile=StatementProfile(printed.epsilon, printed.delta),
        noise_multiplier=classical_noise(epsilon, delta),
        notes=(REFUTED,),
        seen="the token at every visit",
        hypotheses=(
            Hypothesis(
                "T / n >= 3 log(1 / delta): the Chernoff bound on the visits holds", checked=True
            ),
            Hypothesis("sender and receiver are hidden from the observer", checked=False),
        ),
        advice=("bruit.privacy.ahead.walk_sum gives a proven bound, usually far lower",),
    )


def _check_cycle(m: int, n: int, epsilon: float) -> None:
    if n < 2 or not 1 <= m <= n:
        raise PrivacyError(
            f"a cycle has 1 to n steps among n >= 2 peers, found {m} steps and {n} peers"
        )
    if not 0 < epsilon <= 1:
        raise PrivacyError(
            f"the printed theorem needs 0 < epsilon <= 1 for one contribution, found {epsilon}"
        )
