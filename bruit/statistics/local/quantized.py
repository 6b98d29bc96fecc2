"""A U-statistic from one K-ary report per user: quantize, randomize, undo both in the kernel
(perso:LDP-5, LDP-6).

    A_ij = h(r_i, r_j),    b = (beta / k) 1,    A^ = (1 - beta)^-2 (I - 1 b^T) A (I - 1 b^T)^T
    U^ = (v^T A^ v - sum_i v_i A^_ii) / (n (n - 1)),    v: counts of the reports

Unbiased for the statistic of the quantized points, since E[e_z - b] = (1 - beta) e_x. For h in [0,
1]:

    Var(U^) <= 1 / (n (1-beta)^2) + (1+beta)^2 / (2 n (n-1) (1-beta)^4)
    bias^2 <= L^2 / k^2 (h L-Lipschitz),    4 L^2 / k^2 + 4 L^4 / k^4 (density of the points L-Lipschitz)

so k is about n^(1/4) sqrt(L epsilon). A user reports once, whatever the number of pairs. Shown: the
report, to all.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal, final

import numpy as np

from bruit.arrays import Array, Ints
from bruit.errors import ConfigError
from bruit.privacy.events import Event
from bruit.privacy.formulas.randomized_response import gamma
from bruit.randomness import Dice
from bruit.statistics.local.estimates import Estimate, quantile
from bruit.statistics.local.k_ary import KAry
from bruit.statistics.local.protocol import check_range
from bruit.statistics.local.reports import Reports
from bruit.tasks.pairs.kernels import Kernel, check_kernel

MANY = 30  # reports from which the variance is measured; below, it is bounded


@final
@dataclass(frozen=True, eq=False)
class QuantizedStatistic:
    """The kernel on k representatives, and the epsilon of the one report of each user."""

    matrix: Array  # (k, k)
    epsilon: float

    def __post_init__(self) -> None:
        matrix = np.asarray(self.matrix)
        if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or not np.isfinite(matrix).all():
            raise ConfigError(
                f"a quantized kernel is a finite square matrix, found shape {matrix.shape}"
            )
        KAry(len(matrix), self.epsilon)

    @property
    def protocol(self) -> KAry:
        """What a client runs on the number of its bin."""
        return KAry(len(self.matrix), self.epsilon)

    def report(self, bins: Any, dice: Dice, users: Ints | None = None, step: int = 0) -> Reports:
        """The client side: the number of one's bin, randomized once for all pairs."""
        return self.protocol.report(bins, dice, users, step)

    def event(self) -> Event:
        """What the report costs: epsilon, for however many pairs."""
        return self.protocol.event()

    def debiased(self) -> Array:
        """A^, symmetric  # (k, k)."""
        truth, other = self.protocol.chances()
        half = np.asarray(self.matrix, dtype=np.float64) - other * np.sum(self.matrix, axis=0)
        undone = (half - other * half.sum(axis=1, keepdims=True)) / (truth - other) ** 2
        return np.asarray((undone + undone.T) / 2)

    def estimate(self, reports: Reports, confidence: float = 0.95) -> Estimate:
        """The aggregator side, from counts alone: O(k^2 + n)."""
        self.protocol.check(reports)
        rows = self.protocol.valid(reports)
        counts = self.protocol.supports(reports, rows).astype(np.float64)
        n = int(counts.sum())
        refused = len(reports) - n + reports.unreadable
        if n < 2:
            raise ConfigError(
                f"a pairwise statistic needs at least two reports, found {n} and {refused} refused "
                f"ones"
            )
        kernel = self.debiased()
        means = kernel @ counts
        value = float(counts @ means - counts @ np.diag(kernel)) / (n * (n - 1))
        error = math.sqrt(
            min(
                self._most_variance(kernel, n),
                _variance(kernel, counts, n) if n >= MANY else math.inf,
            )
        )
        least, most = float(np.min(self.matrix)), float(np.max(self.matrix))
        near, half = (
            min(max(value, least), most),
            quantile(confidence) * error,
        )  # near: no farther from the statistic
        return Estimate(
            value=value,
            error=error,
            low=max(near - half, least),
            high=min(near + half, most),
            confidence=confidence,
            reports=n,
            refused=refused,
        )

    def _most_variance(self, kernel: Array, n: int) -> float:
        """Hoeffding's variance with the largest zeta_1 and zeta_2 that any users can have.

        zeta_1 is the variance of E[A^(z, z') | z], a mean over the other user's bin of A made
        unbiased in z alone: a quarter of the squared range of its worst column. zeta_2 <= E A^(z,
        z')^2 for the worst pair of bins.
        """
        truth, other = self.protocol.chances()
        half = (np.asarray(self.matrix, dtype=np.float64) - other * np.sum(self.matrix, axis=0)) / (
            truth - other
        )
        zeta_1 = float((half.max(axis=0) - half.min(axis=0)).max()) ** 2 / 4
        chances = np.full(kernel.shape, other) + (truth - other) * np.eye(len(kernel))
        zeta_2 = float((chances @ kernel**2 @ chances).max())
        return (4 * (n - 2) * zeta_1 + 2 * zeta_2) / (n * (n - 1))


