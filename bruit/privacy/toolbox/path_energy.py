"""Amplification by iteration: what noisy non-expansive steps leave of the shifts put in before
(walk:F-2, gossip:DP-7).

Two runs x <- T_t(x) + noise_t, all maps c_t-Lipschitz, differ by at most s_t at step t; only the
last iterate is shown. Any a with gap r_t = c_t r_{t-1} + s_t - a_t >= 0 and r_M = 0 proves (alpha,
alpha/2 sum a_t^2 / nu_t^2)-RDP, even mu-GDP with mu^2 = sum a_t^2 / nu_t^2. With w_t = 1 / (c_1 ...
c_t) the least such sum, the path energy, is

    E(s) = sum of dy^2 / dx over the edges of the greatest convex minorant of (sum nu_i^2 w_i^2, sum s_i w_i), t = 0..M.

The minorant is found by pooling neighboring steps until slopes grow; every pool keeps its own
logarithmic scale, so no product of many Lipschitz constants overflows. A silent step has c = 1,
never less.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bruit.arrays import Array, Ints
from bruit.errors import PrivacyError

Numbers = Sequence[float] | Array


@dataclass
class _SlopePool:
    """Steps that share one slope: dy = rise * exp(scale), dx = width * exp(2 scale)."""

    rise: float
    width: float
    scale: float
    first: int

    @property
    def energy(self) -> float:
        if self.rise == 0:
            return 0.0
        return math.inf if self.width == 0 else self.rise * self.rise / self.width

    def steeper(self, other: _SlopePool) -> bool:
        """Whether the slope is at least that of the other; no noise at all is the steepest."""
        if other.width == 0 and other.rise > 0:
            return self.width == 0 and self.rise > 0
        if self.width == 0 or other.rise == 0 or self.rise == 0:
            return self.rise > 0 or other.rise == 0
        return (
            math.log(self.rise / self.width) - self.scale
            >= math.log(other.rise / other.width) - other.scale
        )

    def joined(self, other: _SlopePool) -> _SlopePool:
        scale = max(self.scale, other.scale)
        mine, theirs = math.exp(self.scale - scale), math.exp(other.scale - scale)
        rise = self.rise * mine + other.rise * theirs
        width = self.width * mine**2 + other.width * theirs**2
        return _SlopePool(rise, width, scale, self.first)


def path_energy(
    shifts: Numbers, noise: Numbers | None = None, lipschitz: Numbers | float = 1.0
) -> float:
    """The least energy E(s) of the shifts, in units of the squared noise (walk:F-2).

    noise: standard deviation of every step, 1 by default; lipschitz: constant of every step's map,
    1 on silent steps. With step sizes eta_t, shifts (where u contributes) and noise are eta_t.
    Infinite when no noise follows a shift.

    >>> path_energy([0, 1, 0, 0]), path_energy([1, 1, 0, 0]), path_energy([0, 0, 1, 1, 0, 1, 0, 0, 0, 0])
    (0.3333333333333333, 1.0, 1.125)
    >>> round(path_energy([1, 1, 0, 0], lipschitz=0.9), 9)
    0.790154663
    """
    return math.fsum(pool.energy for pool in _pools(*_as_arrays(shifts, noise, lipschitz)))


def optimal_shifts(
    shifts: Numbers, noise: Numbers | None = None, lipschitz: Numbers | float = 1.0
) -> Array:
    """The a_t that attain the path energy: sum a_t^2 / noise_t^2 = E(s) (gossip:DP-7).

    >>> optimal_shifts([1, 0, 1, 0]).tolist()
    [0.5, 0.5, 0.5, 0.5]
    """
    s, nu, c = _as_arrays(shifts, noise, lipschitz)
    scales = -np.cumsum(np.log(c))
    pools = _pools(s, nu, c)
    best = np.zeros(len(s))
    ends = [pool.first for pool in pools[1:]] + [len(s)]
    for pool, end in zip(pools, ends, strict=True):
        if pool.width == 0 and pool.rise > 0:
            raise PrivacyError(
                f"no noise follows the shift at step {pool.first + 1}; no allocation can hide it"
            )
        part = slice(pool.first, end)
        if pool.rise > 0:
            best[part] = pool.rise / pool.width * nu[part] ** 2 * np.exp(scales[part] - pool.scale)
    return best


def iteration_divergence(shifts: Numbers, order: float, noise: Numbers | None = None) -> float:
    """Renyi divergence of the last iterates: alpha / 2 * E(s) (gossip:DP-7).

    >>> iteration_divergence([1, 0, 0, 0], order=2.0), iteration_divergence([1, 0, 1, 0], order=2.0)
    (0.25, 1.0)
    """
    if not order > 1:
        raise PrivacyError(f"a Renyi order must be above 1, found {order}")
    return order / 2 * path_energy(shifts, noise)


def decay(steps: int, lipschitz: float = 1.0) -> float:
    """e_c(m): energy of one unit shift seen m noisy c-Lipschitz steps later, its own noise counted
    (walk:F-2).

        e_c(m) = (c^-2 - 1) / (c^-2m - 1),  1/m when c = 1

    >>> round(decay(5, 0.9), 9), round(decay(200, 1.01), 9), decay(20)
    (0.125573564, 0.020079092, 0.05)
    """
    return float(decays(np.array([steps]), lipschitz)[0])


def decays(steps: Array | Ints | Sequence[int], lipschitz: float = 1.0) -> Array:
    """`decay` for many numbers of steps at once."""
    m = np.asarray(steps, np.float64)
    if m.size and not m.min() >= 1:
        raise PrivacyError(
            f"a contribution carries its own noise: it is seen 1 step later or more, found "
            f"{m.min():g}"
        )
    if not (lipschitz > 0 and math.isfinite(lipschitz)):
        raise PrivacyError(f"a Lipschitz constant is a positive number, found {lipschitz}")
    growth = -2 * math.log(lipschitz)
    if growth == 0:
        return 1 / m
    with np.errstate(over="ignore"):
        return math.expm1(growth) / np.expm1(growth * m)


def _pools(s: Array, nu: Array, c: Array) -> list[_SlopePool]:
    pools: list[_SlopePool] = []
    scale = 0.0
    for t, (shift, std, lipschitz) in enumerate(
        zip(s.tolist(), nu.tolist(), c.tolist(), strict=True)
    ):
        scale -= math.log(lipschitz)
        pool = _SlopePool(shift, std * std, scale, t)
        while pools and pools[-1].steeper(pool):
            pool = pools.pop().joined(pool)
        pools.append(pool)
    return pools


def _as_arrays(
    shifts: Numbers, noise: Numbers | None, lipschitz: Numbers | float
) -> tuple[Array, Array, Array]:
    s = np.asarray(shifts, np.float64)
    if s.ndim != 1 or not np.all(np.isfinite(s)) or np.any(s < 0):
        raise PrivacyError("shifts are a list of finite numbers >= 0, one for every noisy step")
    nu = np.ones(len(s)) if noise is None else np.asarray(noise, np.float64)
    if nu.shape != s.shape or not np.all(np.isfinite(nu)) or np.any(nu < 0):
        raise PrivacyError(
            f"there are {len(s)} steps; give as many noise standard deviations, finite and >= 0"
        )
    c = np.asarray(lipschitz, np.float64)
    c = np.full(s.shape, float(c)) if c.ndim == 0 else c
    if c.shape != s.shape or not np.all(np.isfinite(c)) or np.any(c <= 0):
        raise PrivacyError(
            f"there are {len(s)} steps; give one Lipschitz constant, or as many, finite and "
            f"positive"
        )
    return s, nu, c
