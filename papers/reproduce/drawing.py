"""Pictures of findings: curves, bars, points, maps of pairs and of graphs, on a matplotlib figure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from bruit.arrays import Array
from bruit.graphs import Graph
from bruit.graphs.coordinates import coordinates

Draw = Callable[[Any], None]
COLORS = (
    *("#1b6ca8", "#c8553d", "#3f8f4f", "#8e5aa8", "#c79100", "#4a4e69"),
    *("#17a2b0", "#d1589b"),
)
Lines = Mapping[str, tuple[ArrayLike, ArrayLike]]


def curves(
    lines: Lines,
    x: str,
    y: str,
    *,
    log: str = "",
    level: tuple[float, str] | None = None,
) -> Draw:
    """Named lines; a name that ends in "(source)" or "printed" is dashed. `log` names the axes."""

    def draw(figure: Any) -> None:
        panel = figure.subplots()
        _plot(panel, lines, log)
        if level is not None:
            panel.axhline(level[0], color="#6d7680", linewidth=0.8)
            place = {"xycoords": ("axes fraction", "data"), "ha": "right", "va": "bottom"}
            panel.annotate(level[1], (0.99, level[0]), **place)
        panel.set(xlabel=x, ylabel=y)

    return draw


def side_by_side(panels: Mapping[str, Lines], x: str, y: str, *, log: str = "") -> Draw:
    """Panels of named lines on one scale; with more than three, two rows of them."""

    def draw(figure: Any) -> None:
        for panel, (title, lines) in zip(grid(figure, len(panels)), panels.items(), strict=True):
            _plot(panel, lines, log)
            panel.set_title(title, fontsize=9)
            panel.set(xlabel=x, ylabel=y)
            panel.label_outer()

    return draw


def _plot(panel: Any, lines: Lines, log: str) -> None:
    for k, (name, (xs, ys)) in enumerate(lines.items()):
        style = "--" if name.endswith(("(source)", "printed")) else "-"
        color = COLORS[k % len(COLORS)]
        panel.plot(xs, ys, style, marker="o", markersize=3, label=name, color=color)
    logarithmic(panel, log)
    panel.legend(fontsize=8)


def logarithmic(panel: Any, log: str) -> None:
    """Logarithmic axes whose labels do not run into each other: decades, or 1, 2, 5 of one or
    two."""
    ticker = import_module("matplotlib.ticker")
    for name in log:
        getattr(panel, f"set_{name}scale")("log")
        axis, (low, high) = getattr(panel, f"{name}axis"), getattr(panel, f"get_{name}lim")()
        axis.set_minor_formatter(ticker.NullFormatter())
        if high < 60 * low:
            axis.set_major_locator(ticker.LogLocator(10, (1.0, 2.0, 5.0)))
            axis.set_major_formatter(ticker.FuncFormatter(lambda value, _: f"{value:g}"))


def grid(figure: Any, count: int, height: float = 3.2, shared: bool = True) -> list[Any]:
    """Panels in one row, or in two if there are more than three; the rest of the last row is
    empty."""
    rows = 1 if count <= 3 else 2
    columns = -(-count // rows)
    figure.set_size_inches(max(7.0, 3.2 * columns), height * rows)
    panels = list(figure.subplots(rows, columns, squeeze=False, sharex=shared, sharey=shared).flat)
    for left in panels[count:]:
        left.set_axis_off()
    return panels[:count]


def bars(groups: Sequence[str], series: Mapping[str, ArrayLike], y: str) -> Draw:
    """Groups of bars, one color a series; numbers that are missing are left out."""

    def draw(figure: Any) -> None:
        panel, width = figure.subplots(), 0.8 / len(series)
        for k, (name, values) in enumerate(series.items()):
            at = np.arange(len(groups)) + (k - (len(series) - 1) / 2) * width
            heights = np.nan_to_num(np.asarray(values, np.float64))
            panel.bar(at, heights, width, label=name, color=COLORS[k % len(COLORS)])
        panel.set_xticks(range(len(groups)), groups, rotation=30 if len(groups) > 6 else 0)
        panel.set_ylabel(y)
        panel.margins(y=0.25)
        panel.legend(fontsize=8, ncols=2)

    return draw


def points(
    series: Mapping[str, tuple[ArrayLike, ArrayLike]], x: str, y: str, *, log: str = ""
) -> Draw:
    """Clouds of points."""

    def draw(figure: Any) -> None:
        panel = figure.subplots()
        for k, (name, (xs, ys)) in enumerate(series.items()):
            panel.scatter(xs, ys, s=5, alpha=0.5, label=name, color=COLORS[k % len(COLORS)])
        logarithmic(panel, log)
        panel.set(xlabel=x, ylabel=y)
        panel.legend(fontsize=8)

    return draw


def on_graphs(panels: Mapping[str, tuple[Graph, Array]], label: str) -> Draw:
    """Graphs whose peers are colored by a number each, on one scale."""

    def draw(figure: Any) -> None:
        axes = grid(figure, len(panels), 3.8 if len(panels) < 4 else 3.0, shared=False)
        every = np.concatenate([values for _, values in panels.values()])
        low, high = np.nanmin(every), np.nanmax(every)
        dots = None
        for panel, (title, (graph, values)) in zip(axes, panels.items(), strict=True):
            at = coordinates(graph).places
            for a, b in graph.edges():
                panel.plot(*at[[a, b]].T, color="#d0d4d9", linewidth=0.5, zorder=1)
            dots = panel.scatter(
                *at.T,
                c=values,
                cmap="magma_r",
                vmin=low,
                vmax=high,
                s=22,
                zorder=2,
                edgecolors="#8a9199",
                linewidths=0.4,
            )
            panel.set_title(title, fontsize=9)
            panel.set_axis_off()
        figure.colorbar(dots, ax=axes, label=label)

    return draw


def pictures(rows: Mapping[str, Array], shape: tuple[int, ...]) -> Draw:
    """Rows of small images, each row with its name."""

    def draw(figure: Any) -> None:
        count = max(len(images) for images in rows.values())
        axes = figure.subplots(len(rows), count, squeeze=False)
        for line, (name, images) in zip(axes, rows.items(), strict=True):
            for panel in line:
                panel.set_axis_off()
            for panel, image in zip(line, images, strict=False):
                panel.imshow(np.clip(image.reshape(shape), 0, 1), cmap="gray")
            line[0].set_title(name, fontsize=8, loc="left")

    return draw
