"""Amplification by shuffling: n reports of an epsilon_0-LDP randomizer in random order (perso:FL-4,
gossip:RING-3).

    B.1   12 epsilon_0 sqrt(log(1 / delta) / n)            epsilon_0 < 1/2, delta < 1/100, n >= 1000
    D.3   log(1 + tanh(epsilon_0 / 2) (8 sqrt(e**epsilon_0 log(4 / delta) / n) + 8 e**epsilon_0 / n))
                                                           epsilon_0 <= log(n / (16 log(2 / delta)))
    clones   delta(epsilon) = sum_c Pr[C = c] sum_a max(P_c(a) - e**epsilon Q_c(a), 0)         always (walk:RW-2)

with C ~ Bin(n - 1, e**-epsilon_0), A ~ Bin(C, 1/2), P_c the law of A + X, Q_c that of A + 1 - X,
and X = 1 with probability e**epsilon_0 / (1 + e**epsilon_0). (Erlingsson et al., SODA 2019;
Feldman, McMillan, Talwar, arXiv:2012.12803, Thm 3.1 and 3.2.) One report per user; an observer's
own report hides nothing: on a ring or a walk give the n - 1 reports of others.
"""

import math
from functools import lru_cache

import numpy as np

from bruit.arrays import Array
from bruit.errors import PrivacyError
from bruit.privacy.guarantee import Guarantee, Hypothesis
from bruit.privacy.profile import StatementProfile, check_delta, least_epsilon

_TAIL = 1e-17  # of the number of clones, on either side: added to delta


def bound_b1(local_epsilon: float, reports: int, delta: float) -> float:
    """The printed Thm B.1 (bound E of perso:FL-4); PrivacyError outside its conditions.

    >>> round(bound_b1(0.5 - 1e-12, 10_000, 1e-6), 9)
    0.223015331
    """
    _check(local_epsilon, reports, delta)
    if not (local_epsilon < 0.5 and delta < 0.01 and reports >= 1000):
        raise PrivacyError(
            "shuffling bound B.1 needs a local epsilon below 1/2, delta below 1/100 and at least"
            f" 1000 reports, found {local_epsilon:g}, {delta:g} and {reports};"
            " use amplified(), which takes the bounds that hold"
        )
    return 12 * local_epsilon * math.sqrt(-math.log(delta) / reports)


def bound_d3(local_epsilon: float, reports: int, delta: float) -> float:
    """The closed form of Thm D.3 (bound F of perso:FL-4); PrivacyError outside its condition.

    >>> round(bound_d3(0.5, 10_000, 1e-6), 10)
    0.0938681619
    """
    _check(local_epsilon, reports, delta)
    if local_epsilon > math.log(reports / (16 * math.log(2 / delta))):
        raise PrivacyError(
            "shuffling bound D.3 needs a local epsilon of at most log(n / (16 log(2 / delta))),"
            f" found {local_epsilon:g} with {reports} reports at delta = {delta:g};"
            " use amplified(), which takes the bounds that hold"
        )
    grown = math.exp(local_epsilon)
    inner = 8 * math.sqrt(grown * math.log(4 / delta) / reports) + 8 * grown / reports
    return math.log1p(math.tanh(local_epsilon / 2) * inner)


def clones_delta(epsilon: float, local_epsilon: float, reports: int) -> float:
    """delta at epsilon by the numeric sum over the number of clones, rounded up; any parameters
    (walk:RW-2)."""
    _check(local_epsilon, reports, 0.5)
    if math.isnan(epsilon) or epsilon < 0:
        raise PrivacyError(f"epsilon must be a number >= 0, found {epsilon}")
    if epsilon >= local_epsilon:
        return 0.0
    c, weights = _clones(local_epsilon, reports)
    w = 1 / (1 + math.exp(-local_epsilon))
    # P_c - e**epsilon Q_c is positive for large a only: a / (c + 1 - a) > (e**(e + e0) - 1) /
    # (e**e0 - e**e)
    ratio = math.expm1(epsilon + local_epsilon) / (
        math.exp(epsilon) * math.expm1(local_epsilon - epsilon)
    )
    first = np.clip(np.floor(ratio / (1 + ratio) * (c + 1)) + 1, 0, c + 2)
    above, below = _tail(first - 1, c), _tail(first, c)  # Pr[A >= first - 1], Pr[A >= first]
    seen, hidden = w * above + (1 - w) * below, (1 - w) * above + w * below
    lost = np.maximum(seen - math.exp(epsilon) * hidden, 0.0) + 1e-12 * seen
    return min(1.0, float(weights @ lost) * (1 + 1e-10) + 2 * _TAIL)


