"""The figures of the walk experiments as SVG files: maps of social graphs and loss against
distance.

They need matplotlib, which comes with the extra `ui`.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from bruit.arrays import Array
from bruit.errors import ConfigError
from bruit.graphs import Graph, hypercube, southern_women
from bruit.graphs.coordinates import coordinates
from papers.figures import walk_distance
from papers.figures.walk_maps import Map, walk_map


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


def draw(folder: Path, facebook: Graph | None, quick: bool = False) -> Iterator[Path]:
    """Write the figures and name the files; the Facebook map only where its data is."""
    figure(1, 1)
    folder.mkdir(parents=True, exist_ok=True)
    yield save(two_maps(walk_map(southern_women()), figure(1, 1)), folder / "southern-women.svg")
    if facebook is not None:
        yield save(two_maps(walk_map(facebook), figure(1, 1)), folder / "ego-facebook.svg")
    graph = hypercube(7 if quick else 11)
    yield save(distance_plot(graph, walk_distance.curves(graph)), folder / "loss-distance.svg")


def save(picture: Any, file: Path) -> Path:
    picture.savefig(file, format=file.suffix[1:])
    return file


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
    for a, b in found.graph.edges():
        panels[2].plot(*at[[a, b]].T, color="#d0d4d9", linewidth=0.5, zorder=1)
    dots = panels[2].scatter(*at.T, c=found.mean, cmap="magma_r", s=25, zorder=2)
    panels[2].set_title("mean loss in the view of each peer")
    panels[2].set_axis_off()
    picture.colorbar(dots, ax=panels[2])
    picture.suptitle(
        f"{found.graph.name}: {found.graph.n} peers, walk of {found.steps} hops, order 2, z = 10"
    )
    return picture


def distance_plot(graph: Graph, found: walk_distance.Curves) -> Any:
    """All curves of one graph over the distance from the observer."""
    picture = figure(7, 4.5)
    panel = picture.subplots()
    lines = (
        ("walk, printed (T/n contributions)", found.printed, "--"),
        ("known sender, printed", found.sender, ":"),
        ("walk, one contribution, proven", found.proven, "-"),
        ("gossip, printed", found.gossip_printed, "--"),
        ("gossip, exact", found.gossip_exact, "-"),
    )
    for name, values, style in lines:
        panel.semilogy(found.distances, values, style, marker="o", markersize=3, label=name)
    panel.axhline(1.0, color="#6d7680", linewidth=0.8)
    panel.set_xlabel("distance from the observer")
    panel.set_ylabel("loss, local DP = 1")
    panel.set_title(f"{graph.name}: order 2, z = 1")
    panel.legend(fontsize=8)
    return picture


def _logarithms(matrix: Array) -> Array:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.log10(np.where(matrix > 0, matrix, np.nan))
