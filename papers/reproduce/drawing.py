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
from papers.figures.pictures import links

Draw = Callable[[Any], None]
COLORS = (
    *("#1b6ca8", "#c8553d", "#3f8f4f", "#8e5aa8", "#c79100", "#4a4e69"),
    *("#17a2b0", "#d1589b"),
)
Lines = Mapping[str, tuple[ArrayLike, ArrayLike]]
ON_TOP = {"bbox": {"facecolor": "white", "edgecolor": "none", "pad": 1.0}, "fontsize": 8}
MOST_LETTERS = 55  # below bars that stand side by side without being turned
NAMED = 16  # most peers of a graph whose names are written


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
            place = {"xycoords": ("axes fraction", "data"), "ha": "right", "va": "center"}
            panel.annotate(level[1], (0.99, level[0]), **place, **ON_TOP)
        panel.set(xlabel=x, ylabel=y)

    return draw


def side_by_side(panels: Mapping[str, Lines], x: str, y: str, *, log: str = "") -> Draw:
    """Panels of named lines on one scale; with more than three, two rows of them. One legend for all
    stands below, where it covers no line, if their lines have the same names."""
    alike = len({tuple(lines) for lines in panels.values()}) == 1

    def draw(figure: Any) -> None:
        places = grid(figure, len(panels))
        for panel, (title, lines) in zip(places, panels.items(), strict=True):
            _plot(panel, lines, log, legend=not alike)
            panel.set_title(title, fontsize=9)
            panel.set(xlabel=x, ylabel=y)
            panel.label_outer()
        if alike:
            marks, names = places[0].get_legend_handles_labels()
            how = {"loc": "outside lower center", "fontsize": 8}
            figure.legend(marks, names, ncols=min(6, len(names)), **how)

    return draw


def _plot(panel: Any, lines: Lines, log: str, legend: bool = True) -> None:
    for k, (name, (xs, ys)) in enumerate(lines.items()):
        style = "--" if name.endswith(("(source)", "printed")) else "-"
        color = COLORS[k % len(COLORS)]
        panel.plot(xs, ys, style, marker="o", markersize=3, label=name, color=color)
    logarithmic(panel, log)
    if legend:
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
        panel.set_xticks(range(len(groups)), groups)
        if len(groups) > 6 or sum(map(len, groups)) > MOST_LETTERS:
            panel.tick_params(axis="x", rotation=30)
            for label in panel.get_xticklabels():
                label.set(ha="right", rotation_mode="anchor")
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


def on_graphs(panels: Mapping[str, tuple[Graph, Array]], label: str, no: str | None = None) -> Draw:
    """Graphs whose peers are colored by a number each, on one scale; small ones with the names of
    their peers. With `no`, numbers are 1 (for `label`) or 0 (for `no`), and a legend says so."""

    def draw(figure: Any) -> None:
        axes = grid(figure, len(panels), 3.8 if len(panels) < 4 else 3.0, shared=False)
        every = np.concatenate([values for _, values in panels.values()])
        low, high = (0.0, 1.0) if no is not None else (np.nanmin(every), np.nanmax(every))
        dots = None
        for panel, (title, (graph, values)) in zip(axes, panels.items(), strict=True):
            at = coordinates(graph).places
            links(panel, graph, at)
            named = graph.n <= NAMED
            dots = panel.scatter(
                *at.T,
                c=values,
                cmap="magma_r",
                vmin=low,
                vmax=high,
                s=70 if named else 22,
                zorder=2,
                edgecolors="#8a9199",
                linewidths=0.4,
            )
            for place, name in zip(at, graph.labels or range(graph.n), strict=False):
                if named:
                    near = {"textcoords": "offset points", "xytext": (6, 5), "zorder": 3}
                    panel.annotate(str(name), place, **near, fontsize=7)
            panel.set_title(title, fontsize=9)
            panel.margins(0.15 if named else 0.05)
            panel.set_axis_off()
        if no is None:
            figure.colorbar(dots, ax=axes, label=label)
        elif dots is not None:
            marks = [
                axes[0].scatter([], [], color=dots.to_rgba(k), edgecolors="#8a9199") for k in (1, 0)
            ]
            figure.legend(marks, (label, no), loc="outside lower center", ncols=2, fontsize=8)

    return draw


def weights(panels: Mapping[str, Array], label: str) -> Draw:
    """Matrices of weights side by side, each on its own scale."""

    def draw(figure: Any) -> None:
        for panel, (title, matrix) in zip(
            grid(figure, len(panels), shared=False), panels.items(), strict=True
        ):
            shown = panel.imshow(matrix, cmap="magma_r")
            panel.set_title(title, fontsize=9)
            figure.colorbar(shown, ax=panel, label=label, shrink=0.8)

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
