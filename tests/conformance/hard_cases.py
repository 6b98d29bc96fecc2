"""Algorithms that strain the interface: the acceptance test of style and types, and models for
later ones.

Per-neighbor duals (gossip ADMM), typed messages and late reads (Frank-Wolfe), canceling noise (the
numeric part of GOPA). The walk with cap and cool-down and re-noised gossip are in the catalog
already.
"""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from bruit.algorithms.algorithm import Algorithm
from bruit.algorithms.home import Home
from bruit.algorithms.messages import Edges, Inbox, Message, Slots
from bruit.algorithms.schedules.pairs.schedule import Pairs
from bruit.algorithms.schedules.wakes.schedule import Wakes
from bruit.arrays import Array, Ints


class AdmmState(NamedTuple):
    model: Array  # (n, d)
    meeting: Slots  # (copies, d) z_ij: the point both ends of an edge agreed on last
    dual: Slots  # (copies, d) lambda_ij


@dataclass(frozen=True)
class GossipADMM(Algorithm[AdmmState]):
    """min sum_i f_i(x_i) with x_i = z_ij = x_j on edges: duals live per neighbor, a meeting updates
    one of them."""

    rho: float = 1.0
    schedule: Pairs = Pairs()

    def start(self, home: Home) -> AdmmState:
        return AdmmState(home.zeros(), home.slots(), home.slots())

    def emit(self, state: AdmmState, edges: Edges) -> Message:
        return edges.broadcast(state.model)

    def absorb(self, state: AdmmState, inbox: Inbox, home: Home) -> AdmmState:
        slot = state.dual.find(inbox.senders)
        z, dual = state.meeting.rows.copy(), state.dual.rows.copy()
        z[slot] = (state.model + inbox.only()) / 2
        dual[slot] += self.rho * (state.model - z[slot])
        meeting, duals = state.meeting.replace(z), state.dual.replace(dual)
        degree = home.degree[:, None]
        center = (meeting.sums() - duals.sums() / self.rho) / degree
        model = home.prox(center, 1 / (self.rho * home.degree))
        return AdmmState(model, meeting, duals)

    def estimate(self, state: AdmmState) -> Array:
        return state.model


class Atom(NamedTuple):
    index: Ints  # (n,)
    sign: Array  # (n,)


class FrankWolfeState(NamedTuple):
    model: Array  # (n, d)
    index: Ints  # (n,) atom chosen last
    sign: Array  # (n,)
    curvature: Array  # (n, d) stays at home


@dataclass(frozen=True)
class FrankWolfe(Algorithm[FrankWolfeState]):
    """Steps toward vertices of an L1 ball; a message is an index and a sign."""

    radius: float = 1.0
    schedule: Wakes = Wakes()
    private: ClassVar[tuple[str, ...]] = ("curvature",)

    def start(self, home: Home) -> FrankWolfeState:
        raw = home.keep(lambda task, ids: task.value(ids))
        lanes = len(home.ids)
        return FrankWolfeState(home.zeros(), np.zeros(lanes, np.int64), np.ones(lanes), raw)

    def emit(self, state: FrankWolfeState, edges: Edges) -> Message:
        return edges.broadcast(Atom(state.index, state.sign))

    def absorb(self, state: FrankWolfeState, inbox: Inbox, home: Home) -> FrankWolfeState:
        lanes = np.repeat(np.arange(len(home.ids)), np.diff(inbox.links.start))
        votes = np.zeros_like(state.model)
        index, sign = inbox.copies(inbox.rows.index), inbox.copies(inbox.rows.sign)
        index = np.clip(index, 0, state.model.shape[1] - 1)  # a neighbor says what it likes
        np.add.at(votes, (lanes, index), sign / np.maximum(home.degree, 1)[lanes])
        slope = home.gradient(state.model) - 0.1 * votes
        best = np.argmax(np.abs(slope), axis=1)
        direction = -np.sign(slope[np.arange(len(best)), best])
        step = 2.0 / (home.step + 2.0)
        model = state.model * (1 - step)[:, None]
        model[np.arange(len(best)), best] += step * self.radius * direction
        return FrankWolfeState(model, best, direction, state.curvature)

    def estimate(self, state: FrankWolfeState) -> Array:
        return state.model


class GopaState(NamedTuple):
    value: Array  # (n, d)


@dataclass(frozen=True)
class CancelingNoise(Algorithm[GopaState]):
    """Neighbors add noise that cancels between them, everyone a little of its own, then plain
    gossip averages."""

    pair_sigma: float = 10.0
    own_sigma: float = 0.01

    def start(self, home: Home) -> GopaState:
        canceling = home.pair_noise(self.pair_sigma)
        return GopaState(home.mask(home.value() + canceling.sums(), self.own_sigma))

    def emit(self, state: GopaState, edges: Edges) -> Message:
        return edges.broadcast(state.value)

    def absorb(self, state: GopaState, inbox: Inbox, home: Home) -> GopaState:
        return GopaState(inbox.mix())

    def estimate(self, state: GopaState) -> Array:
        return state.value
