"""Robust SGD: gossip descent in which some peers may lie.

    y_i = x_i - rate * g_i;   x_i <- y_i + step * sum_j a_ij (m_j - y_i),   a_ij <= W_ij (`rule`)

The rules clip, mean-clip and trim are those of bruit.algorithms.gossip.robust_rules; `tolerate` is
the weight of liars at a peer that they are made for: by default the most that is proven for the
graph. With tolerate = 0 it is plain gossip SGD. Nobody is cut within `floor` times
rate * sigma * sqrt(2) * (sqrt(d) + 5.3), how far the noise alone may carry two honest messages apart.
`liars`, `attack` and `strength` play liars; label-flip asks -g(-x), which is the gradient on flipped
labels where the loss is one of y <x, record>.
Learns: one model everywhere, near that of the honest peers.
Shows: y_i to each neighbor, each round. The rules are not linear: local DP is all that is claimed.
Spec: gossip:LIE-1, LIE-2. Gaucher, Dieuleveut, Hendrikx, arXiv:2410.10418; He, Karimireddy, Jaggi,
arXiv:2202.01545.
"""

import math
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from bruit.algorithms.gossip.lies import lying
from bruit.algorithms.gossip.robust_gossip import RobustGossip
from bruit.algorithms.home import Home
from bruit.algorithms.messages import Edges, Inbox, Message, Slots
from bruit.arrays import Array
from bruit.domains import counts, nonnegative, positive

RARE = math.sqrt(2 * math.log(1e6))
"""A normal vector is longer than sqrt(d) + RARE deviations with a chance below 1e-6."""


class State(NamedTuple):
    model: Array  # (n, d) the mixed model
    message: Array  # (n, d) what an honest peer says next
    heard: Slots  # (copies, d) what was heard last, where liars are played; else empty rows


@dataclass(frozen=True, kw_only=True)
class RobustSGD(RobustGossip[State]):
    asks: ClassVar[str | None] = "gradients"
    rate: float = 0.1
    batch: int | None = None
    floor: float = 1.0

    def __post_init__(self) -> None:
        self._check_parameters()
        positive(self, "rate")
        counts(self, "batch")
        nonnegative(self, "floor")

    def start(self, home: Home) -> State:
        model = home.beginning()
        return self._stepped(model, self._hears(model, home), home)

    def resume(self, state: State, home: Home) -> State:
        """Nobody was to hear the last message, so it holds no gradient: now one is read."""
        return self._stepped(state.model, state.heard, home)

    def _stepped(self, model: Array, heard: Slots, home: Home) -> State:
        flipped = lying(home.ids, self.liars) & (self.attack == "label-flip")
        sign = np.where(flipped, -1.0, 1.0)[:, None]
        gradient = sign * home.gradient(sign * model, ~home.last, self.batch)
        return State(model, model - self.rate * gradient, heard)

    def emit(self, state: State, edges: Edges) -> Message:
        return self._said(state.message, state.heard, edges)

    def absorb(self, state: State, inbox: Inbox, home: Home) -> State:
        diameter = self.rate * home.sigma * math.sqrt(2) * (math.sqrt(home.dim) + RARE)
        model = self._mixed(inbox, state.message, home, self.floor * diameter)
        return self._stepped(model, self._heard(inbox), home)

    def estimate(self, state: State) -> Array:
        return state.model
