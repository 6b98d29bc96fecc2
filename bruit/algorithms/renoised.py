"""Re-noised gossip: averaging in which every message copy carries a little fresh noise.

    y_{w->v} = x_w + N(0, tau_t^2 sigma^2),   x_v <- W_vv x_v + sum_w W_vw y_{w->v}

tau_t = tau for the first half of the rounds, then shrinks by (1 - gap) on a fixed graph, so that late messages leave
no un-averaged noise behind; sigma is the standard deviation of the release itself.
Learns: the mean of the noisy values, with a few percent more variance.  Shows: y_{w->v} to v only; one independent
noise per copy (a noise shared by copies is not covered).  Spec: gossip:MUF-X1.
"""

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from bruit.algorithms.algorithm import Algorithm
from bruit.algorithms.home import Home
from bruit.algorithms.messages import Edges, Inbox, Message, Slots
from bruit.arrays import Array
from bruit.domains import nonnegative, whole
from bruit.graphs import Graph, GraphSequence, spectral_gap
from bruit.privacy.network.renoised import RenoisedGossip
from bruit.privacy.network.theorem import Theorem


class State(NamedTuple):
    value: Array  # (n, d)
    spoken: Slots  # (copies, d) what is said to each neighbor next


class Public(NamedTuple):
    gap: float
    taper: Array  # (rounds,) message noise of each round, in units of sigma


def taper_of(public: Any) -> Array:
    """tau_t for every round."""
    return np.asarray(public.taper)


@dataclass(frozen=True)
class Renoised(Algorithm[State]):
    tau: float = 0.1
    flat: int | None = None
    linear: ClassVar[bool] = True

    def __post_init__(self) -> None:
        nonnegative(self, "tau")
        whole(self, "flat")

    def prepare(self, graph: Graph | GraphSequence, horizon: int) -> Public:
        gap = spectral_gap(graph) if isinstance(graph, Graph) else 0.0  # no taper on a changing graph
        flat = (horizon + 1) // 2 if self.flat is None else self.flat
        late = np.maximum(np.arange(horizon) - flat + 1, 0)
        return Public(gap, self.tau * (1 - min(gap, 0.9)) ** late)

    def start(self, home: Home) -> State:
        return self._speak(home.value(), home)

    def _speak(self, value: Array, home: Home) -> State:
        taper = home.public.taper
        rounds = home.step
        level = np.where(home.last, 0.0, home.sigma * taper[np.minimum(rounds, len(taper) - 1)] if len(taper) else 0.0)
        noise = home.copy_noise(level, value.shape[1])
        return State(value, noise.replace(home.edges.expand(value).rows + noise.rows))

    def emit(self, state: State, edges: Edges) -> Message:
        return edges.each(state.spoken)

    def absorb(self, state: State, inbox: Inbox, home: Home) -> State:
        return self._speak(inbox.mix(state.value), home)

    def estimate(self, state: State) -> Array:
        return state.value

    def guarantees(self) -> tuple[Theorem, ...]:
        return (RenoisedGossip(taper_of),)
