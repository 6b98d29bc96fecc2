"""What robust averaging and robust descent share: the rule, what it tolerates, who lies in a test.

The step is 1 where weights let it be, else so that no eigenvalue of step * (I - W) is above 1: what
the proof needs (gossip:LIE-2). Plain mixing (tolerate = 0) needs none.
"""

from __future__ import annotations

import math
from abc import ABC
from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeVar

import numpy as np

from bruit.algorithms.algorithm import Algorithm
from bruit.algorithms.expectation import DeclaredFacts, Expectation
from bruit.algorithms.gossip.lies import ATTACKS, told
from bruit.algorithms.gossip.robust_rules import robust_mix
from bruit.algorithms.home import Home
from bruit.algorithms.messages import Edges, Inbox, Message, Slots
from bruit.arrays import Array
from bruit.domains import nonnegative, whole
from bruit.errors import ConfigError
from bruit.graphs import Graph, GraphSequence
from bruit.graphs.tolerance import (
    ERROR,
    connectivity,
    honest_connectivity,
    tolerated_liars,
    tolerated_weight,
    weight_of,
)
from bruit.how_many import how_many

State = TypeVar("State")


class Public(NamedTuple):
    step: float  # how much of the mixed differences is added
    tolerate: float  # the weight of liars at a peer that the rule works with


