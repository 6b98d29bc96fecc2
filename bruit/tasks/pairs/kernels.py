"""Kernels of pairwise statistics: symmetric functions h(x, y) of two points, evaluated on whole
blocks (perso:PAIR-1).

    variance (x - y)^2 / 2        Gini |x - y|        Wilcoxon 1[x + y > 0]        duplicates 1[x = y]
    AUC      1[s > s', y > y'] + 1[s < s', y < y']          points (score, label)
    Kendall  sign(x - y) sign(x' - y')                      points (x, x')
    scatter  |x - y| 1[same cluster]                        points (coordinates ..., cluster)

A point is a row; h takes two arrays of rows (..., d) that broadcast, and gives numbers (...). The
Renyi entropy of order 2 is -log of the U-statistic of duplicates.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bruit.arrays import Array
from bruit.errors import ConfigError
from bruit.tasks.pairs.ranking import concordance, equal_pairs, sum_of_distances

PROBES = 64  # points on which a kernel is tried for symmetry


@dataclass(frozen=True)
class Kernel:
    """A function of two points; columns = 0: points of any length; low and high: between which its
    values lie.

    total: the sum over all pairs u < v by a faster way than pair by pair, if there is one.
    """

    name: str
    function: Callable[[Array, Array], NDArray[Any]]
    _: KW_ONLY
    columns: int = 1
    low: float = -math.inf
    high: float = math.inf
    total: Callable[[Array], float] | None = None

    def __call__(self, x: Array, y: Array) -> Array:
        """h on rows (..., d) that broadcast  # (...)."""
        return np.asarray(self.function(x, y), dtype=np.float64)

    @property
    def span(self) -> float:
        """high - low: what one pair can change; refused where nobody declared it."""
        if not math.isfinite(self.high - self.low):
            raise ConfigError(
                f"the kernel {self.name} declares no bounds, but a guarantee needs them;"
                " give low= and high= of its values"
            )
        return self.high - self.low


def as_points(points: Array, kernel: Kernel) -> Array:
    """Finite rows (n, d) of the length the kernel asks for; a list of numbers is a column."""
    rows = np.asarray(points, dtype=np.float64)
    rows = rows[:, None] if rows.ndim == 1 else rows
    if rows.ndim != 2 or len(rows) < 2:
        raise ConfigError(
            f"a pairwise statistic needs at least two points as rows, found shape {rows.shape}"
        )
    if kernel.columns and rows.shape[1] != kernel.columns:
        raise ConfigError(
            f"the kernel {kernel.name} takes points of {kernel.columns} numbers, found "
            f"{rows.shape[1]}"
        )
    if not np.isfinite(rows).all():
        row = int(np.flatnonzero(~np.isfinite(rows).all(axis=1))[0])
        raise ConfigError(
            f"point {row} is {rows[row].tolist()}; remove points with missing or infinite numbers"
        )
    return rows


def check_kernel(kernel: Kernel, points: Array) -> None:
    """Refuse a kernel that is not vectorized, not symmetric or outside its bounds, as seen on some
    of the points."""
    rows = as_points(points, kernel)
    chosen = rows[np.linspace(0, len(rows) - 1, min(PROBES, len(rows))).astype(np.int64)]
    values = kernel(chosen[:, None], chosen[None, :])
    if values.shape != (len(chosen), len(chosen)):
        raise ConfigError(
            f"the kernel {kernel.name} gave shape {values.shape} for blocks of {len(chosen)} x "
            f"{len(chosen)} pairs; it must work on arrays of rows (..., d) and give (...)"
        )
    if not np.isfinite(values).all():
        raise ConfigError(f"the kernel {kernel.name} is not finite on the points given")
    apart = np.abs(values - values.T)
    if apart.max() > 1e-9 * max(1.0, float(np.abs(values).max())):
        u, v = (int(place) for place in np.unravel_index(int(apart.argmax()), apart.shape))
        raise ConfigError(
            f"the kernel {kernel.name} is not symmetric: h(x, y) = {values[u, v]:g} but h(y, x) = "
            f"{values[v, u]:g} at x = {chosen[u].tolist()}, y = {chosen[v].tolist()}; "
            "use (h(x, y) + h(y, x)) / 2"
        )
    check_bounds(kernel, values[~np.eye(len(chosen), dtype=bool)])


