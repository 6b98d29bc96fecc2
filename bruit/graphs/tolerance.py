"""How many liars a graph tolerates, by the weight that they have at an honest peer (gossip:LIE-2).

    mu = 1 - lambda_2(W): the algebraic connectivity of the Laplacian I - W
    liars known:    tolerated if 2 rho b < mu(honest peers alone)
    liars unknown:  tolerated if b < mu(all) / (2 rho + 1),   since mu(honest) >= mu(all) - b

b is the largest sum of weights of liars at an honest peer, rho the error of the rule that mixes.
Hypotheses: one graph, symmetric weights, links that do not fail.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bruit.errors import ConfigError
from bruit.graphs.graph import Graph
from bruit.graphs.spectrum import DENSE, second_eigenvalue

ERROR = {"clip": 2.0, "mean-clip": 17 / 8, "trim": 4.0}
"""rho of the rules that mix what neighbors say (gossip:LIE-1)."""


def connectivity(graph: Graph) -> float:
    """The second smallest eigenvalue of the Laplacian I - W; 0 when disconnected."""
    return max(0.0, 1.0 - second_eigenvalue(graph)) if graph.n > 1 else 1.0


def tolerated_weight(graph: Graph, rho: float) -> float:
    """Liars that weigh less than this at every honest peer are tolerated, whoever they are."""
    return connectivity(graph) / (2 * rho + 1)


def tolerated_liars(graph: Graph, weight: float) -> int:
    """The most peers such that any so many weigh less than `weight` at every other peer."""
    fewest = graph.n
    for v in range(graph.n if graph.group is None else 1):
        around, weights = graph.row(v)
        heaviest = np.sort(weights[around != v])[::-1]
        fits = np.cumsum(heaviest) < weight * (1 - 1e-9)
        fewest = min(fewest, int(fits.sum()) if not fits.all() else graph.n)
    return min(fewest, graph.n - 1)


def weight_of(graph: Graph, liars: Sequence[int]) -> float:
    """The most that these peers weigh together at one of the others."""
    lying = np.isin(np.arange(graph.n), liars)
    return float((graph.weights @ lying.astype(float))[~lying].max(initial=0.0))


def honest_connectivity(graph: Graph, liars: Sequence[int]) -> float:
    """The connectivity of the peers that are left without these; 0 when they fall apart."""
    honest = np.setdiff1d(np.arange(graph.n), liars)
    if len(honest) > 4 * DENSE:
        raise ConfigError(
            f"the spectrum of {len(honest)} honest peers is not computed; name no liars, or take"
            f" a graph of up to {4 * DENSE} peers"
        )
    links = graph.weights[honest][:, honest].toarray()
    np.fill_diagonal(links, 0.0)
    laplacian = np.diag(links.sum(axis=1)) - links
    return float(max(0.0, np.linalg.eigvalsh(laplacian)[1])) if len(honest) > 1 else 1.0
