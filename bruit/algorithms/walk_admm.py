"""Walk ADMM: a token carries the mean of everybody's duals, and whoever holds it takes one proximal step.

    z = prox_{gamma r}(zhat),  x = prox_{gamma f_i}(2 z - u_i),  du = 2 l (x - z)
    u_i <- u_i + du,  zhat <- zhat + du / n,  then the token goes to w with probability W[v, w]

The token is zhat, the mean of the duals; its proximal point z is the model. Peer i keeps its dual u_i. What passes the
door is the gradient of the envelope at 2 z - u_i, clipped to `clip` and noised with `sigma`; x follows from it.
Learns: the minimizer of (1/n) sum_i f_i + r, r = `l1` |x|_1 + (`l2`/2) |x|^2 within +-`bound`.  Shows: the token to
whom it visits.  Spec: walk:ADMM-7, corrected (zhat and z kept apart), ADMM-10; arXiv:2302.12559.
"""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from bruit.algorithms.algorithm import Algorithm
from bruit.algorithms.home import Home
from bruit.algorithms.messages import Edges, Inbox, Message
from bruit.algorithms.schedules import Walk
from bruit.arrays import Array
from bruit.errors import ConfigError
from bruit.fixed_points.consensus_admm import check_length
from bruit.fixed_points.iteration import check_relaxation
from bruit.fixed_points.regularizers import Regularizer, penalty
from bruit.graphs import Graph, GraphSequence


class State(NamedTuple):
    token: Array  # (n, d) zhat as the peer last held it
    dual: Array  # (n, d) u_i


class Public(NamedTuple):
    peers: int


@dataclass(frozen=True)
class WalkADMM(Algorithm[State]):
    gamma: float = 1.0
    relaxation: float = 0.5
    l1: float = 0.0
    l2: float = 0.0
    bound: float | None = None
    schedule: Walk = Walk()
    private: ClassVar[tuple[str, ...]] = ("dual",)

    def __post_init__(self) -> None:
        check_length(self.gamma)
        check_relaxation(self.relaxation)
        penalty(self.l1, self.l2, self.bound)

    @property
    def regularizer(self) -> Regularizer:
        return penalty(self.l1, self.l2, self.bound)

    def prepare(self, graph: Graph | GraphSequence, horizon: int) -> Public:
        return Public(graph.n)

    def start(self, home: Home) -> State:
        if home.beginning().any():
            raise ConfigError("walk-admm begins with all duals and the token at zero, their mean; carry 'nothing'")
        return State(home.zeros(), home.zeros())

    def emit(self, state: State, edges: Edges) -> Message:
        return edges.broadcast(state.token)

    def absorb(self, state: State, inbox: Inbox, home: Home) -> State:
        token = inbox.only()
        z = self.regularizer.prox(token, self.gamma)
        slope = home.envelope_gradient(2 * z - state.dual, self.gamma)
        change = 2 * self.relaxation * (z - state.dual - self.gamma * slope)  # x - z with x = 2 z - u - gamma slope
        return State(token + change / home.public.peers, state.dual + change)

    def estimate(self, state: State) -> Array:
        return self.regularizer.prox(state.token, self.gamma)
