"""Muffliato: private averaging as named presets, an algorithm with its horizon.

    muffliato             Chebyshev gossip for ceil(l / sqrt(gap)) rounds                       (gossip:MUF-4)
    randomized-muffliato  pair averaging for ceil(l / lambda(p)) activations                    (gossip:MUF-7)
    butterfly-muffliato   averaging on a butterfly sequence, one round per digit: exact         (gossip:MUF-X2)

with l = log(n max(1, spread / sigma^2)).

The horizon uses a public bound on the spread of the inputs (1/4 for values in [0, 1]), never the
data.
Paper: arXiv:2206.05091.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

from bruit.algorithms.algorithm import Algorithm
from bruit.algorithms.gossip.averaging import Averaging
from bruit.algorithms.gossip.chebyshev import Chebyshev
from bruit.algorithms.gossip.pair_averaging import PairAveraging
from bruit.algorithms.schedules.pairs.schedule import Pairs
from bruit.errors import ConfigError
from bruit.graphs import Graph, GraphSequence, second_eigenvalue, spectral_gap
from bruit.graphs import graph as named_graph
from bruit.graphs.sequence import Butterfly


class Preset(NamedTuple):
    """An algorithm with its horizon."""

    algorithm: Algorithm[Any]
    steps: int


def _logarithm(n: int, sigma: float, spread: float) -> float:
    if not sigma > 0:
        raise ConfigError(
            "muffliato averages noisy values: its horizon needs sigma > 0; for sigma = 0 use "
            "averaging"
        )
    return math.log(n * max(1.0, spread / sigma**2))


def _fixed(graph: Graph | GraphSequence | str) -> Graph:
    found = named_graph(graph)
    if not isinstance(found, Graph):
        raise ConfigError(f"muffliato needs one fixed graph, found the sequence {found.name}")
    return found


def _connected(graph: Graph, gap: float | None = None) -> tuple[Graph, float]:
    gap = spectral_gap(graph) if gap is None else gap
    if gap <= 1e-12:
        raise ConfigError(
            f"the spectral gap of {graph.name} is 0, so gossip never converges; connect it or use "
            f"plus=1"
        )
    return graph, gap


def muffliato(graph: Graph | GraphSequence | str, sigma: float, spread: float = 0.25) -> Preset:
    """Synchronous Muffliato until the error is within 3 sigma^2 / n."""
    graph, gap = _connected(_fixed(graph))
    return Preset(
        Chebyshev(), max(1, math.ceil(_logarithm(graph.n, sigma, spread) / math.sqrt(gap)))
    )


def randomized_muffliato(
    graph: Graph | GraphSequence | str, sigma: float, spread: float = 0.25
) -> Preset:
    """Randomized Muffliato until the error is within 2 sigma^2 / n; lambda(p) = (1 - lambda_2(W)) /
    n for p = 2W/n."""
    graph = _fixed(graph)
    graph, gap = _connected(graph, 1 - second_eigenvalue(graph))
    activations = math.ceil(_logarithm(graph.n, sigma, spread) * graph.n / gap)
    return Preset(PairAveraging(Pairs(activations=activations)), math.ceil(activations / graph.n))


def butterfly_muffliato(
    graph: Graph | GraphSequence | str, sigma: float, spread: float = 0.25
) -> Preset:
    """Butterfly Muffliato: the exact mean of the noisy values after one round per digit."""
    graph = named_graph(graph)
    if not isinstance(graph, Butterfly):
        raise ConfigError(
            f"butterfly-muffliato needs a graph like butterfly:64, found {graph.name}"
        )
    return Preset(Averaging(), len(graph.radices))


def presets() -> dict[str, Callable[..., Preset]]:
    """The presets by name."""
    return {
        "muffliato": muffliato,
        "randomized-muffliato": randomized_muffliato,
        "butterfly-muffliato": butterfly_muffliato,
    }
