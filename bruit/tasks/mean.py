"""The mean: every peer holds one vector, all want the average.

    f_i(x) = ||x - v_i||^2 / 2        gradient x - v_i        prox (x + rho v_i) / (1 + rho)

Smooth and strongly convex with constant 1; not Lipschitz: a private run clips the values at the
door.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from math import inf, isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from bruit.arrays import Array, Ints
from bruit.digests import ASIDE
from bruit.errors import ConfigError
from bruit.tasks.data.own_rows import Agreement, features, own_recipe, read_rows, recipe_column
from bruit.tasks.data.public import Fact, said
from bruit.tasks.data.recipe import Recipe
from bruit.tasks.data.use import Use
from bruit.tasks.kinds.kind import TaskKind
from bruit.tasks.record_gradients import chosen, summed
from bruit.tasks.task import QUESTIONS, Constants, Manifest, Task

if TYPE_CHECKING:
    from bruit.tasks.kinds.section import TaskSection


@dataclass(frozen=True, eq=False)
class Mean(Task):
    """Values (n, d), one row a peer; `name` says in the manifest where they come from, `facts` what
    else all know.

    use: what of a data set they are, if they are from one.
    """

    answers: ClassVar[frozenset[str] | None] = QUESTIONS

    values: Array
    name: str = "values"
    facts: tuple[Fact, ...] = ()
    use: Use | None = field(default=None, metadata=ASIDE)
    _recipe: Recipe | None = (
        None  # names of the coordinates and their units, or what a histogram counts
    )

    def __post_init__(self) -> None:
        if self.values.ndim != 2 or 0 in self.values.shape:
            raise ConfigError(
                f"values are {self.values.shape}; give one row of numbers a peer: (peers, dim)"
            )
        if not bool(np.isfinite(self.values).all()):
            row, column = np.argwhere(~np.isfinite(self.values))[0]
            raise ConfigError(
                f"the value of peer {row} is {self.values[row, column]} at coordinate {column}; "
                "every peer needs finite numbers"
            )

    @staticmethod
    def uniform(
        peers: int, dim: int = 1, seed: int = 0, low: float = -1.0, high: float = 1.0
    ) -> Mean:
        """Values uniform in [low, high]."""
        _check_shape(peers, dim)
        values = np.random.default_rng(seed).uniform(low, high, (peers, dim))
        return Mean(values, f"uniform in [{low:g}, {high:g}], seed {seed}")

    @staticmethod
    def normal(peers: int, dim: int = 1, seed: int = 0) -> Mean:
        """Standard normal values."""
        _check_shape(peers, dim)
        return Mean(
            np.random.default_rng(seed).standard_normal((peers, dim)),
            f"standard normal, seed {seed}",
        )

    @property
    def peers(self) -> int:
        return len(self.values)

    @property
    def dim(self) -> int:
        return int(self.values.shape[1])

    @property
    def metric(self) -> str:
        return "mse"

    def value(self, ids: Ints) -> Array:
        if len(ids) and (ids.min() < 0 or ids.max() >= self.peers):
            guilty = int(ids[(ids < 0) | (ids >= self.peers)][0])
            raise ConfigError(
                f"peer {guilty} was asked for its value, but peers are 0..{self.peers - 1}"
            )
        return self.values[ids]

    def gradient(self, ids: Ints, x: Array) -> Array:
        self._check_models(ids, x)
        return x - self.value(ids)

    def gradient_sampled(self, ids: Ints, x: Array, uniforms: Array) -> Array:
        """A peer has one record, so every draw is that record."""
        if uniforms.ndim != 2 or len(uniforms) != len(ids) or uniforms.shape[1] < 1:
            raise ConfigError(
                f"uniforms are {uniforms.shape} for {len(ids)} peers; give (peers, batch >= 1)"
            )
        return self.gradient(ids, x)

    def record_counts(self) -> Ints:
        return np.ones(self.peers, np.int64)

    def cut_losses(self, ids: Ints, x: Array, ceiling: float) -> Array:
        """Half the squared distance to the one record."""
        apart = self.gradient(ids, x)
        return np.asarray(np.minimum((apart * apart).sum(axis=1) / 2, ceiling))

    def clipped_sum(
        self, ids: Ints, x: Array, coins: Array | None, rate: float, clip: float, unit: float
    ) -> Ints:
        """A peer has one record."""
        return summed(self.gradient(ids, x)[:, None], chosen(coins, rate, len(ids), 1), clip, unit)

    def prox(self, ids: Ints, x: Array, rho: float) -> Array:
        self._check_models(ids, x)
        if not (rho > 0 and isfinite(rho)):
            raise ConfigError(f"rho is {rho}; a proximal step needs a positive, finite rho")
        return (x + rho * self.value(ids)) / (1.0 + rho)

    def pair_value(self, x: Array, y: Array, uniform: float) -> Array:
        """The middle of the two: averaged over all pairs it is the mean again."""
        return ((x + y) / 2 - uniform / self.dim) / (1.0 - uniform)

    def pair_gradient(self, models: Array, x: Array, y: Array, uniform: float) -> Array:
        """Of half the squared distance to the middle of the two."""
        return models - self.pair_value(x, y, uniform)

    def divided(self, ids: Ints) -> Mean:
        return replace(self, values=self.value(ids))

    def evaluate(self, models: Array) -> dict[str, float]:
        """Squared distance to the true mean: mean over peers, and the worst peer."""
        if models.ndim != 2 or models.shape[1] != self.dim:
            raise ConfigError(
                f"models are {models.shape}; give one row of {self.dim} numbers a peer"
            )
        errors = ((models - self.values.mean(axis=0)) ** 2).sum(axis=1)
        return {"mse": float(errors.mean()), "worst": float(errors.max())}

    def constants(self) -> Constants:
        return Constants(inf, 1.0, 1.0, "declared")

    @property
    def kind(self) -> str:
        return "histogram" if self._recipe is not None and self._recipe.classes else "mean"

    def recipe(self) -> Recipe:
        """A mean is applied to no rows; its recipe has the names and units of its numbers, where
        they are known."""
        return Recipe.plain(()) if self._recipe is None else self._recipe

    def describe(self) -> Manifest:
        shape = Fact(
            f"the number of peers, {self.peers}, and the length of their values, {self.dim}",
            "agreed",
        )
        used = {} if self.use is None else {"used": self.use.describe()}
        return {
            "task": "Mean",
            "peers": self.peers,
            "dim": self.dim,
            "data": {"name": self.name},
            **used,
            "public": said((shape, *self.facts)),
        }

    def references(self) -> dict[str, float]:
        """Alone, a peer only knows its own value; in one place, the mean is exact."""
        return {"alone": self.evaluate(self.values)["mse"], "central": 0.0}

    def _check_models(self, ids: Ints, x: Array) -> None:
        if x.shape != (len(ids), self.dim):
            raise ConfigError(
                f"models are {x.shape} for {len(ids)} peers; give ({len(ids)}, {self.dim})"
            )


def _check_shape(peers: int, dim: int) -> None:
    if peers < 1 or dim < 1:
        raise ConfigError(
            f"{peers} peers with values of length {dim} were asked for; both must be at least 1"
        )


class MeanKind(TaskKind):
    """Values (n, d), one row a peer; `name` says in the manifest where they come from, `facts` what
    else all know."""

    name = "mean"
    task = Mean
    keys = frozenset({"dim"})
    drawn = frozenset({"dim"})
    held = True

    def build(self, section: TaskSection, peers: int, seed: int) -> Mean:
        if section.data is not None:
            raise ConfigError(
                "a mean task draws uniform values of task.dim numbers; to average a file, use "
                "Python"
            )
        return Mean.uniform(peers, section.dim, seed)

    def share(self, task: Task, peer: int) -> dict[str, Any]:
        if not isinstance(task, Mean):
            return super().share(task, peer)
        return {"values": task.values[peer : peer + 1]}

    def own_task(self, columns: Mapping[str, Any], recipe: Recipe | None, among: int) -> Mean:
        return Mean(columns["values"], _recipe=recipe)

    def from_csv(
        self, path: Path, agreement: Agreement, tell: Callable[[str], None]
    ) -> dict[str, Any]:
        """The one row of a participant."""
        table = read_rows(path, agreement, tell)
        rows = features(table, agreement)
        if len(rows) != 1:
            raise ConfigError(
                f"{table.file} holds {len(rows)} rows, but in a mean every participant has one "
                f"value a column; average your rows first"
            )
        return {"values": rows, **recipe_column(own_recipe(table, agreement))}