def quantized(
    kernel: Kernel, k: int, epsilon: float, low: float = 0.0, high: float = 1.0
) -> QuantizedStatistic:
    """A kernel of numbers between low and high on k equal bins, each represented by its middle."""
    points = midpoints(k, low, high)[:, None]
    check_kernel(kernel, points)
    return QuantizedStatistic(kernel(points[:, None], points[None, :]), epsilon)


def midpoints(k: int, low: float = 0.0, high: float = 1.0) -> Array:
    """The middles of k equal bins  # (k,)."""
    return np.asarray(low + (high - low) * (np.arange(k) + 0.5) / k)


def bins_of(values: Any, k: int, low: float = 0.0, high: float = 1.0) -> Ints:
    """The number of each value's bin, the upper end in the last one; a value outside is refused."""
    found = check_range(values, low, high)
    return np.minimum((found - low) / (high - low) * k, k - 1).astype(np.int64)


def variance_bound(n: int, k: int, epsilon: float) -> float:
    """The bound on the variance of U^ for h in [0, 1], whatever the data (perso:LDP-6).

    >>> round(variance_bound(1000, 3, 1.0), 10)
    0.0076162763
    """
    beta = gamma(k, epsilon)
    return 1 / (n * (1 - beta) ** 2) + (1 + beta) ** 2 / (2 * n * (n - 1) * (1 - beta) ** 4)


def error_bound(
    n: int,
    k: int,
    epsilon: float,
    lipschitz: float,
    smooth: Literal["kernel", "density"] = "kernel",
) -> float:
    """Variance plus squared quantization bias for h in [0, 1]; what is L-Lipschitz: h in each
    argument, or the density.

    Kernels that jump (an AUC, a tau) need a smooth density of the points instead (quoted from the
    source).

    >>> round(error_bound(10_000, 10, 1.0, 1.0), 10)
    0.0146880771
    """
    if smooth not in ("kernel", "density"):
        raise ConfigError(f"either the kernel or the density is Lipschitz, found {smooth!r}")
    slope = lipschitz / k
    return variance_bound(n, k, epsilon) + (
        slope**2 if smooth == "kernel" else 4 * slope**2 + 4 * slope**4
    )


def choose_bins(n: int, epsilon: float, lipschitz: float = 1.0) -> int:
    """The number of bins that balances noise and quantization: n^(1/4) sqrt(L epsilon), at least 2.

    >>> choose_bins(10_000, 1.0)
    10
    """
    if n < 2 or not (epsilon > 0 and lipschitz > 0):
        raise ConfigError(
            f"bins are chosen for n >= 2 users, epsilon > 0 and L > 0, found {n}, {epsilon}, "
            f"{lipschitz}"
        )
    return max(2, int(np.rint(math.sqrt(math.sqrt(n)) * math.sqrt(lipschitz * epsilon))))


def _variance(kernel: Array, counts: Array, n: int) -> float:
    """Hoeffding's variance of a U-statistic, 4 (n-2) / (n (n-1)) zeta_1 + 2 / (n (n-1)) zeta_2,
    from the counts; zeta_1 with two standard errors of its measurement on top: it decides, and
    reports are often lopsided."""
    shares = counts / n
    first = kernel @ shares
    mean = float(shares @ first)
    zeta_1 = float(shares @ (first - mean) ** 2)
    zeta_1 += 2 * math.sqrt(max(0.0, float(shares @ (first - mean) ** 4) - zeta_1**2) / n)
    zeta_2 = float(shares @ kernel**2 @ shares) - mean**2
    return max(0.0, (4 * (n - 2) * zeta_1 + 2 * zeta_2) / (n * (n - 1)))
