"""What a private sum by a token costs on the complete graph: as printed, as proven, as realized
(walk:RWE-1, RWE-2)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

import bruit as br
from bruit.arrays import Array
from bruit.graphs import complete
from bruit.privacy.ahead.walk_sum import summation
from bruit.privacy.theorems.walk_realized import visits, walk_matrix
from bruit.privacy.toolbox.gaussian import epsilons
from bruit.randomness import Replay
from papers.printed.walk_sum import advanced, classical_noise, cycle_epsilon

PASSES, DELTA = 100, 1e-7


def composition(count: float, epsilon: float) -> float:
    """The smaller of simple and advanced composition, as the source's figure takes it."""
    return min(count * epsilon, advanced(count, epsilon, DELTA))


@dataclass(frozen=True)
class Bounds:
    """The printed curves at one number of peers: contributions random (Chernoff) or exactly 100,
    and one more with the largest epsilon of a cycle computed instead of bounded."""

    local_random: float
    local_fixed: float
    network_random: float
    network_fixed: float
    network_numeric: float


def printed_bounds(n: int, epsilon: float = 0.1) -> Bounds:
    """NOT A GUARANTEE. The curves of Fig. 7.1(a): T = 100 n, epsilon_0 = 0.1, all failure
    probabilities 1e-7."""
    visits_of_one = PASSES + math.sqrt(-3 * PASSES * math.log(DELTA))
    one = 3 * epsilon / math.sqrt(n)
    return Bounds(
        composition(visits_of_one, epsilon),
        composition(PASSES, epsilon),
        composition(visits_of_one + PASSES, one),
        composition(2 * PASSES, one),
        composition(visits_of_one + PASSES, cycle_epsilon(n, n, epsilon)),
    )


def crossing(local: str, network: str) -> int:
    """The least n >= 2 from which on the network curve is below the local one."""
    above = [
        n
        for n in range(2, 200)
        if getattr(printed_bounds(n), network) >= getattr(printed_bounds(n), local)
    ]
    return max(above, default=1) + 1


def proven_epsilon(n: int, delta: float, grid: float | None = None, epsilon: float = 0.1) -> float:
    """The proven epsilon of the same sum, final value published, exactly (walk:RW-1)."""
    return summation(
        n, PASSES * n, classical_noise(epsilon, DELTA), first="uniform", grid=grid
    ).epsilon(delta)


def cycles_epsilon(n: int, delta: float, epsilon: float = 0.1) -> float:
    """NOT A GUARANTEE. The curve by N + 1 whole cycles, which the cut last cycle makes a heuristic
    (walk:RW-1)."""
    said = summation(
        n,
        PASSES * n,
        classical_noise(epsilon, DELTA),
        first="uniform",
        route="cycles",
        tail=delta / 100,
        approximate=True,
    )
    return said.epsilon(delta)


@dataclass(frozen=True)
class Realized:
    """Losses of all ordered pairs over some walks: energies, and epsilons at 1e-5 against the local
    one."""

    energy: float
    mean: float
    least: float
    most: float
    local: float


def realized(n: int, epsilon: float = 0.1, walks: int = 10, passes: int = PASSES) -> Realized:
    """Additive accounts of walks that happened on the complete graph, final value not published
    (walk:RW-6)."""
    z, graph = classical_noise(epsilon, DELTA), complete(n)
    energy, local = [], []
    for seed in range(walks):
        path = br.Walk(first=seed % n).path(graph, passes * n, Replay(seed))
        matrix = walk_matrix(visits(path, n, additive=True))
        energy.append(matrix[~np.eye(n, dtype=bool)])
        local.append(np.bincount(path, minlength=n).astype(np.float64))
    found = _epsilons(np.concatenate(energy), z)
    alone = _epsilons(np.concatenate(local), z)
    return Realized(
        float(np.concatenate(energy).mean()),
        float(found.mean()),
        float(found.min()),
        float(found.max()),
        float(alone.mean()),
    )


def _epsilons(energy: Array, z: float) -> Array:
    return epsilons(np.sqrt(energy) / z, 1e-5)
