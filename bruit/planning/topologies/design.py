"""Graphs of about the same size compared: how many peers one observer exposes, and how fast they mix.

    sum over u != v of m(u -> v) = rank(K_v) - 1  <=  sum_i min(d_v, n_i) - 1  <=  d_v (m - 1)

for any number of rounds, m the number of different eigenvalues of a symmetric W, n_i how often each
occurs, d_v the degree of the observer (gossip:MUF-X5). Symmetry means few eigenvalues: it protects.
On a random graph they all differ, and in time everybody is exposed. Losses are exact and certified,
or upper bounds that say so (gossip:MUF-2); eigenvalues are told apart in floats.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise as successive
from typing import Any

import numpy as np

from bruit.arrays import Array
from bruit.errors import ConfigError
from bruit.graphs import Graph, graph, spectral_gap
from bruit.graphs.tolerance import ERROR, tolerated_liars, tolerated_weight
from bruit.privacy.exact import pairwise

LEAST, MOST = 4, 512  # peers of a design
APART = 1e-9  # eigenvalues nearer than that count as one
EXPOSED = 1 - 1e-9
ROUNDS = 30  # where no number is asked for
NEAR = 0.15  # how many peers more or less a graph of the list may have, relatively


@dataclass(frozen=True, kw_only=True)
class Design:
    """One graph, and what plain gossip of one size of noise tells on it."""

    name: str
    peers: int
    degree: int  # the largest
    gap: float
    eigenvalues: int
    exposed: int  # peers whose noisy value the worst observer computes, itself not counted
    total: float  # the largest summed loss of one observer
    bound: float  # of that sum, for any number of rounds
    worst: float  # the largest loss of a pair that is not linked; 0 if all are
    mean: float  # largest over observers of the mean over all peers
    liars: int  # how many rule "clip" tolerates, whoever they are (gossip:LIE-2)
    exact: bool

    def plain(self) -> dict[str, Any]:
        return dict(vars(self))


def design(name: str | Graph, steps: int = ROUNDS) -> Design:
    """One row of the comparison.

    >>> found = design("moore:7")
    >>> found.exposed, found.peers - 1, round(found.total), found.bound
    (7, 49, 14, 14.0)
    """
    found = graph(name)
    if not isinstance(found, Graph):
        raise ConfigError(f"one fixed graph is designed, found the sequence {found.name}")
    losses = pairwise(found, steps)
    m = losses.m
    seen = np.nansum(m, axis=0)
    linked = found.weights.toarray() != 0
    strangers = m[~linked & ~np.eye(found.n, dtype=bool)]
    return Design(
        name=found.name,
        peers=found.n,
        degree=int(found.degrees.max(initial=0)),
        gap=spectral_gap(found),
        eigenvalues=len(multiplicities(found)),
        exposed=int(np.max(np.sum(m > EXPOSED, axis=0))),
        total=float(seen.max()),
        bound=float(rank_bound(found).max() - 1),
        worst=float(np.nanmax(strangers)) if strangers.size else 0.0,
        mean=losses.mean,
        liars=tolerated_liars(found, tolerated_weight(found, ERROR["clip"])),
        exact=bool(losses.exact.all()),
    )


def multiplicities(found: Graph) -> list[int]:
    """How often each different eigenvalue of W occurs, from the largest down."""
    values = np.sort(np.linalg.eigvalsh(found.weights.toarray()))[::-1]
    cuts = np.flatnonzero(-np.diff(values) > APART)
    ends = [0, *(cuts + 1).tolist(), len(values)]
    return [after - before for before, after in successive(ends)]


def rank_bound(found: Graph) -> Array:
    """sum of min(d_v, multiplicity), the most that rank(K_v) can be on a connected graph, however
    long it mixes  # (n,)."""
    many = np.array(multiplicities(found))
    degrees = np.maximum(found.degrees, 1)
    most = np.minimum(degrees[:, None], many[None, :]).sum(axis=1)
    return np.asarray(most, np.float64)


def names_near(peers: int) -> list[str]:
    """Graph strings of about so many peers, from every family with a formula, and some random
    ones."""
    if not LEAST <= peers <= MOST:
        raise ConfigError(f"a design has {LEAST} to {MOST} peers, found {peers}")
    return list(dict.fromkeys(name for name, n in _sized(peers) if abs(n - peers) <= NEAR * peers))


def _sized(peers: int) -> Iterator[tuple[str, int]]:
    yield from ((f"{name}:{peers}", peers) for name in ("ring", "star", "exponential", "complete"))
    a = max(k for k in range(1, math.isqrt(peers) + 1) if peers % k == 0)
    if a > 2:
        yield f"torus:{a}x{peers // a}", peers
    yield from ((f"hypercube:{k}", 2**k) for k in range(2, 10))
    side = round(math.sqrt(peers))
    yield f"rook:{side}x{side}", side * side
    for digits in range(2, 6):
        letters = round(peers ** (1 / digits))
        if letters > 2:
            yield f"hamming:{digits}x{letters}", letters**digits
    primes = [n for n in range(5, 600, 4) if all(n % k for k in range(2, math.isqrt(n) + 1))]
    near = min(primes, key=lambda n: abs(n - peers))
    yield f"paley:{near}", near
    for chosen in (2, 3):
        points = min(range(2 * chosen + 1, 34), key=lambda k: abs(math.comb(k, chosen) - peers))
        yield f"kneser:{points}x{chosen}", math.comb(points, chosen)
    yield from ((f"moore:{degree}", n) for degree, n in ((2, 5), (3, 10), (7, 50)))
    if peers > 6:
        yield f"regular:{peers},degree={6 if peers > 7 else 4}", peers
        yield f"er:{peers},c=2", peers


def compared(peers: int, steps: int = ROUNDS, more: tuple[str, ...] = ()) -> list[Design]:
    """The graphs of about so many peers, fewest exposed first; equals by the gap."""
    found = [design(name, steps) for name in dict.fromkeys((*more, *names_near(peers)))]
    return sorted(found, key=lambda one: (one.exposed / one.peers, -one.gap))
