"""Power: would such an audit have seen a known bug? Measured on its own scores, with the bug
planted.

The audit runs once more with the bug behind the door, and its tests are applied to what the
observers then see. It counts hits and false alarms, or the gap of the scores where they are normal.
From these follow confidence limits for how far apart the bug puts the two data sets. The power is
the fraction of fresh audits of the same size that would refute the claim at these limits. Nothing
is computed from the claim: where a claim is loose, the power says so.

    power >= P(bound(Binomial(N, p), Binomial(N, q)) > claim),     p, q: Clopper-Pearson limits of hits and false alarms
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bruit.adversary.audits.bounds import Bound, count_bound, mu_bound
from bruit.privacy.toolbox.gaussian import mu_of
from bruit.randomness import Replay

AUDITS = 1000  # simulated at the limits
CONFIDENCE = 0.95
"""Of a stated power: what was measured on the planted runs may be better than the truth with the
remaining chance."""


@dataclass(frozen=True, kw_only=True)
class Planted:
    """A bug that was planted, where, whether this audit refuted the claim with it, and how many
    like it would."""

    bug: str
    world: str
    refuted: bool
    power: float
    confidence: float
    trials: int

    def __str__(self) -> str:
        seen = "was refuted here" if self.refuted else "was not refuted here"
        return (
            f"{self.bug}, planted on {self.world}: {seen}; at least {math.floor(100 * self.power)}"
            f" % of such audits would ({100 * self.confidence:g} % confidence)"
        )


def power(bounds: Sequence[tuple[Bound, float]], confidence: float = CONFIDENCE) -> float:
    """The fraction of such audits that refute, at least: the best of the bounds, each beside what
    was claimed at its delta; the error of the limits is shared among them."""
    if not bounds:
        return 0.0
    error = (1.0 - confidence) / len(bounds)
    best = max(
        _fitting(bound, claimed, error)
        if bound.method == "Gaussian fit"
        else _counting(bound, claimed, error)
        for bound, claimed in bounds
    )
    return min(best, 1 - 1 / AUDITS)  # so many simulated audits show no more


def _counting(bound: Bound, claimed: float, error: float) -> float:
    from scipy.special import betaincinv
    from scipy.stats import binom

    (k, of_hits), (f, of_alarms) = bound.hits, bound.alarms
    if not of_hits or not claimed < math.inf:
        return 0.0
    p = float(betaincinv(k, of_hits - k + 1, error / 2)) if k else 0.0
    q = float(betaincinv(f + 1, of_alarms - f, 1 - error / 2)) if f < of_alarms else 1.0
    draws = Replay(23).uniform("power", np.arange(AUDITS), 0, 0, 2)
    found = count_bound(
        binom.ppf(draws[:, 0], of_hits, p),
        of_hits,
        binom.ppf(draws[:, 1], of_alarms, q),
        of_alarms,
        bound.delta,
        bound.confidence,
    )
    return float((found > claimed).mean())


def _fitting(bound: Bound, claimed: float, error: float) -> float:
    from scipy.special import ndtri
    from scipy.stats import chi2

    if not claimed < math.inf or math.isnan(bound.reach):
        return 0.0
    if bound.reach == math.inf:
        return 1.0
    mu, freedom = max(mu_bound(bound.reach, bound.trials, 1 - error), 0.0), 2 * bound.trials - 2
    draws = Replay(23).uniform("power", np.arange(AUDITS), 0, 0, 2)
    gap = mu + ndtri(draws[:, 0]) * math.sqrt(2 / bound.trials)
    measured = gap / np.sqrt(chi2.ppf(draws[:, 1], freedom) / freedom)
    shrink, shift = (
        mu_bound(1.0, bound.trials, bound.confidence),
        mu_bound(0.0, bound.trials, bound.confidence),
    )
    return float((measured * (shrink - shift) + shift > mu_of(claimed, bound.delta)).mean())
