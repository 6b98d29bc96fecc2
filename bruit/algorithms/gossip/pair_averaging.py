"""Randomized gossip: two neighbors meet now and then, and both take the mean of their values.

    x_i, x_j <- (m_i + m_j) / 2,   m_i = x_i and a dither, drawn anew after every meeting (see `exchange`)

Learns: the mean of the noisy values, E|x - mean|^2 shrinking by 1 - lambda_2(L_p)/2 per activation.
Shows: m_i to whoever it meets.
Spec: gossip:GO-3, MUF-7, fp:FP-1; Boyd et al. 2006, arXiv:2206.05091, Algorithm 2.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from bruit.algorithms.algorithm import Algorithm
from bruit.algorithms.course import Course, Reads
from bruit.algorithms.gossip.exchange import Arithmetic, ExchangeFacts, exchange_of
from bruit.algorithms.home import Home
from bruit.algorithms.messages import Edges, Inbox, Message
from bruit.algorithms.schedules.draws import SHEET, activation_draws
from bruit.algorithms.schedules.pairs.schedule import Pairs
from bruit.arrays import Array
from bruit.graphs import Graph, GraphSequence
from bruit.privacy.theorem import Theorem
from bruit.privacy.theorems.meetings import ExactMeetings
from bruit.privacy.theorems.published import PublishedMeetings
from bruit.privacy.theorems.unequal import UnequalMeetings
from bruit.randomness import Dice

SHEETS = 64  # sheets of draws in flight: half a megabyte


class State(NamedTuple):
    value: Array  # (n, d)
    message: Array  # (n, d) what is said at the next meeting


@dataclass(frozen=True)
class PairAveraging(Algorithm[State]):
    asks: ClassVar[str | None] = "a value to average"
    schedule: Pairs = Pairs()
    linear: ClassVar[bool] = True
    fused_reads: ClassVar[Reads] = "nothing"

    def prepare(self, graph: Graph | GraphSequence, horizon: int) -> ExchangeFacts:
        """A number holds at most the dithers of all meetings, and their squares add up. Meetings in
        time are some n horizon; the theorem refuses a run with more of them than are allowed for
        here."""
        exchange = exchange_of(graph, horizon)
        most = (
            4 * graph.n * (horizon + 50)
            if self.schedule.activations is None
            else self.schedule.activations
        )
        return exchange._replace(
            degree=1, noise=math.sqrt(1 + most * exchange.dither**2), radices=()
        )

    def start(self, home: Home) -> State:
        arithmetic = Arithmetic(home.public, home)
        value = home.value(grid=arithmetic.grid)
        return State(value, arithmetic.message(value))

    def emit(self, state: State, edges: Edges) -> Message:
        return edges.broadcast(state.message)

    def absorb(self, state: State, inbox: Inbox, home: Home) -> State:
        arithmetic = Arithmetic(home.public, home)
        value = arithmetic.mixed(inbox).value
        return State(value, arithmetic.message(value))

    def estimate(self, state: State) -> Array:
        return state.value

    def fused(self, state: State, course: Course) -> tuple[State, int]:
        from bruit.algorithms.compiled.meetings import average_numbers, average_rows

        graph, dice = course.graph, course.dice
        value = np.array(state.value, order="C")
        x, average = (
            (value[:, 0], average_numbers) if value.shape[1] == 1 else (value, average_rows)
        )
        if self.schedule.activations is None:
            drawn = self.schedule.meetings(graph, course.steps, dice)
            return State(value, value), int(
                average(np.arange(len(drawn.a)), np.stack((drawn.a, drawn.b), axis=1), x)
            )
        ends, met = self.schedule.entries(graph)[1].astype(np.int32), 0
        for entries in self._activations(graph, self.schedule.activations, dice):
            met += int(average(entries, ends, x))
        return State(value, value), met

    def _activations(self, graph: Graph, total: int, dice: Dice) -> Iterator[Any]:
        """The matrix entries that `Pairs.meetings` would draw, in chunks that stay in cache."""
        from bruit.algorithms.compiled.meetings import find_entries

        law = self.schedule.entries(graph)[0]
        cells = 1 << (len(law) - 1).bit_length()
        guide = np.searchsorted(law, np.arange(cells) / cells).astype(np.int32)
        entries = np.empty(SHEETS * SHEET, np.int32)
        for begin in range(0, total, len(entries)):
            sheets = min(SHEETS, -(-(total - begin) // SHEET))
            uniform = activation_draws(dice, begin // SHEET, sheets)[: total - begin]
            find_entries(uniform, law, guide, entries)
            yield entries[: len(uniform)]

    def guarantees(self) -> tuple[Theorem, ...]:
        return ExactMeetings(), UnequalMeetings(), PublishedMeetings()
