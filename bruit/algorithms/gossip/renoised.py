"""Re-noised gossip: averaging in which every message copy carries a little fresh noise.

    y_{w->v} = x_w + N(0, tau_t^2 sigma^2),   x_v <- W_vv x_v + sum_w W_vw y_{w->v},   all of it on a grid

tau_t = tau for the first half of the rounds, then shrinks by (1 - gap) on a fixed graph, so that
late messages leave no un-averaged noise behind; sigma is the standard deviation of the release
itself.
Learns: the mean of the noisy values, with a few percent more variance.
Shows: y_{w->v} to v only; one independent noise per copy (a noise shared by copies is not covered).
Spec: gossip:MUF-X1, fp:FP-1: the noise of a copy is its dither; a peer mixes its own state, so that
roundings add up to rho / (1 - w), w the largest weight a peer gives itself.
"""

import math
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from bruit.algorithms.algorithm import Algorithm
from bruit.algorithms.gossip.exchange import Arithmetic, ExchangeFacts, exchange_of
from bruit.algorithms.home import Home
from bruit.algorithms.messages import Edges, Inbox, Message, Slots
from bruit.arrays import Array
from bruit.domains import nonnegative, whole
from bruit.graphs import Graph, GraphSequence, spectral_gap
from bruit.privacy.theorem import Theorem
from bruit.privacy.theorems.renoised import RenoisedGossip


class State(NamedTuple):
    value: Array  # (n, d)
    spoken: Slots  # (copies, d) what is said to each neighbor next


class Public(NamedTuple):
    gap: float
    taper: Array  # (rounds,) message noise of each round, in units of sigma
    exchange: ExchangeFacts
    memory: float  # how often a rounding counts: 1 / (1 - w), or the number of rounds


def taper_of(public: Any) -> Array:
    """tau_t for every round."""
    return np.asarray(public.taper)


@dataclass(frozen=True)
class Renoised(Algorithm[State]):
    asks: ClassVar[str | None] = "a value to average"
    tau: float = 0.1
    flat: int | None = None
    linear: ClassVar[bool] = True

    def __post_init__(self) -> None:
        nonnegative(self, "tau")
        whole(self, "flat")

    def prepare(self, graph: Graph | GraphSequence, horizon: int) -> Public:
        gap = (
            spectral_gap(graph) if isinstance(graph, Graph) else 0.0
        )  # no taper on a changing graph
        flat = (horizon + 1) // 2 if self.flat is None else self.flat
        late = np.maximum(np.arange(horizon) - flat + 1, 0)
        least = (
            1.0 - float(graph.self_weights().max(initial=0.0)) if isinstance(graph, Graph) else 0.0
        )
        memory = min(float(max(1, horizon)), 1 / least if least > 0 else math.inf)
        exchange = exchange_of(graph, horizon)._replace(radices=())
        exchange = exchange._replace(noise=exchange.noise + self.tau * horizon)
        return Public(gap, self.tau * (1 - min(gap, 0.9)) ** late, exchange, memory)

    def start(self, home: Home) -> State:
        return self._speak(home.value(grid=Arithmetic(home.public.exchange, home).grid), home)

    def resume(self, state: State, home: Home) -> State:
        """The last step left no messages, since nobody was to hear them."""
        return self._speak(state.value, home)

    def _speak(self, value: Array, home: Home) -> State:
        taper = home.public.taper
        rounds = home.step
        level = np.where(
            home.last,
            0.0,
            home.sigma * taper[np.minimum(rounds, len(taper) - 1)] if len(taper) else 0.0,
        )
        arithmetic = Arithmetic(home.public.exchange, home)
        noise = home.copy_noise(
            level, value.shape[1], arithmetic.form(home.public.memory, copies=True)
        )
        return State(value, noise.replace(home.edges.expand(value).rows + noise.rows))

    def emit(self, state: State, edges: Edges) -> Message:
        return edges.each(state.spoken)

    def absorb(self, state: State, inbox: Inbox, home: Home) -> State:
        grid = Arithmetic(home.public.exchange, home).grid
        return self._speak(home.snap(inbox.mix(state.value), grid), home)

    def estimate(self, state: State) -> Array:
        return state.value

    def guarantees(self) -> tuple[Theorem, ...]:
        return (RenoisedGossip(taper_of),)
