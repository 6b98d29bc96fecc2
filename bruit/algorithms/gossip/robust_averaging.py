"""Robust averaging: gossip averaging in which some peers may lie.

    x_i <- x_i + step * sum_j a_ij (m_j - x_i),   a_ij <= W_ij: less of what is far away (`rule`)

The rules clip, mean-clip and trim are those of bruit.algorithms.gossip.robust_rules; `tolerate` is
the weight of liars at a peer that they are made for: by default the most that is proven for the
graph. With tolerate = 0 it is plain averaging. `liars`, `attack` and `strength` play liars.
Learns: a number near the mean of the honest noisy values, as near as gossip:LIE-2 says.
Shows: x_i to each neighbor, each round. The rules are not linear: local DP is all that is claimed.
Spec: gossip:LIE-1, LIE-2. Gaucher, Dieuleveut, Hendrikx, arXiv:2410.10418; He, Karimireddy, Jaggi,
arXiv:2202.01545.
"""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from bruit.algorithms.gossip.robust_gossip import RobustGossip
from bruit.algorithms.home import Home
from bruit.algorithms.messages import Edges, Inbox, Message, Slots
from bruit.arrays import Array
from bruit.errors import ConfigError


class State(NamedTuple):
    value: Array  # (n, d) the current estimate, which an honest peer says
    heard: Slots  # (copies, d) what was heard last, where liars are played; else empty rows


@dataclass(frozen=True, kw_only=True)
class RobustAveraging(RobustGossip[State]):
    asks: ClassVar[str | None] = "a value to average"

    def __post_init__(self) -> None:
        self._check_parameters()
        if self.attack == "label-flip" and self.liars:
            raise ConfigError("averages have no labels to flip; take another attack, or robust-sgd")

    def start(self, home: Home) -> State:
        value = home.value()
        return State(value, self._hears(value, home))

    def emit(self, state: State, edges: Edges) -> Message:
        return self._said(state.value, state.heard, edges)

    def absorb(self, state: State, inbox: Inbox, home: Home) -> State:
        return State(self._mixed(inbox, state.value, home), self._heard(inbox))

    def estimate(self, state: State) -> Array:
        return state.value
