"""The compiled loops of bruit.tasks.record_gradients: one record after the other, in one order.

*Why no row of integers is longer than unit * clip.* Squares of at least SMALLEST are added up with a
relative error below (terms + 2) 2^-53: what underflows among them is off by 2^-1075 each, which is
nothing beside SMALLEST. Their norms, and quotients of at least SMALLEST, are normal floats, each
operation off by 2^-53 relative. All of that together is less than what the bound is shorter by, and
cutting toward zero shortens. Outside of that range the gradient counts as 0.
"""

import math

from numba import njit

from bruit.arrays import Array, Bools, Ints

SMALLEST = 2.0**-900  # squares and quotients below are too near to where floats lose digits


@njit(cache=True, nogil=True, boundscheck=False, error_model="numpy")
def scores_one_by_one(features: Array, models: Array, out: Array) -> None:
    """out[k, j, c] = sum over p of models[k, c, p] features[k, j, p], term by term."""
    peers, records, width = features.shape
    for k in range(peers):
        for j in range(records):
            for c in range(models.shape[1]):
                total = 0.0
                for p in range(width):
                    total += models[k, c, p] * features[k, j, p]
                out[k, j, c] = total


@njit(cache=True, nogil=True, inline="always", error_model="numpy")
def _factor(norm: float, clip: float, terms: int) -> float:
    """By what a gradient of this norm is multiplied to be surely inside: norms and products of so
    many terms are off by fewer units of 2^-53 than the bound is shorter. 0 for what is not
    finite."""
    if not norm < math.inf or clip / norm < SMALLEST:
        return 0.0
    shorter = 1.0 - max(512, 4 * terms) * 2.0**-53
    return clip / norm * shorter * shorter if norm > clip * shorter else 1.0


@njit(cache=True, nogil=True, boundscheck=False, error_model="numpy")
def add_clipped_outer(
    slopes: Array, features: Array, taken: Bools, clip: float, unit: float, total: Ints
) -> None:
    """total[k] += trunc(unit * factor * slopes[k, j] (x) features[k, j]) for the records taken."""
    peers, records, width = features.shape
    outputs = slopes.shape[2]
    for k in range(peers):
        for j in range(records):
            if not taken[k, j]:
                continue
            squares, slope_squares = 0.0, 0.0
            for p in range(width):
                squares += features[k, j, p] * features[k, j, p]
            for c in range(outputs):
                slope_squares += slopes[k, j, c] * slopes[k, j, c]
            if squares < SMALLEST or slope_squares < SMALLEST:
                continue
            norm = math.sqrt(squares) * math.sqrt(slope_squares)
            factor = unit * _factor(norm, clip, width + outputs)
            if factor == 0.0:
                continue
            for c in range(outputs):
                times = factor * slopes[k, j, c]
                for p in range(width):
                    total[k, c * width + p] += int(times * features[k, j, p])


@njit(cache=True, nogil=True, boundscheck=False, error_model="numpy")
def add_clipped(gradients: Array, taken: Bools, clip: float, unit: float, total: Ints) -> None:
    """total[k] += trunc(unit * factor * gradients[k, j]) for the records taken."""
    peers, records, width = gradients.shape
    for k in range(peers):
        for j in range(records):
            if not taken[k, j]:
                continue
            squares = 0.0
            for p in range(width):
                squares += gradients[k, j, p] * gradients[k, j, p]
            if squares < SMALLEST:
                continue
            factor = unit * _factor(math.sqrt(squares), clip, width)
            if factor == 0.0:
                continue
            for p in range(width):
                total[k, p] += int(factor * gradients[k, j, p])


@njit(cache=True, nogil=True, boundscheck=False, error_model="numpy")
def count_shorter(slopes: Array, features: Array, taken: Bools, clip: float, votes: Ints) -> None:
    """votes[k] += 1 or -1 for each record taken, as its gradient is or is not shorter than clip."""
    peers, records, width = features.shape
    for k in range(peers):
        for j in range(records):
            if not taken[k, j]:
                continue
            squares, slope_squares = 0.0, 0.0
            for p in range(width):
                squares += features[k, j, p] * features[k, j, p]
            for c in range(slopes.shape[2]):
                slope_squares += slopes[k, j, c] * slopes[k, j, c]
            votes[k] += 1 if math.sqrt(squares) * math.sqrt(slope_squares) < clip else -1
