"""Membership: was this record among those a model was learned from? A likelihood ratio fitted on
shadow runs.

The attacker knows the algorithm and records like the private ones. It learns `shadows` models, each
on a random half of the candidate records, and for every candidate fits a normal law to the models'
margins with it inside and outside:

    score = log N(margin; inside) - log N(margin; outside)          (Carlini et al. 2022, arXiv:2112.03570: LiRA)

A positive score says "member". The model may come from any algorithm: it is learned by a function
the caller gives.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from bruit.arrays import Array, Bools
from bruit.errors import ConfigError
from bruit.on.place import in_order
from bruit.randomness import Replay

Learner = Callable[[Bools, int], Array]
Margin = Callable[[Array], Array]
Progress = Callable[[int], None]


class MembershipScore(NamedTuple):
    """How good the attack was: accuracy of the sign, area under the curve, hits at a low rate of
    false alarms (1 % if nothing else is asked), and the gain of the sign: hits minus false alarms.
    Guessing gives 0.5, 0.5, the rate, 0."""

    accuracy: float
    auc: float
    hits: float
    gain: float


@dataclass(frozen=True, eq=False)
class Membership:
    """Log-odds of every candidate record to be a member."""

    odds: Array  # (candidates,)

    @property
    def members(self) -> Bools:
        return self.odds > 0

    def score(self, truth: Bools, false_alarms: float = 0.01) -> MembershipScore:
        """Compare with who really was inside."""
        from scipy.stats import rankdata

        if np.shape(truth) != self.odds.shape or truth.all() or not truth.any():
            raise ConfigError(
                "a score needs the truth about every candidate, with some inside and some outside"
            )
        inside, outside = self.odds[truth], self.odds[~truth]
        rank = rankdata(np.concatenate((outside, inside)))
        auc = (rank[len(outside) :].sum() - inside.size * (inside.size + 1) / 2) / (
            inside.size * outside.size
        )
        cut = np.quantile(outside, 1 - false_alarms, method="higher")
        correct = float((self.members == truth).mean())
        gain = float((inside > 0).mean() - (outside > 0).mean())
        return MembershipScore(correct, float(auc), float((inside > cut).mean()), gain)


@dataclass(frozen=True, eq=False)
class Shadows:
    """Margins of every candidate under models whose records the attacker chose: what a model is
    compared with."""

    margins: Array  # (shadows, candidates)
    inside: Bools  # (shadows, candidates)
    margin: Margin

    def attack(self, model: Array) -> Membership:
        """Which candidates was this model (one or more rows) learned from?"""
        found = _margins(self.margin, model, self.margins.shape[1])
        return Membership(_normal_odds(found, self.margins, self.inside))


@dataclass(frozen=True)
class Learned:
    """The model of one choice of records and one seed."""

    learn: Learner

    def __call__(self, asked: tuple[Bools, int]) -> Array:
        return self.learn(*asked)


def _counted(progress: Progress) -> Callable[[int, int], None]:
    return lambda done, _: progress(done)


def shadow_runs(
    learn: Learner,
    margin: Margin,
    candidates: int,
    shadows: int = 32,
    seed: int = 0,
    progress: Progress | None = None,
) -> Shadows:
    """Learn `shadows` models, each on a random half of the candidates; every candidate is inside
    half of the time.

    learn(inside, seed) -> model: runs the algorithm with the candidates that are `inside` among its
    records, e.g.
        lambda inside, seed: br.run(algorithm, graph, task_of(inside), privacy=noise, steps=50, seed=seed).estimates[:1]
    margin(model) -> (candidates,): how sure the model is of each candidate's label, larger when
    surer, e.g. y <x, w>.
    """
    if shadows < 4:
        raise ConfigError(
            f"normal laws with and without a record need at least 4 shadow runs, found {shadows}"
        )
    if candidates < 1:
        raise ConfigError(f"there is nothing to attack: {candidates} candidate records")
    inside = (
        Replay(seed).words("shadows", np.arange(-(-shadows // 2)), 0, 0, candidates) & np.uint64(1)
        > 0
    )
    inside = np.concatenate((inside, ~inside))[:shadows]
    margins = np.empty(inside.shape)
    asked = [(row, seed + 1 + number) for number, row in enumerate(inside)]
    told = None if progress is None else _counted(progress)
    for number, model in enumerate(in_order(Learned(learn), asked, told)):
        margins[number] = _margins(margin, model, candidates)
    return Shadows(margins, inside, margin)


def membership(
    model: Array, learn: Learner, margin: Margin, candidates: int, shadows: int = 32, seed: int = 0
) -> Membership:
    """Which candidate records was this model (one or more rows) learned from? `learn` and `margin`
    as `shadow_runs`."""
    return shadow_runs(learn, margin, candidates, shadows, seed).attack(model)


def _margins(margin: Margin, model: Array, candidates: int) -> Array:
    values = np.asarray(margin(np.asarray(model, np.float64)), np.float64)
    if values.shape != (candidates,) or not np.isfinite(values).all():
        raise ConfigError(
            f"a margin gives one finite number for each of {candidates} candidates, found shape"
            f" {values.shape}"
        )
    return values


def _normal_odds(found: Array, margins: Array, inside: Bools) -> Array:
    """Log-ratio of two normal laws per candidate; with few shadow runs one variance serves both and
    all candidates."""
    counts = inside.sum(axis=0), (~inside).sum(axis=0)
    if min(counts[0].min(), counts[1].min()) < 2:
        raise ConfigError(
            "some candidate was nearly always inside or outside of the shadow runs; use more of "
            "them"
        )
    weights = [inside / counts[0], ~inside / counts[1]]
    means = [(margins * weight).sum(axis=0) for weight in weights]
    spreads = [
        ((margins - mean) ** 2 * weight).sum(axis=0)
        for mean, weight in zip(means, weights, strict=True)
    ]
    if len(margins) < 64:
        pooled = (spreads[0] + spreads[1]) / 2
        spreads = [pooled, pooled]
    floor = 1e-12 * (1.0 + float(np.abs(margins).max()) ** 2)
    logs = [
        -((found - mean) ** 2) / (2 * (spread + floor)) - np.log(spread + floor) / 2
        for mean, spread in zip(means, spreads, strict=True)
    ]
    return np.asarray(logs[0] - logs[1])


def advantage(epsilon: float, delta: float = 0.0) -> float:
    """The most any attack on one record can win under (epsilon, delta)-DP: hits minus false alarms.

    (exp(epsilon) - 1 + 2 delta) / (exp(epsilon) + 1)
    """
    if epsilon > 700:
        return 1.0
    return min(1.0, (math.expm1(epsilon) + 2 * delta) / (math.exp(epsilon) + 1))
