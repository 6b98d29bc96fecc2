"""An empty picture, and the maps of social graphs.

They need matplotlib, which comes with the extra `ui`.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np

from bruit.arrays import Array
from bruit.errors import ConfigError
from bruit.graphs import Graph
from bruit.graphs.coordinates import coordinates
from papers.figures.walk_maps import Map

LINK = "#9aa3ad"


def figure(width: float, height: float) -> Any:
    """An empty matplotlib figure."""
    try:
        return import_module("matplotlib.figure").Figure(
            figsize=(width, height), layout="constrained"
        )
    except ImportError:
        raise ConfigError(
            "pictures need matplotlib; install it with: pip install 'bruit[ui]'"
        ) from None


def links(panel: Any, graph: Graph, places: Array) -> None:
    """The links of a graph as thin lines, behind its peers."""
    lines = import_module("matplotlib.collections").LineCollection(
        places[graph.edges()], colors=LINK, linewidths=0.5, zorder=1
    )
    panel.add_collection(lines)


def two_maps(found: Map, picture: Any) -> Any:
    """Printed loss and communicability as matrices ordered by community, and the graph colored by
    its mean loss, drawn on an empty figure."""
    picture.set_size_inches(13, 4.2)
    order = np.argsort(found.communities, kind="stable")
    panels = picture.subplots(1, 3)
    matrices = {
        "privacy loss, printed": found.printed,
        "communicability exp(W)": found.communicability,
    }
    for panel, (title, matrix) in zip(panels[:2], matrices.items(), strict=True):
        shown = panel.imshow(_logarithms(matrix[np.ix_(order, order)]), cmap="magma_r")
        panel.set_title(f"{title} (log10)")
        picture.colorbar(shown, ax=panel)
    at = coordinates(found.graph).places
    links(panels[2], found.graph, at)
    dots = panels[2].scatter(*at.T, c=found.mean, cmap="magma_r", s=25, zorder=2)
    panels[2].set_title("mean loss in the view of each peer")
    panels[2].set_axis_off()
    picture.colorbar(dots, ax=panels[2])
    picture.suptitle(
        f"{found.graph.name}: {found.graph.n} peers, walk of {found.steps} hops, order 2, z = 10"
    )
    return picture


def _logarithms(matrix: Array) -> Array:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.log10(np.where(matrix > 0, matrix, np.nan))
