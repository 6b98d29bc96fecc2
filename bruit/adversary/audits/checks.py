"""Checks of what statistics alone would find late: every draw is fresh, every read of data has its
line in the ledger.

One run is repeated behind a door that looks over the mechanism's shoulder. Noise that appears
twice, at another step, peer or phase, is a mistake whatever the data; so is an answer that left
without a ledger line, or a message copy that shares its noise with another. Rows are so wide that
honest noise repeats one with probability below 1e-9.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from bruit.adversary.audits.worlds import Neighbors
from bruit.algorithms.algorithm import Algorithm
from bruit.algorithms.door import Address, OnGrid
from bruit.algorithms.messages import Edges
from bruit.algorithms.schedules.ballots.attempt import Attempt
from bruit.algorithms.task_door import RawAnswer, TaskDoor
from bruit.arrays import Array, Ints, Words
from bruit.errors import ConformanceError
from bruit.graphs import Graph, GraphSequence
from bruit.graphs import graph as named_graph
from bruit.mechanisms import Mechanism, RandomizedResponse, RecordSums
from bruit.mechanisms.clip_votes import ClipVotes
from bruit.mechanisms.mechanism import Additive
from bruit.privacy.events import Mask
from bruit.privacy.ledger import Budget, Ledger
from bruit.randomness import Replay
from bruit.runs.engines.bulk import Bulk
from bruit.runs.engines.engine import Job
from bruit.tasks.task import Task

REPEATED = 1e-9  # the chance that honest noise on a coarse lattice repeats a row


@dataclass(frozen=True)
class NoiseRows:
    """Rows of noise that were handed out together: to whom, at which of their steps, and for
    what."""

    rows: Array  # (k, d) a copy: engines write states in place, and these may be one
    ids: Ints
    steps: Ints
    words: str  # with {peer} and {step}
    handed: Array | None = None  # the very array, by which it is known again

    def place(self, row: int) -> str:
        return self.words.format(peer=int(self.ids[row]), step=int(self.steps[row]))


@dataclass(frozen=True)
class ShoulderDoor(TaskDoor):
    """A task door that remembers which rows of noise it handed out, and for whom."""

    drawn: list[NoiseRows] = field(default_factory=list)

    def _release(self, at: Address, answer: RawAnswer) -> Array:
        lines = len(self.ledger)
        said, level, on = super()._release(at, answer), answer.level, answer.on
        if len(self.ledger) != lines + len(at.ids):
            raise ConformanceError(
                f"{len(at.ids)} peers were read at step {int(at.steps[0])}, but the ledger got"
                f" {len(self.ledger) - lines} lines"
            )
        noisy = answer.measured or self.mechanism
        if isinstance(noisy, Additive | RecordSums) and level:
            noisy = noisy if level == 1 else noisy.scaled(level)  # on the grid of that much noise
            bare = noisy.bare if on is None else partial(noisy.bare_on, on.grid, on.times)
            noise = said - bare(answer.raw, at.ids)
            words = f"peer {{peer}} at step {{step}}, use {at.use}, phase {self.run}"
            self.drawn.append(NoiseRows(noise, at.ids, at.steps, words))
        return said

    def masked_gradient(
        self, at: Address, x: Array, grain: float, shares: int, votes: ClipVotes | None = None
    ) -> Ints:
        lines = len(self.ledger)
        answer = super().masked_gradient(at, x, grain, shares, votes)
        if len(self.ledger) != lines + len(at.ids):
            raise ConformanceError(
                f"{len(at.ids)} peers were read in an attempt, but the ledger got"
                f" {len(self.ledger) - lines} lines"
            )
        return answer

    def _share(
        self, at: Address, width: int, grain: float, shares: int, votes: ClipVotes | None = None
    ) -> Ints:
        drawn = super()._share(at, width, grain, shares, votes)
        words = f"peer {{peer}} in its attempt {{step}}, phase {self.run}"
        self.drawn.append(NoiseRows(drawn.astype(np.float64), at.ids, at.steps, words))
        return drawn

    def pair_words(self, at: Address, attempt: Attempt, colluders: int, width: int) -> Words:
        masks = super().pair_words(at, attempt, colluders, width)
        bare = ~masks.any(axis=1)
        if bare.any():
            raise ConformanceError(
                f"peer {int(at.ids[np.argmax(bare)])} has no mask in ballot {attempt.ballot}"
            )
        words = f"the masks of peer {{peer}} in its attempt {{step}}, phase {self.run},"
        self.drawn.append(NoiseRows(masks.astype(np.float64), at.ids, at.steps, words))
        return masks

    def noise(self, at: Address, sigma: Array, width: int) -> Array:
        return self._remember(super().noise(at, sigma, width), at, np.ones(len(at.ids), np.int64))

    def noise_on(self, at: Address, sigma: Array, width: int, on: OnGrid) -> Array:
        return self._remember(
            super().noise_on(at, sigma, width, on), at, np.ones(len(at.ids), np.int64)
        )

    def copy_noise(self, at: Address, edges: Edges, sigma: Array, width: int) -> Array:
        return self._remember(super().copy_noise(at, edges, sigma, width), at, np.diff(edges.start))

    def copy_noise_on(
        self, at: Address, edges: Edges, sigma: Array, width: int, on: OnGrid
    ) -> Array:
        return self._remember(
            super().copy_noise_on(at, edges, sigma, width, on), at, np.diff(edges.start)
        )

    def _remember(self, rows: Array, at: Address, counts: Ints) -> Array:
        """Rows that were drawn, each of them kept once: noise without a grid of its own is drawn on
        the mechanism's."""
        if not self.drawn or self.drawn[-1].handed is not rows:
            each, words = (
                np.repeat(at.ids, counts),
                "the noise without data of peer {peer} at step {step}",
            )
            steps = np.repeat(at.steps, counts)
            self.drawn.append(NoiseRows(rows.copy(), each, steps, words, rows))
        return rows


