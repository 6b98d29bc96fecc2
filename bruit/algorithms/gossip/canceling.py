"""Noise that cancels between neighbors, of one size or by degree (gossip:COR-2)."""

from __future__ import annotations

import numpy as np

from bruit.algorithms.home import Home
from bruit.arrays import Array, Ints
from bruit.errors import ConfigError
from bruit.graphs import Graph, GraphSequence
from bruit.privacy.exact import FINENESS, edge_parts


def degrees_of(graph: Graph | GraphSequence, by_degree: bool) -> Ints | None:
    """The degrees that parts are made of; none where every edge has the same noise  # (n,)."""
    if not by_degree:
        return None
    if not isinstance(graph, Graph):
        raise ConfigError(
            "by_degree = true needs one graph that stays, and this one changes from round to round;"
            " use by_degree = false"
        )
    return np.asarray(graph.degrees, np.int64)


def canceling(home: Home, sigma: float, grid: float, degrees: Ints | None) -> Array:
    """What a peer's edges add to it, on the grid: each draw has deviation sigma times its part
    # (lanes, d)."""
    if degrees is None:
        return home.pair_noise(sigma, grid=grid).sums()
    drawn = home.pair_noise(sigma, grid=FINENESS * grid)
    mine = np.repeat(home.ids, np.diff(drawn.start))
    parts = edge_parts(degrees, np.stack((mine, drawn.peers), axis=1))
    return drawn.replace(parts[:, None] * drawn.rows).sums()
