"""Gradients of single records, clipped one by one and added up in integers (silo:SILO-1).

    Q(g) = trunc(unit * g * min(1, clip / |g|)),        sum over the batch of Q(g_j), in int64

Q is a fixed map of *one record's* gradient into the ball of radius unit * clip: rows are clipped to
a little less than that, by more than all roundings of their norm, and cutting toward zero lengthens
nothing. So the sum moves by at most that much when a record comes or goes, whatever the others are,
and the order of records does not matter. A gradient that is not finite counts as 0: an error that
depends on a record would be a release.

g_j is computed from record j alone, bit for bit: scores are summed up one term after the other in a
compiled loop, not by products of matrices, whose last bits depend on how many rows there are; slopes
are taken on arrays of whole vector registers, so that no record is in a remainder.
"""

from __future__ import annotations

import numpy as np

from bruit.arrays import Array, Bools, Ints
from bruit.tasks.loss import Loss

WHOLE = 64  # records are padded to a multiple of it before elementwise functions


def chosen(coins: Array | None, rate: float, peers: int, records: int) -> Bools:
    """Which records are in the batch: all, or those whose coin, uniform in (0, 1), is below the
    rate. There are as many coins as the largest of the peers asked has records; places beyond hold
    none, and coins beyond are not looked at  # (peers, records)."""
    if coins is None:
        return np.ones((peers, records), bool)
    known = coins[:, :records]
    taken = np.zeros((peers, records), bool)
    taken[:, : known.shape[1]] = known < rate
    return taken


def record_slopes(loss: Loss, features: Array, targets: Array, models: Array) -> Array:
    """The derivative of each record's loss in its scores: features (k, m, p), models (k, c, p)
    # (k, m, c)."""
    from bruit.tasks.compiled_records import scores_one_by_one

    peers, records, _ = features.shape
    outputs = models.shape[1]
    many = peers * records
    room = -(-many // WHOLE) * WHOLE
    scores, flat = np.zeros((1, room, outputs)), np.zeros((1, room))
    scores_one_by_one(features, models, scores[0, :many].reshape(peers, records, outputs))
    flat[0, :many] = targets.reshape(-1)
    with np.errstate(all="ignore"):
        slopes = loss.slope(scores, flat)
    return slopes[0, :many].reshape(peers, records, outputs)


def summed_outer(slopes: Array, features: Array, taken: Bools, clip: float, unit: float) -> Ints:
    """The sum of Q(slope_j (x) x_j) over the records taken  # (k, c * p)."""
    from bruit.tasks.compiled_records import add_clipped_outer

    peers, _, outputs = slopes.shape
    total = np.zeros((peers, outputs * features.shape[2]), np.int64)
    add_clipped_outer(slopes, features, taken, float(clip), float(unit), total)
    return total


def votes_on_clip(slopes: Array, features: Array, taken: Bools, clip: float) -> Ints:
    """How many of the records taken have a gradient shorter than the clip, minus the others; what is
    not finite is not shorter  # (k,)."""
    from bruit.tasks.compiled_records import count_shorter

    votes = np.zeros(len(slopes), np.int64)
    count_shorter(slopes, features, taken, float(clip), votes)
    return votes


def voted(gradients: Array, taken: Bools, clip: float) -> Ints:
    """The same votes where the gradients (k, m, d) themselves are held  # (k,)."""
    shorter = np.linalg.norm(gradients, axis=2) < clip
    votes: Ints = np.where(taken, np.where(shorter, 1, -1), 0).sum(axis=1)
    return votes


def summed(gradients: Array, taken: Bools, clip: float, unit: float) -> Ints:
    """The sum of Q(g_j) over the records taken, gradients (k, m, d)  # (k, d)."""
    from bruit.tasks.compiled_records import add_clipped

    total = np.zeros((gradients.shape[0], gradients.shape[2]), np.int64)
    add_clipped(np.ascontiguousarray(gradients), taken, float(clip), float(unit), total)
    return total
