"""A pairwise statistic from P noisy pairs per user, each computed by the two users together
(perso:LDP-10).

    P independent permutations cut the n users (n even) into pairs; a pair reveals h~ = h + Lap(R P / epsilon)
    U^ = 2 / (P n) * sum of h~
    E(U^ - U)^2 = 2/(P n) [2 (P-1) (1 - 1/(n-1)) zeta_1 + (1 + (P-1)/(n-1)) zeta_2] + 4 P R^2 / (n epsilon^2)

Kernels with few values answer by K-ary randomized response with epsilon / P instead. Each user
counts the pairs it took part in and refuses the one after the P-th. Shown: h~, to everybody;
epsilon-DP for each user against all others.

This file is a simulation: nothing is encrypted, and the pair is trusted to show h~ and nothing
else. Real circuits between two holders are `bruit.statistics.holders`, for comparison kernels whose
answer is one randomized bit (its own simulation, with exactly its law, is
`bruit.statistics.holders.trusted_pair`). Laplace noise and K-ary answers on more than two values
have no circuit here (perso:LDP-11 describes one for discrete Laplace noise): they are simulated
only.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import final

import numpy as np

from bruit.arrays import Array, Ints
from bruit.errors import ConfigError, PrivacyError
from bruit.mechanisms.laplace import Laplace
from bruit.privacy.events import BoundedEvent, Event
from bruit.randomness import Dice
from bruit.statistics.local.coins import check_epsilon
from bruit.statistics.local.estimates import Estimate, laplace_quantile, quantile, score_interval
from bruit.statistics.local.k_ary import KAry
from bruit.tasks.pairs.kernels import Kernel, as_points, check_bounds, check_kernel

MANY = 100  # pairs of one permutation from which their spread is measured


@final
class PairBudget:
    """How many pairs each user took part in; the (P + 1)-th is refused, even one that was aborted
    and tried again."""

    def __init__(self, users: int, rounds: int) -> None:
        self.rounds = rounds
        self.spent = np.zeros(users, dtype=np.int64)

    def spend(self, pairs: Ints) -> None:
        """Count these executions, before anything of them is shown; refuse them all if one would be
        too many."""
        more = np.bincount(pairs.reshape(-1), minlength=len(self.spent))
        over = self.spent + more > self.rounds
        if over.any():
            user = int(np.flatnonzero(over)[0])
            raise PrivacyError(
                f"user {user} already took part in {self.spent[user]} pairs and its budget is for "
                f"{self.rounds}; another one would cost more than the promised epsilon"
            )
        self.spent += more


@final
@dataclass(frozen=True, eq=False)
class TwoParty:
    """rounds: P, the pairs of each user. outcomes: the values of a discrete kernel, empty for
    Laplace noise."""

    kernel: Kernel
    epsilon: float
    rounds: int = 1
    outcomes: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        check_epsilon(self.epsilon)
        if (
            isinstance(self.rounds, bool)
            or not isinstance(self.rounds, int)
            or not 1 <= self.rounds < 2**16
        ):
            raise ConfigError(
                f"each user takes part in a whole number of pairs >= 1, found {self.rounds!r}"
            )
        if self.outcomes and len(set(self.outcomes)) < 2:
            raise ConfigError(f"a discrete kernel has at least two values, found {self.outcomes}")
        if not self.outcomes and self.kernel.span <= 0:
            raise ConfigError(f"the bounds of the kernel {self.kernel.name} leave it no room")

    def event(self) -> Event:
        """What all pairs of one user cost together."""
        return BoundedEvent(self.epsilon)

    def answers(
        self,
        points: Array,
        dice: Dice,
        pairing: Dice,
        budget: PairBudget | None = None,
        run: int = 0,
    ) -> Array:
        """What the pairs reveal, in the trusted-pair simulation  # (P, n / 2)."""
        rows = as_points(points, self.kernel)
        check_kernel(self.kernel, rows)
        pairs = pairings(len(rows), self.rounds, pairing, run)
        (budget or PairBudget(len(rows), self.rounds)).spend(pairs)
        exact = self.kernel(rows[pairs[..., 0]], rows[pairs[..., 1]])
        if not self.outcomes:
            check_bounds(self.kernel, exact)
        lanes = np.arange(exact.size)
        if self.outcomes:
            return self._discrete(exact, dice, lanes, run).reshape(exact.shape)
        middle = self.kernel.low + self.kernel.span / 2
        noisy = self._noise.release(exact.reshape(-1, 1) - middle, dice, lanes, run, 0)[:, 0]
        return np.asarray(middle + noisy.reshape(exact.shape))

    @cached_property
    def _noise(self) -> Laplace:
        """Exact Laplace noise on the distance of an answer from the middle of its range."""
        return Laplace(clip=self.kernel.span / 2).calibrate(self.epsilon / self.rounds)

    @property
    def noise_scale(self) -> float:
        """R P / epsilon."""
        return self._noise.scale

    def estimate(self, answers: Array, confidence: float = 0.95) -> Estimate:
        """The aggregator side: the mean of the answers; the interval is that of the population's
        statistic t.

            Var(U^) <= (P zeta_2 + N) / (number of answers),   zeta_2 <= (high - t) (t - low),   N: of the noise, known
            interval: all t with |U^ - t| <= z sqrt(that bound) + what one discrete answer moves the mean by

        Pairs of one permutation are independent; those of different ones share users, which costs
        at most the factor P, since zeta_1 <= zeta_2 / 2. Of kernels with more than two values the
        spread is measured from MANY pairs on, with a standard error of the measurement on top, and
        taken where it is less.
        """
        count, least, most = answers.size, *self._range()
        value, z = float(answers.mean()), self._quantile(count, confidence)
        near = min(max(value, least), most)  # no farther from t than value
        low, high = score_interval(
            near,
            self.rounds / count,
            self.answer_variance() / count,
            (least, most),
            z,
            self._step() / count,
        )
        error = math.sqrt(
            (self.rounds * (most - near) * (near - least) + self.answer_variance()) / count
        )
        measured = (
            math.sqrt(self._measured(answers) / count) if answers.shape[1] >= MANY else math.inf
        )
        if (
            len(self.outcomes) != 2 and measured < error
        ):  # two values have the variance of the bound
            error, half = measured, z * measured + self._step() / count
            low, high = max(least, near - half), min(most, near + half)
        return Estimate(
            value=value, error=error, low=low, high=high, confidence=confidence, reports=count
        )

    def _range(self) -> tuple[float, float]:
        """Between which the statistic lies."""
        return (
            (min(self.outcomes), max(self.outcomes))
            if self.outcomes
            else (self.kernel.low, self.kernel.high)
        )

    def _quantile(self, count: int, confidence: float) -> float:
        """The normal one, or that of a sum of so few Laplaces, which is larger."""
        z = quantile(confidence)
        return (
            z
            if self.outcomes
            else max(z, laplace_quantile(count, confidence) / math.sqrt(2 * count))
        )

    def _step(self) -> float:
        """What one more report of another value moves the sum by; nothing where noise is no whole
        number."""
        if not self.outcomes:
            return 0.0
        truth, other = self._response().chances()
        return (max(self.outcomes) - min(self.outcomes)) / (truth - other)

    def _measured(self, answers: Array) -> float:
        """Variance of one answer plus P - 1 times zeta_2, from the spread of the answers, a
        standard error more."""
        spread = float(np.var(answers, axis=1, ddof=1).mean())
        fourth = float(((answers - answers.mean()) ** 4).mean())
        doubt = math.sqrt(max(0.0, fourth - spread**2) / answers.shape[1])
        inner = max(0.0, spread + doubt - self.answer_variance(min))
        return spread + doubt + (self.rounds - 1) * inner

    def answer_variance(self, choose: Callable[[list[float]], float] = max) -> float:
        """Variance that the noise adds to one answer; for discrete kernels the largest over their
        values, or `min`."""
        if not self.outcomes:
            return 2 * self.noise_scale**2
        truth, other = self._response().chances()
        values, rest = np.array(self.outcomes), truth - other
        means = truth * values + other * (values.sum() - values)
        squares = truth * values**2 + other * ((values**2).sum() - values**2)
        return float(choose(((squares - means**2) / rest**2).tolist()))

    def _response(self) -> KAry:
        return KAry(len(self.outcomes), self.epsilon / self.rounds)

    def _discrete(self, exact: Array, dice: Dice, lanes: Ints, step: int) -> Array:
        """Randomized response on the value, then unbiased: (v_z - q sum v) / (p - q)."""
        values = np.array(self.outcomes)
        codes = np.abs(exact.reshape(-1, 1) - values).argmin(axis=1)
        if np.any(values[codes] != exact.reshape(-1)):
            raise ConfigError(
                f"the kernel {self.kernel.name} has values outside {self.outcomes}; name all of "
                f"them"
            )
        response = self._response()
        truth, other = response.chances()
        sent = response.report(codes, dice, lanes, step).column("value")
        return np.asarray((values[sent] - other * values.sum()) / (truth - other))


