"""Every peer in turn plays the attacker: who could be reconstructed by whom.

On graphs with a translation group one attacker tells all; otherwise each is decided on its own, in
threads (gossip:REC-2, EXP-3).
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from bruit.adversary.attacks.knowledge import Aggregation
from bruit.adversary.attacks.reconstruct import reconstructible
from bruit.arrays import Bools, Ints
from bruit.errors import ConfigError
from bruit.graphs import Graph, fixed_graph


@dataclass(frozen=True)
class AllAttackers:
    """exposed[u, v]: v alone can compute the value of u, itself included; `rank` of each attacker's
    knowledge."""

    exposed: Bools  # (n, n)
    rank: Ints  # (n,)

    @property
    def counts(self) -> Ints:
        """How many peers each attacker reconstructs, itself included  # (n,)."""
        return np.asarray(self.exposed.sum(axis=0), dtype=np.int64)


def all_attackers(
    graph: Graph | str,
    steps: int,
    aggregation: Aggregation = "messages",
    *,
    threads: int = 2,
    progress: Callable[[int, int], None] | None = None,
) -> AllAttackers:
    """Reconstructible peers for every single attacker; progress(done, total) is called as attackers
    finish."""
    if threads < 1:
        raise ConfigError(f"threads is {threads}; at least 1 is needed")
    graph = fixed_graph(graph)
    n = graph.n
    exposed, rank = np.zeros((n, n), dtype=bool), np.zeros(n, dtype=np.int64)

    def attack(v: int) -> tuple[Bools, int]:
        found = reconstructible(graph, [v], steps, aggregation)
        return np.isin(np.arange(n), found.peers), found.rank

    if graph.group is not None:
        one, rank[:] = attack(0)
        for v in range(n):
            exposed[:, v] = one[graph.translate(v)]
        return AllAttackers(exposed, rank)
    with ThreadPoolExecutor(threads) as pool:
        for v, (mine, dimension) in enumerate(pool.map(attack, range(n))):
            exposed[:, v], rank[v] = mine, dimension
            if progress is not None:
                progress(v + 1, n)
    return AllAttackers(exposed, rank)
