"""Compiled proximal steps: one peer's regularized objective minimized exactly, and a token's ADMM
walk through them.

    z(c) = argmin over z of (1/m) sum_j loss(x_j . z, y_j) + (a / 2) |z - c|^2

Losses: SQUARED (closed form without clip), LOGISTIC, each with its slope cut at `bound` (Huber).
Newton with backtracking; every direction is one Cholesky factorization of the smaller of X'DX + a I
and D^1/2 XX' D^1/2 + a I. It stops where the gradient is at most `tolerance` max(1, a max(1, |c|)),
as bruit.tasks.newton does (walk:ADMM-10).
"""

import math

import numpy as np
from numba import njit

from bruit.algorithms.compiled.clipping import clip_factor
from bruit.arrays import Array, Ints

SQUARED, LOGISTIC = 0, 1
_STEPS, _HALVINGS, _ARMIJO, _ROUNDING = 200, 50, 1e-4, 1e-13


@njit(cache=True, nogil=True, boundscheck=False)
def _dot(a: Array, b: Array) -> float:
    """a . b, without an array in between."""
    total = 0.0
    for h in range(len(a)):
        total += a[h] * b[h]
    return total


@njit(cache=True, nogil=True)
def _value(kind: int, bound: float, score: float, target: float) -> float:
    """The loss of one record."""
    if kind == SQUARED:
        size = abs(score - target)
        inside = min(size, bound)
        return inside * (size - inside / 2)
    margin = score * target
    if bound < 1.0:
        knee = math.log1p(-bound) - math.log(bound)
        if margin < knee:
            return -math.log1p(-bound) + bound * (knee - margin)
    return math.log1p(math.exp(-abs(margin))) + max(-margin, 0.0)


@njit(cache=True, nogil=True)
def _slope(kind: int, bound: float, score: float, target: float) -> tuple[float, float]:
    """Its first and second derivative in the score."""
    if kind == SQUARED:
        rest = score - target
        return (rest, 1.0) if abs(rest) <= bound else (math.copysign(bound, rest), 0.0)
    bent = math.tanh(0.5 * score)
    slope = 0.5 * (bent - target)
    if bound < 1.0 and abs(slope) > bound:
        return math.copysign(bound, slope), 0.0
    return slope, 0.25 * (1.0 - bent) * (1.0 + bent)


@njit(cache=True, nogil=True, boundscheck=False, error_model="numpy")
def _solve(system: Array, k: int, b: Array) -> None:
    """b <- system^-1 b for the leading k x k block, positive definite, by Cholesky in place (lower
    triangle)."""
    for j in range(k):
        for i in range(j):
            low = system[j, i]
            for h in range(i):
                low -= system[j, h] * system[i, h]
            system[j, i] = low / system[i, i]
        root = system[j, j]
        for h in range(j):
            root -= system[j, h] * system[j, h]
        system[j, j] = math.sqrt(root)
        for h in range(j):
            b[j] -= system[j, h] * b[h]
        b[j] /= system[j, j]
    for j in range(k - 1, -1, -1):
        for h in range(j + 1, k):
            b[j] -= system[h, j] * b[h]
        b[j] /= system[j, j]


@njit(cache=True, nogil=True, boundscheck=False, error_model="numpy")
def _gram(rows: Array, a: float, by_records: bool, system: Array) -> int:
    """rows rows' + a I, or rows' rows + a I: the lower triangle; gives its size."""
    m, p = rows.shape
    k: int = m if by_records else p
    for i in range(k):
        for j in range(i + 1):
            total = a if i == j else 0.0
            if by_records:
                for h in range(p):
                    total += rows[i, h] * rows[j, h]
            else:
                for h in range(m):
                    total += rows[h, i] * rows[h, j]
            system[i, j] = total
    return k


