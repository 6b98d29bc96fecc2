"""The AUC of scores and labels that nobody shows: GOPA counts users by class and cell of a public
grid.

    P_a, N_b: counts of positives and negatives by cell, each with noise N(0, s^2)
    AUC = T / (P N),   T = sum over cells of K_ab P_a N_b,   K_ab = 1 above, 0 below, `tie` in the same cell

T - A P N has mean 0 at the true A, and variance at most
    v(A) = s^2 (sum_a (U_a - A N)^2 + sum_b (V_b - A P)^2),   U = K N, V = K' P, noisy counts plugged in
(the noise in U and V makes v larger than the variance on average, never smaller). The interval are
all A with |T - A P N| <= z sqrt(v(A)), as in Fieller's theorem: the roots of a quadratic. Its low
end counts ties within a cell as lost, its high end as won, so it covers the AUC of the scores
themselves, whatever the grid. Labels are private too.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bruit.arrays import Array, Ints
from bruit.errors import ConfigError
from bruit.graphs import Graph
from bruit.privacy.guarantee import Guarantee
from bruit.statistics.average.canceling.counts import PrivateCounts, private_histogram, two_sided
from bruit.tasks.pairs.ranking import two_classes


@dataclass(frozen=True, kw_only=True)
class HistogramAuc:
    """The estimate counts ties within a cell by half; [low, high] covers the AUC of the scores at
    that confidence.

    When the counts of a class drown in noise nothing can be said: the interval is [0, 1] and the
    value nan.
    """

    value: float
    low: float
    high: float
    confidence: float
    users: int
    guarantee: Guarantee


def private_auc(
    scores: Array,
    labels: Ints,
    grid: Array,
    graph: Graph,
    epsilon: float,
    delta: float = 1e-6,
    *,
    seen_by: Sequence[int],
    dropped: Sequence[int] = (),
    rollback: bool = True,
    leaving: float = 0.0,
    confidence: float = 0.95,
    seed: int = 0,
) -> HistogramAuc:
    """The AUC of one (score, label) per user; `grid` are public ascending cuts, the outer cells are
    open.

    A user's score and label may both change: one cell of 2 (len(grid) + 1), see
    `private_histogram`.
    """
    cuts = _checked_grid(grid)
    two_classes(scores, labels)
    if not np.isfinite(scores).all():
        raise ConfigError("a score is nan or infinite; look for missing values")
    cells = len(cuts) + 1
    place = np.searchsorted(cuts, scores, side="right") + cells * (np.asarray(labels) == 1)
    counted = private_histogram(
        place,
        2 * cells,
        graph,
        epsilon,
        delta,
        seen_by=seen_by,
        dropped=dropped,
        rollback=rollback,
        leaving=leaving,
        seed=seed,
    )
    return auc_of_counts(counted, confidence)


def auc_of_counts(counted: PrivateCounts, confidence: float = 0.95) -> HistogramAuc:
    """The AUC and its interval from counts of negatives by cell, then of positives by cell."""
    negative, positive = np.split(counted.counts, 2)
    reach = two_sided(confidence)
    value, low, high = interval(positive, negative, counted.sigma, reach)
    return HistogramAuc(
        value=value,
        low=low,
        high=high,
        confidence=confidence,
        users=counted.users,
        guarantee=counted.guarantee,
    )


def interval(
    positive: Array, negative: Array, sigma: float, reach: float
) -> tuple[float, float, float]:
    """Estimate, low and high end from noisy counts; nan, 0 and 1 when a class drowns in noise."""
    total = positive.sum() * negative.sum()
    lost, half, won = (_solved(positive, negative, tie, sigma, reach) for tie in (0.0, 0.5, 1.0))
    if lost is None or half is None or won is None:
        return math.nan, 0.0, 1.0
    value = _pairs(positive, negative, 0.5)[0] @ positive / total
    return min(max(float(value), 0.0), 1.0), max(lost[0], 0.0), min(won[1], 1.0)


def _pairs(positive: Array, negative: Array, tie: float) -> tuple[Array, Array]:
    """U: negatives below each cell of positives; V: positives above each cell of negatives
    # (cells,), (cells,)."""
    below = np.cumsum(negative) - negative + tie * negative
    above = positive[::-1].cumsum()[::-1] - positive + tie * positive
    return below, above


def _solved(
    positive: Array, negative: Array, tie: float, sigma: float, reach: float
) -> tuple[float, float] | None:
    """All A with (T - A P N)^2 <= z^2 v(A): between two roots, or everything (None)."""
    below, above = _pairs(positive, negative, tie)
    p, n, won, cells = positive.sum(), negative.sum(), below @ positive, len(positive)
    noise = (reach * sigma) ** 2
    a = (p * n) ** 2 - noise * cells * (p**2 + n**2)
    b = won * p * n - noise * (n * below.sum() + p * above.sum())
    c = won**2 - noise * (below @ below + above @ above)
    if a <= 0 or p <= 0 or n <= 0:
        return None
    root = math.sqrt(max(b * b - a * c, 0.0))
    return float((b - root) / a), float((b + root) / a)


def _checked_grid(grid: Array) -> Array:
    cuts = np.asarray(grid, np.float64)
    if (
        cuts.ndim != 1
        or not len(cuts)
        or not np.isfinite(cuts).all()
        or not (np.diff(cuts) > 0).all()
    ):
        raise ConfigError(
            f"a grid is a list of ascending numbers, at least one, found {np.array2string(cuts)}"
        )
    return cuts
