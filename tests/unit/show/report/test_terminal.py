"""Sparklines and small graphs: plain text, the same in a pipe."""

import numpy as np

from bruit.graphs import complete, path, ring, star
from bruit.show.terminal import degree_line, pictures, small_graph, sparkline


def test_sparklines():
    assert sparkline(np.array([1.0, np.nan, 3.0])) == "▁ █"
    assert sparkline(np.array([2.0, 2.0])) == "▁▁"
    assert sparkline(np.array([np.inf])) == ""
    assert sparkline(np.arange(8.0), plain=True) == "_.-=+*#@"
    assert len(sparkline(np.arange(1000.0), width=30)) == 30


def test_graphs_in_text():
    drawn = small_graph(ring(8))
    assert len(drawn) == 10
    assert sum(line.count("●") for line in drawn) == 8
    assert sum(line.count("o") for line in small_graph(path(2), plain=True)) == 2
    assert small_graph(complete(40)) == small_graph(path(200)) == []
    assert degree_line(ring(8)) == "8 peers, 8 links, 2 neighbors each"
    assert degree_line(star(9)).startswith("9 peers, 8 links, 1 ")


def test_no_colors_when_piped(averaging):
    said = "\n".join(pictures(averaging))
    assert "\x1b" not in said
    assert "mse" in said
    assert "24 peers" in said
