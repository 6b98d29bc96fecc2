"""Bugs that an audit plants in itself, to measure what it would have seen.

A planted bug sits behind the door of a run: it changes what a release hands out, and nothing else.
Its claim stays that of the honest protocol, so that an audit which is worth its name refutes it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from bruit.algorithms.door import Address
from bruit.algorithms.task_door import RawAnswer, TaskDoor
from bruit.arrays import Array, Ints
from bruit.mechanisms.clip_votes import ClipVotes
from bruit.mechanisms.mechanism import Additive
from bruit.mechanisms.record_sums import RecordSums

Bug = Callable[["PlantedDoor", Address, Array, Array, Array], Array]
"""What leaves instead: from the door, the address, the raw rows, these as they leave but for the
noise, and the honest answer  # (lanes, d)."""


UNCLIPPED = 2.0**12  # clips that sums of records reach without one: farther than canaries


@dataclass(frozen=True)
class PlantedDoor(TaskDoor):
    """A door whose releases carry a bug. Records are clipped one by one before their sum is a
    release, and shares of noise are drawn for sums under masks: the two bugs of every audit are
    planted there too."""

    bug: Bug | None = None

    def _release(self, at: Address, answer: RawAnswer) -> Array:
        said, noisy = super()._release(at, answer), answer.measured or self.mechanism
        if self.bug is None or noisy is None:
            return said
        raw, on = answer.raw, answer.on
        if on is None:
            return self.bug(self, at, raw, noisy.bare(raw, at.ids), said)
        bare = noisy.bare_on(on.grid, on.times, raw, at.ids)
        return self.bug(self, at, on.times * raw, bare, said)

    def _clipped_sum(self, sums: RecordSums, at: Address, x: Array, unit: float) -> Ints:
        wide = replace(sums, clip=UNCLIPPED * sums.clip) if self.bug is no_clip else sums
        return super()._clipped_sum(wide, at, x, unit)

    def _share(
        self, at: Address, width: int, grain: float, shares: int, votes: ClipVotes | None = None
    ) -> Ints:
        drawn = super()._share(at, width, grain, shares, votes)
        return drawn // 2 if self.bug is halved_noise else drawn


def halved_noise(door: PlantedDoor, at: Address, raw: Array, bare: Array, answer: Array) -> Array:
    """Half of the noise; of randomized response, half of the uniform answers."""
    if isinstance(door.mechanism, Additive | RecordSums):
        return np.asarray(bare + 0.5 * (answer - bare))
    chosen = door.dice.uniform("planted", at.ids, at.steps, at.use, 1, door.run) < 0.5
    return np.where(chosen, bare, answer)


def no_clip(door: PlantedDoor, at: Address, raw: Array, bare: Array, answer: Array) -> Array:
    """The noise on rows that nobody clipped."""
    return np.asarray(raw + (answer - bare))


PLANTED: dict[str, Bug] = {"noise half as large": halved_noise, "no clipping": no_clip}
"""The bugs whose detection every audit of an experiment reports, by name."""
