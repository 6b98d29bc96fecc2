"""Composition of mechanisms with different epsilons (perso:DP-2, DP-3, DP-4; Kairouz, Oh,
Viswanath).

    S1 = sum_k epsilon_k tanh(epsilon_k / 2),   S2 = sum_k epsilon_k**2,   slack in [0, 1]
    epsilon = min( sum_k epsilon_k,  S1 + sqrt(2 S2 log(e + sqrt(S2) / slack)),  S1 + sqrt(2 S2 log(1 / slack)) )
    delta   = 1 - (1 - slack) prod_k (1 - delta_k);   the first branch needs no slack

One print has the sum over k outside of the root, which is linear in k and never better than adding
up (`published_branches`). `optimal` composes the worst pairs of the statements by privacy loss
distributions: the least epsilon that follows from the statements alone, up to rounding up.
"""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from bruit.errors import PrivacyError
from bruit.privacy.events import BoundedEvent
from bruit.privacy.guarantee import Guarantee, Hypothesis
from bruit.privacy.profile import EventsProfile, check_delta
from bruit.privacy.toolbox.pld import compose_epsilon
from bruit.privacy.toolbox.pure import advanced

BRANCHES = ("sum", "root with e", "root")


@dataclass(frozen=True)
class Composition:
    """A total (epsilon, delta), and which branch of the formula gave it."""

    epsilon: float
    delta: float
    branch: str


def branches(epsilons: Sequence[float], slack: float) -> tuple[float, float, float]:
    """The three epsilons of the formula (perso:DP-4); without slack only the first is finite.

    >>> [round(x, 9) for x in branches([0.1] * 100, 1e-5)]
    [10.0, 5.298115327, 5.298109662]
    """
    _check(epsilons, (), slack)
    s1 = math.fsum(x * math.tanh(x / 2) for x in epsilons)
    s2 = math.fsum(x * x for x in epsilons)
    total = math.fsum(epsilons)
    if s2 == 0:
        return 0.0, 0.0, 0.0
    if slack == 0:
        return total, math.inf, math.inf
    log = math.log(math.e + math.sqrt(s2) / slack)
    return (
        total,
        s1 + math.sqrt(2 * s2 * log),
        s1 + math.sqrt(-2 * s2 * math.log(slack)) if slack < 1 else s1,
    )


def published_branches(epsilons: Sequence[float], slack: float) -> tuple[float, float, float]:
    """The print with the sum outside of the root: a bound, but never below the plain sum
    (perso:DP-4)."""
    first, root_e, root = branches(epsilons, slack)
    s1 = math.fsum(x * math.tanh(x / 2) for x in epsilons)
    wider = first / math.sqrt(math.fsum(x * x for x in epsilons)) if first else 1.0
    return first, s1 + (root_e - s1) * wider, s1 + (root - s1) * wider


def composed(epsilons: Sequence[float], slack: float, deltas: Sequence[float] = ()) -> Composition:
    """All mechanisms together by the best branch (perso:DP-4). No deltas means pure mechanisms.

    >>> composed([0.5, 0.3, 0.2, 0.1], 1e-3).branch
    'sum'
    """
    _check(epsilons, deltas, slack)
    found = branches(epsilons, slack)
    best = min(range(3), key=found.__getitem__)
    kept = math.fsum(math.log1p(-delta) if delta < 1 else -math.inf for delta in deltas)
    spent = 0.0 if best == 0 and not any(deltas) else slack
    if spent < 1:
        kept += math.log1p(-spent)
    return Composition(found[best], 1.0 if spent == 1 else -math.expm1(kept), BRANCHES[best])


