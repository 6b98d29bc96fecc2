"""Checks of what statistics alone would find late: every draw is fresh, every read of data has its line in the ledger.

One run is repeated behind a door that looks over the mechanism's shoulder. Noise that appears twice, at another step,
peer or phase, is a mistake whatever the data; so is an answer that left without a ledger line, or a message copy that
shares its noise with another.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from bruit.algorithms.algorithm import Algorithm
from bruit.algorithms.home import Address, TaskDoor
from bruit.algorithms.messages import Edges
from bruit.arrays import Array
from bruit.audits.trials import Neighbors
from bruit.engines.bulk import Bulk
from bruit.engines.engine import Job
from bruit.errors import ConformanceError
from bruit.graphs import Graph, GraphSequence
from bruit.mechanisms import Mechanism
from bruit.privacy.events import Mask
from bruit.privacy.ledger import Budget, Ledger
from bruit.randomness import Replay


@dataclass(frozen=True)
class ShoulderDoor(TaskDoor):
    """A task door that remembers which rows of noise it handed out, and for whom."""

    drawn: dict[bytes, str] = field(default_factory=dict)

    def _fresh(self, rows: Array, places: list[str]) -> None:
        for row, place in zip(rows, places, strict=True):
            if not row.any():
                continue
            text = np.round(row, 12).tobytes()
            if text in self.drawn:
                raise ConformanceError(f"the noise of {place} is that of {self.drawn[text]} again; every release needs"
                                       " noise of its own")  # fmt: skip
            self.drawn[text] = place

    def _release(self, at: Address, raw: Array, level: float = 1.0) -> Array:
        lines = len(self.ledger)
        answer = super()._release(at, raw, level)
        if len(self.ledger) != lines + len(at.ids):
            raise ConformanceError(f"{len(at.ids)} peers were read at step {int(at.steps[0])}, but the ledger got"
                                   f" {len(self.ledger) - lines} lines")  # fmt: skip
        if self.mechanism is not None and level:
            self._fresh(answer - raw, [f"peer {u} at step {s}, use {at.use}, phase {self.run}"
                                       for u, s in zip(at.ids, at.steps, strict=True)])  # fmt: skip
        return answer

    def noise(self, at: Address, sigma: Array, width: int) -> Array:
        rows = super().noise(at, sigma, width)
        self._fresh(rows, [f"the mask of peer {u} at step {s}" for u, s in zip(at.ids, at.steps, strict=True)])
        return rows

    def copy_noise(self, at: Address, edges: Edges, sigma: Array, width: int) -> Array:
        rows = super().copy_noise(at, edges, sigma, width)
        owners = np.repeat(at.ids, np.diff(edges.start))
        self._fresh(rows, [f"the copy from {u} to {v} at step {int(at.steps[0])}"
                           for u, v in zip(owners, edges.peers, strict=True)])  # fmt: skip
        return rows


def check_releases(
    algorithm: Algorithm[Any], graph: Graph | GraphSequence, mechanism: Mechanism, steps: int, phases: int = 2,
    budget: Budget | None = None, seed: int = 0, ledger: Ledger | None = None,
) -> Ledger:  # fmt: skip
    """Run `phases` phases on blank data and raise ConformanceError where noise repeats, a line is missing, a mask is
    zero, or more than the budget was spent; the ledger (a new one by default) is returned."""
    ledger = Ledger(graph.n) if ledger is None else ledger
    drawn: dict[bytes, str] = {}
    blank = Neighbors(np.zeros((graph.n, 3)), np.zeros((graph.n, 3)))
    for phase in range(phases):
        watching = ShoulderDoor(blank, mechanism, Replay(seed), ledger, phase, budget, drawn=drawn)
        Bulk().execute(Job(algorithm, graph, watching, Replay(seed), steps, ledger))
    if budget is not None:
        for peer in range(graph.n):
            spent = budget.spent(ledger, peer)
            if spent > budget.epsilon * (1 + 1e-9):
                raise ConformanceError(f"peer {peer} spent epsilon = {spent:.6g} of a budget of {budget.epsilon:g}")
    empty = [k for k, event in enumerate(ledger.events) if isinstance(event, Mask) and event.sigma == 0]
    if empty:
        count = int(ledger.counts()[:, empty].sum())
        raise ConformanceError(f"{count} masks carry no noise at all; a mask of zero hides nothing")
    return ledger
