"""Masked SGD: gradient descent on sums that nobody can take apart, with noise that all make together.

    attempt with list P:   peer u says  G_u + eta_u + masks  mod 2^64
    everybody:             g = sum over P / (divisor |P|) + l2 x,   v <- momentum v + g,   x <- x - rate v

eta_u has 1 / (|P| - colluders) of the noise's variance. G_u is the clipped gradient of peer u in
whole grains or, at record level, the sum of its records' clipped gradients over a secret sample.
Masks cancel in the sum. All peers see the same integers and hold the same model. `averaged` gives
the mean of the models of the second half of the rounds, which is free. A peer that dies, lags or
lies costs an attempt (`dropouts`, `spare`), never privacy. With `clip_votes` = z_b every record also
votes on the clip in the same release, which then goes to the median of the gradients' norms.
`route` is how words come together: straight ("complete"), along a "tree", by a "butterfly".
Learns: a minimizer of the mean loss over all records (record level) or over all peers (user level).
Shows: masked answers, their sum and the model to all peers. Any coalition of at most `colluders`
peers faces noise of deviation sigma in every sum, as if a trusted curator had added it.
Spec: silo:SILO-1, SILO-2, SILO-4, SILO-5, SILO-7; gossip:DP-4. Bonawitz et al. 2017; Kairouz et al.,
arXiv:2102.06387.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple

import numpy as np

from bruit.algorithms.algorithm import CAME_LATER, Algorithm
from bruit.algorithms.home import Home
from bruit.algorithms.messages import Edges, Inbox, Message
from bruit.algorithms.schedules.ballots.routes import Route
from bruit.algorithms.schedules.ballots.schedule import Ballots
from bruit.algorithms.schedules.schedule import Schedule
from bruit.arrays import Array, Words
from bruit.domains import below_one, positive, whole
from bruit.errors import ConfigError
from bruit.graphs import Graph, GraphSequence
from bruit.mechanisms.clip_votes import ClipVotes
from bruit.privacy.theorem import Theorem
from bruit.privacy.theorems.masked_sums import MaskedSums


class Public(NamedTuple):
    """Public facts: how many peers there are, and how many sums are to be made."""

    peers: int
    rounds: int


class State(NamedTuple):
    model: Array  # (n, d) the same everywhere
    velocity: Array  # (n, d)
    average: Array  # (n, d) of the models of the second half so far
    rounds: Array  # (n, 1) sums absorbed
    scale: Array  # (n, 1) the clip, in units of the declared one
    words: Words  # (n, d), with votes (n, d + 1): what is said next


@dataclass(frozen=True, kw_only=True)
class MaskedSGD(Algorithm[State]):
    asks: ClassVar[str | None] = "gradients"
    rate: float = 0.1
    momentum: float = 0.0
    averaged: bool = False
    clip_votes: float | None = None
    colluders: int = 1
    dropouts: int = 0
    spare: int = 4
    route: Route = field(default="complete", metadata=CAME_LATER)

    def __post_init__(self) -> None:
        positive(self, "rate", "clip_votes")
        whole(self, "colluders", "dropouts", "spare")
        below_one(self, "momentum")
        _ = self.schedule  # refuses a route that is none

    @property
    def schedule(self) -> Schedule:
        return Ballots(
            dropouts=self.dropouts,
            spare=self.spare,
            colluders=self.colluders,
            route=self.route,
        )

    @property
    def against(self) -> str:
        """Coalitions that are not larger than planned for, and whoever gets the models."""
        few = ("whoever is not a peer", "any one peer")
        return few[self.colluders] if self.colluders < 2 else f"any {self.colluders} peers together"

    @classmethod
    def name(cls) -> str:
        return "masked-sgd"

    def charged(self, steps: int) -> int:
        """Attempts that fail are charged too: at most so many."""
        return steps + self.spare

    def prepare(self, graph: Graph | GraphSequence, horizon: int) -> Public:
        if graph.n < self.colluders + 2:
            raise ConfigError(
                f"{graph.n} peers, of whom {self.colluders} may collude: a sum of one peer's answer"
                f" hides nothing; {self.colluders + 2} peers are the least"
            )
        return Public(graph.n, horizon)

    def start(self, home: Home) -> State:
        model = home.beginning()
        self._grain(home)  # refuses sums that might not fit into words
        return State(
            model,
            np.zeros_like(model),
            np.zeros_like(model),
            np.zeros((len(model), 1)),
            np.ones((len(model), 1)),
            np.zeros((len(model), model.shape[1] + (self.clip_votes is not None)), np.uint64),
        )

    def _grain(self, home: Home) -> float:
        return home.grain(home.public.peers, home.public.peers - self.colluders)

    def emit(self, state: State, edges: Edges) -> Message:
        return edges.broadcast(state.words)

    def absorb(self, state: State, inbox: Inbox, home: Home) -> State:
        state = self._descended(state, inbox, home)
        if home.attempt is None or not home.attempt.members:
            return state
        shares = len(home.attempt.members) - self.colluders
        words = home.masked_gradient(
            state.model, self._grain(home), shares, self.colluders, self._votes(state)
        )
        return state._replace(words=words)

    def _votes(self, state: State) -> ClipVotes | None:
        return None if self.clip_votes is None else ClipVotes(self.clip_votes, state.scale[:, 0])

    def _descended(self, state: State, inbox: Inbox, home: Home) -> State:
        """The model after the sums that it has not absorbed yet: one a lane in a simulation, as
        many as were missed for a real peer."""
        rows, start, grain = inbox.copies(), inbox.links.start, self._grain(home)
        lists = () if home.attempt is None else home.attempt.sums
        for place, summed in enumerate(lists):
            sums: Words = np.ascontiguousarray(rows[start[:-1] + place]).view(np.uint64)
            members = np.full(len(sums), len(summed.members))
            votes, scale, answers = self._votes(state), state.scale, sums
            if votes is not None:
                answers = np.ascontiguousarray(sums[:, :-1])
                scale = home.next_clip(sums, grain, members, votes)[:, None]
            gradient = home.summed_gradient(state.model, answers, grain, members, state.scale)
            velocity = self.momentum * state.velocity + gradient
            model = state.model - self.rate * velocity
            rounds = state.rounds + 1.0
            late = rounds - home.public.rounds // 2
            average = np.where(
                late > 0, state.average + (model - state.average) / np.maximum(late, 1.0), model
            )
            state = State(model, velocity, average, rounds, scale, state.words)
        return state

    def estimate(self, state: State) -> Array:
        return state.average if self.averaged else state.model

    def guarantees(self) -> tuple[Theorem, ...]:
        return (MaskedSums(self.colluders),)
