"""Compiled clipping: the factor of bruit.mechanisms.clip, for norms that are summed up one term
after the other."""

from numba import njit


@njit(cache=True, nogil=True, inline="always", error_model="numpy")
def clip_factor(norm: float, clip: float, terms: int) -> float:
    """By what a row is multiplied to be surely inside: a sum of so many terms is off by up to as
    many units of 2^-53, and rows are measured against a bound that is twice as much shorter, 2^-44
    at least."""
    shorter = 1.0 - max(512, 2 * terms) * 2.0**-53
    return clip / norm * shorter * shorter if norm > clip * shorter else 1.0
