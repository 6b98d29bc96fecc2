"""Draws of an iteration: which blocks move in a step, and the noise they get; given in advance or
drawn at addresses.

The state of an iteration is (blocks, d), or (runs, blocks, d) for independent runs at once: a step
draws one row of noise per block and run, and blocks either all move or a uniform subset of `count`
of them does.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from bruit.arrays import Array, Bools, Ints
from bruit.errors import ConfigError
from bruit.randomness import Dice

Shape = tuple[int, ...]


class DrawSource(ABC):
    """Where an iteration takes its randomness from."""

    @abstractmethod
    def active(self, step: int, shape: Shape) -> Bools:
        """The blocks that move, for a state of this shape  # (..., blocks)."""

    @abstractmethod
    def normals(self, step: int, shape: Shape) -> Array:
        """Standard normals, one for every number of the state  # shape."""


@dataclass(frozen=True, eq=False)
class WrittenDraws(DrawSource):
    """Written-out draws, step by step; blocks all move when none are named. For traces and
    tests."""

    noise: Array  # (steps, ...) standard normals
    blocks: Bools | None = None  # (steps, blocks)

    def active(self, step: int, shape: Shape) -> Bools:
        if self.blocks is None:
            return np.ones(shape[:-1], bool)
        self._check(step, len(self.blocks))
        return np.broadcast_to(self.blocks[step], shape[:-1])

    def normals(self, step: int, shape: Shape) -> Array:
        self._check(step, len(self.noise))
        return np.broadcast_to(self.noise[step], shape)

    @staticmethod
    def _check(step: int, steps: int) -> None:
        if step >= steps:
            raise ConfigError(
                f"draws were given for {steps} steps, and step {step} was asked for; take fewer "
                f"steps"
            )


@dataclass(frozen=True)
class AddressedDraws(DrawSource):
    """Addressed draws: noise at ("fixed point", run, block, step); `count` blocks move, chosen
    uniformly, or all."""

    dice: Dice
    count: int | None = None

    def __post_init__(self) -> None:
        if self.count is not None and self.count < 1:
            raise ConfigError(f"at least one block must move in a step, found count = {self.count}")

    def active(self, step: int, shape: Shape) -> Bools:
        blocks = shape[-2]
        if self.count is None:
            return np.ones(shape[:-1], bool)
        if self.count > blocks:
            raise ConfigError(
                f"{self.count} blocks cannot move, the state has {blocks}; lower the count"
            )
        runs = int(np.prod(shape[:-2]))
        luck = self.dice.uniform("fixed point blocks", np.arange(runs), step, 0, blocks)
        chosen = np.argpartition(luck, self.count - 1, axis=1)[:, : self.count]
        moving = np.zeros((runs, blocks), bool)
        np.put_along_axis(moving, chosen, True, axis=1)
        return moving.reshape(shape[:-1])

    def normals(self, step: int, shape: Shape) -> Array:
        runs, blocks = int(np.prod(shape[:-2])), shape[-2]
        run: Ints = np.repeat(np.arange(runs), blocks)
        lanes: Ints = np.tile(np.arange(blocks), runs)
        return self.dice.normal("fixed point", lanes, step, 0, shape[-1], run).reshape(shape)
