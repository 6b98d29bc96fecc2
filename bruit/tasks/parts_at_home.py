"""Parts of a model that stay at home: fitted by every peer on its own records, never released.

    W_u = argmin over the local columns of  mean loss of u's records + (1 / 2m) |size (W - shared)|^2

The other columns stay as they were learned together or, with `scale`, are all multiplied by one
number a_u, which is fitted as well: shared models of few large steps have scores of any size. `size`
is 1, as for models that peers fit alone, but for the intercept and the scale (around 1): there it is
the root mean square of what they multiply, so that moving all scores by one costs as much as half a
record.

Nobody but u sees W_u. It is made after the last release and no release depends on it, so it costs
nothing (silo:SILO-6). Gradients that are released are taken at the *shared* value of these columns:
at a private one, a single record of u would move the gradients of all the others.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from bruit.arrays import Array, Bools, Ints
from bruit.errors import ConfigError
from bruit.tasks.data.columns import nearest
from bruit.tasks.data.public import listed
from bruit.tasks.loss import Loss
from bruit.tasks.newton import minimize
from bruit.tasks.records import Part, Records

if TYPE_CHECKING:
    from bruit.tasks.linear import LinearTask

ALL, INTERCEPT, SCALE = "all", "intercept", "scale"
TOLERANCE = 1e-8


def columns_at_home(local: tuple[str, ...], records: Records) -> Bools:
    """Which columns of prepared rows a list of names means: a feature, all features of a column,
    `intercept`, or `all`; `scale` is of all other columns together  # (p,)."""
    found = np.zeros(records.columns, np.bool_)
    local = tuple(name for name in local if name != SCALE)
    if not local:
        return found
    if local == (ALL,):
        return ~found
    recipe = records.recipe
    if recipe is None or recipe.width != records.columns:
        raise ConfigError(
            f"local names {listed(local)}, but nobody wrote down what the columns of these records "
            f'are called; make them with `load` or Records.of, or use local = ["{ALL}"]'
        )
    places = {name: [place] for place, name in enumerate(recipe.inputs)}
    if recipe.directions is None and recipe.stumps is None:
        for column in recipe.columns:
            places[column.name] = [recipe.inputs.index(name) for name in column.features]
    if recipe.intercept:
        places[INTERCEPT] = [records.columns - 1]
    for name in local:
        if name not in places:
            raise ConfigError(
                f"local names {name!r}, which is no part of this model"
                f"{nearest(name, tuple(places))}; its parts are {listed(tuple(places))}, the "
                f'"{SCALE}" of what is shared, or "{ALL}" by itself'
            )
        found[places[name]] = True
    return found


def fitted_at_home(task: LinearTask, ids: Ints, models: Array) -> Array:
    """The models of these peers, with their local columns fitted on their own records  # (k, d)."""
    local = columns_at_home(task.local, task.records)
    found = np.array(models, np.float64)
    if not task.local:
        return found
    for row, peer in enumerate(ids.tolist()):
        if bool(np.isfinite(found[row]).all()):  # a run that went astray stays as it is
            found[row] = _fitted(task, peer, found[row], local)
    return found


def check_local(task: LinearTask) -> None:
    """Refuse parts that no model of this task has."""
    columns = columns_at_home(task.local, task.records)
    if SCALE in task.local and (task.outputs > 1 or columns.all()):
        raise ConfigError(
            f'the "{SCALE}" of a model is one number for all that is shared of one score, found '
            f"{task.outputs} scores and {int((~columns).sum())} shared columns; leave it out of local"
        )


def _fitted(task: LinearTask, peer: int, model: Array, local: Bools) -> Array:
    part = next(task.records.parts(np.array([peer]), task.dim))
    real = part.weights[0] > 0
    rows, count = part.features[0, real], int(real.sum())
    matrix = model.reshape(task.outputs, -1).copy()
    shared = rows[:, ~local] @ matrix[:, ~local].T  # (m, outputs)
    size, recipe = np.ones(task.records.columns), task.records.recipe
    if recipe is not None and recipe.intercept and rows[:, -1].any():
        size[-1] = _root_mean_square(rows[:, -1])
    size = size[local]
    own, center = rows[:, local] / size, matrix[:, local] * size
    spread = _root_mean_square(shared) if SCALE in task.local else 0.0
    if spread:
        own, center = np.column_stack((own, shared / spread)), np.append(center, [[spread]], axis=1)
    records = Part(slice(0, 1), own[None], part.targets[:, real], part.weights[:, real])
    loss = _BesideScores(task.loss, np.zeros((1, 1, 1)) if spread else shared[None])
    moved = minimize(loss, records, center[None], np.array([1.0 / count]), TOLERANCE)[0]
    matrix[:, local] = moved[:, : len(size)] / size
    if spread:
        matrix[:, ~local] *= moved[0, -1] / spread
    return matrix.ravel()


def _root_mean_square(numbers: Array) -> float:
    return float(np.sqrt((numbers**2).mean()))


@dataclass(frozen=True, eq=False)
class _BesideScores(Loss):
    """The loss of what is added to scores that stay: loss(s + given, y)."""

    inner: Loss
    given: Array  # (1, m, c), or one number for all

    @property
    def lipschitz(self) -> float:
        return self.inner.lipschitz

    @property
    def smoothness(self) -> float:
        return self.inner.smoothness

    def value(self, scores: Array, targets: Array) -> Array:
        return self.inner.value(scores + self.given, targets)

    def slope(self, scores: Array, targets: Array) -> Array:
        return self.inner.slope(scores + self.given, targets)

    def curvature(self, scores: Array, targets: Array) -> Array:
        return self.inner.curvature(scores + self.given, targets)

    def bend(self, curvature: Array, direction: Array) -> Array:
        return self.inner.bend(curvature, direction)
