"""Federated ADMM: a server tells the model, sampled peers take a proximal step and answer with
their dual.

    z = prox_{gamma r}(mean of the duals);  a sampled peer:  x = prox_{gamma f_i}(2 z - u_i),  u_i <- u_i + 2 l (x - z)

One iteration takes two rounds: the server speaks, then the peers do. The server is one of the peers
(the middle of a star, say) and takes part like the others; its neighbors and itself are the
federation. `participants` of them are drawn in each iteration, all by default, from randomness that
everybody shares. Peers send the dual rather than its change: a lost message is made good by the
next one. What passes the door is the gradient of the envelope at 2 z - u_i. With all participants
it is the centralized algorithm. With `noise` = "server" the server is trusted: peers tell it exact
duals, and it adds fresh noise to their mean before each model, as large as hides one clipped dual.
Learns: the minimizer of (1/n) sum_i f_i + r, r = `l1` |x|_1 + (`l2`/2) |x|^2 within +-`bound`.  Shows: u_i to the
server, z to all peers.  Spec: walk:ADMM-5, ADMM-V3, ADMM-V4, ADMM-6, corrected (mean and z kept apart), ADMM-10;
arXiv:2302.12559.
"""

import math
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from bruit.algorithms.admm.consensus_admm import contraction_on
from bruit.algorithms.admm.expected_duals import expected_duals
from bruit.algorithms.admm.regularizers import Regularizer, penalty
from bruit.algorithms.algorithm import Algorithm
from bruit.algorithms.door import OnGrid
from bruit.algorithms.expectation import DeclaredFacts, Expectation
from bruit.algorithms.home import Home
from bruit.algorithms.messages import Edges, Inbox, Message, Slots
from bruit.algorithms.server.around_server import (
    Public,
    check_whole,
    public_of,
    server_model,
    speaking,
    spoken,
    takes_part,
    turns_of,
)
from bruit.algorithms.turns import Turns
from bruit.arrays import Array
from bruit.domains import counts, fraction, nonnegative, positive, whole
from bruit.errors import ConfigError
from bruit.graphs import Graph, GraphSequence
from bruit.privacy.theorem import Theorem
from bruit.privacy.theorems.server_admm import ModelsTold, NoisyModels, mean_noise
from bruit.tasks.task import Task


class State(NamedTuple):
    model: Array  # (n, d) z as the peer last heard it, or made it
    dual: Array  # (n, d) u_i
    heard: Slots  # (members - 1, d) the latest dual of every other member, at the server only


class Means(NamedTuple):
    """Means of duals with the server's noise: their grid, the noise, and how large a number of a
    dual may be."""

    on: OnGrid
    noise: float
    limit: float