@dataclass(frozen=True, kw_only=True)
class RobustGossip(Algorithm[State], ABC, Generic[State]):
    """`tolerate` None: what the graph is proven to tolerate. `liars` says who lies and `attack` how,
    in a test; nobody does by default."""

    rule: str = "clip"
    tolerate: float | None = None
    liars: tuple[int, ...] = ()
    attack: str = "dissensus"
    strength: float = 1.0

    def _check_parameters(self) -> None:
        nonnegative(self, "tolerate", "strength")
        whole(self, "liars")
        for field, found, known in (("rule", self.rule, ERROR), ("attack", self.attack, ATTACKS)):
            if found not in known:
                words = ", ".join(repr(one) for one in known)
                raise ConfigError(f"{self.name()} knows {field} = {words}; found {found!r}")

    def prepare(self, graph: Graph | GraphSequence, horizon: int) -> Public:
        tolerate = self._proven(graph) if self.tolerate is None else self.tolerate
        return Public(_step(graph) if tolerate else 1.0, tolerate)

    def _proven(self, graph: Graph | GraphSequence) -> float:
        """Just below the weight that is proven; of graphs that change nothing is."""
        if not isinstance(graph, Graph):
            raise ConfigError(
                f"what a graph tolerates is proven for one graph, and {graph.name} changes; name a"
                " fixed one, or give the weight that you want, tolerate = 0 for plain mixing"
            )
        return (1 - 1e-6) * tolerated_weight(graph, ERROR[self.rule])

    def check_peers(self, graph: Graph | GraphSequence, steps: int) -> None:
        if self.liars and max(self.liars) >= graph.n:
            raise ConfigError(
                f"peer {max(self.liars)} is to lie, and the peers are 0..{graph.n - 1}"
            )
        if not isinstance(graph, Graph):
            return  # asked of fixed graphs only
        _check_symmetric(graph)
        most = tolerated_weight(graph, ERROR[self.rule])
        if self.tolerate is not None and self.tolerate >= most:
            raise ConfigError(
                f"{graph.name} is proven to tolerate liars of weight {_down(most)} at a peer by"
                f" rule {self.rule!r}, found tolerate = {self.tolerate:g}; take less, leave it out"
                " for the most that is proven, or a graph with a larger spectral gap"
                " (beyond the proof: br.run)"
            )

    def expected(self, known: DeclaredFacts) -> Expectation:
        """How far the honest peers are from the mean that they began with, of one release each."""
        graph = known.graph
        if not isinstance(graph, Graph):
            raise ConfigError("what a graph tolerates is proven for one that does not change")
        _check_symmetric(graph)
        if len(set(self.liars)) >= graph.n:
            raise ConfigError("all peers lie, and gossip:LIE-2 is about those who do not")
        if known.disturbed:
            raise ConfigError(
                f"{known.disturbed}, and gossip:LIE-2 is about one whole run without failures"
            )
        public, heaviest = self.prepare(graph, known.steps), weight_of(graph, self.liars)
        if heaviest > public.tolerate * (1 + 1e-9):
            raise ConfigError(
                f"liars weigh up to {heaviest:.4g} at an honest peer, and tolerate ="
                f" {public.tolerate:.4g}"
            )
        many = tolerated_liars(graph, public.tolerate * (1 + 1e-6))
        if self.asks == "gradients":
            raise ConfigError(
                f"liars may weigh {public.tolerate:.4g} at a peer, as {how_many(many, 'peer')} at"
                " most do, and the theorem on that is about the mixing of a round, not about"
                " descent (gossip:LIE-2)"
            )
        if not public.tolerate:
            raise ConfigError(
                "tolerate = 0 is plain mixing, and gossip:LIE-2 is about smaller steps"
            )
        mu = honest_connectivity(graph, self.liars) if self.liars else connectivity(graph)
        unknown = 0.0 if self.liars else public.tolerate
        share = 2 * ERROR[self.rule] * public.tolerate / max(mu - unknown, 1e-300)
        if share >= 1:
            raise ConfigError(
                f"weight {public.tolerate:.4g} is not proven to be tolerated by rule {self.rule!r}"
                f" where honest peers have connectivity {mu:.4g}"
            )
        factor = distance_factor(public.step * (mu - unknown), share, known.steps)
        return Expectation(
            "gossip:LIE-2",
            "mean |x - mean of honest releases|^2, in units of their variance,",
            1.0,
            factor,
            {"liars' weight": public.tolerate, "any liars": many, "connectivity": mu},
        )

    def _hears(self, said: Array, home: Home) -> Slots:
        """Before anything was heard: as if all neighbors had said the same; nothing where nobody
        lies."""
        return home.edges.expand(said if self.liars else home.zeros(0))

    def _heard(self, inbox: Inbox) -> Slots:
        heard = inbox.slots()
        return heard if self.liars else heard.replace(np.zeros((len(heard.peers), 0)))

    def _said(self, said: Array, heard: Slots, edges: Edges) -> Message:
        if not self.liars:
            return edges.broadcast(said)
        return edges.each(told(self.attack, self.strength, self.liars, said, heard, edges))

    def _mixed(self, inbox: Inbox, own: Array, home: Home, floor: float = 0.0) -> Array:
        public: Public = home.public
        return robust_mix(self.rule, public.tolerate, inbox, own, public.step, floor)


def distance_factor(pull: float, share: float, steps: int) -> float:
    """The mean squared distance of honest peers from their first mean after so many rounds, in
    units of their first variance (gossip:LIE-2); `pull` is step * mu, `share` 2 rho b / mu."""
    left = math.sqrt(max(0.0, 1 - pull * (1 - share))) ** steps
    drift = 2 * math.sqrt(share) / (1 - share)
    return float(max(drift**2, left**2 + (drift * (1 - left)) ** 2))


def _check_symmetric(graph: Graph) -> None:
    if not graph.validity().symmetric:
        raise ConfigError(
            f"what a graph tolerates is proven for symmetric weights, and {graph.name} has others"
        )


def _step(graph: Graph | GraphSequence) -> float:
    """No eigenvalue of I - W is above 2 max (1 - W_ii)."""
    least = float(graph.self_weights().min()) if isinstance(graph, Graph) else 0.0
    return 1 / max(1.0, 2 * (1 - least))


def _down(number: float) -> str:
    """Four digits, never rounded up."""
    digits = 3 - math.floor(math.log10(number)) if number > 0 else 0
    return f"{math.floor(number * 10.0**digits) / 10.0**digits:.4g}"
