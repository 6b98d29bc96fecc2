"""Linear forms of a view, found by running the algorithm itself on symbols instead of numbers.

Every release and every noise is a *source*, a unit vector of its own; states and messages are then
linear forms over sources. Observers see rows of A s + B xi: sources that are releases carry the
private scalar and its noise (all of it, a part or none), others are pure noise, of one peer or
shared by the two ends of an edge. This is the oracle behind the fast accountants: they are tested
to agree with it (gossip:LG-1). Nonlinear algorithms are refused: `linear = True` is a tested claim.
Cost: sources times messages; small graphs only. `bruit.adversary.audits.oracle` pushes these
symbols through any engine and compares with what is claimed.

`on_grid` gives the forms of what is sent when noise is on a grid (fp:FP-1, FP-2): dithers are
sources too, and a butterfly sends sums. Without it they are those of real numbers, which the
accountants speak of.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from bruit.algorithms.algorithm import Algorithm
from bruit.algorithms.door import Address, Door, OnGrid
from bruit.algorithms.messages import Edges
from bruit.arrays import Array, Bools, Ints
from bruit.errors import ConfigError, PrivacyError
from bruit.graphs import Graph, GraphSequence
from bruit.privacy.exact import user_loss
from bruit.privacy.ledger import Ledger
from bruit.randomness import Dice, Replay
from bruit.runs.engines.bulk import Bulk
from bruit.runs.engines.engine import Job
from bruit.tasks import Task
from bruit.trace import Meetings, Trace

FINE = 2.0**-100
"""A grid on which symbols are what they are: rounding to it changes no float that is met here."""


class Forms(NamedTuple):
    """What some observers see: Y = A s + B xi, one column of A per release (`owner`), one of B per
    source; `dithers` tells which of the observers' own draws, the first rows, are dithers."""

    A: Array  # (rows, releases)
    B: Array  # (rows, sources)
    owner: Ints  # (releases,)
    dithers: Bools = np.zeros(0, bool)  # (own draws,)


@dataclass(kw_only=True)
class SourceDoor(Door):
    """A door that answers with symbols: the unit vector of a source, of which it may hand out
    `width`.

    `answers` gives other rows, one per source: by superposition the messages are then those of the
    symbols times `answers`. Choices come from the dice of the run, so that all but the numbers is
    as it was."""

    width: int
    owners: list[int] = field(default_factory=list)  # owner of each source
    releases: list[bool] = field(default_factory=list)  # whether the source is a release of data
    levels: dict[int, float] = field(default_factory=dict)  # releases with another noise than 1
    shared: dict[int, int] = field(
        default_factory=dict
    )  # the other owner of noise between two peers
    dice: Dice = field(default_factory=lambda: Replay(0))
    answers: Array | None = None  # (sources, width)
    between: dict[tuple[int, ...], int] = field(
        default_factory=dict
    )  # sources of edges, by ends and address
    grid: float = 0.0  # 0: real numbers
    dithers: list[int] = field(default_factory=list)  # sources that are dithers

    @property
    def dim(self) -> int:
        return self.width

    @property
    def sigma(self) -> float:
        return 1.0

    def _fresh(self, owners: Ints, data: bool) -> Array:
        first = len(self.owners)
        self.owners.extend(int(u) for u in owners)
        self.releases.extend([data] * len(owners))
        return self._symbols(np.arange(first, first + len(owners)))

    def _symbols(self, sources: Ints) -> Array:
        if self.answers is not None:
            return self.answers[sources]
        rows = np.zeros((len(sources), self.width))
        inside = np.flatnonzero(sources < self.width)
        rows[inside, sources[inside]] = 1.0
        return rows

    def known_to(self, observers: tuple[int, ...]) -> Bools:
        """Which sources the observers drew themselves, or with somebody else  # (sources,)."""
        mine = np.isin(self.owners, observers)
        mine[[source for source, other in self.shared.items() if other in observers]] = True
        return mine

    def fine_grid(self, times: float, data: float, noise: float) -> float:
        return self.grid

    def value_on(self, at: Address, on: OnGrid, levels: Array | None) -> Array:
        return self.value(at) if levels is None else self.value_with(at, levels)

    def gradient_on(self, at: Address, x: Array, batch: int | None, on: OnGrid) -> Array:
        return on.times * self.gradient(at, x, batch)

    def noise_on(self, at: Address, sigma: Array, width: int, on: OnGrid) -> Array:
        return on.times * self.noise(at, sigma, width)

    def dither_on(self, at: Address, sigma: Array, width: int, on: OnGrid) -> Array:
        self.dithers.extend(range(len(self.owners), len(self.owners) + len(at.ids)))
        return self.noise_on(at, sigma, width, on)

    def copy_noise_on(
        self, at: Address, edges: Edges, sigma: Array, width: int, on: OnGrid
    ) -> Array:
        return on.times * self.copy_noise(at, edges, sigma, width)

    def pair_noise_on(
        self, at: Address, edges: Edges, sigma: float, width: int, on: OnGrid
    ) -> Array:
        return on.times * self.pair_noise(at, edges, sigma, width)

    def value(self, at: Address) -> Array:
        return self._fresh(at.ids, True)

    def value_with(self, at: Address, levels: Array) -> Array:
        first = len(self.owners)
        self.levels.update(enumerate(levels.tolist(), first))
        return self._fresh(at.ids, True)

    def gradient(self, at: Address, x: Array, batch: int | None) -> Array:
        return self._fresh(at.ids, True)

    def gradient_with(self, at: Address, x: Array, levels: Array) -> Array:
        self.levels.update(enumerate(levels.tolist(), len(self.owners)))
        return self.gradient(at, x, None)

    def prox(self, at: Address, x: Array, rho: Array) -> Array:
        raise PrivacyError("a proximal step is not linear in what the door releases")

    def loss(self, at: Address, x: Array, ceiling: float) -> Array:
        raise PrivacyError("what follows from a loss is not linear in what the door releases")

    def keep(self, at: Address, query: Callable[[Task, Ints], Array]) -> Array:
        raise PrivacyError("work on raw records is not linear in what the door releases")

    def choice(self, at: Address, count: int) -> Array:
        return self.dice.uniform("choice", at.ids, at.steps, at.use, count)

    def common(self, clock: Ints, count: int) -> Array:
        return self.dice.uniform("public", clock, 0, 0, count)

    def noise(self, at: Address, sigma: Array, width: int) -> Array:
        return sigma[:, None] * self._fresh(at.ids, False)

    def copy_noise(self, at: Address, edges: Edges, sigma: Array, width: int) -> Array:
        counts = np.diff(edges.start)
        return np.repeat(sigma, counts)[:, None] * self._fresh(np.repeat(at.ids, counts), False)

    def pair_noise(self, at: Address, edges: Edges, sigma: float, width: int) -> Array:
        mine = np.repeat(at.ids, np.diff(edges.start))
        step = np.repeat(at.steps, np.diff(edges.start))
        sources = np.empty(len(mine), np.int64)
        for k, (a, b, t) in enumerate(
            zip(mine.tolist(), edges.peers.tolist(), step.tolist(), strict=True)
        ):
            place = (min(a, b), max(a, b), t, at.use)
            if place not in self.between:
                self.between[place] = len(self.owners)
                self.shared[len(self.owners)] = max(a, b)
                self.owners.append(min(a, b))
                self.releases.append(False)
            sources[k] = self.between[place]
        return np.where(mine < edges.peers, sigma, -sigma)[:, None] * self._symbols(sources)


