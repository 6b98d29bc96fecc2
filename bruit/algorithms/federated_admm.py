"""Federated ADMM: a server tells the model, sampled peers take a proximal step and answer with their dual.

    z = prox_{gamma r}(mean of the duals);  a sampled peer:  x = prox_{gamma f_i}(2 z - u_i),  u_i <- u_i + 2 l (x - z)

One iteration takes two rounds: the server speaks, then the peers do. The server is one of the peers (the middle of a
star, say) and takes part like the others; its neighbors and itself are the federation. `participants` of them are drawn
in each iteration, all by default, from randomness that everybody shares. Peers send the dual rather than its change:
a lost message is made good by the next one. What passes the door is the gradient of the envelope at 2 z - u_i.
With all participants it is the centralized algorithm. With `noise` = "server" the server is trusted: peers tell it
exact duals, and it adds fresh noise to their mean before each model, as large as hides one clipped dual.
Learns: the minimizer of (1/n) sum_i f_i + r, r = `l1` |x|_1 + (`l2`/2) |x|^2 within +-`bound`.  Shows: u_i to the
server, z to all peers.  Spec: walk:ADMM-5 (V3, V4), ADMM-6, corrected (mean and z kept apart), ADMM-10;
arXiv:2302.12559.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from bruit.algorithms.algorithm import Algorithm
from bruit.algorithms.home import Home
from bruit.algorithms.messages import Edges, Inbox, Message, Slots
from bruit.arrays import Array, Bools, Ints
from bruit.errors import ConfigError
from bruit.fixed_points.consensus_admm import check_length
from bruit.fixed_points.iteration import check_relaxation
from bruit.fixed_points.regularizers import Regularizer, penalty
from bruit.graphs import Graph, GraphSequence
from bruit.privacy.network.server_admm import ModelsTold, NoisyModels, mean_noise
from bruit.privacy.network.theorem import Theorem


class State(NamedTuple):
    model: Array  # (n, d) z as the peer last heard it, or made it
    dual: Array  # (n, d) u_i
    heard: Slots  # (members - 1, d) the latest dual of every other member, at the server only


class Public(NamedTuple):
    members: Ints  # the server and its neighbors, in order


@dataclass(frozen=True)
class FederatedADMM(Algorithm[State]):
    gamma: float = 1.0
    relaxation: float = 0.5
    participants: int | None = None
    l1: float = 0.0
    l2: float = 0.0
    bound: float | None = None
    server: int = 0
    noise: str = "peers"

    def __post_init__(self) -> None:
        check_length(self.gamma)
        check_relaxation(self.relaxation)
        penalty(self.l1, self.l2, self.bound)
        if self.participants is not None and self.participants < 1:
            raise ConfigError(f"federated-admm needs at least 1 participant, found {self.participants}")
        if self.noise not in ("peers", "server"):
            raise ConfigError(f"noise is added by the 'peers' or by the 'server', found noise = {self.noise!r}")
        if self.noise == "server" and self.relaxation == 1:
            raise ConfigError("at relaxation 1 duals move without limit: no noise at the server hides one; lower it")

    @property
    def regularizer(self) -> Regularizer:
        return penalty(self.l1, self.l2, self.bound)

    def prepare(self, graph: Graph | GraphSequence, horizon: int) -> Public:
        if not isinstance(graph, Graph):
            raise ConfigError("federated-admm needs one fixed graph around its server, such as star:9")
        if not 0 <= self.server < graph.n:
            raise ConfigError(f"the server is peer {self.server}, but the graph has peers 0..{graph.n - 1}")
        low, high = graph.weights.indptr[self.server], graph.weights.indptr[self.server + 1]
        members = np.union1d(graph.weights.indices[low:high], [self.server]).astype(np.int64)
        if self.participants is not None and self.participants > len(members):
            found = f"the server {self.server} of {graph.name} and its neighbors are {len(members)} peers"
            raise ConfigError(f"{self.participants} participants cannot be drawn: {found}")
        return Public(members)

    def start(self, home: Home) -> State:
        if home.beginning().any():
            raise ConfigError("federated-admm begins with all duals at zero, a mean everybody knows; carry 'nothing'")
        others = home.public.members[home.public.members != self.server]
        counts = np.where(home.ids == self.server, len(others), 0)
        peers = np.tile(others, int((counts > 0).sum()))
        start = np.concatenate(([0], np.cumsum(counts)))
        return State(home.zeros(), home.zeros(), Slots(start, peers, np.zeros((len(peers), home.dim))))

    def emit(self, state: State, edges: Edges) -> Message:
        speakers = np.repeat(np.arange(len(edges.ids)), np.diff(edges.start))
        from_server, to_server = edges.ids[speakers] == self.server, edges.peers == self.server
        rows = np.where(from_server[:, None], state.model[speakers], state.dual[speakers])
        rows[~(from_server | to_server)] = 0.0  # peers have nothing to say to each other
        return Message(rows, each=True)

    def absorb(self, state: State, inbox: Inbox, home: Home) -> State:
        told = home.clock % 2 == 1  # the rounds in which the server speaks: 1, 3, ...; it hears in 2, 4, ...
        model, known = self._told(state, inbox, home)
        taking = told & known & self._drawn(home) & ~home.last
        level = 1.0 if self.noise == "peers" else 0.0
        slope = home.envelope_gradient(2 * model - state.dual, self.gamma, where=taking, noise=level)
        change = 2 * self.relaxation * (model - state.dual - self.gamma * slope)
        dual = np.where(taking[:, None], state.dual + change, state.dual)
        heard = self._heard(state.heard, inbox, home)
        mean = (dual + heard.sums()) / len(home.public.members)
        fresh = (home.ids == self.server) & ~told
        if self.noise == "server" and home.sigma:
            spread = mean_noise(len(home.public.members), self.gamma, home.sigma, self.relaxation)
            mean = home.mask(mean, spread, where=fresh)
        model = np.where(fresh[:, None], self.regularizer.prox(mean, self.gamma), model)
        return State(model, dual, heard)

    def _told(self, state: State, inbox: Inbox, home: Home) -> tuple[Array, Bools]:
        """The server's model at each lane, and whether the lane has it from this round."""
        lanes = np.repeat(np.arange(len(home.ids)), np.diff(inbox.links.start))
        words = np.flatnonzero(inbox.senders == self.server)
        model, known = state.model.copy(), home.ids == self.server
        model[lanes[words]] = inbox.copies()[words]
        known[lanes[words]] = True
        return model, known

    def _drawn(self, home: Home) -> Bools:
        """Whether each lane is among the participants of this iteration: the members with the least draws are."""
        members = home.public.members
        if self.participants is None:
            return np.isin(home.ids, members)
        luck = home.common(len(members))[0]  # in rounds, all lanes of a batch stand at the same position
        return np.isin(home.ids, members[np.argpartition(luck, self.participants - 1)[: self.participants]])

    def _heard(self, known: Slots, inbox: Inbox, home: Home) -> Slots:
        """The duals the server knows, those that arrived in this round replaced."""
        layout = Edges(home.ids, known.start, known.peers)
        words = inbox.slots()
        arrived = words.replace(np.ones((len(words.peers), 1))).on(layout).rows > 0
        return known.replace(np.where(arrived, words.on(layout).rows, known.rows))

    def estimate(self, state: State) -> Array:
        return state.model

    def guarantees(self) -> tuple[Theorem, ...]:
        if self.noise == "server":
            return (NoisyModels(self.server, self.gamma, self.relaxation),)
        return (ModelsTold(self.server, self.relaxation),)
