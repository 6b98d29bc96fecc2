"""Exact accounting of Gaussian noise: trade-off of N(0, 1) against N(mu, 1), and conversions from
Renyi divergence.

    delta(epsilon) = Phi(mu/2 - epsilon/mu) - exp(epsilon) Phi(-mu/2 - epsilon/mu)          (gossip:DP-1, walk:F-1)
                   = exp(-a**2 / 2) / 2 * (erfcx(-a / sqrt 2) - erfcx(-b / sqrt 2)),   a, b = +-mu/2 - epsilon/mu

mu = sensitivity / sigma for one release; mu**2 adds over releases. The second form holds because
b**2 - a**2 = 2 epsilon: no exponential of epsilon is left, so it works for any size of epsilon.

log delta is a concave decreasing function of epsilon (delta is the convolution of a log-concave
tail with an exponential), so a Newton step on it, from either side, lands at or above the root:
every epsilon is rounded up.
"""

import math

import numpy as np

from bruit.arrays import Array, Bools
from bruit.errors import PrivacyError
from bruit.privacy.calibrate import least

_TABLE, _CHUNK, _NEWTON = 2**12, 2**16, 60
_TINY, _HUGE = 1e-5, 1e12  # beyond, epsilon > 5e23 is called infinite
_ROOT2 = math.sqrt(2.0)


def delta_of(epsilon: float, mu: float) -> float:
    """The exact delta of a mu-GDP mechanism at epsilon (gossip:DP-1). mu = 0 gives 0."""
    _check_mu(mu)
    if math.isnan(epsilon) or epsilon < 0:
        raise PrivacyError(f"epsilon must be a number >= 0, found {epsilon}")
    return float(deltas(epsilon, np.array([mu], dtype=float))[0])


def deltas(epsilon: float, mu: Array) -> Array:
    """`delta_of` for many mu at once; the caller answers for mu >= 0 and epsilon >= 0."""
    from scipy.special import erfcx, ndtr  # slow to load, and a peer that only talks does without

    found = np.where(np.isinf(mu), 1.0, 0.0)
    rows = np.flatnonzero((mu > 0) & np.isfinite(mu))
    if epsilon == math.inf or not rows.size:
        return found if epsilon < math.inf else np.zeros_like(found)
    values = mu[rows]
    a = values / 2 - epsilon / values
    far = a > 20.0  # Phi(a) is 1 and erfcx(-a) would overflow
    part = np.empty_like(values)
    part[~far] = np.exp(_log_delta(np.full(int((~far).sum()), epsilon), values[~far])[0])
    b = (values[far] - a[far]) / _ROOT2
    part[far] = ndtr(a[far]) - np.exp(-(a[far] ** 2) / 2) * erfcx(b) / 2
    found[rows] = np.minimum(part, 1.0)
    return found


def epsilon_of(mu: float, delta: float) -> float:
    """The exact epsilon of a mu-GDP mechanism at delta, rounded up; 0 where delta(0) <= delta
    (gossip:DP-1)."""
    return float(epsilons(np.array([mu], dtype=float), delta)[0])


def epsilons(mu: Array, delta: float) -> Array:
    """`epsilon_of` for many mu at once (any shape), fast enough for every pair of a large network.
    nan stays nan."""
    _check_delta(delta)
    mu = np.asarray(mu, dtype=np.float64)
    flat = mu.reshape(-1)
    if np.any(flat < 0):
        raise PrivacyError(f"mu = sensitivity / sigma must be >= 0, found {np.nanmin(flat)}")
    out = np.where(np.isnan(flat), np.nan, np.where(flat > _HUGE, np.inf, 0.0))
    rows = np.flatnonzero((flat <= _HUGE) & (flat > 0) & ~_free(flat, delta))
    if rows.size <= 4 * _TABLE:
        out[rows] = _newton(flat[rows], _renyi_bound(flat[rows], delta), delta)
        return out.reshape(mu.shape)
    # epsilon / mu is smooth in log mu: interpolate a table for a start, and let Newton round up
    # from there.
    grid = np.geomspace(flat[rows].min(), flat[rows].max(), _TABLE)
    ratio = _newton(grid, _renyi_bound(grid, delta), delta) / grid
    for start in range(0, rows.size, _CHUNK):
        part = rows[start : start + _CHUNK]
        values = flat[part]
        out[part] = _newton(values, values * np.interp(np.log(values), np.log(grid), ratio), delta)
    return out.reshape(mu.shape)


def mu_of(epsilon: float, delta: float) -> float:
    """The largest mu whose epsilon at delta does not exceed the given one (exact inverse,
    gossip:DP-4)."""
    _check_delta(delta)
    if math.isnan(epsilon) or epsilon < 0:
        raise PrivacyError(f"epsilon must be a number >= 0, found {epsilon}")
    if epsilon == math.inf:
        return math.inf
    return 1.0 / least(lambda multiplier: delta_of(epsilon, 1.0 / multiplier), delta)


