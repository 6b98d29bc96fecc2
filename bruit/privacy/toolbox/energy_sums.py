"""The law of a sum of independent energies, by FFT on a grid, always rounded up (walk:RW-14).

Energies are mu^2 of Gaussian pairs of unit noise. They are rounded up to a grid, and the law of the
sum is the N-th power of a Fourier transform. Everything the numbers lose is kept as a probability
of failure: mass beyond the grid's end by a Chernoff bound, and atoms drowned in rounding errors.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from bruit.arrays import Array
from bruit.errors import ConfigError, PrivacyError
from bruit.privacy.profile import Failing, MixtureProfile, Profile

CELLS = 2**19
LEAST_DELTA = 1e-12
"""Below, the rounding errors of the transform are no longer small against delta."""
FINE, RARE, DROWNED, COARSE = 2e-4, 1e-18, 1e-17, 4096


@dataclass(frozen=True, eq=False)
class EnergyLaw:
    """Energies with their probabilities; with probability `failure` anything may have been seen."""

    energies: Array  # (k,)
    weights: Array  # (k,)
    failure: float = 0.0

    def profile(self, noise_multiplier: float, more: float = 0.0) -> Profile:
        """What is seen under the noise multiplier z: Gaussian pairs of mu^2 = (energy + more) /
        z^2."""
        if not noise_multiplier > 0:
            raise PrivacyError(
                f"without noise nothing is private; found the noise multiplier {noise_multiplier}"
            )
        mixture = MixtureProfile((self.energies + more) / noise_multiplier**2, self.weights)
        return Failing(mixture, self.failure) if self.failure else mixture

    def mean(self) -> float:
        """The expected energy, failures left out."""
        return float(self.energies @ self.weights)


def energy_sum(energies: Array, weights: Array, count: int, cells: int = CELLS) -> EnergyLaw:
    """The law of the sum of `count` independent energies, each rounded up to a grid of that many
    cells.

    Weights that sum to less than one leave the rest at energy 0.

    >>> two = energy_sum(np.array([0.5]), np.array([0.1]), 2)
    >>> [round(float(two.weights[two.energies >= x].sum()), 9) for x in (0.5, 1.0)]
    [0.19, 0.01]
    """
    _check(energies, weights, count, cells)
    if count == 1:
        return EnergyLaw(energies, weights)
    top, beyond = _end(energies, weights, count)
    if top == 0:
        return EnergyLaw(np.zeros(1), np.ones(1), beyond)
    grid = top / (cells - count - 1)  # every term may be rounded up by one cell
    place = np.ceil(energies / grid).astype(np.int64)
    inside = place < cells  # what lies outside is part of the chance of going beyond the top
    one = np.bincount(place[inside], weights[inside], cells)
    one[0] += max(0.0, 1.0 - weights.sum())
    total = np.fft.irfft(np.fft.rfft(one) ** count, cells)
    kept = total > DROWNED
    lost = float(np.abs(total[~kept]).sum())
    return thinned(grid, np.where(kept, total, 0.0), lost + beyond)


def mixture_divergence(
    energies: Array, weights: Array, order: float, noise_multiplier: float
) -> float:
    """Renyi divergence of a public mixture: log(1 + sum_i weights_i (exp(lambda energies_i) - 1)) /
    (alpha - 1).

    lambda = alpha (alpha - 1) / (2 z^2) (walk:F-3). Infinite where numbers overflow, beyond lambda
    * energy = 700.
    """
    scale = order * (order - 1) / (2 * noise_multiplier**2)
    if scale * float(energies.max(initial=0.0)) > 700:
        return math.inf
    return math.log1p(float(weights @ np.expm1(scale * energies))) / (order - 1)


def convex_nodes(energies: Array, weights: Array, width: float = 0.005) -> tuple[Array, Array]:
    """A few nodes with the same mean and, for every convex function, at least the same expectation.

    The mass between two nodes goes to both, so that its mean stays: a chord lies above the arc.
    Energies that are further apart than `width` of their size stay nodes themselves.
    """
    order = np.argsort(energies)
    x, mass = energies[order], weights[order]
    nodes = [float(x[0])]
    while nodes[-1] < x[-1]:
        after = int(np.searchsorted(x, nodes[-1], "right"))
        far = int(np.searchsorted(x, nodes[-1] * (1 + width), "right")) - 1
        nodes.append(float(x[max(after, far)]))
    if len(nodes) == 1:
        return np.array(nodes), np.array([mass.sum()])
    grid = np.array(nodes)
    low = np.clip(np.searchsorted(grid, x, "right") - 1, 0, len(grid) - 2)
    share = (x - grid[low]) / (grid[low + 1] - grid[low])
    found = np.bincount(low, mass * (1 - share), len(grid)) + np.bincount(
        low + 1, mass * share, len(grid)
    )
    return grid, np.asarray(found, np.float64)


def thinned(grid: float, law: Array, failure: float) -> EnergyLaw:
    """Atoms closer than 2e-4 of their size are moved up to the highest among them: many fewer,
    hardly larger."""
    index = np.flatnonzero(law > 0)
    if not index.size:
        return EnergyLaw(np.zeros(1), np.zeros(1), min(1.0, failure))
    spread = np.exp(np.arange(0.0, math.log(len(law)) + 2 * FINE, FINE))
    edges = np.append(0, np.unique(np.ceil(spread).astype(np.int64)))
    bins = np.searchsorted(edges, index)
    highest = np.zeros(len(edges) + 1, np.int64)
    np.maximum.at(highest, bins, index)
    weights = np.bincount(bins, law[index], len(edges) + 1)
    used = weights > 0
    return EnergyLaw(
        np.asarray(highest[used] * grid, np.float64),
        np.minimum(weights[used], 1.0),
        min(1.0, failure),
    )


def _end(energies: Array, weights: Array, count: int) -> tuple[float, float]:
    """An energy the sum exceeds with a chance of at most 1e-18, and that chance; 0 when it cannot
    be exceeded."""
    seen = weights > 0
    most = float(energies[seen].max()) if seen.any() else 0.0
    if most == 0:
        return 0.0, 0.0
    place = np.ceil(energies[seen] / most * COARSE).astype(
        np.int64
    )  # rounded up: enough for a bound
    steps, mass = (
        np.arange(COARSE + 2) * most / COARSE,
        np.bincount(place, weights[seen], COARSE + 2),
    )
    best = most * count
    for tilt in np.geomspace(0.1, 600.0, 60) / most:
        grown = count * math.log1p(float(mass @ np.expm1(tilt * steps)))
        best = min(best, (grown - math.log(RARE)) / tilt)
    return best, 0.0 if best == most * count else RARE


def _check(energies: Array, weights: Array, count: int, cells: int) -> None:
    if (
        energies.shape != weights.shape
        or np.any(energies < 0)
        or np.any(weights < 0)
        or weights.sum() > 1 + 1e-9
    ):
        raise PrivacyError(
            "a law of energies needs values >= 0 with as many probabilities >= 0 of sum at most 1"
        )
    if count < 1:
        raise PrivacyError(f"energies are added up at least once, found {count} times")
    if cells < 4 * count + 16:
        raise ConfigError(
            f"a sum of {count} energies needs a grid of more than {4 * count + 16} cells, found "
            f"{cells}"
        )
