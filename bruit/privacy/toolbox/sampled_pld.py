"""Privacy loss distributions of secret Poisson samples, rounded up (silo:SILO-2).

One release with noise of z clips on a sum over a sample of rate q, in units of the clip and with s
= z, is dominated by

    add-remove   (1-q) N(0, s^2) + q N(1, s^2)  against  N(0, s^2), both orders, each composed by itself
    replace      (1-q) N(0, s^2) + q N(1, s^2)  against  (1-q) N(0, s^2) + q N(-1, s^2)

dp_accounting connects the dots of the exact curve delta(epsilon) at multiples of a cell, from
above. Two things are not from above, and `slack` is set aside of delta for them. Deltas are floats,
and a composed curve is a mean of curves shifted, so that an error of one release counts once for
each. Fourier transforms that are raised to the power of the number of releases err as much. Cells
are a fixed part of the deviation of one loss, not of the whole, so that the distribution of one
release serves any number of them: with a sixteenth the variance grows by 1/1024 and epsilon by less
than a thousandth.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

from bruit.privacy.events import Adjacency
from bruit.privacy.toolbox.sampled_renyi import ORDERS, poisson

Sampled = tuple[float, float, Adjacency]
"""Noise multiplier z = sigma / clip, rate, adjacency."""

FINEST, COARSEST = 2.0**-17, 2.0**-10


def slack(releases: int) -> float:
    """What is set aside of delta for the rounding of floats: some fifty of their units a release."""
    return 1e-12 + 1e-14 * releases


def cell_of(kind: Sampled) -> float:
    """A power of two, at most a sixteenth of the deviation q sqrt(exp(1 / z**2) - 1) of one loss."""
    z, rate, _ = kind
    deviation = rate * math.sqrt(math.expm1(min(1 / z**2, 50.0)))
    return min(COARSEST, max(FINEST, 2.0 ** math.floor(math.log2(deviation / 16))))


def unsampled_square(kind: Sampled) -> float:
    """mu**2 of the same release with every record in it, which never tells less: given its coin,
    the record is in the sum or not (joint convexity)."""
    z, _, adjacency = kind
    return (2 / z if adjacency == "replace" else 1 / z) ** 2


def renyi(order: float, kind: Sampled) -> float:
    """The Renyi divergence of one release, or a bound of it (gossip:DP-6)."""
    z, rate, adjacency = kind
    return poisson(order, rate, z / 2 if adjacency == "replace" else z, adjacency)


@lru_cache(maxsize=64)
def reach(kind: Sampled, releases: int) -> float:
    """How far the losses of so many releases reach, but for a negligible part: twice what Renyi
    divergences bound at exp(-40), since these are far from sharp for `replace`."""
    known = (releases * renyi(order, kind) + 40 / (order - 1) for order in ORDERS)
    square = releases * unsampled_square(kind)
    return min(2 * min(known), square / 2 + 40 * math.sqrt(square))


@lru_cache(maxsize=16)
def one_release(kind: Sampled, cell: float) -> Any:
    """The distribution of one release."""
    from dp_accounting import NeighboringRelation
    from dp_accounting.pld import privacy_loss_distribution as pld

    z, rate, adjacency = kind
    relation = (
        NeighboringRelation.REPLACE_ONE
        if adjacency == "replace"
        else NeighboringRelation.ADD_OR_REMOVE_ONE
    )
    return pld.from_gaussian_mechanism(
        z,
        sampling_prob=rate,
        value_discretization_interval=cell,
        neighboring_relation=relation,
    )


@lru_cache(maxsize=8)
def releases_of(kind: Sampled, releases: int, cell: float) -> Any:
    """The distribution of so many releases, the last few of which are kept."""
    return one_release(kind, cell).self_compose(releases)