@njit(cache=True, nogil=True, boundscheck=False, error_model="numpy")
def _least_squares(
    features: Array,
    targets: Array,
    center: Array,
    a: float,
    rows: Array,
    system: Array,
    small: Array,
    z: Array,
) -> None:
    """z = u + S'(SS' + aI)^-1 r = u + (S'S + aI)^-1 S'r with S = X / sqrt(m), r = (y - X u) /
    sqrt(m)."""
    m, p = features.shape
    root, by_records = 1.0 / math.sqrt(m), m < p
    small[:] = 0.0
    for i in range(m):
        rest = targets[i]
        for h in range(p):
            rows[i, h] = root * features[i, h]
            rest -= features[i, h] * center[h]
        if by_records:
            small[i] = root * rest
        else:
            for h in range(p):
                small[h] += root * rest * rows[i, h]
    k = _gram(rows[:m], a, by_records, system)
    _solve(system, k, small)
    for h in range(p):
        z[h] = center[h]
        if by_records:
            for i in range(m):
                z[h] += rows[i, h] * small[i]
        else:
            z[h] += small[h]


@njit(cache=True, nogil=True, boundscheck=False, error_model="numpy")
def _direction(
    features: Array,
    curves: Array,
    gradient: Array,
    a: float,
    rows: Array,
    system: Array,
    small: Array,
    out: Array,
) -> None:
    """-(X'DX + aI)^-1 g = -(g - S'(SS' + aI)^-1 S g) / a with S = D^1/2 X, whichever system is
    smaller."""
    m, p = features.shape
    by_records = m < p
    small[:] = 0.0
    for i in range(m):
        root = math.sqrt(curves[i])
        for h in range(p):
            rows[i, h] = root * features[i, h]
            if by_records:
                small[i] += rows[i, h] * gradient[h]
    if not by_records:
        for h in range(p):
            small[h] = gradient[h]
    k = _gram(rows[:m], a, by_records, system)
    _solve(system, k, small)
    for h in range(p):
        if by_records:
            pulled = gradient[h]
            for i in range(m):
                pulled -= rows[i, h] * small[i]
            out[h] = -pulled / a
        else:
            out[h] = -small[h]


@njit(cache=True, nogil=True, boundscheck=False, error_model="numpy")
def _length(
    kind: int,
    bound: float,
    targets: Array,
    scores: Array,
    moves: Array,
    straight: float,
    square: float,
    slope: float,
) -> float:
    """The largest halved step that decreases the objective; the quadratic part is straight s +
    square s^2 / 2."""
    m, before = len(targets), 0.0
    for i in range(m):
        before += _value(kind, bound, scores[i], targets[i]) / m
    step = 1.0
    for _ in range(_HALVINGS):
        after = straight * step + 0.5 * square * step * step
        for i in range(m):
            after += _value(kind, bound, scores[i] + step * moves[i], targets[i]) / m
        if after <= before + _ARMIJO * step * slope + _ROUNDING * max(1.0, abs(before)):
            break
        step *= 0.5
    return step


@njit(cache=True, nogil=True, boundscheck=False, error_model="numpy")
def _newton(
    kind: int,
    bound: float,
    features: Array,
    targets: Array,
    center: Array,
    a: float,
    tolerance: float,
    work: tuple[Array, ...],
    z: Array,
) -> bool:
    """Minimizes into z; whether it got there."""
    rows, system, small, scores, moves, curves, gradient, toward = work
    m, p = features.shape
    goal = tolerance * max(1.0, a * max(1.0, math.sqrt(_dot(center, center))))
    z[:] = center
    for _ in range(_STEPS):
        for h in range(p):
            gradient[h] = a * (z[h] - center[h])
        for i in range(m):
            scores[i] = _dot(features[i], z)
            slope, curve = _slope(kind, bound, scores[i], targets[i])
            curves[i] = curve / m
            for h in range(p):
                gradient[h] += slope / m * features[i, h]
        size = math.sqrt(_dot(gradient, gradient))
        if not size > goal:
            return math.isfinite(size)
        _direction(features, curves, gradient, a, rows, system, small, toward)
        for i in range(m):
            moves[i] = _dot(features[i], toward)
        straight, square = a * (_dot(z, toward) - _dot(center, toward)), a * _dot(toward, toward)
        step = _length(
            kind, bound, targets, scores[:m], moves[:m], straight, square, _dot(gradient, toward)
        )
        for h in range(p):
            z[h] += step * toward[h]
    return False