def pairings(n: int, rounds: int, pairing: Dice, run: int = 0) -> Ints:
    """P independent uniform pairings of n users, n even  # (P, n / 2, 2)."""
    if n < 2 or n % 2:
        raise ConfigError(
            f"users are cut into pairs, so their number must be even and at least 2, found {n}; "
            "leave one out by a public draw"
        )
    keys = pairing.words("two-party pairs", np.arange(n), run, 0, rounds)  # (n, P)
    return np.argsort(keys, axis=0, kind="stable").T.reshape(rounds, n // 2, 2)


def mean_squared_error(
    n: int, rounds: int, epsilon: float, zeta_1: float, zeta_2: float, span: float = 1.0
) -> float:
    """E(U^ - U)^2 with Laplace noise (perso:LDP-10, corrected): zeta_1 = Var E[h | X1], zeta_2 =
    Var h, R = span.

    >>> round(mean_squared_error(1000, 5, 1.0, 0.02, 0.1), 10)
    0.0201040961
    """
    shared = 2 * (rounds - 1) * (1 - 1 / (n - 1)) * zeta_1 + (1 + (rounds - 1) / (n - 1)) * zeta_2
    return 2 / (rounds * n) * shared + 4 * rounds * span**2 / (n * epsilon**2)


def choose_rounds(zeta_1: float, zeta_2: float, n: int, epsilon: float, span: float = 1.0) -> int:
    """The P with the least error.

    >>> choose_rounds(0.02, 0.1, 1000, 1.0), choose_rounds(0.02, 0.1, 1000, 20.0), choose_rounds(0.05, 0.2, 10**4, 8.0)
    (1, 3, 2)
    """
    # f(P) = A / P + B P + const is convex: the answer is beside sqrt(A / B).
    gain = max(0.0, 2 / n * (-2 * (1 - 1 / (n - 1)) * zeta_1 + (1 - 1 / (n - 1)) * zeta_2))
    near = int(math.sqrt(gain * n * epsilon**2 / (4 * span**2)))
    return min(
        (max(1, near - 1), max(1, near), near + 1, near + 2),
        key=lambda rounds: mean_squared_error(n, rounds, epsilon, zeta_1, zeta_2, span),
    )