def split_budget(total: float, slack: float, count: int) -> float:
    """The epsilon of each of `count` equal mechanisms whose composition is at most `total`, rounded
    down (perso:DP-4).

    >>> round(split_budget(2.0, 1e-5, 200), 10), split_budget(1.0, 1e-3, 10)
    (0.0293459005, 0.1)
    """
    if count < 1 or not 0 < total < math.inf:
        raise PrivacyError(
            f"a budget is an epsilon > 0 for at least one mechanism, found {total} for {count}"
        )
    _check((), (), slack)

    def cost(each: float) -> float:
        s1, s2 = count * each * math.tanh(each / 2), count * each * each
        if slack == 0:
            return count * each
        log = min(math.log(math.e + math.sqrt(s2) / slack), -math.log(slack))
        return min(count * each, s1 + math.sqrt(2 * s2 * log))

    low, high = total / count, total
    while cost(low) > total:  # one rounding of the division
        low = math.nextafter(low, 0.0)
    if cost(high) <= total:
        return high
    while True:
        middle = low + (high - low) / 2
        if not low < middle < high:
            return low
        low, high = (middle, high) if cost(middle) <= total else (low, middle)


def optimal(epsilons: Sequence[float], delta: float, deltas: Sequence[float] = ()) -> float:
    """The least epsilon that the statements prove together at a total delta: the better of
    `composed`, plain and advanced composition (perso:DP-2, DP-3) and of privacy loss distributions.

    >>> optimal([0.1] * 100, 1.1e-4, [1e-6] * 100) < 4.5 < composed([0.1] * 100, 1e-5).epsilon
    True
    """
    check_delta(delta)
    _check(epsilons, deltas, 0.0)
    best = compose_epsilon(_events(epsilons, deltas), delta)
    if math.fsum(deltas) <= delta:
        best = min(best, math.fsum(epsilons))
    kept = math.exp(math.fsum(math.log1p(-x) if x < 1 else -math.inf for x in deltas))
    slack = 1 - (1 - delta) / kept * (1 + 1e-15) if kept > 0 else 0.0
    if slack > 0:
        best = min(best, composed(epsilons, slack, deltas).epsilon)
    left = delta - math.fsum(deltas)
    if len(set(epsilons)) == 1 and left > 0:
        best = min(best, advanced(epsilons[0], 0.0, len(epsilons), left)[0])
    return best


def statements(epsilons: Sequence[float], deltas: Sequence[float] = ()) -> Guarantee:
    """Mechanisms known by their (epsilon, delta) statements alone, one after the other
    (gossip:DP-5)."""
    _check(epsilons, deltas, 0.0)
    return Guarantee(
        theorem="adaptive composition of the worst pairs of (epsilon, delta) statements",
        spec="perso:DP-4",
        status="proven",
        level="user",
        of="one user",
        against="whoever sees all outputs",
        hypotheses=(Hypothesis("each statement holds given all earlier outputs", checked=False),),
        profile=EventsProfile(_events(epsilons, deltas)),
        seen=f"the outputs of {len(epsilons)} mechanisms",
        advice=("a statement about the mechanism itself, such as its noise, composes better",),
    )


def _events(
    epsilons: Sequence[float], deltas: Sequence[float]
) -> tuple[tuple[BoundedEvent, int], ...]:
    pairs = Counter(zip(epsilons, deltas or [0.0] * len(epsilons), strict=True))
    return tuple(
        (BoundedEvent(float(epsilon), float(delta)), count)
        for (epsilon, delta), count in pairs.items()
    )


def _check(epsilons: Sequence[float], deltas: Sequence[float], slack: float) -> None:
    if deltas and len(deltas) != len(epsilons):
        raise PrivacyError(
            f"there are {len(epsilons)} epsilons and {len(deltas)} deltas; give one of each a "
            f"mechanism"
        )
    for epsilon in epsilons:
        if not 0 <= epsilon < math.inf:
            raise PrivacyError(f"an epsilon to compose must be a number >= 0, found {epsilon}")
    for delta in deltas:
        if not 0 <= delta < 1:
            raise PrivacyError(f"a delta to compose must be in [0, 1), found {delta}")
    if not 0 <= slack <= 1:
        raise PrivacyError(f"the slack of a composition must be between 0 and 1, found {slack}")


ASK = {
    "composition": statements,
}