def check_bounds(kernel: Kernel, values: Array) -> None:
    """Refuse values outside what the kernel declares: noise made for the declared span would not
    cover them."""
    if values.size and (values.min() < kernel.low or values.max() > kernel.high):
        raise ConfigError(
            f"the kernel {kernel.name} takes values {values.min():g}..{values.max():g} outside its "
            f"bounds {kernel.low:g}..{kernel.high:g}; declare wider ones"
        )


def variance() -> Kernel:
    """(x - y)^2 / 2: its U-statistic is the unbiased variance."""
    return Kernel(
        "variance",
        lambda x, y: (x - y)[..., 0] ** 2 / 2,
        total=lambda rows: float(np.var(rows[:, 0], ddof=1)) * len(rows) * (len(rows) - 1) / 2,
    )


def gini() -> Kernel:
    """|x - y|: Gini's mean difference. Bounded only once the points are: give it low and high
    then."""
    return Kernel(
        "gini",
        lambda x, y: np.abs(x - y)[..., 0],
        low=0.0,
        total=lambda rows: sum_of_distances(rows[:, 0]),
    )


def kendall() -> Kernel:
    """sign(x - y) sign(x' - y'): concordant pairs minus discordant ones (tau-a)."""

    def function(x: Array, y: Array) -> Array:
        apart = np.sign(x - y)
        return np.asarray(apart[..., 0] * apart[..., 1])

    def total(rows: Array) -> float:
        agree, disagree = concordance(rows[:, 0], rows[:, 1])
        return float(agree - disagree)

    return Kernel("kendall", function, columns=2, low=-1.0, high=1.0, total=total)


def auc() -> Kernel:
    """1 for pairs that score and label order alike: points (score, label). See
    `bruit.tasks.pairs.auc`."""

    def function(x: Array, y: Array) -> Array:
        apart = np.sign(x - y)
        return np.asarray(apart[..., 0] * apart[..., 1] > 0)

    return Kernel(
        "auc",
        function,
        columns=2,
        low=0.0,
        high=1.0,
        total=lambda rows: float(concordance(rows[:, 0], rows[:, 1])[0]),
    )


def wilcoxon() -> Kernel:
    """1[x + y > 0]: Wilcoxon's signed ranks, the share of pairs whose middle is positive."""

    def total(rows: Array) -> float:
        values = np.sort(rows[:, 0])
        partners = len(values) - np.searchsorted(values, -values, side="right")  # v with x_v > -x_u
        return float((int(partners.sum()) - int((values > 0).sum())) // 2)

    return Kernel("wilcoxon", lambda x, y: (x + y)[..., 0] > 0, low=0.0, high=1.0, total=total)


def scatter() -> Kernel:
    """Distance of the points of one cluster, 0 between clusters: points (coordinates ...,
    cluster)."""

    def function(x: Array, y: Array) -> Array:
        apart = np.sqrt((np.square(x - y)[..., :-1]).sum(axis=-1))
        return np.asarray(apart * (x[..., -1] == y[..., -1]))

    return Kernel("scatter", function, columns=0, low=0.0)


def duplicates() -> Kernel:
    """1[x = y]: the chance that two users hold the same point; -log of it is the Renyi entropy of
    order 2."""
    return Kernel(
        "duplicates",
        lambda x, y: (x == y).all(axis=-1),
        columns=0,
        low=0.0,
        high=1.0,
        total=lambda rows: float(equal_pairs(rows)),
    )


KERNELS: dict[str, Callable[[], Kernel]] = {
    "variance": variance,
    "gini": gini,
    "kendall": kendall,
    "auc": auc,
    "wilcoxon": wilcoxon,
    "scatter": scatter,
    "duplicates": duplicates,
}
