"""The same records under other numbers of peers: what every such task passes on, in one place."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bruit.arrays import Array, Ints
from bruit.tasks.task import Constants, Manifest, Task

if TYPE_CHECKING:
    from bruit.tasks.data.recipe import Recipe
    from bruit.tasks.networks.learned_network import LearnedNetwork


@dataclass(frozen=True, eq=False)
class Renumbered(Task):
    """Questions about peers `ids` are asked of `inner`, where they have the numbers `_inner_ids`.
    What is known of all peers at once (counts, scores, references) each kind says itself."""

    inner: Task

    @abstractmethod
    def _inner_ids(self, ids: Ints) -> Ints:
        """The numbers these peers have in `inner`, or a refusal."""  # (k,)

    @property
    def dim(self) -> int:
        return self.inner.dim

    @property
    def width(self) -> int:
        return self.inner.width

    @property
    def metric(self) -> str:
        return self.inner.metric

    @property
    def kind(self) -> str:
        return self.inner.kind

    @property
    def local(self) -> tuple[str, ...]:
        return self.inner.local

    def start(self) -> Array:
        return self.inner.start()

    def value(self, ids: Ints) -> Array:
        return self.inner.value(self._inner_ids(ids))

    def gradient(self, ids: Ints, x: Array) -> Array:
        return self.inner.gradient(self._inner_ids(ids), x)

    def gradient_sampled(self, ids: Ints, x: Array, uniforms: Array) -> Array:
        return self.inner.gradient_sampled(self._inner_ids(ids), x, uniforms)

    def prox(self, ids: Ints, x: Array, rho: float) -> Array:
        return self.inner.prox(self._inner_ids(ids), x, rho)

    def clipped_sum(
        self, ids: Ints, x: Array, coins: Array | None, rate: float, clip: float, unit: float
    ) -> Ints:
        return self.inner.clipped_sum(self._inner_ids(ids), x, coins, rate, clip, unit)

    def clip_votes(
        self, ids: Ints, x: Array, coins: Array | None, rate: float, clip: float
    ) -> Ints:
        return self.inner.clip_votes(self._inner_ids(ids), x, coins, rate, clip)

    def cut_losses(self, ids: Ints, x: Array, ceiling: float) -> Array:
        return self.inner.cut_losses(self._inner_ids(ids), x, ceiling)

    def at_home(self, ids: Ints, models: Array) -> Array:
        return self.inner.at_home(self._inner_ids(ids), models)

    def assumed_of_records(self) -> tuple[str, ...]:
        return self.inner.assumed_of_records()

    def penalty_gradient(self, x: Array) -> Array:
        return self.inner.penalty_gradient(x)

    def pair_value(self, x: Array, y: Array, uniform: float) -> Array:
        return self.inner.pair_value(x, y, uniform)

    def pair_gradient(self, models: Array, x: Array, y: Array, uniform: float) -> Array:
        return self.inner.pair_gradient(models, x, y, uniform)

    def constants(self) -> Constants:
        return self.inner.constants()

    def describe(self) -> Manifest:
        return self.inner.describe()

    def recipe(self) -> Recipe | None:
        return self.inner.recipe()

    def learned_network(self) -> LearnedNetwork | None:
        return self.inner.learned_network()