def rdp_to_epsilon(order: float, divergence: float, delta: float, tight: bool = True) -> float:
    """Epsilon at delta from one Renyi divergence (gossip:DP-2, walk:F-1).

    tight:      divergence + log((order - 1) / order) - (log delta + log order) / (order - 1), floored at 0
    published:  divergence + log(1 / delta) / (order - 1)
    """
    _check_delta(delta)
    if not order > 1:
        raise PrivacyError(f"a Renyi order must be above 1, found {order}")
    if math.isnan(divergence) or divergence < 0:
        raise PrivacyError(f"a Renyi divergence must be a number >= 0, found {divergence}")
    if not tight:
        return divergence - math.log(delta) / (order - 1)
    return max(
        0.0, divergence + math.log1p(-1 / order) - (math.log(delta) + math.log(order)) / (order - 1)
    )


def zcdp_to_epsilon(rho: float, delta: float, tight: bool = True) -> float:
    """Epsilon at delta when the divergence of every order alpha is at most rho * alpha
    (gossip:DP-2, walk:F-1).

        published:  rho + 2 sqrt(rho log(1 / delta)), attained at alpha = 1 + sqrt(log(1 / delta) / rho)
        tight:      the least `rdp_to_epsilon` over alpha; any alpha is a proof, so the search need not be exact
    """
    _check_delta(delta)
    if math.isnan(rho) or rho < 0:
        raise PrivacyError(f"rho must be a number >= 0, found {rho}")
    if rho == 0 or rho == math.inf:
        return rho
    published = rho + 2 * math.sqrt(-rho * math.log(delta))
    if not tight:
        return published
    center = math.log(-math.log(delta) / rho) / 2
    logs = np.linspace(
        center - 4.0, center + 4.0, 513
    )  # of alpha - 1, around the published optimum
    for _ in range(3):
        costs = [rdp_to_epsilon(1 + math.exp(x), rho * (1 + math.exp(x)), delta) for x in logs]
        best = int(np.argmin(costs))
        logs = np.linspace(logs[max(best - 1, 0)], logs[min(best + 1, len(logs) - 1)], 65)
    return min(published, *costs)


def _log_delta(epsilon: Array, mu: Array) -> tuple[Array, Array]:
    """log delta, and minus its slope in epsilon: exp(epsilon) Phi(b) / delta."""
    from scipy.special import erfcx

    a = mu / 2 - epsilon / mu
    near, far = erfcx(-a / _ROOT2), erfcx((mu - a) / _ROOT2)
    gap = near - far
    if (
        mu.size and mu.min() < _TINY
    ):  # near and far agree in their first digits: the derivative at the middle is better
        x = epsilon / mu / _ROOT2
        gap = np.where(mu < _TINY, mu / _ROOT2 * (2 / math.sqrt(math.pi) - 2 * x * erfcx(x)), gap)
    slack = 1e-14 + 4e-15 * (
        mu + 1 / np.maximum(mu, _TINY)
    )  # more than the rounding errors above: delta is rounded up
    with np.errstate(divide="ignore"):  # a gap too small for a float is log 0, delta 0
        return np.log(gap / 2) - a * a / 2 + slack, far / gap


def _newton(mu: Array, start: Array, delta: float) -> Array:
    epsilon, target = start.copy(), math.log(delta)
    active = np.arange(mu.size)
    for _ in range(_NEWTON):
        log_delta, slope = _log_delta(epsilon[active], mu[active])
        move = (log_delta - target) / slope
        epsilon[active] = np.maximum(epsilon[active] + move, 0.0)
        active = active[np.abs(move) > 1e-13 * epsilon[active]]
        if active.size == 0:
            break
    return epsilon


def _renyi_bound(mu: Array, delta: float) -> Array:
    return mu * mu / 2 + mu * math.sqrt(-2 * math.log(delta))


def _free(mu: Array, delta: float) -> Bools:
    """Where delta(0) = 2 Phi(mu / 2) - 1 is already small enough: epsilon is 0."""
    from scipy.special import ndtr

    return np.asarray(ndtr(mu / 2) - ndtr(-mu / 2) <= delta)


def _check_delta(delta: float) -> None:
    if not 0 < delta < 1:
        raise PrivacyError(
            f"delta must be between 0 and 1, both excluded, found {delta}; 1e-6 is the usual choice"
        )


def _check_mu(mu: float) -> None:
    if math.isnan(mu) or mu < 0:
        raise PrivacyError(f"mu = sensitivity / sigma must be >= 0, found {mu}")
