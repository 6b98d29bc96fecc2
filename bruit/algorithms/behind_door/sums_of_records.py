"""Sums of records: at record level each record's gradient is clipped by itself before they add up.

Which records join is a secret coin for each, or a public order in which they take turns
(silo:SILO-1). The sums are whole numbers, so that noise on them is exact; they stay behind the door.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bruit.algorithms.door import Address
from bruit.arrays import Array, Ints
from bruit.errors import ConfigError
from bruit.mechanisms.clip_votes import ClipVotes
from bruit.mechanisms.record_sums import RecordSums
from bruit.randomness import Dice
from bruit.tasks.task import Task


@dataclass(frozen=True, kw_only=True)
class SumsOfRecords:
    """What the records of some peers add up to, as the noise asks for it."""

    task: Task
    noise: RecordSums
    dice: Dice  # of the coins
    run: int

    def clipped(self, at: Address, x: Array, unit: float) -> Ints:
        """The sums of the clipped gradients, 1 / unit being one  # (lanes, dim)."""
        clip = self.noise.clip
        if at.turn.cycle > 1:
            return self.task.clipped_sum(at.ids, x, self._whose_turn(at), 0.5, clip, unit)
        return self.task.clipped_sum(at.ids, x, self._coins(at), self.noise.sample_rate, clip, unit)

    def with_votes(self, at: Address, x: Array, grain: float, votes: ClipVotes) -> Ints:
        """The sums at the present clips, in grains of these, and the votes on them  # (lanes, dim +
        1)."""
        noise, coins = self.noise, self._coins(at)
        found = np.zeros((len(x), x.shape[1] + 1), np.int64)
        height = self.height(grain, votes)
        for scale in np.unique(votes.scale):
            here = votes.scale == scale
            some = None if coins is None else coins[here]
            asked = (at.ids[here], x[here], some, noise.sample_rate, scale * noise.clip)
            found[here, :-1] = self.task.clipped_sum(*asked, 1.0 / (scale * grain))
            found[here, -1] = height * self.task.clip_votes(*asked)
        return found

    def height(self, grain: float, votes: ClipVotes) -> int:
        """One vote, in grains."""
        noise = self.noise
        return votes.height(noise.clip, noise.z, grain) if noise.sigma else 1

    def _whose_turn(self, at: Address) -> Array:
        """0 where it is a record's turn, else 1, in place of coins  # (lanes, records)."""
        if self.noise.sample_rate < 1:
            raise ConfigError(
                "records take turns in a public order, and sample_rate draws them in secret as"
                " well; use sample_rate = 1"
            )
        if self.noise.adjacency != "replace":
            raise ConfigError(
                "records take turns by their places, and under add-remove one that comes or goes"
                " would move the turns of all others, which noise made for one record does not"
                ' hide; use adjacency = "replace", or a cycle of 1'
            )
        others = np.arange(self._most(at)) % at.turn.cycle != at.turn.number
        return np.tile(others.astype(np.float64), (len(at.ids), 1))

    def _coins(self, at: Address) -> Array | None:
        """A secret coin for every record, fresh in each release; None where all records join
        # (lanes, records)."""
        if self.noise.sample_rate >= 1:
            return None
        return self.dice.uniform("coins", at.ids, at.steps, at.use, self._most(at), self.run)

    def _most(self, at: Address) -> int:
        """How many records the largest of these peers has."""
        counts = self.task.record_counts()
        return int(counts[at.ids % len(counts)].max(initial=1))
