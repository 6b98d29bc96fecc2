"""A whole round of GOPA at once, for many simulated peers: the same fixed point, seeds replaced by
addressed draws.

Peers in `dropped` exchanged noise and then published nothing. With rollback their exchanges are
taken out again, without it their noise stays (perso:GOPA-7). Columns of the values are independent,
so that they may be repetitions.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
from scipy.sparse import csr_array

from bruit.arrays import Array, Bools, Ints, Words
from bruit.digests import digest
from bruit.errors import ConfigError
from bruit.graphs import Graph
from bruit.privacy.theorems.gopa import residual_variance
from bruit.randomness import Dice, Replay, pair
from bruit.statistics.average.canceling.terms import Terms

NUMBERS = 2**22  # draws held at once


@dataclass(frozen=True, eq=False, kw_only=True)
class SimulatedAverage:
    """The published mean over the peers that stayed, and its variance per coordinate.

    `residual` counts exchanges with dropped peers that were never opened: their noise is still in
    the mean."""

    mean: Array  # (width,)
    online: tuple[int, ...]
    dropped: tuple[int, ...]
    residual: int
    variance: float
    total: Words = field(repr=False)  # (width,) the sum, to the bit


def simulate(
    graph: Graph,
    values: Array,
    terms: Terms,
    seed: int = 0,
    dropped: Iterable[int] = (),
    rollback: bool = True,
) -> SimulatedAverage:
    """One round on this graph; values are one row of `terms.width` numbers per peer, of norm at
    most `terms.clip`."""
    if graph.n != terms.peers or values.shape != (terms.peers, terms.width):
        raise ConfigError(
            f"the terms are for {terms.peers} peers with {terms.width} numbers each, found a graph of"
            f" {graph.n} and values of shape {values.shape}"
        )
    norms = np.linalg.norm(values, axis=1)
    if (norms > terms.clip * (1 + 1e-12)).any():
        worst = int(np.argmax(norms))
        raise ConfigError(
            f"the value of peer {worst} is out of range: its norm {norms[worst]:.6g} exceeds"
            f" {terms.clip:g}; clip it, or agree on a larger range"
        )
    online = ~np.isin(np.arange(graph.n), np.fromiter(dropped, np.int64))
    if not online.any():
        raise ConfigError("everybody dropped out: there is nothing to average")
    masked = masked_values(graph, values, terms, seed, online if rollback else None)
    total = masked[online].sum(axis=0, dtype=np.uint64)
    ends = online[graph.edges()]
    residual = 0 if rollback else int((ends[:, 0] != ends[:, 1]).sum())
    count = int(online.sum())
    variance = residual_variance(terms.own_sigma, terms.pair_sigma, count, residual)
    stay, gone = (tuple(np.flatnonzero(side).tolist()) for side in (online, ~online))
    return SimulatedAverage(
        mean=terms.field.decode(total) / count,
        online=stay,
        dropped=gone,
        residual=residual,
        variance=variance,
        total=total,
    )


def noise_dice(
    graph: Graph, values: Array, terms: Terms, seed: int = 0, among: Bools | None = None
) -> Dice:
    """The dice of a round follow from the seed and from all they hide: other values or terms are
    other draws."""
    return Replay(
        seed, digest(digest(b"", "gopa", seed), values, terms, graph.fingerprint(), among)
    )


def masked_values(
    graph: Graph, values: Array, terms: Terms, seed: int = 0, among: Bools | None = None
) -> Words:
    """What every peer publishes, as words; noise is exchanged on all edges, or on those among some
    peers  # (n, d)."""
    field, dice, everybody = (
        terms.field,
        noise_dice(graph, values, terms, seed, among),
        np.arange(graph.n),
    )
    masked = field.encode(values)
    ends = graph.edges()
    if among is not None:
        ends = ends[among[ends].all(axis=1)]
    for low, high in _chunks(graph.n, terms.width):
        lanes = everybody[low:high]
        masked[low:high] += field.noise(
            dice.normal("noise", lanes, terms.number, 0, terms.width), terms.own_sigma
        )
    for low, high in _chunks(len(ends), terms.width):
        _add_exchanges(masked, ends[low:high], terms, dice)
    return masked


def _add_exchanges(masked: Words, ends: Ints, terms: Terms, dice: Dice) -> None:
    """Add the noise of some edges to one end and take it from the other: one exact product with
    their signs."""
    draws = dice.normal("pair", pair(ends[:, 0], ends[:, 1]), terms.number, 0, terms.width)
    noise = terms.field.noise(draws, terms.pair_sigma).view(np.int64)
    place = np.arange(len(ends))
    touched, rows = np.unique(ends, return_inverse=True)
    rows = rows.reshape(ends.shape)
    signs = np.repeat(np.array([1, -1]), len(ends))
    spread = csr_array(
        (signs, (rows.T.ravel(), np.concatenate((place, place)))), shape=(len(touched), len(ends))
    )
    masked[touched] += np.asarray(spread @ noise).view(np.uint64)


def _chunks(rows: int, width: int) -> list[tuple[int, int]]:
    size = max(1, NUMBERS // width)
    return [(low, min(low + size, rows)) for low in range(0, rows, size)]
