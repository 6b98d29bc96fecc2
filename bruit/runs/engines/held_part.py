"""What the peers of one block hold, as the whole task would answer for them, by the same numbers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bruit.arrays import Array, Ints
from bruit.errors import LocalProtocolError
from bruit.tasks.task import Constants, Manifest, Task


@dataclass(frozen=True, eq=False)
class HeldPart(Task):
    """`inner` has one peer for each of `ids`, which are in order; there are `among` in all. What
    observers ask is asked of the whole task, elsewhere."""

    inner: Task
    ids: Ints
    among: int

    def _rows(self, ids: Ints) -> Ints:
        rows = np.minimum(np.searchsorted(self.ids, ids), len(self.ids) - 1)
        if not np.array_equal(self.ids[rows], ids):
            raise LocalProtocolError("a block asked for records of peers that are not its own")
        return rows

    @property
    def peers(self) -> int:
        return self.among

    @property
    def dim(self) -> int:
        return self.inner.dim

    @property
    def metric(self) -> str:
        return self.inner.metric

    def start(self) -> Array:
        return self.inner.start()

    def value(self, ids: Ints) -> Array:
        return self.inner.value(self._rows(ids))

    def gradient(self, ids: Ints, x: Array) -> Array:
        return self.inner.gradient(self._rows(ids), x)

    def gradient_sampled(self, ids: Ints, x: Array, uniforms: Array) -> Array:
        return self.inner.gradient_sampled(self._rows(ids), x, uniforms)

    def record_counts(self) -> Ints:
        counts = np.zeros(self.among, np.int64)
        counts[self.ids] = self.inner.record_counts()
        return counts

    def clipped_sum(
        self, ids: Ints, x: Array, coins: Array | None, rate: float, clip: float, unit: float
    ) -> Ints:
        return self.inner.clipped_sum(self._rows(ids), x, coins, rate, clip, unit)

    def penalty_gradient(self, x: Array) -> Array:
        return self.inner.penalty_gradient(x)

    def prox(self, ids: Ints, x: Array, rho: float) -> Array:
        return self.inner.prox(self._rows(ids), x, rho)

    def constants(self) -> Constants:
        return self.inner.constants()

    def evaluate(self, models: Array) -> dict[str, float]:
        raise LocalProtocolError("models are scored where all records are")

    def describe(self) -> Manifest:
        return self.inner.describe()

    def references(self) -> dict[str, float]:
        raise LocalProtocolError("references are computed where all records are")
