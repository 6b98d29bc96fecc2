"""Federated averaging: a server tells the model, peers train on their own records and answer with
the change.

    client:  y = x;  local_steps times  y <- y - rate * grad f_i(y);   c_i = y - x
    server:  x <- x + sum_i s_i c_i / sum_i s_i

One iteration takes two rounds: the server speaks, then the peers do. The server is one of the peers
(the middle of a star) and trains like the others. `participants` of them are drawn in each
iteration, all by default, from randomness everybody shares; or `chosen` names those of every
iteration, by a rule that must not depend on their records. `shares` are the declared weights of the
peers, equal by default; nothing is read off the records. One local step on all records is gradient
descent. With `ratio` > 0 neighbors add noise that cancels in the sum, `ratio` times as large as the
release's own (GOPA): the server then learns hardly more than the sum.
Learns: a minimizer of sum_i s_i f_i, for one local step; nearby for several.
Shows: c_i to the server, the model to all. Changes are multiples of a grid: with equal shares their
sum is exact (fp:FP-2, FP-3).
Spec: perso:FL-1 (corrected: means, not sums), FL-2, GOPA-1; McMahan et al., arXiv:1602.05629.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from bruit.algorithms.algorithm import Algorithm
from bruit.algorithms.gossip.exchange import sum_grid
from bruit.algorithms.home import Home
from bruit.algorithms.messages import Edges, Inbox, Message
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
from bruit.arrays import Array, Bools
from bruit.domains import counts, nonnegative, positive, whole
from bruit.errors import ConfigError
from bruit.graphs import Graph, GraphSequence
from bruit.privacy.theorem import Theorem
from bruit.privacy.theorems.server import ServerRounds


class State(NamedTuple):
    model: Array  # (n, d) as the peer last heard it, or made it
    change: Array  # (n, d + 1) s_i c_i and s_i of this iteration; zeros for who was not drawn


@dataclass(frozen=True, kw_only=True)
class FedAvg(Algorithm[State]):
    asks: ClassVar[str | None] = "gradients"
    rate: float = 0.1
    local_steps: int = 1
    batch: int | None = None
    participants: int | None = None
    shares: tuple[float, ...] | None = None
    ratio: float = 0.0
    server: int = 0
    chosen: tuple[tuple[int, ...], ...] | None = None

    def __post_init__(self) -> None:
        positive(self, "rate", "shares")
        counts(self, "local_steps", "batch", "participants")
        nonnegative(self, "ratio")
        whole(self, "server", "chosen")
        if self.ratio and any(
            part is not None for part in (self.participants, self.chosen, self.shares)
        ):
            raise ConfigError(
                "noise cancels only if all take part equally; leave participants, chosen and "
                "shares out"
            )
        if self.chosen is not None:
            self._check_chosen(self.chosen)

    def _check_chosen(self, chosen: tuple[tuple[int, ...], ...]) -> None:
        if self.participants is not None:
            raise ConfigError(
                "participants are drawn or chosen, not both; leave participants or chosen out"
            )
        for number, peers in enumerate(chosen):
            if not isinstance(peers, Sequence):
                raise ConfigError(
                    "fed-avg needs a list of participants for every iteration, found"
                    f" chosen[{number}] = {peers!r}"
                )
            if not len(peers):
                raise ConfigError(
                    f"chosen names nobody for iteration {number}; an iteration needs a participant"
                )
            if len(set(peers)) < len(peers):
                raise ConfigError(
                    f"chosen names a peer twice for iteration {number}: {list(peers)}"
                )

    @property
    def simulated_only(self) -> str:  # type: ignore[override]
        """Real neighbors agree on keys once, before the first word (`gopa`). Here every iteration
        has new noise, and who starts again in the middle would need new keys with all of them."""
        return (
            "neighbors would have to agree on keys for their canceling noise again whenever one of "
            "them starts again in the middle of the run; use ratio = 0, or masked-sgd"
            if self.ratio
            else ""
        )

    def prepare(self, graph: Graph | GraphSequence, horizon: int) -> Public:
        public = public_of(self.name(), graph, self.server, self.participants)
        if self.shares is not None and len(self.shares) != graph.n:
            raise ConfigError(f"shares name {len(self.shares)} peers, the graph has {graph.n}")
        for number, peers in enumerate(self.chosen or ()):
            strangers = sorted(set(peers) - set(public.members.tolist()))
            if strangers:
                raise ConfigError(
                    f"chosen names peer {strangers[0]} for iteration {number}, who is neither the"
                    f" server {self.server} of {graph.name} nor a neighbor of it"
                )
        if self.chosen is not None and horizon // 2 > len(self.chosen):
            raise ConfigError(
                f"chosen names the participants of {len(self.chosen)} iterations, and {horizon}"
                f" rounds are {horizon // 2}; name those of all iterations"
            )
        if self.ratio and len(public.members) < graph.n:
            raise ConfigError(
                f"canceling noise must reach the server, but {graph.n - len(public.members)} peers of"
                f" {graph.name} are no neighbors of it"
            )
        return public

    def turns(self, graph: Graph | GraphSequence, steps: int) -> Turns:
        members = public_of(self.name(), graph, self.server, self.participants).members
        return turns_of(self.participants, len(members), steps)

    def start(self, home: Home) -> State:
        return State(home.beginning(), home.zeros(home.dim + 1))

    def resume(self, state: State, home: Home) -> State:
        check_whole(home)
        return state

    def emit(self, state: State, edges: Edges) -> Message:
        message = np.hstack((state.model, np.ones((len(edges.ids), 1))))
        return spoken(message, state.change, edges, self.server)

    def absorb(self, state: State, inbox: Inbox, home: Home) -> State:
        spoke = speaking(home)
        heard_of, known = server_model(state.model, inbox, home, self.server)
        model = np.where(spoke[:, None], heard_of, state.model)
        taking = spoke & known & self._takes_part(home) & ~home.last
        change = self._change(model, taking, home)
        heard = self._summed_changes(state, inbox, home)
        fresh = (home.ids == self.server) & ~spoke & (heard[:, -1] > 0)
        step = heard[:, :-1] / np.where(fresh, heard[:, -1], 1.0)[:, None]
        return State(np.where(fresh[:, None], model + step, model), change)

    def _takes_part(self, home: Home) -> Bools:
        """Whether each lane takes part in this iteration."""
        if self.chosen is None:
            return takes_part(home, self.participants)
        number = (
            home.before + int(home.clock[0]) - 1
        ) // 2  # in rounds, all lanes stand at the same position
        if number >= len(self.chosen):
            if home.last.all():
                return np.zeros(len(home.ids), bool)
            raise ConfigError(
                f"chosen names the participants of {len(self.chosen)} iterations, and this is"
                f" number {number}; name those of all phases"
            )
        return np.isin(home.ids, self.chosen[number])

    def _change(self, model: Array, taking: Bools, home: Home) -> Array:
        """s_i c_i with its noise, and s_i, of the lanes that take part."""
        share = np.ones(len(home.ids)) if self.shares is None else np.array(self.shares)[home.ids]
        members = len(home.public.members)
        grid = sum_grid(home, members, 1.0 + self.ratio * math.sqrt(members))
        change = home.descent(model, self.rate, self.local_steps, self.batch, taking, grid)
        if self.ratio and home.sigma and taking.any():
            change = change + home.pair_noise(self.ratio * home.sigma, grid=grid).sums()
        rows = np.hstack((change, np.ones((len(change), 1)))) * share[:, None]
        return np.where(taking[:, None], rows, 0.0)

    def _summed_changes(self, state: State, inbox: Inbox, home: Home) -> Array:
        """Sums of the changes at the server, its own included; nothing if canceling noise would be
        left over."""
        total = state.change + inbox.slots().sums()
        if self.ratio:
            whole = np.rint(total[:, -1]) == len(home.public.members)
            return np.where(whole[:, None], total, 0.0)
        return total

    def estimate(self, state: State) -> Array:
        return state.model

    def guarantees(self) -> tuple[Theorem, ...]:
        return (ServerRounds(self.server, self.shares, self.ratio),)