@lru_cache(maxsize=4)
def _clones(local_epsilon: float, reports: int) -> tuple[Array, Array]:
    """Numbers of clones and their probabilities, without the far tails."""
    from scipy.stats import binom

    chance = math.exp(-local_epsilon)
    low, high = (
        int(binom.ppf(_TAIL, reports - 1, chance)),
        int(binom.isf(_TAIL, reports - 1, chance)),
    )
    c = np.arange(max(low, 0), high + 1, dtype=float)
    return c, binom.pmf(c, reports - 1, chance)


def _tail(least: Array, count: Array) -> Array:
    """Pr[Bin(count, 1/2) >= least], elementwise."""
    from scipy.special import betainc

    inside = np.clip(least, 1.0, np.maximum(count, 1.0))
    found = betainc(inside, np.maximum(count, 1.0) - inside + 1, 0.5)
    return np.where(least <= 0, 1.0, np.where(least > count, 0.0, found))


def clones(local_epsilon: float, reports: int, delta: float) -> float:
    """Epsilon at delta by `clones_delta`; never above the local epsilon.

    >>> round(clones(0.5, 1000, 1e-6), 8)
    0.07052347
    """
    _check(local_epsilon, reports, delta)
    return min(
        local_epsilon, least_epsilon(lambda x: clones_delta(x, local_epsilon, reports), delta)
    )


def closed(local_epsilon: float, reports: int, delta: float) -> tuple[float, str]:
    """The least of B.1, D.3 (where they hold) and the local epsilon, with its name (perso:FL-4).

    >>> epsilon, bound = closed(2.0, 5000, 1e-6)
    >>> round(epsilon, 10), bound
    (0.6534776025, 'D.3')
    """
    _check(local_epsilon, reports, delta)
    found = [(local_epsilon, "local")]
    for name, bound in (("B.1", bound_b1), ("D.3", bound_d3)):
        try:
            found.append((bound(local_epsilon, reports, delta), name))
        except PrivacyError:
            continue
    return min(found)


def amplified(local_epsilon: float, reports: int, delta: float) -> Guarantee:
    """What a shuffler's output tells about one of `reports` users, by the best bound that holds.

    >>> amplified(0.5, 1000, 1e-6).epsilon(1e-6) < closed(0.5, 1000, 1e-6)[0]
    True
    """
    found, name = min(
        closed(local_epsilon, reports, delta), (clones(local_epsilon, reports, delta), "clones")
    )
    if found > 0.99 * local_epsilon:  # not worth a delta
        found, name = local_epsilon, "local"
    profile = StatementProfile(found, 0.0 if name == "local" else delta)
    return Guarantee(
        theorem=f"amplification by shuffling (bound {name})",
        spec="perso:FL-4",
        status="proven",
        level="user",
        of="one user",
        against="whoever sees the shuffled reports",
        hypotheses=(
            Hypothesis(f"every report is {local_epsilon:g}-LDP, one per user", checked=False),
            Hypothesis("the shuffler hides the order and colludes with nobody", checked=False),
        ),
        profile=profile,
        seen=f"{reports} reports in random order",
        advice=("more reports", "a smaller local epsilon"),
    )


def local_budget_b1(epsilon: float, reports: int, delta: float) -> float:
    """The local epsilon that B.1 turns into epsilon: epsilon sqrt(n / log(1 / delta)) / 12
    (gossip:RING-3).

    >>> round(local_budget_b1(0.2, 10_000, 1e-6), 9)
    0.448399666
    """
    _check(epsilon, reports, delta)
    found = epsilon * math.sqrt(reports / -math.log(delta)) / 12
    bound_b1(found, reports, delta)
    return found


def local_budget(epsilon: float, reports: int, delta: float) -> float:
    """The largest local epsilon whose shuffled epsilon is at most the given one, rounded down."""
    _check(epsilon, reports, delta)

    def enough(local: float) -> bool:
        if local <= epsilon or closed(local, reports, delta)[0] <= epsilon:
            return True
        return clones_delta(epsilon, local, reports) <= delta

    low, high = epsilon, max(2 * epsilon, 1e-3)
    while enough(high):
        low, high = high, 2 * high
        if high > 100:
            return low
    while high - low > 1e-9 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if enough(middle) else (low, middle)
    return low


def _check(epsilon: float, reports: int, delta: float) -> None:
    check_delta(delta)
    if not 0 <= epsilon < math.inf:
        raise PrivacyError(f"an epsilon to shuffle must be a number >= 0, found {epsilon}")
    if reports < 1:
        raise PrivacyError(f"there must be at least one report to shuffle, found {reports}")


ASK = {
    "shuffling": amplified,
}