@dataclass(frozen=True, kw_only=True)
class FederatedADMM(Algorithm[State]):
    asks: ClassVar[str | None] = "proximal steps"
    gamma: float = 1.0
    relaxation: float = 0.5
    participants: int | None = None
    l1: float = 0.0
    l2: float = 0.0
    bound: float | None = None
    server: int = 0
    noise: str = "peers"

    def __post_init__(self) -> None:
        positive(self, "gamma", "bound")
        fraction(self, "relaxation")
        nonnegative(self, "l1", "l2")
        counts(self, "participants")
        whole(self, "server")
        if self.noise not in ("peers", "server"):
            raise ConfigError(
                f"noise is added by the 'peers' or by the 'server', found noise = {self.noise!r}"
            )
        if self.noise == "server" and self.relaxation == 1:
            raise ConfigError(
                "at relaxation 1 duals move without limit: no noise at the server hides one; lower it"
            )

    @property
    def regularizer(self) -> Regularizer:
        return penalty(self.l1, self.l2, self.bound)

    def bare(self, graph: Graph | GraphSequence, steps: int, peer: int) -> str:
        return (
            "" if self.noise == "peers" else 'the server adds all of the noise; use noise = "peers"'
        )

    def prepare(self, graph: Graph | GraphSequence, horizon: int) -> Public:
        public = public_of(self.name(), graph, self.server, self.participants)
        return public._replace(iterations=-(-horizon // 2))

    def turns(self, graph: Graph | GraphSequence, steps: int) -> Turns:
        members = public_of(self.name(), graph, self.server, self.participants).members
        return turns_of(self.participants, len(members), steps)

    def references(self, task: Task) -> dict[str, float]:
        return contraction_on(task, self.gamma, self.regularizer)

    def expected(self, known: DeclaredFacts) -> Expectation:
        if self.noise == "server":
            raise ConfigError(
                "the statement on ADMM is for noise in the duals, and here the server adds it to "
                "their mean"
            )
        members = len(self.prepare(known.graph, known.steps).members)
        return expected_duals(
            known,
            gamma=self.gamma,
            relaxation=self.relaxation,
            active=1.0 if self.participants is None else self.participants / members,
            members=members,
            steps=known.steps // 2,
        )

    def charged(self, steps: int) -> int | None:
        """With the server's noise, how many models it makes, each of which costs everybody one
        release."""
        return max(1, steps // 2) if self.noise == "server" else None

    def check_peers(self, graph: Graph | GraphSequence, steps: int) -> None:
        left = graph.n - len(self.prepare(graph, steps).members)
        if left:
            raise ConfigError(
                f"{left} of {graph.n} peers are no neighbors of the server {self.server} in"
                f" {graph.name} and would take no part; use star:{graph.n}, or another server"
            )

    def start(self, home: Home) -> State:
        if home.beginning().any():
            raise ConfigError(
                "federated-admm begins with all duals at zero, a mean everybody knows; carry"
                " 'nothing', and leave start out"
            )
        others = home.public.members[home.public.members != self.server]
        counts = np.where(home.ids == self.server, len(others), 0)
        peers = np.tile(others, int((counts > 0).sum()))
        start = np.concatenate(([0], np.cumsum(counts)))
        return State(
            home.zeros(), home.zeros(), Slots(start, peers, np.zeros((len(peers), home.dim)))
        )

    def resume(self, state: State, home: Home) -> State:
        check_whole(home)
        return state

    def emit(self, state: State, edges: Edges) -> Message:
        return spoken(state.model, state.dual, edges, self.server)

    def absorb(self, state: State, inbox: Inbox, home: Home) -> State:
        spoke = speaking(home)
        model, known = server_model(state.model, inbox, home, self.server)
        taking = spoke & known & takes_part(home, self.participants) & ~home.last
        level = 1.0 if self.noise == "peers" else 0.0
        slope = home.envelope_gradient(
            2 * model - state.dual, self.gamma, where=taking, noise=level
        )
        change = 2 * self.relaxation * (model - state.dual - self.gamma * slope)
        means = self._means(home)
        dual = np.where(
            taking[:, None], np.clip(state.dual + change, -means.limit, means.limit), state.dual
        )
        heard = self._latest_duals(state.heard, inbox, home)
        mean = (dual + heard.sums()) / len(home.public.members)
        fresh = (home.ids == self.server) & ~spoke
        if self.noise == "server" and home.sigma:
            mean = home.mask(home.snap(mean, means.on.grid), means.noise, fresh, means.on)
        model = np.where(fresh[:, None], self.regularizer.prox(mean, self.gamma), model)
        return State(model, dual, heard)

    def _means(self, home: Home) -> Means:
        """Duals begin at 0, and for l <= 1/2 grow by no more than 2 (gamma clip + 64 noises) an
        iteration, so that the limit cuts nothing; where it does, no two duals move apart by it. In
        floats a dual is off by 8 units of 2^-53 of the limit an iteration, and the mean of n by n
        more (fp:FP-0)."""
        n, turns = len(home.public.members), home.public.iterations + 1
        noise = (
            mean_noise(n, self.gamma, home.sigma, self.relaxation)
            if self.noise == "server"
            else 0.0
        )
        share = noise / home.sigma if home.sigma else 0.0
        grid = home.grid(share, 2 * turns * self.gamma / share, 2.0 * turns) if share else 0.0
        if not grid:
            return Means(OnGrid(0.0), noise, math.inf)
        limit = home.reach(share, 2 * turns * self.gamma / share, 2.0 * turns)
        return Means(
            OnGrid(grid, slack=grid / 2 + (n + 8 * turns) * 2.0**-53 * limit), noise, limit
        )

    def _latest_duals(self, known: Slots, inbox: Inbox, home: Home) -> Slots:
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
