"""Pairs counted by sorting, in O(n log n) and exactly: concordant, discordant, equal; and the area
under the curve.

    AUC = (pairs positive above negative + half the ties, if asked) / (n+ n-)            (perso:PAIR-1, LDP-7)
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from bruit.arrays import Array, Ints
from bruit.errors import ConfigError

Ties = Literal["zero", "half"]


def concordance(x: Array, y: Array) -> tuple[int, int]:
    """How many pairs x and y order alike, and how many they order oppositely; a tie in either
    counts as neither."""
    order = np.lexsort((y, x))
    found, ranks = np.unique(y[order], return_inverse=True)
    discordant = _inversions(ranks.astype(np.int64), len(found))
    n = len(x)
    apart = (
        n * (n - 1) // 2
        - equal_pairs(x[:, None])
        - equal_pairs(y[:, None])
        + equal_pairs(np.stack((x, y), axis=1))
    )
    return apart - discordant, discordant


def equal_pairs(rows: Array) -> int:
    """How many pairs of rows are equal."""
    if rows.shape[1] == 1:
        values = np.sort(rows[:, 0])
        changes = values[1:] != values[:-1]
    else:
        ordered = rows[np.lexsort(rows.T[::-1])]
        changes = (ordered[1:] != ordered[:-1]).any(axis=1)
    sizes = np.diff(np.concatenate(([0], np.flatnonzero(changes) + 1, [len(rows)])))
    return int((sizes * (sizes - 1) // 2).sum())


def sum_of_distances(values: Array) -> float:
    """Sum of |x_u - x_v| over pairs: in sorted order the k-th value is the larger one k times."""
    ordered = np.sort(values)
    n = len(ordered)
    middle = ordered[n // 2]  # distances do not move with the origin, rounding errors do
    return float(((2.0 * np.arange(n) - (n - 1)) * (ordered - middle)).sum())


def auc(scores: Array, labels: Array | Ints, ties: Ties = "half") -> float:
    """Share of (positive, negative) pairs in which the positive scores higher; labels 0 or 1.

    ties = "half" is the usual area under the ROC curve, ties = "zero" counts strict pairs only (T
    (3.11)).

    >>> auc(np.array([1.0, 2, 3, 3, 0, 0, 1, 2]), np.array([1.0, 1, 1, 1, 0, 0, 0, 0]), "zero")
    0.8125
    """
    positive, negative = two_classes(scores, labels)
    ordered = np.sort(negative)
    below = int(np.searchsorted(ordered, positive, side="left").sum())
    up_to = int(np.searchsorted(ordered, positive, side="right").sum())
    won = (below + up_to) / 2 if ties == "half" else below
    return won / (len(positive) * len(negative))


def two_classes(scores: Array, labels: Array | Ints) -> tuple[Array, Array]:
    """The scores of the positives (label 1) and of the negatives (label 0); both must be there."""
    scores, labels = np.asarray(scores), np.asarray(labels, dtype=np.float64)
    if scores.shape != labels.shape or scores.ndim != 1:
        raise ConfigError(
            f"an AUC needs one score and one label per user, found shapes {scores.shape} and "
            f"{labels.shape}"
        )
    strange = ~np.isin(labels, (0, 1))
    if strange.any():
        row = int(np.flatnonzero(strange)[0])
        raise ConfigError(
            f"the label of user {row} is {labels[row]}; labels are 0 (negative) or 1 (positive)"
        )
    positive = labels == 1
    if positive.all() or not positive.any():
        only = "1" if len(labels) and positive.all() else "0"
        raise ConfigError(
            f"all {len(labels)} users have label {only}; an AUC compares two classes:"
            " bring users of both"
        )
    return scores[positive], scores[~positive]


def _inversions(ranks: Ints, values: int) -> int:
    """Pairs i < j with ranks[i] > ranks[j]: bit by bit from the top, within groups of equal higher
    bits."""
    found = 0
    order = ranks
    for bit in range(max(values - 1, 0).bit_length() - 1, -1, -1):
        group, ones = order >> (bit + 1), (order >> bit) & 1
        before = np.cumsum(ones) - ones  # ones before, in all groups so far
        starts = np.flatnonzero(np.concatenate(([True], group[1:] != group[:-1])))
        sizes = np.diff(np.concatenate((starts, [len(order)])))
        within = before - np.repeat(before[starts], sizes)
        found += int(within[ones == 0].sum())
        zeros = np.add.reduceat(1 - ones, starts)
        place = np.repeat(starts, sizes) + np.where(
            ones == 1,
            np.repeat(zeros, sizes) + within,
            np.arange(len(order)) - np.repeat(starts, sizes) - within,
        )
        moved = np.empty_like(order)
        moved[place] = order
        order = moved
    return found
