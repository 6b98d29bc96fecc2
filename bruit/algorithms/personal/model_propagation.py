"""Model propagation: everyone fits a model alone, once, and smooths it over the graph.

    x_u <- (coupling sum_v (w_uv / d_u) x_v + c_u local_u) / (coupling + c_u)

local_u: the model peer u fits on its own records, read once at the start; c_u: its confidence; w:
the weights of the graph. Every step is the exact minimum over x_u. After the first read nothing
touches data: with noise on it, any number of steps costs that one release, which makes this the
private warm start of `personalized`.
Learns: the minimizer of sum_u d_u (c_u/2) |x_u - local_u|^2 + (coupling/2) sum_{u<v} w_uv |x_u - x_v|^2.  Shows: the
model after each step, to each neighbor.  Spec: perso:PERSO-4, PERSO-13; Vanhaesebrouck, Bellet and Tommasi 2017,
arXiv:1610.05202.
"""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from bruit.algorithms.algorithm import Algorithm
from bruit.algorithms.home import Home
from bruit.algorithms.messages import Edges, Inbox, Message
from bruit.algorithms.personal.neighborhood import Standing, around, standing
from bruit.algorithms.schedules.wakes.schedule import Wakes
from bruit.arrays import Array
from bruit.domains import chance, positive
from bruit.graphs import Graph, GraphSequence
from bruit.privacy.theorem import Theorem
from bruit.privacy.theorems.arrived import Arrived


class State(NamedTuple):
    model: Array  # (n, d)
    local: Array  # (n, d) as it was released


@dataclass(frozen=True)
class ModelPropagation(Algorithm[State]):
    asks: ClassVar[str | None] = "models fitted alone"
    coupling: float = 1.0
    confidences: tuple[float, ...] | None = None
    schedule: Wakes = Wakes()
    linear: ClassVar[bool] = True

    def __post_init__(self) -> None:
        positive(self, "coupling")
        chance(self, "confidences")

    def prepare(self, graph: Graph | GraphSequence, horizon: int) -> Standing:
        return standing(self.confidences, None, graph)

    def guarantees(self) -> tuple[Theorem, ...]:
        return (Arrived(),)

    def start(self, home: Home) -> State:
        local = home.value(where=home.public.confidence[home.ids] > 0)
        return State(local.copy(), local)  # engines write states in place

    def emit(self, state: State, edges: Edges) -> Message:
        return edges.broadcast(state.model)

    def absorb(self, state: State, inbox: Inbox, home: Home) -> State:
        trust = home.public.confidence[home.ids][:, None]
        pulled = self.coupling * around(inbox, inbox.rows) + trust * state.local
        return State(pulled / (self.coupling + trust), state.local)

    def estimate(self, state: State) -> Array:
        return state.model
