"""A pairwise statistic from P noisy pairs per user, each computed by the two users together (perso:LDP-10).

    P independent permutations cut the n users (n even) into pairs; a pair reveals h~ = h + Lap(R P / epsilon)
    U^ = 2 / (P n) * sum of h~
    E(U^ - U)^2 = 2/(P n) [2 (P-1) (1 - 1/(n-1)) zeta_1 + (1 + (P-1)/(n-1)) zeta_2] + 4 P R^2 / (n epsilon^2)

Kernels with few values answer by K-ary randomized response with epsilon / P instead. Each user counts the pairs it
took part in and refuses the one after the P-th. Shown: h~, to everybody; epsilon-DP for each user against all others.

This file is a simulation: nothing is encrypted, and the pair is trusted to show h~ and nothing else. Real circuits
between two holders are `bruit.two_party`, for comparison kernels whose answer is one randomized bit (its own
simulation, with exactly its law, is `bruit.two_party.trusted_pair`). Laplace noise and K-ary answers on more than two
values have no circuit here (perso:LDP-11 describes one for discrete Laplace noise): they are simulated only.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import final

import numpy as np

from bruit.arrays import Array, Ints
from bruit.errors import ConfigError, PrivacyError
from bruit.local_dp.coins import check_epsilon
from bruit.local_dp.estimates import Estimate, quantile
from bruit.local_dp.k_ary import KAry
from bruit.mechanisms.laplace import Laplace
from bruit.privacy.events import BoundedEvent, Event
from bruit.randomness import Dice
from bruit.statistics.kernels import Kernel, as_points, check_bounds, check_kernel


@final
class PairBudget:
    """How many pairs each user took part in; the (P + 1)-th is refused, even one that was aborted and tried again."""

    def __init__(self, users: int, rounds: int) -> None:
        self.rounds = rounds
        self.spent = np.zeros(users, dtype=np.int64)

    def spend(self, pairs: Ints) -> None:
        """Count these executions, before anything of them is shown; refuse them all if one would be too many."""
        more = np.bincount(pairs.reshape(-1), minlength=len(self.spent))
        over = self.spent + more > self.rounds
        if over.any():
            user = int(np.flatnonzero(over)[0])
            raise PrivacyError(f"user {user} already took part in {self.spent[user]} pairs and its budget is for "
                               f"{self.rounds}; another one would cost more than the promised epsilon")
        self.spent += more


@final
@dataclass(frozen=True, eq=False)
class TwoParty:
    """rounds: P, the pairs of each user. outcomes: the values of a discrete kernel, empty for Laplace noise."""

    kernel: Kernel
    epsilon: float
    rounds: int = 1
    outcomes: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        check_epsilon(self.epsilon)
        if isinstance(self.rounds, bool) or not isinstance(self.rounds, int) or not 1 <= self.rounds < 2**16:
            raise ConfigError(f"each user takes part in a whole number of pairs >= 1, found {self.rounds!r}")
        if self.outcomes and len(set(self.outcomes)) < 2:
            raise ConfigError(f"a discrete kernel has at least two values, found {self.outcomes}")
        if not self.outcomes and self.kernel.span <= 0:
            raise ConfigError(f"the bounds of the kernel {self.kernel.name} leave it no room")

    def event(self) -> Event:
        """What all pairs of one user cost together."""
        return BoundedEvent(self.epsilon)

    def answers(
        self, points: Array, dice: Dice, pairing: Dice, budget: PairBudget | None = None, run: int = 0
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
        noisy = self._noise().release(exact.reshape(-1, 1) - middle, dice, lanes, run, 0)[:, 0]
        return np.asarray(middle + noisy.reshape(exact.shape))

    def _noise(self) -> Laplace:
        """Exact Laplace noise on the distance of an answer from the middle of its range."""
        return Laplace(clip=self.kernel.span / 2).calibrate(self.epsilon / self.rounds)

    @property
    def noise_scale(self) -> float:
        """R P / epsilon."""
        return self._noise().scale

    def estimate(self, answers: Array, confidence: float = 0.95) -> Estimate:
        """The aggregator side: the mean of the answers; the interval is that of the population's statistic."""
        count = answers.size
        value = float(answers.mean())
        # Pairs of one permutation are independent; those of different ones share users, so rounds are not pooled.
        spread = float(np.var(answers, axis=1, ddof=1).mean()) if answers.shape[1] > 1 else float(np.var(answers))
        error = math.sqrt(spread / count + self._shared(answers))
        half = quantile(confidence) * error
        return Estimate(value, error, value - half, value + half, confidence, count)

    def _shared(self, answers: Array) -> float:
        """A bound on what the same users in several rounds add: 2 (P - 1) zeta_1 * 2 / (P n), zeta_1 <= zeta_2 / 2."""
        if self.rounds == 1:
            return 0.0
        noise = self.answer_variance()
        zeta_2 = max(0.0, float(np.var(answers)) - noise)
        return (self.rounds - 1) * zeta_2 / answers.size

    def answer_variance(self) -> float:
        """Variance that the noise adds to one answer (at most, for discrete kernels)."""
        if not self.outcomes:
            return 2 * self.noise_scale**2
        truth, other = self._response().chances()
        spread = (max(self.outcomes) - min(self.outcomes)) / (truth - other)
        return (1 - truth) * spread**2

    def _response(self) -> KAry:
        return KAry(len(self.outcomes), self.epsilon / self.rounds)

    def _discrete(self, exact: Array, dice: Dice, lanes: Ints, step: int) -> Array:
        """Randomized response on the value, then unbiased: (v_z - q sum v) / (p - q)."""
        values = np.array(self.outcomes)
        codes = np.abs(exact.reshape(-1, 1) - values).argmin(axis=1)
        if np.any(values[codes] != exact.reshape(-1)):
            raise ConfigError(f"the kernel {self.kernel.name} has values outside {self.outcomes}; name all of them")
        response = self._response()
        truth, other = response.chances()
        sent = response.report(codes, dice, lanes, step).column("value")
        return np.asarray((values[sent] - other * values.sum()) / (truth - other))


def pairings(n: int, rounds: int, pairing: Dice, run: int = 0) -> Ints:
    """P independent uniform pairings of n users, n even  # (P, n / 2, 2)."""
    if n < 2 or n % 2:
        raise ConfigError(f"users are cut into pairs, so their number must be even and at least 2, found {n}; "
                          "leave one out by a public draw")
    keys = pairing.words("two-party pairs", np.arange(n), run, 0, rounds)  # (n, P)
    return np.argsort(keys, axis=0, kind="stable").T.reshape(rounds, n // 2, 2)


def mean_squared_error(
    n: int, rounds: int, epsilon: float, zeta_1: float, zeta_2: float, span: float = 1.0
) -> float:
    """E(U^ - U)^2 with Laplace noise (perso:LDP-10, corrected): zeta_1 = Var E[h | X1], zeta_2 = Var h, R = span.

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
    return min((max(1, near - 1), max(1, near), near + 1, near + 2),
               key=lambda rounds: mean_squared_error(n, rounds, epsilon, zeta_1, zeta_2, span))
