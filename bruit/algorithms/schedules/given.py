"""Given: a trace that is to be played again, and what a schedule needs to check that it can be."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bruit.arrays import Bools, Ints
from bruit.errors import ConfigError
from bruit.graphs import Graph, GraphSequence
from bruit.trace import Trace


@dataclass(frozen=True)
class Given:
    """A trace, and the run that is to follow it: which algorithm and schedule, by name, where, and
    how long."""

    trace: Trace
    algorithm: str
    schedule: str
    graph: Graph | GraphSequence
    steps: int

    def no_place(self, what: str, hint: str) -> ConfigError:
        """The refusal of a fact that the schedule has no place for."""
        return ConfigError(
            f"the given trace says {what}, and {self.algorithm} follows {self.schedule}, which "
            f"have no place for it; {hint}"
        )

    def at(self, number: int) -> Graph:
        """The graph of one round."""
        return self.graph if isinstance(self.graph, Graph) else self.graph.at(number)

    def check_links(self, a: Ints, b: Ints, verb: str, stays: bool) -> None:
        """Refuse events of peers who are no neighbors; `stays`: a peer may be its own."""
        graph = self.at(0)
        odd = np.flatnonzero(~(linked(graph, a, b) | ((a == b) & stays)))
        if len(odd):
            at = odd[0]
            raise ConfigError(
                f"in the given trace peers {a[at]} and {b[at]} {verb} (number {at}), and they are "
                f"no neighbors in {graph.name}"
            )


def linked(graph: Graph, a: Ints, b: Ints) -> Bools:
    """Whether a_k and b_k are neighbors."""
    edges = graph.edges()
    low, high = np.minimum(a, b), np.maximum(a, b)
    known = np.isin(low * graph.n + high, edges[:, 0] * graph.n + edges[:, 1])
    return np.asarray(known & (a != b))
