"""Noise alone: rows without a record behind them, each with its line in the ledger.

A message carries them where its sender released nothing new, and others' guarantees may rely on
them. On a grid they are discrete Gaussians (fp:FP-1), else real numbers.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from bruit.algorithms.door import COARSEST, Address, OnGrid
from bruit.algorithms.messages import Edges
from bruit.arrays import Array, Bools, Ints
from bruit.errors import PrivacyError
from bruit.privacy.events import Mask
from bruit.privacy.ledger import Ledger
from bruit.randomness import Dice
from bruit.randomness.discrete_normal import discrete_normals


@dataclass(frozen=True, kw_only=True)
class NoiseAlone:
    """Draws noise and writes that it was drawn.

    A `real` peer shares dice with those neighbors only with whom it agreed on some, in `pairs`."""

    dice: Dice
    ledger: Ledger
    run: int
    pairs: Mapping[int, Dice] | None = None
    real: bool = False

    def rows(self, at: Address, sigma: Array, width: int) -> Array:
        """One row per lane, of real numbers  # (lanes, width)."""
        self._write_levels(at, sigma, np.ones(len(at.ids), bool))
        return sigma[:, None] * self.dice.normal("noise", at.ids, at.steps, at.use, width, self.run)

    def rows_on(self, at: Address, sigma: Array, width: int, on: OnGrid) -> Array:
        """One row per lane, on a grid  # (lanes, width)."""
        once = np.ones(len(at.ids), np.int64)
        return self._on_grid("noise", at, at.ids, sigma, once, width, on)

    def for_copies(self, at: Address, edges: Edges, sigma: Array, width: int) -> Array:
        """One row per message copy, of real numbers  # (copies, width)."""
        counts = np.diff(edges.start)
        self._write_levels(at, sigma, counts > 0)
        lanes, steps = _copy_lanes(at, edges), np.repeat(at.steps, counts)
        draws = self.dice.normal("copy", lanes, steps, at.use, width, self.run)
        return np.repeat(sigma, counts)[:, None] * draws

    def for_copies_on(
        self, at: Address, edges: Edges, sigma: Array, width: int, on: OnGrid
    ) -> Array:
        """One row per message copy, on a grid  # (copies, width)."""
        counts = np.diff(edges.start)
        return self._on_grid("copy", at, _copy_lanes(at, edges), sigma, counts, width, on)

    def for_pairs(self, at: Address, edges: Edges, sigma: float, width: int) -> Array:
        """One row per edge, of real numbers, with the opposite sign at its other end  # (copies,
        width)."""
        if self.real:
            raise PrivacyError("canceling noise of real peers lies on a grid, or hides nothing")
        counts = np.diff(edges.start)
        mine = np.repeat(at.ids, counts)
        lanes, steps = self.dice.pair(mine, edges.peers), np.repeat(at.steps, counts)
        draws = self.dice.normal("pair", lanes, steps, at.use, width, self.run)
        self.ledger.record(at.ids, at.steps, at.clock, Mask(sigma))
        return np.where(mine < edges.peers, sigma, -sigma)[:, None] * draws

    def for_pairs_on(
        self, at: Address, edges: Edges, sigma: float, width: int, on: OnGrid
    ) -> Array:
        """One row per edge, on a grid, with the opposite sign at its other end  # (copies, width).

        R of the sums of such noises is that of the peers' own noise (fp:FP-3): these add nothing
        to it."""
        counts = np.diff(edges.start)
        mine = np.repeat(at.ids, counts)
        proven = sigma >= COARSEST * on.grid and on.slack == 0
        self.ledger.record(at.ids, at.steps, at.clock, Mask(sigma, 0.0 if proven else math.inf))
        lanes, steps = self.dice.pair(mine, edges.peers), np.repeat(at.steps, counts)
        rows = np.zeros((len(lanes), width))
        for dice, some in self._pair_dice(edges.peers):
            rows[some] = self._drawn(
                dice, "pair", lanes[some], steps[some], at.use, width, sigma, on
            )
        return np.where(mine < edges.peers, 1.0, -1.0)[:, None] * rows

    def _pair_dice(self, peers: Ints) -> list[tuple[Dice, slice]]:
        """Whose dice fall for which slots. Dice of a real peer's own would cancel with nobody's."""
        if self.pairs is not None:
            return [(self.pairs[peer], slice(k, k + 1)) for k, peer in enumerate(peers.tolist())]
        if self.real:
            raise PrivacyError(
                "real neighbors share no dice: canceling noise needs keys that they agreed on"
            )
        return [(self.dice, slice(None))]

    def _on_grid(
        self,
        purpose: str,
        at: Address,
        lanes: Ints,
        sigma: Array,
        counts: Ints,
        width: int,
        on: OnGrid,
    ) -> Array:
        """Rows of discrete Gaussian noise, `counts` of them for each lane, of on.times times the
        deviation sigma."""
        rows, steps = np.zeros((len(lanes), width)), np.repeat(at.steps, counts)
        for level in np.unique(sigma):
            here = (sigma == level) & (counts > 0)
            if level == 0 or not here.any():  # no noise is a line too: nothing is proven with it
                self._write(at, here, Mask(float(level)))
                continue
            self._write(at, here, Mask(float(level), on.rounding(width, float(level))))
            deviation = on.times * float(level)
            if here.all():
                return self._drawn(self.dice, purpose, lanes, steps, at.use, width, deviation, on)
            each = np.repeat(here, counts)
            rows[each] = self._drawn(
                self.dice, purpose, lanes[each], steps[each], at.use, width, deviation, on
            )
        return rows

    def _drawn(
        self,
        dice: Dice,
        purpose: str,
        lanes: Ints,
        steps: Ints,
        use: int,
        width: int,
        deviation: float,
        on: OnGrid,
    ) -> Array:
        return discrete_normals(
            dice=dice,
            purpose=purpose,
            lanes=lanes,
            steps=steps,
            use=use,
            count=width,
            s=deviation / on.grid,
            run=self.run,
            grid=on.grid,
        )

    def _write_levels(self, at: Address, sigma: Array, speaks: Bools) -> None:
        for level in np.unique(sigma):
            self._write(at, (sigma == level) & speaks, Mask(float(level)))

    def _write(self, at: Address, here: Bools, mask: Mask) -> None:
        who = at if here.all() else at.rows(here)
        self.ledger.record(who.ids, who.steps, who.clock, mask)


def _copy_lanes(at: Address, edges: Edges) -> Ints:
    """An address for each message copy: who speaks, and to whom."""
    lanes: Ints = np.repeat(at.ids, np.diff(edges.start)) << 24 | edges.peers
    return lanes
