"""The constant step of a walk from its utility statement, and the statement itself (walk:RW-7,
Theorem 7.6 corrected).

    Lambda = log(T mu^2 D / (39 L tau zeta^2)),   rate = min(1 / L, Lambda / (T mu))

    E|x_T - x*|^2 <= 2 (1 - rate mu)^T D + rate (39 L tau zeta^2 / mu^2 + v / mu)                        (D.6)

for a mu-strongly convex, L-smooth objective, D = |x_0 - x*|^2, tau the mixing time of the walk,
zeta a bound on the gradients of all peers at x*, v = d sigma^2 + the variance of sampled records.
All of it is declared before the run or public: never read off the records. The statement as
written,

    2 exp(-T mu / L) D + (39 tau zeta^2 L / (mu^3 T) + v / (mu^2 T)) Lambda

leaves out 2 exp(-Lambda) D = 78 L tau zeta^2 / (T mu^2), which D.6 has where the rate is below 1 /
L. With Lambda <= 0 the walk is too short for the statement: rate 1 / L and no bound.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, inf, isfinite, log

from bruit.errors import ConfigError
from bruit.graphs import Graph, GraphSequence, mixing_time
from bruit.tasks import Constants


@dataclass(frozen=True, kw_only=True)
class WalkUtility:
    """What the statement knows: L, mu, D, tau, zeta^2 and v.

    >>> known = WalkUtility(smoothness=1, convexity=0.1, distance=10, mixing=8, heterogeneity=0.5, variance=5 * 4 * 4)
    >>> round(known.rate(10_000), 11), round(known.bound(10_000), 10)          # walk:RW-7
    (0.00185789927, 30.4695480564)
    """

    smoothness: float
    convexity: float
    distance: float
    mixing: float
    heterogeneity: float
    variance: float

    def __post_init__(self) -> None:
        if not 0 < self.convexity <= self.smoothness < inf:
            found = f"smoothness {self.smoothness:g} and strong convexity {self.convexity:g}"
            raise ConfigError(
                "the utility statement of a walk needs smoothness >= strong convexity > 0, found"
                f" {found}; give the task a regularizer (l2)"
            )
        sizes = (self.distance, self.mixing, self.heterogeneity)
        if not all(0 < size < inf for size in sizes) or not 0 <= self.variance < inf:
            found = f"distance {self.distance:g}, mixing time {self.mixing:g}, heterogeneity {self.heterogeneity:g}"
            raise ConfigError(
                f"the utility statement of a walk needs finite, positive bounds, found {found}"
            )

    def _gain(self, steps: int) -> float:
        """Lambda."""
        if steps < 1:
            raise ConfigError(f"a walk takes at least one step, found {steps}")
        walk = 39 * self.smoothness * self.mixing * self.heterogeneity
        return log(steps * self.convexity**2 * self.distance / walk)

    def rate(self, steps: int) -> float:
        """The constant step size for a walk of that length."""
        gain = self._gain(steps)
        return (
            min(1 / self.smoothness, gain / (steps * self.convexity))
            if gain > 0
            else 1 / self.smoothness
        )

    def bound_at(self, rate: float, steps: int) -> float:
        """The bound D.6 on E|x_T - x*|^2, for any constant step up to 1 / L (walk:RW-7)."""
        if not 0 < rate <= 1 / self.smoothness:
            raise ConfigError(
                f"the statement on walks needs a rate <= 1/L = {1 / self.smoothness:g}, found "
                f"{rate:g}"
            )
        walk = 39 * self.smoothness * self.mixing * self.heterogeneity / self.convexity**2
        start = 2 * (1 - rate * self.convexity) ** steps * self.distance
        return start + rate * (walk + self.variance / self.convexity)

    def bound(self, steps: int) -> float:
        """The statement as written, for that step size; infinite where it says nothing. `bound_at`
        is proven."""
        gain, mu = self._gain(steps), self.convexity
        if gain <= 0:
            return inf
        walk = 39 * self.mixing * self.heterogeneity * self.smoothness / (mu**3 * steps)
        start = 2 * exp(-steps * mu / self.smoothness) * self.distance
        return start + (walk + self.variance / (mu**2 * steps)) * gain


def declared_utility(
    constants: Constants,
    graph: Graph | GraphSequence,
    dim: int,
    *,
    clip: float = inf,
    sigma: float = 0.0,
    bound: float | None = None,
    batch: int | None = None,
) -> WalkUtility:
    """The statement for a task from what it declares: gradients of losses up to G, plus a
    regularizer mu.

    |x*| <= G / mu (or the radius of the walk's ball), |g_v(x*)| <= 2 G; G is the clip where the task declares none.
    """
    if not isinstance(graph, Graph):
        raise ConfigError(f"a token walks on one fixed graph, found {graph.name}; name one")
    if constants.source != "declared":
        raise ConfigError(
            "the step of the utility statement comes from declared constants only, and these were "
            "read off the records;"
            ' normalize the rows (task.rows = "unit"), or give the rate as a number'
        )
    longest = constants.lipschitz if isfinite(constants.lipschitz) else clip
    if not isfinite(longest):
        raise ConfigError(
            "no bound on the gradients is declared; normalize the rows, add privacy, or give a rate"
        )
    mu = constants.strong_convexity
    if not mu > 0:
        raise ConfigError(
            "the step of the utility statement needs a strongly convex objective;"
            " give the task a regularizer (task.l2 > 0), or the rate as a number"
        )
    far = longest / mu if bound is None else min(longest / mu, bound)
    sampled = 0.0 if batch is None else longest**2 / batch
    return WalkUtility(
        smoothness=constants.smoothness,
        convexity=mu,
        distance=far**2,
        mixing=max(1, mixing_time(graph) or 1),
        heterogeneity=(2 * longest) ** 2,
        variance=dim * sigma**2 + sampled,
    )
