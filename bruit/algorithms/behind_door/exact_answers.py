"""Exact answers: what records say before any noise, which stays behind the door.

An answer is refused where the noise that is to hide it says nothing of it: noise that clips nothing
is true for the answers its sensitivities were derived for, and no others.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bruit.algorithms.door import Address
from bruit.arrays import Array
from bruit.errors import ConfigError, Diverged, PrivacyError
from bruit.mechanisms.mechanism import Mechanism
from bruit.mechanisms.record_sums import RecordSums
from bruit.randomness import Dice
from bruit.tasks.task import Task


@dataclass(frozen=True, kw_only=True)
class ExactAnswers:
    """The peers' own answers to the questions that algorithms ask."""

    task: Task
    mechanism: Mechanism | None
    dice: Dice  # of the records that are drawn
    run: int

    def measured(self, what: str, *kinds: str) -> Mechanism | None:
        """The noise on an answer of one of these kinds."""
        if self.mechanism is None or not self.mechanism.unclipped:
            return self.mechanism
        for kind in kinds:
            if (found := self.mechanism.measured_for(kind)) is not None:
                return found
        raise PrivacyError(
            "the noise was measured by how far one record moves a full gradient or a fitted model,"
            f" clips nothing, and says nothing of {what}; use Gaussian(clip=...), or read whole"
            " gradients"
        )

    def refuse_records(self) -> None:
        """Sums of clipped records are sums of gradients."""
        if isinstance(self.mechanism, RecordSums):
            raise ConfigError(
                "at record level gradients are clipped record by record, and this algorithm asks"
                " for values, fitted models or proximal steps; use an algorithm that reads"
                ' gradients, RecordNoise for fitted models, or level = "user"'
            )

    def gradient(self, at: Address, x: Array, batch: int | None) -> Array:
        if at.turn.cycle > 1:
            raise ConfigError(
                "records take turns at record level only, where each is clipped by itself; give"
                ' level = "record", or a cycle of 1'
            )
        if batch is None:
            self.measured("gradients", "gradient")
        else:
            self.measured("the gradient of sampled records")
        try:
            if batch is None:
                return self.task.gradient(at.ids, x)
            return self.task.gradient_sampled(at.ids, x, self._drawn_records(at, batch))
        except Diverged as astray:
            when = f"at step {at.steps[astray.row]} of its own: {astray}"
            raise ConfigError(when) from None

    def descended(self, at: Address, x: Array, rate: float, count: int, batch: int | None) -> Array:
        """Where `count` gradient steps lead from x."""
        self.measured("the change of a model after local steps")
        if batch is None:
            for _ in range(count):
                x = x - rate * self.task.gradient(at.ids, x)
            return x
        draws = self._drawn_records(at, batch * count)
        for k in range(count):
            here = draws[:, k * batch : (k + 1) * batch]
            x = x - rate * self.task.gradient_sampled(at.ids, x, here)
        return x

    def points(self, at: Address, x: Array, rho: Array) -> Array:
        """The proximal points of x."""
        self.refuse_records()
        self.measured("a proximal step")
        points = np.empty_like(x)
        for level in np.unique(rho):
            rows = rho == level
            points[rows] = self.task.prox(at.ids[rows], x[rows], float(level))
        return points

    def _drawn_records(self, at: Address, count: int) -> Array:
        return self.dice.uniform("records", at.ids, at.steps, at.use, count, self.run)
