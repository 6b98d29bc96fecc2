"""All pairs of a run in one table, and its summary: worst, typical and mean pair beside local DP."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bruit.arrays import Array
from bruit.privacy.events import Adjacency
from bruit.privacy.guarantee import Hypothesis, Status

PAIRS = ("worst pair", "typical pair (median)", "mean over pairs (a summary, protects nobody)")


def all_pairs_alike(m: Array) -> bool:
    """Whether there are pairs, and all have the same loss."""
    off = m[~np.eye(len(m), dtype=bool)]
    return bool(off.size) and bool((off == off[0]).all())


def worst_median_mean(m: Array) -> tuple[float, float, float]:
    """Worst, median and mean of a pairwise matrix (mean as max over observers of the mean over
    peers)."""
    off = m[~np.eye(len(m), dtype=bool)]
    if not off.size:
        return 0.0, 0.0, 0.0
    return float(off.max()), float(np.median(off)), float(np.max(np.nansum(m, axis=0)) / len(m))


@dataclass(frozen=True, kw_only=True)
class Summary:
    """The privacy table of a run. The mean protects no individual pair: it is a summary, printed
    beside the worst. Where releases are `masked`, the local epsilon is what would be left if all
    masks were opened one day. A loss is nan where noise is not Gaussian."""

    theorem: str
    spec: str
    status: Status
    level: str
    delta: float
    noise_multiplier: float
    losses: tuple[float, float, float]  # worst, typical (median), mean
    epsilons: tuple[float, float, float]
    local_epsilon: float
    local_loss: float
    hypotheses: tuple[Hypothesis, ...]
    refused: tuple[str, ...]
    adjacency: Adjacency = "replace"
    masked: bool = False
    alike: bool = False  # every pair has the same loss

    def rows(self) -> list[tuple[str, float, float]]:
        """What a table shows: a name, its loss, its epsilon. What is the same for all pairs is said
        once."""
        named = list(zip(PAIRS, self.losses, self.epsilons, strict=True))
        if self.alike:
            named = [("every pair: all are alike", self.losses[0], self.epsilons[0])]
        return [*named, (self.last_row, self.local_loss, self.local_epsilon)]

    @property
    def last_row(self) -> str:
        """What the local epsilon is, in words."""
        return "if all masks were opened" if self.masked else "local DP alone would say"


@dataclass(frozen=True, eq=False)
class PairTable:
    """All pairs of a run and their summary; `losses` is None where pairs have none of their own,
    for the `reason`. `rounding` is R of every pair."""

    summary: Summary
    losses: Array | None  # (n, n)
    reason: str
    rounding: Array | None = None  # (n, n)
