"""Proximal points of peers with one record each, in closed form or by one scalar root: no system to
solve.

    argmin over z of  loss(a.z, b) + |z - w|^2 / (2 gamma)   =   w - gamma a slope        (rows: peers)

The answer moves along a only, so one number, the slope at the answer, is to be found. Spec:
walk:ADMM-10.
"""

import numpy as np

from bruit.arrays import Array
from bruit.errors import ConfigError

ROOT_STEPS = 100
ROOT_TOLERANCE = 2e-15  # of the margin, in units of its own size


def huber_prox(a: Array, b: Array, w: Array, gamma: Array, clip: float) -> Array:
    """(a.z - b)^2 / 2 with its slope clipped (infinite clip: squares): slope = clip((a.w - b) / (1
    + gamma |a|^2))."""
    lengths = np.einsum("kp,kp->k", a, a)
    slope = np.clip((np.einsum("kp,kp->k", a, w) - b) / (1 + gamma * lengths), -clip, clip)
    answer: Array = w - (gamma * slope)[:, None] * a
    return answer  # (k, p)


def logistic_prox(a: Array, y: Array, w: Array, gamma: Array, clip: float) -> Array:
    """log(1 + exp(-y a.z)) with its slope clipped: the margin t solves t = y a.w + gamma |a|^2
    min(clip, 1/(1 + e^t)).

    The root is found to 2e-15 of the size of the margins, by Newton steps kept inside a shrinking
    bracket.
    """
    margin = y * np.einsum("kp,kp->k", a, w)
    reach = gamma * np.einsum("kp,kp->k", a, a)
    steepest = min(clip, 1.0)
    t, long = _root(margin, reach), reach > 1
    slope = np.where(
        long, (t - margin) / np.where(long, reach, 1.0), _sigmoid(-t)
    )  # a long reach enlarges errors of t
    straight = (
        _sigmoid(-(margin + reach * steepest)) >= steepest
    )  # even there the loss is on its straight part
    return w + (gamma * y * np.where(straight, steepest, slope))[:, None] * a  # (k, p)


def _root(margin: Array, reach: Array) -> Array:
    """The t between margin and margin + reach with t = margin + reach / (1 + e^t); the difference
    increases in t."""
    low, high = margin.copy(), margin + reach
    t, last = margin + reach * _sigmoid(-margin) / 2, reach
    for _ in range(ROOT_STEPS):
        pull = _sigmoid(-t)
        rest = t - margin - reach * pull
        growth = 1 + reach * pull * (1 - pull)
        newton = -rest / growth
        settled = np.abs(newton) <= ROOT_TOLERANCE * (np.abs(t) + (1 + np.abs(margin)) / growth)
        if bool(settled.all()):
            return t
        low, high = np.where(rest < 0, t, low), np.where(rest < 0, high, t)
        good = (np.abs(newton) <= np.abs(last) / 2) & (t + newton > low) & (t + newton < high)
        last = np.where(
            settled, 0.0, np.where(good, newton, (low + high) / 2 - t)
        )  # halve the bracket instead
        t = t + last
    raise ConfigError(
        f"a logistic proximal step did not settle in {ROOT_STEPS} steps "
        f"(gamma |a|^2 up to {reach.max():g}); use a smaller rho, or rows='unit'"
    )


def _sigmoid(t: Array) -> Array:
    """1 / (1 + e^-t), accurate relative to itself on both sides: a small slope times a long step
    still counts."""
    small = np.exp(-np.abs(t))
    return np.asarray(np.where(t >= 0, 1.0, small) / (1 + small))
