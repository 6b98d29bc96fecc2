"""Graph learning: everyone learns a model of its own, and from whom to learn it, as two neighbors meet.

    at first   x_u is the model fitted alone, no pair has a weight, and cost_u = c_u (loss of x_u), read once
    looking    w_uv <- argmin over w >= 0 of G, all other weights kept, where
               G = sum_u d_u cost_u + (coupling/2) sum_{u<v} w_uv |x_u - x_v|^2
                   + spread (sparsity |w|^2 - sum_u log(d_u + floor))
    learning   x_u <- (1 - a_u) x_u + a_u (sum_v (w_uv / d_u) x_v - (c_u / coupling) g_u),
               a_u = coupling / (coupling + c_u L_u)

Who wakes meets one neighbor at random: that is the sample it asks; both say model, cost, degree
d_u = sum_v w_uv and the weight of their pair, so both come to the same new weight. Phases alternate:
`look` meetings of a peer adjust weights, then `learn` meetings models; where the two are not in step,
the sum of their meetings decides, which both know. In learning x_v is what v said last, weights up to
`least` count as none, and who has no others keeps its model. g_u: the gradient, of which a peer reads
`updates` at most, also where it has no others: how often it reads must not follow from what was said.
The loss is read once a phase of looking, that of every record cut at `ceiling`,
without regularizers. Both ends may hold different weights after half a meeting, until they look again.
Learns: a local optimum of the joint objective of models and weights.
Shows: model, cost and degree to whom it meets, and the weight of that pair.
Spec: perso:PERSO-2, PERSO-7, PERSO-8, private: PERSO-14; Zantedeschi, Bellet and Tommasi 2020,
arXiv:1901.08460.
"""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
from scipy.sparse import csr_array

from bruit.algorithms.algorithm import Algorithm
from bruit.algorithms.home import Home
from bruit.algorithms.messages import Edges, Inbox, Message, Slots
from bruit.algorithms.personal.neighborhood import Standing, per_peer, standing
from bruit.algorithms.schedules.pairs.schedule import Pairs
from bruit.arrays import Array, Bools, Ints
from bruit.domains import chance, counts, nonnegative, positive, whole
from bruit.errors import ConfigError
from bruit.graphs import Graph, GraphSequence
from bruit.graphs.graph import Weights
from bruit.graphs.learn import Collaboration
from bruit.graphs.similarity import similarity_weights


class State(NamedTuple):
    model: Array  # (n, d)
    cost: Array  # (n, 1) as it was released last, times the confidence
    meetings: Ints  # (n,)
    spent: Ints  # (n,) gradients read
    copy: Slots  # (copies, d) what each neighbor said last
    weight: Slots  # (copies, 1)


@dataclass(frozen=True)
class Public:
    peers: Standing
    updates: Array  # (n,) gradients each peer may read


