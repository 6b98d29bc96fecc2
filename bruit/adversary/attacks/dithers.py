"""Dithers in an attack: what observers hear beyond the linear forms of the values (fp:FP-1, FP-2).

    heard = K X + sum over exchanges s of D_s zeta_s,    zeta_s: the dithers of exchange s, one row per peer

D_s says how much of the dithers of exchange s is in every message heard: e_w for what w says in
exchange s itself, then mixed on with the weights as all messages are. Observers know their own
dithers; those of the others are noise of a public deviation, and so are roundings to the grid, each
less than a cell. In a butterfly there are no dithers: peers send sums, and who divides them by
their public number of terms has the means of plain mixing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from bruit.algorithms.gossip.exchange import ExchangeFacts
from bruit.algorithms.gossip.gossip_sgd import GossipSGD
from bruit.arrays import Array, Bools, Ints
from bruit.privacy.exact import GraphAt
from bruit.runs.result import Run

Key = tuple[int, int]
"""A message, or the dither in it: when, and whose. Dithers count the steps of their own peer."""

Drawn = Mapping[Key, Array]
"""The observers' own dithers, one row each."""


class DitherWeights(NamedTuple):
    """How the messages heard depend on some dithers."""

    steps: Ints  # (m,)
    peers: Ints  # (m,)
    rows: Array  # (messages, m)


class Grid(NamedTuple):
    """What is public about the numbers that a run sent: the deviation of a release, that of a
    dither (0: none), the spacing, and the digits of a butterfly whose sums were sent."""

    noise: float
    dither: float
    spacing: float
    radices: tuple[int, ...]

    def terms(self, exchange: int) -> int:
        """How many values are in a message of this exchange: more than one where sums are sent."""
        return math.prod(self.radices[: exchange % len(self.radices)]) if self.radices else 1


def grid_of(run: Run) -> Grid | None:
    """The grid of a run of linear gossip; None: its messages are the linear forms themselves, up to
    float rounding."""
    facts = run.public
    exchange = getattr(facts, "exchange", facts)
    if run.privacy is None or not isinstance(exchange, ExchangeFacts):
        return None
    times = run.algorithm.rate if isinstance(run.algorithm, GossipSGD) else 1.0
    spacing = run.privacy.fine_grid(times, exchange.data, exchange.noise)
    if not spacing:
        return None
    noise = times * run.privacy.sigma
    return Grid(
        noise, 0.0 if exchange.radices else exchange.dither * noise, spacing, exchange.radices
    )


@dataclass(frozen=True)
class Sent:
    """The grid of what was heard, and how it depends on dithers; `columns` goes through all of them
    anew."""

    grid: Grid
    columns: Callable[[], Iterator[DitherWeights]]

    def known(self, drawn: Drawn, messages: int, width: int) -> Array:
        """What the dithers that were drawn by the observers themselves add to the messages
        # (messages, width)."""
        total = np.zeros((messages, width))
        for column in self.columns():
            for place in np.flatnonzero(self._mine(column, drawn)).tolist():
                row = drawn[int(column.steps[place]), int(column.peers[place])]
                total += np.outer(column.rows[:, place], row)
        return total

    def spread(self, combination: Array, drawn: Drawn) -> Array:
        """The deviation of these combinations of messages (m, messages), from dithers that others
        drew  # (m,)."""
        total = np.zeros(len(combination))
        for column in self.columns():
            foreign = column.rows[:, ~self._mine(column, drawn)]
            total += ((combination @ foreign) ** 2).sum(axis=1)
        return np.asarray(math.hypot(self.grid.dither, self.grid.spacing) * np.sqrt(total))

    def _mine(self, column: DitherWeights, drawn: Drawn) -> Bools:
        near = np.isin(column.peers, [peer for _, peer in drawn])
        near[near] = [
            key in drawn
            for key in zip(column.steps[near].tolist(), column.peers[near].tolist(), strict=True)
        ]
        return near


def round_columns(
    graphs: GraphAt, n: int, steps: int, keys: tuple[Key, ...], gamma: float = 1.0
) -> Iterator[DitherWeights]:
    """Of rounds x <- W x, or x^{t+1} = gamma W x^t + (1 - gamma) x^{t-1}: messages (exchange,
    peer), backward in time."""
    when, who = np.array(keys, np.int64).reshape(-1, 2).T
    now, before = np.zeros((len(keys), n)), np.zeros((len(keys), n))
    for s in reversed(range(steps)):
        if s + 1 < steps:
            # What was a form of m^{s+1} and m^s is one of m^s and m^{s-1}.
            factor = gamma if s else 1.0
            now, before = factor * (now @ graphs(s).weights) + before, (1.0 - factor) * now
        here = np.flatnonzero(when == s)
        now[here, who[here]] = 1.0
        yield DitherWeights(np.full(n, s), np.arange(n), now)


def meeting_columns(n: int, a: Ints, b: Ints, keys: tuple[Key, ...]) -> Iterator[DitherWeights]:
    """Of meetings: messages (number of the meeting, teller), backward in time."""
    counts, steps = np.zeros(n, np.int64), np.empty((len(a), 2), np.int64)
    ends = np.stack((a, b), axis=1)
    for number, pair in enumerate(ends):
        steps[number] = counts[pair]
        counts[pair] += 1
    senders = {number: (place, teller) for place, (number, teller) in enumerate(keys)}
    now, rows = np.zeros((len(keys), n)), np.empty((len(keys), len(a), 2))
    for number in reversed(range(len(ends))):
        now[:, ends[number]] = now[:, ends[number]].mean(axis=1, keepdims=True)
        if number in senders:
            now[senders[number]] = 1.0
        rows[:, number] = now[:, ends[number]]
    yield DitherWeights(steps.ravel(), ends.ravel(), rows.reshape(len(keys), -1))
