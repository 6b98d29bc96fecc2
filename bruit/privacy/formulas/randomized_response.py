"""Randomized response over K values: probabilities, the gamma form, and what can be estimated
(gossip:DP-3).

    P(y = x) = e**epsilon / (K - 1 + e**epsilon),    P(y) = 1 / (K - 1 + e**epsilon) for each y != x
    gamma form: the truth with probability 1 - gamma, else uniform over all K values, gamma = K / (e**epsilon + K - 1)

epsilon-DP, exactly. Two values and epsilon = log 3 is Warner's pair of coins. (perso:LDP-1, LDP-2,
LDP-3.)
"""

import math

import numpy as np

from bruit.arrays import Array, Ints
from bruit.errors import PrivacyError
from bruit.privacy.guarantee import Guarantee, Hypothesis
from bruit.privacy.profile import StatementProfile


def probabilities(values: int, epsilon: float) -> tuple[float, float]:
    """Of the truth, and of each other value.

    >>> truth, other = probabilities(10, 2.0)
    >>> round(truth, 8), round(other, 10)
    (0.45085306, 0.0610163266)
    """
    _check(values, epsilon)
    small = math.exp(-epsilon)
    return 1 / (1 + (values - 1) * small), small / (1 + (values - 1) * small)


def gamma(values: int, epsilon: float) -> float:
    """The probability of a uniform answer, the truth included.

    >>> round(gamma(10, 2.0), 9)
    0.610163266
    """
    return values * probabilities(values, epsilon)[1]


def epsilon_of_gamma(values: int, uniform: float) -> float:
    """The epsilon of the gamma form, log(1 + K (1 - gamma) / gamma), rounded up.

    >>> round(epsilon_of_gamma(2, 0.5), 8)
    1.09861229
    """
    _check(values, 0.0)
    if not 0 <= uniform <= 1:
        raise PrivacyError(f"the chance of a uniform answer is a probability, found {uniform}")
    if values == 1:
        return 0.0
    return math.inf if uniform == 0 else math.log1p(values * (1 - uniform) / uniform) * (1 + 1e-15)


def warner(truth: float) -> float:
    """The epsilon of a yes/no answer that is true with probability p in (1/2, 1): log(p / (1 - p))
    (perso:LDP-1).

    >>> round(warner(0.75), 10)
    1.0986122887
    """
    if not 0.5 < truth < 1:
        raise PrivacyError(f"Warner's answer is true with a probability in (1/2, 1), found {truth}")
    return math.log(truth / (1 - truth)) * (1 + 1e-15)


def estimate(counts: Array | Ints, epsilon: float) -> Array:
    """Unbiased shares of the values among n answers: (counts / n (e**epsilon + K - 1) - 1) /
    (e**epsilon - 1).

    They sum to one and may leave [0, 1]. With two values and epsilon = log 3 the share of yes is 2
    mean - 1/2.

    >>> estimate(np.array([40, 60]), math.log(3)).round(9).tolist()
    [0.3, 0.7]
    """
    answers = np.asarray(counts, dtype=float)
    if answers.ndim != 1 or not np.all(answers >= 0) or not answers.sum() > 0:
        raise PrivacyError(
            "an estimate needs one count >= 0 for each value, and at least one answer"
        )
    truth, other = probabilities(len(answers), epsilon)
    if len(answers) == 1:
        return np.ones(1)
    if epsilon == 0:
        raise PrivacyError(
            "answers at epsilon 0 are pure chance, nothing can be estimated; give an epsilon above 0"
        )
    return np.asarray((answers / answers.sum() - other) / (truth - other))


def error(share: float, values: int, epsilon: float, answers: int) -> float:
    """Mean squared error of one estimated share h (perso:LDP-3, the corrected formula).

        (K - 2 + e**epsilon) / (n (e**epsilon - 1)**2) + h (K - 2) / (n (e**epsilon - 1))

    >>> round(error(0.6, 4, 1.0, 200), 10)
    0.0114821971
    """
    _check(values, epsilon)
    if not (epsilon > 0 and answers > 0 and 0 <= share <= 1):
        raise PrivacyError(
            "the error of a share needs epsilon > 0, answers and a share in [0, 1], found"
            f" {epsilon}, {answers} and {share}"
        )
    grown = math.expm1(epsilon)
    return (
        ((values - 1 + grown) / grown**2 + share * (values - 2) / grown) / answers
        if values > 1
        else 0.0
    )


def answer(values: int, epsilon: float) -> Guarantee:
    """What one randomized answer tells about the one who gave it: epsilon-DP."""
    _check(values, epsilon)
    return Guarantee(
        theorem="randomized response",
        spec="gossip:DP-3",
        status="proven",
        level="user",
        of="one user",
        against="whoever sees the answer",
        hypotheses=(Hypothesis("the user answers once, with true coins", checked=False),),
        profile=StatementProfile(0.0 if values == 1 else epsilon, 0.0),
        seen="one answer",
        advice=("a smaller epsilon",),
    )


def _check(values: int, epsilon: float) -> None:
    if values < 1:
        raise PrivacyError(f"randomized response needs at least one value, found {values}")
    if not 0 <= epsilon < math.inf:
        raise PrivacyError(
            f"the epsilon of randomized response must be a number >= 0, found {epsilon}"
        )


ASK = {
    "randomized-response": answer,
}
