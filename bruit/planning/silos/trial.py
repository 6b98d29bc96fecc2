"""DescentSettings tried on made-up problems: the best of a grid fixed beforehand, and how it does on others
(silo:SILO-7).

With more records than MOST_RECORDS, so many are made up and the mean gradient gets the same noise: a
model of few records is a little worse, so that the accuracy is, if anything, too low.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from bruit.arrays import Array
from bruit.planning.silos.descent import DescentSettings, descend
from bruit.planning.silos.problems import INTERCEPT, Problems

if TYPE_CHECKING:
    from numpy.random import Generator

STEPS = (1, 2, 3, 5, 8, 12, 20, 40)
CUTS = (0.05, 0.3)
"""Clips, as cuts of p - y of a record of usual length: nearly all gradients get one length, or the
long ones do."""
STRIDES = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0)
"""rate times clip: how far one step goes if all records agree."""
MOST_RECORDS = 3000
DRAWS = 2
"""Draws of noise for each problem."""


@dataclass(frozen=True, kw_only=True)
class Tried:
    """One setting. level: deviation of the noise in the sum of all records, in clips."""

    steps: int
    clip: float
    rate: float
    level: float


@dataclass(frozen=True, kw_only=True)
class SettingsTrial:
    """Descent on `held` records, each in a batch with chance `sample_rate`."""

    held: int
    dim: int
    sample_rate: float = 1.0

    def clips(self) -> tuple[float, ...]:
        """The clips that are tried, for rows of the length that prepared ones usually have."""
        length = math.sqrt((self.dim - 1) / 4 + INTERCEPT**2)
        return tuple(float(f"{cut * length:.2g}") for cut in CUTS)

    def best(
        self,
        levels: Mapping[int, Mapping[str, float]],
        problems: Problems,
        draws: Generator,
        tick: Callable[[], None],
    ) -> dict[str, Tried]:
        """For each name the most accurate setting; levels[steps][name] is its noise in clips."""
        kept: dict[str, tuple[float, Tried]] = {}
        for steps, named in levels.items():
            tried = [
                (name, Tried(steps=steps, clip=clip, rate=stride / clip, level=level))
                for name, level in named.items()
                for clip in self.clips()
                for stride in STRIDES
            ]
            again = [one for _, one in tried] * DRAWS
            scores = self._accuracies(again, problems, draws).mean(axis=0).reshape(DRAWS, -1)
            for (name, one), score in zip(tried, scores.mean(axis=0).tolist(), strict=True):
                if name not in kept or score > kept[name][0]:
                    kept[name] = score, one
            tick()
        return {name: one for name, (_, one) in kept.items()}

    def judge(self, tried: Tried, problems: Problems, draws: Generator) -> Array:
        """Its accuracy on each problem, mean over a few draws of noise  # (problems,)."""
        return np.asarray(self._accuracies([tried] * DRAWS, problems, draws).mean(axis=1))

    def _accuracies(self, tried: list[Tried], problems: Problems, draws: Generator) -> Array:
        """DescentSettings of as many steps, on the first records of each problem  # (problems, s)."""
        rows = min(self.held, problems.labels.shape[1])
        whole = self.sample_rate * self.held
        batch = min(whole, float(rows))
        clip = np.array([one.clip for one in tried])
        settings = DescentSettings(
            clip=clip,
            rate=np.array([one.rate for one in tried]),
            noise=np.array([one.level for one in tried]) * clip * batch / whole,
            steps=tried[0].steps,
            sample_rate=batch / rows,
        )
        models = descend(
            problems.features[:, :rows], problems.labels[:, :rows], batch, settings, draws
        )
        return problems.accuracy(models)
