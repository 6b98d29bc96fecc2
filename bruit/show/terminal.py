"""A run in the terminal beyond its tables: sparklines of its scores, and its graph in a few
characters.

Plain text without colors, so it reads the same in a pipe; ASCII where the terminal knows no better.
"""

from __future__ import annotations

import math

import numpy as np

from bruit.arrays import Array
from bruit.graphs import Graph, GraphSequence
from bruit.graphs.coordinates import coordinates, talking
from bruit.how_many import how_many
from bruit.runs.result import Run
from bruit.show.drawing.markup import number

BARS, PLAIN_BARS = "▁▂▃▄▅▆▇█", "_.-=+*#@"
WIDTH, HEIGHT = 36, 10  # of the drawing, in characters; a braille character has 2 by 4 dots
DOTS = np.array([[0x01, 0x08], [0x02, 0x10], [0x04, 0x20], [0x40, 0x80]])
PEERS, LINKS = 150, 400  # above which the drawing would be a blot
PEER, PLAIN_PEER = "●", "o"


def sparkline(values: Array, width: int = 40, plain: bool = False) -> str:
    """Numbers as a row of bars from the least to the largest; at most `width` of them, blank where
    undefined.

    >>> sparkline(np.array([0.0, 1.0, 2.0, 7.0]))
    '▁▂▃█'
    """
    numbers = np.asarray(values, np.float64)
    if len(numbers) > width:
        numbers = numbers[np.round(np.linspace(0, len(numbers) - 1, width)).astype(int)]
    finite = np.isfinite(numbers)
    if not finite.any():
        return ""
    bars, low, high = PLAIN_BARS if plain else BARS, numbers[finite].min(), numbers[finite].max()
    scaled = np.where(finite, (numbers - low) / (high - low) * 7 if high > low else 0.0, 0.0)
    return "".join(
        bars[round(float(x))] if known else " " for x, known in zip(scaled, finite, strict=True)
    )


def score_lines(run: Run, plain: bool = False) -> list[str]:
    """One sparkline per score: name, first value, bars, last value."""
    names = run.metrics.names()
    wide = max((len(name) for name in names), default=0)
    lines = []
    for name in names:
        values = run.metrics.column(name)
        first, last = number(float(values[0])), number(float(values[-1]))
        lines.append(f"{name:<{wide}}  {first:>8} {sparkline(values, plain=plain)} {last}")
    return lines


def degree_line(graph: Graph, plain: bool = False) -> str:
    """Peers, links, and how many neighbors peers have."""
    degrees = graph.degrees
    if not len(degrees):
        return "0 peers"
    few, many = int(degrees.min()), int(degrees.max())
    line = f"{how_many(graph.n, 'peer')}, {how_many(graph.edge_count, 'link')}, "
    if few == many:
        return line + f"{how_many(few, 'neighbor')} each"
    counts = np.bincount(
        np.minimum((degrees - few) * 20 // (many - few + 1), 19), minlength=min(20, many - few + 1)
    )
    return line + f"{few} {sparkline(np.sqrt(counts), plain=plain)} {many} neighbors"


def small_graph(
    graph: Graph | GraphSequence, plain: bool = False, steps: int | None = None
) -> list[str]:
    """The graph in a few lines of text; nothing for one with many peers or links, or that needs
    stages."""
    if not 1 < graph.n <= PEERS:
        return []
    picture = coordinates(graph, steps)
    if picture.total > LINKS or not len(picture.links):
        return []
    size = np.array([2 * WIDTH - 1, 4 * HEIGHT - 1])
    across, down = (picture.places * size).T
    lit = np.zeros((4 * HEIGHT, 2 * WIDTH), bool)
    for start, stop in np.concatenate([picture.places[picture.links], picture.stubs]) * size:
        part = np.linspace(0, 1, 2 + math.ceil(np.abs(stop - start).max()))
        columns, rows = np.round(start[:, None] + part * (stop - start)[:, None]).astype(int)
        lit[rows, columns] = True
    cells = (lit.reshape(HEIGHT, 4, WIDTH, 2) * DOTS[None, :, None, :]).sum(axis=(1, 3))
    text = [
        [("." if cell else " ") if plain else (chr(0x2800 + cell) if cell else " ") for cell in row]
        for row in cells.tolist()
    ]
    for x, y in zip(across, down, strict=True):
        text[round(float(y)) // 4][round(float(x)) // 2] = PLAIN_PEER if plain else PEER
    return ["".join(row).rstrip() for row in text]


def pictures(run: Run, plain: bool = False) -> list[str]:
    """Sparklines and the graph, below the tables of `bruit.show.summary.screen`."""
    graph = talking(run.graph, run.steps)
    drawing = small_graph(run.graph, plain, run.steps)
    return [*score_lines(run, plain), degree_line(graph, plain), *drawing]