@njit(cache=True, nogil=True, boundscheck=False)
def _largest(start: Ints) -> int:
    """Records of the peer that has most."""
    most = 1
    for v in range(len(start) - 1):
        most = max(most, start[v + 1] - start[v])
    return most


@njit(cache=True, nogil=True, boundscheck=False, error_model="numpy")
def _workspace(most: int, p: int) -> tuple[Array, ...]:
    """Room for the records of the largest peer, O(m p + min(m, p)^2)."""
    k = min(most, p)
    return (
        np.empty((most, p)),
        np.empty((k, k)),
        np.empty(max(most, p)),
        np.empty(most),
        np.empty(most),
        np.empty(most),
        np.empty(p),
        np.empty(p),
    )


@njit(cache=True, nogil=True, boundscheck=False, error_model="numpy")
def proximal_walk(
    path: Ints,
    noise: Array,
    start: Ints,
    features: Array,
    targets: Array,
    token: Array,
    dual: Array,
    zhat: Array,
    loss: tuple[int, float, float],
    lengths: tuple[float, float, float],
    penalty: tuple[float, float, float],
    clip: float,
    spacing: float,
) -> int:
    """z = prox_r(zhat); change = 2 l (z - u - gamma (release((w - x) / gamma) + noise)), w = 2 z -
    u, x = prox_f(w).

    loss: kind, bound of the slope, l2; lengths: gamma, relaxation, tolerance; penalty: l1, l2, box.
    The records of peer v are the rows start[v] .. start[v + 1]. Gives the first hop whose proximal
    point was not found, -1 if none.
    """
    n, p = token.shape
    kind, bound, l2 = loss
    gamma, share, tolerance = lengths
    cut, shrink, box = gamma * penalty[0], 1.0 + gamma * penalty[1], penalty[2]
    a, work = l2 + 1.0 / gamma, _workspace(_largest(start), p)
    z, w, center, x = np.empty(p), np.empty(p), np.empty(p), np.empty(p)
    for t in range(len(path)):
        v = path[t]
        mine, wanted = features[start[v] : start[v + 1]], targets[start[v] : start[v + 1]]
        for h in range(p):
            kept = (zhat[h] - min(max(zhat[h], -cut), cut)) / shrink
            z[h] = min(max(kept, -box), box)
            w[h] = 2.0 * z[h] - dual[v, h]
            center[h] = w[h] / (1.0 + gamma * l2)
        if kind == SQUARED and bound == math.inf:
            _least_squares(mine, wanted, center, a, work[0], work[1], work[2], x)
        elif not _newton(kind, bound, mine, wanted, center, a, tolerance, work, x):
            return t
        for h in range(p):
            x[h] = (w[h] - x[h]) / gamma
        _release(x, clip, spacing)
        for h in range(p):
            change = 2.0 * share * (z[h] - dual[v, h] - gamma * (x[h] + noise[t, h]))
            zhat[h] += change / n
            dual[v, h] += change
            token[v, h] = zhat[h]
        if not math.isfinite(_dot(zhat, zhat)):
            return t
    return -1


@njit(cache=True, nogil=True, boundscheck=False, error_model="numpy")
def _release(x: Array, clip: float, spacing: float) -> None:
    """Cuts a row to the norm and rounds it toward zero to the lattice, as additive mechanisms
    do."""
    factor = clip_factor(math.sqrt(_dot(x, x)), clip, len(x))
    for h in range(len(x)):
        x[h] *= factor
    if spacing > 0.0:
        for h in range(len(x)):
            x[h] = np.trunc(x[h] / spacing) * spacing