def check_fresh(drawn: list[NoiseRows]) -> None:
    """Raise ConformanceError if a row of noise was handed out twice; rows of zeros are none."""
    for width in {part.rows.shape[1] for part in drawn}:
        parts = [part for part in drawn if part.rows.shape[1] == width]
        rows = np.round(np.concatenate([part.rows for part in parts]), 12) + 0.0
        _, first, group, count = np.unique(
            rows, axis=0, return_index=True, return_inverse=True, return_counts=True
        )
        again = (count[group.ravel()] > 1) & rows.any(axis=1)
        again[first] = False
        if again.any():
            row = int(np.argmax(again))
            starts = np.cumsum([0, *(len(part.rows) for part in parts)])
            places = []
            for where in (row, int(first[group.ravel()[row]])):
                number = int(np.searchsorted(starts, where, side="right")) - 1
                places.append(parts[number].place(where - int(starts[number])))
            raise ConformanceError(
                f"the noise of {places[0]} is that of {places[1]} again; every release needs noise"
                " of its own"
            )


def wide_enough(mechanism: Mechanism, releases: int) -> int:
    """So many coordinates that honest noise repeats a row with probability below 1e-9: on a lattice
    of spacing g two draws agree with probability about g / (2 sqrt(pi) sigma) on each."""
    if not mechanism.spacing or not mechanism.sigma:
        return 3
    agree = min(0.9, mechanism.spacing / (2 * math.sqrt(math.pi) * mechanism.sigma))
    return max(3, math.ceil(math.log(REPEATED / max(releases, 2) ** 2) / math.log(agree)))


def blank_data(mechanism: Mechanism, peers: int, releases: int) -> Task:
    """Data that says nothing, in rows wide enough to tell draws apart."""
    if isinstance(mechanism, RandomizedResponse):
        rows = np.tile(np.eye(mechanism.values)[0], (peers, 1))
    else:
        rows = np.zeros((peers, wide_enough(mechanism, releases)))
    return Neighbors(rows, rows)


def check_releases(
    algorithm: Algorithm[Any],
    graph: Graph | GraphSequence | str,
    mechanism: Mechanism,
    steps: int,
    phases: int = 2,
    budget: Budget | None = None,
    seed: int = 0,
    ledger: Ledger | None = None,
    task: Task | None = None,
) -> Ledger:
    """Run `phases` phases on blank data (or on a task) and raise ConformanceError where noise
    repeats, a line is missing, a mask is zero, or more than the budget was spent; the ledger (a new
    one by default) is returned."""
    graph = named_graph(graph)
    ledger = Ledger(peers=graph.n) if ledger is None else ledger
    drawn: list[NoiseRows] = []
    data = (
        blank_data(mechanism, graph.n, phases * graph.n * max(steps, 1)) if task is None else task
    )
    for phase in range(phases):
        watching = ShoulderDoor(
            task=data,
            mechanism=mechanism,
            dice=Replay(seed),
            ledger=ledger,
            run=phase,
            budget=budget,
            drawn=drawn,
        )
        Bulk().execute(
            Job(
                algorithm=algorithm,
                graph=graph,
                door=watching,
                dice=Replay(seed),
                steps=steps,
                ledger=ledger,
            )
        )
    check_fresh(drawn)
    if budget is not None:
        for peer in range(graph.n):
            spent = budget.spent(ledger, peer)
            if spent > budget.epsilon * (1 + 1e-9):
                raise ConformanceError(
                    f"peer {peer} spent epsilon = {spent:.6g} of a budget of {budget.epsilon:g}"
                )
    empty = [
        k for k, event in enumerate(ledger.events) if isinstance(event, Mask) and event.sigma == 0
    ]
    if empty:
        count = int(ledger.counts()[:, empty].sum())
        raise ConformanceError(f"{count} masks carry no noise at all; a mask of zero hides nothing")
    return ledger
