"""Batched Newton: the minimum of every peer's regularized objective at once, to a stated accuracy.

    minimize over W:  sum_j weight_j loss(W x_j, y_j) + (strength / 2) ||W - center||^2

Each Newton direction is solved by conjugate gradients (the Hessian is `strength` times the identity
plus a matrix of rank at most min(records, features) x outputs, so few products suffice) and taken
with a backtracking step. Clipped losses have jumps in their curvature; the same iteration is then
the semismooth Newton method, and the backtracking keeps every step a descent.

Accuracy: it stops when the gradient norm is at most tolerance * max(1, strength * max(1, ||center||)), whatever the
records are. By strong convexity the distance to the minimum is then at most that bound divided by `strength`: this is
the epsilon_in of walk:ADMM-10.
"""

from typing import NamedTuple

import numpy as np

from bruit.arrays import Array, Bools, Ints
from bruit.errors import ConfigError
from bruit.tasks.counted import counted
from bruit.tasks.loss import Loss
from bruit.tasks.records import Part

TOLERANCE = 1e-10
NEWTON_STEPS = 200
PRODUCT_LIMIT = 500
FORCING = 1e-3
LOOSE_FORCING = 0.1
LOOSE = 1e-6
HALVINGS = 50
ARMIJO = 1e-4
ROUNDING = 1e-13


class _NewtonProblem(NamedTuple):
    """The peers still being solved."""

    features: Array  # (k, m, p)
    targets: Array  # (k, m)
    weights: Array  # (k, m)
    center: Array  # (k, c, p)
    strength: Array  # (k,)
    goal: Array  # (k,) gradient norm at which a peer is done

    def __repr__(self) -> str:
        return counted("_NewtonProblem", self._asdict())

    def scores(self, model: Array) -> Array:
        scores: Array = np.matmul(self.features, model.swapaxes(1, 2))
        return scores  # (k, m, c)

    def pull(self, slopes: Array) -> Array:
        """sum_j slopes_j x_j, weights already inside the slopes."""
        pulled: Array = np.matmul(slopes.swapaxes(1, 2), self.features)
        return pulled  # (k, c, p)

    def only(self, keep: Bools) -> "_NewtonProblem":
        return _NewtonProblem(*(array[keep] for array in self))


def minimize(
    loss: Loss, part: Part, center: Array, strength: Array, tolerance: float = TOLERANCE
) -> Array:
    """The minimum for each peer of the part; center is (k, c, p), strength (k,) positive."""
    norms = np.maximum(1.0, np.sqrt(np.einsum("kcp,kcp->k", center, center)))
    goal = tolerance * np.maximum(1.0, strength * norms)
    problem = _NewtonProblem(
        features=part.features,
        targets=part.targets,
        weights=part.weights,
        center=center,
        strength=strength,
        goal=goal,
    )
    forcing = FORCING if tolerance < LOOSE else LOOSE_FORCING
    answer = center.copy()
    rows, model = np.arange(len(center)), center.copy()
    for _ in range(NEWTON_STEPS):
        scores = problem.scores(model)
        gradient = _gradient(loss, problem, model, scores)
        open_rows = np.sqrt(np.einsum("kcp,kcp->k", gradient, gradient)) > problem.goal
        if not bool(open_rows.all()):
            answer[rows[~open_rows]] = model[~open_rows]
            if not bool(open_rows.any()):
                return answer
            rows, model, problem = rows[open_rows], model[open_rows], problem.only(open_rows)
            scores, gradient = scores[open_rows], gradient[open_rows]
        direction = _direction(loss, problem, scores, gradient, forcing)
        step = _step(loss, problem, model, scores, gradient, direction)
        model = model + step[:, None, None] * direction
    raise ConfigError(_unfinished(rows, part.rows, gradient, problem.goal))


def _gradient(loss: Loss, problem: _NewtonProblem, model: Array, scores: Array) -> Array:
    slopes = loss.slope(scores.copy(), problem.targets) * problem.weights[:, :, None]
    return problem.pull(slopes) + problem.strength[:, None, None] * (model - problem.center)


def _direction(
    loss: Loss, problem: _NewtonProblem, scores: Array, gradient: Array, forcing: float
) -> Array:
    """Newton direction by conjugate gradients, to a residual of `forcing` times the gradient, peer
    by peer."""
    curvature = loss.curvature(scores, problem.targets)
    direction, residual = np.zeros_like(gradient), -gradient
    search, energy = residual.copy(), np.einsum("kcp,kcp->k", gradient, gradient)
    enough = energy * forcing**2
    rank = min(problem.features.shape[1], problem.features.shape[2]) * gradient.shape[1]
    for _ in range(min(2 * rank + 10, PRODUCT_LIMIT)):
        bent = loss.bend(curvature, problem.scores(search)) * problem.weights[:, :, None]
        product = problem.pull(bent) + problem.strength[:, None, None] * search
        running = energy > enough
        length = np.where(running, energy, 0.0) / np.where(
            running, np.einsum("kcp,kcp->k", search, product), 1.0
        )
        direction += length[:, None, None] * search
        residual -= length[:, None, None] * product
        fresh = np.where(running, np.einsum("kcp,kcp->k", residual, residual), energy)
        if bool((fresh <= enough).all()):
            break
        turn = np.where(running, fresh, 0.0) / np.where(running, energy, 1.0)
        search = residual + turn[:, None, None] * search
        energy = fresh
    return direction


def _step(
    loss: Loss,
    problem: _NewtonProblem,
    model: Array,
    scores: Array,
    gradient: Array,
    direction: Array,
) -> Array:
    """Backtracking along the direction, on scores only; peers stop halving one by one.

    Taken: a step that does not pass the minimum of the line, or one that lowers the objective
    enough, or (where rounding hides the objective) one that clearly lowers the slope along the
    line.
    """
    move = problem.scores(direction)  # (k, m, c)
    offset = model - problem.center
    along, square = (
        np.einsum("kcp,kcp->k", offset, direction),
        np.einsum("kcp,kcp->k", direction, direction),
    )
    descent = np.einsum("kcp,kcp->k", gradient, direction)  # (k,) negative
    start = (loss.value(scores, problem.targets) * problem.weights).sum(axis=1)
    step = np.ones(len(model))
    for _ in range(HALVINGS):
        reached = scores + step[:, None, None] * move
        quadratic = problem.strength * (step * along + step**2 * square / 2)
        gain = (
            (loss.value(reached, problem.targets) * problem.weights).sum(axis=1) - start + quadratic
        )
        slopes = (loss.slope(reached, problem.targets) * move).sum(axis=2)
        slope = (slopes * problem.weights).sum(axis=1) + problem.strength * (along + step * square)
        lower = gain <= ARMIJO * step * descent
        level = (gain <= ROUNDING * (1.0 + np.abs(start))) & (slope <= -0.8 * descent)
        taken = (slope <= 0) | lower | level
        if bool(taken.all()):
            break
        step = np.where(taken, step, step / 2)
    return step


def _unfinished(rows: Ints, asked: slice | Ints, gradient: Array, goal: Array) -> str:
    place = (
        np.arange(asked.start, asked.stop)[rows[0]] if isinstance(asked, slice) else asked[rows[0]]
    )
    left = float(np.sqrt((gradient[0] ** 2).sum()))
    return (
        f"row {int(place)} of the batch did not reach gradient norm {goal[0]:.1e} in {NEWTON_STEPS}"
        f" Newton steps (left: {left:.1e}); use a smaller rho, a larger l2, or rows='unit'"
    )
