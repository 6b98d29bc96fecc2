"""Gossip ADMM: two neighbors meet and agree on both of their models; each keeps a copy of every
neighbor's.

    minimize sum_u [d_u c_u f_u(a_u) + (coupling/4) sum_v w_uv |a_u - b_uv|^2]   with  a_u = b_vu = z^u on every edge

At a meeting each side says rho * variable + dual for its own model and for its copy of the other's.
Both then hold the same z and move their duals. Then they minimize over (a, b) for their next
meeting: exactly, by one proximal point of f, or by `inner` gradient steps. The baseline that
coordinate descent (`personalized`) is compared with.
Learns: the minimizer of sum_u d_u c_u f_u(x_u) + (coupling/2) sum_{u<v} w_uv |x_u - x_v|^2.
Shows: its model and its copy of the other's, with their duals, to whom it meets.
Spec: perso:PERSO-5; Vanhaesebrouck, Bellet and Tommasi 2017, arXiv:1610.05202.
"""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from bruit.algorithms.algorithm import Algorithm
from bruit.algorithms.home import Home
from bruit.algorithms.messages import Edges, Inbox, Message, Slots
from bruit.algorithms.personal.neighborhood import Ties, standing
from bruit.algorithms.schedules.pairs.schedule import Pairs
from bruit.arrays import Array, Bools
from bruit.domains import chance, positive, whole
from bruit.graphs import Graph, GraphSequence


class State(NamedTuple):
    model: Array  # (n, d) a_u as last told to somebody
    following: Array  # (n, d) a_u for the next meeting
    copy: Slots  # (copies, d) b_uv for the next meeting
    own: Slots  # (copies, d) z^u of every edge
    other: Slots  # (copies, d) z^v of every edge
    dual: Slots  # (copies, d) of a_u = z^u
    dual_copy: Slots  # (copies, d) of b_uv = z^v


class AdmmMessage(NamedTuple):
    own: Array  # (copies, d) rho a_u + dual
    copy: Array  # (copies, d) rho b_uv + dual


@dataclass(frozen=True, kw_only=True)
class GossipADMM(Algorithm[State]):
    asks: ClassVar[str | None] = "proximal steps"
    coupling: float = 1.0
    rho: float = 1.0
    inner: int = 0
    smoothness: float | tuple[float, ...] = 1.0
    confidences: tuple[float, ...] | None = None
    schedule: Pairs = Pairs("clocks")

    def __post_init__(self) -> None:
        positive(self, "coupling", "rho", "smoothness")
        whole(self, "inner")
        chance(self, "confidences")

    def prepare(self, graph: Graph | GraphSequence, horizon: int) -> Ties:
        return Ties.of(graph, standing(self.confidences, self.smoothness, graph))

    def start(self, home: Home) -> State:
        begin = (
            home.beginning()
        )  # of its neighbors' models a peer knows nothing yet: it supposes they are like its own
        copy, own, other = (home.edges.expand(begin) for _ in range(3))
        return self._minimize(
            State(begin, begin.copy(), copy, own, other, home.slots(), home.slots()), home
        )

    def _minimize(self, state: State, home: Home) -> State:
        """argmin over (a, b): copies are eliminated, which leaves |a - center|^2 with this
        stiffness in all."""
        ties, lanes = home.public, np.repeat(np.arange(len(home.ids)), np.diff(state.own.start))
        near = ties.near(home.ids)
        half = self.coupling / 2 * near[:, None]
        joint = half * self.rho / (half + self.rho)
        target = state.other.rows - state.dual_copy.rows / self.rho
        pulls = state.own.replace(
            joint * target + self.rho * state.own.rows - state.dual.rows
        ).sums()
        stiffness = state.own.replace(joint + self.rho).sums()
        trust = np.bincount(lanes, near, len(home.ids)) * ties.peers.confidence[home.ids]
        has = (stiffness[:, 0] > 0) & (trust > 0)
        center = pulls / np.where(stiffness > 0, stiffness, 1.0)
        model = self._descend(state, home, center, stiffness[:, 0], trust, has)
        copy = (half * model[lanes] + self.rho * target) / (half + self.rho)
        return state._replace(following=model, copy=state.copy.replace(copy))

    def _descend(
        self, state: State, home: Home, center: Array, stiffness: Array, trust: Array, has: Bools
    ) -> Array:
        """argmin trust f(a) + (stiffness/2) |a - center|^2; peers that read nothing go to the
        center."""
        if self.inner == 0:
            points = home.prox(
                center, np.where(has, trust, 1.0) / np.where(has, stiffness, 1.0), where=has
            )
            return np.where(has[:, None], points, center)
        model = np.where(has[:, None], state.following, center)
        rate = 1 / (trust * home.public.peers.smoothness[home.ids] + np.where(has, stiffness, 1.0))
        for _ in range(self.inner):
            slope = trust[:, None] * home.gradient(model, where=has) + stiffness[:, None] * (
                model - center
            )
            model = np.where(has[:, None], model - rate[:, None] * slope, model)
        return model

    def emit(self, state: State, edges: Edges) -> Message:
        own = self.rho * edges.expand(state.following).rows + state.dual.on(edges).rows
        copy = self.rho * state.copy.on(edges).rows + state.dual_copy.on(edges).rows
        return Message(AdmmMessage(own, copy), each=True)

    def absorb(self, state: State, inbox: Inbox, home: Home) -> State:
        slot = state.own.find(inbox.senders)
        mine, received = state.following, inbox.rows
        own, other, dual, dual_copy = (part.rows.copy() for part in state[3:])
        copy = state.copy.rows[slot]
        own[slot] = (self.rho * mine + dual[slot] + received.copy) / (2 * self.rho)
        other[slot] = (self.rho * copy + dual_copy[slot] + received.own) / (2 * self.rho)
        dual[slot] += self.rho * (mine - own[slot])
        dual_copy[slot] += self.rho * (copy - other[slot])
        moved = (
            part.replace(rows)
            for part, rows in zip(state[3:], (own, other, dual, dual_copy), strict=True)
        )
        return self._minimize(State(mine, mine, state.copy, *moved), home)

    def estimate(self, state: State) -> Array:
        return state.model
