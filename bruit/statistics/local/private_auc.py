"""The AUC of scores that nobody shows: one bit per user, labels public (perso:LDP-7, LDP-9).

    UAUC(p) = H+_{p1} H-_{p0} + UAUC(p0) + UAUC(p1),    0 on leaves;    AUC = UAUC / (n+ n-)
    private: at a node with max(H^+_p, sqrt(a V+)/2) max(H^-_p, sqrt(a V-)/2) < tau = a sqrt(V+ V-) stop, and count
    half of its pairs: 1/2 (H^+_{p0} + H^+_{p1}) (H^-_{p0} + H^-_{p1})

Decisions at a level use that level, values the next one, whose noise is independent. What it says
is epsilon-DP for the score of each user (one bit, level: user, against everybody); labels, hence n+
and n-, are public.

A root that stops counts half of n+ n-, which are public: the estimate is 1/2 and the interval [0,
1].

The interval: given the negatives' tree the estimate is a sum of one term per positive, and the
other way round. The two variances are bounded by the public law of the questions. They add up to a
little more than the variance, since the part of both at once is counted twice. To it are added the
half-counted pairs, which may all be won or all be lost, and half of the pairs within a bin.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple, final

import numpy as np

from bruit.arrays import Array, Bools, Ints, Words
from bruit.errors import ConfigError
from bruit.privacy.events import Event
from bruit.randomness import Dice
from bruit.statistics.local.coins import lanes_of
from bruit.statistics.local.estimates import quantile
from bruit.statistics.local.hierarchical import HadamardTree, Signs
from bruit.statistics.local.walsh import walsh_hadamard
from bruit.tasks.pairs.ranking import Ties, two_classes

SPREAD = 0.75  # fits the simulated errors of perso:EXP-6 within 10 %; a prediction, not a guarantee


@dataclass(frozen=True, kw_only=True)
class AucEstimate:
    """raw may leave [0, 1]; value, low and high are cut to it. recursed and discarded: nodes of the
    two kinds."""

    value: float
    raw: float
    error: float
    low: float
    high: float
    confidence: float
    positives: int
    negatives: int
    recursed: int
    discarded: int
    refused: int = 0


class Sweep(NamedTuple):
    """What one pass over the two trees found."""

    pairs: float  # UAUC
    pieces: list[Bools]  # per level 0..alpha-1: the nodes that were recursed
    halves: list[Bools]  # and those that were counted by half
    doubt: float  # pairs that were counted by half
    ties: float  # estimated pairs within bins that were reached


@final
@dataclass(frozen=True)
class PrivateAuc:
    """A tree of one-bit reports on each class; prune: a > 1; ties within a bin count "zero" or
    "half"."""

    levels: int
    epsilon: float
    prune: float = 4.0
    ties: Ties = "zero"
    seed: int = 0

    def __post_init__(self) -> None:
        HadamardTree(self.levels, self.epsilon, self.seed)
        if not 1 < self.prune < math.inf:
            raise ConfigError(f"the pruning constant a must be above 1, found {self.prune}")

    @property
    def tree(self) -> HadamardTree:
        """The frequency oracle of one class."""
        return HadamardTree(self.levels, self.epsilon, self.seed)

    def event(self) -> Event:
        """What the one bit costs."""
        return self.tree.event()

    def report(self, bins: Any, dice: Dice, users: Ints | None = None, step: int = 0) -> Signs:
        """The client side: one sign for each binned score; labels play no part."""
        return self.tree.report(bins, dice, users, step)

    def estimate(
        self, signs: Any, labels: Array | Ints, users: Ints | None = None, confidence: float = 0.95
    ) -> AucEstimate:
        """The aggregator side; a report that is neither +1 nor -1 is counted and left out."""
        return self.estimate_answers(
            signs, labels, *self.tree.questions(lanes_of(users, len(signs))), confidence
        )

    def estimate_answers(
        self, signs: Any, labels: Array | Ints, level: Ints, row: Words, confidence: float = 0.95
    ) -> AucEstimate:
        """The same from signs and the public questions (level, row) that they answer, wherever
        these came from."""
        signs, labels = np.asarray(signs), np.asarray(labels, dtype=np.float64)
        good = np.isin(signs, (-1, 1))
        two_classes(signs[good], labels[good])
        up, down = (self._side(signs, level, row, good & (labels == sign)) for sign in (1, 0))
        found = sweep(
            up.tree,
            down.tree,
            self.tree.node_variance(up.n),
            self.tree.node_variance(down.n),
            self.prune,
        )
        total = up.n * down.n
        half_ties = found.ties / 2 if self.ties == "half" else 0.0
        raw = (found.pairs + half_ties) / total
        z = quantile(confidence)
        variance = self._variance(up, partner_weights(down.tree, found, True, self.ties), z)
        variance += self._variance(down, partner_weights(up.tree, found, False, self.ties), z)
        error = math.sqrt(variance) / total
        half = z * error + (found.doubt + max(found.ties, 0.0)) / 2 / total
        value = min(
            max(raw, 0.0), 1.0
        )  # no farther from the truth than raw: an interval around it covers as often
        low, high = max(value - half, 0.0), min(value + half, 1.0)
        return AucEstimate(
            value=value,
            raw=raw,
            error=error,
            low=low,
            high=high,
            confidence=confidence,
            positives=up.n,
            negatives=down.n,
            recursed=sum(int(nodes.sum()) for nodes in found.pieces),
            discarded=sum(int(nodes.sum()) for nodes in found.halves),
            refused=int((~good).sum()),
        )

    def _side(self, signs: Signs, level: Ints, row: Words, chosen: Bools) -> Side:
        picked = signs[chosen].astype(np.float64)
        return Side(
            len(picked),
            picked,
            level[chosen],
            row[chosen],
            self.tree.transform(picked, level[chosen], row[chosen]),
        )

    def _variance(self, side: Side, weights: list[Array], z: float) -> float:
        """A bound on the variance of the sum of the users' terms alpha c y WHT(weights of the
        level)[row].

        Questions are uniform, so each term has the second moment S = alpha c^2 * (sum of squared
        weights), whatever the score: no sample is needed for it, however few the users. The squared
        mean that may be taken off is the one the terms show for certain, z standard errors less
        than they seem to.
        """
        tree = self.tree
        second = tree.levels * tree.scale**2 * sum(float(level @ level) for level in weights)
        terms = tree.levels * tree.scale * side.signs
        for l in range(1, self.levels + 1):
            here = side.level == l
            terms[here] *= walsh_hadamard(weights[l])[side.row[here].astype(np.int64)]
        sure = max(0.0, abs(float(terms.mean())) - z * math.sqrt(second / side.n))
        return side.n * max(0.0, second - sure**2)


class Side(NamedTuple):
    """One class: its reports, the questions they answer, its tree."""

    n: int
    signs: Array
    level: Ints
    row: Words
    tree: list[Array]


def sweep(up: list[Array], down: list[Array], v_up: float, v_down: float, prune: float) -> Sweep:
    """Both trees breadth-first; v: the variance of a node; trees of exact counts and v = 0 give the
    exact UAUC."""
    tau = prune * math.sqrt(v_up * v_down)
    floor_up, floor_down = math.sqrt(prune * v_up) / 2, math.sqrt(prune * v_down) / 2
    pairs = doubt = 0.0
    pieces: list[Bools] = []
    halves: list[Bools] = []
    reached = np.ones(1, dtype=np.bool_)
    for level in range(len(up) - 1):
        heavy = np.maximum(up[level], floor_up) * np.maximum(down[level], floor_down) >= tau
        recursed, discarded = reached & heavy, reached & ~heavy
        above, below = up[level + 1].reshape(-1, 2), down[level + 1].reshape(-1, 2)
        pairs += float(above[recursed, 1] @ below[recursed, 0])
        if (
            level == 0 and discarded[0]
        ):  # labels are public: all pairs are known, and none of them is resolved
            both = up[0] * down[0]
        else:
            both = above[discarded].sum(axis=1) * below[discarded].sum(axis=1)
        pairs += float(both.sum()) / 2
        doubt += float(np.maximum(both, 0.0).sum())
        pieces.append(recursed)
        halves.append(discarded)
        reached = np.repeat(recursed, 2)
    return Sweep(pairs, pieces, halves, doubt, float(up[-1][reached] @ down[-1][reached]))


def partner_weights(other: list[Array], found: Sweep, upper: bool, ties: Ties) -> list[Array]:
    """The derivative of the estimate by each node of one tree: what its partners in the other tree
    weigh."""
    weights = [np.zeros(1)]
    for level, (recursed, discarded) in enumerate(zip(found.pieces, found.halves, strict=True)):
        pairs = other[level + 1].reshape(-1, 2)
        here = np.zeros_like(pairs)
        if upper:
            here[recursed, 1] = pairs[recursed, 0]
        else:
            here[recursed, 0] = pairs[recursed, 1]
        if level:  # the number of pairs at the root is known: it has no noise
            here[discarded] = pairs[discarded].sum(axis=1, keepdims=True) / 2
        if ties == "half" and level + 2 == len(other):
            here[recursed] += pairs[recursed] / 2
        weights.append(here.reshape(-1))
    return weights


def error_bound(
    positives: int, negatives: int, levels: int, epsilon: float, prune: float = 4.0
) -> float:
    """Thm 3.5: a bound on the mean squared error of UAUC, for levels <= sqrt(n) (perso:LDP-9)."""
    n, c = positives + negatives, HadamardTree(levels, epsilon).scale ** 2
    if levels > math.sqrt(n):
        raise ConfigError(
            f"the bound on the private AUC holds for levels <= sqrt(n), found {levels} for {n} "
            f"users"
        )
    rest = 21 * math.sqrt(2 * n * c * levels) / (math.sqrt(prune) - 1)
    return (
        c
        * positives
        * negatives
        * levels**2
        * (2 * n + (4 * prune + 1) * min(positives, negatives) + rest)
    )


def predicted_error(positives: float, negatives: float, levels: int, epsilon: float) -> float:
    """What to expect of the error of the AUC before any report is sent; a prediction, no
    guarantee."""
    c = HadamardTree(levels, epsilon).scale ** 2
    return math.sqrt(SPREAD * (1 - 2.0**-levels) * c * levels * (1 / positives + 1 / negatives))


def choose_levels(positives: float, negatives: float, epsilon: float) -> int:
    """The depth that balances noise and the width of a bin, known from the public counts of labels
    alone."""

    def loss(levels: int) -> float:
        return predicted_error(positives, negatives, levels, epsilon) ** 2 + 4.0 ** (1 - levels)

    return min(range(1, 21), key=loss)


def users_needed(positive_share: float, epsilon: float, error: float = 0.1) -> int:
    """How many users, this share of them positive, are predicted to give this error of the AUC."""

    def enough(n: int) -> bool:
        positives, negatives = max(1.0, n * positive_share), max(1.0, n * (1 - positive_share))
        return (
            predicted_error(
                positives, negatives, choose_levels(positives, negatives, epsilon), epsilon
            )
            <= error
        )

    high = 2
    while not enough(high):
        high *= 2
    low = high // 2
    while high - low > max(1, high // 100):  # two digits are plenty for a prediction
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high
