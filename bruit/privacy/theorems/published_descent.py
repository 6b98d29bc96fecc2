"""The printed losses of Muffliato-SGD. NOT A GUARANTEE: kept to reproduce and to compare.

    (6.6)   T^2 sum_{k<K} sum_{w in N(v)} (W^k)_{wu}^2 / ||(W^k)_w||^2
    (C.4)   sum_{t<=j} sum_{k<K} sum_{w in N_j(v)} (B)_{wu}^2 / ||B_w||^2,    B = W_j^k W_{j-1}^K ... W_t^K

Both add losses of messages that share noise, and ignore that the gradients of others react. (6.6)
is 0 beyond distance K, although information flows on in later rounds. An example: path of 6,
observer 0, T = 3, K = 2. For peer 3 it says 0, and the exact loss is 0.1667 even with gradients
that do not react. For peer 2, (C.4) says 2.087 where the truth is 2.923. (arXiv:2206.05091,
equations 6.6 and C.4; gossip:MUF-9. The print of C.4 has the order reversed and exponent K - 1.)
For bounds that hold see bruit.privacy.theorems.consensus, masked_consensus, last_round and descent.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from bruit.arrays import Array, Ints
from bruit.domains import counts
from bruit.errors import ConfigError
from bruit.graphs import Graph
from bruit.privacy.exact import GraphAt, checked_observers, neighborhood
from bruit.privacy.guarantee import Hypothesis, Status
from bruit.privacy.question import Peers
from bruit.privacy.theorem import STANDING, Facts, Theorem


def source_6_6(graph: Graph, rounds: int, mixing: int, seen_by: Peers) -> Array:
    """NOT A GUARANTEE. Equation (6.6) for all peers  # (n,).

    >>> from bruit.graphs import path
    >>> source_6_6(path(6), 3, 2, 0)[1:].round(6).tolist()
    [12.0, 3.0, 0.0, 0.0, 0.0]
    """
    from bruit.privacy.theorems.published import published_losses

    _check(rounds, mixing)
    return rounds**2 * published_losses(lambda t: graph, graph.n, mixing, np.atleast_1d(seen_by))


def source_c4(
    graphs: Graph | GraphAt,
    n: int,
    rounds: int,
    mixing: int,
    seen_by: Peers,
    between: int | None = None,
) -> Array:
    """NOT A GUARANTEE. Equation (C.4) with its indices corrected, for all peers; graphs are given
    per round  # (n,).

    `between` exchanges are counted for each earlier round: `mixing` if None; the print has mixing -
    1.

    >>> from bruit.graphs import star
    >>> source_c4(star(6), 6, 3, 2, 1)[[0, 2]].round(6).tolist()
    [4.5, 1.5]
    """
    _check(rounds, mixing)
    chosen = checked_observers(n, np.atleast_1d(seen_by))
    power = mixing if between is None else between
    total = np.zeros(n)
    for j in range(rounds):
        at = [graphs if isinstance(graphs, Graph) else graphs(i) for i in range(j + 1)]
        for k in range(mixing):
            columns = _pulled(at[j], _units(n, neighborhood(at[j], chosen)), k)
            total += _shares(columns)
            for t in range(j - 1, -1, -1):
                columns = _pulled(at[t], columns, power)
                total += _shares(columns)
    return total


def _units(n: int, peers: Ints) -> Array:
    columns = np.zeros((n, peers.size))
    columns[peers, np.arange(peers.size)] = 1.0
    return columns


def _pulled(graph: Graph, columns: Array, times: int) -> Array:
    """Rows r W^times, kept as columns."""
    for _ in range(times):
        columns = np.asarray(graph.weights.T @ columns)
    return columns


def _shares(columns: Array) -> Array:
    squares = columns**2
    return np.asarray((squares / squares.sum(axis=0)).sum(axis=1))


def _check(rounds: int, mixing: int) -> None:
    if rounds < 0 or mixing < 1:
        raise ConfigError(f"found {rounds} rounds of {mixing} exchanges; give >= 0 and >= 1")


@dataclass(frozen=True)
class PublishedDescent(Theorem):
    """Equation (C.4) for a run of gossip SGD: NOT a bound."""

    mixing: int
    title: ClassVar[str] = "the printed loss of Muffliato-SGD, which is not a guarantee"
    spec: ClassVar[str] = "gossip:MUF-9 source_C4"
    status: ClassVar[Status] = "published"
    about: tuple[str, ...] = field(default=("gossip-sgd",), kw_only=True)

    def __post_init__(self) -> None:
        counts(self, "mixing")

    def conditions(self, facts: Facts) -> tuple[Hypothesis, ...]:
        facts.noise_multiplier()
        return STANDING

    def losses(self, facts: Facts, observers: tuple[int, ...]) -> Array:
        rounds = -(-facts.steps // self.mixing)
        return source_c4(
            lambda j: facts.at(j * self.mixing), facts.n, rounds, self.mixing, observers
        )

    def notes(self, facts: Facts, observers: tuple[int, ...]) -> tuple[str, ...]:
        return (
            "not a guarantee: on a path of 6 it says 2.087 for peer 2 where the truth is 2.923",
        )
