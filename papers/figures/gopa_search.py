"""Small k and little noise between neighbors, found by drawing graphs: the simulated rows of Table
4.1 (perso:GOPA-6).

For a drawn k-out graph the noise between neighbors that is just enough follows from its own
spectrum, exactly:

    least pair with max_v theta_v within (epsilon, delta)                 "exact"
    pair^2 = kappa own^2 n_H max_v [L^+]_vv, delta = 1.25 (delta' / 1.25)^(kappa / (kappa + 1))    "corollary"

A few drawn graphs cannot certify failures as rare as delta, so this is heuristic until the graph is
drawn: then `gopa_guarantee` proves what that graph gives. For a promise in advance use the k-out
theorem. Peers are exchangeable, so the first rho n ones are taken as honest. Of large graphs the
peers with the fewest honest neighbors are looked at.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from bruit.arrays import Ints
from bruit.errors import PrivacyError
from bruit.graphs import k_out
from bruit.privacy.ahead.gopa_k_out import kappa_of, own_noise
from bruit.privacy.calibrate import least
from bruit.privacy.exact import Laplacian, Quadrature, laplacian_among
from bruit.privacy.toolbox.gaussian import epsilon_of

Rule = Literal["exact", "corollary"]

LOOKED_AT = 48  # peers with the fewest honest neighbors
VAST = 1e6  # noise between neighbors, in units of the own one, that more would not improve


@dataclass(frozen=True)
class Draw:
    """One k-out graph among n peers of which `honest` are honest, by its spectrum at the most
    exposed peers."""

    n: int
    k: int
    honest: int
    connected: bool
    measure: Quadrature

    def theta(self, own_sigma: float, pair_sigma: float) -> float:
        """max_v theta_v."""
        return float(self.measure.at(own_sigma, pair_sigma).max())

    def spread(self) -> float:
        """max_v [L^+]_vv."""
        return float(self.measure.pseudo().max())

    def corollary_pair(self, epsilon: float, delta_prime: float, delta: float) -> float:
        """The noise between neighbors by the corollary with the graph's own spread; infinite when
        disconnected."""
        if not self.connected:
            return math.inf
        own = own_noise(self.honest, epsilon, delta_prime)
        return own * math.sqrt(kappa_of(delta_prime, delta, 1.0) * self.honest * self.spread())

    def exact_pair(self, own_sigma: float, epsilon: float, delta: float) -> float:
        """The least noise between neighbors for (epsilon, delta) given everybody's own; infinite
        when none is enough.

        Values move by at most 1.
        """
        floor = self.theta(own_sigma, VAST * own_sigma)
        if not self.connected or epsilon_of(math.sqrt(floor), delta) >= epsilon:
            return math.inf
        return least(
            lambda pair: epsilon_of(math.sqrt(self.theta(own_sigma, pair)), delta),
            epsilon,
            own_sigma,
        )


def draw(n: int, k: int, rho: float = 1.0, seed: int = 0) -> Draw:
    """A k-out graph and its honest part."""
    if not 0 < rho <= 1:
        raise PrivacyError(f"the honest fraction rho lies in (0, 1], found {rho}")
    honest = math.floor(rho * n + 1e-9)
    if honest < 2:
        raise PrivacyError(f"noise between honest peers needs two of them, found {honest} of {n}")
    among = laplacian_among(k_out(n, k, seed=seed, connected=False), np.arange(honest))
    return Draw(n, k, honest, among.connected, Quadrature.of(among, _exposed(among)))


def _exposed(among: Laplacian) -> Ints:
    degree = among.matrix.diagonal()
    return np.sort(np.argsort(degree, kind="stable")[:LOOKED_AT])


@dataclass(frozen=True)
class Found:
    """The smallest k whose drawn graphs all do, and the most noise between neighbors any of them
    needs."""

    k: int
    pair_sigma: float
    own_sigma: float
    draws: int
    status: str = "heuristic"


def smallest_k(
    n: int,
    rho: float,
    epsilon: float,
    delta_prime: float,
    delta: float,
    most_pair_sigma: float,
    draws: int = 3,
    seed: int = 0,
    rule: Rule = "exact",
) -> Found:
    """The smallest k for which all drawn graphs reach (epsilon, delta) with at most that noise
    between neighbors.

    The source's table takes the corollary as its rule; the exact curve needs less.
    """
    if draws < 1 or not most_pair_sigma > 0:
        raise PrivacyError(
            f"a search needs graphs to draw and noise to allow, found {draws} and {most_pair_sigma}"
        )
    own = own_noise(math.floor(rho * n + 1e-9), epsilon, delta_prime)

    def needed(k: int) -> float:
        seen = (draw(n, k, rho, seed + t) for t in range(draws))
        return max(
            one.exact_pair(own, epsilon, delta)
            if rule == "exact"
            else one.corollary_pair(epsilon, delta_prime, delta)
            for one in seen
        )

    k = _first(lambda k: needed(k) <= most_pair_sigma, n - 1)
    return Found(k, needed(k), own, draws)


def _first(enough: Callable[[int], bool], most: int) -> int:
    """The first k that is enough, by doubling and halving: more neighbors hide more."""
    low, high = 0, 1
    while not enough(high):
        if high == most:
            raise PrivacyError(
                "no k is enough for this noise between neighbors; raise it, or everybody's own "
                "noise"
            )
        low, high = high, min(2 * high, most)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high
