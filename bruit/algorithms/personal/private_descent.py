"""Private coordinate descent with a warm start and a budget that grows over the updates.

    warm start    x_u <- (coupling sum_v (w_uv / d_u) x_v + c_u local_u) / (coupling + c_u)
    update k      x_u <- (1 - a_u) x_u + a_u (sum_v (w_uv / d_u) x_v - (c_u / coupling) g_u)

A peer smooths at its first `warm` wakes, updates at the next `updates`, then repeats its model.
local_u: the model peer u fits alone, released once at the start (perso:PERSO-13); g_u: its gradient
with growth**-k of the noise of the first, k = 0, 1, ...: late noise is the expensive one, since
later steps contract what came before (perso:PERSO-12). a_u = coupling / (coupling + c_u L_u), as in
`personalized`. With warm = 0 no model is released and all start from the same. Every peer counts
its own wakes: nobody needs a common clock, so it is one run between real peers.
Learns: the minimizer of sum_u d_u c_u f_u(x_u) + (coupling/2) sum_{u<v} w_uv |x_u - x_v|^2.
Shows: the model after each wake, to each neighbor.
Spec: perso:PERSO-9, PERSO-10, PERSO-12, PERSO-13; Bellet, Guerraoui, Taziki and Tommasi 2018,
arXiv:1705.08435.
"""

import math
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from bruit.algorithms.algorithm import Algorithm
from bruit.algorithms.home import Home
from bruit.algorithms.messages import Edges, Inbox, Message
from bruit.algorithms.personal.neighborhood import Standing, around, standing
from bruit.algorithms.schedules.wakes.schedule import Wakes
from bruit.algorithms.turns import Turns
from bruit.arrays import Array, Ints
from bruit.domains import chance, counts, positive, whole
from bruit.errors import ConfigError
from bruit.graphs import Graph, GraphSequence

STEEPEST = 2.0**20  # of the noise of the first update to that of the last


class State(NamedTuple):
    model: Array  # (n, d)
    local: Array  # (n, d) the model fitted alone, as it was released
    wakes: Ints  # (n,) so far


@dataclass(frozen=True, kw_only=True)
class PrivateDescent(Algorithm[State]):
    asks: ClassVar[str | None] = "models fitted alone and gradients"
    coupling: float = 1.0
    smoothness: float | tuple[float, ...] = 1.0
    confidences: tuple[float, ...] | None = None
    updates: int = 5
    growth: float = 1.2
    warm: int = 3
    schedule: Wakes = Wakes()
    linear: ClassVar[bool] = True

    def __post_init__(self) -> None:
        positive(self, "coupling", "smoothness", "growth")
        chance(self, "confidences")
        counts(self, "updates")
        whole(self, "warm")
        if self.growth < 1 or (self.updates - 1) * math.log(self.growth) > math.log(STEEPEST):
            raise ConfigError(
                f"growth = {self.growth:g} over {self.updates} updates: later updates get at least"
                f" as much of the budget as earlier ones, and at most {STEEPEST:g} times that of"
                " the first; give a number a little above 1"
            )

    @property
    def divides_noise(self) -> bool:
        return self.growth > 1 and self.updates > 1

    def prepare(self, graph: Graph | GraphSequence, horizon: int) -> Standing:
        return standing(self.confidences, self.smoothness, graph)

    def turns(self, graph: Graph | GraphSequence, steps: int) -> Turns:
        return Turns(cap=self.updates)

    def start(self, home: Home) -> State:
        never = np.zeros(len(home.ids), np.int64)
        if not self.warm:
            return State(home.beginning(), home.zeros(), never)
        local = home.value(where=home.public.confidence[home.ids] > 0)
        return State(local.copy(), local, never)  # engines write states in place

    def emit(self, state: State, edges: Edges) -> Message:
        return edges.broadcast(state.model)

    def absorb(self, state: State, inbox: Inbox, home: Home) -> State:
        trust = home.public.confidence[home.ids][:, None]
        share = self.coupling / (self.coupling + trust * home.public.smoothness[home.ids][:, None])
        near, update = around(inbox, inbox.rows), state.wakes - self.warm
        awake = (update >= 0) & (update < self.updates)
        noise = self.growth ** -np.clip(update, 0, self.updates - 1).astype(np.float64)
        gradient = home.gradient_with(state.model, noise, where=awake & (trust[:, 0] > 0))
        descended = (1 - share) * state.model + share * (near - trust / self.coupling * gradient)
        smoothed = (self.coupling * near + trust * state.local) / (self.coupling + trust)
        early = np.where((update < 0)[:, None], smoothed, state.model)
        model = np.where(awake[:, None], descended, early)
        return State(model, state.local, state.wakes + 1)

    def estimate(self, state: State) -> Array:
        return state.model