def view_forms(
    algorithm: Algorithm[Any],
    graph: Graph | GraphSequence,
    steps: int,
    observers: tuple[int, ...],
    seed: int = 0,
    given: Trace | None = None,
    on_grid: bool = False,
) -> tuple[Forms, Meetings]:
    """The linear forms that the observers see, their own releases and noises included; and the
    meetings drawn (or those of a given trace, with its faults)."""
    if not algorithm.linear:
        raise ConfigError(
            f"{algorithm.name()} does not claim to be linear, so its views have no linear forms"
        )
    grid = FINE if on_grid else 0.0
    count = _execute(
        algorithm, graph, steps, observers, seed, SourceDoor(width=1, grid=grid), given
    )[0]
    whole = SourceDoor(width=len(count.owners), grid=grid)
    door, received, meetings = _execute(algorithm, graph, steps, observers, seed, whole, given)
    known = door.known_to(observers)
    rows = [np.eye(door.width)[known]] + [np.asarray(row).reshape(1, -1) for row in received]
    stacked = np.concatenate(rows)
    data = np.array(door.releases, bool)
    noise = np.array([door.levels.get(source, 1.0) for source in range(door.width)])
    dithers = np.isin(np.flatnonzero(known), door.dithers)
    return Forms(stacked[:, data], stacked * noise, np.array(door.owners)[data], dithers), meetings


def _execute(
    algorithm: Algorithm[Any],
    graph: Graph | GraphSequence,
    steps: int,
    observers: tuple[int, ...],
    seed: int,
    door: SourceDoor,
    given: Trace | None,
) -> tuple[SourceDoor, list[Any], Meetings]:
    dice = door.dice = Replay(seed)
    job = Job(
        algorithm=algorithm,
        graph=graph,
        door=door,
        dice=dice,
        steps=steps,
        ledger=Ledger(peers=graph.n),
        watch=frozenset(observers),
        given=given,
    )
    outcome = Bulk().execute(job)
    received = [
        message.row for message in outcome.trace.received if message.sender not in observers
    ]
    return door, received, outcome.trace.meetings


def exact_losses(
    algorithm: Algorithm[Any],
    graph: Graph | GraphSequence,
    steps: int,
    observers: tuple[int, ...],
    seed: int = 0,
    given: Trace | None = None,
) -> Array:
    """Loss of every peer by brute force: max of d^T Q_u d over |d| <= 1, bounded by sum |Q_u| (gossip:LG-1)  # (n,)."""
    forms, _ = view_forms(algorithm, graph, steps, observers, seed, given)
    losses = np.ones(graph.n)
    for u in range(graph.n):
        if u not in observers:
            losses[u] = user_loss(forms.A, forms.B, np.flatnonzero(forms.owner == u))
    return losses