@dataclass(frozen=True, kw_only=True)
class GraphLearning(Algorithm[State]):
    asks: ClassVar[str | None] = "models fitted alone, gradients and losses"
    coupling: float = 1.0
    spread: float = 1.0
    sparsity: float = 0.5
    floor: float = 1e-2
    look: int = 10
    learn: int = 10
    least: float = 1e-3
    ceiling: float = 1.0
    smoothness: float | tuple[float, ...] = 1.0
    confidences: tuple[float, ...] | None = None
    updates: int | tuple[int, ...] | None = None
    schedule: Pairs = Pairs("clocks")

    def __post_init__(self) -> None:
        positive(self, "coupling", "spread", "sparsity", "floor", "ceiling", "smoothness")
        nonnegative(self, "least")
        counts(self, "look", "learn")
        chance(self, "confidences")
        whole(self, "updates")

    @property
    def aim(self) -> Collaboration:
        """What makes a collaboration graph good."""
        return Collaboration(self.coupling, self.spread, self.sparsity, self.floor)

    def prepare(self, graph: Graph | GraphSequence, horizon: int) -> Public:
        if not isinstance(graph, Graph):
            raise ConfigError(
                f"graph-learning keeps weights for fixed neighbors, found the sequence {graph.name}"
            )
        allowed = per_peer("updates", self.updates, graph.n, np.inf)
        return Public(standing(self.confidences, self.smoothness, graph), allowed)

    def released(self, turns: int) -> int:
        """Model and loss at first, then a gradient a turn, up to `updates`, and a loss where a phase
        of looking begins: never two in every turn. No turn is sure to be one of looking: what a
        neighbor says of its own meetings decides with."""
        allowed = np.inf if self.updates is None else np.max(self.updates)
        return 2 + int(min(turns, allowed)) + turns // (self.look + self.learn)

    def start(self, home: Home) -> State:
        model, none = home.value(), np.zeros(len(home.ids), np.int64)
        cost = self._cost(home, model, np.ones(len(home.ids), np.bool_))
        return State(model, cost, none, none.copy(), home.slots(), home.slots(1))

    def _cost(self, home: Home, model: Array, where: Bools) -> Array:
        trust = home.public.peers.confidence[home.ids]
        loss = home.loss(model, self.ceiling, where=where & (trust > 0))
        return np.asarray((trust * loss)[:, None])

    def emit(self, state: State, edges: Edges) -> Message:
        own = (state.model, state.cost, state.weight.sums(), state.meetings[:, None] + 0.0)
        rows = edges.expand(np.concatenate(own, axis=1)).rows
        return Message(np.concatenate((rows, state.weight.on(edges).rows), axis=1), each=True)

    def absorb(self, state: State, inbox: Inbox, home: Home) -> State:
        said, dim = inbox.only(), home.dim
        slot = state.weight.find(inbox.senders)
        copy, weight = state.copy.rows.copy(), state.weight.rows.copy()
        copy[slot] = said[:, :dim]
        together = state.meetings + said[:, dim + 2]
        looking = np.mod(together, 2.0 * (self.look + self.learn)) < 2 * self.look
        best = self._best(state, weight[slot, 0], said, dim)
        weight[slot, 0] = np.where(looking, best, weight[slot, 0])
        fresh = state._replace(copy=state.copy.replace(copy), weight=state.weight.replace(weight))
        model, reads = self._learned(fresh, ~looking, home)
        meetings = state.meetings + 1
        again = meetings % (self.look + self.learn) == 0
        cost = np.where(again[:, None], self._cost(home, model, again), state.cost)
        return fresh._replace(model=model, cost=cost, meetings=meetings, spent=state.spent + reads)

    def _best(self, state: State, weight: Array, said: Array, dim: int) -> Array:
        """The weight of the pair at which G is least, from what both said  # (lanes,)."""
        apart = ((state.model - said[:, :dim]) ** 2).sum(axis=1)
        mine = state.weight.sums()[:, 0] - weight
        others = said[:, dim + 1] - said[:, dim + 3]
        return self.aim.best(state.cost[:, 0] + said[:, dim], apart, mine, others)

    def _learned(self, state: State, learning: Bools, home: Home) -> tuple[Array, Ints]:
        """The models after one step of those that learn, and who read its data for it."""
        known = home.public
        heavy = state.weight.rows * (state.weight.rows > self.least)
        degree = state.weight.replace(heavy).sums()
        near = state.copy.replace(heavy * state.copy.rows).sums() / np.where(degree > 0, degree, 1)
        trust = known.peers.confidence[home.ids][:, None]
        share = self.coupling / (self.coupling + trust * known.peers.smoothness[home.ids][:, None])
        due = learning & (state.spent < known.updates[home.ids])
        awake, reads = due & (degree[:, 0] > 0), due & (trust[:, 0] > 0)
        goal = near - trust / self.coupling * home.gradient(state.model, where=reads)
        stepped = (1 - share) * state.model + share * goal
        return np.where(awake[:, None], stepped, state.model), reads.astype(np.int64)

    def estimate(self, state: State) -> Array:
        return state.model

    def learned(self, state: State) -> Weights:
        """For observers: the weights of all pairs; where half a meeting left two, their mean  # (n, n)."""
        peers, slots = len(state.model), state.weight
        lanes = np.repeat(np.arange(peers), np.diff(slots.start))
        heavy = np.where(slots.rows[:, 0] > self.least, slots.rows[:, 0], 0.0)
        half = csr_array((heavy / 2, (lanes, slots.peers)), shape=(peers, peers))
        return similarity_weights(half + half.T)
